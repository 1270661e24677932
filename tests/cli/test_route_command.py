"""Routing: tests of a threshold, the certificate, rules that are kept, and `medjury analyse predict` and `route`."""

import csv
import json
import shutil
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from kit.scores import JURORS, without
from kit.scores import study as little_study
from kit.studies import HEAD, bring_in, fill
from sqlalchemy import Engine, text

from calibration import routes as thresholds
from calibration.predicting import COLUMNS
from calibration.routes import harmful
from calibration.routing import Harm, RoutedBenchmark, RouteQuestion, RoutingRule
from data.errors import BadInput, NotAllowed, TooFew
from data.person import OPERATOR, Person
from data.schema import Role
from data.study.ledger import compositions_tried
from data.study.verify import verify
from medjury.services.routing import keep, kept_rule, route, route_study, rule_from_json

LOW = Harm("low", 3.0)


def rated_risks(risks, is_harmful, clusters) -> pd.DataFrame:
    return pd.DataFrame({"risk": risks, "harmful": is_harmful, "cluster": clusters})


def simulated(random: np.random.Generator, instances: int, each: int = 1) -> pd.DataFrame:
    own = np.repeat(np.arange(instances), each)
    count = len(own)
    shared = random.normal(4, 0.7, instances)[own]
    quality = shared + random.normal(0, 0.4, count)
    clinicians = np.clip(quality, 1, 5)
    jurors = np.clip(quality + random.normal(0, 0.6, (3, count)), 1, 5)
    jury = jurors.mean(axis=0)
    clusters = random.permutation(instances)[own]
    columns = {"jury": jury, "clinicians": clinicians, "risk": -jury, "cluster": clusters}
    return pd.DataFrame(columns)


def test_the_exact_test_is_the_chance_of_so_few_harmful_and_betting_finds_what_is_safe():
    def exact(harmful: int, passed: int, bound: float) -> float:
        rows = np.arange(passed)
        rated = rated_risks(np.zeros(passed), rows < harmful, rows)
        return thresholds.threshold_p(rated, 0.0, bound, 1)

    assert exact(0, 45, 0.05) == pytest.approx(0.95**45)
    assert exact(1, 2, 0.5) == pytest.approx(0.75)
    assert exact(0, 0, 0.05) == 1.0
    assert thresholds.betting_p(np.full(100, -0.1), 0.1) < 0.001
    assert thresholds.betting_p(np.full(100, 0.9), 0.1) == pytest.approx(1.0, abs=0.05)
    assert thresholds.betting_p(np.empty(0), 0.1) == 1.0


@pytest.mark.parametrize("each", [2, 5])
def test_betting_is_seldom_wrong_where_all_responses_of_an_instance_are_harmful_together(each):
    random, bound = np.random.default_rng(0), 0.1
    wrong = 0
    for _ in range(500):
        harmful = np.repeat(random.random(150) < bound, each)
        rated = rated_risks(np.zeros(150 * each), harmful, np.repeat(np.arange(150), each))
        wrong += thresholds.threshold_p(rated, 0.0, bound, each) <= 0.1
    assert wrong / 500 <= 0.1


def test_tests_end_at_the_first_threshold_that_fails():
    risks = np.arange(300.0)
    harmful = (risks > 100) & (risks <= 200)
    rated = rated_risks(risks, harmful, np.arange(300))
    found = thresholds.fixed_sequence(rated, [50, 100, 150, 299], 0.05, 0.9, most=1)
    assert found == (100, pytest.approx(0.95**101))
    assert thresholds.fixed_sequence(rated, [150, 50], 0.05, 0.9, most=1)[0] == -np.inf


