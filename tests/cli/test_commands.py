"""The command line: the help of each command, its example, which is run, the whole chain, and one message for whatever is wrong."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.commands import helm_wheel, json_of, make_demo
from kit.studies import RESPONSES, Run
from kit.study_place import nothing_stored
from sqlalchemy import Engine, text

from data.card import Reply
from data.database import open_study
from data.study.assignments import assigned, design_items
from data.study.ratings import submit
from data.study.room import next_task
from jury.panel import shipped
from medjury.cli.app import loaded, summary, whole
from medjury.cli.commands import COMMANDS
from medjury.cli.demo import GUEST
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
ALONE = {*("demo", "serve", "study points", "study pairs", "rate withdraw", "rate people join")}
INSTANCES, MODELS, UNRATED = 100, 2, 20


def test_the_help_lists_the_groups_the_docs_every_command_and_serves_example_is_understood():
    assert {*whole().commands} == LISTED
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    said = "\n".join(page.read_text("utf-8") for page in pages)
    assert [name for name in COMMANDS if f"medjury {name}" not in said] == []
    assert loaded("serve").make_context("serve", words_of("serve")[1:]).params["create"] is True


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_says_what_it_does_gives_one_example_and_it_writes_json(run, name):
    code, out, _ = run(*name.split(), "-h")
    assert code == 0
    assert summary(name)
    assert " ".join((loaded(name).help or "").split()).startswith(summary(name))
    assert out.count("Example:") == 1
    assert words_of(name)[: len(name.split())] == name.split()
    assert name in ("demo", "serve") or any("--json" in one.opts for one in loaded(name).params)


def test_where_the_study_is_and_quiet_may_stand_behind_a_command(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "responses.csv"
    path.write_text(RESPONSES)
    for words in (["--db", "a.db"], ["--db=a.db"]):
        assert run("study", "import", str(path), *words, "-q")[0] == 0
    assert run("--db", "a.db", "status")[2].endswith("a.db\n")
    assert run("status", "--db", "a.db", "--quiet")[2] == ""
    assert run("status", "--db")[0] == 2


def test_a_shell_completes_groups_commands_and_options():
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


def test_quiet_leaves_out_advice_and_the_studys_name_only_where_it_is_asked_for(run, tmp_path):
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
    run("-q", "study", "import", str(path))
    assert "study " in run("study", "settings")[2]


def test_the_status_of_a_study_under_way_names_the_next_command_and_no_author(run, small_study):
    def told() -> dict[str, Any]:
        return json_of(run, "status")

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


def test_the_panels_are_listed_with_those_of_the_folder_and_what_is_not_usable(run, tmp_path):
    head = 'name = "ours"\n[[juror]]\nname = "ward"\nfamily = "own"\nmodel = "w-1"\n'
    local = 'provider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
    prices = "usd_per_million_in = 3\nusd_per_million_out = 9\n"
    (tmp_path / "ours.toml").write_text(head + local + prices)
    (tmp_path / "bad.toml").write_text(head + 'provider = "nobody"\n')
    (tmp_path / "other.toml").write_text("x = 1\n")
    body = json_of(run, "jury", "panels", str(tmp_path))
    assert [one["panel"] for one in body["panels"]] == [*shipped(), "ours"]
    own = body["panels"][-1]["jurors"][0]
    assert (own["model"], own["usd_per_million_in"], own["usd_per_million_out"]) == ("w-1", 3, 9)
    assert len(body["refused"]) == 1
    assert "bad.toml" in body["refused"][0]
    named = run("jury", "panels", str(tmp_path))[1]
    assert all(name in named for name in ("simulated", "current", "w-1", "not usable"))


def test_json_on_standard_output_is_all_there_is_on_it(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    for name in [
        "study import",
        "study lock",
        "study rubric show",
        "study unblind",
        "share export",
    ]:
        words = [one for one in words_of(name) if one not in {"--out", "authors.csv"}]
        code, out, err = run(*words, "--json", "-")
        assert code == 0, err
        assert isinstance(json.loads(out), dict)
        if name == "study lock":
            assert run("study", "lock", "--reopen", "--reason", "Go on.")[0] == 0


def test_a_sign_in_code_is_shown_and_never_written_as_json(run, small_study):
    code, out, err = run("-q", "rate", "people", "add", "dr_a", "--json", "-")
    assert (code, json.loads(out)) == (0, {"people": ["dr_a"], "way": "code"})
    assert "dr_a   " in err


@pytest.mark.timeout(600)
def test_every_example_runs_in_the_order_of_a_study(run, tmp_path, monkeypatch):
    assert sorted([*STUDY, *ALONE]) == sorted(COMMANDS)
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    for name in STUDY:
        code, _, err = run(*words_of(name))
        assert (name, code) == (name, 0), err
    after = json_of(run, "status")
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


ROWS = (
    *("benchmark", "scorer", "icc", "low", "high", "f_low", "f_high", "n_responses", "n_instances"),
    *("n_clinicians", "n_pairs", "n_missing", "spearman", "n_not_applicable", "n_cannot_tell"),
)
HELD = (
    *("jury_icc", "jury_low", "jury_high", "clinician_icc", "clinician_low", "clinician_high"),
    *("without", "corrected_low", "corrected_high", "population_low", "population_high"),
    *("undefined_resamples", "resamples"),
)


@pytest.fixture(scope="module")
def made(demo, tmp_path_factory, study_in) -> tuple[str, str]:
    """Return the URL of a demo study of this file's own, and what was said while it was made."""
    folder = tmp_path_factory.mktemp("demo")
    url = study_in(folder, "medjury.db")
    if not url.startswith("sqlite"):
        return url, make_demo(folder, url)
    shutil.copy(demo.study, folder / "medjury.db")
    return url, demo.output


