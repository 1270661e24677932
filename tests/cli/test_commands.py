"""The groups of commands: the help of each command, and its example, which is run."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.commands import helm_wheel
from kit.studies import RESPONSES, Run

from jury.panel import shipped
from medjury.cli.app import loaded, summary, whole
from medjury.cli.commands import COMMANDS
from medjury.services.status import TITLES

ROOT = Path(__file__).parents[2]
LISTED = {"check", "demo", "serve", "status", "study", "rate", "jury", "analyse", "share"}
# Examples in the order of a study; what is set up first is used by those that follow.
STUDY = (
    *("study import", "study describe", "study settings", "study plan", "study blind"),
    *("study rubric show", "study rubric add", "study protocol set"),
    *("rate people add", "rate people list", "rate people end"),
    *("rate training", "rate assign", "rate people change"),
    *("rate remind", "rate flags", "rate ratings", "rate adjudicate", "status"),
    *("jury panels", "jury probe", "jury run", "jury missing", "jury references"),
    "jury improve",
    *("analyse measure", "analyse calibrate", "analyse juries", "analyse monitor"),
    *("analyse predict", "analyse route", "study protocol check", "share rubric", "share export"),
    *("share dossier", "study backup", "study lock", "study unblind"),
    *("analyse models", "analyse errors"),
    *("study verify", "check"),
)
# The one makes a study of its own, the other does not end; of points in `test_points.py`, of pairs in `test_pairs_study.py`.
ALONE = {
    *("demo", "serve", "study points", "study pairs", "rate withdraw", "rate people join"),
}
INSTANCES, MODELS, UNRATED = 100, 2, 20


def test_the_help_lists_the_groups() -> None:
    assert {*whole().commands} == LISTED


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_says_what_it_does_and_gives_one_example(run: Run, name: str) -> None:
    code, out, _ = run(*name.split(), "-h")
    assert code == 0
    assert summary(name)
    assert " ".join((loaded(name).help or "").split()).startswith(summary(name))
    assert out.count("Example:") == 1
    assert words_of(name)[: len(name.split())] == name.split()


def test_where_the_study_is_and_quiet_may_stand_behind_a_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "responses.csv"
    path.write_text(RESPONSES)
    for words in (["--db", "a.db"], ["--db=a.db"]):
        assert run("study", "import", str(path), *words, "-q")[0] == 0
    assert run("--db", "a.db", "status")[2].endswith("a.db\n")
    assert run("status", "--db", "a.db", "--quiet")[2] == ""
    assert run("status", "--db")[0] == 2


def test_every_command_is_in_the_docs() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    said = "\n".join(page.read_text("utf-8") for page in pages)
    assert [name for name in COMMANDS if f"medjury {name}" not in said] == []


def test_a_shell_completes_groups_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        number = str(len(words.split(" ")) - 1)
        wanted = {"_MEDJURY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": number}
        command = [sys.executable, "-m", "medjury"]
        ran = subprocess.run(command, env=os.environ | wanted, capture_output=True, text=True)
        return ran.stdout.split()

    assert completed("medjury an") == ["analyse"]
    assert "people" in completed("medjury rate ")
    assert completed("medjury study import --map") == ["--map"]
    assert "rubric" not in completed("medjury ")


def test_quiet_leaves_out_advice_and_the_studys_name_and_no_result(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "responses.csv"
    path.write_text(RESPONSES)
    run("study", "import", str(path))
    _, loud, told = run("study", "verify")
    assert "keep this hash elsewhere" in loud
    assert "study " in told
    for words in (["-q", "study", "verify"], ["study", "verify", "--quiet"]):
        code, out, err = run(*words)
        assert (code, err) == (0, "")
        assert "whole: no findings" in out
        assert "keep this hash elsewhere" not in out


def test_a_command_that_is_not_quiet_speaks_after_one_that_is(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "responses.csv"
    path.write_text(RESPONSES)
    run("-q", "study", "import", str(path))
    assert "study " in run("study", "settings")[2]


def test_the_status_of_a_study_under_way_names_the_next_command_and_no_author(
    run: Run, tmp_path: Path
) -> None:
    def told() -> dict[str, Any]:
        body: dict[str, Any] = json.loads(run("status", "--json", "-")[1])
        return body

    path = tmp_path / "responses.csv"
    path.write_text(RESPONSES)
    run("study", "import", str(path))
    first = told()
    assert first["next"] == {
        "step": "set_protocol",
        "command": "medjury study protocol set --margin 0.1 --panel PANEL",
    }
    assert [step["step"] for step in first["steps"]] == [*TITLES]
    assert first["steps"][1]["answer"] == "4 responses to 2 instances in 1 benchmark."
    assert first["benchmarks"] == [
        {"benchmark": "visits", "rubric": "generic", "instances": 2, "responses": 4, "rated": 0}
    ]
    run("study", "protocol", "set", "--margin", "0.2")
    assert (told()["margin"], told()["next"]["step"]) == (0.2, "assign")
    run("rate", "assign", "--raters", "2")
    assert told()["next"]["step"] == "run_jury"
    run("jury", "run", "simulated")
    now = told()
    assert now["next"]["step"] == "let_rate"
    assert now["clinicians"]["clinicians"] == 2
    assert now["clinicians"]["done"] == 0 < now["clinicians"]["assigned"]
    assert (now["jury"]["missing"], now["jury"]["calls"]) == (0, 12)
    code, out, _ = run("status")
    assert code == 0
    assert "Next: let the clinicians rate what is open: `medjury serve`" in out
    assert "Rating (open): No clinician has rated a response yet." in out
    assert "model-" not in out + json.dumps(now)


def test_the_status_of_no_study_says_that_there_is_none(run: Run) -> None:
    code, out, err = run("status", "--db", "absent.db")
    assert (code, out) == (2, "")
    assert "there is no study at" in err


def test_the_panels_are_listed_with_those_of_the_folder_and_what_is_not_usable(
    run: Run, tmp_path: Path
) -> None:
    head = 'name = "ours"\n[[juror]]\nname = "ward"\nfamily = "own"\nmodel = "w-1"\n'
    local = 'provider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
    prices = "usd_per_million_in = 3\nusd_per_million_out = 9\n"
    (tmp_path / "ours.toml").write_text(head + local + prices)
    (tmp_path / "bad.toml").write_text(head + 'provider = "nobody"\n')
    (tmp_path / "other.toml").write_text("x = 1\n")
    code, out, _ = run("jury", "panels", str(tmp_path), "--json", "-")
    body = json.loads(out)
    assert code == 0
    assert [one["panel"] for one in body["panels"]] == [*shipped(), "ours"]
    own = body["panels"][-1]["jurors"][0]
    assert (own["model"], own["usd_per_million_in"], own["usd_per_million_out"]) == ("w-1", 3, 9)
    assert len(body["refused"]) == 1
    assert "bad.toml" in body["refused"][0]
    named = run("jury", "panels", str(tmp_path))[1]
    assert all(name in named for name in ("simulated", "current", "w-1", "not usable"))


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"demo", "serve"}))
def test_every_command_that_tells_facts_writes_json(name: str) -> None:
    assert any("--json" in one.opts for one in loaded(name).params)


def test_json_on_standard_output_is_all_there_is_on_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    for name in (
        *("study import", "study lock", "study rubric show"),
        *("study unblind", "share export"),
    ):
        words = [one for one in words_of(name) if one not in {"--out", "authors.csv"}]
        code, out, err = run(*words, "--json", "-")
        assert code == 0, err
        assert isinstance(json.loads(out), dict)
        if name == "study lock":
            assert run("study", "lock", "--reopen", "--reason", "Go on.")[0] == 0


def test_a_sign_in_code_is_shown_and_never_written_as_json(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "responses.csv"
    path.write_text(RESPONSES)
    run("study", "import", str(path))
    code, out, err = run("-q", "rate", "people", "add", "dr_a", "--json", "-")
    assert (code, json.loads(out)) == (0, {"people": ["dr_a"], "way": "code"})
    assert "dr_a   " in err


def test_the_example_of_serve_is_understood() -> None:
    assert loaded("serve").make_context("serve", words_of("serve")[1:]).params["create"] is True


@pytest.mark.timeout(600)
def test_every_example_runs_in_the_order_of_a_study(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted([*STUDY, *ALONE]) == sorted(COMMANDS)
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    for name in STUDY:
        code, _, err = run(*words_of(name))
        assert (name, code) == (name, 0), err
    after = json.loads(run("status", "--json", "-")[1])
    assert after["record"]["locked"]
    assert after["next"] == {"step": "share", "command": "medjury share export study_files"}


def words_of(name: str) -> list[str]:
    """Return the words of a command's example, without medjury."""
    return shlex.split((loaded(name).epilog or "").partition("Example:")[2])[1:]


