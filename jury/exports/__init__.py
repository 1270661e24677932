"""A jury taken to other tools: one format a file, values in and the text of files out.

Knows no study: what was validated, and how well, is handed over as values. `jury_grader.txt` is the
program with which tools that can run Python put a response to the whole jury; it needs nothing of
medjury.
"""
