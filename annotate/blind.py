"""Finding and masking what betrays the author of a response, and nothing else.

What is sure is masked by a neutral mark and recorded, so that it can be audited and undone.
What may be a patient, a wind or a laboratory value is reported as possible and left alone.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from annotate.authors import (
    default_names,
    doubtful_pattern,
    folded,
    is_measurement,
    own_pattern,
    plain_pattern,
    vendors,
)

__all__ = ["MARK", "Found", "Masked", "default_names", "find_self_naming", "mask", "unmask"]

MARK = "[author masked]"
Kind = Literal["sure", "possible"]
Span = tuple[int, int]

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
DESCRIPTIONS = [re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in _DESCRIPTIONS]


@dataclass(frozen=True, slots=True)
class Found:
    """A place of a text, in characters, that betrays its author or may do so."""

    start: int
    end: int
    text: str
    kind: Kind


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
        "as an AI language model". `possible`: a name that people or things bear too, or one
        that the text says someone else used. Laboratory GPT is neither.
    """
    known, read = tuple(sorted(set(names))), folded(text)
    sure = _merged(
        [
            *self_descriptions(read),
            *own_names(read, known),
            *plain_names(read, known),
            *introductions(read, known),
        ]
    )
    doubtful = [one for one in _merged([*doubtful_names(read, known)]) if _free(one, sure)]
    found = [Found(*span, text[slice(*span)], "sure") for span in sure]
    found += [Found(*span, text[slice(*span)], "possible") for span in doubtful]
    return sorted(found, key=lambda one: one.start)


def mask(text: str, names: Sequence[str] = ()) -> Masked:
    """Put a mark in the place of all that is sure; every other character stays as it is."""
    masked = Masked(text)
    while found := [one for one in find_self_naming(masked.text, names) if one.kind == "sure"]:
        masked = _mask_more(masked, found)
    return masked


def unmask(masked: Masked) -> str:
    """Return the original text."""
    parts, at, shift = [], 0, 0
    for one in masked.changes:
        parts += [masked.text[at : one.start + shift], one.text]
        at = one.start + shift + len(MARK)
        shift += len(MARK) - len(one.text)
    return "".join([*parts, masked.text[at:]])


def _mask_more(masked: Masked, found: Sequence[Found]) -> Masked:
    """Mask what a masked text still holds; the record stays in places of the original."""
    parts, at = [], 0
    changes = list(masked.changes)
    for one in found:
        parts += [masked.text[at : one.start], MARK]
        at = one.end
        start = _original(masked, one.start)
        changes.append(Found(start, start + len(one.text), one.text, "sure"))
    text = "".join([*parts, masked.text[at:]])
    return Masked(text, tuple(sorted(changes, key=lambda one: one.start)))


def _original(masked: Masked, place: int) -> int:
    """Return where a place of a masked text stood before."""
    shift = 0
    for one in masked.changes:
        if one.start + shift >= place:
            break
        shift += len(MARK) - len(one.text)
    return place - shift


def _free(span: Span, taken: Sequence[Span]) -> bool:
    """Whether a span overlaps none of those in order."""
    place = bisect_right(taken, span[0], key=lambda one: one[1])
    return place == len(taken) or span[1] <= taken[place][0]


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Return spans in order, overlapping ones as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


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
    for match in plain_pattern(names).finditer(text):
        if _is_name(text, match) and not _THIRD_PARTY.search(_before(text, match.start())):
            yield match.span()


def own_names(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find a study's own compound names, with anything or nothing between their letters."""
    pattern = own_pattern(names)
    for match in pattern.finditer(text) if pattern else ():
        if not is_measurement(text, *match.span()):
            yield match.span()


_WORD_AND_NUMBER = re.compile(
    r"gpt[\s\u00a0./]\d(?:\.\d)?|(?:claude|gemini|gemma)[\s\u00a0]\d", re.IGNORECASE
)


def _is_name(text: str, match: re.Match[str]) -> bool:
    """Whether the match is no measured value, such as GPT 4 U/L, and no Claude with a number."""
    alone = _WORD_AND_NUMBER.fullmatch(match.group())
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
_SURNAME = re.compile(r"[ \u00a0](?!AI\b|Assistant|Model|Opus|Sonnet|Haiku|Pro\b|Flash|I\b)[A-Z]\w")


def introductions(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find doubtful names by which a text introduces its author."""
    for match in doubtful_pattern(names).finditer(text):
        before, after = _before(text, match.start()), _after(text, match.end())
        thing = match.group().casefold() in THINGS
        if _INTRODUCING.search(before) and _introduces_author(before, after, thing):
            yield match.span()


THINGS = {"bard", "copilot", "gemini", "grok", "llama", "mistral", "perplexity"}  # no one's name


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
    r"\b(?:mr|mrs|ms|miss|dr|prof|mme|monsieur|sir|st|jean|marie|pierre)\.?[ -]$", re.IGNORECASE
)
_THING = re.compile(
    r"[ -]?(?:valve|regurg|stenosis|prolapse|annul|insufficiency|wind|antibod|nanobod|derived"
    r"|single|vhh|serum|wool|robot|surgical|stent|trial|laser|zodiac|sign\b|constellation)",
    re.IGNORECASE,
)


def doubtful_names(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find names that may betray an author, less those that plainly are something else."""
    for match in plain_pattern(names).finditer(text):
        if not is_measurement(text, *match.span()):
            yield match.span()
    for match in doubtful_pattern(names).finditer(text):
        before, after = text[max(0, match.start() - 12) : match.start()], text[match.end() :][:30]
        if not (_TITLE.search(before) or _THING.match(after) or _SURNAME.match(after)):
            yield match.span()


def _before(text: str, place: int) -> str:
    """Return the sentence up to a place."""
    return re.split(r"[.!?]\s|\n", text[max(0, place - 200) : place])[-1]


def _after(text: str, place: int) -> str:
    """Return the sentence from a place on."""
    return re.split(r"[.!?](?:\s|$)|\n", text[place : place + 200])[0]