def write_files(folder: Path) -> None:
    """Write the files that the examples name: a study of four months, two of its raters jurors."""
    random = np.random.default_rng(0)
    rows = ["instance_id,context,prompt,reference,response_id,model,response"]
    scores = ["response_id,rater,kind,accuracy,completeness,clarity,rated_at"]
    for n in range(INSTANCES):
        for model in range(MODELS):
            name, quality = f"r{n}-{model}", 3 + random.normal()
            rows.append(f"i{n},Cough {n}.,Write.,Cough {n}.,{name},model-{model},Cough of day {n}.")
            doctors = [] if n >= INSTANCES - UNRATED else ["dr_x", "dr_y"]
            raters = [*((one, "clinician") for one in doctors), ("gpt", "juror"), ("oss", "juror")]
            for rater, kind in raters:
                own = np.clip(np.round(quality + 0.4 * random.normal(size=3)), 1, 5)
                day = f"2026-{1 + n // 25:02}-{1 + n % 25:02}"
                scores.append(f"{name},{rater},{kind},{','.join(f'{x:g}' for x in own)},{day}")
    texts = {
        "responses.csv": rows,
        "ratings.csv": [row for row in scores if not row.startswith("r99-")],
        "experts.csv": ["response_id,accuracy,completeness,clarity,why", "r99-0,4,4,4,Whole."],
        "raters.txt": ["dr_a", "dr_b"],
        "scores.csv": ["item,dr_a,dr_b,gpt", *(f"n{n},{n % 5},{n % 4},{n % 5}" for n in range(40))],
        "study.toml": ['title = "Notes"', 'purpose = "To compare notes."'],
        "our_rubric/rubric.toml": [
            *('name = "ward"', 'version = "1"', 'audience = "nurses"', 'gold = "never"'),
            *("[scale]", "min = 1", "max = 2", "[[criterion]]", 'name = "kindness"'),
            *('question = "Kind?"', 'anchors = {"1" = "no", "2" = "yes"}'),
        ],
        "our_rubric/prompt.txt": ["Rate {{response}}"],
    }
    for name, lines in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", "utf-8")
    helm_wheel(folder)
