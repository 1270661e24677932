"""The ledger: no jury that was held against the clinicians is forgotten, and none counts twice."""

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.composites import JURY, scope_of, scores
from kit.study_place import only_reading
from sqlalchemy import Engine, event, text

from calibration.columns import PanelColumns
from calibration.differences import compared, difference_rows
from calibration.tables.juries import different, ever_tried
from data.errors import NoStudy, Unknown
from data.importers.rows import JurorRecord
from data.schema import now
from data.study.calls import add_jurors
from data.study.ledger import (
    EVALUATED,
    Evaluation,
    comparisons_besides,
    compositions_tried,
    fingerprint,
    record_evaluations,
)
from data.study.settings import lock
from data.study.verify import acts, verify

MARK = "f" * 64
BASE = Evaluation(("j0", "j1", "j2"), "b", "paper", MARK, 56, 0.47, compared=("metric:m",))


@pytest.fixture
def ledger(engine: Engine) -> Engine:
    """Make a study with three real jurors and a simulated one."""
    names = ("j0", "j1", "j2", "j3", "sim")
    add_jurors(engine, [JurorRecord(one, {}, simulated=one == "sim") for one in names])
    return engine


def other(**changes: Any) -> Evaluation:
    return replace(BASE, **changes)


def test_a_jury_is_kept_with_all_that_was_found(ledger: Engine) -> None:
    before = now()
    record_evaluations(ledger, [BASE])
    (entry,) = compositions_tried(ledger)
    assert (entry.key, entry.jurors, entry.needed) == (BASE.key, ["j0", "j1", "j2"], 3)
    assert (entry.benchmark, entry.criterion, entry.instances) == ("b", "", "")
    assert (entry.method, entry.fingerprint, entry.compared) == ("paper", MARK, ["metric:m"])
    assert (entry.icc, entry.n_responses, entry.times) == (0.47, 56, 1)
    assert before <= entry.first_at <= entry.last_at <= before + timedelta(minutes=1)
    assert not entry.simulated


def test_the_same_jury_again_counts_once_with_its_newest_figures(ledger: Engine) -> None:
    record_evaluations(ledger, [BASE])
    first = compositions_tried(ledger)[0]
    turned = other(jurors=("j2", "j0", "j1"), icc=0.5, n_responses=60, fingerprint="e" * 64)
    record_evaluations(ledger, [replace(turned, compared=("juror:j0",))])
    (entry,) = compositions_tried(ledger)
    assert (entry.times, entry.icc, entry.n_responses) == (2, 0.5, 60)
    assert entry.fingerprint == "e" * 64
    assert entry.compared == ["juror:j0", "metric:m"]
    assert entry.first_at == first.first_at < entry.last_at


@pytest.mark.parametrize(
    "changes",
    [
        {"jurors": ("j0", "j1")},
        {"jurors": ("j0", "j1", "j3")},
        {"benchmark": "combined"},
        {"criterion": "accuracy"},
        {"method": "published"},
        {"needed": 2},
        {"instances": "sound references"},
    ],
)
def test_another_jury_criterion_method_scope_or_rule_is_another_entry(
    ledger: Engine, changes: dict[str, Any]
) -> None:
    record_evaluations(ledger, [BASE, other(**changes)])
    assert [one.times for one in compositions_tried(ledger)] == [1, 1]


@pytest.mark.parametrize("changes", [{"needed": 3}, {"icc": 0.1}, {"fingerprint": "a" * 64}])
def test_what_was_found_makes_no_other_entry(ledger: Engine, changes: dict[str, Any]) -> None:
    record_evaluations(ledger, [BASE, other(**changes)])
    assert [one.times for one in compositions_tried(ledger)] == [2]


def test_a_jury_with_a_simulated_juror_is_marked_whatever_the_caller_says(ledger: Engine) -> None:
    record_evaluations(ledger, [other(jurors=("j0", "sim"))])
    assert compositions_tried(ledger)[0].simulated


