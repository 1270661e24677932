"""Claims: split once, judged against the source, gain and price beside the plain jury; who corrects and sees them."""

import json
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kit.claims_study import SPLIT, correct, figures, fill, judged_run, juror, panel_of
from kit.jurors import Seen, Stub
from kit.jury_runs import HASTY, panel_at
from kit.jury_runs import run as run_plain
from kit.studies import Run
from sqlalchemy import Engine

from annotate.screens import claims as claims_screen
from annotate.screens.workbench_response import prompt_of
from data.card import Reply
from data.claims import fault
from data.errors import BadInput, BadPanel, BadRubric, NotAllowed, Unknown
from data.person import OPERATOR
from data.queries import check_code, next_task, opened_response
from data.queries.claims import (
    claims_on,
    claims_to_check,
)
from data.queries.costs import study_spending
from data.queries.jury import missing_verdicts
from data.queries.record import verify
from data.schema import ClaimOrigin
from data.store import assign, invite, submit
from data.store.assignments import Slot
from data.store.claims import correct_claims
from jury.budget import Budget
from jury.claims_run import run_claims
from jury.panel import juror_toml, panel_toml, read_panel
from jury.panel_parts import Claims
from jury.splitting import likely_claims
from medjury.cli.commands import BY_NAME


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(juror) as server:
        yield server


def asked_to_split(stub: Stub) -> list[Seen]:
    return [seen for seen in stub.seen if seen.prompt.startswith(SPLIT)]


def test_the_sentences_of_a_text_are_claims_of_it_with_their_numbers_whole() -> None:
    text = "Next steps\n1. Stop it: sodium 2.9. Check at once!\n- Dr. Rao agrees?\n2.\n"
    said = [one.claim for one in likely_claims(text)]
    assert said == [
        "Next steps",
        "Stop it: sodium 2.9.",
        "Check at once!",
        "- Dr.",
        "Rao agrees?",
    ]
    assert fault(likely_claims(text), text) == ""


def test_claims_repair_a_planted_weakness_and_gain_and_price_stand_side_by_side(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1)
    panel = panel_of(stub)
    result = judged_run(engine, panel)
    assert (result.split.rated, result.judged.rated, result.judged.missing) == (60, 120, 0)
    found = figures(engine, panel)
    row = found.compared.row
    assert found.compared.decision.kind.value == "first_better"
    assert row.icc_a > 0.8 > 0.4 > row.icc_b
    assert 0 < row.low < row.difference < row.high
    assert (found.n_both, found.counts.mean, found.counts.n_responses) == (60, 8, 60)
    price = found.price
    assert (price.plain.calls, price.split.calls, price.judged.calls) == (120, 60, 120)
    assert price.usd_ratio == pytest.approx(2.5)
    assert study_spending(engine).usd == pytest.approx(price.whole.usd)
    assert verify(engine).findings == ()


def test_judges_that_see_no_more_than_the_plain_verdict_gain_nothing(
    engine: Engine, tmp_path: Path
) -> None:
    fill(engine, tmp_path, seed=2)
    with Stub(partial(juror, blind_judges=True)) as stub:
        panel = panel_of(stub)
        judged_run(engine, panel)
        found = figures(engine, panel)
    assert found.compared.decision.kind.value == "inconclusive"
    assert found.compared.row.low < 0 < found.compared.row.high


def test_nothing_is_paid_twice_and_a_corrected_list_alone_is_judged_again(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=4)
    panel = panel_of(stub)
    judged_run(engine, panel)
    calls = len(stub.seen)
    again = judged_run(engine, panel)
    assert (len(stub.seen), again.split.calls, again.judged.rated) == (calls, 0, 8)
    assert missing_verdicts(engine) == []


