"""Porter's stemmer in the dialect that rouge-score uses, which is NLTK's.

Porter (1980), "An algorithm for suffix stripping", Program 14(3), 130-137, with the departures
NLTK makes by default, each marked "NLTK:" below. Every stem equals NLTK's; importing NLTK
itself would cost more than a second and 200 MB.
"""

from functools import lru_cache

Rules = dict[str, list[tuple[str, str]]]

# NLTK: forms the rules would merge wrongly or leave apart.
_IRREGULAR = {
    "sky": "sky",
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "news": "news",
    "innings": "inning",
    "inning": "inning",
    "outings": "outing",
    "outing": "outing",
    "cannings": "canning",
    "canning": "canning",
    "howe": "howe",
    "proceed": "proceed",
    "exceed": "exceed",
    "succeed": "succeed",
}

_LETTERS = str.maketrans(
    {code: "v" if chr(code) in "aeiou" else "y" if chr(code) == "y" else "c" for code in range(128)}
)


def _by_ending(rules: str) -> Rules:
    """Return rules "suffix>replacement" under the two letters they end in, longest suffix first."""
    table: Rules = {}
    for suffix, _, replacement in sorted(
        (rule.partition(">") for rule in rules.split()), key=_longest
    ):
        table.setdefault(suffix[-2:], []).append((suffix, replacement))
    return table


def _longest(rule: tuple[str, str, str]) -> int:
    """Return the sort key that puts a longer suffix before a shorter one it ends with."""
    return -len(rule[0])


# NLTK: "bli" stands for the paper's "abli", and "fulli" is new.
_STEP_2 = _by_ending(
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous"
    " ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al"
    " iviti>ive biliti>ble fulli>ful"
)
_STEP_3 = _by_ending("icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
_STEP_4 = _by_ending(
    "al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ion> ou> ism> ate> iti> ous> ive>"
    " ize>"
)


@lru_cache(maxsize=1 << 18)
def stem(word: str) -> str:
    """Return the stem of a lower-case word of ASCII letters and digits.

    Words of one or two letters are their own stem (NLTK's rule, and Porter's own programs').
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _y_to_i(_past_and_ing(_plural(word)))
    word = _derivation(word)
    word = _replace_first(word, _STEP_3, least=1)
    return _single_l(_final_e(_residue(word)))


def _shape(word: str) -> str:
    """Return the word as consonants "c" and vowels "v"; the shape of a prefix is a prefix of it.

    A "y" is a vowel after a consonant and a consonant elsewhere.
    """
    shape = word.translate(_LETTERS)
    if "y" not in shape:
        return shape
    letters: list[str] = []
    for letter in shape:
        after_consonant = bool(letters) and letters[-1] == "c"
        letters.append(("v" if after_consonant else "c") if letter == "y" else letter)
    return "".join(letters)


def _measure(word: str) -> int:
    """Return Porter's m: how often a vowel run is followed by a consonant run."""
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    """Return Porter's condition *o: consonant, vowel, consonant other than w, x, y at the end.

    NLTK: a whole word of vowel and consonant counts as well.
    """
    shape = _shape(word)
    return (shape[-3:] == "cvc" and word[-1] not in "wxy") or shape == "vc"


def _plural(word: str) -> str:
    """Step 1a: take off a plural s. NLTK: dies -> die, though flies -> fli."""
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_and_ing(word: str) -> str:
    """Step 1b: take off -ed and -ing. NLTK: died -> die, though tried -> tri."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = 2 if word.endswith("ed") else 3 if word.endswith("ing") else 0
    if ending and "v" in _shape(word[:-ending]):
        return _repaired(word[:-ending])
    return word


def _repaired(word: str) -> str:
    """Give back what -ed or -ing took: conflat -> conflate, hopp -> hop, fil -> file."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    shape = _shape(word)
    if len(word) >= 2 and word[-1] == word[-2] and shape[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if shape.count("vc") == 1 and _ends_short(word) else word


def _y_to_i(word: str) -> str:
    """Step 1c. NLTK: only after a consonant that is not the first letter: happi, spi, but enjoy."""
    if word.endswith("y") and len(word) > 2 and _shape(word)[-2] == "c":
        return word[:-1] + "i"
    return word


def _derivation(word: str) -> str:
    """Step 2: shorten double suffixes. NLTK: -alli goes first, then the step runs again."""
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _derivation(word[:-2])
    if word.endswith("logi"):  # NLTK: the l counts with the stem, so that "geologi" is shortened
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replace_first(word, _STEP_2, least=1)


def _replace_first(word: str, rules: Rules, *, least: int) -> str:
    """Apply the rule of the longest suffix the word has, if the rest measures at least so much."""
    for suffix, replacement in rules.get(word[-2:], ()):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + replacement if _measure(rest) >= least else word
    return word


def _residue(word: str) -> str:
    """Step 4: drop a suffix from a long word; -ion only after s or t."""
    if word.endswith("ion") and word[-4:-3] not in ("s", "t"):
        return word
    return _replace_first(word, _STEP_4, least=2)


def _final_e(word: str) -> str:
    """Step 5a: drop a last e where the rest is long enough."""
    if not word.endswith("e"):
        return word
    measure = _measure(word[:-1])
    return word[:-1] if measure > 1 or (measure == 1 and not _ends_short(word[:-1])) else word


def _single_l(word: str) -> str:
    """Step 5b: controll -> control."""
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