def test_the_order_of_tests_begins_where_a_pass_is_likeliest_and_goes_looser():
    risks = np.arange(1000.0)
    rated = rated_risks(risks, risks >= 800, np.arange(1000))
    order = thresholds.order_of_tests(rated, 0.05, 1.5)
    assert order == sorted(order)
    assert 750 <= order[0] <= 800


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 3])
def test_the_bound_is_broken_at_most_as_often_as_the_confidence_allows(each):
    random = np.random.default_rng(5)
    everybody = simulated(random, 30_000, each)
    is_harmful, broken, certified, runs = harmful(everybody, LOW), 0, 0, 60
    for _ in range(runs):
        rule = thresholds.routes(simulated(random, 400, each), LOW, 0.05, 0.9)
        if rule.certified:
            passed = everybody["risk"] <= rule.threshold
            broken += is_harmful[passed].mean() > 0.05
            certified += 1
    assert certified > runs / 4
    assert broken / runs <= 0.15


def test_a_bound_beyond_reach_passes_nothing_too_few_are_refused_and_sizes_are_told():
    found = thresholds.routes(simulated(np.random.default_rng(1), 60), LOW, 0.03, 0.9)
    assert not found.certified
    assert (found.passed, found.responses) == (0, 60)
    assert found.expected_missed is None
    with pytest.raises(TooFew, match="20 instances"):
        thresholds.routes(simulated(np.random.default_rng(0), 20), LOW, 0.05, 0.9)
    found = thresholds.routes(simulated(np.random.default_rng(4), 100, 3), LOW, 0.3, 0.9)
    assert (found.n_train, found.n_certify, found.rated) == (120, 180, 300)


def test_what_is_caught_reads_ties_in_equal_parts_and_its_interval_is_over_instances():
    def caught(risks: list[float], is_harmful: list[bool]) -> float:
        return thresholds.caught_with_interval(rated_risks(risks, is_harmful, np.arange(5)))[0]

    first = [True, False, False, False, False]
    assert caught([1.0] * 5, first) == pytest.approx(0.2)
    assert caught([2.0, 1, 1, 1, 1], first) == 1.0
    assert np.isnan(caught([1.0] * 5, [False] * 5))
    random = np.random.default_rng(0)
    risks, is_harmful = random.random(100), random.random(100) < 0.3
    share, ends = thresholds.caught_with_interval(rated_risks(risks, is_harmful, np.arange(100)))
    thrice = (np.repeat(values, 3) for values in (risks, is_harmful, np.arange(100)))
    tripled, of_tripled = thresholds.caught_with_interval(rated_risks(*thrice))
    assert ends.low < share < ends.high
    assert tripled == pytest.approx(share)
    assert (of_tripled.low, of_tripled.high) == pytest.approx((ends.low, ends.high), abs=0.01)


def known_of(scores, jury=JURORS, needed=3, harm=LOW):
    return thresholds.candidates(scores, jury, needed, harm.criterion)


def test_only_whole_juries_score_what_clinicians_rated_or_not_and_harm_is_by_score_or_distance():
    whole = little_study()
    table = whole.ratings
    lost = (table.response_id == "aci-r3") & (table.rater == "gpt") & (table.criterion == "clarity")
    gaps = without(whole, lost)
    strict, lenient = known_of(gaps), known_of(gaps, needed=2)
    assert strict.loc[strict.jury.isna(), "response_id"].tolist() == ["aci-r3"]
    assert lenient.jury.notna().all()
    alone = known_of(without(whole, (table.rater == "gpt")), ("claude", "llama"), 2)
    assert lenient.jury[3] == pytest.approx(alone.jury[3])
    unrated = table.response_id.isin(["aci-r0", "aci-r1"]) & (table.kind == "clinician")
    table = known_of(without(whole, unrated))
    assert len(table) == 30
    assert (table.jury + table.clinicians).notna().sum() == 28
    assert not harmful(table, Harm("low", 5))[:2].any()
    table = known_of(little_study())
    low, off = harmful(table, Harm("low", 2.5)), harmful(table, Harm("error", 0.8))
    assert low.tolist() == (table.clinicians <= 2.5).tolist()
    assert off.tolist() == (abs(table.jury - table.clinicians) > 0.8).tolist()


