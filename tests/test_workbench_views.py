"""Saved views of the workbench: each person's own, in the study, and no change of its figures."""

import pytest
from sqlalchemy import Engine

from data.errors import BadInput, NotAllowed, Unknown
from data.person import OPERATOR, Person
from data.queries.record import acts, verify
from data.queries.study import version
from data.schema import Role
from data.store.study import lock
from data.store.views import VIEW_SAVED, forget_view, save_view, saved_views

RITA, CARLA = Person(1, "Rita", Role.RESEARCHER), Person(11, "Carla", Role.COORDINATOR)


def test_a_view_is_its_persons_own_and_the_record_stays_whole(small_study: Engine) -> None:
    before = version(small_study)
    save_view(RITA, small_study, " lenient ", "where=lenient&find=fever")
    save_view(CARLA, small_study, "lenient", "where=strict")
    save_view(RITA, small_study, "a%", "on=visits")
    assert saved_views(RITA, small_study) == {
        "a%": "on=visits",
        "lenient": "where=lenient&find=fever",
    }
    assert saved_views(CARLA, small_study) == {"lenient": "where=strict"}
    assert version(small_study) == before  # nothing is computed anew for it
    assert "fever" not in str([event.detail.get("find") for event in acts(small_study, VIEW_SAVED)])
    forget_view(RITA, small_study, "lenient")
    assert [*saved_views(RITA, small_study)] == ["a%"]
    assert [*saved_views(CARLA, small_study)] == ["lenient"]
    assert verify(small_study).findings == ()


def test_what_cannot_be_saved_is_refused(small_study: Engine) -> None:
    with pytest.raises(BadInput, match="1 to 60"):
        save_view(RITA, small_study, "  ", "on=visits")
    with pytest.raises(BadInput, match="too long"):
        save_view(RITA, small_study, "long", "x" * 2001)
    with pytest.raises(Unknown):
        forget_view(RITA, small_study, "none")
    with pytest.raises(NotAllowed):
        save_view(Person(2, "dr", Role.CLINICIAN, 1), small_study, "mine", "")
    lock(small_study, OPERATOR.actor)
    with pytest.raises(NotAllowed, match="locked"):
        save_view(RITA, small_study, "late", "on=visits")
