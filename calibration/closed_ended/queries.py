"""EHRSQL: whether a query answers a question, and whether it should have been answered at all."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

TAGGED = re.compile(r"<\s*sql\s*>(.*?)<\/?\s*sql\s*>", re.DOTALL | re.IGNORECASE)
FENCE_WORD = re.compile(r"^sql\n", re.MULTILINE)
Rows = Sequence[Hashable]


def query_of(answer: str) -> str:
    """Return the SQL of an answer: what stands between <sql> tags, or all of it.

    Backticks go, and the word "sql" alone on a line.
    """
    tagged = TAGGED.search(answer.strip())
    query = (tagged[1] if tagged else answer).strip().replace("`", "").strip()
    return FENCE_WORD.sub("", query)


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """One answer, and what came of running it and the query of the key.

    Attributes
    ----------
    key : the right query; "" where there is none
    can_be_answered : whether the question can be answered from the database
    answer : what the model said; "" where it declined
    rows, key_rows : what both queries give; empty where they fail
    failed : whether the model's query could not be run
    """

    key: str
    can_be_answered: bool
    answer: str
    rows: Rows
    key_rows: Rows
    failed: bool


@dataclass(frozen=True, slots=True)
class QueryMatch:
    """What one answer counts, each 0 or 1.

    Attributes
    ----------
    execution : both queries give the same set of rows, whatever their order and repeats
    valid : the query runs
    answered : the model gave a query
    answerable : the question can be answered
    """

    execution: float
    valid: float
    answered: float
    answerable: float

    @property
    def rightly_answered(self) -> float:
        """Return 1 where a question that can be answered was."""
        return self.answered * self.answerable


def query_match(given: QueryAnswer) -> QueryMatch:
    """Return what one answer counts.

    Two queries that both give no row count as different, as in HELM; where the key is a query
    without rows, only an empty answer is right.

    References
    ----------
    Lee et al. (2022), EHRSQL; HELM's `ehr_sql_execution_accuracy`, `ehr_sql_query_validity`.
    """
    key, answer = given.key.strip(), given.answer.strip()
    if not key:
        execution = False
    elif given.rows and given.key_rows:
        execution = set(given.rows) == set(given.key_rows)
    else:
        execution = not (given.rows or given.key_rows or answer)
    return QueryMatch(
        float(execution),
        float(bool(answer) and not given.failed),
        float(bool(answer)),
        float(given.can_be_answered and bool(key)),
    )


@dataclass(frozen=True, slots=True)
class Answering:
    """How well a model knows what it can answer; shares in [0, 1], NaN without a case.

    Attributes
    ----------
    execution, valid : means over all questions
    precision : of the questions it answered, the share that can be answered
    recall : of those that can be answered, the share it answered
    refusing_precision : of the questions it declined, the share that cannot be answered
    refusing_recall : of those that cannot be answered, the share it declined
    """

    execution: float
    valid: float
    precision: float
    recall: float
    refusing_precision: float
    refusing_recall: float


def answering(matches: Sequence[QueryMatch]) -> Answering:
    """Return the figures of a benchmark from those of its answers.

    HELM gives precision and recall as means over *all* questions of `rightly_answered`, which are
    equal to each other and lower; here each has its own denominator.
    """
    n = len(matches)
    answered, answerable = sum(m.answered for m in matches), sum(m.answerable for m in matches)
    rightly = sum(m.rightly_answered for m in matches)
    declined = n - answered - answerable + rightly  # rightly declined
    return Answering(
        _share(sum(m.execution for m in matches), n),
        _share(sum(m.valid for m in matches), n),
        _share(rightly, answered),
        _share(rightly, answerable),
        _share(declined, n - answered),
        _share(declined, n - answerable),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
