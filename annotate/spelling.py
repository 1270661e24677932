"""A text as a reader sees it: look-alike letters as Latin ones, nothing invisible, spaced words joined."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
    seen = _seen(text)
    yield seen
    if closed := _closed(seen):
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
    places = [place for place, sign in enumerate(text) if not is_unseen(sign)]
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
            *(reading.places[place] for place, _ in letters),
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
        word, place = part.group(), part.start()
        if part["letter"]:
            yield place, word
        elif not usual:
            usual = word
        elif word != usual:
            signs = [sign for sign in word if not sign.isspace() and sign not in usual]
            yield place, signs[0] if signs else " "


_SIGNS = re.compile(rf"(?P<letter>{LETTER})|{SEPARATORS}+")
_DISGUISES = [str.maketrans("013457@$!|", f"o{letter}eastasil") for letter in "il"]
_MIXED = re.compile(r"[A-Za-z0-9@$!|]{5,}")
_LETTERS = re.compile(r"[A-Za-z]+")
LONGEST = 16  # letters of a name
WITHIN = 2  # characters between its two parts


def undisguised(text: str, words: Collection[str]) -> Iterator[tuple[int, int]]:
    """Find words in small letters that digits stand in, as in `cl4ude`, or that are in two parts."""
    for match in _MIXED.finditer(text):
        word = match.group().lower()
        mixed = len(word) <= LONGEST and not word.isalpha()
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
