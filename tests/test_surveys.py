"""A survey is opened, answered by the room's messages, blind to what is intended, and read."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kit.rating_study import build, message, person_of, row, rubric
from kit.studies import Run
from sqlalchemy import Engine, text

from annotate.rating import room
from annotate.rating.answers import ENDED, take_in, take_in_survey
from calibration.report.survey_page import survey_page
from data.errors import BadInput, Conflict, NotAllowed, Unknown
from data.person import Person
from data.queries.record import verify
from data.queries.surveys import survey_task, surveys
from data.schema import Role
from data.store.people import invite
from data.store.surveys import ask_clinicians, begin_survey, close_survey, open_survey
from data.survey import form_of, items_of
from data.taxonomy import Taxonomy, read_taxonomy, shipped_taxonomy
from medjury.services.surveys import survey_results, tables_of, to_json

MEDHELM = shipped_taxonomy()
OTHER = """
name = "Ours"
[[category]]
name = "Notes"
[[category.subcategory]]
name = "Letters"
tasks = ["write a letter"]
[[category]]
name = "Talk"
[[category.subcategory]]
name = "Calls"
tasks = ["make a call"]
"""


def begun(engine: Engine, names: list[str], taxonomy: Taxonomy = MEDHELM) -> dict[str, Person]:
    """Open a round and ask clinicians; return who they are."""
    codes = {one.handle: one.code for one in invite(engine, names)}
    open_survey(engine, taxonomy, "subcategories", 7, "coordinator")
    ask_clinicians(engine, names, "coordinator")
    return {name: person_of(engine, code) for name, code in codes.items()}


def entered(
    engine: Engine, person: Person, wrong: int = 0, whole: int = 4, **other: object
) -> dict[str, object]:
    """Return a message with every card where it is intended but for the first `wrong`."""
    task = survey_task(engine, person.rater or 0)
    assert task is not None
    names = task.form.categories
    keys = sorted(task.form.cards, key=lambda code: task.form.cards[code].key)
    scores = {code: names.index(task.form.cards[code].intended) + 1 for code in keys}
    for code in keys[:wrong]:
        scores[code] = scores[code] % len(names) + 1
    scores |= {"comprehensiveness": whole, "clarity": 5}
    return message(task.code, scores=scores, **other)


def test_29_clinicians_give_the_papers_figures_back(engine: Engine) -> None:
    """617 of 638 placements are 96.7 %, and ratings that sum to 122 are 4.21 on the mean."""
    people = begun(engine, [f"dr_{n:02}" for n in range(29)])
    for n, person in enumerate(people.values()):
        sent = entered(engine, person, n < 21, 5 if n < 10 else 3 if n < 14 else 4, submit=True)
        assert take_in_survey(engine, person.rater or 0, sent).moved
    [found] = survey_results(engine, reps=50).rounds
    assert found.overall is not None
    assert (found.overall.hits, found.overall.trials) == (617, 638)
    assert round(100 * found.overall.value, 1) == 96.7
    assert found.comprehensiveness is not None
    assert round(found.comprehensiveness.mean, 2) == 4.21
    assert found.overall.interval.low < found.overall.value < found.overall.interval.high
    assert found.kappa is not None
    assert found.kappa.value > 0.9
    assert np.array(found.confusion).sum() == 638
    assert np.trace(np.array(found.confusion)) == 617
    assert not verify(engine).findings


def test_no_byte_that_a_clinician_is_sent_says_what_is_intended(engine: Engine) -> None:
    people = begun(engine, ["dr_a", "dr_b"])
    take_in_survey(engine, people["dr_b"].rater or 0, entered(engine, people["dr_b"], submit=True))
    sent = room.arrival(engine, people["dr_a"])["shown"]
    assert sent["stage"] == "survey"
    assert {name for card in sent["cards"] for name in card} == {"name", "text", "detail"}
    assert {name for one in sent["categories"] for name in one} == {
        *("name", "definition", "counts", "performer")
    }
    body = json.dumps(sent)
    for word in ("intended", "dr_b", "Support / ", "Generation / ", "benchmark"):
        assert word not in body
    for card, item in zip(sent["cards"], _items(engine, people["dr_a"]), strict=True):
        assert item.intended not in json.dumps(card)
    assert sent["entry"]["scores"] == {}


def _items(engine: Engine, person: Person) -> list[object]:
    task = survey_task(engine, person.rater or 0)
    assert task is not None
    return [*task.form.cards.values()]


def test_every_clinician_has_an_order_of_their_own_the_same_each_time() -> None:
    orders = [[*form_of(MEDHELM, "subcategories", 7, rater).cards.values()] for rater in range(20)]
    assert len({tuple(one.key for one in order) for order in orders}) == 20
    assert orders[3] == [*form_of(MEDHELM, "subcategories", 7, 3).cards.values()]
    assert {one.key for one in orders[0]} == {one.key for one in items_of(MEDHELM, "subcategories")}
    first = [order[0].intended for order in orders]
    assert len({*first}) > 2  # no category comes first for all


def test_tasks_can_be_placed_too() -> None:
    form = form_of(MEDHELM, "tasks", 0, 1)
    assert len(form.cards) == 56
    assert all(not item.detail for item in form.cards.values())


def test_a_draft_is_kept_and_taken_up_and_an_answer_is_only_added_to(engine: Engine) -> None:
    person = begun(engine, ["dr_a"])["dr_a"]
    rater = person.rater or 0
    draft = entered(engine, person)
    draft["scores"] = {"card1": 2}
    draft["comments"] = {"card1": "Or both."}
    stored = take_in_survey(engine, rater, draft)
    assert (stored.error, stored.version) == ("", 1)
    shown = room.arrival(engine, person)["shown"]
    assert (shown["entry"]["scores"], shown["entry"]["comments"]) == (
        {"card1": 2},
        {"card1": "Or both."},
    )
    missing = take_in_survey(engine, rater, {**draft, "seq": 2, "base": 1, "submit": True})
    assert "answers are missing" in missing.error
    whole = entered(engine, person, seq=3, base=1, submit=True, comment="Good.")
    assert take_in_survey(engine, rater, whole).moved
    assert take_in_survey(engine, rater, whole).moved  # sent again: nothing is added
    again = {**whole, "seq": 4, "base": None, "comment": "Very good."}
    assert take_in_survey(engine, rater, again).moved
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT revision, answer FROM survey_answer ORDER BY id")
        ).all()
    assert [(row.revision, json.loads(row.answer)["comment"]) for row in rows] == [
        (0, "Good."),
        (1, "Very good."),
    ]
    assert surveys(engine)[0].answers[0].comment == "Very good."
    assert not verify(engine).findings


def test_another_window_is_not_overwritten_and_a_stranger_and_odd_scores_are_refused(
    engine: Engine,
) -> None:
    people = begun(engine, ["dr_a", "dr_b"])
    rater, other = (people[name].rater or 0 for name in ("dr_a", "dr_b"))
    sent = entered(engine, people["dr_a"], base=0)
    assert take_in_survey(engine, rater, sent).version == 1
    assert take_in_survey(engine, rater, {**sent, "by": "page2", "comment": "x"}).stale
    assert "not assigned to you" in take_in_survey(engine, other, sent).error
    for scores in ({"card1": 6}, {"card99": 1}, {"clarity": 0}):
        odd = take_in_survey(engine, rater, {**sent, "seq": 9, "scores": scores})
        assert "not a point" in odd.error
    assert surveys(engine)[0].answers == ()


def test_a_closed_round_takes_no_answer_and_shows_none(engine: Engine) -> None:
    person = begun(engine, ["dr_a"])["dr_a"]
    sent = entered(engine, person, submit=True)
    close_survey(engine, "coordinator")
    assert take_in_survey(engine, person.rater or 0, sent).error == ENDED
    assert room.arrival(engine, person)["shown"]["stage"] == "note"
    with pytest.raises(Conflict, match="no round of the survey is open"):
        ask_clinicians(engine, [], "coordinator")


def test_what_cannot_be_opened_or_asked_is_refused(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    begun(engine, ["dr_a"])
    with pytest.raises(Conflict, match="round 1 of the survey is open"):
        open_survey(engine, MEDHELM, "tasks", 0, "coordinator")
    with pytest.raises(Unknown, match="nobody"):
        ask_clinicians(engine, ["nobody"], "coordinator")
    assert ask_clinicians(engine, ["dr_a"], "coordinator") == []
    lone = read_taxonomy(write("t.toml", 'name = "x"\n[[category]]\nname = "a"'))
    with pytest.raises(BadInput, match="two or more categories"):
        open_survey(engine, lone, "subcategories", 0, "coordinator")
    with pytest.raises(BadInput, match="not 'cards'"):
        open_survey(engine, MEDHELM, "cards", 0, "coordinator")
    with pytest.raises(NotAllowed):
        begin_survey(Person(7, "R", Role.RESEARCHER), engine, MEDHELM, "tasks", 0, "account 7")


def test_a_survey_comes_before_the_responses_or_after_them_if_it_waits(engine: Engine) -> None:
    codes = build(engine, [row(1, "A note.")], ["dr_a"], rubric())
    person = person_of(engine, codes["dr_a"])
    open_survey(engine, MEDHELM, "subcategories", 7, "coordinator")
    ask_clinicians(engine, [], "coordinator")
    shown = room.arrival(engine, person)["shown"]
    assert (shown["stage"], shown["later"]) == ("survey", True)
    later = take_in_survey(engine, person.rater or 0, entered(engine, person, go="next"))
    response = room.shown(engine, person, later)
    assert response["stage"] == "rate"
    rated = take_in(engine, person, message(response["code"], submit=True))
    assert room.shown(engine, person, rated)["stage"] == "survey"
    done = take_in_survey(engine, person.rater or 0, entered(engine, person, seq=5, submit=True))
    assert room.shown(engine, person, done)["stage"] == "note"
    assert room.arrival(engine, person)["shown"]["stage"] == "note"


def test_two_rounds_say_what_changed(engine: Engine, write: Callable[[str, str], Path]) -> None:
    first = read_taxonomy(write("one.toml", OTHER))
    second = read_taxonomy(write("two.toml", OTHER.replace('name = "Calls"', 'name = "Visits"')))
    people = begun(engine, ["dr_a", "dr_b", "dr_c"], first)
    for person in people.values():
        take_in_survey(engine, person.rater or 0, entered(engine, person, 1, submit=True))
    close_survey(engine, "coordinator")
    assert open_survey(engine, second, "subcategories", 0, "coordinator") == 2
    ask_clinicians(engine, [], "coordinator")
    for person in people.values():
        sent = entered(engine, person, submit=True, comments={"card1": "Clearer now."})
        take_in_survey(engine, person.rater or 0, sent)
    found = survey_results(engine, reps=20)
    [change] = found.changes
    assert change.overall is not None
    assert change.overall.value == 0.5
    assert {item.text: (item.first is None, item.second is None) for item in change.items} == {
        "Letters": (False, False),
        "Calls": (False, True),
        "Visits": (True, False),
    }
    captions = [table.caption for table in tables_of(found)]
    assert "From round 1 to round 2" in captions
    assert "Round 2: 3 comments" in captions
    assert "dr_a" not in survey_page(tables_of(found)) + json.dumps(to_json(found))


def test_the_commands_open_ask_close_and_show(run: Run, engine: Engine, tmp_path: Path) -> None:
    invite(engine, ["dr_a"])
    assert "no round" in run("study", "survey", "results")[1]
    assert run("study", "survey", "open")[0] == 0
    assert run("study", "survey", "open")[0] != 0
    assert "dr_a" in run("study", "survey", "invite")[1]
    page = tmp_path / "survey.html"
    code, out, _ = run("taxonomy", "survey", "--reps", "10", "--json", "-", "--html", str(page))
    body = json.loads(out)
    assert (code, body["rounds"][0]["invited"], body["rounds"][0]["overall"]) == (0, 1, None)
    assert "Survey of the taxonomy" in page.read_text("utf-8")
    assert run("study", "survey", "close")[0] == 0
    assert run("study", "survey", "invite")[0] != 0
