"""A text as the search for authors reads it: signs that are not drawn left out, and the sentence around a passage."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

UNSEEN = {"Cf", "Mn", "Me", "Cc"}  # format signs, accents over the letter before, controls
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")  # of ASCII, those that are no white space
BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # drawn as nothing, though Unicode calls them letters


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as it is searched: `places` holds where each of its characters stood."""

    text: str
    places: Sequence[int]
    original: str

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a stretch stood, with the unseen signs after its last letter."""
        if start == end:
            return self.places[start], self.places[start]
        last = self.places[end - 1] + 1
        while last < len(self.original) and is_unseen(self.original[last]):
            last += 1
        return self.places[start], last


@lru_cache(maxsize=4096)
def is_unseen(sign: str) -> bool:
    """Tell whether a character is not drawn by itself; white space is."""
    return (unicodedata.category(sign) in UNSEEN and not sign.isspace()) or sign in BLANK


def reading(text: str) -> Reading:
    """Return a text without the signs that are not drawn."""
    if text.isascii() and not _CONTROL.search(text):
        return Reading(text, range(len(text) + 1), text)
    places = [index for index, sign in enumerate(text) if not is_unseen(sign)]
    return Reading("".join(text[at] for at in places), [*places, len(text)], text)


BEFORE = AFTER = 200  # characters of a sentence that are looked at
AROUND = 60  # characters on both sides of a number that may be a laboratory's
MOST_BETWEEN = 4  # words between the word of use and what was used
_BREAK = re.compile(r"[.!?]\s|\n")
_END = re.compile(r"[.!?](?:\s|$)|\n")
_STOP = re.compile(r"[.!?\n]")
_FEW_WORDS = re.compile(rf"(?:\W++\w++){{0,{MOST_BETWEEN}}}+\W*+")

PEOPLE = re.compile(
    r"\b(?:patients?|pts?|he|she|they|mother|father|wife|husband|partner|daughter|son|family|parents?"
    r"|mom|mum|dad|caregiver|friend|you)\b",
    re.IGNORECASE,
)
USED = re.compile(
    r"\b(?:ask(?:ed|ing|s)?|us(?:ed|es|ing|e)|consult(?:ed|ing|s)?|read|search(?:ed|ing)|googled"
    r"|look(?:ed|ing)|tried|talk(?:ed|ing|s)|chat(?:ted|ting|s)|spoke|typed|queried|told|according)\b",
    re.IGNORECASE,
)
MACHINE = re.compile(
    r"\b(?:AI|artificial intelligence|language model|LLM|chatbot"
    r"|(?<!physician )(?<!medical )(?<!nursing )assistant)\b"
)
HUMAN = re.compile(
    r"\b(?:year[- ]old|patients?|mother|father|wife|husband|daughter|son|nurse|doctor|dr|physician|pain|here for"
    r"|appointment|calling|zodiac|horoscope|star sign|my sign|leo|virgo|taurus|libra|aries|scorpio)\b",
    re.IGNORECASE,
)
LIVER = re.compile(
    r"\b(?:s?got|s?ast|s?alt|[gy\u03b3]?-?ggt|ldh|alp|bilirubin|albumin|transaminase\w*|liver|hepat\w+"
    r"|enzymes?|lfts?|u/l|iu)\b",
    re.IGNORECASE,
)
_INTRODUCING = re.compile(
    r"(?:\bI\s+am|\bI['\u2019]m|\bmy\s+name\s+is|\bcall\s+me|\bthis\s+is|\b(?:response|answer|summary|note)"
    r"\s+(?:by|from)|\b(?:generated|written|drafted|produced|prepared|answered|summari[sz]ed)\s+"
    r"(?:by|with|using)|\bas)(?!\w)",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"\W*(?:model|assistant|author|llm|generator|generated\s+by)\s*:\W{1,3}$", re.IGNORECASE
)
NEAR = 3  # signs at most between an introduction and a name
LONGEST = (
    24  # characters: more than any of these has, but for what is said of the liver in one word
)


class Places:
    """Where a pattern of whole words, none longer than LONGEST unless it goes on to a word's end, stands."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._text, self._pattern = text, pattern
        self._at_end = re.compile(f"(?:{pattern.pattern})\\Z", pattern.flags)
        spans = [match.span() for match in pattern.finditer(text)]
        self.starts = [start for start, _ in spans]
        self.ends = [end for _, end in spans]

    def within(self, start: int, end: int) -> bool:
        """Return what `pattern.search(text[start:end])` would: whether it stands in a stretch.

        Where the stretch cuts a word in two, its part counts as the word that it reads as.
        """
        first = bisect_left(self.starts, start)
        if first < len(self.starts) and (begins := self.starts[first]) < end:
            match = self.ends[first] <= end or self._pattern.match(self._text, begins, end)
        else:
            match = None
        return bool(match) or self._behind_cut(start, end) or self._before_cut(start, end)

    def _behind_cut(self, start: int, end: int) -> bool:
        """Return whether what a cut leaves of a word, or of one of two parts, is one."""
        if not 0 < start < end or not _joins(self._text[start - 1]):
            return False
        stretch = self._text[start:end]
        return any(self._pattern.match(stretch, at) for at in (0, 1))

    def _before_cut(self, start: int, end: int) -> bool:
        cut = 0 < end < len(self._text) and _joins(self._text[end - 1]) and _joins(self._text[end])
        return cut and self._at_end.search(self._text, max(start, end - LONGEST), end) is not None


