"""What the text around a juror's verdict says against it: other scores, another scale, a quotation.

The scores of a verdict stand in its object alone. Words around it are never read as scores; they can
only make the answer one that has to be asked for again. Numbers count where they stand as scores
do: beside a criterion or a word for a score, after a colon, in a row or a table, or anywhere after
the verdict. Amounts with a unit (5 mg, 3 days) do not.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise

from data.question import RubricLike as Rubric
from data.status import Status
from jury import answer_words as words
from jury.answer_words import plain
from jury.pieces import CLOSES

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
Objection = tuple[Status, str]


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that stands where a score would; no criterion where none is named beside it."""

    criterion: str | None
    number: float
    overall: bool = False


@lru_cache(maxsize=64)
def names_in(criteria: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds the names of criteria in plain text, one group a criterion."""
    each = (r"[\s_.-]*".join(map(re.escape, re.split(r"[_.\s-]+", plain(one)))) for one in criteria)
    return re.compile(r"(?<![^\W_])(?:" + "|".join(f"({one})" for one in each) + r")(?![^\W_])")


def objection(
    text: str, places: Sequence[tuple[int, int]], scores: Mapping[str, float], rubric: Rubric
) -> Objection | None:
    """Return why a verdict cannot be taken as it stands in a text; None where nothing is against it.

    `places` are where it stands, several times perhaps, equally.
    """
    start, end = places[0][0], places[-1][1]
    between = (text[one[1] : two[0]] for one, two in pairwise(places))
    before, after = plain(text[:start]), plain("\n".join([*between, text[end:]]))
    if CLOSES.search(text, end):
        return Status.INVALID_JSON, IN_REASONING
    if words.SET_APART.search(text[max(0, start - NEAR) : start]) or _in_a_block(text[:start]):
        return Status.INVALID_JSON, NOT_ITS_OWN
    if why := another_scale(before, rubric, anywhere=False) or another_scale(
        after, rubric, anywhere=True
    ):
        return Status.OUT_OF_RANGE, why
    for claim in (*claims(before, rubric), *claims(after, rubric, anywhere=True)):
        if not _agrees(claim, scores):
            return Status.TWO_VERDICTS, _said(claim, scores)
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
        said = _without_own_scale(_in_digits(sentence), rubric)
        if _turned(said, rubric):
            return TURNED_SCALE
        meant = [int(one[1]) for one in words.MEANING.finditer(said)]
        scaled = words.SCALE.search(said)
        ranged = (scaled or about) and words.RANGE.search(said)
        numbered = scaled and words.NUMBER.search(said) and re.search(r"\d", said[scaled.start() :])
        parted = words.OUT_OF.search(said) or words.OUT_OF_ALONE.search(said)
        off = any(one not in rubric.scale.points for one in meant)
        if off or ranged or numbered or (parted and (about or scaled or anywhere)):
            return ANOTHER_SCALE.format(scale=rubric.scale)
    return ""


def claims(text: str, rubric: Rubric, *, anywhere: bool = False) -> Iterator[Claim]:
    """Yield the numbers of a plain text that stand as scores do; `anywhere`, all small ones."""
    yield from (Claim(None, float(len(one[0]))) for one in words.STARS.finditer(text))
    known = names_in(rubric.criteria)
    heading: str | None = None
    for sentence, about in _with_numbers(text, rubric.criteria):
        said = _without_own_scale(_in_digits(sentence) if about else sentence, rubric)
        said = words.closer(words.MEANING.sub(" ", said))
        overall = words.OVERALL.search(said) is not None
        named = [
            (one.start(), rubric.criteria[(one.lastindex or 1) - 1]) for one in known.finditer(said)
        ]
        heading = named[-1][1] if named else heading
        under = heading if SCORE_LINE.match(said) else None
        nearest = cache(partial(_nearest, named, said=said))  # of a row, one place for all
        for place, number in _numbers(said, about=about, anywhere=anywhere):
            if _small(number, rubric) or (anywhere and about and abs(number) <= PERCENT):
                yield Claim(nearest(place) or under, number, overall)


@lru_cache(maxsize=8)
def _with_numbers(text: str, criteria: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """Return the sentences that hold a number, in digits or a word, each with whether it is on scores."""
    if not words.COULD_COUNT.search(text) and words.IN_WORDS.keys().isdisjoint(
        words.WORD.findall(text)
    ):
        return ()
    text = words.closer(words.COUNTED.sub(" ", words.LIST_SIGN.sub("", text)))
    found = []
    for one in words.SENTENCE.split(text):
        if words.COULD_COUNT.search(one) or not words.IN_WORDS.keys().isdisjoint(
            words.WORD.findall(one)
        ):
            about = words.ABOUT.search(one) or names_in(criteria).search(one)
            found.append((one, about is not None))
        elif HEADING.match(one):
            found.append((one, False))
    return tuple(found)


def _is_of_scores(text: str, at: re.Match[str]) -> bool:
    """Return whether what stands around a place is about scores."""
    near = text[max(0, at.start() - NEAR // 2) : at.end() + NEAR // 2]
    return words.ABOUT.search(near) is not None or words.SCALE.search(near) is not None


def _numbers(said: str, *, about: bool, anywhere: bool) -> Iterator[tuple[int, float]]:
    """Yield (place, number) for what stands as a score does."""
    for pattern in (words.LABELLED, words.IN_TABLE, words.ALONE):
        yield from ((one.start(1), float(one[1])) for one in pattern.finditer(said))
    for row in words.IN_ROW.finditer(said):
        yield from ((row.start(), float(one)) for one in re.findall(r"\d+", row[0]))
    for one in words.NUMBER.finditer(said) if about or anywhere else ():
        if anywhere or _stands_as_score(said, one):
            yield one.start(), float(one[0].replace(",", "."))


def _stands_as_score(said: str, number: re.Match[str]) -> bool:
    """Return whether a number follows what leads to a score, or ends what is said."""
    led = words.LEADS.search(said, max(0, number.start() - 20), number.start())
    return led is not None or words.FOLLOWS.match(said, number.end()) is not None


def _nearest(named: Sequence[tuple[int, str]], place: int, said: str) -> str | None:
    """Return the criterion a number is for: "4 for clarity", else the last before it, else the next."""
    behind = bisect_right(named, place, key=lambda one: one[0])
    after = named[behind][1] if behind < len(named) else None
    number = AMOUNT.match(said, place)
    if after and number and words.FOR.fullmatch(said, number.end(), named[behind][0]):
        return after
    ahead = bisect_left(named, place, key=lambda one: one[0])
    return named[ahead - 1][1] if ahead else after


def _small(number: float, rubric: Rubric) -> bool:
    """Return whether a number could be a score on this scale or on a common one."""
    return min(0, rubric.scale.min) <= number <= max(10, rubric.scale.max) or number == 100


def _agrees(claim: Claim, scores: Mapping[str, float]) -> bool:
    """Return whether a number says the same as the verdict."""
    given = scores.values()
    if claim.criterion is not None:
        return scores[claim.criterion] == claim.number
    if claim.overall:
        return min(given) <= claim.number <= max(given) or claim.number == sum(given)
    return set(given) == {claim.number}


def _said(claim: Claim, scores: Mapping[str, float]) -> str:
    """Return what stands against a verdict, in figures."""
    if claim.criterion is not None:
        own = f"{scores[claim.criterion]:g}"
        return SECOND.format(name=claim.criterion, number=claim.number, scores=own)
    given = ", ".join(f"{score:g}" for score in scores.values())
    return SECOND.format(name="a score of", number=claim.number, scores=given)


def _in_digits(said: str) -> str:
    """Return a sentence with the numbers that it says in words as digits."""
    said = words.WORD.sub(lambda found: words.IN_WORDS.get(found[0], found[0]), said)
    said = words.DUE.sub("2", words.ONE.sub("1", said))
    return words.MINUS.sub("-", said).replace("per 100", "percent")


def _without_own_scale(said: str, rubric: Rubric) -> str:
    """Return a sentence without its mentions of the rubric's own scale: "4/5" is 4."""
    ends = (rubric.scale.min, rubric.scale.max)
    said = words.RANGE.sub(lambda one: " " if (int(one[1]), int(one[2])) == ends else one[0], said)
    said = words.OUT_OF.sub(
        lambda one: (one[1] or " ") if int(one[2]) == rubric.scale.max else one[0],
        words.closer(said),
    )
    said = words.OUT_OF_ALONE.sub(
        lambda one: " " if int(one[1]) == rubric.scale.max else one[0], words.closer(said)
    )
    return words.closer(said)


def _turned(said: str, rubric: Rubric) -> bool:
    """Return whether the sentence puts the best at the scale's foot, or the worst at its top."""
    for one in words.BEST.finditer(said):
        point = int(one[1]) if one[1] else 1
        at_top = not one[4].startswith(words.WORST)
        if point != (rubric.scale.max if at_top else rubric.scale.min):
            return True
    return False


def _in_a_block(before: str) -> bool:
    """Return whether a text breaks off inside a fence that already holds something else."""
    parts = FENCE.split(before)
    return len(parts) % 2 == 0 and bool(parts[-1].strip(" \t\r\n["))


def _not_its_own(before: str, after: str) -> bool:
    """Return whether the words next to a verdict make it a quotation, an example or a draft."""
    before = FENCE.sub(" ", before)
    paragraphs = [one for one in re.split(r"\n\s*\n", before) if one.strip(" \n`>*_#-:[]")]
    sentences = LAST_SENTENCE.split(paragraphs[-1].strip("`> \n")) if paragraphs else [""]
    if words.DECLINED.search(before):
        return True
    lead, tail = words.CORRECTED.sub("", sentences[-1]), after[:NEAR]
    if any(one.search(lead) for one in (words.QUOTED, words.SUPPOSED, words.TAKEN_BACK)):
        return True
    return any(
        (
            words.QUOTED.search(tail),
            words.ONLY_SUPPOSED.search(tail),
            words.TAKEN_BACK.search(after),
        )
    )