def test_each_evaluation_leaves_one_event_with_all_its_juries(ledger: Engine) -> None:
    record_evaluations(ledger, [BASE, other(benchmark="combined")])
    record_evaluations(ledger, [BASE])
    record_evaluations(ledger, [])
    events = acts(ledger, EVALUATED)
    assert [len(one.detail["juries"]) for one in events] == [2, 1]
    told = events[1].detail["juries"][0]
    assert (told["jurors"], told["icc"], told["fingerprint"]) == (["j0", "j1", "j2"], 0.47, MARK)
    assert verify(ledger).findings == ()


def test_a_locked_study_may_be_looked_at_again_and_that_is_counted(ledger: Engine) -> None:
    record_evaluations(ledger, [BASE])
    head = lock(ledger, "coordinator")
    record_evaluations(ledger, [BASE])
    assert compositions_tried(ledger)[0].times == 2
    assert verify(ledger, head).findings == ()


def test_a_name_that_is_no_jurors_is_refused_and_nothing_is_kept(ledger: Engine) -> None:
    with pytest.raises(Unknown, match="no juror nobody in this study: it has j0"):
        record_evaluations(ledger, [BASE, other(jurors=("j0", "nobody"))])
    assert compositions_tried(ledger) == []
    assert acts(ledger, EVALUATED) == []


def test_a_study_that_cannot_be_written_to_says_so(ledger: Engine) -> None:
    record_evaluations(ledger, [BASE])
    ledger.dispose()
    event.listen(ledger, "connect", only_reading)
    with pytest.raises(NoStudy, match=r"readonly|read-only"):
        record_evaluations(ledger, [BASE])
    assert compositions_tried(ledger)[0].times == 1


def test_evaluations_at_the_same_time_are_all_counted(ledger: Engine, url: str) -> None:
    script = (
        "from data.database import open_study; from data.study.ledger import *;"
        f"engine = open_study({url!r}); one = Evaluation(('j0',), 'b', 'paper', 'f', 5);"
        "[record_evaluations(engine, [one]) for _ in range(5)]"
    )
    running = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert [one.times for one in compositions_tried(ledger)] == [15]
    assert verify(ledger).findings == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM composition", "gone since event"),
        ("UPDATE composition SET times = 1", "changed since event"),
        ("UPDATE composition SET icc = 0.9", "changed since event"),
        ("UPDATE composition SET simulated = true", "changed since event"),
        ("UPDATE composition SET key = 'x'", "no event vouches for it"),
    ],
)
def test_an_entry_changed_behind_the_records_back_is_found(
    ledger: Engine, change: str, said: str
) -> None:
    record_evaluations(ledger, [BASE])
    record_evaluations(ledger, [BASE])
    assert verify(ledger).findings == ()
    with ledger.execution_options(writes=True).begin() as connection:
        connection.execute(text(change))
    assert said in " ".join(verify(ledger).findings)


def counted(engine: Engine, here: Evaluation, *, simulated: bool = False) -> int:
    return comparisons_besides(compositions_tried(engine), here, simulated=simulated)


def test_what_was_tried_before_counts_and_what_is_tried_now_does_not(ledger: Engine) -> None:
    assert counted(ledger, BASE) == 0
    record_evaluations(ledger, [BASE])
    assert counted(ledger, BASE) == 0
    record_evaluations(ledger, [other(jurors=("j0",), compared=("metric:m", "metric:n"))])
    record_evaluations(ledger, [other(jurors=("j1",), compared=())])
    assert counted(ledger, BASE) == 2 + 1
    record_evaluations(ledger, [other(compared=("juror:j0",))])
    assert counted(ledger, BASE) == 2 + 1 + 1


@pytest.mark.parametrize(
    "changed",
    [
        {"benchmark": "visits"},
        {"criterion": "accuracy"},
        {"needed": 1},
        {"method": "published"},
        {"instances": "sound references"},
    ],
)
def test_the_same_scorers_count_once_on_whatever_part_and_in_whatever_way(
    ledger: Engine, changed: dict[str, Any]
) -> None:
    record_evaluations(ledger, [BASE, other(**changed)])
    assert counted(ledger, BASE) == 0
    assert counted(ledger, other(**changed)) == 0


