"""While a study is blind, no byte of a command depends on who wrote which response.

Every command of `medjury` is run on a study and on copies of it whose authors are permuted. What is
drawn at random or is the time of the day is taken out before the bytes are compared.
"""

import os
import re
import shlex

import pytest
from kit import authored_study as authored
from kit.commands import call
from kit.packaged_study import database_of, parts_of
from sqlmodel import Session, select

from data.database import open_study
from data.schema import Response
from data.study.verify import acts, verify
from medjury.cli.commands import COMMANDS

FAST, PANEL = ("--reps", "5"), ("--panel", "medhelm")
JSON = ("--json", "-")  # what is told in words goes to the other stream then
DOCTORS = (("dr_a", "clinician"), ("dr_b", "clinician"))
ATTACKERS = (("one", "juror"), ("two", "juror"), ("three", "juror"))
JUROR = """
[[juror]]
name = "{}"
provider = "openai"
model = "m"
family = "gpt"
base_url = "http://127.0.0.1:9/v1"
"""

# Every call of every command that says anything of a study, in this order. A word in braces is a
# file in the folder of the study. How many models wrote, and their names, is no secret: told before
# others are named to it. What a run stores together, and so the number of its events, is a matter of time.
CALLS = """
study settings families zz-lantern=gpt
study settings --json -
study describe --json -
analyse calibrate --panel medhelm --reps 5 --details --html {a.html} --json -
analyse calibrate --panel medhelm --reps 5 --benchmark letters --details --notes --table {a.md} --table {a.csv} --table {a.tex}
analyse calibrate --criterion nonsense
analyse juries --jurors medhelm-gpt,medhelm-llama,medhelm-claude --reps 5 --benchmark letters --json -
analyse monitor --jurors medhelm-gpt,medhelm-llama,medhelm-claude --reps 5 --json -
analyse models --reps 5
analyse models --costs {costs.csv}
analyse models --json -
analyse predict --panel medhelm --benchmark letters --csv {p.csv} --json -
analyse route --panel medhelm --benchmark letters --at-most 3 --bound 0.3 --csv {r.csv} --json -
analyse errors --panel medhelm --benchmark letters --csv {e.csv} --html {e.html} --json -
analyse errors --per-group 2
study plan --pilot --json -
study points nowhere.csv --benchmark visits
study points --json -
study protocol set --margin 0.1
study protocol check --reps 5 --json -
analyse measure rouge-l
status --json -
status
jury missing --json -
study blind --json -
study blind --masked
study blind --masked --json -
study blind --leave-words Claude
study unblind
study unblind --reason ' '
rate adjudicate --json -
rate flags --json -
rate remind --json -
rate training --json -
rate assign --raters 4 --plan --json -
rate assign --raters 5 --seed 3
rate assign --raters 2 --per-response 9
rate people list
rate people add new
rate people change new --renew
rate people change new --email n@hospital.example
rate people change dr_z --specialty cardiology
rate people end new
study import {same.csv}
study import {others.csv}
study import {probe.csv}
study import {groups.csv}
study import {bare.csv}
study import {same.csv} --guess
study pairs visits --models gpt-4o-2024-08-06,claude-3-7-sonnet
study pairs visits --into compared --number 6 --json -
study pairs letters
rate ratings {more.csv}
rate ratings {unknown.csv}
share dossier --to tripod-llm --reps 5 --out {dossier.md} --json -
share rubric generic --to promptfoo --out {bundle}
share export {files}
share export --package {study.zip}
share export --redcap {redcap}
share export {none} --unblind
jury run medhelm --estimate --json -
jury run simulated --benchmark visits --json -
jury references simulated --json -
jury improve simulated --benchmark visits --estimate --json -
jury improve simulated --benchmark visits --rounds 1 --json -
rate withdraw --rater dr_z --reason 'took back consent'
rate withdraw --rater dr_c --reason 'took back consent' --json -
rate people join dr_b dr_a --reason 'one person'
study lock
""".strip().splitlines()
GIVEN = {"same.csv", "others.csv", "probe.csv", "groups.csv", "bare.csv", "costs.csv"}
GIVEN |= {"more.csv", "unknown.csv"}
# Which are not run, and why.
LEFT_OUT = {
    "check": "knows no study",
    "demo": "a study of its own, which it makes",
    "serve": "the screens, in test_blind_screens.py",
    "study verify": "finds a changed author, as it should; below with authors that came so",
    "study backup": "as verify: a copy is checked against the record",
    "jury probe": "asks about made-up texts, and keeps who is fit",
    "jury panels": "knows no study",
    "study rubric show": "reads what ships, or a rubric's folder",
    "study rubric add": "reads a folder into the study, and nothing of the study",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return authored.make(tmp_path_factory.mktemp("authored"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return where all commands write what they say of the study as it is."""
    return tmp_path_factory.mktemp("as-it-is")


@pytest.fixture(scope="module")
def as_it_is(study, folder):
    os.umask(0o022)  # as on most machines
    return said_by_all(authored.permuted(study, folder, lambda models: models), folder)


def test_what_commands_write_is_read_by_its_owner_alone(as_it_is, folder):
    made = (one for one in folder.rglob("*") if not one.name.startswith("study.db"))
    written = [path for path in made if path.name not in GIVEN]
    assert len(written) > 30
    assert {str(path) for path in written if path.stat().st_mode & 0o077} == set()
    assert as_it_is


def test_every_command_is_tried_or_said_why_not():
    called = {name for line in CALLS for name in COMMANDS if f"{line} ".startswith(f"{name} ")}
    assert {*COMMANDS} == called | LEFT_OUT.keys()
    assert not called & LEFT_OUT.keys()


@pytest.mark.parametrize(
    "permute",
    [
        authored.unheard,
        pytest.param(authored.shuffled, marks=pytest.mark.slow),
        pytest.param(authored.turned, marks=pytest.mark.slow),
    ],
)
def test_no_byte_of_a_command_depends_on_who_wrote_what(study, as_it_is, tmp_path, permute):
    found = said_by_all(authored.permuted(study, tmp_path, permute), tmp_path)
    assert found.keys() == as_it_is.keys()
    for what, said in as_it_is.items():
        assert found[what] == said, what


def test_the_same_commands_tell_authors_once_the_blind_is_lifted(study, tmp_path):
    told = []
    for name, permute in (("one", lambda models: models), ("two", authored.turned)):
        folder = tmp_path / name
        folder.mkdir()
        url = authored.permuted(study, folder, permute)
        why = ("--reason", "the test asks", "--out", str(folder / "authors.csv"))
        authored.done(url, "study", "unblind", *why)
        told.append(authored.done(url, "analyse", "calibrate", *PANEL, *FAST, "--details", *JSON))
    assert '"self_preference"' in told[0]
    assert told[0] != told[1]


@pytest.mark.parametrize("permute", [authored.shuffled, authored.unheard])
def test_an_import_says_the_same_and_makes_the_same_ids_whoever_wrote_what(tmp_path, permute):
    found = []
    for name, change in (("one", list), ("two", permute)):
        folder = tmp_path / name
        folder.mkdir()
        found.append(_imported(folder, change))
    assert found[0] == found[1]


def _imported(folder, permute):
    """Return what imports into a new study say, what it holds then, and what `verify` says."""
    url, rows = f"sqlite:///{folder}/new.db", list(authored.responses())
    models = permute([row["model"] for row in rows])
    bare = [{key: row[key] for key in row if key != "response_id"} for row in rows]
    wrote = [row | {"model": model} for row, model in zip(bare, models, strict=True)]
    again = [row | {"model": "somebody-else"} for row in wrote]
    files = {"wrote.csv": wrote, "again.csv": again, "part.csv": [wrote[0]], "last.csv": wrote}
    told = []
    for name, content in files.items():
        path = authored.write_csv(folder / name, content)
        told += [str(one) for one in call(url, "study", "import", str(path))]
    for words in (("study", "verify"), ("rate", "assign", "--raters", "3")):
        told += [str(one) for one in call(url, *words)]
    engine = open_study(url)
    with Session(engine) as session:
        told += [f"{one.response_id} {one.shown}" for one in session.exec(select(Response))]
    assert verify(engine).findings == ()
    engine.dispose()
    return [authored.plain(one, folder) for one in told]


def test_jurors_of_one_family_that_leave_out_chosen_texts_learn_nothing(tmp_path):
    told = []
    for name, permute in (("as it is", list), ("turned", authored.turned)):
        folder = tmp_path / name
        folder.mkdir()
        told.append(_asked_by_attackers(folder, permute))
    assert told[0] == told[1]
    assert all("known after unblinding" in one for one in told[0])


def _asked_by_attackers(folder, permute):
    """Return what a study says of jurors each of which has left one text out."""
    url, rows = f"sqlite:///{folder}/study.db", list(authored.responses())
    models = permute([row["model"] for row in rows])
    wrote = [row | {"model": model} for row, model in zip(rows, models, strict=True)]
    authored.done(url, "study", "import", str(authored.write_csv(folder / "responses.csv", wrote)))
    given = [
        {"response_id": row["response_id"], "rater": who, "kind": kind}
        | dict.fromkeys(authored.CRITERIA, str(1 + (n * k) % 5))
        for n, row in enumerate(rows)
        for k, (who, kind) in enumerate((*DOCTORS, *ATTACKERS), 1)
        if kind == "clinician" or n != k
    ]
    authored.done(url, "rate", "ratings", str(authored.write_csv(folder / "ratings.csv", given)))
    panel = folder / "panel.toml"
    panel.write_text('name = "p"\n' + "".join(JUROR.format(who) for who, _ in ATTACKERS))
    others = folder / "others.toml"
    others.write_text(panel.read_text().replace('name = "', 'name = "new-'))
    asked = (
        ("analyse", "calibrate", "--panel", str(panel), *FAST, "--details", *JSON),
        ("jury", "run", str(others), "--estimate", *JSON),
    )
    return [authored.plain("\n".join(map(str, call(url, *words))), folder) for words in asked]


def said_by_all(url, folder):
    """Run every command; return what each said and wrote, without what is drawn or is the time."""
    _files(url, folder)
    found = {}
    for line in CALLS:
        words = shlex.split(line)
        code, out, err = call(url, *(_placed(folder, word) for word in words))
        assert "Traceback" not in err
        found[line] = authored.plain(f"{code}\n{out}\n{err}", folder)
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        if ".db" not in path.name and path.name not in GIVEN:
            text = authored.plain(_text(path), folder)
            if path.suffix == ".html":  # juries evaluated within a second stand in either order
                text = "".join(sorted(re.split("(?=<tr)|(?<=</tr>)", text)))
            found[authored.plain(str(path.relative_to(folder)), folder)] = text
    assert len(acts(open_study(url), "unblinded")) == 0
    return found


def _placed(folder, word):
    return str(folder / word[1:-1]) if word.startswith("{") else word


def _text(path):
    """Return a file's bytes as text, those of an archive file by file."""
    if path.suffix != ".zip":
        return path.read_bytes().decode("latin-1")
    bodies = {name: body.decode("latin-1") for name, body in parts_of(path).items()}
    if "study.db" in bodies:
        with database_of(parts_of(path)) as database:
            bodies["study.db"] = "\n".join(database.iterdump())
    return "\n".join(f"{name}\n{body}" for name, body in bodies.items())


def _files(url, folder):
    """Write the files that commands read: the study's own, and those of somebody who guesses."""
    engine = open_study(url)
    with Session(engine) as session:
        texts = {one.response_id: one.text for one in session.exec(select(Response))}
    engine.dispose()
    rows = [row | {"response": texts[row["response_id"]]} for row in authored.responses()]
    authored.write_csv(folder / "same.csv", rows)
    guess = [row | {"model": authored.MODELS[0]} for row in rows]
    authored.write_csv(folder / "others.csv", guess)
    authored.write_csv(folder / "probe.csv", [guess[4] | {"response_id": "probe"}])
    groups = [row | {"group:guess": "ab"[n % 2]} for n, row in enumerate(guess[:2])]
    authored.write_csv(folder / "groups.csv", groups)
    bare = [{key: row[key] for key in row if key != "response_id"} for row in guess]
    authored.write_csv(
        folder / "bare.csv", bare[:4]
    )  # none of which names itself: an id made of it would
    (folder / "costs.csv").write_text(f"model,usd\n{authored.MODELS[0]},2.5\nnobody,1\n")
    rating = {"rater": "dr_y", "kind": "clinician", "accuracy": "4"}
    authored.write_csv(folder / "more.csv", [{"response_id": rows[0]["response_id"]} | rating])
    authored.write_csv(folder / "unknown.csv", [{"response_id": "no-such"} | rating])
