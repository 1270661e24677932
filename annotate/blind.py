"""Finding and masking what betrays the author of a response, and nothing else.

What is sure is masked by a neutral mark and recorded, so that it can be audited and undone.
What may be a patient, a wind or a laboratory value is reported as possible and left alone.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, chain
from typing import Literal, NamedTuple

from annotate import reasoning
from annotate.authors import (
    default_names,
    doubtful_pattern,
    doubtful_versions,
    is_measurement,
    own_pattern,
    plain_matches,
    vendors,
    well_known_words,
)
from annotate.spelling import readings, undisguised

__all__ = ["MARK", "Found", "Masked", "Why", "default_names", "find_self_naming", "mask", "unmask"]

MARK = "[author masked]"
Kind = Literal["sure", "possible"]
Span = tuple[int, int]


class Why(StrEnum):
    """What a place that betrays an author, or may do so, is."""

    NAME = "name"
    OWN = "name_of_study"
    SAYS = "says_it_is_a_machine"
    INTRODUCED = "introduced"
    REASONING = "reasoning"
    TEMPLATE = "chat_format"
    USED = "used_by_someone"
    OTHER_MEANING = "other_meaning"
    DISGUISED = "disguised"


class Hit(NamedTuple):
    """A stretch and what it is."""

    start: int
    end: int
    why: Why


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
    """A place of a text, in characters, that betrays its author or may do so."""

    start: int
    end: int
    text: str
    kind: Kind
    why: Why = Why.NAME


@dataclass(frozen=True, slots=True)
class Masked:
    """A text with marks in it, and what they replaced, at its places in the original."""

    text: str
    changes: tuple[Found, ...] = ()


def find_self_naming(text: str, names: Sequence[str] = ()) -> list[Found]:
    """Find what betrays an author, in the order of the text, without overlaps.

    Parameters
    ----------
    text
        A response, verbatim.
    names
        The study's models, families and makers. Ids with a number (`gpt-4o`) are sure in any
        spelling of their separators; plain words (`nova`) are possible, and sure only where
        the text introduces itself by them. Long names of several parts (`house-mistral-x`) are
        sure with anything between their letters, and look-alike letters count as Latin ones.

    Returns
    -------
    list[Found]
        `sure`: a model's or maker's name that means nothing else, an author's introduction,
        "as an AI language model", a block of reasoning, a mark of a chat format. `possible`: a
        name that people or things bear too, or one that the text says someone else used.
        Laboratory GPT is neither. Signs that are not drawn and letters set apart hide nothing.
    """
    known = tuple(sorted(set(names)))
    sure: list[Hit] = []
    doubtful: list[Hit] = []
    for read in readings(text):
        sure += [Hit(*read.span(*one[:2]), one.why) for one in _sure(read.text, known)]
        doubtful += [Hit(*read.span(*one[:2]), one.why) for one in _doubtful(read.text, known)]
    sure = _merged(sure)
    doubtful = [one for one in _merged(doubtful) if _free(one, sure)]
    found = [Found(one.start, one.end, text[one.start : one.end], "sure", one.why) for one in sure]
    found += [
        Found(one.start, one.end, text[one.start : one.end], "possible", one.why)
        for one in doubtful
    ]
    return sorted(found, key=lambda one: one.start)


def mask(text: str, names: Sequence[str] = ()) -> Masked:
    """Put a mark in the place of all that is sure; every other character stays as it is.

    A mark can make what stands beside it sure, so the masked text is searched until nothing is.
    """
    hits: list[Hit] = []
    while True:
        shown = _with_marks(text, hits)
        sure = [one for one in find_self_naming(shown, names) if one.kind == "sure"]
        place = _Places(hits)
        more = [Hit(*place.original((one.start, one.end)), one.why) for one in sure]
        if (merged := _merged([*hits, *more])) == hits:
            break
        hits = merged
    changes = (
        Found(one.start, one.end, text[one.start : one.end], "sure", one.why) for one in hits
    )
    return Masked(shown, tuple(changes))


def unmask(masked: Masked) -> str:
    """Return the original text."""
    parts, at, shift = [], 0, 0
    for one in masked.changes:
        parts += [masked.text[at : one.start + shift], one.text]
        at = one.start + shift + len(MARK)
        shift += len(MARK) - len(one.text)
    return "".join([*parts, masked.text[at:]])


def _with_marks(text: str, hits: Sequence[Hit]) -> str:
    parts, at = [], 0
    for one in hits:
        parts += [text[at : one.start], MARK]
        at = one.end
    return "".join([*parts, text[at:]])


class _Places:
    """Where the characters of a masked text stood before, found by halving."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self._hits = hits
        longer = accumulate(len(MARK) - (one.end - one.start) for one in hits)
        self._shifts = [0, *longer]
        self._marks = [one.start + shift for one, shift in zip(hits, self._shifts, strict=False)]

    def original(self, span: Span) -> Span:
        """Return where a stretch of the masked text stood; all of a mark that it touches."""
        return self._before_masking(span[0])[0], self._before_masking(span[1] - 1)[1]

    def _before_masking(self, place: int) -> Span:
        """Return the stretch that a character of the masked text stood for."""
        last = bisect_right(self._marks, place) - 1
        if last >= 0 and place < self._marks[last] + len(MARK):
            return self._hits[last].start, self._hits[last].end
        stood = place - self._shifts[last + 1]
        return stood, stood + 1


