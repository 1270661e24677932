"""What figures make of jurors who judge claims: their whole price, their seat, and lists corrected since."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.claims_study import SPLIT, correct, figures, fill, judged_run, juror, panel_of
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import run as run_plain
from kit.studies import Run
from sqlalchemy import Engine

from annotate.screens.controls import panels_heard
from calibration.values import AnalysisOptions
from data.person import OPERATOR
from data.queries.claims import claims_on
from data.queries.costs import juror_costs, recorded_calls
from data.queries.frames import juror_ratings, ratings_frame
from data.queries.jury import missing_verdicts
from data.queries.record import verify
from data.queries.workbench import Chosen, compared, default_jury
from data.store.claims import correct_claims
from data.store.jury_runs import keep_panel
from jury.panel import panel_toml, read_panel
from medjury.services.claims import figures_tables, juries_of_claims, jury_of
from medjury.services.juries import RankedJuries, RankingQuestion, rank_juries

BOTH = ("a", "b", "a.claims", "b.claims")


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(juror) as server:
        yield server


def ranked(engine: Engine, *jurors: str) -> RankedJuries:
    """Return every jury of some jurors, by default of those who sit."""
    options = AnalysisOptions(jurors=jurors or None, reps=50)
    return rank_juries(engine, RankingQuestion(options))


def test_a_jury_of_claims_costs_its_plain_verdicts_and_its_splitting_once(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=30)
    panel = panel_of(stub)
    judged_run(engine, panel)
    price = figures(engine, panel).price
    rows = ranked(engine, *BOTH).ranking.rows
    usd = {frozenset(row.jurors): row.usd_per_response for row in rows}
    plain, judged, split = (part.usd / 30 for part in (price.plain, price.judged, price.split))
    of_both = usd[frozenset({"a.claims", "b.claims"})]
    assert of_both == pytest.approx(plain + judged + split)
    assert usd[frozenset({"a", "b"})] == pytest.approx(plain)
    assert usd[frozenset(BOTH)] == of_both  # who gave the plain verdicts sits for nothing
    alone = usd[frozenset({"a.claims"})]
    assert alone == pytest.approx((plain + judged) / 2 + split, rel=0.05)
    cheapest = min(rows, key=lambda row: row.usd_per_response or 0)
    assert set(cheapest.jurors) in ({"a"}, {"b"})


def test_a_splitting_of_unknown_price_makes_that_of_the_jury_unknown(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=20)
    panel = panel_of(stub)
    free = panel.juror[0].model_copy(
        update={"name": "s", "usd_per_million_in": None, "usd_per_million_out": None}
    )
    claims = panel.claims.model_copy(update={"splitter": ""}) if panel.claims else None
    judged_run(engine, panel.model_copy(update={"splitter": free, "claims": claims}))
    rows = ranked(engine, "a", "a.claims").ranking.rows
    usd = {row.jurors: row.usd_per_response for row in rows}
    assert usd["a",]
    assert usd["a.claims",] is None
    assert not next(row for row in rows if row.jurors == ("a.claims",)).on_front


def test_what_the_jury_of_claims_has_cost_counts_the_calls_it_rests_on(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=4)
    panel = panel_of(stub)
    judged_run(engine, panel)
    found = {calls.juror: calls.calls for calls in recorded_calls(engine, panel.jury)}
    assert found == {"a": 4, "b": 4, "a (splits)": 4, "a.claims": 4, "b.claims": 4}
    whole = figures(engine, panel).price.whole
    calls = recorded_calls(engine, panel.jury)
    assert sum(one.usd for one in calls) == pytest.approx(whole.usd)
    assert [one.juror for one in recorded_calls(engine, ["a"])] == ["a"]
    assert juror_costs(engine)["a"].verdicts == 4


def test_by_default_the_plain_jurors_sit_and_those_of_claims_only_where_named(
    run: Run, engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=20)
    path = tmp_path / "p.toml"
    path.write_text(panel_toml(panel_of(stub)))
    judged_run(engine, panel_of(stub))
    assert set(ranked(engine).ranking.pool) == {"a", "b"}
    assert set(default_jury(engine).values()) == {"a", "b"}
    for command in (("calibrate",), ("juries",)):
        code, out, err = run("analyse", *command, "--reps", "20", "--json", "-")
        assert code == 0, err
        assert "a.claims, b.claims: judge claims" in " ".join(err.split())
        assert "a.claims" not in json.dumps(json.loads(out).get("jury", ""))
    code, _, err = run("analyse", "calibrate", "--panel", str(path), "--reps", "20")
    assert code == 0, err


def test_figures_of_simulated_jurors_say_so_in_every_table(engine: Engine, tmp_path: Path) -> None:
    fill(engine, tmp_path, seed=1, count=20)
    panel = read_panel("simulated_claims")
    judged_run(engine, panel)
    assert juries_of_claims(engine) == [jury_of(panel)]
    tables = figures_tables(figures(engine, panel))
    assert [table.caption.startswith("Simulated. ") for table in tables] == [True] * 3
    assert figures(engine, panel).compared.decision.kind.value == "simulated"


def test_a_jury_of_claims_is_found_in_the_study_and_offered_where_panels_are(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    assert juries_of_claims(engine) == []
    fill(engine, tmp_path, seed=1, count=4)
    panel = panel_of(stub)
    keep_panel(OPERATOR, engine, panel.name, panel_toml(panel))
    run_plain(engine, panel)
    assert panel.name not in panels_heard(engine, OPERATOR)
    judged_run(engine, panel)
    assert juries_of_claims(engine) == [jury_of(panel)]
    assert panels_heard(engine, OPERATOR)[panel.name].jurors == ("a.claims", "b.claims")


def score_of(engine: Engine, response: int) -> dict[str, int]:
    """Return how many ratings of each criterion count that `a.claims` gave to a response."""
    table = ratings_frame(engine)
    own = table[(table["rater"] == "a.claims") & (table["response_id"] == f"r{response}")]
    assert len(own) == len(
        juror_ratings(engine).query(f"rater == 'a.claims' and response_id == 'r{response}'")
    )
    return own["criterion"].value_counts()[lambda count: count > 0].to_dict()


def test_a_score_of_a_list_that_was_corrected_since_is_missing_everywhere_until_the_next_run(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=4)
    panel = panel_of(stub)
    judged_run(engine, panel)
    whole = {"accuracy": 1, "completeness": 1, "clarity": 1}
    chosen = Chosen(jurors=("a.claims",))
    before = compared(OPERATOR, engine, chosen)
    assert score_of(engine, 0) == whole
    correct(engine, 1)
    assert score_of(engine, 0) == {"completeness": 1, "clarity": 1}
    assert score_of(engine, 1) == whole
    after = compared(OPERATOR, engine, chosen)
    n_before, n_after = (sum(row.jury.mean is not None for row in rows) for rows in (before, after))
    assert (n_before, n_after) == (4, 3)
    missing = [(one.juror, one.response_id, one.status) for one in missing_verdicts(engine)]
    assert missing == [("a.claims", "r0", "outdated"), ("b.claims", "r0", "outdated")]
    assert "corrected" in missing_verdicts(engine)[0].reason
    assert verify(engine).findings == ()
    judged_run(engine, panel)
    assert score_of(engine, 0) == whole
    assert missing_verdicts(engine) == []


def test_a_list_that_was_corrected_back_is_judged_again(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=1)
    panel = panel_of(stub)
    judged_run(engine, panel)
    [first] = claims_on(OPERATOR, engine, 1)
    correct(engine, 1)
    judged_run(engine, panel)
    [second] = claims_on(OPERATOR, engine, 1)
    rows = [one.model_dump() for one in first.claims]
    assert correct_claims(OPERATOR, engine, 1, "a", rows)
    [third] = claims_on(OPERATOR, engine, 1)
    assert (third.derived, third.outdated) == ({}, ("a.claims", "b.claims"))
    judged_run(engine, panel)
    [last] = claims_on(OPERATOR, engine, 1)
    assert last.derived == first.derived
    assert (last.outdated, second.outdated) == ((), ())
    assert missing_verdicts(engine) == []


def test_a_verdict_that_comes_after_its_list_was_corrected_derives_nothing(
    engine: Engine, tmp_path: Path
) -> None:
    fill(engine, tmp_path, seed=1, count=1)
    corrected: list[int] = []

    def slow(seen: Seen) -> Do:
        if "<claims>\n" in seen.prompt and not seen.prompt.startswith(SPLIT) and not corrected:
            corrected.append(1)
            correct(engine, 1)
        return juror(seen)

    with Stub(slow) as stub:
        panel = panel_of(stub, "a")
        judged_run(engine, panel)
        assert corrected
        assert score_of(engine, 0) == {}
        judged_run(engine, panel)
    assert score_of(engine, 0) == {"accuracy": 1, "completeness": 1, "clarity": 1}