def test_a_corrected_list_is_judged_again_and_until_then_told_as_outdated(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=20)
    panel = panel_of(stub)
    judged_run(engine, panel)
    correct(engine, 1)
    [judged] = claims_on(OPERATOR, engine, 1)
    assert (judged.versions, judged.outdated, judged.verdicts) == (2, ("a.claims", "b.claims"), {})
    assert figures(engine, panel).counts.n_outdated == 1
    calls = len(stub.seen)
    judged_run(engine, panel)
    assert len(stub.seen) == calls + 2  # each judge, about the one response
    counts = figures(engine, panel).counts
    assert (counts.n_outdated, counts.n_corrected, counts.n_claims) == (0, 1, 20 * 8 - 1)
    [judged] = claims_on(OPERATOR, engine, 1)
    assert {len(own) for own in judged.verdicts.values()} == {7}
    assert "Finding 0 was" in next(iter(judged.verdicts.values()))[0].evidence
    assert verify(engine).findings == ()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"claim": "It is so", "quote": "not there"}], "the words it quotes do not stand"),
        ([{"claim": "It is 77", "quote": "Finding 0 is"}], "has a number that does not stand"),
        ([{"claim": "", "quote": "Finding 0 is"}], "number 1: claim"),
        ([{"claim": "A", "quote": "Finding 0"}] * 2, "says the same as claim 1"),
    ],
)
def test_a_list_that_cannot_be_of_the_response_is_refused_and_nothing_is_stored(
    engine: Engine, tmp_path: Path, stub: Stub, rows: list[dict[str, str]], said: str
) -> None:
    fill(engine, tmp_path, seed=1, count=1)
    judged_run(engine, panel_of(stub))
    with pytest.raises(BadInput, match=said):
        correct_claims(OPERATOR, engine, 1, "a", rows)
    with pytest.raises(Unknown, match="no claims of it by b"):
        correct_claims(OPERATOR, engine, 1, "b", [{"claim": "So", "quote": "Finding"}])
    assert claims_on(OPERATOR, engine, 1)[0].versions == 1
    assert verify(engine).findings == ()


def test_a_cap_is_kept_over_all_three_steps_and_the_run_goes_on_later(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=20)
    panel = panel_of(stub)
    run_plain(engine, panel)
    before = study_spending(engine).usd
    for most in (0.05, 0.05, 1.0):
        run_claims(engine, panel, budget=Budget(most), patience=HASTY)
        assert study_spending(engine).usd <= before + most
        before = study_spending(engine).usd
    assert missing_verdicts(engine) == []
    assert len(asked_to_split(stub)) == 20


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"splitter": "z"}, "'z' is no juror here"),
        ({"splitter": "a", "formula": "best"}, "'best' is none of share, points"),
        ({}, "name a juror of this panel as splitter"),
        ({"splitter": "a", "price": 1}, "claims, price: no such key; the keys are splitter,"),
    ],
)
def test_claims_that_nobody_can_make_are_refused_with_the_panel(
    stub: Stub, tmp_path: Path, claims: dict[str, Any], said: str
) -> None:
    path = tmp_path / "p.toml"
    table = "\n".join(f"{name} = {json.dumps(value)}" for name, value in claims.items())
    path.write_text(f'name = "p"\n[claims]\n{table}\n' + juror_toml(panel_at(stub).juror[0]))
    with pytest.raises(BadPanel, match=said):
        read_panel(path)


def test_a_panel_of_claims_is_written_as_it_was_read(stub: Stub, tmp_path: Path) -> None:
    own = panel_at(stub, "s").juror[0]
    panel = panel_of(stub).model_copy(update={"splitter": own, "claims": Claims()})
    path = tmp_path / "p.toml"
    path.write_text(panel_toml(panel))
    assert read_panel(path) == panel
    assert read_panel(path).jury == ("a.claims", "b.claims")
    assert read_panel("simulated").jury == tuple(one.name for one in read_panel("simulated").juror)


def test_the_splitter_s_host_is_announced_and_refused_before_anything_is_sent(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=1)
    far = panel_at(stub, "s").juror[0].model_copy(update={"base_url": "https://other.example/v1"})
    panel = panel_of(stub).model_copy(update={"splitter": far, "claims": Claims()})
    assert "other.example" in panel.hosts()
    with pytest.raises(BadPanel, match=r"other\.example"):
        run_plain(engine, panel)
    assert stub.seen == []


