"""The study: what was asked, what was answered, who rated it and how.

Knows no web page, no vendor and no statistic. The two constants say which study is opened where none
is named.
"""

STUDY_VARIABLE = "MEDJURY_DB"
DEFAULT_STUDY_URL = "sqlite:///medjury.db"