def rows_of(run: Run, *arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
    code, out, err = run("analyse", "calibrate", "--json", "-", "--reps", "50", *arguments)
    assert code == 0, err
    body = json.loads(out)
    keys = ["method", "k", "reps", "seed", "decision", "protocol", "reading", "adjudicated"]
    keys += ["rows", "raters", "reliability", "detection", "subgroups", "checked_with"]
    assert list(body) == keys
    return {(row["benchmark"], row["scorer"]): row for row in body["rows"]}


def test_the_demo_says_what_real_judges_miss_runs_the_whole_chain_and_says_simulated(made):
    _, said = made
    assert "scored 738 of 738" in said
    assert "medcalc: scored 36 answers of demo_calculations by its key" in said
    assert "Simulated: nothing here is evidence." in said
    assert "Simulated. All benchmarks combined: agreement with the clinicians (method" in said
    assert len(re.findall(r"http://127\.0\.0\.1:8501/join#\S+", said)) == 2
    said = made[1].partition("Now a study")[0]
    assert "9704 replies" in said
    assert "ICC 0.57 (0.52 to 0.63)" in said
    assert "112 of the 155 replies" in said
    assert "72 % (64 to 79)" in said
    assert "imulated" not in said


def test_calibrate_writes_every_key_of_the_contract(run, made):
    rows = rows_of(run, "--db", made[0])
    for (_, scorer), row in rows.items():
        own = {"like_for_like": HELD, "clinicians": ["each"]}.get(scorer, [])
        assert list(row) == [*ROWS, *own, "note", "notes"]
    scorers = {scorer for benchmark, scorer in rows if benchmark == "combined"}
    assert {"jury", "clinicians", "like_for_like", "metric:rouge-l"} <= scorers
    assert rows["combined", "jury"]["n_responses"] == 246
    assert all("simulated" in row["note"] for row in rows.values())
    assert all("simulated" in {one["code"] for one in row["notes"]} for row in rows.values())


def test_the_demos_marks_are_grouped_by_error_and_its_guest_gets_a_dozen_instances(run, made):
    body = json.loads(run("analyse", "errors", "--json", "-", "--db", made[0])[1])
    assert len(body["simulated"]) == 7
    assert len(body["benchmarks"]) == 5
    for benchmark in body["benchmarks"]:
        errors = [group for group in benchmark["groups"] if group["group"] == "error"]
        assert len(errors) >= 4, benchmark["benchmark"]
        quotes = [one["quote"] for one in benchmark["examples"] if one["picked_for"] == "error"]
        assert quotes
        assert all(quote["note"].startswith("simulated: ") for quote in quotes)
    engine = open_study(made[0])
    benchmark = {one.response: (one.benchmark, one.instance) for one in design_items(engine)}
    given = [benchmark[one.response] for one in assigned(engine) if one.rater == GUEST]
    engine.dispose()
    assert len(set(given)) == len(given) == 12
    assert len({name for name, _ in given}) == 5


@pytest.mark.slow  # CI has 15 minutes
def test_the_demo_again_renews_the_links_and_changes_nothing_else(run, made):
    code, out, _ = run("demo", "--no-serve", "--db", made[0])
    assert code == 0
    assert out.count("/join#") == 2
    assert "scored 738 of 738 (246 responses x 3 jurors), 0 calls" in out


def test_a_rubric_added_to_a_study_is_found_by_name(run, tmp_path, write):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "prompt.txt").write_text("Rate {{response}}")
    (tmp_path / "own" / "rubric.toml").write_text(
        'name = "ward"\nversion = "1"\naudience = "nurses"\ngold = "never"\n[scale]\nmin = 0\n'
        'max = 10\n[[criterion]]\nname = "kindness"\nquestion = "Kind?"\n'
        'anchors = {"0" = "harsh", "10" = "kind"}\n'
    )
    assert run("study", "rubric", "add", str(tmp_path / "own"))[0] == 0
    path = write("responses.csv", RESPONSES)
    assert run("study", "import", str(path), "--rubric", "ward")[0] == 0
    ratings = write("r.csv", "response_id,rater,kind,kindness\nr11,dr_a,clinician,10\n")
    assert run("rate", "ratings", str(ratings))[0] == 0


