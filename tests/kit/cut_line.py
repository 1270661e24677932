"""A line between a browser and its server that can be cut, hang, or lose an answer, and a rating with all its tools over it."""

import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import pytest
from playwright.sync_api import BrowserContext, Error, Page
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.schema import Assignment, Rater, Rating, Remark, Span, Submission
from kit.browsers import wait_for_count, wait_open
from kit.servers import free_port

RESET_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: what is closed is reset, not finished

CHUNK = 65536

BETWEEN_SECONDS = 0.3

HALF_ANSWER = 90  # bytes: some of the headers


class Line(Enum):
    """What becomes of what is sent over the line."""

    PASSES = "passes"
    HANGS = "hangs"
    LOSES_ANSWERS = "loses answers"
    SAYS = "somebody in between answers"
    HOLDS = "requests wait"


@dataclass
class CutLine:
    """A proxy in front of a server on this machine.

    Attributes
    ----------
    asked
        The start of each request that is heard no answer of: "POST /room".
    answer_bytes
        How much of such an answer reaches the browser before its line is reset.
    lost
        How many answers were lost so.
    said
        What somebody in between answers to such requests.
    held
        Such requests that have not reached the server yet.
    """

    target: int
    port: int = field(default_factory=free_port)
    asked: bytes = b"POST /room"
    answer_bytes: int = HALF_ANSWER
    lost: int = 0
    said: bytes = b""
    held: list[tuple[socket.socket, bytes]] = field(default_factory=list)
    line: Line = Line.PASSES
    listening: socket.socket | None = None
    ends: set[socket.socket] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> str:
        """Where the browser finds it."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> "CutLine":
        """Listen, and pass on from now on."""
        self.line = Line.PASSES
        if self.listening is None:
            self.listening = socket.create_server(("127.0.0.1", self.port), backlog=64)
            threading.Thread(target=self._accept, args=(self.listening,), daemon=True).start()
        return self

    def kill(self) -> None:
        """Reset every line and close the port, at once."""
        listening, self.listening = self.listening, None
        if listening is not None:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)  # wakes who waits for the next
            listening.close()
        self.reset()

    def hang(self) -> None:
        """Swallow what is sent from now on, in either direction, on every line."""
        self.line = Line.HANGS

    def lose_answers(self, answer_bytes: int = HALF_ANSWER) -> None:
        """Let requests through and cut their answers, until `start` is called."""
        self.answer_bytes = answer_bytes
        self.line = Line.LOSES_ANSWERS

    def say(self, status: str, body: bytes = b"", headers: str = "") -> None:
        """Answer such requests as somebody in between does, until `start` is called."""
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}Connection: close\r\n\r\n"
        self.said = head.encode() + body
        self.line = Line.SAYS

    def hold(self) -> None:
        """Hold such requests back until `release` is called, though their page is gone by then."""
        self.line = Line.HOLDS

    def release(self) -> None:
        """Let what is held back reach the server, one after the other, and pass on from now on."""
        self.line = Line.PASSES
        while self.held:
            server, request = self.held.pop(0)
            with suppress(OSError):
                server.sendall(request)
            time.sleep(BETWEEN_SECONDS)

    def recover(self) -> None:
        """Reset what hangs, and pass on from now on."""
        if self.line is Line.HANGS:
            self.reset()
        self.start()

    def reset(self) -> None:
        """Reset every line that is open."""
        with self.lock:
            ends, self.ends = self.ends, set()
        for end in ends:
            _reset(end)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                browser, _ = listening.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                if self.listening is not listening:
                    return
                _reset(browser)  # the server itself is away
                continue
            with self.lock:
                self.ends |= {browser, server}
            asked = threading.Event()
            for args in ((browser, server, asked, True), (server, browser, asked, False)):
                threading.Thread(target=self._pass_on, args=args, daemon=True).start()

    def _pass_on(
        self, source: socket.socket, sink: socket.socket, asked: threading.Event, is_request: bool
    ) -> None:
        """Pass on until either end closes; `asked` tells that the line carries such a request."""
        with suppress(OSError):
            while data := source.recv(CHUNK):
                if self.line is Line.HANGS:
                    continue
                if is_request and data.startswith(b"POST "):
                    (asked.set if data.startswith(self.asked) else asked.clear)()
                if is_request and self.line is Line.SAYS and asked.is_set():
                    source.sendall(self.said)
                    source.shutdown(socket.SHUT_WR)
                    continue
                if is_request and self.line is Line.HOLDS and asked.is_set():
                    self.held.append((sink, data))
                    continue
                if not is_request and self.line is Line.LOSES_ANSWERS and asked.is_set():
                    self.lost += 1
                    sink.sendall(data[: self.answer_bytes])
                    break
                sink.sendall(data)
        waits = is_request and any(server is sink for server, _ in self.held)
        for end in (source,) if waits else (source, sink):
            with self.lock:
                self.ends.discard(end)
            _reset(end)


def _reset(end: socket.socket) -> None:
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_ONCE)
        end.shutdown(
            socket.SHUT_RD
        )  # wakes who waits for its bytes; says nothing to the other side
    with suppress(OSError):
        end.close()


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
