"""A juror that scores good answers above dangerous ones is told apart from one that does not."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.jurors import Do, Script, Seen, Stub, verdict
from kit.studies import Run, Write

from data.card import Reply
from data.errors import BadRubric
from data.question import with_lengths
from data.rubric import Rubric
from data.rubrics import folder_of, shipped
from data.rubrics.pairs import MADE_UP, AnswerPair, RubricPairs, read_pairs, with_pairs
from data.schema import Status
from jury.fitness import Fitness, PairOutcome, chance, compare_pair, needed, pairs_for
from jury.panel import Panel, read_panel
from jury.parse import ParsedAnswer
from jury.probe import ProbeRow, probe

PRICED = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0}  # 0.002 a call of the stub
GENERIC = read_pairs("generic")
RESPONSE = re.compile(r"<response>\n(.*)\n</response>", re.DOTALL)
DANGEROUS = {one.dangerous: one.criterion for name in shipped() for one in read_pairs(name).pair}


def panel(stub: Stub, **settings: Any) -> Panel:
    one = {"name": "a", "provider": "openai", "model": "m", "family": "f"}
    return Panel.model_validate(
        {"name": "p", "juror": [one | {"base_url": stub.openai_url} | PRICED | settings]}
    )


def probed(script: Script, pairs: RubricPairs = GENERIC, **settings: Any) -> ProbeRow:
    with Stub(script) as stub:
        if settings.get("provider") == "anthropic":
            settings |= {"base_url": stub.anthropic_url}
        (row,) = probe(panel(stub, **settings), pairs=pairs)
    return row


def tried(script: Script, pairs: RubricPairs = GENERIC, **settings: Any) -> Fitness:
    row = probed(script, pairs, **settings)
    assert row.pairs is not None
    return row.pairs


def shown(seen: Seen) -> str:
    """Return the response in a prompt, empty for the tiny question."""
    found = RESPONSE.search(seen.prompt)
    return found[1] if found else ""


def scores_of(seen: Seen, **points: int) -> Do:
    """Return a verdict of the criteria that the prompt asks for."""
    whole = json.loads(verdict(seen, 5))
    for name, point in points.items():
        whole[name]["score"] = point
    return Do(json.dumps(whole))


def good(seen: Seen) -> Do:
    """Score like a clinician: a danger costs its criterion, and nothing else."""
    criterion = DANGEROUS.get(shown(seen))
    return scores_of(seen, **({criterion: 1} if criterion else {}))


def constant(seen: Seen) -> Do:
    """Give 4/3/5 to everything."""
    names = list(json.loads(verdict(seen)))
    return scores_of(seen, **dict(zip(names, (4, 3, 5), strict=False)))


def guessing(seed: int) -> Script:
    chooser = np.random.default_rng(seed)

    def answer(seen: Seen) -> Do:
        return scores_of(
            seen, **{name: int(chooser.integers(1, 6)) for name in json.loads(verdict(seen))}
        )

    return answer


def after_tiny(do: Do) -> Script:
    """Answer the tiny question, and everything else so."""
    return lambda seen: do if shown(seen) else Do(verdict(seen))


@pytest.mark.parametrize("name", shipped())
def test_a_good_juror_is_fit_on_every_shipped_rubric(name: str) -> None:
    got = tried(good, read_pairs(name))
    assert (got.fit, got.ordered, got.needed) == (True, 8, 7)
    assert str(got) == f"fit: on {name} 8 of 8 pairs ordered, 7 needed"


@pytest.mark.parametrize("name", shipped())
def test_a_juror_that_gives_4_3_5_to_everything_is_not_fit_on_any_shipped_rubric(name: str) -> None:
    got = tried(constant, read_pairs(name))
    assert (got.fit, got.ordered, got.misordered) == (False, 0, 8)
    assert all(one.good == one.dangerous for one in got.outcomes)
    assert list(got.outcomes[0].good.values())[:3] == [4, 3, 5]


def test_a_juror_of_anthropic_is_judged_through_its_own_sdk() -> None:
    assert tried(good, provider="anthropic").fit is True
    assert tried(constant, provider="anthropic").fit is False


@pytest.mark.parametrize("seed", range(6))
def test_a_juror_that_guesses_is_not_fit(seed: int) -> None:
    assert tried(guessing(seed)).fit is False


@pytest.mark.parametrize("name", shipped())
@pytest.mark.parametrize("longer_is_better", [True, False])
def test_a_juror_that_scores_by_length_is_fit_on_no_shipped_rubric(
    name: str, longer_is_better: bool
) -> None:
    sign = 1 if longer_is_better else -1
    pairs = read_pairs(name)
    ordered = sum(sign * (len(one.good) - len(one.dangerous)) > 0 for one in pairs.pair)
    assert ordered < needed(len(pairs.pair))


def test_a_good_juror_may_miss_one_danger_and_not_two() -> None:
    missed = [one.dangerous for one in GENERIC.pair[:2]]

    def misses(number: int) -> Script:
        return lambda seen: Do(verdict(seen, 5)) if shown(seen) in missed[:number] else good(seen)

    assert [tried(misses(number)).fit for number in (0, 1, 2)] == [True, True, False]


@pytest.mark.parametrize(
    "do",
    [
        Do("Both are fine, I would say."),
        Do(refusal="I cannot judge medical texts."),
        Do(finish="truncated", text='{"accuracy": {"expl'),
        Do(finish="filtered", text=""),
        Do(status=400),
        Do(status=401),
    ],
)
def test_a_juror_whose_answers_cannot_be_read_is_not_known_and_never_fit(do: Do) -> None:
    got = tried(after_tiny(do), schema="json_schema")
    assert got.fit is None
    assert (got.ordered, got.misordered, got.unknown) == (0, 0, 8)
    assert str(got) == (
        "not known whether fit: on generic 0 of 8 pairs ordered, 7 needed, 8 not known"
    )
    assert got.outcomes[0].reason.startswith("the good one was not rated: ")


def test_an_answer_that_cannot_be_read_is_asked_for_once_more_as_in_a_run() -> None:
    def script(seen: Seen) -> Do:
        return good(seen) if len(seen.body["messages"]) > 1 or not shown(seen) else Do("Fine.")

    with Stub(script) as stub:
        (row,) = probe(panel(stub), pairs=GENERIC)
    assert row.fit is True
    assert len(stub.seen) == 1 + 2 * 16
    turns = stub.seen[-1].body["messages"]
    assert [one["role"] for one in turns] == ["user", "assistant", "user"]
    assert "the answer holds no JSON object" in turns[2]["content"]


def test_a_pair_that_is_not_read_counts_against_whatever_is_to_be_shown() -> None:
    pair, ok = (
        GENERIC.pair[0],
        ParsedAnswer(Status.OK, reply=Reply(dict.fromkeys(("accuracy",), 3.0))),
    )
    lost = compare_pair(pair, ok, ParsedAnswer(Status.REFUSED, "refused"))
    assert (lost.ordered, lost.good, lost.dangerous) == (None, {"accuracy": 3.0}, {})
    assert lost.reason == "the dangerous one was not rated: refused, refused"

    def fit(ordered: int, unknown: int, misordered: int) -> bool | None:
        each = [True] * ordered + [None] * unknown + [False] * misordered
        return Fitness("generic", tuple(PairOutcome("x", "d", "c", one) for one in each)).fit

    assert [fit(7, 1, 0), fit(6, 2, 0), fit(6, 1, 1), fit(6, 0, 2), fit(0, 6, 2)] == [
        *(True, None, None, False, False)
    ]


def rated(**scores: float) -> ParsedAnswer:
    return ParsedAnswer(Status.OK, reply=Reply(scores))


@pytest.mark.parametrize(
    ("better", "worse", "ordered"),
    [
        (rated(accuracy=5, clarity=5), rated(accuracy=1, clarity=5), True),
        (rated(accuracy=4, clarity=4), rated(accuracy=4, clarity=4), False),
        (rated(accuracy=4, clarity=5), rated(accuracy=4, clarity=1), False),
        (rated(accuracy=3, clarity=1), rated(accuracy=2, clarity=2), False),
        (rated(accuracy=3, clarity=1), rated(accuracy=2, clarity=3), False),
        (rated(accuracy=3, clarity=2), rated(accuracy=2, clarity=2), True),
    ],
)
def test_a_pair_is_ordered_by_its_criterion_and_by_the_composite_and_ties_are_not(
    better: ParsedAnswer, worse: ParsedAnswer, ordered: bool
) -> None:
    assert compare_pair(GENERIC.pair[0], better, worse).ordered is ordered


def test_the_pairs_that_are_needed_are_those_of_a_sign_test_at_5_percent() -> None:
    # By hand: of 8 even odds, at least 7 in (8 + 1) / 256; of 5, all in 1 / 32; of 4, 1 / 16.
    assert (needed(8), chance(7, 8)) == (7, 9 / 256)
    assert (needed(5), chance(5, 5)) == (5, 1 / 32)
    assert needed(4) == 5  # none is rare enough
    assert chance(6, 8) == 37 / 256


def passes(ordered: float) -> float:
    """Return how often 7 of 8 pairs or more are ordered, each with this probability."""
    return ordered**8 + 8 * ordered**7 * (1 - ordered)


def test_guessing_constant_and_good_jurors_pass_as_often_as_the_docs_say() -> None:
    triples = list(itertools.product(range(1, 6), repeat=3))
    apart = sum(a[0] > b[0] and sum(a) > sum(b) for a in triples for b in triples)
    uniform = apart / len(triples) ** 2
    assert uniform == pytest.approx(0.2743, abs=5e-5)
    assert passes(uniform) == pytest.approx(0.0007, abs=5e-5)
    assert passes(0.4) == pytest.approx(0.0085, abs=5e-5)  # any one distribution on five points
    assert passes(0.5) == pytest.approx(0.0352, abs=5e-5)
    assert passes(0.0) == 0.0
    assert 1 - passes(0.98) == pytest.approx(0.0103, abs=5e-5)
    assert 1 - passes(0.95) == pytest.approx(0.0572, abs=5e-5)


def all_pairs() -> Iterator[tuple[RubricPairs, AnswerPair]]:
    for name in shipped():
        pairs = read_pairs(name)
        for pair in pairs.pair:
            yield pairs, pair


def test_every_shipped_rubric_has_eight_pairs_of_at_least_four_kinds_of_danger() -> None:
    assert with_pairs() == shipped()
    for name in shipped():
        pairs = read_pairs(name).pair
        assert len(pairs) == 8
        assert len({one.danger for one in pairs}) >= 4
        assert {"red flag dismissed", "invented finding"} <= {one.danger for one in pairs}
    dangers = {one.danger for _, one in all_pairs()}
    assert len(dangers) == 7


def test_the_two_answers_of_a_pair_differ_and_nothing_of_the_prompt_is_forged_in_them() -> None:
    texts = [text for _, pair in all_pairs() for text in (pair.good, pair.dangerous)]
    assert len(set(texts)) == 2 * 8 * len(shipped())
    for pairs, pair in all_pairs():
        for card in pair.cards():
            assert pairs.rubric.forged(card) == ()
            assert MADE_UP in pairs.rubric.render(card)


def test_no_reference_is_the_good_answer_and_those_that_must_have_one_do() -> None:
    for pairs, pair in all_pairs():
        assert bool(pair.reference) == (pairs.rubric.gold == "always")
        assert pair.reference != pair.good


def test_the_prompt_and_the_schema_are_those_of_a_run() -> None:
    with Stub(good) as stub:
        probe(panel(stub), pairs=read_pairs("aci_bench"))
    pairs = read_pairs("aci_bench")
    prompts = {pairs.rubric.render(card) for pair in pairs.pair for card in pair.cards()}
    assert {one.prompt for one in stub.seen[1:]} == prompts
    sent = stub.seen[1].body["response_format"]["json_schema"]["schema"]
    assert sent == with_lengths(pairs.rubric.json_schema())


def test_what_the_pairs_cost_is_told_beside_the_rest_and_unknown_is_not_nothing() -> None:
    row = probed(good)
    assert row.pairs is not None
    assert (row.usd, row.pairs.usd) == (pytest.approx(0.002), pytest.approx(0.032))
    assert row.cost == pytest.approx(0.034)

    def silent(seen: Seen) -> Do:
        return Do(verdict(seen), usage=not shown(seen))

    unknown = probed(silent)
    assert unknown.pairs is not None
    assert (unknown.pairs.usd, unknown.cost) == (None, None)


def test_a_juror_that_does_not_answer_is_not_put_to_the_pairs_and_has_not_passed() -> None:
    with Stub(lambda _: Do(status=401)) as stub:
        (row,) = probe(panel(stub), pairs=GENERIC)
    assert (row.pairs, row.fit, row.passed, len(stub.seen)) == (None, None, False, 1)


def test_simulated_jurors_are_called_simulated_and_are_not_judged() -> None:
    for row in probe(read_panel("simulated"), pairs=GENERIC):
        assert row.pairs is not None
        assert (row.fit, row.passed) == (None, True)
        assert "simulated" in str(row.pairs)
        body = row.pairs.to_json()
        assert (body["simulated"], body["ordered"], body["needed"]) == (True, None, None)


def test_the_pairs_are_of_the_rubric_named_or_the_panels_own_or_generic() -> None:
    simulated = read_panel("simulated")
    own = simulated.model_copy(update={"rubric": "mimic_rrs"})
    unknown = simulated.model_copy(update={"rubric": "ours"})
    assert pairs_for(simulated).rubric.name == "generic"
    assert pairs_for(own).rubric.name == "mimic_rrs"
    assert pairs_for(own, "med_dialog").rubric.name == "med_dialog"
    assert pairs_for(unknown).rubric.name == "generic"


def own_rubric(folder: Path, pairs: str | None) -> Path:
    for name in ("rubric.toml", "prompt.txt"):
        (folder / name).write_text((folder_of("generic") / name).read_text("utf-8"), "utf-8")
    if pairs is not None:
        (folder / "pairs.toml").write_text(pairs, "utf-8")
    return folder


def five(**changed: str) -> str:
    pair = {
        "danger": "wrong dose",
        "criterion": "accuracy",
        "context": "Aged 40.",
        "task": "Advise.",
        "good": "Take 1 g.",
    } | changed
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in pair.items())
    return "\n".join(
        f'[[pair]]\nname = "p{number}"\n{lines}\nwrong = [["1 g", "9 g"]]' for number in range(5)
    )


def test_pairs_of_ones_own_stand_beside_ones_own_rubric(tmp_path: Path) -> None:
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
def test_pairs_that_are_wrong_are_refused_with_what_is_wrong(
    tmp_path: Path, text: str | None, said: str
) -> None:
    with pytest.raises(BadRubric, match=re.escape(said)):
        read_pairs(own_rubric(tmp_path, text))


def panel_file(write: Write, stub: Stub, head: str = "") -> str:
    body = 'provider = "openai"\nmodel = "m"\nfamily = "f"\nusd_per_million_in = 1.0\n'
    rest = f'usd_per_million_out = 10.0\nbase_url = "{stub.openai_url}"\n'
    return str(write("p.toml", f'name = "p"\n{head}[[juror]]\nname = "a"\n{body}{rest}'))


def test_the_command_tells_a_useless_juror_from_a_good_one_by_its_exit_code(
    run: Run, write: Write
) -> None:
    with Stub(good) as stub:
        path = panel_file(write, stub)
        fit, said, _ = run("jury", "probe", path, "--no-injection")
        stub.script = constant
        unfit, told, _ = run("jury", "probe", path, "--no-injection")
        stub.script = after_tiny(Do("Fine."))
        unknown, guessed, _ = run("jury", "probe", path, "--no-injection")
        without, _, _ = run("jury", "probe", path, "--no-injection", "--no-pairs")
    assert (fit, unfit, unknown, without) == (0, 1, 1, 0)
    assert "panel p: 17 questions of medjury's own a juror, none of the study's texts" in said
    assert "juror a: fit: on generic 8 of 8 pairs ordered, 7 needed" in said
    assert "cost: $0.0340" in said
    assert "juror a: not fit: on generic 0 of 8 pairs ordered, 7 needed" in told
    assert "weekly_drug_daily" in told
    assert "4 / 4*" in told
    assert "juror a: not known whether fit" in guessed
    assert "weekly_drug_daily not known: the good one was not rated: invalid_json" in guessed


def test_the_command_writes_every_score_as_json(run: Run, write: Write) -> None:
    with Stub(good) as stub:
        path = panel_file(write, stub, 'rubric = "mimic_rrs"\n')
        _, out, _ = run("jury", "probe", path, "--no-injection", "--json", "-")
        _, other, _ = run("jury", "probe", path, "--rubric", "aci_bench", "--json", "-")
        _, none, _ = run("jury", "probe", path, "--no-pairs", "--json", "-")
    (juror,) = json.loads(out)["jurors"]
    assert juror["fit"] is True
    pairs = juror["pairs"]
    numbers = ("ordered", "misordered", "not_known", "of", "needed", "chance")
    assert [pairs[name] for name in numbers] == [8, 0, 0, 8, 7, 9 / 256]
    assert (pairs["rubric"], pairs["simulated"]) == ("mimic_rrs", False)
    assert pairs["pairs"][0] == {
        "name": "pneumothorax_called_normal",
        "danger": "red flag dismissed",
        "criterion": "accuracy",
        "ordered": True,
        "good": {"accuracy": 5.0, "completeness": 5.0, "clarity": 5.0},
        "dangerous": {"accuracy": 1.0, "completeness": 5.0, "clarity": 5.0},
        "composite_good": 5.0,
        "composite_dangerous": pytest.approx(11 / 3),
        "reason": "",
    }
    assert json.loads(other)["jurors"][0]["pairs"]["rubric"] == "aci_bench"
    (bare,) = json.loads(none)["jurors"]
    assert (bare["fit"], bare["pairs"]) == (None, None)


def test_a_rubric_that_cannot_be_used_is_refused_before_anything_is_sent(
    run: Run, write: Write, tmp_path: Path
) -> None:
    with Stub(good) as stub:
        path = panel_file(write, stub)
        own = own_rubric(tmp_path, None)
        refused = [
            run("jury", "probe", path, *options)
            for options in (
                ("--rubric", "no_such"),
                ("--rubric", str(own)),
                ("--rubric", "generic", "--no-pairs"),
            )
        ]
    assert [code for code, _, _ in refused] == [2, 2, 2]
    said = [err for _, _, err in refused]
    assert "neither a folder nor one of" in said[0]
    assert "pairs.toml" in said[1]
    assert "leave one out" in said[2]
    assert not stub.seen
