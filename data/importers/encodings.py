"""The encoding of a text, by evidence: what a hospital's file was saved in is nowhere written.

A text that is not UTF-8 is taken for Windows-1252 only if its words are such as Western languages
have; that a file can be decoded so shows nothing, since nearly all bytes can. Stored texts are never
changed, so that what is in doubt is refused, with two words of it, until somebody says which it is.
"""

import codecs
import re
from collections.abc import Sequence

from data.errors import BadFile
from data.importers.source import CHUNK, Source, bom_of

LONGEST = 200  # characters of a word that are looked at
# UTF-8 that was read as Windows-1252 or Latin-1, and saved so.
GARBLED = re.compile(
    "[\u00c3\u00c5][\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2122]"
    "|\u00e2(\u20ac|\u0080)|\u00c2[\u00a0-\u00bf]"
)
LETTER = "[^\\W\\d_]"
ODD = (  # what no word of a Western language has
    re.compile("[^\\W\\d_\x00-\x7f]{3}"),  # three letters beyond ASCII in a row
    re.compile(f"{LETTER}[^\\w\\s\x00-\x7f\u2019\u2018\u00b7\u2013\u2014\u2026\u00ad]{LETTER}"),
    re.compile(
        f"{LETTER}[\u00b9\u00b2\u00b3\u00aa\u00ba]{LETTER}|[\u00bc-\u00be]{LETTER}"
    ),  # digits, halves
    re.compile(
        "[a-z\u00df-\u00ff][\u00c0-\u00de\u0160\u017d\u0178]"
    ),  # a capital after a small letter
    re.compile(
        "[\u0160\u0161\u017d\u017e\u00f0\u00de\u00fe\u00fd\u00dd]"
    ),  # of the Baltic, Czech, Turkish
    re.compile("[\u00f5\u00fb].*[\u00f6\u00fc]|[\u00f6\u00fc].*[\u00f5\u00fb]"),  # Hungarian
)
SHOWN, SHORT = 2, 40  # words in a message, and characters of one
HOW = "save it as UTF-8, or name its encoding with --encoding (such as cp1250, cp1251 or mac_roman)"
DOUBTS = {  # an encoding that fits -> what is in doubt of its words, and what to do
    "utf-8": (
        "its text looks garbled: it was read in a wrong encoding and saved so",
        "export it anew, or give --encoding utf-8 if it is meant so",
    ),
    "cp1252": ("it is not UTF-8, and cannot be told to be Windows-1252", HOW),
}


def encoding_of(source: Source) -> str:
    """Return the encoding: as it is named, by its mark, else UTF-8, else Windows-1252.

    Raises
    ------
    BadFile
        If it may be another, if two are mixed, or if the text was garbled before it was saved.
    """
    if source.encoding:
        return _named(source)
    if marked := bom_of(source.start()[:4]):
        return marked
    for name in ("utf-8", "cp1252"):
        try:
            found = _doubtful(source, name, (*ODD, GARBLED) if name == "cp1252" else (GARBLED,))
        except UnicodeDecodeError:
            continue
        if not found:
            return name
        words = " and ".join(map(repr, found))
        why, to_do = DOUBTS[name]
        raise BadFile(
            f"{source.path}: {why} (it would read {words}); {to_do}; nothing was imported"
        )
    raise BadFile(f"{source.path}: neither UTF-8, UTF-16 nor Windows-1252; {HOW}")


def _named(source: Source) -> str:
    try:
        name = codecs.lookup(source.encoding).name
        _doubtful(source, name, ())
    except LookupError as error:
        raise BadFile(f"--encoding {source.encoding}: no encoding that is known here") from error
    except UnicodeDecodeError as error:
        why = f"is not in {source.encoding}"
        raise BadFile(f"{source.path}: {why}; nothing was imported") from error
    return name


def _doubtful(source: Source, name: str, odd: Sequence[re.Pattern[str]]) -> list[str]:
    """Decode a whole file, piece by piece; return two of its words that are odd, if some are.

    Raises
    ------
    UnicodeDecodeError
        If it is not in that encoding.
    """
    decoder, found = codecs.getincrementaldecoder(name)(), set[str]()
    with source.open() as file:
        while piece := file.read(CHUNK):
            text = decoder.decode(piece)
            if text.isascii() or len(found) >= SHOWN:
                continue
            words = {word[:LONGEST] for word in text.split() if not word.isascii()}
            found |= {word[:SHORT] for word in words if any(one.search(word) for one in odd)}
        decoder.decode(b"", final=True)
    return sorted(found)[:SHOWN]