def _free(span: Hit, taken: Sequence[Hit]) -> bool:
    """Whether a span overlaps none of those in order."""
    place = bisect_right(taken, span.start, key=lambda one: one.end)
    return place == len(taken) or span.end <= taken[place].start


def _merged(hits: Sequence[Hit]) -> list[Hit]:
    """Return stretches in order, overlapping ones as one of the first's sort."""
    merged: list[Hit] = []
    for one in sorted(hits, key=lambda one: (one.start, -one.end)):
        if merged and one.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(one.end, merged[-1].end))
        elif one.end > one.start:
            merged.append(one)
    return merged


def _sure(text: str, names: tuple[str, ...]) -> Iterator[Hit]:
    """Find what surely betrays an author in a text as it is read."""
    yield from (Hit(*span, Why.REASONING) for span in reasoning.blocks(text)[0])
    yield from (Hit(*span, Why.TEMPLATE) for span in reasoning.formats(text))
    yield from (Hit(*span, Why.SAYS) for span in self_descriptions(text))
    yield from (Hit(*span, Why.OWN) for span in own_names(text, names))
    yield from (Hit(*span, Why.NAME) for span in plain_names(text, names))
    yield from (Hit(*span, Why.INTRODUCED) for span in introductions(text, names))


def _doubtful(text: str, names: tuple[str, ...]) -> Iterator[Hit]:
    """Find what may betray an author in a text as it is read."""
    yield from doubtful_names(text, names)
    yield from (Hit(*span, Why.REASONING) for span in reasoning.blocks(text)[1])
    yield from (Hit(*match.span(), Why.SAYS) for match in _OF_MACHINES.finditer(text))
    yield from (Hit(*span, Why.DISGUISED) for span in undisguised(text, well_known_words()))


def self_descriptions(text: str) -> Iterator[Span]:
    """Find machines that say what they are, and who made them."""
    for pattern in DESCRIPTIONS:
        for match in pattern.finditer(text):
            if not _THIRD_PARTY.search(_before(text, match.start("it"))):
                yield match.span("it")


PEOPLE = (
    r"\b(?:patients?|pts?|he|she|they|mother|father|wife|husband|partner|daughter|son|family|parents?"
    r"|mom|mum|dad|caregiver|friend|you)\b"
)
USED = (
    r"\b(?:ask(?:ed|ing|s)?|us(?:ed|es|ing|e)|consult(?:ed|ing|s)?|read|search(?:ed|ing)|googled"
    r"|look(?:ed|ing)|tried|talk(?:ed|ing|s)|chat(?:ted|ting|s)|spoke|typed|queried|told|according)\b"
)
_THIRD_PARTY = re.compile(rf"{PEOPLE}[^.!?\n]*{USED}(?:\W+\w+){{0,4}}\W*$", re.IGNORECASE)


