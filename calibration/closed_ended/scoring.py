"""The metrics by name: what each makes of an answer and its key, and what a benchmark comes to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from calibration.closed_ended.calculations import Limits, medcalc_match
from calibration.closed_ended.codes import code_match
from calibration.closed_ended.corrections import correction
from calibration.closed_ended.labels import LabelScores, label_scores
from calibration.closed_ended.matching import MATCHES, best_match, chosen_option
from calibration.closed_ended.queries import (
    Answering,
    QueryAnswer,
    QueryMatch,
    Rows,
    answering,
    query_match,
)
from data.errors import BadInput
from data.safe_text import short

LABELS, OPTION, MEDCALC, MEDEC, EHRSQL, CODES = (
    "label-f1",
    "chosen-option",
    "medcalc",
    "medec",
    "ehrsql",
    "icd-codes",
)
METRICS = (*MATCHES, LABELS, OPTION, MEDCALC, MEDEC, EHRSQL, CODES)


@dataclass(frozen=True, slots=True)
class KeyedAnswer:
    """An answer with what it is held against; `rows` and `failed` are of EHRSQL's two queries."""

    answer: str
    keys: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    pattern: str = ""
    category: str = ""
    lower: str = ""
    upper: str = ""
    can_be_answered: bool = True
    rows: Rows = ()
    key_rows: Rows = ()
    failed: bool = False

    @property
    def query(self) -> QueryMatch:
        """Return what it counts as a query."""
        return query_match(
            QueryAnswer(
                self.keys[0],
                self.can_be_answered,
                self.answer,
                self.rows,
                self.key_rows,
                self.failed,
            )
        )


@dataclass(frozen=True, slots=True)
class BenchmarkAnswers:
    """What the answers to one benchmark come to beside the means of their scores.

    Attributes
    ----------
    labels : F1 over the benchmark, of "label-f1"
    answering : precision of answering and refusing, of "ehrsql"
    """

    labels: LabelScores | None = None
    answering: Answering | None = None


def answer_scores(metric: str, given: KeyedAnswer) -> dict[str, float]:
    """Return the figures of one answer, each in [0, 1], by the name of the rater they become.

    "label-f1" has none of a single answer.

    Raises
    ------
    BadInput
        If the key lacks what the metric needs.
    """
    if metric in MATCHES:
        return {metric: best_match(MATCHES[metric], given.keys, given.answer)}
    score = SINGLE.get(metric)
    return score(given) if score else {}


def benchmark_answers(metric: str, answers: Sequence[KeyedAnswer]) -> BenchmarkAnswers:
    """Return what a benchmark's answers come to by a metric that is more than a mean."""
    if metric == LABELS:
        keys, said = [one.keys for one in answers], [[one.answer] for one in answers]
        return BenchmarkAnswers(labels=label_scores(keys, said))
    if metric == EHRSQL:
        return BenchmarkAnswers(answering=answering([one.query for one in answers]))
    return BenchmarkAnswers()


def _option(given: KeyedAnswer) -> dict[str, float]:
    if not given.options:
        raise BadInput(
            f"{OPTION}: the instance has no options; give them in --keys as columns option:A, option:B, ..."
        )
    chosen = chosen_option(given.options, given.answer, given.pattern)
    texts = {text.strip() for text in given.options.values()}
    right = {_option_text(given, key.strip(), texts) for key in given.keys}
    return {OPTION: float(chosen is not None and chosen.strip() in right)}


def _option_text(given: KeyedAnswer, key: str, texts: set[str]) -> str:
    """Return the text of the option that a key is: its text, or else its letter."""
    if key in texts:
        return key
    if key in given.options:
        return given.options[key].strip()
    raise BadInput(f"{OPTION}: the key {short(key)!r} is none of the options, nor a letter of one")


def _medcalc(given: KeyedAnswer) -> dict[str, float]:
    limits = Limits(given.keys[0], given.category, given.lower, given.upper)
    return {MEDCALC: medcalc_match(limits, given.answer)}


def _medec(given: KeyedAnswer) -> dict[str, float]:
    found = correction(given.keys[0], given.answer)
    return {
        f"{MEDEC}-flag": found.flag,
        f"{MEDEC}-sentence": found.sentence,
        f"{MEDEC}-sentence-in-helm": found.sentence_in_helm,
    }


def _ehrsql(given: KeyedAnswer) -> dict[str, float]:
    found = given.query
    return {
        f"{EHRSQL}-execution": found.execution,
        f"{EHRSQL}-valid": found.valid,
        f"{EHRSQL}-rightly-answered": found.rightly_answered,
    }


def _codes(given: KeyedAnswer) -> dict[str, float]:
    found = code_match(given.keys, given.answer)
    return {
        f"{CODES}-precision": found.precision,
        f"{CODES}-recall": found.recall,
        f"{CODES}-f1": found.f1,
    }


SINGLE: Mapping[str, Callable[[KeyedAnswer], dict[str, float]]] = {
    OPTION: _option,
    MEDCALC: _medcalc,
    MEDEC: _medec,
    EHRSQL: _ehrsql,
    CODES: _codes,
}
