"""Screens without a browser: before a jury, what jurors say of references, frozen reports, stored tables."""

import json
from datetime import UTC, datetime

import pytest
from kit.browsers import CARLA, RITA, drawn_page, labelled, said
from kit.jurors import Do, Stub
from kit.reference_study import NO, absent_by, check, fill, panel_at
from kit.studies import monthly_ratings, monthly_responses
from streamlit.testing.v1 import AppTest

from annotate.screens.agreement import NO_JURY
from annotate.screens.monitor import compared
from calibration.values import AnalysisOptions
from data.schema import Report
from data.study.ledger import freeze, reports, withdrawn_reports
from data.study.references import checked_references, opened_reference, references
from medjury.services.frozen_reports import FreezeQuestion, freeze_report, report_rows

SCORES = {"r11": "454", "r12": "221", "r21": "343", "r22": "112"}


@pytest.fixture
def drawn(small_study, run, write, screen):
    """Return what draws a screen of a study that two clinicians have rated, for a coordinator."""
    lines = [
        f"{name},dr-{clinician},clinician,{','.join(scores)}"
        for clinician in "ab"
        for name, scores in SCORES.items()
    ]
    head = "response_id,rater,kind,accuracy,completeness,clarity"
    path = write("scores.csv", "\n".join((head, *lines)))
    assert run("rate", "ratings", str(path))[0] == 0
    return lambda place, view: said(screen(place, view=view))


@pytest.mark.parametrize(
    ("place", "view"), [("jury", "Ranking"), ("jury", "Two juries"), ("monitor", "")]
)
def test_a_screen_that_needs_a_jury_says_what_to_do(drawn, place, view):
    text = drawn(place, view)
    assert "No juror has rated a response of this study yet." in text
    assert "Run a panel under Run" in text or "Run a jury under Jury" in text


def test_agreement_shows_what_clinicians_agree_on_and_asks_for_a_jury(drawn):
    assert NO_JURY in drawn("agreement", "Result")
    text = drawn("agreement", "Jurors")
    for words in ("Clinicians, by pairs", "What to quote it for", "ICC(A,1)"):
        assert words in text


@pytest.fixture
def stub():
    with Stub(lambda _: Do(NO)) as running:
        yield running


def test_before_anybody_was_asked_it_says_so_and_what_it_takes(engine, write, screen):
    fill(engine, write)
    page = screen("setup.references", RITA)
    assert "No juror has been asked yet" in said(page)
    assert not page.selectbox


def test_the_counts_are_the_command_s_and_a_marked_reference_comes_first_with_its_facts(
    engine, write, stub, screen
):
    stub.script = absent_by(i2="ab")
    fill(engine, write)
    check(engine, panel_at(stub))
    found = references(engine)
    assert checked_references(RITA, engine) == found
    page = screen("setup.references", RITA)
    shown = said(page)
    for words, number in (("Marked", 1), ("Sound", len(found.sound)), ("Without", 2)):
        row = next(line for line in shown.splitlines() if line.startswith(words) and "|" in line)
        assert row.endswith(f"|{number}")
    [choice] = page.selectbox
    assert choice.value == "visits/i2"
    for words in ("Jurors whose answers count: a, b, c.", "Reference 2.", "Context 2."):
        assert words in shown
    assert shown.count("aspirin 81 mg") == 2, "two jurors named it"
    choice.set_value("visits/i0").run()
    assert ("Reference 0." in said(page), "aspirin" in said(page)) == (True, False)


def test_the_newest_answer_of_a_juror_counts_and_hostile_words_are_shown_as_they_are(
    engine, write, stub, screen
):
    fact = "<img src=x> & $5"
    stub.script = lambda _: Do(json.dumps({"absent": True, "facts": [fact]}))
    fill(engine, write, 1)
    check(engine, panel_at(stub, "a", "b"))
    reference = opened_reference(RITA, engine, "visits/i0")
    assert [(one.juror, one.facts) for one in reference.answers] == [("a", (fact,)), ("b", (fact,))]
    page = screen("setup.references", RITA)
    assert f"yes|{fact}" in said(page), "in a table, which draws no markup"
    assert not [part for part in page.get("html") if "<img" in part.proto.body]
    assert opened_reference(RITA, engine, "visits/none") is None
    assert opened_reference(RITA, engine, "visits/bare") is None, "there was nothing to ask about"


ROW = {"scorer": "jury", "benchmark": "visits", "icc": 0.98657, "low": 0.951, "high": 0.991}
ROW |= {"n_responses": 40, "n_instances": 20, "note": "left out, no variance: simulated raters: x"}


def report(number, row, **body):
    body = {"rows": [ROW | row], "jury": ["gpt"], "method": "paper", "options": {}} | body
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Report(id=number, at=at, fingerprint="f" * 64, body=body)