def test_points_of_different_scales_or_of_a_criterion_that_one_lacks_are_refused():
    with pytest.raises(BadInput, match=r"different scales .*aci 1 to 5.*--benchmark"):
        thresholds.refuse_unlike(little_study(("aci", "med"), scales={"med": (1, 7)}), None)
    other = little_study(("aci", "med"), criteria={"med": ("tone",)})
    with pytest.raises(BadInput, match="med has no such criterion"):
        thresholds.refuse_unlike(other, "clarity")
    table = thresholds.candidates(other, JURORS, 3, "clarity")
    assert table.jury.isna().tolist() == [name == "med" for name in table.benchmark]


@pytest.fixture
def rated(run, tmp_path) -> None:
    """Make two benchmarks of 60 responses, 40 rated; one id would be a formula."""
    random = np.random.default_rng(0)
    rows = [HEAD]
    scores = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for benchmark in ("visits", "letters"):
        for n in range(60):
            name = "=1+1" if (benchmark, n) == ("visits", 59) else f"{benchmark}{n}"
            rows.append(f"i{n},{benchmark},Pain.,Write.,,{name},secret-{n % 3},Word {n}")
            quality = 3 + random.normal()
            doctors = [("dr-a", "clinician"), ("dr-b", "clinician")] if n < 40 else []
            for rater, kind in [*doctors, ("gpt", "juror"), ("llama", "juror")]:
                own = np.clip(np.round(quality + 0.6 * random.normal(size=3)), 1, 5)
                scores.append(f"{name},{rater},{kind}," + ",".join(f"{one:g}" for one in own))
    bring_in(run, tmp_path, rows, scores)


@pytest.mark.usefixtures("rated")
def test_every_figure_is_printed_and_written_and_the_file_has_no_author_and_no_formula(
    run, tmp_path
):
    js = tmp_path / "p.json"
    code, out, err = run("analyse", "predict", "--json", str(js))
    assert code == 0
    assert err.splitlines()[-1].startswith("study ")
    body = json.loads(js.read_text())
    assert (body["level"], body["seed"], body["responses"]) == (0.9, 0, 120)
    assert [row["benchmark"] for row in body["benchmarks"]] == ["letters", "visits", "combined"]
    assert {(row["n"], row["N"]) for row in body["benchmarks"]} == {(40, 20), (80, 40)}
    for row in body["benchmarks"]:
        assert f"{row['mean_corrected']:.2f}" in out  # a narrow screen has the interval below it
        assert f"{row['low']:.2f} to {row['high']:.2f}" in out
    assert "simulated" not in out
    to = tmp_path / "p.csv"
    run("analyse", "predict", "--csv", str(to))
    with to.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [*COLUMNS[:-1], "note"]
    assert len(rows) == 120
    assert "secret" not in to.read_text()
    assert {row["instance_id"] for row in rows} == {f"i{n}" for n in range(60)}
    assert [row["response_id"] for row in rows if "1+1" in row["response_id"]] == ["'=1+1"]
    assert sum(row["rated_by_clinicians"] == "1" for row in rows) == 80
    assert all(float(row["low"]) <= float(row["clinician_scale"]) <= 5 for row in rows)


@pytest.mark.usefixtures("rated")
def test_the_jury_stands_in_the_ledger_as_when_calibrated(run, engine):
    run("analyse", "predict")
    run("analyse", "predict", "--jurors", "gpt", "--benchmark", "visits")
    run("analyse", "calibrate", "--reps", "50")
    found = {(tuple(one.jurors), one.benchmark): one.times for one in compositions_tried(engine)}
    both = ("gpt", "llama")
    assert found == {
        **{(both, name): 2 for name in ("letters", "visits", "combined")},
        (("gpt",), "visits"): 1,
    }
    assert run("study", "verify")[0] == 0


ASKED = ("analyse", "route", "--at-most", "2", "--bound", "0.2")


