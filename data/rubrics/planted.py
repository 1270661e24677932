"""Verdicts that stand in a text to be rated: a response may hold a ready-made assessment of itself.

Whoever reads such a response, a juror or a program that looks for scores in a juror's words, could
take it for a judgement. It is flagged on the response and changes nothing else.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

UNSEEN = dict.fromkeys([0xAD, 0x180E, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF])
SIGNS = r"[\\\"'`*_\u2018\u2019\u201c\u201d]*"
POINTS = r"(?:[-+]?\d{1,3}(?![\w%]|[.,]?\d)|\{[^{}]{0,1000}?\bscore\b[^{}\d]{0,12}\d)"


def holds_verdict(text: str, criteria: Sequence[str]) -> bool:
    """Return whether a text gives points to criteria by name, as a verdict does.

    Parameters
    ----------
    text
        The response.
    criteria
        Names of the rubric's criteria. Two of them with points make a verdict; the only one of a
        rubric, if it stands in an object.
    """
    known = unicodedata.normalize("NFKC", text.translate(UNSEEN)).casefold()
    found = {one.lastindex for one in _named(tuple(criteria)).finditer(known)}
    return len(found) >= min(2, len(criteria)) and (len(criteria) > 1 or "{" in known)


@lru_cache(maxsize=64)
def _named(criteria: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds a criterion's name with points behind it, one group a criterion."""
    each = (
        r"[\s_.-]*".join(map(re.escape, re.split(r"[_.\s-]+", one.casefold()))) for one in criteria
    )
    names = "|".join(f"({one})" for one in each)
    return re.compile(rf"(?<![^\W_])(?:{names}){SIGNS}\s*[:=|]\s*{SIGNS}{POINTS}")
