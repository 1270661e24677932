"""Grades in words, such as C and I or pass and fail, as the points of an ordinal scale.

The words are the grader's own, from worst to best. They become the points 0, 1, ... of a rubric
that is made of them, so that no point of another rubric is ever read into a word.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from data.errors import BadInput
from data.rubric import FULLY_ANCHORED, Criterion, Rubric, Scale

MOST_WORDS, LONGEST_WORD = 20, 40
# From worst to best; each set of words is known only whole or in part, never mixed with another.
KNOWN: tuple[tuple[str, ...], ...] = (
    ("I", "P", "C"),
    ("incorrect", "partially correct", "correct"),
    ("fail", "pass"),
    ("failed", "passed"),
    ("false", "true"),
    ("no", "yes"),
    ("unsafe", "safe"),
    ("unacceptable", "acceptable"),
    ("bad", "good"),
    ("poor", "fair", "good", "very good", "excellent"),
    ("F", "D", "C", "B", "A"),
    ("E", "D", "C", "B", "A"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("low", "medium", "high"),
)
NO_ANSWER = {"n", "na", "n/a", "noanswer", "no answer", "not applicable"}
MIDDLE = {"P", "partially correct"}  # a grade that is asked for in some runs only
NUMBERS = re.compile(r"(-?\d{1,4})\s*(?:-|\.\.|to|\u2013)\s*(-?\d{1,4})")
PROMPT = (
    "(What the grader was asked is not in the file. This text takes its place, and no juror was "
    "ever asked with it.)\n\n{{criteria}}\n\n<response>\n{{response}}\n</response>\n\n{{schema}}\n"
)


@dataclass(frozen=True, slots=True)
class Grades:
    """A scale of grades: words from worst to best, or the two ends of a scale of numbers."""

    words: tuple[str, ...] = ()
    ends: tuple[int, int] = (0, 0)

    @property
    def scale(self) -> Scale:
        """The points: of words 0, 1, ..."""
        low, high = (0, len(self.words) - 1) if self.words else self.ends
        return Scale(min=low, max=high)

    def point(self, grade: object) -> object:
        """Return the point of a word; a value that is no word of the scale unchanged."""
        places = {plain(word): points for points, word in enumerate(self.words)}
        return places.get(plain(grade), grade)


def plain(grade: object) -> str:
    """Return a grade without case and blanks around it; True is "true"."""
    return " ".join(str(grade).split()).casefold()


def grades_named(scale: str) -> Grades:
    """Return the scale that a user names: 0-10, or words from worst to best with commas between.

    Raises
    ------
    BadInput
        If it is neither.
    """
    if ends := NUMBERS.fullmatch(scale.strip()):
        low, high = int(ends[1]), int(ends[2])
        if low < high:
            return Grades(ends=(low, high))
    words = tuple(word.strip() for word in scale.split(","))
    once = {plain(word) for word in words}
    fits = 1 < len(words) <= MOST_WORDS and len(once) == len(words) and "" not in once
    if not fits or any(len(word) > LONGEST_WORD for word in words):
        raise BadInput(
            f"--scale {scale[:80]}: give two ends, such as 0-10, or 2 to {MOST_WORDS} words from "
            "worst to best, such as fail,pass"
        )
    return Grades(words)


def grades_of(values: Iterable[object], wide: bool = False) -> Grades | None:
    """Return the known scale that holds all of some values; None if there is none.

    Parameters
    ----------
    values
        What a grader gave; "no answer" in its usual forms is none of the grades.
    wide
        Whether the middle grade was allowed, though nobody gave it.
    """
    distinct = {plain(grade) for grade in values} - NO_ANSWER - {"", "none"}
    for words in KNOWN:
        if distinct and distinct <= {plain(word) for word in words}:
            middle = wide or any(plain(word) in distinct for word in words if word in MIDDLE)
            return Grades(tuple(word for word in words if middle or word not in MIDDLE))
    return None


def no_answer(grade: object) -> bool:
    """Tell whether a grade says that there was no answer to be graded."""
    return plain(grade) in NO_ANSWER


def rubric_of_grades(name: str, criteria: Sequence[str], grades: Grades, source: str) -> Rubric:
    """Return the rubric of a grader whose prompt is not known: its criteria on its own scale."""
    scale = grades.scale
    points = scale.points if scale.max - scale.min < FULLY_ANCHORED else (scale.min, scale.max)
    anchors = dict(enumerate(grades.words)) or dict.fromkeys(points, "in the grader's own words")
    identity = "\0".join([name, str(scale), *grades.words, *criteria])
    digest = hashlib.sha256(identity.encode()).hexdigest()
    return Rubric(
        name=usable_name(name),
        version=f"scale of {source}, sha256 {digest}",
        audience="not known",
        gold="when_needed",
        scale=scale,
        criterion=tuple(
            Criterion(name=criterion, question=f"{criterion}, as {source} asks it", anchors=anchors)
            for criterion in criteria
        ),
        prompt=PROMPT,
    )


@lru_cache(maxsize=1024)  # a file has the same few in every row
def usable_name(words: str) -> str:
    """Return a valid name for a criterion or rubric: Logical Consistency as logical_consistency.

    A name that can be one already is left alone.
    """
    if re.fullmatch(r"[\w.-]{1,64}", words):
        return words
    return re.sub(r"[^\w.-]+", "_", words.strip()).strip("_").lower()[:64]
