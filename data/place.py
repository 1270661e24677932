"""Where a study is unless it is said: light enough for what only names it."""

VARIABLE = "MEDJURY_DB"
DEFAULT_URL = "sqlite:///medjury.db"
