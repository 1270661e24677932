"""What commands refuse, and where they write: never over a study, whole or not at all."""

import re
from pathlib import Path

import pytest
from kit.commands import command
from kit.studies import rated, rated_by_three
from kit.study_place import fill
from sqlalchemy import Engine

from data.errors import BadFile
from data.study.ledger import compositions_tried
from medjury.cli.files import write_files, write_json

NUMBERS = [
    *("analyse monitor --min-icc", "analyse monitor --target", "analyse predict --level"),
    *("jury run simulated --max-usd", "rate assign --raters 2 --repeats"),
    "study plan --icc 0.5 --minutes-per-response",
]
SEEDED = ["analyse juries", "analyse models", "analyse predict", "rate assign --raters 2"]
ANALYSES = ["calibrate", "juries", "monitor", "predict", "route --at-most 2"]
AB, NO_FOLDER = "alpha,beta", "not a file in a folder that exists"
REFUSED = [
    *((f"{one} --seed -1", "greater than or equal to 0") for one in (*SEEDED, "study plan")),
    *((f"{one} inf", f"'{one.split()[-1]}': inf is not a number") for one in NUMBERS),
    *((f"{one} nan", f"'{one.split()[-1]}'") for one in NUMBERS),
    *((f"analyse {one} --benchmark nope", "nope") for one in ANALYSES[1:]),
    *((f"analyse {one} --criterion nope", "criterion nope") for one in ANALYSES),
    *((f"analyse {one} --jurors alpha,nobody", "no ratings by a juror nobody") for one in ANALYSES),
    *((f"analyse {one} --json nowhere/a.json", NO_FOLDER) for one in ANALYSES),
    *(
        (f"analyse {one} --min-jurors 9", "the jury has 3 jurors")
        for one in ("calibrate", "predict")
    ),
    ("frobnicate", "No such command"),
    ("study import absent.csv", "absent.csv: No such file"),
    ("study rubric show nonsense", "generic"),
    ("jury run nonsense", "nonsense"),
    *((f"{one} --db absent.db", "there is no study at") for one in ("status", "analyse calibrate")),
    ("analyse calibrate --db nonsense://x", "--db"),
    ("analyse calibrate --method best", "is not one of 'paper', 'published'"),
    ("analyse calibrate --jurors alpha,,alpha", "alpha more than once and an empty name"),
    ("analyse calibrate --table -", "--html -: not a file"),
    ("analyse juries --sizes 2-9", "there are 3 jurors to choose from"),
    ("analyse juries --sizes 3-2", "the first is at least 1"),
    ("analyse juries --sizes 2-", "give one size or two as 1-5"),
    *(
        (f"analyse juries{one}", "--compare: give it twice")
        for one in (
            f" --compare {AB}",
            f" --compare {AB} --compare beta,alpha",
            " --compare alpha --compare beta --compare gamma",
        )
    ),
    ("analyse measure meteor", "rouge-l"),
    ("analyse monitor --since March", "write it as 2026-03-01"),
    ("analyse monitor --since 2031-01-01", "clinicians have rated no response since then"),
    ("analyse monitor --min-icc 1.5", "at most 1"),
    ("analyse monitor --false-alarms 0", "--false-alarms"),
    ("analyse monitor --false-alarms nan", "--false-alarms"),
    ("analyse monitor --baseline 2 --target 0.5", "give one of"),
    ("analyse monitor --every day", "--every"),
    ("analyse predict --level 90", "--level 90: give a share between 0 and 1"),
    ("analyse predict --csv nowhere/p.csv", NO_FOLDER),
    ("analyse route", "say which responses are harmful"),
    ("analyse route --at-most 2 --off-by 1", "one of the two"),
    ("analyse route --at-most 2 --bound 1", "--bound 1: give a share"),
    ("analyse route --at-most 2 --confidence 0", "--confidence 0: give a share"),
    ("analyse route --off-by -1", "--off-by -1: give points"),
    ("study plan", "give one of --icc"),
    ("study plan --icc 0.5 --single-icc 0.3", "give one of --icc"),
    ("study plan --icc 0.5 --pilot", "give one of --icc"),
    ("study plan --icc 1.2", "--icc"),
    ("study plan --icc 0.5 --width 0", "--width"),
    ("study plan --icc 0.5 --width nan", "--width"),
    ("study plan --single-icc nan", "--single-icc"),
    ("study plan --icc 0.5 --clinicians 1", "--clinicians 1"),
    ("study plan --icc 0.5 --benchmark b", "--benchmark"),
    ("study plan --icc 0.5 --json nowhere/a.json", NO_FOLDER),
    ("study plan --icc 0.5 --margin 0.1 --per-response 1", "--per-response 2 or more"),
    ("study plan --pilot --db absent.db", "there is no study at"),
    ("study plan --pilot --benchmark ward", "the study has notes, visits"),
]


