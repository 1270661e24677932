"""A jury taken to other tools: one format a file, values in and the text of files out.

Knows no study: what was validated, and how well, is handed over as values. Tools that can
run Python put a response to the whole jury with the engine (`engine.py`), which needs nothing of
medjury.
"""
