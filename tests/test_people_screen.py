"""What a coordinator says of a clinician in the app: the specialty, which is a subgroup of the analysis."""

from collections.abc import Iterator

import pytest
from kit.pages import drawn_page
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from annotate.navigation import study as served
from data.person import OPERATOR
from data.schema import Role
from data.study import people
from data.study.people import add_people

SCRIPT = """
from annotate.navigation import study
from annotate.screens.home.people import manage_person
from data.study import people
from data.person import OPERATOR
(member,) = [one for one in people.people(OPERATOR, study()) if one.name == NAME]
manage_person(study(), OPERATOR, member, 1)
"""


@pytest.fixture
def dialogs(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, AppTest]]:
    """Return the dialog of a clinician, and that of a researcher."""
    add_people(OPERATOR, engine, ["dr-a"], Role.CLINICIAN)
    add_people(OPERATOR, engine, ["Rita"], Role.RESEARCHER)
    monkeypatch.setenv("MEDJURY_DB", engine.url.render_as_string(hide_password=False))
    yield {name: drawn_page(f"NAME = {name!r}\n{SCRIPT}", 60).run() for name in ("dr-a", "Rita")}
    served().dispose()


def test_a_clinician_s_specialty_is_set_in_the_dialog_and_shown_with_the_name(
    dialogs: dict[str, AppTest], engine: Engine
) -> None:
    page = dialogs["dr-a"]
    page.radio[0].set_value("Specialty").run()
    page.text_input[0].input("cardiology")
    page.button[0].click().run()
    assert not page.exception
    specialties = {one.name: one.specialty for one in people.people(OPERATOR, engine)}
    assert specialties == {"dr-a": "cardiology", "Rita": ""}


def test_only_clinicians_are_asked_for_a_specialty(dialogs: dict[str, AppTest]) -> None:
    assert "Specialty" in dialogs["dr-a"].radio[0].options
    assert "Specialty" not in dialogs["Rita"].radio[0].options
