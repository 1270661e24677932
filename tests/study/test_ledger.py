"""The ledger: no jury held against the clinicians is forgotten or counts twice, and no frozen report is changed."""

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.composites import JURY, scope_of, scores
from kit.study_place import only_reading
from sqlalchemy import event

from calibration.columns import PanelColumns
from calibration.differences import compared, difference_rows
from calibration.tables.juries import different, ever_tried
from data.errors import MedjuryError, NoStudy, NotAllowed, Unknown
from data.importers.rows import JurorRecord
from data.person import OPERATOR, Person
from data.schema import Role, now
from data.study.calls import add_jurors
from data.study.ledger import (
    EVALUATED,
    FROZEN,
    Evaluation,
    comparisons_besides,
    compositions_tried,
    fingerprint,
    freeze,
    record_evaluations,
    report,
    report_sha256,
    reports,
    withdraw_report,
    withdrawn_reports,
)
from data.study.settings import lock
from data.study.verify import acts, verify

MARK = "f" * 64
BASE = Evaluation(("j0", "j1", "j2"), "b", "paper", MARK, 56, 0.47, compared=("metric:m",))


@pytest.fixture
def ledger(engine):
    """Make a study with three real jurors and a simulated one."""
    names = ("j0", "j1", "j2", "j3", "sim")
    add_jurors(engine, [JurorRecord(one, {}, simulated=one == "sim") for one in names])
    return engine


def other(**changes):
    return replace(BASE, **changes)


def test_a_jury_is_kept_with_all_that_was_found(ledger):
    before = now()
    record_evaluations(ledger, [BASE])
    (entry,) = compositions_tried(ledger)
    kept = {"key": BASE.key, "jurors": ["j0", "j1", "j2"], "needed": 3, "simulated": False}
    kept |= {"benchmark": "b", "criterion": "", "instances": "", "method": "paper", "icc": 0.47}
    kept |= {"fingerprint": MARK, "compared": ["metric:m"], "n_responses": 56, "times": 1}
    assert {name: getattr(entry, name) for name in kept} == kept
    assert before <= entry.first_at <= entry.last_at <= before + timedelta(minutes=1)


def test_the_same_jury_again_counts_once_with_its_newest_figures(ledger):
    record_evaluations(ledger, [BASE])
    first = compositions_tried(ledger)[0]
    turned = other(jurors=("j2", "j0", "j1"), icc=0.5, n_responses=60, fingerprint="e" * 64)
    record_evaluations(ledger, [replace(turned, compared=("juror:j0",))])
    (entry,) = compositions_tried(ledger)
    newest = entry.times, entry.icc, entry.n_responses, entry.fingerprint
    assert newest == (2, 0.5, 60, "e" * 64)
    assert entry.compared == ["juror:j0", "metric:m"]
    assert entry.first_at == first.first_at < entry.last_at


@pytest.mark.parametrize(
    ("changes", "times"),
    [
        *(({"jurors": jurors}, [1, 1]) for jurors in (("j0", "j1"), ("j0", "j1", "j3"))),
        *(({"benchmark": "combined"}, [1, 1]), ({"criterion": "accuracy"}, [1, 1])),
        *(({"method": "published"}, [1, 1]), ({"needed": 2}, [1, 1])),
        ({"instances": "sound references"}, [1, 1]),
        ({"needed": 3}, [2]),  # all three, as where no number is said
        ({"icc": 0.1, "fingerprint": "a" * 64}, [2]),  # what was found
    ],
)
def test_another_jury_criterion_method_scope_or_rule_is_another_entry(ledger, changes, times):
    record_evaluations(ledger, [BASE, other(**changes)])
    assert [one.times for one in compositions_tried(ledger)] == times


def test_each_evaluation_leaves_one_event_with_all_its_juries_though_the_study_is_locked(ledger):
    record_evaluations(ledger, [BASE, other(benchmark="combined")])
    head = lock(ledger, "coordinator")
    record_evaluations(ledger, [BASE])
    record_evaluations(ledger, [])
    events = acts(ledger, EVALUATED)
    assert [len(one.detail["juries"]) for one in events] == [2, 1]
    told = events[1].detail["juries"][0]
    assert (told["jurors"], told["icc"], told["fingerprint"]) == (["j0", "j1", "j2"], 0.47, MARK)
    assert verify(ledger, head).findings == ()


