"""Probing a panel: what each juror supports, and whether it scores good answers above dangerous ones."""

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.jurors import Do, Script, Seen, Stub, verdict
from kit.jury_runs import HASTY, panel_at, written

from data.card import Reply
from data.errors import BadRubric
from data.question import with_lengths
from data.rubric import Rubric, read_rubric
from data.rubrics import folder_of, shipped
from data.rubrics.pairs import MADE_UP, AnswerPair, RubricPairs, read_pairs, with_pairs
from data.schema import Status
from jury.call import Answer
from jury.fitness import INJECTIONS, Fitness, PairOutcome, chance, compare_pair, needed, pairs_for
from jury.panel import read_panel
from jury.parse import ParsedAnswer
from jury.probe import probe
from jury.session import fatal


def no_temperature(seen: Seen) -> Do:
    return Do(status=400 if "temperature" in seen.body else 200)


def cut_off(seen: Seen) -> Do:
    explains = '"explanation"' in seen.prompt
    return Do('{"test": {"expl', finish="truncated") if explains else Do('{"test": {"score": 3}}')


@pytest.mark.parametrize(
    ("script", "settings", "schema", "temperature", "calls"),
    [
        (lambda _: Do(), {"temperature": 0.0}, "json_schema", "accepted", 1),
        (lambda seen: Do(status=200 if seen.form == "text" else 500), {}, "text", "not set", None),
        (no_temperature, {"temperature": 0.0}, "json_schema", "refused", None),
        (cut_off, {}, "json_schema", "not set", 2),
        (lambda seen: Do(status=503 if seen.number < 4 else 200), {}, "json_schema", "not set", 5),
    ],
    ids=["answers", "knows no schema", "refuses a temperature", "is cut off", "is busy"],
)
def test_a_probe_tells_what_a_juror_supports_as_a_run_does(
    script, settings, schema, temperature, calls
):
    with Stub(script) as stub:
        panel = panel_at(stub, schema="auto", retires="2027-01-14", **settings)
        (row,) = probe(panel, patience=HASTY)
    assert (row.status, row.schema, row.temperature) == (Status.OK, schema, temperature)
    assert (row.returned_model, row.host) == ("a-returned", "127.0.0.1")
    assert str(row.ends) == "2027-01-14"
    assert len(stub.seen) == calls or calls is None
    assert ("refuses temperature = 0" in row.reason) is (temperature == "refused")


OPENAI = {"message": "Unsupported value", "param": "temperature", "code": "unsupported_value"}
ECHO = {"message": "too long: 'temperature 39.5 since Monday'", "param": None}


@pytest.mark.parametrize(
    ("error", "stops"),
    [
        (OPENAI, True),
        ({"message": "`temperature` is not supported by this model"}, True),
        ({"message": "Unsupported parameter: 'temperature'"}, True),
        *((error, False) for error in (ECHO, "temperature", {"message": None})),
    ],
)
def test_only_an_error_about_a_temperature_that_was_sent_stops_a_juror_for_it(error, stops):
    for sent in ({"temperature": 0.0}, {}):
        text = json.dumps({"error": error})
        why = fatal(Answer(Status.REQUEST_FAILED, "HTTP 400", text, sent, http=400))
        refuses = "the model refuses temperature = 0" in why
        assert refuses is bool(why) is (stops and bool(sent))


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("I would say three.", Status.INVALID_JSON),
        ('{"test": {"explanation": "fine", "score": 7}}', Status.OUT_OF_RANGE),
        ('{"test": {"explanation": "fine"}}', Status.MISSING_CRITERION),
    ],
)
def test_an_answer_that_cannot_be_used_twice_is_not_ok_and_ends_the_probe(text, status):
    with Stub(lambda _: Do(text)) as stub:
        (row,) = probe(panel_at(stub), injections=INJECTIONS)
    assert (row.status, row.schema, row.injection) == (status, "json_schema", None)
    assert row.reason
    assert len(stub.seen) == 2


def test_a_juror_that_does_not_answer_has_an_unknown_cost_and_has_not_passed():
    with Stub(lambda _: Do(drop=True)) as stub:
        priced = panel_at(stub, usd_per_million_in=1.0, usd_per_million_out=1.0)
        (row,) = probe(priced, patience=HASTY)
    assert (row.status, row.usd) == (Status.REQUEST_FAILED, None)
    with Stub(lambda _: Do(status=401)) as stub:
        (row,) = probe(panel_at(stub), pairs=GENERIC)
    assert (row.status, row.reason) == (Status.AUTH, "HTTP 401 some_error")
    assert (row.pairs, row.fit, row.passed, len(stub.seen)) == (None, None, False, 1)


