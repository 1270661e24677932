"""Names are data: no handle makes a note, is read as two people, or breaks the words around it."""

import csv
import html
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kit.odd_studies import PLAIN, Odd, again, all_notes, known
from kit.scores import rescored_of
from kit.studies import content_of
from kit.study_place import behind_the_record
from sqlalchemy import text

from calibration.dossier import dossier_markdown
from calibration.json_values import json_value
from calibration.notes import quoted, simulated_in
from calibration.report.page import page
from calibration.writers import agreement_table, latex, markdown
from data.person import OPERATOR
from data.schema import Kind, Rater
from data.study.ledger import freeze
from data.study.rubrics import validations
from data.study.standing import benchmarks
from medjury.services.dossier import dossier

FORGED = "dr_c; simulated raters: nobody"
TWO = "Smith, John"
HOSTILE = "dr_c{0}{rater}%s%(x)d<b onclick=x>\\input{y}$"
CRITERIA = ("accuracy", "completeness", "clarity")


def fill(run, folder, clinicians, flat="", margin=""):
    """Import 30 instances that some clinicians and two jurors rated; `flat` never varies."""
    random = np.random.default_rng(5)
    texts = [["instance_id", "benchmark", "context", "prompt", "response_id", "model", "response"]]
    scores: list[list[Any]] = [["response_id", "rater", "kind", "criterion", "score"]]
    for i in range(30):
        texts.append([f"i{i}", "visits", "Pain.", "Write.", f"r{i}", "m", f"Text {i}"])
        for name in (*clinicians, "gpt", "llama"):
            kind = "juror" if name in ("gpt", "llama") else "clinician"
            for criterion in CRITERIA:
                score = int(np.clip(round(1 + i % 5 + random.normal(0, 0.8)), 1, 5))
                scores.append([f"r{i}", name, kind, criterion, 4 if name == flat else score])
    for rows, *command in ((texts, "study", "import"), (scores, "rate", "ratings")):
        with (folder / "rows.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        assert run(*command, str(folder / "rows.csv"))[0] == 0
        if margin and command[0] == "study":
            fixed = ("study", "protocol", "set", "--margin", margin, "--jurors", "gpt,llama")
            assert run(*fixed)[0] == 0


def calibrated(run, folder, *options):
    """Return what the terminal shows with all notes, the JSON, and the page."""
    to, page_to = folder / "c.json", folder / "c.html"
    written = ("--json", str(to), "--html", str(page_to), "--reps", "100")
    code, out, err = run("analyse", "calibrate", "--notes", *written, *options)
    assert code == 0, err
    return out, json.loads(to.read_text()), page_to.read_text()


@pytest.fixture
def forged(run, tmp_path):
    """Return a calibration of a real study whose third clinician, who never varies, is forged."""
    fill(run, tmp_path, ("dr_a", "dr_b", FORGED), flat=FORGED)
    return calibrated(run, tmp_path)


def test_a_handle_that_looks_like_a_note_is_shown_whole_and_makes_nobody_simulated(forged):
    out, body, page_text = forged
    assert "Simulated" not in out + page_text
    notes = [one for row in body["rows"] for one in row["notes"]]
    assert "simulated" not in {one["code"] for one in notes}
    assert body["decision"]["kind"] == "no_protocol"
    assert f'left out, no variance: "{FORGED}"' in out
    assert html.escape(f'no variance: "{FORGED}"') in page_text
    assert {*map(tuple, (one["raters"] for one in notes if one["code"] == "no_variance"))} == {
        (FORGED,)
    }


def test_the_decision_and_every_figure_are_those_of_the_study_with_a_plain_handle(
    forged, run, tmp_path, study_in, monkeypatch
):
    monkeypatch.setenv("MEDJURY_DB", study_in(tmp_path, "plain.db"))
    fill(run, tmp_path, ("dr_a", "dr_b", "dr_c"), flat="dr_c")
    _, plainly, _ = calibrated(run, tmp_path)
    assert plainly["decision"] == forged[1]["decision"]
    told = json.dumps(plainly).replace('"dr_c"', json.dumps(FORGED))
    assert _unworded(json.loads(told)["rows"]) == _unworded(forged[1]["rows"])


def _unworded(value):
    """Return rows without the sentences of their notes."""
    if isinstance(value, list):
        return [_unworded(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: _unworded(one) for name, one in value.items() if name not in ("note", "text")}


def test_a_simulated_rater_whose_name_has_a_comma_is_one_person(run, engine, tmp_path):
    with behind_the_record(engine) as session:
        session.add_all(
            Rater(kind=Kind.CLINICIAN, handle=one, simulated=True) for one in (TWO, "sim-b")
        )
    fill(run, tmp_path, (TWO, "sim-b", "dr_c"))
    out, body, text = calibrated(run, tmp_path)
    notes = [one for row in body["rows"] for one in row["notes"] if one["code"] == "simulated"]
    assert {tuple(one["raters"]) for one in notes} == {(TWO, "sim-b")}
    assert body["decision"]["reasons"][0]["raters"] == [TWO, "sim-b"]
    for said in (out, html.unescape(text)):
        assert f'rest on simulated raters: "{TWO}", sim-b.' in said


def test_every_writer_lists_a_simulated_name_with_a_comma_as_one():
    names = PLAIN.ratings["rater"].replace("gpt", TWO)
    scores = replace(PLAIN, ratings=PLAIN.ratings.assign(rater=names), simulated=frozenset([TWO]))
    content = content_of(scores)
    assert simulated_in(content.rows) == (TWO,)
    jury = json_value(next(row for row in content.rows if row.scorer == "jury"))
    [made_up] = [one for one in jury["notes"] if one["code"] == "simulated"]
    assert made_up["raters"] == [TWO]
    assert f'rest on simulated raters: "{TWO}".' in html.unescape(page(content))
    table = agreement_table(content.rows, "how")
    assert f'Simulated raters: "{TWO}"; no row' in markdown(table).replace("\\", "")
    assert rf"Simulated raters: \textquotedbl{{}}{TWO}\textquotedbl{{}};" in latex(table)


def test_a_hostile_name_is_shown_as_it_is_by_every_way_out(run, tmp_path):
    fill(run, tmp_path, ("dr_a", "dr_b", HOSTILE), flat=HOSTILE)
    out, body, text = calibrated(run, tmp_path, "--details")
    assert f"left out, no variance: {HOSTILE}" in out
    assert f"no variance: {html.escape(HOSTILE)}" in text
    assert "<b onclick" not in text
    assert HOSTILE in json.dumps(body, ensure_ascii=False).replace("\\\\", "\\")


def renamed(odd, tail):
    """Return a study whose raters dr0 and gpt have something after their names."""
    names = odd.scores.ratings["rater"].replace({one: one + tail for one in ("dr0", "gpt")})
    simulated = frozenset(
        one + tail if one in ("dr0", "gpt") else one for one in odd.scores.simulated
    )
    scores = replace(odd.scores, ratings=odd.scores.ratings.assign(rater=names))
    families = {one + tail if one == "gpt" else one: f for one, f in odd.known.families.items()}
    facts = replace(odd.known, families=families)
    return replace(odd, scores=replace(scores, simulated=simulated), known=facts)


NAMED = {
    "flat": Odd(rescored_of(rescored_of(PLAIN, "dr0", 4.0), "gpt", 4.0), known(PLAIN)),
    "at the top": Odd(rescored_of(PLAIN, "gpt", 5.0, "clarity")),
    "repeats": Odd(again(again(PLAIN, "dr0", 7, pass_=1), "gpt", 9, replicate=1)),
    "simulated": Odd(replace(PLAIN, simulated=frozenset(["dr0", "gpt"]))),
}
QUICK = ["{0}{rater}%s", "{<b>\n|", '}; x, "y']
TAILS = ["{", "}", "{0}", "{rater}", "{{x}}", "%", "%s", "<b>", "\n", "\t", "; x", ", y", '"', "|"]


@pytest.fixture(scope="module")
def plainly():
    """Return the words of every note where the names end harmlessly."""
    return {
        name: [str(one) for one in all_notes(renamed(odd, "QQ"))] for name, odd in NAMED.items()
    }


@pytest.mark.parametrize(
    "tail", [*QUICK, *(pytest.param(one, marks=pytest.mark.slow) for one in TAILS)]
)
def test_a_message_is_the_same_whatever_signs_a_name_holds(tail, plainly):
    for name, odd in NAMED.items():
        found = [str(one) for one in all_notes(renamed(odd, tail))]
        expected = [
            one.replace("dr0QQ", quoted(f"dr0{tail}")).replace("gptQQ", quoted(f"gpt{tail}"))
            for one in plainly[name]
        ]
        assert found == expected
        assert any(quoted(f"dr0{tail}") in one or quoted(f"gpt{tail}") in one for one in found)
        assert not any("\n" in one for one in found)


def answered(run, *arguments):
    """Return what a command writes as JSON, and what it says."""
    code, out, err = run(*arguments, "--json", "-")
    assert code == 0, err
    return json.loads(out), err


@pytest.fixture
def planned(run, tmp_path):
    """Make the real study with the forged handle, its protocol fixed before its ratings."""
    fill(run, tmp_path, ("dr_a", "dr_b", FORGED), flat=FORGED, margin="0.4")


@pytest.mark.usefixtures("planned")
def test_a_forged_name_makes_no_prediction_plan_or_methods_section_simulated(run, engine, tmp_path):
    to = tmp_path / "p.csv"
    predicted, said = answered(run, "analyse", "predict", "--csv", str(to))
    assert predicted["decision"]["kind"] == "usable"
    assert all(row["validated"] for row in predicted["benchmarks"])
    plan, told = answered(run, "study", "plan", "--pilot")
    rows = [*predicted["benchmarks"], *plan["rows"]]
    assert "simulated" not in {one["code"] for row in rows for one in row["notes"]}
    assert not [line for line in plan["sentences"] if "simulated raters" in line]
    assert "Simulated" not in said + told
    assert "simulated" not in to.read_text("utf-8")
    made = dossier(engine, "grras", reps=50)
    written = dossier_markdown(made)
    assert (made.simulated, "Simulated" in written) == ((), False)
    assert FORGED in written.replace("\\", "")


@pytest.mark.usefixtures("planned")
def test_a_simulated_rater_with_a_comma_in_its_name_is_one_in_plans_and_predictions(run, engine):
    with engine.execution_options(writes=True).begin() as connection:
        change = text("UPDATE rater SET simulated = true, handle = :new WHERE handle = 'dr_b'")
        connection.execute(change, {"new": TWO})
    plan, _ = answered(run, "study", "plan", "--pilot")
    notes = plan["assumed"]["pilot"]["clinicians"]["notes"]
    assert [one["raters"] for one in notes if one["code"] == "simulated"] == [[TWO]]
    assert f'The pilot\'s figures are of simulated raters: "{TWO}".' in plan["sentences"]
    predicted, said = answered(run, "analyse", "predict")
    assert predicted["decision"]["kind"] == "simulated"
    assert predicted["decision"]["reasons"][0]["raters"] == [TWO]
    assert not any(row["validated"] for row in predicted["benchmarks"])
    assert said.splitlines()[0] == "Simulated: nothing here is evidence."


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize(("code", "simulated"), [("no_variance", False), ("simulated", True)])
def test_only_a_code_makes_the_evidence_of_a_report_simulated(engine, code, simulated):
    (used,) = benchmarks(engine)
    told = {"note": f"no variance: {FORGED}", "notes": [{"code": code, "raters": ["gpt"]}]}
    row = {"benchmark": "visits", "scorer": "jury", "n_responses": 30, "n_clinicians": 3}
    row |= dict.fromkeys(("icc", "low", "high"), 0.5) | told
    sha256 = used.rubric.sha256
    body = {"rows": [row], "jury": ["gpt", "llama"], "rubrics": {"visits": {"sha256": sha256}}}
    number = freeze(engine, "data", body)
    (found,) = [one for one in validations(OPERATOR, engine, sha256) if one.report == number]
    assert found.simulated is simulated
