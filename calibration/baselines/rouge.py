"""ROUGE-L: how much of a reference's wording, in order, a text repeats.

The values of Google's rouge-score 0.1.2 with stemming, bit for bit; the longest common
subsequence is found on strings with one letter a stem, not in a table of Python lists.
"""

import string
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import LCSseq

from calibration.baselines.porter import stem
from data.errors import BadInput

Array = npt.NDArray[np.float64]

VARIANT = "rougeL F-measure, Porter-stemmed, values of rouge-score 0.1.2"

_KEPT = (string.ascii_lowercase + string.digits).encode()
_WORDS_ONLY = bytes(byte if byte in _KEPT else ord(" ") for byte in range(256))
_ROOM = 0x110000  # code points, and so distinct stems, that one string can hold


def rouge_l(pairs: Sequence[tuple[str, str]]) -> Array:
    """Return the ROUGE-L F-measure of each (prediction, reference).

    Parameters
    ----------
    pairs
        Texts as they are. HELM strips and drops outer braces first (`helm.as_helm_reads`); both
        are separators here and in rouge-score, so the value is HELM's all the same.

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
        one, other = spell(prediction), spell(reference)
        counts[row] = LCSseq.similarity(one, other), len(one), len(other)
    return _f_measure(*counts.T)


def _f_measure(common: Array, predicted: Array, expected: Array) -> Array:
    """Return 2PR / (P + R) in rouge-score's order of operations, 0 where nothing is common."""
    scores = np.zeros(len(common))
    some = common > 0
    precision, recall = common[some] / predicted[some], common[some] / expected[some]
    scores[some] = 2 * precision * recall / (precision + recall)
    return scores


class _Alphabet(dict[bytes, str]):
    """A letter for every word, the same letter for words of the same stem."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    @property
    def half_full(self) -> bool:
        """Whether another pair might find no letters left."""
        return len(self._letters) > _ROOM // 2

    def clear(self) -> None:
        """Forget all letters: strings spelled before and after must not be compared."""
        super().clear()
        self._letters.clear()

    def spell(self, text: str) -> str:
        """Return the text as one letter a word."""
        words = text.lower().encode("ascii", "replace").translate(_WORDS_ONLY).split()
        return "".join(map(self.__getitem__, words))

    def __missing__(self, word: bytes) -> str:
        plain = word.decode("ascii")
        key = stem(plain) if len(plain) > 3 else plain
        if key not in self._letters:
            if len(self._letters) == _ROOM:
                raise BadInput("one pair of texts has over half a million distinct words: split it")
            self._letters[key] = chr(len(self._letters))
        letter = self[word] = self._letters[key]
        return letter
