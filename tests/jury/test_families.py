"""Own family: counted for the coordinator from authors' names, and told to no juror."""

import json

import pytest
from kit.jurors import Stub
from kit.jury_runs import panel_at, written
from kit.studies import RESPONSES, Run, Write
from sqlalchemy import Engine

from data.study.authors import evidence, families_of, own_family
from jury.panel import Panel

AUTHORED = RESPONSES.replace("model-one", "openai_gpt-4o-2024-05-13").replace("model-two", "ward-x")


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("Claude 3.5 Sonnet (20241022)", {"claude"}),  # the nine models of the paper
        ("Claude 3.7 Sonnet (20250219)", {"claude"}),
        ("DeepSeek R1", {"deepseek"}),
        ("Gemini 1.5 Pro (001)", {"gemini"}),
        ("Gemini 2.0 Flash", {"gemini"}),
        ("GPT-4o (2024-05-13)", {"gpt"}),
        ("GPT-4o mini (2024-07-18)", {"gpt"}),
        ("Llama 3.3 Instruct (70B)", {"llama"}),
        ("o3-mini (2025-01-31)", {"gpt"}),
        ("openai/o1-2024-12-17", {"gpt"}),
        ("gpt4", {"gpt"}),
        ("GPT4o", {"gpt"}),
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", {"llama"}),
        ("llama3.3:70b", {"llama"}),
        ("qwen2.5", {"qwen"}),
        ("DeepSeek-R1-Distill-Llama-70B", {"deepseek", "llama"}),
        ("BioGPT-Large", set()),
        ("EleutherAI/gpt-j-6b", set()),
        ("gpt-neox-20b", set()),
        ("model-one", set()),
        ("", set()),
        ("foo3", set()),
    ],
)
def test_a_name_tells_its_families_and_nothing_is_guessed(name: str, families: set[str]) -> None:
    assert families_of(name) == families


@pytest.fixture
def unblinded(run: Run, write: Write) -> None:
    """Have responses by a model of a known family and by one of none, and the blind lifted."""
    run("study", "import", str(write("responses.csv", AUTHORED)))
    assert run("study", "unblind", "--reason", "a test of families")[0] == 0


def test_nothing_of_own_families_is_told_while_the_study_is_blind(
    engine: Engine, run: Run, write: Write
) -> None:
    run("study", "import", str(write("responses.csv", AUTHORED)))
    found = own_family(engine, {"a": "GPT", "b": "claude"})
    assert (found.responses, found.unknown, found.own) == (None, None, {})
    assert evidence(engine, {"a": "gpt"}).authors is None
    code, out, err = run("jury", "run", "medhelm", "--estimate", "--json", "-")
    assert code == 0
    assert set(json.loads(out)["own_family"].values()) == {None}
    assert json.loads(out)["author_family_unknown"] is None
    assert "by a juror's own family is known after unblinding" in err
    assert "of 4" not in err


@pytest.mark.usefixtures("unblinded")
def test_a_family_of_no_list_is_never_looked_for_in_authors_names(engine: Engine, run: Run) -> None:
    found = own_family(
        engine, {"a": "ward", "b": "ward-x", "c": "GPT", "d": "claude", "e": "OpenAI"}
    )
    assert (found.responses, found.unknown) == (4, 2)
    assert found.own == {"a": 0, "b": 0, "c": 2, "d": 0, "e": 2}
    assert found.unlisted == {"a": "ward", "b": "ward-x"}
    run("study", "lock")
    run("study", "lock", "--reopen", "--reason", "more raters")
    assert own_family(engine, {"a": "gpt"}).is_blind


@pytest.mark.usefixtures("unblinded")
def test_a_study_says_of_which_family_its_own_models_are(engine: Engine, run: Run) -> None:
    assert run("study", "settings", "families", "ward-x=House, other=llama")[0] == 0
    found = own_family(engine, {"a": "house", "b": "gpt", "c": "ward"})
    assert (found.own, found.unknown) == ({"a": 2, "b": 2, "c": 0}, 0)
    assert found.unlisted == {"c": "ward"}


@pytest.mark.parametrize("value", ["ward-x", "=house", "a=b c", "a=gpt,a=llama", "a=,b=gpt"])
def test_families_that_cannot_be_read_are_refused(
    run: Run, small_study: Engine, value: str
) -> None:
    code, _, err = run("study", "settings", "families", value)
    assert (code, "MODEL=FAMILY" in err) == (2, True)
    assert small_study is not None


@pytest.mark.usefixtures("unblinded")
def test_a_run_warns_before_counts_after_and_tells_no_juror(
    run: Run, write: Write, stub: Stub
) -> None:
    jurors = [
        panel_at(stub, name, family=of).juror[0] for name, of in (("one", "gpt"), ("two", "claude"))
    ]
    file = written(write, Panel(name="p", juror=tuple(jurors)))
    code, out, err = run("jury", "run", file, "--json", "-")
    body = json.loads(out)
    assert (code, body["own_family"]) == (0, {"one": 2, "two": 0})
    assert body["author_family_unknown"] == 2
    warned = "juror one (family gpt) will rate 2 of 4 responses written by its own family"
    counted = "juror one (family gpt) has 2 of 4 responses of its own family in this"
    assert -1 < err.index(warned) < err.index("p: scored 8 of 8") < err.index(counted)
    assert "juror two (family" not in err
    sent = json.dumps([[seen.body, seen.headers] for seen in stub.seen]).casefold()
    assert len(stub.seen) == 8
    for word in ("gpt-4o", "ward-x", "family", "openai_"):
        assert word not in sent