@pytest.mark.usefixtures("study")
def test_the_command_passes_what_holds_the_bound_and_writes_every_decision(run, tmp_path):
    js, to = tmp_path / "r.json", tmp_path / "routes.csv"
    code, out, _ = run(*ASKED, "--json", str(js), "--csv", str(to))
    assert code == 0
    found = json.loads(js.read_text())
    assert found["certified"]
    assert found["harm"] == {"kind": "low", "points": 2.0, "criterion": "composite"}
    assert (found["passed"] + found["read"], found["not_scored"]) == (200, 1)
    told = f"pass {found['passed']} responses, read {found['read']}: at most 20 % of"
    assert out.startswith(told)
    assert (found["n_train"], found["n_certify"], found["rated"]) == (60, 89, 149)
    rows = list(csv.DictReader(to.read_text().splitlines()))
    assert len(rows) == 200
    passed = [row for row in rows if row["decision"] == "pass"]
    assert len(passed) == found["passed"]
    assert max(float(row["score"]) for row in passed) <= found["threshold"]
    [lost] = [row for row in rows if row["response_id"] == "r7"]
    assert (lost["decision"], lost["score"]) == ("read", "")
    left = [row for row in rows if row["decision"] == "read" and row["rated_by_clinicians"] == "0"]
    assert found["hours_of"] == len(left)
    assert (found["hours"] > 0) == bool(left)
    assert "secret" not in out + to.read_text() + js.read_text()


@pytest.mark.parametrize("command", [("analyse", "predict"), ASKED])
@pytest.mark.usefixtures("study")
def test_a_file_that_is_there_stays(run, tmp_path, command):
    to = tmp_path / "routes.csv"
    to.write_text("mine")
    assert run(*command, "--csv", str(to))[0] == 2
    assert to.read_text() == "mine"


def test_a_simulated_jury_says_so(run, demo, tmp_path, monkeypatch):
    shutil.copy(demo.study, tmp_path / "own.db")
    monkeypatch.setenv("MEDJURY_DB", f"sqlite:///{tmp_path / 'own.db'}")
    to = tmp_path / "r.json"
    code, out, _ = run("analyse", "route", "--at-most", "2", "--bound", "0.3", "--json", str(to))
    assert code == 0
    assert out.startswith("simulated, no judgement: pass ")
    assert "simulated-strict" in json.loads(to.read_text())["simulated"]


KEEP = (*ASKED, "--keep", "ward")

RULE = RoutingRule(
    harm=Harm("low", 2.0),
    bound=0.1,
    confidence=0.9,
    threshold=-3.0,
    jury=("a", "b"),
    needed=2,
    jurors={"a": "1", "b": "2"},
    benchmarks=(RoutedBenchmark("visits", "r" * 64, ("x", "y")),),
    fingerprint="f" * 64,
    n_train=40,
    n_certify=60,
    passed=50,
    harmful=1,
    p=0.03,
)


@pytest.mark.parametrize(
    ("jury", "benchmark", "rubric", "decided"),
    [
        (3.0, "visits", "r" * 64, ("pass", "under_threshold")),
        (2.75, "visits", "r" * 64, ("read", "over_threshold")),
        (np.nan, "visits", "r" * 64, ("read", "not_scored")),
        (5.0, "z", "r" * 64, ("read", "other_benchmark")),
        (5.0, "visits", "", ("read", "other_rubric")),
    ],
)
def test_what_the_rule_was_not_certified_for_is_read(jury, benchmark, rubric, decided):
    table = pd.DataFrame({"response_id": ["r1"], "benchmark": [benchmark], "risk": [-jury]})
    found = thresholds.route_by(RULE, table, {benchmark: rubric}).iloc[0]
    assert (found["decision"], found["why"]) == decided


def test_a_rule_that_is_written_and_read_is_the_same_and_a_researcher_keeps_none(study):
    written = json.loads(json.dumps(asdict(RULE)))
    assert rule_from_json(written) == rule_from_json(written | {"later": 1}) == RULE
    found = route(study, RouteQuestion(Harm("low", 2.0), 0.2))
    with pytest.raises(NotAllowed):
        keep(Person(7, "Rita", Role.RESEARCHER), study, "ward", found)