GENERIC = read_pairs("generic")
RESPONSE = re.compile(r"<response>\n(.*)\n</response>", re.DOTALL)
DANGEROUS = {one.dangerous: one.criterion for name in with_pairs() for one in read_pairs(name).pair}


def shown(seen: Seen) -> str:
    """Return the response in a prompt, empty for the tiny question."""
    found = RESPONSE.search(seen.prompt)
    return found[1] if found else ""


def tried(script: Script, pairs: RubricPairs = GENERIC, **settings: Any) -> Fitness:
    with Stub(script) as stub:
        (row,) = probe(panel_at(stub, **settings), pairs=pairs)
    assert row.pairs is not None
    return row.pairs


def scores_of(seen: Seen, **points: int) -> Do:
    """Return a verdict of the criteria that the prompt asks for, 5 where nothing else is said."""
    whole = json.loads(verdict(seen, 5))
    given = {name: points.get(name, 5) for name in whole}
    given |= {name: min(given[name], 1) for name in whole if name == "respectful"}  # of 0 and 1
    return Do(json.dumps({name: one | {"score": given[name]} for name, one in whole.items()}))


def good(seen: Seen, missed: Sequence[AnswerPair] = ()) -> Do:
    """Score like a clinician: a danger costs its criterion, and nothing else."""
    text = shown(seen)
    criterion = None if text in {pair.dangerous for pair in missed} else DANGEROUS.get(text)
    return scores_of(seen, **({criterion: 1} if criterion else {}))


def in_turn(seen: Seen, points: Iterable[int]) -> Do:
    return scores_of(seen, **dict(zip(json.loads(verdict(seen)), points, strict=False)))


def constant(seen: Seen) -> Do:
    """Give 4/3/5 to everything."""
    return in_turn(seen, (4, 3, 5))


def guessing(seed: int) -> Script:
    chooser = np.random.default_rng(seed)
    return lambda seen: in_turn(seen, chooser.integers(1, 6, 99).tolist())


@pytest.mark.parametrize("name", with_pairs())
def test_on_every_shipped_rubric_a_good_juror_is_fit_and_one_that_says_4_3_5_to_all_is_not(name):
    got = tried(good, read_pairs(name))
    assert (got.fit, got.ordered, got.needed) == (True, 8, 7)
    got = tried(constant, read_pairs(name))
    assert (got.fit, got.ordered, got.misordered) == (False, 0, 8)
    assert all(one.good == one.dangerous for one in got.outcomes)


@pytest.mark.parametrize(
    ("script", "fit"),
    [
        *((guessing(seed), False) for seed in range(6)),
        *((partial(good, missed=GENERIC.pair[:n]), n < 2) for n in range(3)),
    ],
)
def test_a_juror_that_guesses_is_not_fit_and_a_good_one_may_miss_one_danger_only(script, fit):
    assert tried(script).fit is fit


@pytest.mark.parametrize("name", with_pairs())
@pytest.mark.parametrize("longer_is_better", [True, False])
def test_a_juror_that_scores_by_length_is_fit_on_no_shipped_rubric(name, longer_is_better):
    sign = 1 if longer_is_better else -1
    pairs = read_pairs(name)
    ordered = sum(sign * (len(one.good) - len(one.dangerous)) > 0 for one in pairs.pair)
    assert ordered < needed(len(pairs.pair))


@pytest.mark.parametrize(
    "do",
    [
        *(Do("Both are fine, I would say."), Do(refusal="I cannot judge medical texts.")),
        Do(finish="truncated", text='{"accuracy": {"expl'),
        *(Do(finish="filtered", text=""), Do(status=400), Do(status=401)),
    ],
)
def test_a_juror_whose_answers_cannot_be_read_is_not_known_and_never_fit(do):
    got = tried(lambda seen: do if shown(seen) else Do(verdict(seen)))
    assert got.fit is None
    assert (got.ordered, got.misordered, got.unknown) == (0, 0, 8)
    assert got.outcomes[0].reason.startswith("the good one was not rated: ")


def test_a_pair_that_is_not_read_counts_against_whatever_is_to_be_shown():
    ok = ParsedAnswer(Status.OK, reply=Reply({"accuracy": 3.0}))
    lost = compare_pair(GENERIC.pair[0], ok, ParsedAnswer(Status.REFUSED, "refused"))
    assert (lost.ordered, lost.good, lost.dangerous) == (None, {"accuracy": 3.0}, {})

    def fit(ordered: int, unknown: int, misordered: int) -> bool | None:
        each = [True] * ordered + [None] * unknown + [False] * misordered
        return Fitness("generic", tuple(PairOutcome("x", "d", "c", one) for one in each)).fit

    assert (fit(7, 1, 0), fit(6, 2, 0), fit(6, 1, 1)) == (True, None, None)
    assert (fit(6, 0, 2), fit(0, 6, 2)) == (False, False)


