"""The training round in the app: experts' scores brought in, how clinicians stand, who is let through."""

from collections.abc import Iterator

import pytest
from kit.pages import drawn_page, read
from kit.trained_study import WIDE, Put, fail_round
from kit.trained_study import made as made
from kit.trained_study import put as put
from kit.trained_study import study as study
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from annotate.navigation import study as served
from annotate.screens.setup import training
from data.errors import NotAllowed
from data.importers.ratings import ExpertFile
from data.importers.table import TableFile
from data.person import Person
from data.schema import Role
from data.study.training import bring_experts, leave_outcome, let_through_as
from data.study.verify import acts

CARLA = Person(7, "Carla", Role.COORDINATOR)
OTHERS = [Person(8, "Rita", Role.RESEARCHER), Person(9, "dr-a", Role.CLINICIAN, 1)]
SCRIPT = """
from annotate.navigation import study
from annotate.screens.setup.training import show
from data.person import Person
show(study(), Person(7, 'Carla', 'coordinator', None))
"""


@pytest.fixture
def page(study: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("MEDJURY_DB", study.url.render_as_string(hide_password=False))
    yield drawn_page(SCRIPT, 60)
    served().dispose()


def drawn(page: AppTest) -> str:
    assert not page.exception, [error.value for error in page.exception]
    return read(page)


def test_without_experts_scores_the_screen_says_so_and_offers_the_file(page: AppTest) -> None:
    text = drawn(page.run())
    assert "There is no training" in text
    assert "File of experts" in text


def test_the_screen_shows_how_each_clinician_stands_and_lets_one_begin_with_a_reason(
    page: AppTest, study: Engine, put: Put
) -> None:
    put(WIDE)
    for number in range(1, training.MOST_ROUNDS + 1):
        fail_round(study, 1)
        leave_outcome(study, 1, number)
    text = drawn(page.run())
    assert "not passed" in text
    assert "no: did not pass" in text
    page.selectbox[0].select("dr-a")
    (button,) = [one for one in page.button if one.label == "Let them begin"]
    button.click()
    assert "a reason is needed" in drawn(page.run())
    page.text_input[0].input("She trains the others.")
    next(one for one in page.button if one.label == "Let them begin").click()
    assert "dr-a may begin." in drawn(page.run())
    (waived,) = acts(study, "training waived")
    assert (waived.actor, waived.detail["reason"]) == (CARLA.actor, "She trains the others.")


def test_an_import_in_the_app_is_the_commands_and_stands_under_the_coordinators_name(
    study: Engine, write: object, tmp_path: object
) -> None:
    path = write("experts.csv", WIDE)  # type: ignore[operator]
    added = bring_experts(CARLA, study, ExpertFile(TableFile(path)), CARLA.actor)
    assert (added.added, added.responses) == (6, 2)
    assert training.told(added).startswith("6 expert scores imported")
    (event,) = acts(study, "expert scores imported")
    assert event.actor == CARLA.actor


@pytest.mark.parametrize("person", OTHERS)
def test_nobody_but_a_coordinator_reads_or_changes_training(study: Engine, person: Person) -> None:
    for act in (
        lambda: training.standings(person, study),
        lambda: bring_experts(person, study, [], person.actor),
        lambda: let_through_as(person, study, "dr-a", "why", person.actor),
    ):
        with pytest.raises(NotAllowed):
            act()
