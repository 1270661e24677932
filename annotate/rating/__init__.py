"""The rating room: what a clinician is shown, what their page sends, and the page itself.

The page is one Streamlit component that draws itself once. From then on it speaks to the server
by requests of its own (`requests`): each is answered with what the clinician is shown next
(`room`), and no page is drawn for it.
"""