def test_two_juries_compared_count_once_whichever_came_first(ledger: Engine) -> None:
    record_evaluations(ledger, [other(jurors=("j0", "j1"), compared=("jury:j2, j1",))])
    assert counted(ledger, other(jurors=("j1", "j2"), compared=("jury:j1, j0",))) == 0
    assert counted(ledger, other(jurors=("j1", "j2"), compared=("jury:j0",))) == 1


def test_rehearsals_with_simulated_jurors_count_only_among_themselves(ledger: Engine) -> None:
    rehearsal = other(jurors=("sim",), compared=("metric:m", "juror:j0"))
    record_evaluations(ledger, [BASE, rehearsal])
    assert counted(ledger, BASE) == 0
    assert counted(ledger, rehearsal, simulated=True) == 1


def evaluate(engine: Engine, jury: PanelColumns, **asked: Any) -> Sequence[Any]:
    """Do as `calibrate` does: evaluate, remember, then compare with all that was tried."""
    scope = scope_of(scores(), jury=jury, reps=99, **asked)
    names = tuple(name for name, _ in compared(scope))
    one = Evaluation(jury.members, scope.name, scope.options.method, MARK, 60, compared=names)
    record_evaluations(engine, [one])
    return difference_rows(scope, tried=comparisons_besides(compositions_tried(engine), one))


def test_recalculating_a_jury_counts_once_in_n_tried_but_times_goes_up(ledger: Engine) -> None:
    rows, again = (evaluate(ledger, JURY) for _ in range(2))
    assert rows == again
    assert rows[0].n_tried == 4
    assert [one.times for one in compositions_tried(ledger)] == [2]


def test_a_further_jury_leaves_p_as_it_is_and_adds_its_comparisons(ledger: Engine) -> None:
    first = evaluate(ledger, JURY)[0]
    evaluate(ledger, PanelColumns(("j0", "j3"), 2))
    evaluate(ledger, JURY, method="published")
    later = evaluate(ledger, JURY)[0]
    assert later.n_tried == 4 + 3
    assert later.p == first.p


def test_a_fingerprint_knows_the_ratings_and_not_their_order() -> None:
    table = pd.DataFrame(
        {
            "response_id": ["r1", "r2", "r2"],
            "benchmark": "b",
            "rater": "dr",
            "criterion": ["x", "x", "y"],
            "pass_": 0,
            "replicate": 0,
            "score": [3.0, 4.0, 1 / 3],
        }
    )
    mark = fingerprint(table)
    assert len(mark) == 64
    assert fingerprint(table.sample(frac=1, random_state=1).assign(more="x")) == mark
    assert fingerprint(table.assign(score=[3.0, 4.0, 0.3333])) != mark
    assert fingerprint(table.iloc[:2]) != mark


NAMES = st.sampled_from(["r1", "r 2", 'a "b"', "c,d", "é\u2028", "line\nbreak", "", "Z", "a"])


@given(
    st.lists(
        st.tuples(NAMES, NAMES, st.integers(0, 2), st.floats(allow_infinity=False)),
        max_size=30,
        unique_by=lambda row: row[:3],
    ),
    st.booleans(),
)
def test_a_fingerprint_is_that_of_the_sorted_ratings_as_csv(
    rows: list[tuple[str, str, int, float]], as_codes: bool
) -> None:
    table = pd.DataFrame(rows, columns=["response_id", "rater", "replicate", "score"])
    table = table.assign(benchmark="b", criterion="x", pass_=0)
    if as_codes:
        table = table.astype({"response_id": "category", "rater": "category"})
    head = ["response_id", "benchmark", "rater", "criterion", "pass_", "replicate", "score"]
    text = (
        table[head]
        .sort_values(head[:-1], ignore_index=True)
        .to_csv(index=False, float_format="%.17g", lineterminator="\n")
    )
    assert fingerprint(table) == hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Entry:
    """One look at one jury."""

    jurors: tuple[str, ...]
    simulated: bool = False


def test_a_jury_is_its_jurors_whatever_the_order_and_the_way():
    entries = [Entry(("a", "b")), Entry(("b", "a")), Entry(("a",))]
    assert different(entries) == 2
    assert ever_tried(entries) == (
        "of real jurors, 2 different juries in 3 ways "
        "(benchmark, criterion, method, responses, jurors needed)"
    )
