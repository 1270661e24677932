"""Find and mask passages that reveal the author of a response, and nothing else.

What is sure is masked by a neutral mark and recorded, so that it can be audited and undone.
What may be a patient, a wind or a laboratory value is reported as possible and left alone.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

from medjury.services.blinding import reasoning
from medjury.services.blinding.names import (
    default_names,
    doubtful_pattern,
    doubtful_versions,
    is_measurement,
    own_pattern,
    plain_matches,
    vendors,
)
from medjury.services.blinding.surroundings import Reading, Surroundings, reading

__all__ = ["MARK", "Found", "Masked", "Why", "default_names", "find_self_naming", "mask", "unmask"]

MARK = "[author masked]"
Kind = Literal["sure", "possible"]
Span = tuple[int, int]


class Why(StrEnum):
    """Why a passage reveals an author, or may do so."""

    NAME = "name"
    OWN = "name_of_study"
    SAYS = "says_it_is_a_machine"
    INTRODUCED = "introduced"
    REASONING = "reasoning"
    TEMPLATE = "chat_format"
    USED = "used_by_someone"
    OTHER_MEANING = "other_meaning"


WHY = {
    Why.NAME: "name of a model or maker",
    Why.OWN: "name of a model of this study",
    Why.SAYS: "says that a machine wrote it",
    Why.INTRODUCED: "introduces its author",
    Why.REASONING: "reasoning before the answer",
    Why.TEMPLATE: "mark of a chat format",
    Why.USED: "a model that somebody may have used",
    Why.OTHER_MEANING: "may be a person, a place or a thing",
}


class Hit(NamedTuple):
    """A passage and why it reveals an author."""

    start: int
    end: int
    why: Why


class Named(NamedTuple):
    """A name that means nothing else, and whether somebody is said to have used it."""

    match: re.Match[str]
    used: bool


MAKER = rf"(?:{vendors()})(?!\w)"
MADE = r"(?:created|developed|made|trained|built|designed|powered|provided|released)\s+by\s+"
KIND = r"(?:(?:large|medical|clinical|helpful|virtual)\s+)*"
SMART = r"(?:AI|A\.I\.|artificial[- ]intelligence)"
THING = r"(?:language\s+model|model|assistant|chatbot|system|program)"
MACHINE = (
    rf"(?:(?:(?:a|an|the|your)\s+)?{KIND}"
    rf"(?:{SMART}(?:[- ](?:based|powered))?\s+{KIND}{THING}|language\s+model|LLM|chatbot)"
    rf"|an\s+{SMART}(?=\W*$|\s*[,.;:!?]|\s+(?:and|that|so|with|not|developed|created|trained|made|I)\b))"
)
WHOLE = rf"(?P<it>{MACHINE}(?:,?\s+{MADE}{MAKER})?)"
_DESCRIPTIONS = (
    # "As an AI language model developed by ..., I cannot"
    rf"\bas\s+{WHOLE}(?=\s*,|\s+(?:I|my|developed|trained|created)\b)",
    rf"\b(?:I\s+am|I['\u2019]m)\s+(?:just\s+|only\s+|actually\s+)?{WHOLE}(?!\w)",
    rf"\bI\s+(?:was|am|have\s+been)\s+(?:\w+\s+)?{MADE}(?P<it>{MAKER})",
    rf"\b(?:language\s+model|AI\s+{THING}|chatbot|LLM),?\s+(?:\w+\s+)?{MADE}(?P<it>{MAKER})",
)
_IN_OTHER_LANGUAGES = (  # German, French, Spanish and Portuguese, Chinese; without accents
    r"\bals\s+(?P<it>(?:eine?\s+)?(?:KI(?:-\w+)?|(?:grosses\s+)?Sprachmodell))(?=\s*,|\s+(?:kann|habe|bin|darf)\b)",
    r"\ben\s+tant\s+qu(?:e\s+|['\u2019])(?P<it>(?:un\s+|grand\s+)*(?:modele\s+de\s+langage|IA\b|assistant\s+IA\b))",
    r"\bcomo\s+(?P<it>(?:uma?\s+|un\s+|gran(?:de)?\s+)*(?:modelo\s+de\s+(?:lenguaje|linguagem)|IA\b))",
    r"(?:\u4f5c\u4e3a|\u6211\u662f)(?P<it>[^\u3002,\s]{0,12}?"
    r"(?:\u8bed\u8a00\u6a21\u578b|\u4eba\u5de5\u667a\u80fd|AI\u52a9\u624b|\u5927\u6a21\u578b))",
)
_OF_MACHINES = re.compile(
    r"\bmy\s+(?:knowledge\s+cut-?\s?off|training\s+(?:data|cut-?\s?off)|last\s+knowledge\s+update)\b",
    re.IGNORECASE,
)
DESCRIPTIONS = [
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (*_DESCRIPTIONS, *_IN_OTHER_LANGUAGES)
]


@dataclass(frozen=True, slots=True)
class Found:
    """A passage, in characters of the text, that reveals its author or may do so."""

    start: int
    end: int
    text: str
    kind: Kind
    why: Why = Why.NAME


@dataclass(frozen=True, slots=True)
class Masked:
    """A masked text, and what the marks replaced, at places in the original."""

    text: str
    changes: tuple[Found, ...] = ()


def find_self_naming(text: str, names: Sequence[str] = ()) -> list[Found]:
    """Find passages that reveal an author, in the order of the text, without overlaps.

    Parameters
    ----------
    text
        A response, verbatim.
    names
        The study's models, families and makers. Ids with a number (`gpt-4o`) are sure in any
        spelling of their separators; plain words (`nova`) are possible, and sure only where
        the text introduces itself by them. Long names of several parts (`house-mistral-x`) are
        sure however these are joined.

    Returns
    -------
    list[Found]
        `sure`: a model's or maker's name that means nothing else, an author's introduction,
        "as an AI language model", a block of reasoning, a mark of a chat format. `possible`: a
        name that people or things bear too, or one that the text says someone else used.
        Laboratory GPT is neither. Signs that are not drawn hide nothing.
    """
    searched = _Searched(reading(text), tuple(sorted(set(names))))
    sure = _merged(searched.sure())
    doubtful = [hit for hit in _merged(searched.doubtful()) if _free(hit, sure)]
    names_found = [
        Found(hit.start, hit.end, text[hit.start : hit.end], "sure", hit.why) for hit in sure
    ]
    names_found += [
        Found(hit.start, hit.end, text[hit.start : hit.end], "possible", hit.why)
        for hit in doubtful
    ]
    return sorted(names_found, key=lambda hit: hit.start)


def mask(text: str, names: Sequence[str] = ()) -> Masked:
    """Put a mark in the place of all that is sure; every other character stays as it is.

    A mark can make what stands beside it sure, so the masked text is searched until nothing is.
    """
    sorted_names = tuple(sorted(set(names)))
    hits: list[Hit] = []
    while True:
        shown = _with_marks(text, hits)
        sure = _merged(_Searched(reading(shown), sorted_names).sure())
        places = _Places(hits)
        more = [Hit(*places.original((hit.start, hit.end)), hit.why) for hit in sure]
        if (merged := _merged([*hits, *more])) == hits:
            break
        hits = merged
    changes = (
        Found(hit.start, hit.end, text[hit.start : hit.end], "sure", hit.why) for hit in hits
    )
    return Masked(shown, tuple(changes))


def unmask(masked: Masked) -> str:
    """Return the original text."""
    parts, at, shift = [], 0, 0
    for change in masked.changes:
        parts += [masked.text[at : change.start + shift], change.text]
        at = change.start + shift + len(MARK)
        shift += len(MARK) - len(change.text)
    return "".join([*parts, masked.text[at:]])


def _with_marks(text: str, hits: Sequence[Hit]) -> str:
    parts, at = [], 0
    for hit in hits:
        parts += [text[at : hit.start], MARK]
        at = hit.end
    return "".join([*parts, text[at:]])


class _Places:
    """Where the characters of a masked text stood before, found by halving."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self._hits = hits
        longer = accumulate(len(MARK) - (hit.end - hit.start) for hit in hits)
        self._shifts = [0, *longer]
        self._marks = [hit.start + shift for hit, shift in zip(hits, self._shifts, strict=False)]

    def original(self, span: Span) -> Span:
        """Return where a stretch of the masked text stood; all of a mark that it touches."""
        return self._before_masking(span[0])[0], self._before_masking(span[1] - 1)[1]

    def _before_masking(self, at: int) -> Span:
        """Return the stretch that a character of the masked text stood for."""
        last = bisect_right(self._marks, at) - 1
        if last >= 0 and at < self._marks[last] + len(MARK):
            return self._hits[last].start, self._hits[last].end
        stood = at - self._shifts[last + 1]
        return stood, stood + 1


