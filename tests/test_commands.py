"""The groups of commands: former names, the help of each command, and its example, which is run."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from small import RESPONSES, Run

from medjury.cli.app import loaded, whole
from medjury.cli.commands import BY_NAME, COMMANDS, EVERY_NAME, FORMER_GROUPS, GROUPS, Command

ROOT = Path(__file__).parents[1]
LISTED = {"demo", "serve", "status", "study", "rate", "jury", "analyse", "share"}
HIDDEN_OPTIONS = {"--least", "--not", "--common"}  # former names, which work and are not listed
# Examples in the order of a study; what is set up first is used by those that follow.
STUDY = (
    *("study import", "study describe", "study settings", "study plan", "study blind"),
    *("study rubric list", "study rubric show", "study rubric add", "study rubric used"),
    *("study rubric import-helm", "study protocol set", "study protocol show"),
    *("rate people add", "rate people list", "rate people renew", "rate people end"),
    *("rate training", "rate assign", "rate people email", "rate people specialty"),
    *("rate remind", "rate flags", "rate ratings", "rate adjudicate", "status"),
    *("jury panels", "jury probe", "jury run", "jury missing", "jury references"),
    *("analyse measure", "analyse calibrate", "analyse juries", "analyse monitor"),
    *("analyse predict", "study protocol check", "share rubric", "share export"),
    *("study backup", "study move", "study lock", "study unblind", "analyse models"),
    "study verify",
)
ALONE = {"demo", "serve"}  # the one makes a study of its own, the other does not end
INSTANCES, MODELS, UNRATED = 100, 2, 20
LETTER = """
PROMPT_TEMPLATE = "On a scale of 0-3 (0 = bad, 3 = good): {QUESTION} {RESPONSE}"

class LetterAnnotator(LLMAsJuryAnnotator):
    def __init__(self):
        super().__init__(name="letter", prompt_template=PROMPT_TEMPLATE,
                         annotation_criteria={"tone": {"score", "explanation"}})
"""


def test_the_help_lists_the_groups_and_no_former_name() -> None:
    assert {name for name, one in whole().commands.items() if not one.hidden} == LISTED


def test_every_former_name_is_the_present_command() -> None:
    for row in COMMANDS:
        if row.former:
            former, present = loaded(row.former), loaded(row.name)
            assert former.callback.__wrapped__ is present.callback.__wrapped__
            assert [one.opts for one in former.params] == [one.opts for one in present.params]


def test_no_two_commands_have_one_name_and_no_name_is_a_group() -> None:
    names = [name for row in COMMANDS for name in (row.name, row.former) if name]
    assert len(names) == len({*names}) == len(EVERY_NAME)
    assert not {*names} & ({*GROUPS} | {*FORMER_GROUPS})


@pytest.mark.parametrize(
    ("former", "present"),
    [
        (["settings"], ["study", "settings"]),
        (["plan", "--icc", "0.7"], ["study", "plan", "--icc", "0.7"]),
        (["blind"], ["study", "blind"]),
        (["flags"], ["rate", "flags"]),
    ],
)
def test_a_former_name_answers_as_the_present_one_does(
    run: Run, tmp_path: Path, former: list[str], present: list[str]
) -> None:
    path = tmp_path / "responses.csv"
    path.write_text(RESPONSES)
    run("import", str(path))
    assert run(*former, "--json", "-") == run(*present, "--json", "-")


@pytest.mark.parametrize("group", [*GROUPS, *FORMER_GROUPS])
def test_every_group_explains_itself(run: Run, group: str) -> None:
    code, out, _ = run(*group.split(), "-h")
    assert code == 0
    assert GROUPS[FORMER_GROUPS.get(group, group)].split()[0] in out


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_the_help_of_a_command_says_what_it_does_and_gives_one_example(
    run: Run, row: Command
) -> None:
    code, out, _ = run(*row.name.split(), "-h")
    assert code == 0
    assert " ".join(loaded(row.name).help.split()).startswith(row.about)
    assert out.count("Example:") == 1
    assert f"medjury {row.name} {row.example}".rstrip() in out


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_every_option_of_a_command_has_words(row: Command) -> None:
    silent = [one.opts for one in loaded(row.name).params if not getattr(one, "help", "")]
    assert silent == []


def test_every_command_is_in_the_docs_by_its_present_name() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    said = "\n".join(page.read_text("utf-8") for page in pages)
    assert [name for name in BY_NAME if f"medjury {name}" not in said] == []


def test_no_page_tells_a_former_name() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    former = [row.former for row in COMMANDS if row.former]
    told = [
        (page.name, name)
        for page in pages
        for name in former
        if f"medjury {name} " in page.read_text("utf-8").replace("`", " ")
    ]
    assert told == []


def test_the_version_is_told(run: Run) -> None:
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("medjury 0.")


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
    run("import", str(path))
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
    run("-q", "import", str(path))
    assert "study " in run("study", "settings")[2]


@pytest.mark.slow  # a study of hundreds of responses
def test_the_example_of_the_demo_runs(run: Run) -> None:
    assert run(*words_of("demo"))[0] == 0


def test_the_example_of_serve_is_understood() -> None:
    assert loaded("serve").make_context("serve", words_of("serve")[1:]).params["create"] is True


@pytest.mark.timeout(600)
def test_every_example_runs_in_the_order_of_a_study(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted([*STUDY, *ALONE]) == sorted(BY_NAME)
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    for name in STUDY:
        code, _, err = run(*words_of(name))
        assert (name, code) == (name, 0), err
    after = json.loads(run("status", "--json", "-")[1])
    assert after["record"]["locked"]
    assert after["next"] == {"step": "share", "command": "medjury share export study_files"}


def words_of(name: str) -> list[str]:
    return [*name.split(), *shlex.split(BY_NAME[name].example)]


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
    with ZipFile(folder / "crfm_helm-0.5.9-py3-none-any.whl", "w") as wheel:
        wheel.writestr("helm/benchmark/annotation/letter_annotator.py", LETTER)
        wheel.writestr("crfm_helm-0.5.9.dist-info/METADATA", "Name: crfm-helm")