@pytest.fixture
def rated(run, write, engine):
    responses, ratings = monthly_responses(20), monthly_ratings(1, 20, 1)
    assert run("study", "import", str(write("responses.csv", responses)))[0] == 0
    assert run("rate", "ratings", str(write("ratings.csv", ratings)))[0] == 0
    return engine


def test_a_report_says_by_a_code_who_is_simulated_and_its_words_say_nothing():
    coded = [{"code": "simulated", "raters": ["a, b"]}]
    rows = report_rows([report(1, {"notes": []}), report(2, {"notes": coded})])
    assert [one.simulated for one in rows] == [(), ("a, b",)]
    assert [one.to_json()["simulated"] for one in rows] == [False, True]


def test_what_changed_between_two_reports_is_told():
    rubric = {"name": "r", "version": "1"}
    first = report(1, {"notes": []}, rubrics={"old": rubric, "kept": rubric | {"sha256": "a"}})
    changed = {"new": rubric, "kept": rubric | {"sha256": "b"}}
    second = report(
        2, {"notes": []}, rubrics=changed, jury=["claude", "gpt"], options={"criterion": "clarity"}
    )
    _, row = report_rows([first, second])
    assert row.to_json()["changed"] == [
        "rubric of kept",
        "benchmark new is new",
        "benchmark old is gone",
        "juror claude joined",
        "criterion None -> clarity",
    ]


@pytest.mark.parametrize(
    ("icc", "shown"), [(0.98702, ("0.9866 (", "0.9870 (")), (0.6, ("0.987 (", "0.600 ("))]
)
def test_a_changed_icc_is_changed_however_few_digits_are_shown(icc, shown):
    line = next(compared(report(1, {}), report(2, {"icc": icc})))
    shown_now = (line.first.partition("(")[0] + "(", line.second.partition("(")[0] + "(")
    assert (line.differs, *shown_now) == ("changed", *shown)


def test_the_app_freezes_what_the_command_freezes(rated, run):
    assert run("analyse", "calibrate", "--reps", "20", "--freeze")[0] == 0
    number = freeze_report(rated, FreezeQuestion(AnalysisOptions(reps=20)))
    first, second = reports(rated)
    assert (number, second.body, second.fingerprint) == (2, first.body, first.fingerprint)


SCREEN = """
from annotate.navigation import study
from annotate.screens.monitor import say_frozen, show_reports
from calibration.values import AnalysisOptions
from data.person import OPERATOR
say_frozen(study(), OPERATOR)
show_reports(study(), OPERATOR, AnalysisOptions(reps=20))
"""


@pytest.mark.usefixtures("serve")
def test_two_presses_freeze_one_report_and_the_newest_is_compared_with_the_one_before(rated):
    app = drawn_page(SCREEN).run()
    button = app.button[0]
    app.text_input[0].input("report 1")
    for _ in range(2):  # the second press comes from the page as it was before the first
        app = button.click().run()
        assert not app.exception
    assert len(reports(rated)) == 1
    for number in (2, 3):
        freeze(rated, "f" * 64, reports(rated)[0].body | {"name": f"report {number}"})
        app.run()
        shown = [app.selectbox(key=key).value for key in ("earlier", "later")]
        assert [name.split()[-1] for name in shown] == [f"{number - 1}", f"{number}"]


@pytest.mark.usefixtures("serve")
def test_a_frozen_report_is_undone_at_once_or_withdrawn_with_a_reason(rated):
    app = drawn_page(SCREEN).run()
    app.button[0].click().run()
    app.button("freeze-undo").click().run()
    freeze(rated, "f" * 64, report(2, {"notes": []}).body | {"name": "another"})
    app.run()
    labelled(app.text_input, "Why it is withdrawn").input("wrong jury")
    labelled(app.button, "Withdraw the report").click()
    assert "2 another|" in said(app)
    assert reports(rated) == []
    gone = [event.detail["reason"] for event, _ in withdrawn_reports(CARLA, rated)]
    assert gone == ["undone at once after it was frozen", "wrong jury"]


def table_page():
    import streamlit as st

    from annotate.screens.stored_table import is_to_be_stored

    changed = bool(st.session_state.get("changed"))
    st.session_state["stored"] = is_to_be_stored("Store", "table-store", changed=changed)


def written(**state):
    app = AppTest.from_function(table_page)
    for name, value in state.items():
        app.session_state[name] = value
    return app.run()


def test_a_cell_that_arrives_after_the_button_is_stored_once():
    app = written()
    app.button[0].click().run()
    assert app.session_state["stored"]
    app.session_state["changed"] = True
    assert app.run().session_state["stored"]
    assert not app.run().session_state["stored"]


@pytest.mark.parametrize("pressed", [{}, {"table-store-pressed": 0.0}], ids=["never", "long ago"])
def test_what_is_written_is_not_stored_before_the_button_is_pressed(pressed):
    app = written(changed=True, **pressed)
    assert not app.session_state["stored"]
    app.button[0].click().run()
    assert app.session_state["stored"]
