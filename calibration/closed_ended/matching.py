"""Whether an answer is the one asked for: exact match and its looser forms, and word overlap.

All are between 0 and 1 and equal to HELM's figures of the same names. What they do not do: they know
no synonyms, and a longer answer that contains the right one is wrong except by prefix.
"""

import re
import string
from collections.abc import Callable, Mapping, Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
NUMBER = re.compile(r"-?[\d,]+(?:.\d+)?")

Match = Callable[[str, str], float]


def normalised(text: str, *, articles: bool = False) -> str:
    """Return a text in lower case without ASCII punctuation, articles and extra space.

    Parameters
    ----------
    text : str
    articles : bool
        Whether "a", "an" and "the" stay.

    References
    ----------
    Choi et al. (2018), QuAC, whose evaluation HELM takes over. Punctuation goes before
    articles, so that "the-" loses its article; other than ASCII punctuation stays.
    """
    plain = text.lower().translate(PUNCTUATION)
    return " ".join((plain if articles else ARTICLES.sub(" ", plain)).split())


def exact_match(key: str, answer: str) -> float:
    """Return 1 where the answer is the key but for space at the ends, else 0; an empty one is 0."""
    return float(bool(answer) and key.strip() == answer.strip())


def quasi_exact_match(key: str, answer: str) -> float:
    """Return 1 where both are the same once `normalised`, else 0; an empty answer is 0."""
    return float(bool(answer) and normalised(key) == normalised(answer))


def quasi_exact_match_with_articles(key: str, answer: str) -> float:
    """Return `quasi_exact_match` with articles kept, for classes such as "A" that are articles."""
    same = normalised(key, articles=True) == normalised(answer, articles=True)
    return float(bool(answer) and same)


def prefix_exact_match(key: str, answer: str) -> float:
    """Return 1 where the answer begins with the key, else 0; an empty answer is 0.

    For models that go on talking after the answer. An empty key is a prefix of everything.
    """
    return float(bool(answer) and answer.strip().startswith(key.strip()))


def quasi_prefix_exact_match(key: str, answer: str) -> float:
    """Return `prefix_exact_match` of both texts `normalised`."""
    return float(bool(answer) and normalised(answer).startswith(normalised(key)))


def word_f1(key: str, answer: str) -> float:
    """Return the harmonic mean of precision and recall over the different words of both.

    Returns
    -------
    float
        In [0, 1]: 2 n_shared / (n_key + n_answer) of the sets of words, `normalised`. 0 where
        one of them has no word, even where both have none.

    References
    ----------
    Rajpurkar et al. (2016); over sets of words, as nltk's `f_measure` in HELM.
    """
    of_key, of_answer = set(normalised(key).split()), set(normalised(answer).split())
    shared = len(of_key & of_answer)
    if not shared:
        return 0.0
    precision, recall = shared / len(of_answer), shared / len(of_key)
    return 1.0 / (0.5 / precision + 0.5 / recall)  # as there, to the last digit


def final_number_match(key: str, answer: str) -> float:
    """Return 1 where the last number of the key is the last of the answer, written alike.

    Commas are left out; "1.0" is not "1". 0 where the answer has no number.
    """
    return exact_match(_final_number(key), _final_number(answer))


def _final_number(text: str) -> str:
    numbers = NUMBER.findall(text)
    return str(numbers[-1]).replace(",", "") if numbers else ""


def best_match(match: Match, keys: Sequence[str], answer: str) -> float:
    """Return the best match of an answer with any of the keys that count as right.

    Raises
    ------
    ValueError
        Without a key.
    """
    return max(match(key, answer.strip()) for key in keys)


def chosen_option(options: Mapping[str, str], answer: str, pattern: str = "") -> str | None:
    """Return the text of the option that an answer names by its letter; None where it names none.

    Parameters
    ----------
    options : mapping of letters to the options' texts
    answer : str
        The letter alone, with space around it at most: "B" is one, "B." and "b" are not.
    pattern : str
        A regular expression that finds the letter in a longer answer: its first group, or
        all that it matches; the first place where it does.

    References
    ----------
    HELM's `output_mapping` and `output_mapping_pattern`.
    """
    letter = answer.strip()
    if pattern:
        found = re.search(pattern, letter)
        letter = "" if found is None else str(found.group(1) if found.groups() else found.group())
    return options.get(letter)


MATCHES: Mapping[str, Match] = {
    "exact-match": exact_match,
    "quasi-exact-match": quasi_exact_match,
    "prefix-exact-match": prefix_exact_match,
    "quasi-prefix-exact-match": quasi_prefix_exact_match,
    "word-f1": word_f1,
    "final-number-match": final_number_match,
}
