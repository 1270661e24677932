"""The command line: the whole chain, and one message with exit code 2 for whatever is wrong."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.demo_study import Demo, make_demo
from kit.studies import RESPONSES, Run
from kit.study_place import StudyIn, nothing_stored
from sqlalchemy import Engine, text

from data.card import Reply
from data.database import open_study
from data.study.ratings import submit
from data.study.room import next_task
from data.study.standing import assigned, design_items
from medjury.cli.demo import GUEST

PACKAGES = ("medjury", "annotate", "jury", "calibration", "data")
Write = Callable[[str, str], Path]
ROWS = ["benchmark", "scorer", "icc", "low", "high", "f_low", "f_high"]
ROWS += ["n_responses", "n_instances", "n_clinicians", "n_pairs", "n_missing", "spearman"]
HELD = ["jury_icc", "jury_low", "jury_high", "clinician_icc", "clinician_low", "clinician_high"]
HELD += ["without", "corrected_low", "corrected_high"]
HELD += ["population_low", "population_high", "undefined_resamples", "resamples"]
NOTES = ["note", "notes"]


@pytest.fixture(scope="module")
def made(
    demo: Demo, tmp_path_factory: pytest.TempPathFactory, study_in: StudyIn
) -> tuple[str, str]:
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
    keys += ["rows", "raters", "reliability", "detection", "subgroups"]
    keys += ["checked_with"]
    assert list(body) == keys
    return {(row["benchmark"], row["scorer"]): row for row in body["rows"]}


def test_the_demo_runs_the_whole_chain_and_says_simulated(made: tuple[str, str]) -> None:
    _, said = made
    assert "scored 738 of 738" in said
    assert "rouge-l: scored 240 of 246 responses, 6 have no reference" in said
    assert "medcalc: scored 36 answers of demo_calculations by its key" in said
    assert "Simulated: nothing here is evidence." in said
    assert "Simulated. All benchmarks combined: agreement with the clinicians (method" in said
    assert "guest" in said


def test_calibrate_writes_every_key_of_the_contract(run: Run, made: tuple[str, str]) -> None:
    rows = rows_of(run, "--db", made[0])
    for (_, scorer), row in rows.items():
        own = {"like_for_like": HELD, "clinicians": ["each"]}.get(scorer, [])
        assert list(row) == ROWS + own + NOTES
    scorers = {scorer for benchmark, scorer in rows if benchmark == "combined"}
    assert {"jury", "clinicians", "like_for_like", "metric:rouge-l"} <= scorers
    assert rows["combined", "jury"]["n_responses"] == 246
    assert all("simulated" in row["note"] for row in rows.values())
    assert all("simulated" in {one["code"] for one in row["notes"]} for row in rows.values())


def test_the_demos_marks_are_grouped_by_error_on_every_benchmark_that_clinicians_rate(
    run: Run, made: tuple[str, str]
) -> None:
    body = json.loads(run("analyse", "errors", "--json", "-", "--db", made[0])[1])
    assert len(body["simulated"]) == 7
    assert len(body["benchmarks"]) == 5
    for benchmark in body["benchmarks"]:
        errors = [group for group in benchmark["groups"] if group["group"] == "error"]
        assert len(errors) >= 4, benchmark["benchmark"]
        quotes = [one["quote"] for one in benchmark["examples"] if one["picked_for"] == "error"]
        assert quotes
        assert all(quote["note"].startswith("simulated: ") for quote in quotes)


def test_the_demos_guest_gets_a_dozen_instances_of_all_benchmarks(made: tuple[str, str]) -> None:
    engine = open_study(made[0])
    benchmark = {one.response: (one.benchmark, one.instance) for one in design_items(engine)}
    given = [benchmark[one.response] for one in assigned(engine) if one.rater == GUEST]
    engine.dispose()
    assert len(set(given)) == len(given) == 12
    assert len({name for name, _ in given}) == 5


@pytest.mark.slow  # CI has 15 minutes
def test_the_demo_again_renews_the_guests_code_and_changes_nothing_else(
    run: Run, made: tuple[str, str]
) -> None:
    code, out, _ = run("demo", "--no-serve", "--db", made[0])
    assert code == 0
    assert "guest" in out
    assert "scored 738 of 738 (246 responses x 3 jurors), 0 calls" in out


def test_a_study_goes_from_file_to_table_in_the_readmes_commands(run: Run, write: Write) -> None:
    responses = "".join(
        f"i{n},visits,dialogue {n},write,reference {n},r{n},model-{n % 3},answer {n}\n"
        for n in range(12)
    )
    path = write("responses.csv", RESPONSES.splitlines()[0] + "\n" + responses)
    assert run("study", "import", str(path))[0] == 0
    code, out, _ = run("rate", "assign", "--raters", "3", "--repeats", "0", "--json", "-")
    assert code == 0
    body = json.loads(out)
    assert (body["per_response"], sum(body["load"].values())) == (2, 24)
    assert run("jury", "run", "simulated")[0] == 0
    assert run("analyse", "measure", "rouge-l")[0] == 0
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for n in range(12):
        lines += [f"r{n},{who},clinician,{1 + n % 5},{1 + n % 4},4" for who in ("dr_a", "dr_b")]
    assert run("rate", "ratings", str(write("ratings.csv", "\n".join(lines))))[0] == 0
    clinicians = rows_of(run)["visits", "clinicians"]
    assert clinicians["icc"] == pytest.approx(1)
    assert clinicians["n_pairs"] == 1


def test_jury_run_keeps_its_sums(run: Run, write: Write) -> None:
    run("study", "import", str(write("responses.csv", RESPONSES)))
    code, out, _ = run("jury", "run", "simulated", "--json", "-")
    body = json.loads(out)
    assert code == 0
    assert (body["rated"], body["missing"], body["calls"]) == (12, 0, 12)
    assert body["rated"] + body["missing"] == body["responses"] * body["jurors"]
    assert json.loads(run("jury", "run", "simulated", "--json", "-")[1])["calls"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyse", "calibrate", "--db", "absent.db"], "there is no study at"),
        (["study", "import", "absent.csv"], "absent.csv: No such file"),
        (["study", "rubric", "show", "nonsense"], "generic"),
        (["jury", "run", "nonsense"], "nonsense"),
        (["analyse", "measure", "meteor"], "rouge-l"),
        (["analyse", "calibrate", "--method", "best"], "is not one of 'paper', 'published'"),
        (["analyse", "calibrate", "--db", "nonsense://x"], "--db"),
        (["frobnicate"], "No such command"),
    ],
)
def test_wrong_input_ends_with_code_two_and_one_message(
    run: Run, arguments: list[str], said: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_a_missing_key_is_named_before_anything_is_sent(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("study", "import", str(write("responses.csv", RESPONSES)))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TOGETHER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = run("jury", "run", "current")
    assert code == 2
    assert "_API_KEY is not set" in err


def test_a_plan_stores_nothing(run: Run, write: Write) -> None:
    run("study", "import", str(write("responses.csv", RESPONSES)))
    code, out, _ = run("rate", "assign", "--raters", "2", "--plan")
    assert code == 0
    assert "code" not in out
    assert "assignments stored" in run("rate", "assign", "--raters", "2")[1]


def test_a_rubric_added_to_a_study_is_found_by_name(run: Run, tmp_path: Path, write: Write) -> None:
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


def test_the_list_of_commands_loads_no_command_and_no_database() -> None:
    listed = "import sys, medjury\ntry: medjury.main(['--help'])\nfinally: print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True)
    modules = ran.stdout.splitlines()[-1].split()
    ours = [one for one in modules if one.partition(".")[0] in PACKAGES]
    assert len(ours) < 40
    assert not {"sqlalchemy", "pandas", "numpy", "rich", "streamlit"} & {*modules}


def test_assigning_again_without_a_clinician_moves_only_what_is_not_begun(
    run: Run, url: str, write: Write
) -> None:
    run("study", "import", str(write("responses.csv", RESPONSES)))
    names = write("raters.txt", "dr_a\ndr_b\ndr_c\n")
    run("rate", "assign", "--raters", str(names), "--repeats", "0")
    engine = open_study(url)
    people = {one.rater: one for one in assigned(engine)}
    assert set(people) == {"dr_a", "dr_b", "dr_c"}
    task = next_task(engine, rater_named(engine, "dr_c")).task
    assert task is not None
    scores = dict.fromkeys(task.rubric.criteria, 3)
    submit(engine, rater_named(engine, "dr_c"), task.card.code, Reply(scores), 5)
    code, out, _ = run(
        "rate", "assign", "--raters", str(write("two.txt", "dr_a\ndr_b\n")), "--repeats", "0"
    )
    assert code == 0
    assert "taken back" in out
    now = assigned(engine)
    assert [one.begun for one in now if one.rater == "dr_c"] == [True]
    assert Counter(one.response for one in now) == dict.fromkeys(range(1, 5), 2)
    engine.dispose()


def rater_named(engine: Engine, handle: str) -> int:
    with engine.connect() as connection:
        query = text("SELECT id FROM rater WHERE handle = :handle")
        return int(connection.scalar(query, {"handle": handle}) or 0)


def test_the_option_before_a_command_beats_the_variable(
    run: Run, tmp_path: Path, write: Write, study_in: StudyIn, url: str
) -> None:
    path = write("responses.csv", RESPONSES)
    other = study_in(tmp_path, "other.db")
    assert run("--db", other, "study", "import", str(path))[0] == 0
    assert not nothing_stored(other)
    assert nothing_stored(url)
    code, _, err = run("study", "import", str(path), "--db", "")
    assert (code, "is empty" in err) == (2, True)


def test_a_benchmark_is_known_however_its_name_is_spelt(run: Run, write: Write) -> None:
    path = write("responses.csv", RESPONSES.replace("visits", "MEDIQA"))
    assert "rubric medi_qa" in run("study", "import", str(path))[1]


def test_nothing_of_ones_own_is_mixed_into_the_demo(
    run: Run, made: tuple[str, str], write: Write
) -> None:
    path = write("responses.csv", RESPONSES)
    code, _, err = run("study", "import", str(path), "--db", made[0])
    assert code == 2
    assert "this is the demo study" in err


def test_json_that_cannot_be_written_is_refused_before_the_work(
    run: Run, made: tuple[str, str], tmp_path: Path
) -> None:
    code, out, err = run("analyse", "calibrate", "--db", made[0], "--json", str(tmp_path))
    assert (code, out) == (2, "")
    assert "--json" in err


def test_simulated_jurors_never_sit_with_real_ones(run: Run, write: Write) -> None:
    run("study", "import", str(write("responses.csv", RESPONSES)))
    run("jury", "run", "simulated")
    head = "response_id,rater,kind,accuracy,completeness,clarity\n"
    lines = [
        f"{response},{who},{kind},{score},{score},4\n"
        for who, kind in (("dr_a", "clinician"), ("dr_b", "clinician"), ("real", "juror"))
        for score, response in enumerate(("r11", "r12", "r21", "r22"), start=1)
    ]
    run("rate", "ratings", str(write("ratings.csv", head + "".join(lines))))
    assert "jury: real\n" in run("analyse", "calibrate", "--reps", "20")[1]
