"""Juries that learn: parts that share nothing, what is planted is found, what says nothing gains nothing."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import HASTY, panel_at, stored
from kit.learning_study import PROPOSAL, RULE, SHOWN, fill, juror, true_gain
from scipy import stats
from sqlalchemy import Engine
from sqlmodel import select

from calibration.learning import LEAST, SHARES, part_gain, split_instances
from data.errors import BadInput, TooFew
from data.person import OPERATOR
from data.schema import Attempt, Purpose
from data.study.compare import opened_response
from data.study.costs import study_spending
from data.study.improving import improvements, learned_rubric
from data.study.rubrics import rubrics_known
from data.study.runs import own_panels
from data.study.standing import benchmarks
from data.study.verify import verify
from jury.panel import Panel, panel_toml, read_panel
from jury.run import run_panel
from medjury.services.improving import ImproveQuestion, Outcome, estimate_improvement, improve

PRICED = {"usd_per_million_in": 1.0, "usd_per_million_out": 1.0}
LATE = Do(status=504, headers={"retry-after-ms": "1"})  # timed out, and may be asked again at once


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(juror) as server:
        yield server


def asked(stub: Stub, **options: Any) -> ImproveQuestion:
    panel = panel_at(stub, "a", "b", **PRICED)
    return ImproveQuestion(panel, **{"rounds": 1, "examples": 0} | options)


def improved(engine: Engine, question: ImproveQuestion) -> dict[str, Any]:
    return improve(engine, question, patience=HASTY)


def is_proposal(seen: Seen) -> bool:
    return seen.prompt.startswith(PROPOSAL)


def proposals(stub: Stub) -> list[Seen]:
    return list(filter(is_proposal, stub.seen))


def test_a_planted_misreading_is_found_and_repaired(engine, tmp_path, stub):
    fill(engine, tmp_path, seed=1)
    found = improved(engine, asked(stub))
    gain = found["parts"]["test"]
    assert found["outcome"] == Outcome.BETTER
    assert gain["low"] <= true_gain(("a", "b")) <= gain["high"]
    assert any(RULE in line for line in found["diff"])
    assert rubrics_known(engine)[found["rubric"]["sha256"]].criterion[0].guidance == RULE
    assert verify(engine).findings == ()


def test_comments_that_say_nothing_gain_nothing(engine, tmp_path, stub):
    fill(engine, tmp_path, seed=2, comments=False)
    found = improved(engine, asked(stub, rounds=2))
    assert found["outcome"] != Outcome.BETTER


def test_no_text_of_choose_or_test_reaches_proposer_or_rubric(engine, tmp_path, stub):
    fill(engine, tmp_path, seed=3)
    question = asked(stub, rounds=2, examples=3)
    expected = estimate_improvement(engine, question)
    assert (improvements(engine), stub.seen) == ([], [])
    found = improved(engine, question)
    assert len(stub.seen) - len(proposals(stub)) <= expected["verdicts"]
    assert len(proposals(stub)) <= 2 * expected["proposals"]  # each may be asked for once more
    [kept] = improvements(engine)
    seen_by_proposer = {int(n) for one in proposals(stub) for n in SHOWN.findall(one.prompt)}
    rubric = rubrics_known(engine)[found["rubric"]["sha256"]]
    in_rubric = {int(n) for n in SHOWN.findall(rubric.criteria_text())}
    trained = {key - 1 for key in kept.split["train"]}  # instances are numbered from 1
    assert seen_by_proposer
    assert seen_by_proposer | in_rubric <= trained


def test_the_learned_jury_never_rates_or_learns_from_what_it_learned_from(engine, tmp_path, stub):
    fill(engine, tmp_path, seed=1)
    found = improved(engine, asked(stub))
    learned = learned_rubric(engine, found["rubric"]["sha256"])
    assert len(learned.responses) == 60 - found["split"]["test"]["responses"]
    before, panel = len(stub.seen), kept_panel(tmp_path, found)
    result = run_panel(engine, panel, patience=HASTY)
    assert (result.missing, result.rated) == (0, 2 * found["split"]["test"]["responses"])
    with pytest.raises(BadInput, match="has learned already"):
        improved(engine, replace(asked(stub), panel=panel))
    assert len(stub.seen) == before
    [kept] = improvements(engine)
    opened = opened_response(OPERATOR, engine, kept.split["test"][0])  # one response an instance
    by_juror = {call.juror: RULE in call.rubric.criteria_text() for call in opened.calls}
    assert by_juror == {"a": False, "b": False, **dict.fromkeys(found["jurors"], True)}


def kept_panel(folder: Path, found: dict[str, Any]) -> Panel:
    path = folder / "learned.toml"
    path.write_text(found["panel_file"], "utf-8")
    return read_panel(path)


def test_asked_again_it_is_read_back_and_the_test_is_not_opened_twice(engine, tmp_path, stub):
    fill(engine, tmp_path, seed=1)
    first = improved(engine, asked(stub))
    calls = len(stub.seen)
    again = improved(engine, asked(stub))
    assert (again, len(stub.seen)) == (first, calls)
    assert json.loads(json.dumps(first)) == first
    other = improved(engine, asked(stub, rounds=2))
    assert other["opened_before"] == 1
    assert first["opened_before"] == 0


def test_a_proposer_that_fails_leaves_all_as_it_is_and_its_money_is_told(engine, tmp_path, run):
    fill(engine, tmp_path, seed=1)
    before = [one.rubric.sha256 for one in benchmarks(engine)]
    path, out = tmp_path / "p.toml", tmp_path / "out"
    told, unknown = 0.0, 0
    broken = (Do(text="I would rather not."), Do(finish="truncated", text="{"), LATE)
    for number, answer in enumerate(broken, 1):
        script = lambda seen, a=answer: a if seen.prompt.startswith(PROPOSAL) else juror(seen)  # noqa: E731
        with Stub(script) as stub:
            path.write_text(text := panel_toml(panel_at(stub, "a", "b", **PRICED)), "utf-8")
            call = ("jury", "improve", str(path), "--rounds", "1", "--examples", "0")
            options = ("--seed", str(number), "--out", str(out), "--json", "-")
            code, said, err = run(*call, *options)
            asked_for = len(proposals(stub))
        body = json.loads(said)
        told, unknown = told + body["usd"], unknown + body["usd_unknown"]
        line = f"spent in this run: {body['usd']:.4f} USD"
        assert line in " ".join(err.split()), err
        proposed = stored(engine, select(Attempt).where(Attempt.purpose == Purpose.RUBRIC))
        rows = [row for row in proposed if row.improvement == body["id"]]
        assert len([row for row in rows if row.number]) == asked_for > 0
        assert all(row.reason for row in rows)
        paid = [row.usd for row in rows]
        if answer is LATE:  # nobody knows what a call that timed out has cost
            assert (code, paid, body["usd_unknown"]) == (1, [None] * len(paid), len(paid))
        else:
            assert sum(usd or 0.0 for usd in paid) > 0
        assert body["rubric"]["sha256"] in before
        assert (body["panel"], path.read_text("utf-8")) == ("p", text)
        assert not out.exists()
    assert [one.rubric.sha256 for one in benchmarks(engine)] == before
    assert own_panels(OPERATOR, engine) == {}
    spent = study_spending(engine)
    assert (spent.known, spent.in_flight) == (pytest.approx(told), unknown)
    assert spent.usd > spent.known  # the study counts at its worst what nobody knows
    assert verify(engine).findings == ()


NONSENSE = ['{"guidance": {"accuracy": "x"}, "anchors": {}, "why": ""}', '{"guidance": 3}']


@pytest.mark.parametrize("answer", ["I would rather not.", "{}", *NONSENSE])
def test_a_proposer_that_answers_nonsense_changes_nothing(engine, tmp_path, stub, answer):
    fill(engine, tmp_path, seed=1)
    told = {"text": answer}
    stub.script = lambda seen: replace(juror(seen), **(told if is_proposal(seen) else {}))
    found = improved(engine, asked(stub))
    assert len(proposals(stub)) == 2  # it is asked once more, with the reason
    assert found["outcome"] == Outcome.NONE_BETTER
    assert found["tried"][0]["reason"]
    assert found["usd"] > 0
    assert improvements(engine)[0].opened is None
    assert verify(engine).findings == ()


def test_a_proposer_that_breaks_off_stops_it_and_it_goes_on_later(engine, tmp_path, stub):
    fill(engine, tmp_path, seed=1)
    stub.script = lambda seen: Do(drop=True) if is_proposal(seen) else juror(seen)
    question = asked(stub)
    found = improved(engine, question)
    assert found["outcome"] == Outcome.STOPPED
    assert "proposed nothing in round 1" in found["stopped"]
    stub.script, calls = juror, len(stub.seen)
    found = improved(engine, question)
    assert found["outcome"] != Outcome.STOPPED
    rated_again = [seen for seen in stub.seen[calls:] if RULE not in seen.prompt]
    test = found["split"]["test"]["responses"]
    assert len(rated_again) == 1 + 2 * test  # the proposal, and the jury as it is on the test part
    assert len(improvements(engine)) == 1


@pytest.mark.parametrize(
    ("max_usd", "tokens", "why"),
    [(0.05, None, "the cap is reached"), (None, (1000, 100), "it has read a part of the text")],
    ids=["a cap", "a host that read a part of the question"],
)
def test_a_cap_or_a_part_read_stops_it_before_anything_is_learned(
    engine, tmp_path, max_usd, tokens, why
):
    fill(engine, tmp_path, seed=1)
    with Stub(lambda seen: replace(juror(seen), tokens=tokens or juror(seen).tokens)) as stub:
        found = improved(engine, asked(stub, max_usd=max_usd))
    assert (found["outcome"], why in found["stopped"]) == (Outcome.STOPPED, True)
    assert max_usd is None or study_spending(engine).usd <= max_usd
    [kept] = improvements(engine)
    assert (kept.opened, kept.learned) == (None, None)


def test_another_proposers_host_and_too_few_instances_are_refused_unsent(engine, tmp_path, stub):
    fill(engine, tmp_path, seed=1, count=20)
    question = asked(stub)
    with pytest.raises(TooFew, match="about 40 instances"):
        improved(engine, question)
    elsewhere = question.panel.juror[0].model_copy(update={"base_url": "http://127.0.0.1:9/v1"})
    panel = question.panel.model_copy(update={"proposer": elsewhere})
    with pytest.raises(BadInput, match="receives no text"):
        improved(engine, replace(question, panel=panel))
    assert (stub.seen, improvements(engine)) == ([], [])


def test_the_learned_rubric_is_what_an_export_writes(engine, tmp_path, stub, run):
    fill(engine, tmp_path, seed=1)
    found = improved(engine, asked(stub, examples=2))
    kept_panel(tmp_path, found)
    out = tmp_path / "export"
    call = ["share", "rubric", "generic", "--panel", str(tmp_path / "learned.toml")]
    code, said, err = run(*call, "--to", "medjury", "--out", str(out), "--reps", "50")
    assert code == 0, err
    written = "".join(path.read_text("utf-8") for path in out.iterdir())
    assert RULE in written
    rubric = rubrics_known(engine)[found["rubric"]["sha256"]]
    assert ("responses of this study" in said) == bool(rubric.example)


def strata(n: int = 100) -> dict[int, tuple[str, int]]:
    return {number: ("visits" if number % 3 else "notes", number % 5 // 2) for number in range(n)}


def test_every_instance_is_in_one_part_by_the_seed_alone_and_too_few_are_refused():
    parts = split_instances(strata(), seed=1)
    assert sorted(sum(parts.values(), ())) == list(range(100))
    assert [len(parts[name]) for name in SHARES] == [40, 25, 35]
    for benchmark in ("visits", "notes"):
        members = [one for one in range(100) if strata()[one][0] == benchmark]
        trained = len(set(members) & set(parts["train"]))
        assert abs(trained - 0.4 * len(members)) < 3
    turned = dict(reversed(strata().items()))
    assert split_instances(turned, seed=1) == split_instances(strata(), seed=1)
    assert split_instances(strata(), seed=2) != split_instances(strata(), seed=1)
    with pytest.raises(TooFew, match="about 40 instances"):
        split_instances(strata(30), seed=1)
    parts = split_instances(strata(40), seed=1)
    assert min(map(len, parts.values())) >= LEAST


def test_one_response_an_instance_gives_the_paired_t_interval():
    random = np.random.default_rng(3)
    clinicians, before, after = random.normal(3, 1, (3, 40))
    found = part_gain(clinicians, before, after, np.arange(40))
    gains = np.abs(before - clinicians) - np.abs(after - clinicians)
    by_scipy = stats.ttest_1samp(gains, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(by_scipy), abs=1e-12)
    assert found.gain == pytest.approx(found.before - found.after, abs=1e-12)


def test_a_response_without_a_juror_is_left_out_and_counted():
    whole, lacking = np.array([3.0, 2.0, 4.0]), np.array([1.0, np.nan, 4.0])
    found = part_gain(whole, lacking, whole, np.array([7, 8, 9]))
    assert (found.n_responses, found.n_instances, found.n_missing) == (2, 2, 1)
    assert (found.before, found.after) == (1.0, 0.0)
    nothing = part_gain(whole, whole * np.nan, whole, np.array([7, 8, 9]))
    assert nothing.n_responses == 0
    assert np.isnan(nothing.gain)
    assert not nothing.is_shown


def test_the_interval_covers_the_true_gain_with_responses_that_share_instances():
    random, covered = np.random.default_rng(5), 0
    instances = np.repeat(np.arange(35), 3)
    true_gain = 0.4 * np.sqrt(2 / np.pi)  # of two absolute normal errors, of 1.0 and 0.6
    for _ in range(1000):
        shared = np.repeat(random.normal(0, 1, 35), 3)
        before = 0.5**0.5 * (shared + random.normal(0, 1, 105))
        after = 0.6 * random.normal(0, 1, 105)
        found = part_gain(np.zeros(105), before, after, instances)
        covered += found.low <= true_gain <= found.high
    assert 930 <= covered <= 970
