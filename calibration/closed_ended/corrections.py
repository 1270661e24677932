"""MEDEC: whether a model finds the wrong sentence of a note, or says that there is none."""

import re
from dataclasses import dataclass

RIGHT = "CORRECT"
FIRST_NUMBER = re.compile(r"^(\d+)")


@dataclass(frozen=True, slots=True)
class Correction:
    """How an answer compares with the key; each 0 or 1.

    Attributes
    ----------
    flag : whether both say that there is an error, or both that there is none
    sentence : whether both name the same sentence, or both say that there is none
    sentence_in_helm : the same as HELM 0.5.16 has it
    """

    flag: float
    sentence: float
    sentence_in_helm: float


def correction(key: str, answer: str) -> Correction:
    """Return how an answer compares with the key.

    Parameters
    ----------
    key : str
        "CORRECT", or the number of the wrong sentence with the corrected one behind it.
    answer : str
        The same. Whatever else is said counts as a claim that there is an error, in no sentence.

    Notes
    -----
    HELM 0.5.16 reads the number only of a key that is nothing but a number, which those of
    its own scenario are not. By its figure no model ever finds a wrong sentence, and the share
    it gives is that of notes without error that were said to have none. `sentence_in_helm` is that figure,
    `sentence` reads the number.

    References
    ----------
    Ben Abacha et al. (2025), MEDEC; HELM's `medec_error_flag_accuracy` and
    `medec_error_sentence_accuracy`.
    """
    plain_key = key.replace(".", "").strip()
    has_error, given = plain_key != RIGHT, answer.strip()
    says_error = given != RIGHT
    if not (has_error and says_error):
        agreed = float(has_error == says_error)
        return Correction(agreed, agreed, agreed)
    found, named = FIRST_NUMBER.match(key.strip()), FIRST_NUMBER.match(given)
    same = found is not None and named is not None and int(found[1]) == int(named[1])
    return Correction(1.0, float(same), float(_in_helm(plain_key, named)))


def _in_helm(key: str, named: re.Match[str] | None) -> bool:
    """Return whether HELM takes both for the same sentence: a key with words is sentence -1 there."""
    try:
        sentence = int(key)
    except ValueError:
        sentence = -1
    return (int(named[1]) if named else -2) == sentence
