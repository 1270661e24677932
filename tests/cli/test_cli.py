"""The command line: the whole chain, and one message with exit code 2 for whatever is wrong."""

import json
import re
import shutil
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

Write = Callable[[str, str], Path]

ROWS = ["benchmark", "scorer", "icc", "low", "high", "f_low", "f_high"]

ROWS += ["n_responses", "n_instances", "n_clinicians", "n_pairs", "n_missing", "spearman"]
ROWS += ["n_not_applicable", "n_cannot_tell"]

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
    assert "medcalc: scored 36 answers of demo_calculations by its key" in said
    assert "Simulated: nothing here is evidence." in said
    assert "Simulated. All benchmarks combined: agreement with the clinicians (method" in said
    assert len(re.findall(r"http://127\.0\.0\.1:8501/join#\S+", said)) == 2


def test_the_demo_first_says_what_real_judges_miss(made: tuple[str, str]) -> None:
    said = made[1].partition("Now a study")[0]
    assert "9704 replies" in said
    assert "ICC 0.57 (0.52 to 0.63)" in said
    assert "112 of the 155 replies" in said
    assert "72 % (64 to 79)" in said
    assert "imulated" not in said


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
def test_the_demo_again_renews_the_links_and_changes_nothing_else(
    run: Run, made: tuple[str, str]
) -> None:
    code, out, _ = run("demo", "--no-serve", "--db", made[0])
    assert code == 0
    assert out.count("/join#") == 2
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


@pytest.mark.parametrize(
    "words",
    [
        ("study", "import"),
        ("rate", "ratings"),
        ("jury", "probe"),
        ("study", "rubric", "show"),
        ("study", "rubric", "add"),
        ("study", "describe"),
        ("check",),
        ("analyse", "calibrate", "--panel"),
    ],
)
def test_a_name_too_long_for_a_file_is_one_message(
    small_study: Engine, run: Run, words: tuple[str, ...]
) -> None:
    code, _, err = run(*words, "a" * 300)
    assert (code, "Traceback" in err, len(err.splitlines())) == (2, False, 1), err