class Surroundings:
    """The sentences of a text, and who and what is told of in them."""

    def __init__(self, text: str) -> None:
        self.text = text

    def begins(self, at: int) -> int:
        """Return where the sentence begins that goes up to a place; at most BEFORE characters back."""
        earliest = max(0, at - BEFORE)
        last = bisect_right(self._breaks, at) - 1
        if last < 0:
            return earliest
        broken = self._breaks[last]
        needed = broken - (1 if self.text[broken - 1] == "\n" else 2)
        return broken if needed >= earliest else earliest

    def ends(self, at: int) -> int:
        """Return where the sentence ends that goes on from a place; at most AFTER characters on."""
        match = _END.search(self.text, at, at + AFTER)
        return match.start() if match else min(len(self.text), at + AFTER)

    def before(self, at: int) -> str:
        """Return the sentence up to a place."""
        return self.text[self.begins(at) : at]

    def someone_used(self, at: int) -> bool:
        """Return whether somebody is said to use what stands at a place: "her son asked ChatGPT".

        The word of use is one of the last five words of the sentence before the place, and who
        did it stands before that word.
        """
        used = self._used
        last = bisect_right(used.ends, at) - 1
        if last < 0 or used.starts[last] < (begins := self.begins(at)):
            return False
        for position in range(last, max(-1, last - MOST_BETWEEN - 1), -1):
            start = used.starts[position]
            if start < begins or not _FEW_WORDS.fullmatch(self.text, used.ends[position], at):
                return False
            if self._people_before(begins, start):
                return True
        return False

    def _people_before(self, begins: int, at: int) -> bool:
        """Return whether somebody is named between a sentence's beginning and a place."""
        stop = bisect_left(self._stops, at) - 1
        after = max(begins, self._stops[stop] + 1) if stop >= 0 else begins
        return self._people.within(after, at)

    def introduced(self, at: int) -> str:
        """Return the words that introduce what stands at a place: "I am", "as", a colon; or nothing."""
        heads = self._introductions
        last = bisect_left(heads.ends, at) - 1
        if last >= 0 and heads.ends[last] >= at - NEAR:
            start, end = heads.starts[last], heads.ends[last]
            if start >= self.begins(at) and not any(
                map(_joins, self.text[end:at].replace("-", " "))
            ):
                return self.text[start:end]
        labelled = ":" in self.text[max(0, at - NEAR - 1) : at]
        return ":" if labelled and _LABEL.match(self.before(at)) else ""

    def of_the_liver(self, start: int, end: int) -> bool:
        """Return whether laboratory values of the liver stand around a stretch."""
        return self._liver.within(max(0, start - AROUND), min(len(self.text), end + AROUND))

    def of_machines(self, start: int, end: int) -> bool:
        """Return whether the sentence around a stretch, less the stretch, tells of machines."""
        return self._around(self._machines, start, end)

    def of_humans(self, start: int, end: int) -> bool:
        """Return whether the sentence around a stretch, less the stretch, tells of people."""
        return self._around(self._humans, start, end)

    def _around(self, places: Places, start: int, end: int) -> bool:
        return places.within(self.begins(start), start) or places.within(end, self.ends(end))

    @cached_property
    def _breaks(self) -> list[int]:
        return [match.end() for match in _BREAK.finditer(self.text)]

    @cached_property
    def _stops(self) -> list[int]:
        return [match.start() for match in _STOP.finditer(self.text)]

    @cached_property
    def _introductions(self) -> Places:
        return Places(self.text, _INTRODUCING)

    @cached_property
    def _people(self) -> Places:
        return Places(self.text, PEOPLE)

    @cached_property
    def _used(self) -> Places:
        return Places(self.text, USED)

    @cached_property
    def _machines(self) -> Places:
        return Places(self.text, MACHINE)

    @cached_property
    def _humans(self) -> Places:
        return Places(self.text, HUMAN)

    @cached_property
    def _liver(self) -> Places:
        return Places(self.text, LIVER)


def _joins(sign: str) -> bool:
    """Return whether a character is part of a word, or may join two."""
    return sign.isalnum() or sign in "_-"
