"""A text as the search for authors reads it: disguised letters undone, and the sentence around a passage."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

# Letters of other alphabets that are drawn like Latin ones, and small capitals.
LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b\u0461"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u03bf\u03b1\u03b9"
    "\u1d00\u0299\u1d04\u1d05\u1d07\u0262\u029c\u026a\u1d0a\u1d0b\u029f\u1d0d\u0274\u1d0f\u1d18\u0280"
    "\u1d1b\u1d1c\u1d20\u1d21\u1d22\u0131\u0261\u028f\u2010",
    "ABEKMHOPCTXIJSaeopcyxijsdqwABEZHIKMNOPTXoaiabcdeghijklmnoprtuvwzigy-",
)
UNSEEN = {"Cf", "Mn", "Me", "Cc"}  # format signs, accents over the letter before, controls
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")  # of ASCII, those that are no white space
BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # drawn as nothing, though Unicode calls them letters
SEPARATORS = r"[-\u2010-\u2015_./*|~+'\u00b7\u2022\s]"
LETTER = r"[^\W_]"
_SET_APART = re.compile(
    rf"(?<!{LETTER}){LETTER}(?:{SEPARATORS}{{1,5}}{LETTER}){{2,}}(?!{LETTER})"
    rf"|(?P<dropped>(?<={LETTER})-[ \t]*\r?\n[ \t]*(?={LETTER})"
    rf"|(?<={LETTER})(?:</?(?:b|i|u|em|strong|span|wbr)>|&(?:#8203|#x200b|shy|zwnj|zwj);)(?={LETTER}))"
)


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


def readings(text: str) -> Iterator[Reading]:
    """Yield a text as it is read: as it stands, and with letters set apart closed up."""
    reading = _seen(text)
    yield reading
    if closed := _closed(reading):
        yield closed


def folded(text: str) -> str:
    """Return a text of the same length with look-alike letters as the Latin ones they resemble."""
    return text if text.isascii() else "".join(map(_latin, text))


@lru_cache(maxsize=4096)
def is_unseen(sign: str) -> bool:
    """Tell whether a character is not drawn by itself; white space is."""
    return (unicodedata.category(sign) in UNSEEN and not sign.isspace()) or sign in BLANK


@lru_cache(maxsize=4096)
def _latin(sign: str) -> str:
    """Return the Latin letter that a character is drawn like, or the character."""
    plain = unicodedata.normalize("NFKC", sign)
    bare = unicodedata.normalize("NFD", plain if len(plain) == 1 else sign)
    if len(bare) > 1 and bare[0].isascii() and bare[0].isalpha():
        return bare[0]
    return (plain if len(plain) == 1 else sign).translate(LOOKALIKES)


def _seen(text: str) -> Reading:
    """Return a text without what is not drawn, its letters as the Latin ones they resemble."""
    if text.isascii() and not _CONTROL.search(text):
        return Reading(text, range(len(text) + 1), text)
    places = [index for index, sign in enumerate(text) if not is_unseen(sign)]
    return Reading(folded("".join(text[at] for at in places)), [*places, len(text)], text)


def _closed(reading: Reading) -> Reading | None:
    """Return a reading in which `c l a u d e` is one word; None where no letters stand apart."""
    parts: list[str] = []
    places: list[int] = []
    at = 0
    for match in _SET_APART.finditer(reading.text):
        letters = list(_joined(match))
        parts += [reading.text[at : match.start()], *(sign for _, sign in letters)]
        places += [
            *reading.places[at : match.start()],
            *(reading.places[index] for index, _ in letters),
        ]
        at = match.end()
    if not at:
        return None
    text = "".join([*parts, reading.text[at:]])
    return Reading(text, [*places, *reading.places[at:]], reading.original)


def _joined(match: re.Match[str]) -> Iterator[tuple[int, str]]:
    """Yield the characters of a run of single letters, with their places, that are to stay.

    What stands between the first two letters goes everywhere in the run; of other separators
    what remains without it stays, so that `G P T - 4 o` becomes `GPT-4o`.
    """
    usual = ""
    if match["dropped"]:
        return
    for part in _SIGNS.finditer(match.string, *match.span()):
        word, start = part.group(), part.start()
        if part["letter"]:
            yield start, word
        elif not usual:
            usual = word
        elif word != usual:
            signs = [sign for sign in word if not sign.isspace() and sign not in usual]
            yield start, signs[0] if signs else " "


_SIGNS = re.compile(rf"(?P<letter>{LETTER})|{SEPARATORS}+")
_DISGUISES = [str.maketrans("013457@$!|", f"o{letter}eastasil") for letter in "il"]
_MIXED = re.compile(r"[A-Za-z0-9@$!|]{5,}")
_LETTERS = re.compile(r"[A-Za-z]+")
LONGEST_WORD = 16  # letters of a name
WITHIN = 2  # characters between its two parts


def undisguised(text: str, words: Collection[str]) -> Iterator[tuple[int, int]]:
    """Find words in small letters that digits stand in, as in `cl4ude`, or that are in two parts."""
    for match in _MIXED.finditer(text):
        word = match.group().lower()
        mixed = len(word) <= LONGEST_WORD and not word.isalpha()
        if mixed and any(word.translate(table) in words for table in _DISGUISES):
            yield match.span()
    yield from _in_two_parts(text, words)


def _in_two_parts(text: str, words: Collection[str]) -> Iterator[tuple[int, int]]:
    """Find words that something stands within: a blank, a line's end, a picture."""
    begun, before = 0, ""
    end = 0
    for match in _LETTERS.finditer(text):
        word = match.group().lower()
        joined = before and match.start() - end <= WITHIN and before + word in words
        if joined and text[match.end() : match.end() + 1] != "-":
            yield begun, match.end()
        begun, end, before = match.start(), match.end(), word


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
