"""A study that clinicians have rated and no juror yet: what its screens show, and what they ask for."""

from collections.abc import Callable
from pathlib import Path

import pytest
from kit.pages import said
from kit.studies import Run
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from annotate.screens.agreement import NO_JURY

SCORES = {"r11": "454", "r12": "221", "r21": "343", "r22": "112"}


@pytest.fixture
def drawn(
    small_study: Engine,
    run: Run,
    write: Callable[[str, str], Path],
    screen: Callable[..., AppTest],
) -> Callable[[str, str], str]:
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
def test_a_screen_that_needs_a_jury_says_what_to_do(
    drawn: Callable[[str, str], str], place: str, view: str
) -> None:
    text = drawn(place, view)
    assert "No juror has rated a response of this study yet." in text
    assert "Run a panel under Run" in text or "Run a jury under Jury" in text


def test_agreement_shows_what_clinicians_agree_on_and_asks_for_a_jury(
    drawn: Callable[[str, str], str],
) -> None:
    assert NO_JURY in drawn("agreement", "Result")
    text = drawn("agreement", "Jurors")
    assert "Clinicians, by pairs" in text
    assert "The clinicians' own reliability" in text
    assert "ICC(A,1)" in text