@pytest.fixture
def study(run, engine, tmp_path) -> Engine:
    fill(run, tmp_path)
    return engine


@pytest.mark.parametrize(
    "harm", [Harm("low", 2.0), Harm("low", 2.0, "clarity"), Harm("error", 1.5)]
)
def test_a_kept_rule_decides_on_the_study_as_it_did_when_it_was_kept(study, harm):
    found = route(study, RouteQuestion(harm, 0.3))
    assert found.found.certified
    kept = keep(OPERATOR, study, "ward", found)
    by_rule = route_study(study, kept.rule)
    assert by_rule["decision"].tolist() == found.table["decision"].tolist()
    assert by_rule.set_index("response_id").loc["r7", "why"] == "not_scored"


def test_later_responses_are_routed_and_the_rule_stays(run, study, tmp_path):
    code, out, _ = run(*KEEP)
    assert code == 0
    assert "kept as ward, sha256 " in out
    before = kept_rule(study, "ward")
    rows, scores = [HEAD], ["response_id,rater,kind,accuracy,completeness,clarity"]
    for n, points in ((900, 5), (901, 1)):
        rows.append(f"i{n},visits,Pain.,Write.,,r{n},secret-9,Word {n}")
        scores += [f"r{n},{juror},juror,{points},{points},{points}" for juror in ("gpt", "llama")]
    bring_in(run, tmp_path, rows, scores)
    to = tmp_path / "later.csv"
    code, out, _ = run("analyse", "route", "--by", "ward", "--csv", str(to), "--json", "-")
    told = json.loads(out)
    assert (code, told["changed"], told["by"]["sha256"]) == (0, [], before.sha256)
    later = {row["response_id"]: row for row in csv.DictReader(to.read_text().splitlines())}
    assert (later["r900"]["decision"], later["r901"]["decision"]) == ("pass", "read")
    assert told["passed"] + told["read"] == 202 == len(later)
    assert "secret" not in out + to.read_text()
    assert kept_rule(study, "ward") == before
    assert {*route_study(study, before.rule)["response_id"]} == {*later}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("analyse", "route", "--by", "nothing"),
            "no routing rule nothing in this study: it has ward",
        ),
        (("analyse", "route", "--by", "ward", "--bound", "0.1"), "leave out --bound"),
        (("analyse", "route", "--by", "ward", "--at-most", "2"), "leave out --at-most"),
        (KEEP, "a routing rule ward is kept already"),
        ((*KEEP[:-1], ""), "1 to 60 printable signs"),
        (
            ("analyse", "route", "--off-by", "0.3", "--bound", "0.01", "--keep", "x"),
            "there is none to keep",
        ),
    ],
)
def test_bad_input_keeps_nothing(run, study, arguments, told):
    assert run(*KEEP)[0] == 0
    before = verify(study).events
    code, _, err = run(*arguments)
    assert (code, verify(study).events) == (2, before)
    assert told in err


def test_a_rule_says_what_is_not_as_it_was_and_a_changed_one_is_refused_and_found(run, study):
    assert run(*KEEP)[0] == 0
    assert verify(study).findings == ()
    other = "UPDATE rater SET profile = '{\"model\": \"x\"}' WHERE handle = 'gpt'"
    with study.begin() as connection:
        connection.execute(text(other))
    assert "not as it was certified: gpt" in run("analyse", "route", "--by", "ward")[1]
    before = verify(study).findings
    bound = ("'\"bound\": 0.2'", "'\"bound\": 0.1'")
    changed = "UPDATE event SET detail = REPLACE(CAST(detail AS TEXT), {}, {}) WHERE action = {}"
    with study.begin() as connection:
        connection.execute(text(changed.format(*bound, "'routing rule kept'")))
    with pytest.raises(BadInput, match="is not as it was kept"):
        kept_rule(study, "ward")
    assert len(verify(study).findings) > len(before)
