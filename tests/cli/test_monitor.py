"""Agreement by period: the calendar, joining, the ICC that `calibrate` would give, and `medjury analyse monitor`."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.scores import NAN, codes, row, scope_of, study, watching, without
from kit.studies import CRITERIA, Run, bring_in, monthly_ratings, monthly_responses
from sqlalchemy import text

from calibration.columns import column_icc, columns
from calibration.decision import DecisionKind
from calibration.monitoring import CaseMix, calendar, decide, period_label, period_rows, watch
from calibration.notes import note, undefined
from calibration.scope import scopes
from calibration.table import agreement_table
from calibration.values import AnalysisOptions
from data.study.frames import clinician_dates
from data.study.ledger import compositions_tried
from data.study.verify import verify
from medjury.services.panels import juror_ends

TODAY = date(2026, 1, 1)


def scope(scores, method="paper", reps=200):
    return list(scopes(scores, AnalysisOptions(method=method, reps=reps)))[-1]


def monthly(names, a_month):
    """Return days that give each month so many responses, from January 2025 on."""
    months = (place // a_month for place in range(len(names)))
    days = [date(2025 + month // 12, month % 12 + 1, 15) for month in months]
    return dict(zip(names, days, strict=True))


@pytest.mark.parametrize(
    ("every", "day", "start", "after", "label"),
    [
        ("week", date(2027, 1, 3), date(2026, 12, 28), date(2027, 1, 4), "2026-W53"),
        ("month", date(2024, 12, 31), date(2024, 12, 1), date(2025, 1, 1), "2024-12"),
        ("quarter", date(2024, 12, 31), date(2024, 10, 1), date(2025, 1, 1), "2024-Q4"),
        ("quarter", date(2024, 3, 31), date(2024, 1, 1), date(2024, 4, 1), "2024-Q1"),
    ],
)
def test_a_day_belongs_to_its_calendar_period(every, day, start, after, label):
    ((first, last, _),) = calendar([day], np.zeros(1, int), watching(every=every))
    assert first.start_time.date() == start
    assert (first + 1).start_time.date() == after
    assert period_label(first, last) == label


def test_periods_with_too_few_instances_are_joined_with_the_next_and_none_is_lost():
    days = [date(2025, 1, 3)] * 2 + [date(2025, 2, 1)] * 3 + [date(2025, 4, 2)] * 4
    days += [date(2025, 5, 1)]
    found = calendar(days, np.arange(10), watching(least=4))
    assert [(period_label(first, last), rows.sum()) for first, last, rows in found] == [
        ("2025-01 to 2025-02", 5),
        ("2025-03 to 2025-04", 4),
        ("2025-05", 1),
    ]
    assert np.sum([rows for *_, rows in found], axis=0).tolist() == [1] * 10
    days = [date(2025, 1, 1)] * 6 + [date(2025, 2, 1)]
    instances = np.array([0, 0, 0, 1, 1, 1, 2])
    found = calendar(days, instances, watching(least=3))
    turned = calendar(days[::-1], instances[::-1], watching(least=3))
    assert [rows.sum() for *_, rows in found] == [7]
    assert [one[:2] for one in turned] == [one[:2] for one in found]


@pytest.mark.parametrize("method", ["paper", "published"])
@pytest.mark.parametrize("per", [1, 2])
def test_one_period_of_all_is_the_jurys_row_of_calibrate_to_the_last_digit(method, per):
    scores = study(n=30, per=per)
    own = scope(scores, method)
    days = dict.fromkeys(own.grid.responses, TODAY)
    (found,) = period_rows(own, own.jury, days, watching(today=TODAY))
    table = agreement_table(scores, method=method, reps=200).set_index("scorer").loc["jury"]
    assert found.icc == pytest.approx(table["icc"])
    assert (found.low, found.high) == pytest.approx((table["low"], table["high"]))
    assert (found.n_responses, found.n_instances) == (table["n_responses"], table["n_instances"])
    assert found.n_clinicians == table["n_clinicians"]


@pytest.mark.parametrize("method", ["paper", "published"])
def test_a_periods_icc_is_that_of_its_rows_with_z_over_everything(method):
    own = scope(study(n=80), method)
    days = monthly(own.grid.responses, 40)
    pair = columns(own.grid, own.jury, method)
    found = period_rows(own, own.jury, days, watching(today=TODAY))
    for place, one in enumerate(found):
        rows = np.zeros(80, dtype=bool)
        rows[place * 40 : place * 40 + 40] = True
        x, y = pair.clinicians[rows], pair.scorer[rows]
        assert one.icc == pytest.approx(column_icc(x, y, method))


def test_what_the_jury_did_not_score_is_counted_and_leaves_the_period_undefined():
    scores = study(n=40)
    names = scope(scores).grid.responses
    unscored = scores.ratings["response_id"].isin(names[20:]) & (scores.ratings["kind"] == "juror")
    own = scope(without(scores, unscored))
    days = monthly(own.grid.responses, 20)
    first, second = period_rows(own, own.jury, days, watching(today=TODAY))
    assert (first.n_missing, first.too_few) == (0, False)
    assert (second.n_missing, second.n_responses, second.too_few) == (20, 0, True)
    assert not second.unfilled
    assert np.isnan(second.icc)
    assert second.told("too_few_responses")["responses"] == 0


def test_the_last_period_is_marked_while_it_may_grow_and_since_changes_no_other():
    own = scope(study(n=50))
    days = monthly(own.grid.responses, 20)
    found = period_rows(own, own.jury, days, watching(today=date(2025, 3, 20)))
    assert [(one.period, one.over, one.too_few) for one in found] == [
        ("2025-01", True, False),
        ("2025-02", True, False),
        ("2025-03", False, True),
    ]
    assert found[2].notes == ()
    assert (found[0].start, found[0].end) == (date(2025, 1, 1), date(2025, 1, 31))
    own = scope(study(n=60))
    days = monthly(own.grid.responses, 20)
    every, later = (
        period_rows(own, own.jury, days, watching(since=since))
        for since in (None, date(2025, 2, 1))
    )
    assert later == every[1:]


@pytest.mark.slow
def test_the_interval_of_a_period_holds_the_truth_about_as_often_as_it_says():
    held, true = [], 0.6
    r = true / (2 - true)
    for seed in range(200):
        random = np.random.default_rng(seed)
        quality, noise = random.normal(size=(120, 1)), random.normal(size=(120, 2))
        own = scope_of(np.sqrt(r) * quality + np.sqrt(1 - r) * noise, 1, reps=400)
        row = period_rows(own, own.jury, monthly(own.grid.responses, 40), watching(today=TODAY))[1]
        held.append(row.low <= true <= row.high)
        assert row.se > 0
    assert 0.88 <= np.mean(held) <= 0.98


LOW, WIDE = {"boot": (0.0, 0.2)}, {"boot": (0.0, 0.5)}
ROBOT = "dr; simulated raters: nobody"


def decided(rows, mix=None, simulated=(), normal=None):
    normal = normal or watching()
    return decide(watch(rows, replace(normal, floor=0.4)), mix, simulated)


def changed(high):
    """Return a case mix of which the change of the ICC reaches up to `high`; None for none."""
    if high is None:
        return None
    figures = {"icc_baseline": 0.8, "icc_now": 0.7, "change_low": high - 0.2}
    return CaseMix("then", "now", **figures, change_high=high)


GOOD = [row(n, 0.6) for n in range(3)]
BAD = [*GOOD, *(row(n, -0.5) for n in (3, 4))]
LOWER = [*(row(n, 0.8) for n in range(3)), row(3, 0.6, boot=(0.45, 0.7))]
K = DecisionKind


@pytest.mark.parametrize(
    ("rows", "mix", "simulated", "kind", "told"),
    [
        ([row(0, 0.3, **WIDE)], None, (), K.NO_BASELINE, ["to_floor", "not_watched_yet"]),
        ([row(0, 0.6), row(1, 0.1, **LOW)], None, (), K.INCONCLUSIVE, None),
        ([row(0, 0.6), row(1, 0.3, **WIDE)], None, (), K.INCONCLUSIVE, None),
        ([row(0, 0.6), row(1, 0.3)], None, (), K.INCONCLUSIVE, None),  # no interval
        (LOWER, -0.1, (), K.INCONCLUSIVE, ["lower_than_baseline", "to_floor", "no_alarm"]),
        (LOWER, 0.1, (), K.STEADY, None),
        ([row(0, 0.9), row(1, 0.3, **WIDE)], -0.1, (), K.INCONCLUSIVE, None),
        ([row(n, -0.7, 40) for n in range(2)], None, (), K.FALLEN, ["shown_below_floor"]),
        ([*BAD, row(5, 0.9)], None, (), K.FALLEN, ["alarm"]),  # though the newest is good
        (BAD, None, (ROBOT,), K.SIMULATED, ["simulated", "alarm"]),
    ],
)
def test_a_fall_is_said_of_what_shows_one_and_of_nothing_else(rows, mix, simulated, kind, told):
    decision = decided(rows, changed(mix), simulated)
    assert decision.kind is kind
    assert told in (None, codes(decision))
    if kind is K.SIMULATED:
        assert decision.reasons[0]["raters"] == (ROBOT,)


def test_a_fall_has_the_figures_of_the_periods_that_show_it_and_one_period_is_none():
    decision = decided([row(0, 0.1, **LOW)])
    assert decision.kind is DecisionKind.NO_BASELINE
    assert decision.headline.startswith("Agreement is below the floor of 0.40;")
    assert decision.next == note("do_compare_juries", "do_compare_juries")
    below = decided([row(n, -0.7, 40) for n in range(2)])
    assert below.estimate == pytest.approx(-0.7)
    assert below.low < below.estimate < below.high < below.reasons[0]["most"] < 0.4
    alarm = decided([*BAD, row(5, 0.9)])
    assert alarm.estimate == pytest.approx(-0.5)
    assert alarm.next == note("do_validate_again", "do_validate_again")


def test_a_period_left_unscored_or_with_too_few_instances_is_no_all_clear_and_says_what_to_do():
    why = undefined("too_few_responses", "no response has both", responses=0, least=3)
    lost = row(3, NAN, 0, too_few=True, n_missing=30, notes=(why,))
    decision = decided([row(0, 0.6), lost])
    assert decision.kind is DecisionKind.UNDEFINED
    assert decision.reasons[0]["why"] == why
    assert decision.next == note("do_score_rest_of", "do_score_rest_of", period="p3", responses=30)
    decision = decided([row(0, 0.6, 5, too_few=True, unfilled=True, boot=(0.5, 0.7))])
    assert decision.kind is DecisionKind.TOO_FEW
    assert decision.action == "Have clinicians rate responses to 15 more instances."


ICCS = st.one_of(st.floats(-0.2, 0.99), st.floats(-3, 0.99), st.just(NAN))
REACHES = st.sampled_from((0.02, 0.1, 0.4, NAN))
INSTANCES = st.sampled_from((40, 25, 15, 5))
PERIODS = st.lists(st.tuples(ICCS, REACHES, INSTANCES), min_size=1, max_size=7)
FLOORS = st.sampled_from((0.4, 0.0, 0.7, 0.95))
NORMALS = st.one_of(
    st.builds(lambda many: watching(baseline=many), st.integers(1, 4)),
    st.builds(lambda icc: watching(target=icc), st.floats(0.1, 0.95)),
    st.just(watching(target=0.5, target_since=row(3, 0.5).start)),
)
CHANGES = st.sampled_from((None, -0.2, 0.2))
UNHURRIED = settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])


def periods(drawn):
    """Return rows of what hypothesis drew: the ICC, how far its interval reaches, instances."""
    rows = [
        row(place, icc, n, boot=(icc - reach, icc + reach), too_few=n < 20, unfilled=n < 10)
        for place, (icc, reach, n) in enumerate(drawn)
    ]
    return [replace(one, unfilled=one.unfilled and one is rows[-1]) for one in rows]


BELOW = "Agreement is below the floor of {:z.2f}"


@UNHURRIED
@given(PERIODS, NORMALS, FLOORS, CHANGES, st.booleans())
def test_no_decision_says_more_than_its_figures(drawn, normal, floor, change, made_up):
    watched = watch(periods(drawn), replace(normal, floor=floor))
    mix = None if change is None else CaseMix("then", "now", change_high=change)
    decision = decide(watched, mix, ("sim",) if made_up else ())
    judged = watched.judged
    assert (decision.kind is DecisionKind.SIMULATED) == made_up
    if decision.kind is DecisionKind.FALLEN:
        aim = watched.target_icc if watched.below == "target" else floor
        assert decision.estimate <= watched.most < aim
        assert len(watched.fell) >= 2
        assert watched.below == "target" or decision.high < floor
    if decision.kind is DecisionKind.STEADY:
        assert watched.reason is None
        assert judged.icc >= floor
        assert not (mix and mix.change_high < 0)
    if decision.kind in (K.STEADY, K.NO_BASELINE, K.INCONCLUSIVE, K.TOO_FEW):
        assert not watched.alarm
        assert math.isfinite(judged.icc)
    if decision.kind is DecisionKind.INCONCLUSIVE:
        is_lower = mix is not None and mix.change_high < 0
        assert ("is lower than in" in decision.headline) == is_lower
    assert (decision.kind is DecisionKind.FALLEN) == (watched.below != "" and not made_up)
    says_fallen = decision.headline in ("Agreement has fallen.", f"{BELOW.format(floor)}.")
    assert says_fallen == (decision.kind is DecisionKind.FALLEN)


QUICK = ("--reps", "20")


@pytest.fixture
def studied(run, tmp_path) -> Callable[..., None]:
    """Fill the study: months, responses a month, and months in which the jury is good."""

    def fill(months: int, a_month: int, good: int, again: bool = False) -> None:
        texts = monthly_responses(months * a_month).splitlines()
        bring_in(run, tmp_path, texts, monthly_ratings(months, a_month, good, again).splitlines())

    return fill


def monitor(run: Run, *arguments: str) -> tuple[int, dict[str, object]]:
    code, out, err = run("analyse", "monitor", *QUICK, "--json", "-", *arguments)
    assert "Traceback" not in err
    return code, json.loads(out)


def test_while_agreement_holds_it_ends_with_zero_and_with_one_below_a_threshold(run, studied):
    studied(5, 20, 5)
    code, body = monitor(run)
    assert code == 0
    assert (body["fallen"], body["judged"], body["alarm"]) == (False, True, None)
    assert [one["period"] for one in body["periods"]] == [f"2025-0{m}" for m in range(1, 6)]
    assert [one["role"] for one in body["periods"]] == ["baseline"] * 3 + ["watched"] * 2
    assert body["drift"]["drift"] == "none"
    assert body["decision"]["kind"] == "steady"
    code, body = monitor(run, "--min-icc", "0.999")
    assert code == 1
    assert "below the floor of 1.00" in body["decision"]["reasons"][0]["words"]
    assert body["decision"]["headline"] == "Agreement is below the floor of 1.00."
    assert monitor(run, "--min-icc", "-1", "--min-instances", "20")[0] == 0


def test_anchors_of_a_benchmark_that_no_clinician_rates_count_too(run, studied, tmp_path):
    studied(3, 20, 3, again=True)
    before = {row["scorer"]: row["n_responses"] for row in monitor(run)[1]["anchor"]}
    texts = monthly_responses(12).replace("visits", "letters").replace(",task,r", ",task,letter-r")
    rows = [f"response_id,rater,kind,{','.join(CRITERIA)},rated_at,replicate"]
    rows += [
        f"letter-r{k},{juror},juror,3,4,{1 + k % 5},2025-0{1 + 2 * again}-10T09:00:00Z,{again}"
        for k in range(12)
        for juror in ("gpt", "claude")
        for again in range(2 if k < 5 else 1)
    ]
    bring_in(run, tmp_path, texts.splitlines(), rows)
    after = {row["scorer"]: row["n_responses"] for row in monitor(run)[1]["anchor"]}
    assert after == {scorer: number + 5 for scorer, number in before.items()}


def test_a_jury_that_stops_agreeing_ends_with_one_and_names_the_month(run, studied):
    studied(6, 20, 4, again=True)
    code, body = monitor(run)
    assert code == 1
    assert body["fallen"]
    assert body["alarm"] in ("2025-05", "2025-06")
    assert str(body["alarm"]) in body["decision"]["reasons"][0]["words"]
    assert body["drift"]["drift"] == "model"
    assert {one["scorer"] for one in body["anchor"]} == {"juror:gpt", "juror:claude", "jury"}
    assert body["decision"]["kind"] == "fallen"
    assert body["decision"]["estimate"] < body["target"]["icc"]
    assert run("analyse", "monitor", *QUICK)[1].startswith("Agreement has fallen.")


def test_a_study_without_dates_is_one_period_and_says_why(run, small_study, write):
    rows = [
        f"{name},{who},{kind},{score},{score},3"
        for who, kind in (("dr_a", "clinician"), ("j", "juror"))
        for name, score in (("r11", 1), ("r12", 4), ("r21", 2), ("r22", 5))
    ]
    table = "\n".join([f"response_id,rater,kind,{','.join(CRITERIA)}", *rows])
    assert run("rate", "ratings", str(write("ratings.csv", table)))[0] == 0
    code, body = monitor(run)
    assert (code, len(body["periods"])) == (0, 1)
    assert body["periods"][0]["too_few"]
    assert body["decision"]["kind"] == "too_few"
    assert "responses to 18 more instances" in body["decision"]["next"]["words"]
    assert "ratings imported without rated_at" in run("analyse", "monitor", *QUICK)[1]


def test_reports_are_listed_with_what_changed_and_can_be_the_target(run, studied, write, engine):
    studied(4, 20, 4)
    assert "frozen as report 1:" in run("analyse", "calibrate", *QUICK, "--freeze")[1]
    more = monthly_ratings(4, 20, 4, seed=9).replace("dr", "late")
    assert run("rate", "ratings", str(write("more.csv", more)))[0] == 0
    assert run("analyse", "calibrate", *QUICK, "--freeze", "--jurors", "gpt")[0] == 0
    first, second = monitor(run)[1]["reports"]
    assert (first["report"], first["name"], first["changed"]) == (1, "", [])
    assert second["changed"][0] == "juror claude left"
    assert any(one.startswith("ratings (80 -> 80 responses)") for one in second["changed"])
    assert verify(engine).findings == ()
    _, body = monitor(run, "--baseline-report", "1")
    assert body["target"]["icc"] == pytest.approx(first["icc"])
    words = "not watched yet: 1 more completed period with enough instances needed"
    assert body["target"]["note"] == words
    assert run("analyse", "monitor", "--baseline-report", "7")[2].startswith("medjury: no report 7")
    assert run("analyse", "monitor", "--baseline-report", "1", "--method", "published")[0] == 2


def test_looking_is_noted_once_and_a_correction_moves_no_response(run, studied, write, engine):
    studied(1, 20, 1)
    run("analyse", "calibrate", *QUICK)
    monitor(run)
    entries = [one for one in compositions_tried(engine) if one.benchmark == "visits"]
    assert [(one.jurors, one.times) for one in entries] == [(["claude", "gpt"], 2)]
    before = clinician_dates(engine)
    later = monthly_ratings(1, 20, 1).replace("2025-01", "2025-09").replace(",4.0", ",2.0")
    clinical = [line for line in later.splitlines() if "juror" not in line]
    assert run("rate", "ratings", str(write("later.csv", "\n".join(clinical))))[0] == 0
    assert clinician_dates(engine) == before


def test_without_a_jury_there_is_nothing_to_monitor(run, small_study, write):
    table = f"response_id,rater,kind,{','.join(CRITERIA)}\nr11,dr_a,clinician,1,2,3"
    assert run("rate", "ratings", str(write("ratings.csv", table)))[0] == 0
    code, _, err = run("analyse", "monitor")
    assert code == 2
    assert "no juror has rated anything" in err


def test_the_end_of_a_model_is_known_by_model_and_host_or_by_a_users_panel(write):
    profile = {"model": "gpt-4o-2024-05-13", "host": "api.openai.com"}
    elsewhere = profile | {"host": "hospital.example"}
    today = date(2026, 10, 1)
    rows = juror_ends(["a", "b", "c"], {"a": profile, "b": elsewhere}, None, today)
    assert [one.ends for one in rows] == [date(2026, 10, 23), None, None]
    assert rows[0].days_left == 22
    assert [bool(one.notes) for one in rows] == [True, False, False]
    (gone,) = juror_ends(["a"], {"a": profile}, None, date(2026, 12, 1))
    assert (gone.ends, gone.days_left) == (date(2026, 10, 23), -39)
    panel = write(
        "panel.toml",
        'name = "p"\n[[juror]]\nname = "a"\nprovider = "openai"\nmodel = "m"\nfamily = "x"\n'
        'base_url = "http://127.0.0.1:1/v1"\nretires = 2027-01-01\n',
    )
    (row,) = juror_ends(["a"], {}, str(panel), date(2026, 12, 1))
    assert (row.juror, row.model, row.ends, row.days_left) == ("a", "m", date(2027, 1, 1), 31)
    assert row.told("model_ends")


def test_simulated_raters_are_called_so_wherever_a_figure_shows(run, studied, engine):
    studied(3, 20, 3)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE rater SET simulated = true WHERE handle = 'dr1'"))
    run("analyse", "calibrate", *QUICK, "--freeze")
    said = run("analyse", "monitor", *QUICK)[1]
    assert said.startswith("Simulated: nothing here is evidence.")
    assert "Simulated. visits: agreement by month, method paper" in said
    assert "Simulated raters: dr1." in said
    code, body = monitor(run, "--target", "0.99")
    assert (code, body["decision"]["kind"]) == (0, "simulated")
    assert body["simulated"] == ["dr1"]
    assert body["reports"][0]["simulated"]
