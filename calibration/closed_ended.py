"""Answers that have a key: exact match, F1 of labels, and a calculation's tolerance.

All figures are between 0 and 1 and equal to HELM's of the same names. None knows a synonym, and a
longer answer that contains the right one is wrong.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from data.errors import BadInput

EXACT, QUASI_EXACT, LABELS, MEDCALC = "exact-match", "quasi-exact-match", "label-f1", "medcalc"
METRICS = (EXACT, QUASI_EXACT, LABELS, MEDCALC)
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
IN_WORDS = ("risk", "severity", "diagnosis")  # whole numbers of a score: matched as text
IN_NUMBERS = ("dosage conversion", "physical")
DATE = "date"
CATEGORIES = (*IN_WORDS, *IN_NUMBERS, DATE)
DURATION = re.compile(r"\('(\d+) weeks', '(\d+) days'\)")


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What is right for one instance.

    Attributes
    ----------
    keys : answers that count as right, at least one
    category : of a calculation, one of `CATEGORIES`
    lower, upper : the limits within which a calculation is right, both included; not used for
        risk, severity and diagnosis
    """

    keys: tuple[str, ...]
    category: str = ""
    lower: str = ""
    upper: str = ""


def normalised(text: str, *, articles: bool = False) -> str:
    """Return a text in lower case without ASCII punctuation, extra space and, unless kept, articles.

    References
    ----------
    Choi et al. (2018), QuAC, whose evaluation HELM takes over: punctuation goes before articles.
    """
    plain = text.lower().translate(PUNCTUATION)
    return " ".join((plain if articles else ARTICLES.sub(" ", plain)).split())


def exact_match(key: str, answer: str) -> float:
    """Return 1 where the answer is the key but for space at the ends, else 0; an empty one is 0."""
    return float(bool(answer.strip()) and key.strip() == answer.strip())


def quasi_exact_match(key: str, answer: str) -> float:
    """Return 1 where both are the same once `normalised`, else 0; an empty answer is 0."""
    return float(bool(answer.strip()) and normalised(key) == normalised(answer))


def answer_score(metric: str, key: AnswerKey, answer: str) -> float:
    """Return the figure of one answer, in [0, 1]: by the best of its keys.

    Raises
    ------
    BadInput
        If a calculation's category or limits cannot be read.
    """
    if metric == MEDCALC:
        return medcalc_match(key, answer)
    match = exact_match if metric == EXACT else quasi_exact_match
    return max(match(one, answer) for one in key.keys)


@dataclass(frozen=True, slots=True)
class LabelScores:
    """F1 of labels over a benchmark, in [0, 1].

    `macro_f1` is the mean over labels, one without any right answer counting 0; `micro_f1` is of all
    decisions (response, label) together; `labels` are in order, `normalised` with articles.
    """

    macro_f1: float
    micro_f1: float
    labels: tuple[str, ...]


def label_scores(
    keys: Sequence[Sequence[str]],
    answers: Sequence[Sequence[str]],
    labels: Sequence[str] | None = None,
) -> LabelScores:
    """Return F1 of answers by their keys, over a benchmark.

    Parameters
    ----------
    keys, answers : equally many, at least one; one sequence a response
        The labels that are right, and those given; compared `normalised` with articles. An answer
        that is no label counts for none, and so against recall alone.
    labels : all there are; by default those that stand in a key

    References
    ----------
    HELM's `classification_macro_f1` and `classification_micro_f1`, which are scikit-learn's
    `f1_score` of indicators with zero division as 0.
    """
    truth, given = ([_plain(row) for row in rows] for rows in (keys, answers))
    known = sorted(_plain(labels) if labels else frozenset().union(*truth))
    is_true, is_given = (
        np.array([[label in row for label in known] for row in rows], dtype=bool)
        for rows in (truth, given)
    )
    right = 2.0 * (is_true & is_given).sum(axis=0)
    whole = is_true.sum(axis=0) + is_given.sum(axis=0)
    macro = float(np.mean(right / np.maximum(whole, 1)))
    return LabelScores(macro, float(right.sum() / max(whole.sum(), 1)), tuple(known))


def _plain(labels: Sequence[str]) -> frozenset[str]:
    return frozenset(normalised(label, articles=True) for label in labels if label)


def medcalc_match(key: AnswerKey, answer: str) -> float:
    """Return 1 where a calculated value is right, else 0.

    Scores of risk, severity and diagnosis are to be the key, character for character. Others are
    to lie within the limits. What is no number, no date (month/day/year) or no duration in the
    form of the key is wrong: "5 mg" is no number.

    Raises
    ------
    BadInput
        If there is no such category, or the limits cannot be read or are the wrong way round.

    References
    ----------
    Khandekar et al. (2024), MedCalc-Bench; HELM's `medcalc_bench_accuracy`.
    """
    if key.category not in CATEGORIES:
        raise BadInput(f"category {key.category!r}: choose from {', '.join(CATEGORIES)}")
    right, given = key.keys[0], answer.strip()
    if key.category in IN_WORDS:
        return float(given == right)
    try:
        lower, upper = (_value(key, one) for one in (key.lower, key.upper))
    except ValueError:
        form = "numbers"
        if key.category == DATE:
            form = "dates such as 05/31/2024, or ('39 weeks', '2 days')"
        raise BadInput(
            f"limits {key.lower!r} to {key.upper!r}: the category {key.category} takes {form}"
        ) from None
    if lower > upper:
        raise BadInput(f"limits {key.lower!r} to {key.upper!r}: the lower one comes first")
    try:
        return float(lower <= _value(key, given) <= upper)
    except ValueError:
        return 0.0


def _value(key: AnswerKey, text: str) -> float:
    """Return a number, a duration in days, or the number of a day; else raise ValueError."""
    if key.category in IN_NUMBERS:
        return float(text)
    if DURATION.match(key.keys[0]):
        found = DURATION.match(text)
        if found is None:
            raise ValueError(text)
        return int(found[1]) * 7 + int(found[2])
    return datetime.strptime(text, "%m/%d/%Y").toordinal()
