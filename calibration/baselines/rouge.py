"""ROUGE-L: how much of a reference's wording a text repeats in the same order.

The values are those of Google's rouge-score 0.1.2 with stemming, bit for bit. The longest common
subsequence is computed on strings with one letter for each stem, not in a table of Python lists.
"""

import string
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import LCSseq

from data.errors import BadInput

Array = npt.NDArray[np.float64]


_WORD_CHARACTERS = (string.ascii_lowercase + string.digits).encode()
_WORDS_ONLY = bytes(byte if byte in _WORD_CHARACTERS else ord(" ") for byte in range(256))
_MOST_LETTERS = 0x110000  # code points, and so distinct stems, that one string can hold
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


def rouge_l(pairs: Sequence[tuple[str, str]]) -> Array:
    """Return the ROUGE-L F-measure of each (prediction, reference).

    Parameters
    ----------
    pairs
        Texts as they are. HELM first removes outer white space and braces (`as_helm_reads`); both
        are separators here and in rouge-score, so the value is the same as HELM's.

    Returns
    -------
    shape (n,)
        2PR / (P + R), with P and R the length of the longest common subsequence of stems over
        the number of words in the prediction and in the reference; 0 to 1. Words are runs of
        a-z and 0-9 after lower-casing; those of more than three letters are stemmed. Exactly 0
        when a text has no word or no stem is shared.

    Raises
    ------
    BadInput
        If one pair alone has more than half a million distinct words.

    References
    ----------
    Lin (2004), ROUGE: a package for automatic evaluation of summaries. Same values as
    ``RougeScorer(["rougeL"], use_stemmer=True)`` of rouge-score 0.1.2; its "rougeLsum", which
    splits at newlines, is another measure.

    Examples
    --------
    >>> rouge_l([("Chest pains resolved.", "The chest pain has resolved")]).round(3).tolist()
    [0.75]
    """
    alphabet = _Alphabet()
    spell = lru_cache(maxsize=4096)(alphabet.spell)
    counts = np.empty((len(pairs), 3))
    for row, (prediction, reference) in enumerate(pairs):
        if alphabet.half_full:
            alphabet.clear()
            spell.cache_clear()
        predicted, expected = spell(prediction), spell(reference)
        counts[row] = LCSseq.similarity(predicted, expected), len(predicted), len(expected)
    return _f_measure(*counts.T)


def _f_measure(common: Array, predicted: Array, expected: Array) -> Array:
    """Return 2PR / (P + R) in rouge-score's order of operations; 0 without common words."""
    scores = np.zeros(len(common))
    has_common = common > 0
    precision, recall = (
        common[has_common] / predicted[has_common],
        common[has_common] / expected[has_common],
    )
    scores[has_common] = 2 * precision * recall / (precision + recall)
    return scores


class _Alphabet(dict[bytes, str]):
    """A mapping of words to letters, with one letter for all words of the same stem."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    @property
    def half_full(self) -> bool:
        """Whether the letters that are left may be too few for another pair."""
        return len(self._letters) > _MOST_LETTERS // 2

    def clear(self) -> None:
        """Remove all letters; strings spelled before and after must not be compared."""
        super().clear()
        self._letters.clear()

    def spell(self, text: str) -> str:
        """Return the text as one letter a word."""
        words = text.lower().encode("ascii", "replace").translate(_WORDS_ONLY).split()
        return "".join(map(self.__getitem__, words))

    def __missing__(self, word: bytes) -> str:
        text = word.decode("ascii")
        key = stem(text) if len(text) > 3 else text
        if key not in self._letters:
            if len(self._letters) == _MOST_LETTERS:
                raise BadInput("one pair of texts has over half a million distinct words: split it")
            self._letters[key] = chr(len(self._letters))
        letter = self[word] = self._letters[key]
        return letter


def _rules_by_ending(rules: str) -> Rules:
    """Return rules "suffix>replacement" by the last two letters of the suffix, longest first."""
    table: Rules = {}
    for suffix, _, replacement in sorted(
        (rule.partition(">") for rule in rules.split()), key=_longest
    ):
        table.setdefault(suffix[-2:], []).append((suffix, replacement))
    return table


def _longest(rule: tuple[str, str, str]) -> int:
    """Return a sort key that puts longer suffixes first."""
    return -len(rule[0])


# NLTK: "bli" stands for the paper's "abli", and "fulli" is new.
_STEP_2 = _rules_by_ending(
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous"
    " ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al"
    " iviti>ive biliti>ble fulli>ful"
)
_STEP_3 = _rules_by_ending("icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
_STEP_4 = _rules_by_ending(
    "al> ance> ence> er> ic> able> ible> ant> ement> ment> ent> ion> ou> ism> ate> iti> ous> ive>"
    " ize>"
)


@lru_cache(maxsize=1 << 18)
def stem(word: str) -> str:
    """Return the stem of a lower-case word of ASCII letters and digits.

    Words of one or two letters are their own stem (NLTK's rule, and Porter's own programs').
    Every stem equals that of NLTK, which rouge-score uses; importing NLTK itself would cost more
    than a second and 200 MB.

    References
    ----------
    Porter (1980), "An algorithm for suffix stripping", Program 14(3), 130-137. Differences of
    NLTK's default are marked "NLTK:" in this module.
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
        return _restored_ending(word[:-ending])
    return word


def _restored_ending(word: str) -> str:
    """Restore the ending before -ed or -ing: conflat -> conflate, hopp -> hop, fil -> file."""
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
    """Apply the rule of the word's longest suffix, if the rest measures at least `least`."""
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


def as_helm_reads(prediction: str, reference: str) -> tuple[str, str]:
    """Return the texts as HELM's summarization metrics score them.

    Outer white space of the prediction is removed, then a leading and a trailing brace of each
    text. ROUGE-L is the same with and without; BERTScore counts a brace as a word.
    """
    return _without_braces(prediction.strip()), _without_braces(reference)


def _without_braces(text: str) -> str:
    """Return the text without one leading "{" and one trailing "}"."""
    return text.removeprefix("{").removesuffix("}")
