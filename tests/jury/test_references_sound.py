"""References that jurors marked: the rule, the command, and leaving their instances out."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.jurors import Do, Stub
from kit.reference_study import HEAD, NO, YES, absent_by, check, fill, panel_at, rows
from kit.scores import study as little_study
from kit.studies import Run, Write
from sqlalchemy import Engine, text

from calibration.scope import without_instances
from calibration.table import agreement_table
from data.study.references import References, references, verdict


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(lambda _: Do(NO)) as running:
        yield running


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [
        ([], "not known"),
        ([True], "not known"),
        ([False], "not known"),
        ([True, False], "not known"),
        ([True, True], "marked"),
        ([False, False], "sound"),
        ([True, True, False], "marked"),
        ([True, False, False], "sound"),
        ([True, True, False, False], "not known"),
    ],
)
def test_a_majority_of_at_least_two_decides(answers: list[bool], wanted: str) -> None:
    assert verdict(answers) == wanted


@given(st.lists(st.booleans(), max_size=9))
def test_the_rule_knows_no_order_and_treats_both_answers_alike(answers: list[bool]) -> None:
    mirrored = {"marked": "sound", "sound": "marked", "not known": "not known"}
    assert verdict(sorted(answers)) == verdict(answers)
    assert verdict([not one for one in answers]) == mirrored[verdict(answers)]


def names(found: References) -> tuple[set[str], set[str], set[str], set[str]]:
    return (set(found.marked), set(found.sound), set(found.not_known), set(found.unchecked))


def test_what_is_marked_sound_and_not_known_adds_up(
    engine: Engine, write: Write, stub: Stub
) -> None:
    stub.script = absent_by(i0="abc", i1="ab", i2="a")
    fill(engine, write)
    assert names(references(engine))[2] == {f"visits/i{n}" for n in range(4)}
    check(engine, panel_at(stub))
    everything = names(references(engine))
    assert everything == (
        {"visits/i0", "visits/i1"},
        {"visits/i2", "visits/i3"},
        set(),
        {"visits/bare", "visits/open"},
    )
    two = names(references(engine, ["a", "c"]))
    assert two[:3] == ({"visits/i0"}, {"visits/i3"}, {"visits/i1", "visits/i2"})
    assert names(references(engine, ["a"]))[2] == {f"visits/i{n}" for n in range(4)}


def test_simulated_answers_never_count_beside_real_ones(
    engine: Engine, write: Write, stub: Stub, run: Run
) -> None:
    fill(engine, write)
    code, out, _ = run("jury", "references", "simulated")
    assert code == 0
    assert "simulated jurors: simulated-lenient" in out
    assert "these answers are simulated" in out
    assert references(engine).simulated
    assert all(
        "simulated" in "".join(row.answer["facts"]) for row in rows(engine) if row.answer["absent"]
    )
    check(engine, panel_at(stub))
    found = references(engine)
    assert (found.jurors, found.simulated) == (("a", "b", "c"), False)
    assert len(found.sound) == 4


def panel_file(write: Write, stub: Stub) -> str:
    jurors = "".join(
        f'[[juror]]\nname = "{name}"\nmodel = "{name}"\nfamily = "f"\nprovider = "openai"\n'
        f'base_url = "{stub.openai_url}"\n'
        for name in "abc"
    )
    return str(write("panel.toml", f'name = "p"\n{jurors}'))


def rate(run: Run, write: Write, count: int) -> None:
    """Let two clinicians and a juror rate every response of the study."""
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for who, kind in (("dr_a", "clinician"), ("dr_b", "clinician"), ("j", "juror")):
        for n in range(count):
            lines += [f"r{n}{m},{who},{kind},{1 + (n + len(m)) % 5},{1 + n % 4},4" for m in "xy"]
    assert run("rate", "ratings", str(write("ratings.csv", "\n".join(lines))))[0] == 0


def test_calibrate_leaves_marked_instances_out_and_counts_them(
    engine: Engine, write: Write, stub: Stub, run: Run
) -> None:
    stub.script = absent_by(i0="abc", i1="ab")
    rate(run, write, len(rows(fill(engine, write, 8))) or 8)
    code, out, err = run("jury", "references", panel_file(write, stub), "--json", "-")
    body = json.loads(out)
    assert code == 0
    assert "texts will be sent to: 127.0.0.1" in err
    assert (body["instances"], body["answered"], body["missing"]) == (8, 24, 0)
    assert (body["marked"], body["sound"]) == (["visits/i0", "visits/i1"], 6)
    assert (body["not_known"], body["unchecked"]) == ([], 2)
    options = ("analyse", "calibrate", "--reps", "20", "--json", "-")
    everything = json.loads(run(*options)[1])
    assert "references" not in everything
    code, out, err = run(*options, "--use", "sound")
    sound = json.loads(out)
    assert (code, everything["rows"][0]["n_responses"]) == (0, 16)
    assert sound["rows"][0]["n_responses"] == 12
    assert sound["references"] == {
        "kept": "sound",
        "responses_left_out": 4,
        "instances_left_out": 2,
        "instances_not_known": 0,
        "instances_unchecked": 2,
        "checked_by": ["a", "b", "c"],
        "simulated": False,
    }
    assert "4 responses of 2 instances left out" in err


def test_sound_without_any_check_is_refused_with_one_message(
    engine: Engine, write: Write, run: Run
) -> None:
    fill(engine, write, 3)
    rate(run, write, 3)
    code, out, err = run("analyse", "calibrate", "--use", "sound")
    assert (code, out) == (2, "")
    assert "medjury jury references PANEL" in err
    code, _, err = run("analyse", "calibrate", "--use", "some")
    assert code == 2
    assert "is not one of 'all', 'sound', 'adjudicated'" in err


def test_sound_that_would_leave_nothing_is_refused(
    engine: Engine, write: Write, stub: Stub, run: Run
) -> None:
    row = "i0,visits,Context.,Write.,Reference.,r0x,x,Said.\n"
    assert run("study", "import", str(write("one.csv", f"{HEAD}\n{row}")))[0] == 0
    ratings = "response_id,rater,kind,accuracy,completeness,clarity\nr0x,dr_a,clinician,1,1,1\n"
    assert run("rate", "ratings", str(write("ratings.csv", ratings)))[0] == 0
    stub.script = lambda _: Do(YES)
    check(engine, panel_at(stub))
    code, _, err = run("analyse", "calibrate", "--use", "sound")
    assert (code, "every instance is marked" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "nonsense"),
        (["simulated", "--benchmark", "nowhere"], "the study has visits"),
        (["simulated", "--concurrency", "0"], "must be at least 1"),
        (["simulated", "--max-usd", "-1"], "must be an amount"),
        (["medhelm"], "_API_KEY is not set"),
    ],
)
def test_wrong_input_ends_with_one_message(
    engine: Engine,
    write: Write,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    fill(engine, write, 1)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TOGETHER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = run("jury", "references", *arguments)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_missing_answers_end_with_code_one_and_say_why(
    engine: Engine, write: Write, stub: Stub, run: Run
) -> None:
    fill(engine, write, 2)
    stub.script = lambda seen: Do(refusal="No.") if seen.model == "a" else Do(NO)
    code, out, _ = run("jury", "references", panel_file(write, stub))
    assert code == 1
    assert "answered 4 of 6 (2 references x 3 jurors)" in out
    assert "missing: 2 refused" in out


def test_training_instances_are_neither_asked_about_nor_counted(
    engine: Engine, write: Write, stub: Stub
) -> None:
    fill(engine, write)
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO expert (response, criterion, score, why) "
                "SELECT id, 'clarity', 3, '' FROM response WHERE response_id IN ('r0x', 'r0y')"
            )
        )
    assert check(engine, panel_at(stub, "a")).responses == 3
    assert "visits/i0" not in frozenset().union(*names(references(engine)))


def test_leaving_instances_out_is_as_if_they_had_never_been_there() -> None:
    whole = little_study(n=30, per=2)
    gone = {"aci-i0", "aci-i3"}
    left = without_instances(whole, gone)
    assert len(whole.responses) - len(left.responses) == 4
    assert not set(left.ratings["instance_id"]) & gone
    kept = whole.ratings[~whole.ratings["instance_id"].isin(gone)]
    assert len(left.ratings) == len(kept)
    table = agreement_table(left, reps=0)
    assert table["n_responses"].iloc[0] == 26
    assert without_instances(whole, ()).ratings.equals(whole.ratings)