def test_a_name_that_is_no_jurors_is_refused_and_nothing_is_kept(ledger):
    with pytest.raises(Unknown, match="no juror nobody in this study: it has j0"):
        record_evaluations(ledger, [BASE, other(jurors=("j0", "nobody"))])
    assert compositions_tried(ledger) == []
    assert acts(ledger, EVALUATED) == []


def test_a_study_that_cannot_be_written_to_says_so(ledger):
    record_evaluations(ledger, [BASE])
    ledger.dispose()
    event.listen(ledger, "connect", only_reading)
    with pytest.raises(NoStudy, match=r"readonly|read-only"):
        record_evaluations(ledger, [BASE])
    assert compositions_tried(ledger)[0].times == 1


def test_evaluations_at_the_same_time_are_all_counted(ledger, url):
    script = (
        "from data.database import open_study; from data.study.ledger import *;"
        f"engine = open_study({url!r}); one = Evaluation(('j0',), 'b', 'paper', 'f', 5);"
        "[record_evaluations(engine, [one]) for _ in range(5)]"
    )
    running = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [one.wait() for one in running] == [0, 0]
    assert [one.times for one in compositions_tried(ledger)] == [10]
    assert verify(ledger).findings == ()


def counted(engine, here, *, simulated=False):
    return comparisons_besides(compositions_tried(engine), here, simulated=simulated)


def test_what_was_tried_before_counts_and_what_is_tried_now_does_not(ledger):
    assert counted(ledger, BASE) == 0
    record_evaluations(ledger, [BASE])
    assert counted(ledger, BASE) == 0
    record_evaluations(ledger, [other(jurors=("j0",), compared=("metric:m", "metric:n"))])
    record_evaluations(ledger, [other(jurors=("j1",), compared=())])
    assert counted(ledger, BASE) == 2 + 1
    record_evaluations(ledger, [other(compared=("juror:j0",))])
    assert counted(ledger, BASE) == 2 + 1 + 1
    other_way = other(benchmark="visits", criterion="accuracy", needed=1, method="published")
    record_evaluations(ledger, [other_way])  # the same scorers, whatever the part and the way
    assert counted(ledger, BASE) == counted(ledger, other_way) == 2 + 1 + 1


def test_two_juries_compared_count_once_whichever_came_first(ledger):
    record_evaluations(ledger, [other(jurors=("j0", "j1"), compared=("jury:j2, j1",))])
    assert counted(ledger, other(jurors=("j1", "j2"), compared=("jury:j1, j0",))) == 0
    assert counted(ledger, other(jurors=("j1", "j2"), compared=("jury:j0",))) == 1


def test_rehearsals_with_simulated_jurors_count_only_among_themselves(ledger):
    rehearsal = other(jurors=("sim",), compared=("metric:m", "juror:j0"))  # whatever it says itself
    record_evaluations(ledger, [BASE, rehearsal])
    assert [one.simulated for one in compositions_tried(ledger)] == [False, True]
    assert counted(ledger, BASE) == 0
    assert counted(ledger, rehearsal, simulated=True) == 1


def evaluate(engine, jury, **asked):
    """Do as `calibrate` does: evaluate, remember, then compare with all that was tried."""
    scope = scope_of(scores(), jury=jury, reps=99, **asked)
    names = tuple(name for name, _ in compared(scope))
    one = Evaluation(jury.members, scope.name, scope.options.method, MARK, 60, compared=names)
    record_evaluations(engine, [one])
    return difference_rows(scope, tried=comparisons_besides(compositions_tried(engine), one))


def test_a_further_jury_leaves_p_as_it_is_and_adds_its_comparisons(ledger):
    first, again = (evaluate(ledger, JURY) for _ in range(2))
    assert first == again
    assert first[0].n_tried == 4
    evaluate(ledger, PanelColumns(("j0", "j3"), 2))
    evaluate(ledger, JURY, method="published")
    later = evaluate(ledger, JURY)[0]
    assert later.n_tried == 4 + 3
    assert later.p == first[0].p
    tried = compositions_tried(ledger)
    assert sorted(one.times for one in tried) == [1, 1, 3]
    assert different(tried) == 2
    assert "2 different juries in 3 ways" in ever_tried(tried)


NAMES = st.sampled_from(["r1", "r 2", 'a "b"', "c,d", "\u00e9\u2028", "line\nbreak", "", "Z", "a"])


ROWS = st.tuples(NAMES, NAMES, st.integers(0, 2), st.floats(allow_infinity=False))


