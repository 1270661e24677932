"""One rating with all its tools, keystroke by keystroke, over a line that is cut at one of them."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Error, Page
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.schema import Assignment, Rater, Rating, Remark, Span, Submission
from kit.browsers import wait_for_count, wait_open
from kit.cut_line import CutLine

Place = Literal["room", "marking", "note", "odd", "comment", "clarity"]

SCORES = {"accuracy": 4, "completeness": 2, "clarity": 5}

WHOLE = "insulin usual dose 2 mg but unit 1 mg"  # letters and digits that are keys elsewhere

CLARITY = "odd at 5 mg"

NOTE = "dose 2 not 1"

ODD = "who halved it"

RESPONSE = "No fever so far. Take insulin as before. Rest."

SOURCE = "Mild pain in the knee. Insulin was halved."

MARKS = [
    ("accuracy", "wrong", "response", "Take insulin as before.", "major", NOTE, None),
    ("accuracy", "missing", "source", "Mild pain in the knee.", "", "", None),
]

DIALOGS = (
    "[role=dialog], [role=alertdialog], dialog[open], [aria-modal=true], [data-testid=stDialog]"
)

# Whose the focus is, and whether anybody's dialog is to be seen.
DISTURBED = f"""() => {{
  const at = document.activeElement;
  const away = at && at !== document.body && !at.closest(".mj-room");
  const shown = [...document.querySelectorAll("{DIALOGS}")].filter((one) => one.getClientRects().length > 0);
  return away || shown.length > 0 ? `${{at?.outerHTML.slice(0, 200)}} ${{shown.map((one) => one.outerHTML.slice(0, 200))}}` : "";
}}"""

SUBMIT = "Control+Enter"


@dataclass(frozen=True, slots=True)
class Step:
    """A keystroke or a click, and where the clinician writes after it."""

    act: Callable[[Page], object]
    name: str
    place: Place


def _key(key: str, place: Place = "room") -> Step:
    return Step(lambda page: page.keyboard.press(key), key, place)


def _letters(text: str, place: Place) -> list[Step]:
    return [_key("Space" if sign == " " else sign, place) for sign in text]


def _severity(page: Page) -> None:
    page.get_by_label("Severity of the mark").select_option("major")
    page.get_by_label("Criterion of the mark").select_option("accuracy")
    page.get_by_label("Note on the mark").focus()


STEPS = [
    *(_key(digit) for digit in "425"),
    *(_key(key, "marking") for key in ("s", "ArrowDown")),
    Step(_severity, "severity", "note"),
    *_letters(NOTE, "note"),
    Step(lambda page: page.get_by_role("button", name="Wrong").click(), "wrong", "room"),
    *(_key(key, "marking") for key in "sx"),
    Step(
        lambda page: page.get_by_label("Criterion of the mark").select_option("accuracy"),
        "accuracy",
        "marking",
    ),
    Step(lambda page: page.get_by_role("button", name="Missing").click(), "missing", "room"),
    _key("f", "odd"),
    *_letters(ODD, "odd"),
    _key("Enter"),
    _key("a"),
    _key("c", "comment"),
    *_letters(WHOLE, "comment"),
    _key("Escape"),
    Step(
        lambda page: page.get_by_label("What the comment is about").select_option("clarity"),
        "clarity",
        "clarity",
    ),
    *_letters(CLARITY, "clarity"),
    _key(SUBMIT),
]

Moment = Literal["before", "with", "after"]

How = Literal["kill", "hang", "lose answers"]


@dataclass(frozen=True, slots=True)
class Cut:
    """When the line is cut, how, and what happens until it is back.

    Attributes
    ----------
    at, moment
        Before, together with, or a moment after this keystroke, when its draft is under way.
    typed
        Keystrokes while it is away.
    seconds
        And how long it is away after them.
    again
        Whether the page is loaded again, or closed and opened, before the line is back or after.
    """

    at: int
    moment: Moment
    how: How
    typed: int
    seconds: float
    again: Literal["", "reload", "reload away", "close"]


def cut(number: int) -> Cut:
    """Return one of any number of cuts: each keystroke in turn, the rest by a fixed seed."""
    dice = random.Random(number)  # noqa: S311 no secret
    typed = dice.choice([1, 2, 4, 8, 16, 40])
    how: How = dice.choice(["kill", "kill", "kill", "hang", "lose answers"])
    long_away = dice.random() < 1 / 8 and how == "kill"
    return Cut(
        at=number % len(STEPS),
        moment=dice.choice(["before", "with", "after"]),
        how=how,
        typed=typed,
        seconds=dice.uniform(5, 10) if long_away else dice.choice([0, 0.1, 0.4, 1.0]),
        again=dice.choice(["", "", "", "reload", "reload away", "close"]),
    )


def break_off(line: CutLine, how: How) -> None:
    """Break the line in one of the ways it breaks."""
    {"kill": line.kill, "hang": line.hang, "lose answers": line.lose_answers}[how]()


def rate_with_cut(page: Page, line: CutLine, what: Cut, done: int, total: int) -> Page:
    """Rate what is shown, the line cut once; return the page, which may be another one, at the next."""
    away = range(what.at, min(what.at + what.typed, len(STEPS)))
    for number, step in enumerate(STEPS):
        if number == what.at and what.moment == "before":
            break_off(line, what.how)
        step.act(page)
        if number == what.at and what.moment != "before":
            if what.moment == "after":
                page.wait_for_timeout(310)
            break_off(line, what.how)
        if number == away[-1]:
            page = _come_back(page, line, what, step)
    wait_for_count(page, done + 1, total)
    return page


def _come_back(page: Page, line: CutLine, what: Cut, step: Step) -> Page:
    """Wait, see that nothing came between, and let the line be there again."""
    page.wait_for_timeout(what.seconds * 1000)
    disturbed = page.evaluate(DISTURBED)
    assert disturbed == "", disturbed
    can_load = step.place not in ("marking", "note")
    if what.again == "reload away" and can_load and what.how == "kill":
        _load_in_vain(page)
    context = page.context
    if what.again == "close" and can_load:
        page.close(run_before_unload=False)
    line.recover()
    if what.again and can_load:
        page = _open_again(page, context, line)
        if step.name != SUBMIT:
            _go_on_at(page, step)
    return page


def _load_in_vain(page: Page) -> None:
    with pytest.raises(Error, match="net::ERR"):
        page.reload()
    page.wait_for_function("location.protocol === 'chrome-error:'")


def _open_again(page: Page, context: BrowserContext, line: CutLine) -> Page:
    page = context.new_page() if page.is_closed() else page
    page.goto(line.address)
    page.locator(".mj-room").wait_for()
    return page


def _go_on_at(page: Page, step: Step) -> None:
    """Put the focus back to where the clinician was writing."""
    wait_open(page)
    if step.place == "odd":
        page.get_by_label("What is odd").focus()
        page.keyboard.press("End")
    if step.place in ("comment", "clarity"):
        about = "" if step.place == "comment" else "clarity"
        page.get_by_label("What the comment is about").select_option(about)
        page.locator("form.likert textarea").focus()
        page.keyboard.press("Control+End")


def stored(engine: Engine, rater: str) -> list[dict[str, Any]]:
    """Return all that is stored of each rated response of a clinician, in their order."""
    with Session(engine) as session:
        query = select(Assignment).join(Rater, col(Rater.id) == col(Assignment.rater))
        mine = session.exec(query.where(Rater.handle == rater).order_by(col(Assignment.position)))
        return [_stored(session, one) for one in mine if one.revision]


def _stored(session: Session, one: Assignment) -> dict[str, Any]:
    def rows(table: Any) -> Any:
        return session.exec(select(table).where(table.assignment == one.id).order_by(table.id))

    ratings = session.exec(
        select(Rating).where(Rating.response == one.response, Rating.rater == one.rater)
    ).all()
    return {
        "scores": sorted((row.criterion, row.score) for row in ratings),
        "said": {row.criterion: row.comment for row in ratings if row.comment},
        "whole": [row.comment for row in rows(Submission)],
        "flags": sorted((row.kind, row.text) for row in rows(Remark)),
        "marks": [
            (row.criterion, row.error, row.side, row.text, row.severity, row.note, row.linked)
            for row in rows(Span)
        ],
    }


TYPED = {
    "scores": sorted(SCORES.items()),
    "said": {"clarity": CLARITY},
    "whole": [WHOLE],
    "flags": [("flag", ODD), ("names_author", WHOLE)],
    "marks": MARKS,
}