TIED = [((4, 4), (4, 4)), ((4, 5), (4, 1)), ((3, 1), (2, 2)), ((3, 1), (2, 3))]
ORDERED = [((5, 5), (1, 5)), ((3, 2), (2, 2))]


@pytest.mark.parametrize("given", [*TIED, *ORDERED])
def test_a_pair_is_ordered_by_criterion_and_composite_and_ties_are_not(given):
    replies = [Reply({"accuracy": a, "clarity": b}) for a, b in given]
    read = [ParsedAnswer(Status.OK, reply=one) for one in replies]
    assert compare_pair(GENERIC.pair[0], *read).ordered is (given in ORDERED)


def test_the_pairs_that_are_needed_are_those_of_a_sign_test_at_5_percent():
    # By hand: of 8 even odds, at least 7 in (8 + 1) / 256; of 5, all in 1 / 32; of 4, 1 / 16.
    assert (needed(8), chance(7, 8)) == (7, 9 / 256)
    assert (needed(5), chance(5, 5)) == (5, 1 / 32)
    assert needed(4) == 5  # none is rare enough
    assert chance(6, 8) == 37 / 256


def test_every_shipped_rubric_has_eight_pairs_of_many_dangers_whose_texts_forge_nothing():
    assert with_pairs() == [name for name in shipped() if not read_rubric(name).compares]
    known = [read_pairs(name) for name in with_pairs()]
    assert len({one.danger for pairs in known for one in pairs.pair}) == 7
    texts = [text for pairs in known for one in pairs.pair for text in (one.good, one.dangerous)]
    assert len(set(texts)) == 2 * 8 * len(known)
    for pairs in known:
        dangers = {one.danger for one in pairs.pair}
        assert (len(pairs.pair), len(dangers) >= 4) == (8, True)
        assert {"red flag dismissed", "invented finding"} <= dangers
        for pair in pairs.pair:
            assert bool(pair.reference) == (pairs.rubric.gold == "always")
            assert pair.reference != pair.good
            for card in pair.cards():
                assert pairs.rubric.forged(card) == ()
                assert MADE_UP in pairs.rubric.render(card)


def test_prompts_and_schema_are_those_of_a_run_and_what_cannot_be_read_is_asked_for_once_more():
    pairs = read_pairs("aci_bench")

    def script(seen: Seen) -> Do:
        return good(seen) if len(seen.body["messages"]) > 1 or not shown(seen) else Do("Fine.")

    with Stub(script) as stub:
        (row,) = probe(panel_at(stub), pairs=pairs)
    assert (row.fit, len(stub.seen)) == (True, 1 + 2 * 16)
    prompts = {pairs.rubric.render(card) for pair in pairs.pair for card in pair.cards()}
    assert {one.prompt for one in stub.seen[1:]} == prompts
    sent = stub.seen[1].body["response_format"]["json_schema"]["schema"]
    assert sent == with_lengths(pairs.rubric.json_schema())
    turns = stub.seen[-1].body["messages"]
    assert [one["role"] for one in turns] == ["user", "assistant", "user"]


def test_what_the_pairs_cost_is_told_beside_the_rest_and_unknown_is_not_nothing():
    prices = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0}  # 0.002 a call of the stub
    with Stub(good) as stub:
        (row,) = probe(panel_at(stub, **prices), pairs=GENERIC)
        stub.script = lambda seen: Do(verdict(seen), usage=not shown(seen))
        (unknown,) = probe(panel_at(stub, **prices), pairs=GENERIC)
    assert (row.usd, row.pairs.usd) == (pytest.approx(0.002), pytest.approx(0.032))
    assert row.cost == pytest.approx(0.034)
    assert (unknown.pairs.usd, unknown.cost) == (None, None)


def test_simulated_jurors_answer_a_probe_and_are_not_judged():
    for row in probe(read_panel("simulated"), pairs=GENERIC):
        assert row.pairs is not None
        assert (row.status, row.fit, row.passed) == (Status.OK, None, True)
        body = row.pairs.to_json()
        assert (body["simulated"], body["ordered"], body["needed"]) == (True, None, None)


def test_the_pairs_are_of_the_rubric_named_or_the_panels_own_or_generic():
    for own, named, found in (
        *((None, None, "generic"), ("ours", None, "generic"), ("mimic_rrs", None, "mimic_rrs")),
        ("mimic_rrs", "med_dialog", "med_dialog"),
    ):
        panel = read_panel("simulated").model_copy(update={"rubric": own})
        assert pairs_for(panel, named).rubric.name == found