def plain_names(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find names that mean nothing else, but for those that someone else is said to use."""
    for match in plain_matches(text, names):
        if _is_name(text, match) and not _THIRD_PARTY.search(_before(text, match.start())):
            yield match.span()


def own_names(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find a study's own compound names, with anything or nothing between their letters."""
    pattern = own_pattern(names)
    for match in pattern.finditer(text) if pattern else ():
        if not is_measurement(text, *match.span()):
            yield match.span()


_WORD_AND_NUMBER = re.compile(
    r"gpt(?:[\s\u00a0./]|\s?-\s|\s-\s?)\d(?:\.\d)?|(?:claude|gemini|gemma)[\s\u00a0]\d",
    re.IGNORECASE,
)
_EPIC = re.compile(r"\bepic\W$", re.IGNORECASE)


def _is_name(text: str, match: re.Match[str]) -> bool:
    """Whether the match is no measured value, such as GPT 4 U/L, and no Claude with a number.

    Epic Haiku is an app in which clinicians read their notes.
    """
    alone = _WORD_AND_NUMBER.fullmatch(match.group()) or _EPIC.search(
        text[max(0, match.start() - 6) : match.start()]
    )
    return not alone and not is_measurement(text, *match.span())


INTRODUCING = (
    r"(?:\bI\s+am|\bI['\u2019]m|\bmy\s+name\s+is|\bcall\s+me|\bthis\s+is|\b(?:response|answer|summary|note)"
    r"\s+(?:by|from)|\b(?:generated|written|drafted|produced|prepared|answered|summari[sz]ed)\s+"
    r"(?:by|with|using)|^\W*(?:model|assistant|author|llm|generator|generated\s+by)\s*:|\bas)\W{1,3}$"
)
_INTRODUCING = re.compile(INTRODUCING, re.IGNORECASE | re.MULTILINE)
_WEAK = re.compile(
    r"(?:my\s+name\s+is|call\s+me|this\s+is|(?:written|prepared|drafted)\s+by)\W*$", re.IGNORECASE
)
_AS = re.compile(r"\bas\W*$", re.IGNORECASE)
_FIRST_PERSON = re.compile(
    r"\s*,\s*(?:I\b|I['\u2019]|my\b|an?\s+(?:AI|large|language))", re.IGNORECASE
)
_MACHINE = re.compile(
    r"\b(?:AI|artificial intelligence|language model|LLM|chatbot"
    r"|(?<!physician )(?<!medical )(?<!nursing )assistant)\b"
)
_HUMAN = re.compile(
    r"\b(?:year[- ]old|patients?|mother|father|wife|husband|daughter|son|nurse|doctor|dr|physician|pain|here for"
    r"|appointment|calling|zodiac|horoscope|star sign|my sign|leo|virgo|taurus|libra|aries|scorpio)\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"^\W*(?:patient|pt|doctor|dr|nurse|clinician|guest|mother|father|family)\w*\W*[\]:]",
    re.IGNORECASE,
)
_SURNAME = re.compile(
    r"[ \u00a0](?!AI\b|Cloud|Code|Assistant|Model|Opus|Sonnet|Haiku|Pro\b|Flash|I\b)[A-Z]\w"
)


def introductions(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find doubtful names by which a text introduces its author."""
    for match in doubtful_pattern(names).finditer(text):
        before, after = _before(text, match.start()), _after(text, match.end())
        thing = match.group().casefold() in THINGS
        if _INTRODUCING.search(before) and _introduces_author(before, after, thing):
            yield match.span()


THINGS = {"bard", "copilot", "gemini", "grok", "haiku", "llama", "mistral", "opus", "perplexity"}
THINGS |= {"sonnet", "tongyi"}  # no one's name


def _introduces_author(before: str, after: str, thing: bool) -> bool:
    sentence = before + " " + after
    if _SURNAME.match(after) or _SPEAKER.search(before):
        return False
    if _MACHINE.search(sentence):
        return not _AS.search(before) or _FIRST_PERSON.match(after) is not None
    if _AS.search(before):
        return _FIRST_PERSON.match(after) is not None
    return (thing or not _WEAK.search(before)) and not _HUMAN.search(sentence)


_TITLE = re.compile(
    r"\b(?:mr|mrs|ms|miss|dr|prof|mme|monsieur|sir|st|jean|marie|pierre|magnum)\.?[ -]$",
    re.IGNORECASE,
)
_THING = re.compile(
    r"['\u2019]?s?[ -]?(?:bernard\b|syndrome\b|disease\b|valve|regurg|stenosis|prolapse|annul|insufficiency|wind|antibod|nanobod|derived"
    r"|single|vhh|serum|wool|robot|surgical|stent|trial|laser|zodiac|sign\b|constellation)",
    re.IGNORECASE,
)


def doubtful_names(text: str, names: tuple[str, ...]) -> Iterator[Hit]:
    """Find names that may betray an author, less those that plainly are something else."""
    for match in chain(plain_matches(text, names), doubtful_versions().finditer(text)):
        if not is_measurement(text, *match.span()):
            other = _is_other(text, match)
            yield Hit(*match.span(), Why.OTHER_MEANING if other else Why.USED)
    for match in doubtful_pattern(names).finditer(text):
        before, after = text[max(0, match.start() - 12) : match.start()], _near(text, match.end())
        if not (_TITLE.search(before) or _THING.match(after) or _SURNAME.match(after)):
            yield Hit(*match.span(), Why.OTHER_MEANING)


def _is_other(text: str, match: re.Match[str]) -> bool:
    """Whether a name with a version may be a thing, and is not told of somebody's use of it."""
    return not _THIRD_PARTY.search(_before(text, match.start()))


def _near(text: str, place: int) -> str:
    return text[place : place + 30]


def _before(text: str, place: int) -> str:
    """Return the sentence up to a place."""
    return re.split(r"[.!?]\s|\n", text[max(0, place - 200) : place])[-1]


def _after(text: str, place: int) -> str:
    """Return the sentence from a place on."""
    return re.split(r"[.!?](?:\s|$)|\n", text[place : place + 200])[0]
