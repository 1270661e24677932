"""What an answer says against its own verdict: other scores, another scale, a quotation.

The scores of a verdict stand in its JSON object alone. Words around it are never read as scores;
they can only make the answer one that has to be asked for again. Numbers count where they stand as
scores do: beside a criterion or a word for a score, after a colon, in a row or a table, or anywhere
after the verdict. Amounts with a unit (5 mg, 3 days) do not.

A key that is not in the rubric's form is ignored, unless it holds another score for a criterion,
another scale, or a verdict of its own: `"Clarity": {"score": 2}` beside `"clarity"`,
`"max_score": 10`, a nested draft.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

from data.calls import Status
from data.question import RubricLike as Rubric
from jury import answer_text as words
from jury.answer_text import CLOSES, normalize

PERCENT = 100
HEADING = re.compile(r"\s*(?:#+|\*\*|__|\d+\.|-)\s*\w")
SCORE_LINE = re.compile(r"[\s*_#-]*(?:score|rating|punkte?|note|nota|puntuacion|cijfer)\b")
AMOUNT = re.compile(r"[-+]?[\d.,]+")
FENCE = re.compile(r"(?:`{3,}|~{3,})\w*")
LAST_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)")
NEAR = 260  # characters before and after a verdict in which it is introduced or taken back
SECOND = "the text around the verdict gives {name} {number:g}, the verdict {scores}"
ANOTHER_SCALE = "the answer speaks of another scale than {scale}"
TURNED_SCALE = "the answer says that its scores are turned, halved or otherwise changed"
NOT_ITS_OWN = "the only verdict is introduced or taken back as a quotation, an example or a draft"
IN_REASONING = "the verdict stands inside a block of reasoning"
DEPTH = 6
SECOND_OBJECT = "a second object gives other scores"
Objection = tuple[Status, str]


@dataclass(frozen=True, slots=True)
class StatedScore:
    """A number that stands where a score would, outside the verdict's own object.

    Attributes
    ----------
    criterion
        The criterion that it is for; None where none is named beside it.
    overall
        Whether its sentence speaks of a total or a mean.
    """

    criterion: str | None
    number: float
    overall: bool = False


@lru_cache(maxsize=64)
def names_in(criteria: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the names of the criteria in normalized text, one group per criterion."""
    patterns = (
        r"[\s_.-]*".join(map(re.escape, re.split(r"[_.\s-]+", normalize(criterion))))
        for criterion in criteria
    )
    return re.compile(
        r"(?<![^\W_])(?:" + "|".join(f"({pattern})" for pattern in patterns) + r")(?![^\W_])"
    )


def objection_in_text(
    text: str, places: Sequence[tuple[int, int]], scores: Mapping[str, float], rubric: Rubric
) -> Objection | None:
    """Return why the text around a verdict forbids to take it, None where nothing does.

    `places` are the start and end of each object that holds the verdict: equal ones may be several.
    """
    start, end = places[0][0], places[-1][1]
    between = (text[previous[1] : following[0]] for previous, following in pairwise(places))
    before, after = normalize(text[:start]), normalize("\n".join([*between, text[end:]]))
    if CLOSES.search(text, end):
        return Status.INVALID_JSON, IN_REASONING
    if words.SET_APART.search(text[max(0, start - NEAR) : start]) or _in_a_block(text[:start]):
        return Status.INVALID_JSON, NOT_ITS_OWN
    if why := another_scale(before, rubric, anywhere=False) or another_scale(
        after, rubric, anywhere=True
    ):
        return Status.OUT_OF_RANGE, why
    for stated in (*stated_scores(before, rubric), *stated_scores(after, rubric, anywhere=True)):
        if not _agrees(stated, scores):
            return Status.TWO_VERDICTS, _reason(stated, scores)
    if _not_its_own(before[-NEAR:], after):
        return Status.INVALID_JSON, NOT_ITS_OWN
    return None


def another_scale(text: str, rubric: Rubric, *, anywhere: bool) -> str:
    """Return why a text's scores are not on the rubric's scale; empty where nothing says so."""
    changed = words.CHANGED.search(text)
    if words.LETTER.search(text):
        return ANOTHER_SCALE.format(scale=rubric.scale)
    if words.LOWER_IS_BETTER.search(text) or (
        changed and (anywhere or _is_of_scores(text, changed))
    ):
        return TURNED_SCALE
    for sentence, about in _with_numbers(text, rubric.criteria):
        digits = _without_own_scale(_in_digits(sentence), rubric)
        if _turned(digits, rubric):
            return TURNED_SCALE
        points = [int(meaning[1]) for meaning in words.MEANING.finditer(digits)]
        scaled = words.SCALE.search(digits)
        ranged = (scaled or about) and words.RANGE.search(digits)
        numbered = (
            scaled and words.NUMBER.search(digits) and re.search(r"\d", digits[scaled.start() :])
        )
        parted = words.OUT_OF.search(digits) or words.OUT_OF_ALONE.search(digits)
        off = any(point not in rubric.scale.points for point in points)
        if off or ranged or numbered or (parted and (about or scaled or anywhere)):
            return ANOTHER_SCALE.format(scale=rubric.scale)
    return ""


