"""What the objects of an answer say besides the scores asked for, and whether that speaks against them.

A key that nobody asked for is ignored, unless it holds another score for a criterion, another scale,
or a verdict of its own: `"Clarity": {"score": 2}` beside `"clarity"`, `"max_score": 10`, a nested draft.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from data.question import RubricLike as Rubric
from data.status import Status
from jury.answer_words import IN_WORDS, SENTENCE, plain
from jury.contradiction import (
    ANOTHER_SCALE,
    SECOND,
    Objection,
    another_scale,
    claims,
    names_in,
)

SCORE_KEY = re.compile(
    r"scor|rating|grade|points?$|value|final|revis|correct|punkt|wert|note$|nota$|cijfer|voto|punt"
)
GRADE_KEY = re.compile(r"scor|rating|grade|punkt|wert|calif|puntu")
SCALE_KEY = re.compile(
    r"scale|skala|echelle|escala|scala|schaal|max|out.?of|range|top|^of$|highest|best|von$"
)
DIGITS = re.compile(r"-?\d+(?:\.\d+)?")
OWN_SCALE = re.compile(
    r"\b(?:i|we|ich|wir|je|yo|io|eu|ik)\b[^.]{0,25}\b(?:us|rat|scor|grad|mark|nutz|verwend|bewert|utilis|not|us|punt|calific|valut|avali|gebruik|beoordel)\w*"
    r"|\b(?:these|all|my|the above) (?:scores?|ratings?) (?:is|are)\b"
)
SCALE_NAMED = re.compile("scal|skal|schaal|echelle|out of|von|/|percent|prozent")
DEPTH = 6
SECOND_OBJECT = "a second object gives other scores"


def beside(
    found: Mapping[str, Any], scores: Mapping[str, float], rubric: Rubric
) -> Objection | None:
    """Return what an object says against the verdict, None where nothing does."""
    known = names_in(rubric.criteria)
    for key, value in found.items():
        if key in rubric.criteria:
            against = _inside(key, value, scores[key], rubric)
        else:
            against = _unasked(key, value, scores, rubric, known)
        if against:
            return against
    whole = all(name in found for name in rubric.criteria)
    if not whole and not any(name in found for name in rubric.criteria):
        numbers = list(_leaves(found, DEPTH))
        named = any(isinstance(one, str) and known.search(plain(one)) for one in found.values())
        scored = (named and numbers) or any(
            GRADE_KEY.search(plain(key)) and _number(one) for key, one in found.items()
        )
        if scored or len(numbers) >= min(2, len(rubric.criteria)):
            return Status.TWO_VERDICTS, SECOND_OBJECT
    return None


def _inside(name: str, value: object, score: float, rubric: Rubric) -> Objection | None:
    """Return what the object of one criterion says against its score."""
    if not isinstance(value, dict):
        return None if _number(value) in (None, score) else _second(name, _number(value), score)
    each = (_detail(name, key, one, score, rubric) for key, one in value.items())
    return next(filter(None, each), None)


def _detail(name: str, key: str, value: object, score: float, rubric: Rubric) -> Objection | None:
    """Return what one key of a criterion's object says against its score."""
    number, known = _number(value), plain(key)
    if key == "explanation" and isinstance(value, str):
        other = _of_another_scale(value, rubric)
        return (Status.OUT_OF_RANGE, ANOTHER_SCALE.format(scale=rubric.scale)) if other else None
    if SCALE_KEY.search(known):
        return _scale(value, rubric)
    if SCORE_KEY.search(known) and number != score and (number is not None or key == "score"):
        return _second(name, number, score)
    if isinstance(value, dict) and any(one != score for one in _leaves(value, DEPTH)):
        return Status.TWO_VERDICTS, SECOND_OBJECT
    return None


def _of_another_scale(explanation: str, rubric: Rubric) -> bool:
    """Return whether a juror says of itself, in so many words, that it used another scale."""
    own = (one for one in SENTENCE.split(plain(explanation)) if OWN_SCALE.search(one))
    named = (one for one in own if SCALE_NAMED.search(one))
    return any(another_scale(one, rubric, anywhere=False) for one in named)


def _unasked(
    key: str, value: object, scores: Mapping[str, float], rubric: Rubric, known: re.Pattern[str]
) -> Objection | None:
    """Return what a key that nobody asked for says against the verdict."""
    folded = re.sub(r"[^\w]+|_", " ", plain(key)).strip()
    if named := known.search(folded) or known.search(plain(key)):
        name = rubric.criteria[(named.lastindex or 1) - 1]
        other = [one for one in _leaves(value, DEPTH) if one != scores[name]]
        return _second(name, other[0], scores[name]) if other else None
    if SCALE_KEY.search(folded):
        return _scale(value, rubric)
    if GRADE_KEY.search(folded) and _gives_all_again(value, scores):
        return Status.TWO_VERDICTS, SECOND_OBJECT
    if isinstance(value, str):
        return _text(plain(value), scores, rubric)
    inner = (one for one in _objects(value, DEPTH) if known.search(plain(" ".join(one))))
    return next(filter(None, (beside(one, scores, rubric) for one in inner)), None)


def _gives_all_again(value: object, scores: Mapping[str, float]) -> bool:
    """Return whether a value holds as many scores as there are criteria, and others."""
    given = list(_leaves(value, DEPTH))
    return len(given) == len(scores) > 1 and given != list(scores.values())


def _text(said: str, scores: Mapping[str, float], rubric: Rubric) -> Objection | None:
    """Return what a text under a key that nobody asked for says against the verdict."""
    if why := another_scale(said, rubric, anywhere=False):
        return Status.OUT_OF_RANGE, why
    for one in claims(said, rubric):
        if one.criterion is not None and one.number != scores[one.criterion]:
            return _second(one.criterion, one.number, scores[one.criterion])
    return None


def _scale(value: object, rubric: Rubric) -> Objection | None:
    """Return why a value is not the rubric's own scale; None where it is, or has no number."""
    told = (
        plain(str(value))
        if not isinstance(value, dict | list)
        else " ".join(f"{one:g}" for one in _leaves(value, DEPTH))
    )
    ends = {float(rubric.scale.min), float(rubric.scale.max)}
    given = {float(one) for one in DIGITS.findall(re.sub(r"(?<=\d)\s*-\s*(?=\d)", " ", told))}
    on_scale = given <= {float(one) for one in rubric.scale.points} and max(
        given, default=0
    ) == max(ends)
    if not given or on_scale:
        return None
    return Status.OUT_OF_RANGE, ANOTHER_SCALE.format(scale=rubric.scale)


def _second(name: str, number: float | None, score: float) -> Objection:
    """Return the objection that a criterion has another score beside that of the verdict."""
    said = SECOND.format(name=name, number=number, scores=f"{score:g}") if number else SECOND_OBJECT
    return Status.TWO_VERDICTS, said


def _number(value: object) -> float | None:
    """Return a JSON value as a number, None where it is none; a text counts by the number it is."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    if isinstance(value, str):
        value = IN_WORDS.get(plain(value.strip()), value.strip().split("/")[0])
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _leaves(value: object, depth: int) -> Iterator[float]:
    """Yield the numbers in a value, at most so many objects deep."""
    if isinstance(value, dict | list) and depth:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one, depth - 1)
    elif (number := _number(value)) is not None:
        yield number


def _objects(value: object, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the objects in a value, at most so many deep."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list) and depth:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _objects(one, depth - 1)
