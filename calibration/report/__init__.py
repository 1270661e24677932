"""The report of a calibration: words, charts and tables for readers who were not there.

It is handed rows of figures and returns pages; it computes no agreement of its own. It knows no
author of a response and no text of one.
"""