def stated_scores(text: str, rubric: Rubric, *, anywhere: bool = False) -> Iterator[StatedScore]:
    """Yield the numbers of a normalized text that stand as scores do; with `anywhere`, all small ones."""
    yield from (StatedScore(None, float(len(stars[0]))) for stars in words.STARS.finditer(text))
    name_pattern = names_in(rubric.criteria)
    heading: str | None = None
    for sentence, about in _with_numbers(text, rubric.criteria):
        digits = _without_own_scale(_in_digits(sentence) if about else sentence, rubric)
        digits = words.shorten_blanks(words.MEANING.sub(" ", digits))
        overall = words.OVERALL.search(digits) is not None
        names = [
            (name.start(), rubric.criteria[(name.lastindex or 1) - 1])
            for name in name_pattern.finditer(digits)
        ]
        heading = names[-1][1] if names else heading
        under = heading if SCORE_LINE.match(digits) else None
        nearest = cache(partial(_nearest, names, sentence=digits))  # of a row, one place for all
        for at, number in _numbers(digits, about=about, anywhere=anywhere):
            if _small(number, rubric) or (anywhere and about and abs(number) <= PERCENT):
                yield StatedScore(nearest(at) or under, number, overall)


@lru_cache(maxsize=8)
def _with_numbers(text: str, criteria: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """Return the sentences with a number, in digits or words, and whether each is about scores."""
    if not _holds_number(text):
        return ()
    text = words.shorten_blanks(words.COUNTED.sub(" ", words.LIST_SIGN.sub("", text)))
    sentences = []
    for sentence in words.SENTENCE.split(text):
        if _holds_number(sentence):
            about = words.ABOUT.search(sentence) or names_in(criteria).search(sentence)
            sentences.append((sentence, about is not None))
        elif HEADING.match(sentence):
            sentences.append((sentence, False))
    return tuple(sentences)


def _holds_number(text: str) -> bool:
    """Return whether a text holds a number, in digits or a word."""
    if words.COULD_COUNT.search(text):
        return True
    return not words.IN_WORDS.keys().isdisjoint(words.WORD.findall(text))


def _is_of_scores(text: str, at: re.Match[str]) -> bool:
    """Return whether the text around a match is about scores."""
    near = text[max(0, at.start() - NEAR // 2) : at.end() + NEAR // 2]
    return words.ABOUT.search(near) is not None or words.SCALE.search(near) is not None


def _numbers(sentence: str, *, about: bool, anywhere: bool) -> Iterator[tuple[int, float]]:
    """Yield the numbers of a sentence that stand as scores do, each after its position."""
    for pattern in (words.LABELLED, words.IN_TABLE, words.NUMBER_ALONE):
        yield from ((match.start(1), float(match[1])) for match in pattern.finditer(sentence))
    for row in words.IN_ROW.finditer(sentence):
        yield from ((row.start(), float(number)) for number in re.findall(r"\d+", row[0]))
    for match in words.NUMBER.finditer(sentence) if about or anywhere else ():
        if anywhere or _stands_as_score(sentence, match):
            yield match.start(), float(match[0].replace(",", "."))


def _stands_as_score(sentence: str, number: re.Match[str]) -> bool:
    """Return whether words that lead to a score stand before a number, or the sentence ends with it."""
    led = words.LEADS.search(sentence, max(0, number.start() - 20), number.start())
    return led is not None or words.FOLLOWS.match(sentence, number.end()) is not None


def _nearest(names: Sequence[tuple[int, str]], at: int, sentence: str) -> str | None:
    """Return the criterion of a number: "4 for clarity", else the last named before it, else the next."""
    index = bisect_right(names, at, key=lambda name: name[0])
    after = names[index][1] if index < len(names) else None
    number = AMOUNT.match(sentence, at)
    if after and number and words.FOR.fullmatch(sentence, number.end(), names[index][0]):
        return after
    ahead = bisect_left(names, at, key=lambda name: name[0])
    return names[ahead - 1][1] if ahead else after


def _small(number: float, rubric: Rubric) -> bool:
    """Return whether a number could be a score on this scale or on a common one."""
    return min(0, rubric.scale.min) <= number <= max(10, rubric.scale.max) or number == 100


def _agrees(stated: StatedScore, scores: Mapping[str, float]) -> bool:
    """Return whether a stated score is the same as the verdict's."""
    values = scores.values()
    if stated.criterion is not None:
        return scores[stated.criterion] == stated.number
    if stated.overall:
        return min(values) <= stated.number <= max(values) or stated.number == sum(values)
    return set(values) == {stated.number}


def _reason(stated: StatedScore, scores: Mapping[str, float]) -> str:
    """Return the reason that a stated score differs from the verdict, with both numbers."""
    if stated.criterion is not None:
        own = f"{scores[stated.criterion]:g}"
        return SECOND.format(name=stated.criterion, number=stated.number, scores=own)
    values = ", ".join(f"{score:g}" for score in scores.values())
    return SECOND.format(name="a score of", number=stated.number, scores=values)


def _in_digits(sentence: str) -> str:
    """Return a sentence with its number words written in digits."""
    sentence = words.WORD.sub(lambda word: words.IN_WORDS.get(word[0], word[0]), sentence)
    sentence = words.DUE.sub("2", words.ONE_AS_NUMBER.sub("1", sentence))
    return words.MINUS.sub("-", sentence).replace("per 100", "percent")


def _without_own_scale(sentence: str, rubric: Rubric) -> str:
    """Return a sentence without its mentions of the rubric's own scale: "4/5" is 4."""
    ends = (rubric.scale.min, rubric.scale.max)
    sentence = words.RANGE.sub(
        lambda mention: " " if (int(mention[1]), int(mention[2])) == ends else mention[0], sentence
    )
    sentence = words.OUT_OF.sub(
        lambda mention: (mention[1] or " ") if int(mention[2]) == rubric.scale.max else mention[0],
        words.shorten_blanks(sentence),
    )
    sentence = words.OUT_OF_ALONE.sub(
        lambda mention: " " if int(mention[1]) == rubric.scale.max else mention[0],
        words.shorten_blanks(sentence),
    )
    return words.shorten_blanks(sentence)


def _turned(sentence: str, rubric: Rubric) -> bool:
    """Return whether a sentence puts the best at the bottom of the scale, or the worst at its top."""
    for match in words.BEST.finditer(sentence):
        point = int(match[1]) if match[1] else 1
        at_top = not match[4].startswith(words.WORST)
        if point != (rubric.scale.max if at_top else rubric.scale.min):
            return True
    return False


def _in_a_block(before: str) -> bool:
    """Return whether a text ends inside a code fence that already holds something else."""
    parts = FENCE.split(before)
    return len(parts) % 2 == 0 and bool(parts[-1].strip(" \t\r\n["))


def _not_its_own(before: str, after: str) -> bool:
    """Return whether the words next to a verdict call it a quotation, an example or a draft."""
    before = FENCE.sub(" ", before)
    paragraphs = [
        paragraph for paragraph in re.split(r"\n\s*\n", before) if paragraph.strip(" \n`>*_#-:[]")
    ]
    sentences = LAST_SENTENCE.split(paragraphs[-1].strip("`> \n")) if paragraphs else [""]
    if words.DECLINED.search(before):
        return True
    lead, tail = words.CORRECTED.sub("", sentences[-1]), after[:NEAR]
    if any(pattern.search(lead) for pattern in (words.QUOTED, words.SUPPOSED, words.TAKEN_BACK)):
        return True
    if any(pattern.search(tail) for pattern in (words.QUOTED, words.ONLY_SUPPOSED)):
        return True
    return words.TAKEN_BACK.search(after) is not None


def objection_in_object(
    members: Mapping[str, Any], scores: Mapping[str, float], rubric: Rubric
) -> Objection | None:
    """Return what an object of the answer says against the verdict, None where nothing does."""
    name_pattern = names_in(rubric.criteria)
    for key, value in members.items():
        if key in rubric.criteria:
            against = _criterion_object(key, value, scores[key], rubric)
        else:
            against = _extra_key(key, value, scores, rubric, name_pattern)
        if against:
            return against
    if any(name in members for name in rubric.criteria):
        return None
    numbers = list(_leaves(members, DEPTH))
    texts = [text for text in members.values() if isinstance(text, str)]
    names_one = any(name_pattern.search(normalize(text)) for text in texts)
    graded = any(
        words.GRADE_KEY.search(normalize(key)) and _number(value) for key, value in members.items()
    )
    if (names_one and numbers) or graded or len(numbers) >= min(2, len(rubric.criteria)):
        return Status.TWO_VERDICTS, SECOND_OBJECT
    return None


def _criterion_object(name: str, value: object, score: float, rubric: Rubric) -> Objection | None:
    """Return what the object of one criterion says against its score."""
    if not isinstance(value, dict):
        number = _number(value)
        return None if number in (None, score) else _other_score(name, number, score)
    objections = (_criterion_key(name, key, member, score, rubric) for key, member in value.items())
    return next(filter(None, objections), None)


def _criterion_key(
    name: str, key: str, value: object, score: float, rubric: Rubric
) -> Objection | None:
    """Return what one key of a criterion's object says against its score."""
    number, folded = _number(value), normalize(key)
    if key == "explanation" and isinstance(value, str):
        return _not_on_scale(rubric) if _of_another_scale(value, rubric) else None
    if words.SCALE_KEY.search(folded):
        return _scale(value, rubric)
    differs = number != score and (number is not None or key == "score")
    if differs and words.SCORE_KEY.search(folded):
        return _other_score(name, number, score)
    if isinstance(value, dict) and any(number != score for number in _leaves(value, DEPTH)):
        return Status.TWO_VERDICTS, SECOND_OBJECT
    return None


def _of_another_scale(explanation: str, rubric: Rubric) -> bool:
    """Return whether an explanation says in so many words that the juror used another scale."""
    return any(
        words.OWN_SCALE.search(sentence)
        and words.SCALE_NAMED.search(sentence)
        and another_scale(sentence, rubric, anywhere=False)
        for sentence in words.SENTENCE.split(normalize(explanation))
    )


def _extra_key(
    key: str,
    value: object,
    scores: Mapping[str, float],
    rubric: Rubric,
    name_pattern: re.Pattern[str],
) -> Objection | None:
    """Return what a key that is not in the requested form says against the verdict."""
    folded = re.sub(r"[^\w]+|_", " ", normalize(key)).strip()
    if match := name_pattern.search(folded) or name_pattern.search(normalize(key)):
        name = rubric.criteria[(match.lastindex or 1) - 1]
        others = [number for number in _leaves(value, DEPTH) if number != scores[name]]
        return _other_score(name, others[0], scores[name]) if others else None
    if words.SCALE_KEY.search(folded):
        return _scale(value, rubric)
    if words.GRADE_KEY.search(folded) and _gives_all_again(value, scores):
        return Status.TWO_VERDICTS, SECOND_OBJECT
    if isinstance(value, str):
        return _text(normalize(value), scores, rubric)
    for inner in _objects(value, DEPTH):
        if name_pattern.search(normalize(" ".join(inner))) and (
            against := objection_in_object(inner, scores, rubric)
        ):
            return against
    return None


def _gives_all_again(value: object, scores: Mapping[str, float]) -> bool:
    """Return whether a value holds as many scores as there are criteria, but different ones."""
    numbers = list(_leaves(value, DEPTH))
    return len(numbers) == len(scores) > 1 and numbers != list(scores.values())


def _text(text: str, scores: Mapping[str, float], rubric: Rubric) -> Objection | None:
    """Return what a text under a key outside the requested form says against the verdict."""
    if why := another_scale(text, rubric, anywhere=False):
        return Status.OUT_OF_RANGE, why
    for stated in stated_scores(text, rubric):
        if stated.criterion is not None and stated.number != scores[stated.criterion]:
            return _other_score(stated.criterion, stated.number, scores[stated.criterion])
    return None


def _scale(value: object, rubric: Rubric) -> Objection | None:
    """Return why a value is not the rubric's own scale; None where it is, or has no number."""
    if isinstance(value, dict | list):
        text = " ".join(f"{number:g}" for number in _leaves(value, DEPTH))
    else:
        text = normalize(str(value))
    text = re.sub(r"(?<=\d)\s*-\s*(?=\d)", " ", text)  # a range is no negative number
    numbers = {float(digits) for digits in words.DIGITS.findall(text)}
    points = {float(point) for point in rubric.scale.points}
    if not numbers or (numbers <= points and max(numbers) == max(points)):
        return None
    return _not_on_scale(rubric)


def _not_on_scale(rubric: Rubric) -> Objection:
    """Return the objection that an answer speaks of another scale."""
    return Status.OUT_OF_RANGE, ANOTHER_SCALE.format(scale=rubric.scale)


def _other_score(name: str, number: float | None, score: float) -> Objection:
    """Return the objection that a criterion has a second score."""
    if not number:
        return Status.TWO_VERDICTS, SECOND_OBJECT
    return Status.TWO_VERDICTS, SECOND.format(name=name, number=number, scores=f"{score:g}")


def _number(value: object) -> float | None:
    """Return a JSON value as a number; a text that is a number counts, all else is None."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    if isinstance(value, str):
        value = words.IN_WORDS.get(normalize(value.strip()), value.strip().split("/")[0])
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _leaves(value: object, depth: int) -> Iterator[float]:
    """Yield the numbers in a JSON value, at most `depth` objects deep."""
    if isinstance(value, dict | list) and depth:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item, depth - 1)
    elif (number := _number(value)) is not None:
        yield number


def _objects(value: object, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the objects in a JSON value, at most `depth` deep."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list) and depth:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _objects(item, depth - 1)
