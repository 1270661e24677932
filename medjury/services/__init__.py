"""The use cases: a study and a question in, values out. Knows no terminal and no web page."""
