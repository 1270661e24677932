"""The report of a calibration: text, charts and tables.

It turns rows of figures into pages and computes no agreement of its own. It never receives the
author or the text of a response.
"""
