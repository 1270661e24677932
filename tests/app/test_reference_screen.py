"""What jurors said of references stands under Set up, Notes: the command's counts, and each to read."""

import json
from collections.abc import Callable, Iterator

import pytest
from kit.jurors import Do, Stub
from kit.pages import RITA, said
from kit.reference_study import NO, Write, absent_by, check, fill, panel_at
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from data.study.references import checked_references, opened_reference, references

Screen = Callable[..., AppTest]


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(lambda _: Do(NO)) as running:
        yield running


def test_before_anybody_was_asked_it_says_so_and_what_it_takes(
    engine: Engine, write: Write, screen: Screen
) -> None:
    fill(engine, write)
    page = screen("setup.references", RITA)
    assert "No juror has been asked yet" in said(page)
    assert not page.selectbox


def test_the_counts_are_the_command_s_and_a_marked_reference_comes_first_with_its_facts(
    engine: Engine, write: Write, stub: Stub, screen: Screen
) -> None:
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
    assert "Jurors whose answers count: a, b, c." in shown
    [choice] = page.selectbox
    assert choice.value == "visits/i2"
    assert "Reference 2." in shown
    assert "Context 2." in shown
    assert shown.count("aspirin 81 mg") == 2, "two jurors named it"
    choice.set_value("visits/i0").run()
    assert "Reference 0." in said(page)
    assert "aspirin" not in said(page)


def test_the_newest_answer_of_a_juror_counts_and_hostile_words_are_shown_as_they_are(
    engine: Engine, write: Write, stub: Stub, screen: Screen
) -> None:
    fact = "<img src=x> & $5"
    stub.script = lambda _: Do(json.dumps({"absent": True, "facts": [fact]}))
    fill(engine, write, 1)
    check(engine, panel_at(stub, "a", "b"))
    reference = opened_reference(RITA, engine, "visits/i0")
    assert reference is not None
    assert [(one.juror, one.facts) for one in reference.answers] == [("a", (fact,)), ("b", (fact,))]
    page = screen("setup.references", RITA)
    assert f"yes|{fact}" in said(page), "in a table, which draws no markup"
    assert not [part for part in page.get("html") if "<img" in part.proto.body]
    assert opened_reference(RITA, engine, "visits/none") is None
    assert opened_reference(RITA, engine, "visits/bare") is None, "there was nothing to ask about"
