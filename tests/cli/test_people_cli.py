"""`medjury rate people`: codes and links on paper, and nobody kept who should be out."""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from kit.study_place import all_rows, fill
from sqlalchemy import Engine

from data.schema import Role
from data.study.people import CodeOutcome, check_code
from medjury import main

CODE = re.compile(r"[2-9A-Z]{4}(?:-[2-9A-Z]{4}){3}")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    url: str, engine: Engine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run `medjury rate people ...` on the test's study; return exit code, output and messages."""
    monkeypatch.setenv("MEDJURY_DB", url)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["rate", "people", *arguments])
        said = capsys.readouterr()
        return int(str(ended.value.code or 0)), said.out, said.err

    return call


def test_added_people_get_codes_that_sign_them_in_as_what_they_are(
    run: Run, engine: Engine
) -> None:
    code, out, _ = run("add", "Ann Lee", "dr-b", "--role", "coordinator")
    assert code == 0
    found = [check_code(engine, one).person for one in CODE.findall(out)]
    assert [(one.name, one.role) for one in found if one] == [
        ("Ann Lee", Role.COORDINATOR),
        ("dr-b", Role.COORDINATOR),
    ]
    assert CODE.search(run("list")[1]) is None


def test_a_command_hashes_codes_as_slowly_as_owasp_asks_at_least(run: Run, engine: Engine) -> None:
    subprocess.run([sys.executable, "-m", "medjury", "rate", "people", "add", "dr-a"], check=True)
    [cost] = re.findall(r"\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)", str(all_rows(engine)))
    assert [int(one) for one in cost] >= [19 * 1024, 2, 1]


def test_a_link_carries_its_code_after_the_hash(run: Run, engine: Engine) -> None:
    _, out, _ = run("add", "dr-a", "--link", "--url", "https://study.example/")
    [link] = re.findall(r"https://study\.example/join#(\S+)", out)
    assert check_code(engine, link).outcome == CodeOutcome.GOOD
    assert "link" in run("list")[1]


def test_renewing_and_ending_close_the_old_ways(run: Run, engine: Engine) -> None:
    first = CODE.findall(run("add", "dr-a", "--email", "A@ward.example")[1])[0]
    second = CODE.findall(run("change", "dr-a", "--renew")[1])[0]
    assert check_code(engine, first).person is None
    assert run("end", "dr-a")[1] == "dr-a can no longer sign in\n"
    assert run("end", "dr-a")[1] == "dr-a was shut out already\n"
    assert check_code(engine, second).person is None
    listed = run("list")[1]
    assert "ended" in listed
    assert "a@ward.example" in listed


def test_an_email_is_given_changed_and_taken_away(run: Run) -> None:
    run("add", "dr-a")
    assert run("change", "dr-a", "--email", "A@Ward.example")[1] == "dr-a now has: a@ward.example\n"
    assert (
        run("change", "dr-a", "--email", "a@ward.example")[1]
        == "dr-a has already: a@ward.example\n"
    )
    assert "b@ward.example" in run("change", "dr-a", "--email", "b@ward.example")[1]
    assert "b@ward.example" in run("list")[1]
    assert run("change", "dr-a", "--email", "")[1] == "dr-a now has: no e-mail address\n"
    assert run("change", "dr-a", "--email", "")[1] == "dr-a has already: no e-mail address\n"
    assert "ward.example" not in run("list")[1]


@pytest.fixture(scope="module")
def two_people(study: Engine) -> Engine:
    """Make a study once that knows two people."""
    url = study.url.render_as_string(hide_password=False)
    for added in (["dr-a"], ["dr-taken", "--email", "taken@ward.example"]):
        with pytest.raises(SystemExit, match="0"):
            main(["rate", "people", "add", *added, "--db", url])
    return study


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "dr-a"], "already"),
        (["add", "dr-b", "--email", "nonsense"], "not an address"),
        (["add", "dr-b", "--link", "--url", "study.example"], "must begin with http"),
        (["add", "dr-b", "--role", "chief"], "chief"),
        (["add", "dr-b", "--days", "0"], "--days"),
        (["change", "dr-z", "--renew"], "nobody of that name"),
        (["end", "dr-z"], "nobody of that name"),
        (["change", "dr-z", "--email", "z@ward.example"], "nobody of that name"),
        (["change", "dr-a"], "give --email, --specialty or --renew"),
        (["change", "dr-a", "--email", "nonsense"], "not an address"),
        (["change", "dr-a", "--email", f"{'a' * 250}@b.cd"], "not an address"),
        (["change", "dr-a", "--email", "Taken@ward.example"], "belongs to dr-taken"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    run: Run, engine: Engine, two_people: Engine, arguments: list[str], said: str
) -> None:
    fill(engine, two_people)
    before = run("list")[1]
    assert "dr-taken" in before
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert run("list")[1] == before


def test_an_empty_study_says_how_to_begin(run: Run) -> None:
    assert "--role coordinator" in run("list")[1]
