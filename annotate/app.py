"""The entry file: what each browser session runs; processes beside the server pass it by."""

if __name__ == "__main__":
    import streamlit as st

    from annotate import navigation

    st.set_page_config(page_title="medjury", layout="wide")
    navigation.run()
