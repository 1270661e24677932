"""The study: what was asked, what was answered, who rated it and how.

Knows no web page, no vendor and no statistic.
"""