def test_the_command_does_both_steps_and_tells_gain_and_price(
    run: Run, engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=25)
    path = tmp_path / "p.toml"
    path.write_text(panel_toml(panel_of(stub)))
    code, out, err = run("jury", "run", str(path), "--estimate", "--json", "-")
    assert code == 0, err
    rows = {one["juror"]: one["calls"] for one in json.loads(out)["jurors"]}
    assert rows == {"a": 25, "b": 25, "a (splits)": 25, "a.claims": 25, "b.claims": 25}
    assert stub.seen == []
    for option in (("--batch",), ("--replicates", "2")):
        code, _, err = run("jury", "run", str(path), *option)
        assert (code, option[0] in err) == (2, True)
    code, out, err = run("jury", "run", str(path), "--json", "-")
    assert code == 0, err
    body = json.loads(out)
    assert (body["jurors"], body["rated"], body["calls"]) == (4, 100, 125)
    name, _, example = BY_NAME["analyse claims"].example.partition(" ")
    assert read_panel(name).claims
    code, out, err = run("analyse", "claims", str(path), *shlex.split(example), "--json", "-")
    assert code == 0, err
    body = json.loads(out)
    assert body["first"] == ["a.claims", "b.claims"]
    assert body["low"] < body["difference"] < body["high"]
    assert body["usd"]["claims"]["usd"] == pytest.approx(study_spending(engine).usd)
    assert body["claims"]["mean"] == 8
    assert "times what the plain jury costs" in " ".join(err.split())
    assert run("analyse", "calibrate", "--panel", str(path), "--reps", "20")[0] == 0
    assert run("analyse", "claims", "simulated")[0] == 2


def test_other_tools_and_learning_refuse_claims_plainly(
    run: Run, engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=4)
    path = tmp_path / "p.toml"
    path.write_text(panel_toml(panel_of(stub)))
    export = ("share", "rubric", "generic", "--to", "inspect", "--panel", str(path), "--out")
    for command in ((*export, str(tmp_path / "out")), ("jury", "improve", str(path), "--estimate")):
        code, _, err = run(*command)
        assert (code, "from claims" in " ".join(err.split())) == (2, True), err
    points = panel_of(stub, criterion="kindness")
    with pytest.raises(BadRubric, match="has no criterion 'kindness'"):
        run_claims(engine, points)


def test_a_clinician_reaches_claims_only_of_what_they_rated_and_no_juror_s_answers(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=2)
    judged_run(engine, panel_of(stub))
    [invited] = invite(engine, ["dr_new"])
    assign(engine, [Slot("dr_new", key, key) for key in (1, 2)], seed=0)
    person = check_code(engine, invited.code).person
    assert person is not None
    assert person.rater is not None
    assert claims_to_check(person, engine) == {}
    assert claims_on(person, engine, 1) == []
    rows = [{"claim": "Finding 0 is so", "quote": "Finding 0"}]
    with pytest.raises(NotAllowed):
        correct_claims(person, engine, 1, "a", rows)
    task = next_task(engine, person.rater).task
    assert task is not None
    submit(engine, person.rater, task.card.code, Reply(dict.fromkeys(task.rubric.criteria, 3.0)))
    [key] = claims_to_check(person, engine)
    [judged] = claims_on(person, engine, key)
    assert (judged.verdicts, judged.derived, judged.outdated) == ({}, {}, ())
    assert correct_claims(person, engine, key, "a", rows)
    assert claims_on(OPERATOR, engine, key)[0].origin == ClaimOrigin.PEOPLE
    assert verify(engine).findings == ()


def test_the_workbench_shows_each_verdict_with_its_words_and_no_markup_of_a_text(
    engine: Engine, tmp_path: Path, stub: Stub
) -> None:
    fill(engine, tmp_path, seed=1, count=1)
    judged_run(engine, panel_of(stub))
    [judged] = claims_on(OPERATOR, engine, 1)
    text = claims_screen.table(judged)
    assert text.count("a.claims") == 1
    assert "supported" in text
    assert "contradicted" in text
    assert "Finding 0 was" in text
    assert "Derived: a.claims" in claims_screen.about(judged)
    opened = opened_response(OPERATOR, engine, 1)
    assert opened is not None
    calls = [one for one in opened.calls if one.juror == "a.claims"]
    assert [prompt_of(one, []).exact for one in calls] == [True]
