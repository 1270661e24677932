"""Own family: counted for the coordinator from authors' names, and told to no juror."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.jurors import Stub
from kit.studies import RESPONSES, Run
from sqlalchemy import Engine

from data.queries.families import families_of, own_family

Write = Callable[[str, str], Path]
AUTHORED = RESPONSES.replace("model-one", "openai_gpt-4o-2024-05-13").replace("model-two", "ward-x")
JURY = Path(__file__).parents[1] / "jury"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Claude 3.5 Sonnet (20241022)", "claude"),
        ("Claude 3.7 Sonnet (20250219)", "claude"),
        ("DeepSeek R1", "deepseek"),
        ("Gemini 1.5 Pro (001)", "gemini"),
        ("Gemini 2.0 Flash", "gemini"),
        ("GPT-4o (2024-05-13)", "gpt"),
        ("GPT-4o mini (2024-07-18)", "gpt"),
        ("Llama 3.3 Instruct (70B)", "llama"),
        ("o3-mini (2025-01-31)", "gpt"),
    ],
)
def test_the_nine_models_of_the_paper_have_their_families(name: str, family: str) -> None:
    assert families_of(name) == {family}


@pytest.mark.parametrize(
    ("name", "families"),
    [
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


def test_own_and_unknown_responses_are_counted(engine: Engine, run: Run, write: Write) -> None:
    run("import", str(write("responses.csv", AUTHORED)))
    found = own_family(engine, {"a": "GPT", "b": "claude", "c": "OpenAI"})
    assert (found.responses, found.unknown) == (4, 2)
    assert found.own == {"a": 2, "b": 0, "c": 2}


def test_a_family_nobody_knows_is_found_in_an_authors_name_as_a_word(
    engine: Engine, run: Run, write: Write
) -> None:
    run("import", str(write("responses.csv", AUTHORED)))
    found = own_family(engine, {"a": "ward", "b": "war"})
    assert (found.own, found.unknown) == ({"a": 2, "b": 0}, 0)


def test_only_the_chosen_benchmarks_count(engine: Engine, run: Run, write: Write) -> None:
    run("import", str(write("responses.csv", AUTHORED)))
    assert own_family(engine, {"a": "gpt"}, []).responses == 0
    assert own_family(engine, {"a": "gpt"}, ["visits"]).own == {"a": 2}


def test_a_run_warns_before_counts_after_and_tells_no_juror(
    run: Run, write: Write, stub: Stub
) -> None:
    run("import", str(write("responses.csv", AUTHORED)))
    settings = f'provider = "openai"\nbase_url = "{stub.openai_url}"\n'
    panel = write(
        "panel.toml",
        f'name = "p"\n[[juror]]\nname = "one"\nmodel = "m"\nfamily = "gpt"\n{settings}'
        f'[[juror]]\nname = "two"\nmodel = "n"\nfamily = "claude"\n{settings}',
    )
    code, out, err = run("jury", "run", str(panel), "--json", "-")
    body = json.loads(out)
    assert code == 0
    assert body["own_family"] == {"one": 2, "two": 0}
    assert body["author_family_unknown"] == 2
    warned = "juror one (family gpt) will rate 2 of 4 responses written by its own family"
    counted = "juror one (family gpt) has 2 of 4 responses of its own family in this"
    assert -1 < err.index(warned) < err.index("p: scored 8 of 8") < err.index(counted)
    assert "juror two" not in err
    assert "2 of 4 responses have authors whose family is unknown" in err
    sent = json.dumps([[seen.body, seen.headers] for seen in stub.seen]).casefold()
    assert len(stub.seen) == 8
    for word in ("gpt-4o", "ward-x", "family", "openai_"):
        assert word not in sent


def test_the_estimate_warns_too(run: Run, write: Write) -> None:
    run("import", str(write("responses.csv", AUTHORED)))
    code, out, err = run("jury", "run", "medhelm", "--estimate", "--json", "-")
    assert code == 0
    assert json.loads(out)["own_family"] == {
        "medhelm-gpt": 2,
        "medhelm-llama": 0,
        "medhelm-claude": 0,
    }
    assert "juror medhelm-gpt (family gpt) will rate 2 of 4" in err


def test_simulated_jurors_are_of_no_family(run: Run, write: Write) -> None:
    run("import", str(write("responses.csv", AUTHORED.replace("ward-x", "simulated-x"))))
    code, out, err = run("jury", "run", "simulated", "--json", "-")
    assert code == 0
    assert set(json.loads(out)["own_family"].values()) == {0}
    assert "family" not in err


def test_no_module_of_the_jury_can_read_authors() -> None:
    for path in JURY.rglob("*.py"):
        source = path.read_text("utf-8")
        assert "Authorship" not in source
        assert "families" not in source, path