def _free(span: Hit, taken: Sequence[Hit]) -> bool:
    """Whether a span overlaps none of those in order."""
    index = bisect_right(taken, span.start, key=lambda hit: hit.end)
    return index == len(taken) or span.end <= taken[index].start


def _merged(hits: Sequence[Hit]) -> list[Hit]:
    """Return stretches in order, overlapping ones as one of the first's sort."""
    merged: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        if merged and hit.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(hit.end, merged[-1].end))
        elif hit.end > hit.start:
            merged.append(hit)
    return merged


class _Searched:
    """One reading of a text and what was found in it; shared by several rules."""

    def __init__(self, reading: Reading, names: tuple[str, ...]) -> None:
        self._reading, self._text, self._names = reading, reading.text, names
        self._around = Surroundings(reading.text)

    def sure(self) -> list[Hit]:
        """Return passages that clearly reveal an author, at places in the original."""
        return [self._in_original(hit) for hit in self._sure()]

    def doubtful(self) -> list[Hit]:
        """Return passages that may reveal an author, at places in the original."""
        return [self._in_original(hit) for hit in self._doubtful()]

    def _in_original(self, hit: Hit) -> Hit:
        return Hit(*self._reading.span(hit.start, hit.end), hit.why)

    def _sure(self) -> Iterator[Hit]:
        text, around, names = self._text, self._around, self._names
        yield from (Hit(*span, Why.REASONING) for span in self._blocks[0])
        yield from (Hit(*span, Why.TEMPLATE) for span in reasoning.formats(text))
        yield from (Hit(*span, Why.SAYS) for span in self_descriptions(around))
        yield from (Hit(*span, Why.OWN) for span in own_names(around, names))
        yield from (Hit(*span, Why.NAME) for span in plain_names(around, self._versions))
        yield from (Hit(*span, Why.INTRODUCED) for span in introductions(around, names))

    def _doubtful(self) -> Iterator[Hit]:
        text = self._text
        yield from doubtful_names(self._around, self._versions, self._names)
        yield from (Hit(*span, Why.REASONING) for span in self._blocks[1])
        yield from (Hit(*match.span(), Why.SAYS) for match in _OF_MACHINES.finditer(text))

    @cached_property
    def _blocks(self) -> tuple[list[Span], list[Span]]:
        return reasoning.blocks(self._text)

    @cached_property
    def _versions(self) -> list[Named]:
        """Return the names that mean nothing else, less those that are measurements."""
        matches = plain_matches(self._text, self._names)
        return [
            Named(match, self._around.someone_used(match.start()))
            for match in matches
            if not is_measurement(self._around, *match.span())
        ]