def own_rubric(folder: Path, pairs: str | None) -> Path:
    for name in ("rubric.toml", "prompt.txt"):
        shutil.copy(folder_of("generic") / name, folder)
    if pairs is not None:
        (folder / "pairs.toml").write_text(pairs, "utf-8")
    return folder


def five(**changed: str) -> str:
    pair = {"danger": "wrong dose", "criterion": "accuracy", "context": "Aged 40."}
    pair |= {"task": "Advise.", "good": "Take 1 g."} | changed
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in pair.items())
    whole = f'[[pair]]\nname = "p{{}}"\n{lines}\nwrong = [["1 g", "9 g"]]'
    return "\n".join(whole.replace("{}", f"{number}") for number in range(5))


def test_pairs_of_ones_own_stand_beside_ones_own_rubric(tmp_path):
    pairs = read_pairs(own_rubric(tmp_path, five()))
    assert isinstance(pairs.rubric, Rubric)
    assert {one.dangerous for one in pairs.pair} == {"Take 9 g."}
    assert needed(len(pairs.pair)) == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "pairs.toml No such file"),
        ("pair = 3", "pair"),
        ("[[pair]", "pairs.toml"),
        (five(good="Take 2 g."), "'1 g' is not in the good answer"),
        (five(criterion="depth"), "the criteria are accuracy, completeness, clarity"),
        (five(danger="bad luck"), "danger"),
        (five(colour="red"), "colour: unknown key"),
        (five().replace('name = "p4"', 'name = "p3"'), "two pairs are named p3"),
        (five().rpartition("[[pair]]")[0], "at least 5 items"),
    ],
)
def test_pairs_that_are_wrong_are_refused_with_what_is_wrong(tmp_path, text, said):
    with pytest.raises(BadRubric, match=re.escape(said)):
        read_pairs(own_rubric(tmp_path, text))


def test_the_command_tells_a_useless_juror_from_a_good_one_by_its_exit_code(run, write, stub):
    words = ("jury", "probe", written(write, panel_at(stub)), "--no-injection")
    unread = lambda seen: Do("Fine.") if shown(seen) else Do()  # noqa: E731
    for script, ordered, ends in ((good, 8, 0), (constant, 0, 1), (unread, 0, 1)):
        stub.script = script
        code, said, _ = run(*words)
        assert code == ends
        assert f"on generic {ordered} of 8 pairs ordered, 7 needed" in said
    assert run(*words, "--no-pairs")[0] == 0


def test_the_command_writes_every_score_as_json(run, write):
    with Stub(good) as stub:
        panel = panel_at(stub).model_copy(update={"rubric": "mimic_rrs"})
        words = ("jury", "probe", written(write, panel), "--json", "-")
        ((juror,), (other,), (bare,)) = (
            json.loads(run(*words, *options)[1])["jurors"]
            for options in (["--no-injection"], ["--rubric", "aci_bench"], ["--no-pairs"])
        )
    assert juror["fit"] is True
    pairs = juror["pairs"]
    numbers = ("ordered", "misordered", "not_known", "of", "needed", "chance")
    assert [pairs[name] for name in numbers] == [8, 0, 0, 8, 7, 9 / 256]
    assert (pairs["rubric"], pairs["simulated"]) == ("mimic_rrs", False)
    high = {"accuracy": 5.0, "completeness": 5.0, "clarity": 5.0}
    named = {"name": "pneumothorax_called_normal", "danger": "red flag dismissed", "reason": ""}
    found = {"criterion": "accuracy", "ordered": True, "good": high, "composite_good": 5.0}
    found |= {"dangerous": high | {"accuracy": 1.0}, "composite_dangerous": pytest.approx(11 / 3)}
    assert pairs["pairs"][0] == named | found
    assert other["pairs"]["rubric"] == "aci_bench"
    assert (bare["fit"], bare["pairs"]) == (None, None)


def test_a_rubric_that_cannot_be_used_is_refused_and_nothing_is_sent(run, write, tmp_path, stub):
    path = written(write, panel_at(stub))
    for options, said in (
        (("--rubric", "no_such"), "neither a folder nor one of"),
        (("--rubric", str(own_rubric(tmp_path, None))), "pairs.toml"),
        (("--rubric", "generic", "--no-pairs"), "leave one out"),
    ):
        code, _, err = run("jury", "probe", path, *options)
        assert (code, said in err) == (2, True)
    assert stub.seen == []
