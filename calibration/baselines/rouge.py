"""ROUGE-L: how much of a reference's wording a text repeats in the same order.

Words and stems are those of Google's rouge-score; rapidfuzz finds their longest common subsequence.
"""

from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import LCSseq

Array = npt.NDArray[np.float64]


def rouge_l(pairs: Sequence[tuple[str, str]]) -> Array:
    """Return the ROUGE-L F-measure of each (prediction, reference).

    Parameters
    ----------
    pairs
        Texts as they are. HELM first removes outer white space and braces; both are separators
        here and in rouge-score, so the value is the same as HELM's.

    Returns
    -------
    shape (n,)
        2PR / (P + R), with P and R the length of the longest common subsequence of stems over
        the number of words in the prediction and in the reference; 0 to 1. Words are runs of
        a-z and 0-9 after lower-casing; those of more than three letters are stemmed. Exactly 0
        when a text has no word or no stem is shared.

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
    from nltk.stem.porter import PorterStemmer  # seconds to import, so only where it is used
    from rouge_score.tokenize import tokenize

    stemmer = SimpleNamespace(stem=lru_cache(maxsize=1 << 18)(PorterStemmer().stem))
    stems = lru_cache(maxsize=4096)(lambda text: tokenize(text, stemmer))
    scores = np.zeros(len(pairs))
    for row, texts in enumerate(pairs):
        predicted, expected = map(stems, texts)
        if common := LCSseq.similarity(predicted, expected):
            precision, recall = common / len(predicted), common / len(expected)
            scores[row] = 2 * precision * recall / (precision + recall)
    return scores