def self_descriptions(around: Surroundings) -> Iterator[Span]:
    """Find passages in which a model says what it is or who made it."""
    for pattern in DESCRIPTIONS:
        for match in pattern.finditer(around.text):
            if not around.someone_used(match.start("it")):
                yield match.span("it")


def plain_names(around: Surroundings, names: Sequence[Named]) -> Iterator[Span]:
    """Find names that mean nothing else, but for those that someone else is said to use."""
    for match, used in names:
        if not used and not _is_word_and_number(around.text, match):
            yield match.span()


def own_names(around: Surroundings, names: tuple[str, ...]) -> Iterator[Span]:
    """Find a study's own compound names, however their parts are joined."""
    pattern = own_pattern(names)
    for match in pattern.finditer(around.text) if pattern else ():
        if not is_measurement(around, *match.span()):
            yield match.span()


_WORD_AND_NUMBER = re.compile(
    r"gpt(?:[\s\u00a0./]|\s?-\s|\s-\s?)\d(?:\.\d)?|(?:claude|gemini|gemma)[\s\u00a0]\d",
    re.IGNORECASE,
)
_EPIC = re.compile(r"\bepic\W$", re.IGNORECASE)


def _is_word_and_number(text: str, match: re.Match[str]) -> bool:
    """Whether the match may be a measured value, such as GPT 4 U/L, a Claude with a number, or an app.

    Epic Haiku is an app in which clinicians read their notes.
    """
    before = text[max(0, match.start() - 6) : match.start()]
    return bool(_WORD_AND_NUMBER.fullmatch(match.group()) or _EPIC.search(before))


