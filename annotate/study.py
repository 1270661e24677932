"""The study that this process serves."""

import os
from functools import lru_cache

from sqlalchemy import Engine

from data import DEFAULT_STUDY_URL, STUDY_VARIABLE
from data.database import open_study


def serve_study(url: str) -> Engine:
    """Make `url` the study of this process and return its engine."""
    os.environ[STUDY_VARIABLE] = url
    return study()


def study() -> Engine:
    """Return the engine of the study that MEDJURY_DB names, opened once."""
    return _opened(os.environ.get(STUDY_VARIABLE, DEFAULT_STUDY_URL))


@lru_cache(maxsize=4)
def _opened(url: str) -> Engine:
    return open_study(url)
