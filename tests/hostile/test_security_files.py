"""Files that come in or go out, and what our own code never does."""

import ast
import csv
from pathlib import Path

from kit.studies import HEAD

import annotate
import calibration
import data
import jury
import medjury
from annotate.signin import FAILURES
from data.study.access import ALPHABET, GROUP, GROUPS

PACKAGES = (annotate, calibration, data, jury, medjury)
RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\t", "\r")
FORMULAS = ("=cmd|' /C calc'!A0", "@SUM(1+1)", "+1+1", "-2+3", "=1")
# What makes code or objects of the data it reads, or hands a text to a shell.
NEVER_IMPORTED = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle", "yaml", "tarfile"}
# Both ends of a connection that only the server and its own child process have.
PICKLED = {("safe.py", "pickle")}
NEVER_CALLED = {"eval", "exec", "compile", "__import__"}
NEVER_A_METHOD = {"system", "popen", "extractall", "extract", "read_pickle", "unsafe_load"}
YEAR = 365 * 24 * 3600


def called(node):
    """Return the forbidden function that is called, or ""."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr if node.func.attr in NEVER_A_METHOD else ""
    name = getattr(node.func, "id", "")
    return name if name in NEVER_CALLED else ""


def test_no_code_of_ours_makes_objects_of_data_or_hands_a_text_to_a_shell():
    files = [path for one in PACKAGES for path in Path(one.__path__[0]).rglob("*.py")]
    assert len(files) > 300
    found = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [(path.name, n) for n in names if n.partition(".")[0] in NEVER_IMPORTED]
            if not isinstance(node, ast.Call):
                continue
            given = {one.arg: ast.unparse(one.value) for one in node.keywords}
            if given.get("shell", "False") != "False" or given.get("allow_pickle"):
                found.append((path.name, "shell or pickle"))
            found += [(path.name, name)] if (name := called(node)) else []
    assert {*found} == PICKLED


def test_a_code_is_not_guessed_in_a_year_even_at_a_hundred_replicas_without_pause():
    secret = len(ALPHABET) ** (GROUP * (GROUPS - 1))
    tries = 100 * (FAILURES.burst + YEAR / FAILURES.seconds_each)
    assert tries / secret < 1e-8


def hostile(write, run):
    """Make a study whose every name and text is a formula."""
    lines = "".join(f'i{n},=b,c,p,,"{name}","{name}",t {n}\n' for n, name in enumerate(FORMULAS))
    assert run("study", "import", str(write("r.csv", HEAD + "\n" + lines)))[0] == 0
    scores = "response_id,rater,kind,criterion,score,comment\n"
    for name in FORMULAS:
        for criterion in ("accuracy", "completeness", "clarity"):
            scores += f'"{name}",=dr,clinician,{criterion},3,"{name}"\n'
            scores += f'"{name}","{FORMULAS[0]}",juror,{criterion},4,-5\n'
    assert run("rate", "ratings", str(write("s.csv", scores)))[0] == 0


def test_no_cell_of_an_export_is_a_formula_and_every_number_stays_one(run, engine, write, tmp_path):
    hostile(write, run)
    out = tmp_path / "out"
    assert run("share", "export", str(out), "--unblind", "--reason", "=1+1")[0] == 0
    assert run("share", "export", "--redcap", str(tmp_path / "redcap"))[0] in (0, 2)
    table = ("--reps", "20", "--table", str(out / "agreement.csv"))
    assert run("analyse", "calibrate", *table)[0] == 0
    files = [*out.rglob("*.csv"), *(tmp_path / "redcap").rglob("*.csv")]
    made = {one.name for one in files}
    assert {"authors.csv", "ratings.csv", "agreement.csv", "event.csv"} <= made
    cells = [(path.name, cell) for path in files for line in rows(path) for cell in line]
    run_there = [one for one in cells if one[1].startswith(RUN_BY_SPREADSHEETS)]
    assert [one for one in run_there if not number(one[1])] == []
    [header, *ratings] = rows(out / "ratings.csv")
    assert {one[header.index("score")] for one in ratings} == {"3.0", "4.0"}
    assert "'-5" in {one[header.index("comment")] for one in ratings}
    told = run("study", "unblind", "--reason", "=1")[1].splitlines()
    [shown] = [part for part in told if "SUM" in part]
    assert shown.startswith("'@SUM")


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def number(text):
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def test_an_import_never_reads_a_rubric_or_run_out_of_the_folder_it_was_given(
    run, engine, tmp_path
):
    secret = tmp_path / "secret.txt"
    secret.write_text("root:x:0:0 {{response}}")
    for name in ("../secret", "/etc/passwd", "..", "a/../../secret.txt", "\0"):
        code, out, err = run("study", "rubric", "show", name)
        assert (code, out, "root:x" in err, "Traceback" in err) == (2, "", False, False), name
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "again").symlink_to(folder)
    code, _, err = run("study", "import", str(folder), "--format", "helm")
    assert (code, err.count("\n")) == (2, 1)