_WEAK = re.compile(
    r"my\s+name\s+is|call\s+me|this\s+is|(?:written|prepared|drafted)\s+by", re.IGNORECASE
)
_FIRST_PERSON = re.compile(
    r"\s*,\s*(?:I\b|I['\u2019]|my\b|an?\s+(?:AI|large|language))", re.IGNORECASE
)
_SPEAKER = re.compile(
    r"^\W*(?:patient|pt|doctor|dr|nurse|clinician|guest|mother|father|family)\w*\W*[\]:]",
    re.IGNORECASE,
)
_SURNAME = re.compile(
    r"[ \u00a0](?!AI\b|Cloud|Code|Assistant|Model|Opus|Sonnet|Haiku|Pro\b|Flash|I\b)[A-Z]\w"
)


def introductions(around: Surroundings, names: tuple[str, ...]) -> Iterator[Span]:
    """Find doubtful names by which a text introduces its author."""
    for match in doubtful_pattern(names).finditer(around.text):
        by = around.introduced(match.start())
        if by and _introduces_author(around, match, by):
            yield match.span()


THINGS = {"bard", "copilot", "gemini", "grok", "haiku", "llama", "mistral", "opus", "perplexity"}
THINGS |= {"sonnet", "tongyi"}  # no one's name


def _introduces_author(around: Surroundings, match: re.Match[str], by: str) -> bool:
    """Whether what is introduced by words such as "I am" or "as" is the author of the text."""
    start, end = match.span()
    ends = around.ends(end)
    if _SURNAME.match(around.text, end, ends) or _SPEAKER.match(around.before(start)):
        return False
    first_person = _FIRST_PERSON.match(around.text, end, ends) is not None
    if around.of_machines(start, end) or by.casefold() == "as":
        return by.casefold() != "as" or first_person
    thing = match.group().casefold() in THINGS
    return (thing or not _WEAK.fullmatch(by)) and not around.of_humans(start, end)


_TITLE = re.compile(
    r"\b(?:mr|mrs|ms|miss|dr|prof|mme|monsieur|sir|st|jean|marie|pierre|magnum)\.?[ -]$",
    re.IGNORECASE,
)
_THING = re.compile(
    r"['\u2019]?s?[ -]?(?:bernard\b|syndrome\b|disease\b|valve|regurg|stenosis|prolapse|annul|insufficiency|wind|antibod|nanobod|derived"
    r"|single|vhh|serum|wool|robot|surgical|stent|trial|laser|zodiac|sign\b|constellation)",
    re.IGNORECASE,
)


def doubtful_names(
    around: Surroundings, plain: Sequence[Named], names: tuple[str, ...]
) -> Iterator[Hit]:
    """Find names that may reveal an author, except those that clearly mean something else."""
    text = around.text
    for match, used in plain:
        yield Hit(*match.span(), Why.USED if used else Why.OTHER_MEANING)
    for match in doubtful_versions().finditer(text):
        if not is_measurement(around, *match.span()):
            used = around.someone_used(match.start())
            yield Hit(*match.span(), Why.USED if used else Why.OTHER_MEANING)
    for match in doubtful_pattern(names).finditer(text):
        before, after = text[max(0, match.start() - 12) : match.start()], _near(text, match.end())
        if not (_TITLE.search(before) or _THING.match(after) or _SURNAME.match(after)):
            yield Hit(*match.span(), Why.OTHER_MEANING)


def _near(text: str, start: int) -> str:
    return text[start : start + 30]
