"""F1 of labels over a whole benchmark: macro and micro, for one label an answer or several."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.closed_ended.matching import normalised
from calibration.scores import Array, Flags


@dataclass(frozen=True, slots=True)
class LabelScores:
    """F1, precision and recall of labels, each in [0, 1].

    Attributes
    ----------
    macro_f1, macro_precision, macro_recall
        Mean over labels; a label without any right answer counts 0.
    micro_f1, micro_precision, micro_recall
        Of all decisions (response, label) together. With one label an answer and answers among the
        labels the three are the accuracy.
    labels : in order, `normalised` with articles
    """

    macro_f1: float
    macro_precision: float
    macro_recall: float
    micro_f1: float
    micro_precision: float
    micro_recall: float
    labels: tuple[str, ...]


def label_scores(
    keys: Sequence[Sequence[str]],
    answers: Sequence[Sequence[str]],
    labels: Sequence[str] | None = None,
) -> LabelScores:
    """Return F1 of answers by their keys, over a benchmark.

    Parameters
    ----------
    keys, answers : equally many, one sequence a response
        The labels that are right, and those given; compared `normalised` with articles. An answer
        that is no label counts for none, and so against recall alone.
    labels : sequence of str, optional
        All there are; by default those that stand in a key. A label that no key has takes
        part only where it is given here.

    Raises
    ------
    ValueError
        Without a response, or with other numbers of keys and answers.

    References
    ----------
    HELM's `classification_macro_f1` and `classification_micro_f1`, which are scikit-learn's
    `f1_score` of indicators with zero division as 0.
    """
    if not keys or len(keys) != len(answers):
        raise ValueError(f"{len(keys)} keys and {len(answers)} answers")
    of_keys = [_plain(row) for row in keys]
    known = sorted(_plain(labels) if labels else frozenset().union(*of_keys))
    truth, said = _flags(of_keys, known), _flags([_plain(row) for row in answers], known)
    right = (truth & said).sum(axis=0).astype(float)
    n_true, n_said = truth.sum(axis=0).astype(float), said.sum(axis=0).astype(float)
    return LabelScores(
        float(np.mean(_share(2 * right, n_true + n_said))),
        float(np.mean(_share(right, n_said))),
        float(np.mean(_share(right, n_true))),
        float(_share(2 * right.sum(), n_true.sum() + n_said.sum())),
        float(_share(right.sum(), n_said.sum())),
        float(_share(right.sum(), n_true.sum())),
        tuple(known),
    )


def _plain(labels: Sequence[str]) -> frozenset[str]:
    return frozenset(normalised(label, articles=True) for label in labels if label)


def _flags(rows: Sequence[frozenset[str]], labels: Sequence[str]) -> Flags:
    return np.array([[label in row for label in labels] for row in rows], dtype=bool)


def _share(part: Array | float, whole: Array | float) -> Array:
    """Return part / whole, 0 where there is no whole."""
    shares: Array = np.divide(part, np.where(np.asarray(whole) > 0, whole, 1.0))
    return shares
