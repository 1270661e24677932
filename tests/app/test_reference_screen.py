"""What jurors said of references stands under Set up, Notes: the command's counts, and each to read."""

import json
from collections.abc import Iterator

import pytest
from kit.jurors import Do, Stub
from kit.pages import drawn_page, read
from kit.reference_study import NO, Write, absent_by, check, fill, panel_at
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from data.errors import NotAllowed
from data.person import Person
from data.schema import Role
from data.study.references import checked_references, opened_reference, references

RITA = Person(7, "Rita", Role.RESEARCHER)
SCREEN = """
from annotate.navigation import study
from annotate.screens.setup.references import show
from data.person import Person
from data.schema import Role
show(study(), Person(7, "Rita", Role.RESEARCHER))
"""


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(lambda _: Do(NO)) as running:
        yield running


@pytest.fixture
def page(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setenv("MEDJURY_DB", engine.url.render_as_string(hide_password=False))
    return drawn_page(SCREEN, 60)


def told(page: AppTest) -> str:
    page.run()
    assert not page.exception
    return read(page)


def test_before_anybody_was_asked_it_says_so_and_what_it_takes(
    engine: Engine, write: Write, page: AppTest
) -> None:
    fill(engine, write)
    assert "No juror has been asked yet" in told(page)
    assert not page.selectbox


def test_the_counts_are_the_command_s_and_a_marked_reference_comes_first_with_its_facts(
    engine: Engine, write: Write, stub: Stub, page: AppTest
) -> None:
    stub.script = absent_by(i2="ab")
    fill(engine, write)
    check(engine, panel_at(stub))
    found = references(engine)
    assert checked_references(RITA, engine) == found
    said = told(page)
    for words, number in (("Marked", 1), ("Sound", len(found.sound)), ("Without", 2)):
        row = next(line for line in said.splitlines() if line.startswith(words) and "|" in line)
        assert row.endswith(f"|{number}")
    assert "Jurors whose answers count: a, b, c." in said
    [choice] = page.selectbox
    assert choice.value == "visits/i2"
    assert "Reference 2." in said
    assert "Context 2." in said
    assert said.count("aspirin 81 mg") == 2, "two jurors named it"
    choice.set_value("visits/i0").run()
    assert "Reference 0." in told(page)
    assert "aspirin" not in told(page)


def test_the_newest_answer_of_a_juror_counts_and_hostile_words_are_shown_as_they_are(
    engine: Engine, write: Write, stub: Stub, page: AppTest
) -> None:
    fact = "<img src=x> & $5"
    stub.script = lambda _: Do(json.dumps({"absent": True, "facts": [fact]}))
    fill(engine, write, 1)
    check(engine, panel_at(stub, "a", "b"))
    reference = opened_reference(RITA, engine, "visits/i0")
    assert reference is not None
    assert [(one.juror, one.facts) for one in reference.answers] == [("a", (fact,)), ("b", (fact,))]
    assert f"yes|{fact}" in told(page), "in a table, which draws no markup"
    assert not [part for part in page.get("html") if "<img" in part.proto.body]
    assert opened_reference(RITA, engine, "visits/none") is None
    assert opened_reference(RITA, engine, "visits/bare") is None, "there was nothing to ask about"


def test_clinicians_are_not_told(engine: Engine, write: Write) -> None:
    fill(engine, write)
    clinician = Person(1, "dr-a", Role.CLINICIAN)
    with pytest.raises(NotAllowed):
        checked_references(clinician, engine)
    with pytest.raises(NotAllowed):
        opened_reference(clinician, engine, "visits/i0")
