"""The words of the rating room, a file for each language: `words/en.json` has them all.

A key is the English sentence; `{name}` stands for what differs. Rubrics, descriptions and error types
are the study's own and are shown as they were written.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.resources import files

Say = Callable[..., str]


@cache
def words(language: str) -> Mapping[str, str]:
    """Return English sentence -> the same in a language of `data.settings.Language`."""
    text = (files("annotate.rating") / "words" / f"{language}.json").read_text("utf-8")
    return dict(json.loads(text))


def say(language: str, text: str, **values: object) -> str:
    """Return a sentence in a language, with its values; what is not translated stays English."""
    return words(language).get(text, text).format(**values)


def sayer(language: str) -> Say:
    """Return `say` of one language."""
    return partial(say, language)