@pytest.fixture(scope="module")
def filled(study, tmp_path_factory) -> Engine:
    rated_by_three(command(study), tmp_path_factory.mktemp("filled"))
    return study


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_cannot_be_is_one_message_with_nothing_noted_or_written(
    run, engine, filled, tmp_path_factory, monkeypatch, words, said
):
    fill(engine, filled)
    monkeypatch.chdir(here := tmp_path_factory.mktemp("here"))
    code, out, err = run(*words.split())
    assert (code, out) == (2, "")
    assert said in " ".join(re.sub(r"[│╭╮╰╯─]", " ", err).split())
    assert "Traceback" not in err
    assert compositions_tried(engine) == []
    assert not any(here.iterdir())


WRITING = [
    *(["analyse", "calibrate", f"--{name}"] for name in ("json", "html")),
    *(["analyse", "predict", f"--{name}"] for name in ("json", "csv")),
    *(["analyse", name, "--json"] for name in ("juries", "models", "monitor")),
    *(["study", name, "--json"] for name in ("verify", "settings")),
    ["study", "plan", "--icc", "0.5", "--json"],
    ["rate", "assign", "--raters", "2", "--json"],
    ["jury", "missing", "--json"],
    ["study", "unblind", "--reason", "asked", "--out"],
]


@pytest.mark.parametrize("command", WRITING, ids=" ".join)
def test_no_output_is_written_over_a_study(command, run, engine, study_file):
    for ending in ("", "-wal", "-shm", "-journal"):
        to = study_file.with_name(f"study.db{ending}")
        before = to.read_bytes() if to.exists() else None
        code, out, err = run(*command, str(to))
        assert (code, out) == (2, "")
        assert f"{command[-1]} {to}: is an SQLite database" in err
        assert (to.read_bytes() if to.exists() else None) == before
    assert run("study", "verify")[0] == 0


def test_a_link_to_a_study_is_the_study(run, engine, study_file):
    link = study_file.with_name("report.json")
    link.symlink_to(study_file)
    assert "SQLite database" in run("study", "settings", "--json", str(link))[2]


SAME = [
    ["analyse", "predict", "--csv", "{to}", "--json", "{to}"],
    ["analyse", "calibrate", "--json", "{to}", "--html", "{to}"],
    ["analyse", "calibrate", "--html", "{to}", "--html", "{folder}/../{folder_name}/a"],
]


@pytest.mark.parametrize("command", SAME, ids=" ".join)
def test_two_options_that_name_one_file_are_refused_before_any_work(command, run, engine, tmp_path):
    named = {"to": tmp_path / "a", "folder": tmp_path, "folder_name": tmp_path.name}
    code, out, err = run(*(one.format(**named) for one in command))
    assert (code, out) == (2, "")
    assert f"{command[2]} is to be written there; name another file" in err
    assert not (tmp_path / "a").exists()
    assert compositions_tried(engine) == []


def test_a_folder_that_is_not_there_does_not_lift_the_blind(run, tmp_path):
    rated(run, tmp_path)
    told = run("study", "unblind", "--reason", "asked", "--out", str(tmp_path / "absent" / "a.csv"))
    assert (told[0], "not a file in a folder that exists" in told[2]) == (2, True)
    assert run("analyse", "calibrate", "--reps", "20")[1].count("unblinded") == 0


def test_what_cannot_be_written_leaves_the_old_files_and_no_other(tmp_path):
    old, full = tmp_path / "a.json", Path("/dev/full")
    old.write_text("old")
    with pytest.raises(BadFile, match=r"--html /dev/full: No space left"):
        write_files({"--json": (old, "new"), "--html": (full, "x" * 100_000)})
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]
    assert old.read_text() == "old"


def test_a_file_written_anew_keeps_who_may_read_it_and_a_link_or_a_device_stays_one(tmp_path):
    old, link = tmp_path / "a.json", tmp_path / "link.json"
    old.write_text("old")
    old.chmod(0o600)
    link.symlink_to(old)
    write_json({"icc": 0.5}, link)
    assert link.is_symlink()
    assert '"icc": 0.5' in old.read_text()
    assert old.stat().st_mode & 0o777 == 0o600
    write_json({"icc": 0.5}, Path("/dev/null"))
    assert Path("/dev/null").is_char_device()
