"""What is told of frozen reports, by codes."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kit import rating_files
from kit.pages import drawn_page
from kit.studies import Run
from sqlalchemy import Engine

from annotate.screens.monitor import compared
from calibration.values import AnalysisOptions
from data.schema import Report
from data.study.ledger import freeze, reports
from medjury.services.frozen_reports import FreezeQuestion, freeze_report, report_rows

ROW = {"scorer": "jury", "benchmark": "visits", "icc": 0.98657, "low": 0.951, "high": 0.991}
ROW |= {"n_responses": 40, "n_instances": 20, "note": "left out, no variance: simulated raters: x"}


def report(number: int, row: dict[str, Any], **body: Any) -> Report:
    body = {"rows": [ROW | row], "jury": ["gpt"], "method": "paper", "options": {}} | body
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Report(id=number, at=at, fingerprint="f" * 64, body=body)


@pytest.fixture
def rated(run: Run, write: Callable[[str, str], Path], engine: Engine) -> Engine:
    """Return a study of one month with 20 responses."""
    responses, ratings = rating_files.monthly_responses(20), rating_files.monthly_ratings(1, 20, 1)
    assert run("study", "import", str(write("responses.csv", responses)))[0] == 0
    assert run("rate", "ratings", str(write("ratings.csv", ratings)))[0] == 0
    return engine


def test_a_report_says_by_a_code_who_is_simulated_and_its_words_say_nothing() -> None:
    coded = [{"code": "simulated", "raters": ["a, b"]}]
    rows = report_rows([report(1, {"notes": []}), report(2, {"notes": coded})])
    assert [one.simulated for one in rows] == [(), ("a, b",)]
    assert [one.to_json()["simulated"] for one in rows] == [False, True]


def test_what_changed_between_two_reports_is_told() -> None:
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
def test_a_changed_icc_is_changed_however_few_digits_are_shown(
    icc: float, shown: tuple[str, str]
) -> None:
    line = next(compared(report(1, {}), report(2, {"icc": icc})))
    assert line.differs == "changed"
    assert line.first.startswith(shown[0])
    assert line.second.startswith(shown[1])


def test_the_app_freezes_what_the_command_freezes(rated: Engine, run: Run) -> None:
    assert run("analyse", "calibrate", "--reps", "20", "--freeze")[0] == 0
    number = freeze_report(rated, FreezeQuestion(AnalysisOptions(reps=20)))
    first, second = reports(rated)
    assert (number, second.body) == (2, first.body)
    assert second.fingerprint == first.fingerprint


SCREEN = """
from annotate.navigation import study
from annotate.screens.monitor import say_frozen, show_reports
from calibration.values import AnalysisOptions
from data.person import OPERATOR
say_frozen(study(), OPERATOR)
show_reports(study(), OPERATOR, AnalysisOptions(reps=20))
"""


@pytest.mark.usefixtures("serve")
def test_two_presses_freeze_one_report_and_the_newest_is_compared_with_the_one_before(
    rated: Engine,
) -> None:
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