def test_a_plan_deals_nothing_and_assigning_again_moves_only_what_is_not_begun(
    run, small_study, url, write
):
    asked = ("rate", "assign", "--repeats", "0", "--raters")
    names = str(write("raters.txt", "dr_a\ndr_b\ndr_c\n"))
    engine = open_study(url)
    code, out, _ = run(*asked, names, "--plan")
    assert (code, "code" in out, assigned(engine)) == (0, False, [])
    assert "assignments stored" in run(*asked, names)[1]
    people = {one.rater: one for one in assigned(engine)}
    assert set(people) == {"dr_a", "dr_b", "dr_c"}
    task = next_task(engine, rater_named(engine, "dr_c")).task
    scores = dict.fromkeys(task.rubric.criteria, 3)
    submit(engine, rater_named(engine, "dr_c"), task.card.code, Reply(scores), 5)
    code, out, _ = run(*asked, str(write("two.txt", "dr_a\ndr_b\n")))
    assert code == 0
    assert "taken back" in out
    now = assigned(engine)
    assert [one.done for one in now if one.rater == "dr_c"] == [True]
    assert Counter(one.response for one in now) == dict.fromkeys(range(1, 5), 2)
    engine.dispose()


def rater_named(engine: Engine, handle: str) -> int:
    with engine.connect() as connection:
        query = text("SELECT id FROM rater WHERE handle = :handle")
        return int(connection.scalar(query, {"handle": handle}) or 0)


def test_the_option_before_a_command_beats_the_variable(run, tmp_path, write, study_in, url):
    path = write("responses.csv", RESPONSES)
    other = study_in(tmp_path, "other.db")
    assert run("--db", other, "study", "import", str(path))[0] == 0
    assert not nothing_stored(other)
    assert nothing_stored(url)
    code, _, err = run("study", "import", str(path), "--db", "")
    assert (code, "is empty" in err) == (2, True)


def test_simulated_jurors_never_sit_with_real_ones(run, small_study, write):
    run("jury", "run", "simulated")
    head = "response_id,rater,kind,accuracy,completeness,clarity\n"
    lines = [
        f"{response},{who},{kind},{score},{score},4\n"
        for who, kind in (("dr_a", "clinician"), ("dr_b", "clinician"), ("real", "juror"))
        for score, response in enumerate(("r11", "r12", "r21", "r22"), start=1)
    ]
    run("rate", "ratings", str(write("ratings.csv", head + "".join(lines))))
    assert "jury: real\n" in run("analyse", "calibrate", "--reps", "20")[1]


TAKING = "study import,rate ratings,jury probe,study rubric show,study rubric add,study describe"


@pytest.mark.parametrize("words", [*TAKING.split(","), "check", "analyse calibrate --panel"])
def test_a_name_too_long_for_a_file_is_one_message(small_study, run, words):
    code, _, err = run(*words.split(), "a" * 300)
    assert (code, "Traceback" in err, len(err.splitlines())) == (2, False, 1), err