@given(st.lists(ROWS, max_size=30, unique_by=lambda row: row[:3]), st.booleans())
def test_a_fingerprint_is_that_of_the_ratings_in_whatever_order(rows, as_codes):
    table = pd.DataFrame(rows, columns=["response_id", "rater", "replicate", "score"])
    table = table.assign(benchmark="b", criterion="x", pass_=0)
    mark = fingerprint(table)
    if as_codes:
        table = table.astype({"response_id": "category", "rater": "category"})
    assert fingerprint(table.sample(frac=1, random_state=1).assign(more="x")) == mark
    assert fingerprint(table.assign(score=-(0.0 - table["score"]))) == mark  # -0.0 is 0.0
    for name, other in (("rater", "of nobody"), ("criterion", "y"), ("pass_", 1), ("score", 0.1)):
        changed = table.astype({name: object}) if isinstance(other, str) else table
        where = (table.index == 0) & (table[name] != other)
        forged = changed.assign(**{name: changed[name].mask(where, other)})
        assert not where.any() or fingerprint(forged) != mark


def test_a_fingerprint_stays_what_it_was_whatever_pandas_hashes_it():
    row = {"response_id": "r1", "benchmark": "b", "rater": "dr_a", "criterion": "x"}
    table = pd.DataFrame([row | {"pass_": 0, "replicate": 0, "score": 4.5}])
    assert fingerprint(table) == "bb9aaec7ad620bc310551303cf2a0154a357c6df4f051644099942d894206232"


BODY = {"name": "first", "rows": [{"scorer": "jury", "icc": 1 / 3, "f_low": None}], "n": 5}


def test_a_report_is_kept_to_the_last_digit_with_its_time_number_and_digest(engine):
    with pytest.raises(Unknown, match=r"no report 3 in this study: it has none; `medjury"):
        report(engine, 3)
    head = lock(engine, "coordinator")  # which takes them all the same
    assert [freeze(engine, MARK, BODY), freeze(engine, "e" * 64, {})] == [1, 2]
    first, second = reports(engine)
    assert (first.id, first.fingerprint, first.body) == (1, MARK, BODY)
    assert first.at < second.at
    assert first.at.utcoffset() is not None
    assert report(engine, 2) == second
    told = acts(engine, FROZEN)[0].detail
    assert (told["report"], told["sha256"]) == (1, report_sha256(first.at, MARK, BODY))
    assert verify(engine, head).findings == ()


def test_what_is_not_json_is_refused_and_nothing_is_kept(engine):
    with pytest.raises(ValueError, match="not JSON compliant"):
        freeze(engine, MARK, {"icc": float("nan")})
    assert reports(engine) == []


def test_a_withdrawn_report_is_in_no_list_and_stays_in_the_record_with_the_reason(engine):
    freeze(engine, MARK, BODY)
    freeze(engine, MARK, BODY | {"name": "second"})
    withdraw_report(OPERATOR, engine, 2, "  made for the\nwrong jury ")
    assert [one.id for one in reports(engine)] == [1]
    with pytest.raises(Unknown, match="it has 1;"):
        report(engine, 2)
    [(gone, name)] = withdrawn_reports(OPERATOR, engine)
    assert (gone.actor, name) == (OPERATOR.actor, "second")
    assert gone.detail == {"report": 2, "reason": "made for the wrong jury"}
    assert freeze(engine, MARK, BODY) == 3
    assert verify(engine).findings == ()


@pytest.mark.parametrize(
    ("number", "reason", "why"),
    [(1, " ", "say why"), (2, "so", "there is none"), (0, "so", "there is none")],
)
def test_no_report_is_withdrawn_without_a_reason_or_twice(engine, number, reason, why):
    freeze(engine, MARK, BODY)
    with pytest.raises(MedjuryError, match=why):
        withdraw_report(OPERATOR, engine, number, reason)
    assert len(reports(engine)) == 1
    withdraw_report(OPERATOR, engine, 1, "wrong jury")
    with pytest.raises(Unknown, match="withdrawn before"):
        withdraw_report(OPERATOR, engine, 1, "again")


def test_only_coordinators_withdraw_and_clinicians_see_nothing_of_it(engine):
    freeze(engine, MARK, BODY)
    for role in (Role.RESEARCHER, Role.CLINICIAN):
        with pytest.raises(NotAllowed):
            withdraw_report(Person(7, "Rita", role), engine, 1, "so")
    with pytest.raises(NotAllowed):
        withdrawn_reports(Person(8, "dr_a", Role.CLINICIAN), engine)
