"""Billing codes: precision, recall and F1 of the ICD codes that an answer names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

CODE = re.compile(r"\b[A-Z]\d{1,3}(?:\.\d{1,4})?\.?\b")


@dataclass(frozen=True, slots=True)
class CodeMatch:
    """Shares in [0, 1], each 0 where it has no denominator."""

    precision: float
    recall: float
    f1: float


def icd_codes(text: str) -> frozenset[str]:
    """Return the different ICD codes in a text: a letter, up to three digits, up to four more."""
    return frozenset(code.rstrip(".") for code in CODE.findall(text.replace("**", "")))


def code_match(keys: Sequence[str], answer: str) -> CodeMatch:
    """Return how the codes of an answer compare with those of its keys.

    References
    ----------
    HELM's `mimiciv_billing_code_precision`, `_recall` and `_f1`.
    """
    right = frozenset().union(*(icd_codes(key) for key in keys))
    named = icd_codes(answer)
    shared = len(right & named)
    return CodeMatch(
        shared / len(named) if named else 0.0,
        shared / len(right) if right else 0.0,
        2 * shared / (len(right) + len(named)) if shared else 0.0,
    )
