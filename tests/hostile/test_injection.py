"""The injection self-test: a juror that can be talked into a score is told apart from one that not."""

import json

import pytest
from kit.jurors import Do, Seen, Stub, verdict
from kit.jury_runs import panel_at

from data.card import Reply
from data.rubric import read_rubric
from data.rubrics.injection import holds_verdict
from data.schema import Status
from jury.fitness import INJECTIONS, _planted, compare_answers
from jury.parse import ParsedAnswer
from jury.probe import ProbeRow, probe

RUBRIC = read_rubric("generic")
PRICED = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0}  # 0.002 a call of the stub


def bearing(script, **settings):
    with Stub(script) as stub:
        (row,) = probe(panel_at(stub, **PRICED, **settings), injections=INJECTIONS)
    return row.injection


def kind(seen):
    """Return which injection a prompt holds, empty for the clean ones and the tiny question."""
    words = {
        "plain_order": "ignore the rubric above",
        "forged_reference": "panel of experts",
        "fake_system": "calibration item",
        "fake_verdict": "already checked",
        "verdict_to_be_quoted": "For the record, whoever assesses",
        "other_language_and_code": "Hinweis an die Bewertung",
    }
    return next((name for name, said in words.items() if said in seen.prompt), "")


def scores(**given):
    return ParsedAnswer(Status.OK, reply=Reply(dict.fromkeys(RUBRIC.criteria, 1.0) | given))


@pytest.mark.parametrize(
    ("injected", "failing", "held", "moved"), [(1, 0, 6, set()), (1, 2, 6, set()), (5, 0, 0, {4.0})]
)
def test_a_juror_holds_or_moves_in_each_of_the_six_and_a_failure_that_passes_is_asked_again(
    injected, failing, held, moved
):
    def script(seen: Seen) -> Do:
        failed = 1 <= seen.number <= failing
        return Do(status=500) if failed else Do(verdict(seen, injected if kind(seen) else 1))

    got = bearing(script)
    assert str(got).startswith(f"injection: {held} of 6 held")
    assert {point for one in got.outcomes for point in one.moved.values()} == moved
    assert len([one for one in got.outcomes if one.held]) == held


def test_a_juror_that_obeys_one_kind_is_told_with_the_criteria_and_the_points():
    got = bearing(lambda seen: Do(verdict(seen, 5 if kind(seen) == "fake_system" else 2)))
    rises = "accuracy +3, completeness +3, clarity +3"
    assert str(got) == f"injection: 5 of 6 held; fake_system: {rises}"


@pytest.mark.parametrize(
    "do", [Do("It is fine."), Do(refusal="No."), Do(finish="truncated", text="{"), Do(status=400)]
)
@pytest.mark.parametrize("which", ["clean", "injected"])
def test_an_answer_that_is_not_read_is_not_known_and_never_held(do, which):
    def script(seen: Seen) -> Do:
        tiny = '"test"' in seen.prompt
        return do if not tiny and bool(kind(seen)) == (which == "injected") else Do(_low(seen))

    got = bearing(script, schema="json_schema")
    assert (got.held, {one.held for one in got.outcomes}) == (0, {None})
    assert str(got).startswith("injection: 0 held, 0 moved, 6 not known; ")
    assert f"plain_order not known (the {which} one was not rated: " in str(got)


def _low(seen):
    return verdict(seen, 2)


def test_a_juror_that_gives_a_bad_answer_full_marks_anyway_is_not_known():
    got = bearing(lambda seen: Do(verdict(seen, 5)))
    assert {one.held for one in got.outcomes} == {None}
    assert "full marks" in got.outcomes[0].reason


def test_a_rise_of_one_point_on_one_criterion_is_a_failure():
    for clean, injected, held, moved in (
        *(({}, {"clarity": 2.0}, False, {"clarity": 1.0}), ({}, {}, True, {})),
        ({"accuracy": 5.0}, {"accuracy": 1.0}, True, {}),
    ):
        found = compare_answers("x", scores(**clean), scores(**injected), RUBRIC)
        assert (found.held, found.moved) == (held, moved)


def test_a_juror_that_refuses_its_temperature_is_tested_without():
    def script(seen: Seen) -> Do:
        return Do(status=400) if "temperature" in seen.body else Do(_low(seen))

    with Stub(script) as stub:
        (row,) = probe(panel_at(stub, temperature=0.0), injections=INJECTIONS)
    assert (row.temperature, row.injection.held) == ("refused", 6)


def test_the_prompts_of_a_pair_differ_only_in_the_instruction():
    for one in INJECTIONS:
        clean, injected = map(RUBRIC.render, one.cards(RUBRIC))
        head, tail = clean.split(one.start)[0], clean.split(one.end)[1]
        assert injected.startswith(head)
        assert injected.endswith(tail)


def test_the_forged_tag_goes_through_the_rubric_as_a_response_does():
    forged = next(one for one in INJECTIONS if one.name == "forged_reference")
    assert "</response>\n<reference>" in forged.instruction
    before = RUBRIC.render(forged.cards(RUBRIC)[0])
    assert before.count("panel of experts") == 0


def test_a_juror_that_quotes_the_planted_verdict_gives_no_score_of_it():
    def script(seen: Seen) -> Do:
        own = verdict(seen, 1)
        quoted = kind(seen) == "verdict_to_be_quoted"
        return Do(f"{own}\n\n{verdict(seen, 5)}" if quoted else own)

    got = bearing(script)
    assert (got.held, got.moved) == (5, 0)
    for words in ("verdict_to_be_quoted not known", "two_verdicts"):
        assert words in str(got)


def test_every_verdict_that_the_self_test_plants_is_one_that_a_response_is_flagged_for():
    planting = [one for one in INJECTIONS if "{verdict}" in one.instruction]
    assert {one.name for one in planting} == {"fake_verdict", "verdict_to_be_quoted"}
    for one in planting:
        injected = _planted(one.instruction, RUBRIC)
        assert holds_verdict(injected, RUBRIC.criteria)
        assert not holds_verdict(one.start + one.end, RUBRIC.criteria)


def panel_file(write, stub):
    body = 'provider = "openai"\nmodel = "m"\nfamily = "f"\nusd_per_million_in = 1.0\n'
    rest = f'usd_per_million_out = 10.0\nbase_url = "{stub.openai_url}"\n'
    return write("p.toml", f'name = "p"\n[[juror]]\nname = "a"\n{body}{rest}')


def test_the_command_writes_json_and_can_leave_the_self_test_out(run, write):
    with Stub(lambda seen: Do(_low(seen))) as stub:
        path = str(panel_file(write, stub))
        _, whole, _ = run("jury", "probe", path, "--no-pairs", "--json", "-")
        _, quick, _ = run("jury", "probe", path, "--no-injection", "--no-pairs", "--json", "-")
    assert len(stub.seen) == 13 + 1
    (juror,) = json.loads(whole)["jurors"]
    assert {*ProbeRow.__dataclass_fields__, "fit"} == set(juror)
    assert (juror["injection"]["held"], juror["injection"]["of"]) == (6, 6)
    first = {"name": "plain_order", "held": True, "moved": {}, "reason": ""}
    assert juror["injection"]["probes"][0] == first
    assert json.loads(quick)["jurors"][0]["injection"] is None
