"""A study that clinicians have rated and no juror yet: what its screens show, and what they ask for."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kit.pages import drawn_page, read
from kit.studies import Run
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from annotate import compute
from annotate.navigation import study
from annotate.screens import home
from annotate.screens.agreement import OF_A_JURY

SCORES = {"r11": "454", "r12": "221", "r21": "343", "r22": "112"}


@pytest.fixture
def drawn(
    small_study: Engine, run: Run, write: Callable[[str, str], Path]
) -> Iterator[Callable[[str], AppTest]]:
    """Return what draws a screen of a study that two clinicians have rated, for a coordinator."""
    lines = [
        f"{name},dr-{clinician},clinician,{','.join(scores)}"
        for clinician in "ab"
        for name, scores in SCORES.items()
    ]
    head = "response_id,rater,kind,accuracy,completeness,clarity"
    path = write("scores.csv", "\n".join((head, *lines)))
    assert run("rate", "ratings", str(path))[0] == 0

    def draw(screen: str) -> AppTest:
        script = (
            f"from annotate.screens.{screen} import show\n"
            "from annotate.navigation import study\n"
            "from data.person import Person\n"
            "show(study(), Person(7, 'Carla', 'coordinator', None))\n"
        )
        page = drawn_page(script).run()
        assert not page.exception, [error.value for error in page.exception]
        return page

    yield draw
    study().dispose()
    compute.end()


def told(page: AppTest) -> str:
    return read(page)


@pytest.mark.parametrize("screen", ["juries", "monitoring"])
def test_a_screen_that_needs_a_jury_says_how_far_the_study_is_and_what_to_do(
    drawn: Callable[[str], AppTest], screen: str
) -> None:
    text = told(drawn(screen))
    assert "No juror has rated a response of this study yet." in text
    assert "4 responses are rated by two clinicians or more." in text
    assert "Estimate and run a jury" in text
    assert home.BEFORE_A_JURY in text


def test_agreement_shows_what_clinicians_agree_on_and_no_part_of_a_jury(
    drawn: Callable[[str], AppTest],
) -> None:
    page = drawn("agreement")
    labels = [tab.label for tab in page.tabs]
    assert labels[:2] == ["Overview", "Raters"]
    assert not {*OF_A_JURY} & {*labels}
    text = told(page)
    assert "Clinicians, by pairs" in text
    assert "How reliable the clinicians are" in text
    assert "ICC(A,1)" in text
