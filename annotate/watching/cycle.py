"""The watch itself: one look after another, each of steps that may be repeated and may fail alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Engine

from annotate.intake import mask_new
from annotate.watching.agreement import Agreement
from annotate.watching.asking import Asking
from annotate.watching.drops import Folder, handle_drops
from annotate.watching.feeds import Feed, Files, Lines
from annotate.watching.log import Log
from annotate.watching.messages import Ways, message_of, send
from annotate.watching.routing import routing_of
from annotate.watching.sample import Sample, given_out
from annotate.watching.settings import WatchSettings
from data.errors import BadInput, Conflict, MedjuryError
from data.person import OPERATOR
from data.queries.watch import (
    alarms,
    clinicians_known,
    drawn_without_reader,
    per_response_of,
    study_mark,
    work_of,
)
from data.schema import StepKind, now
from data.store.assignments import assign
from data.store.watch import note_step
from jury.panel import Panel

LONGEST_AGAIN = 3600.0
READERS = 2


@dataclass
class Watch:
    """A watch on one study.

    Attributes
    ----------
    lost : set once another watch holds the study's lock
    """

    engine: Engine
    settings: WatchSettings
    folder: Folder
    ways: Ways
    panel: Panel | None
    log: Log
    feed: Feed = field(default_factory=Files)
    monotonic: Callable[[], float] = time.monotonic
    clock: Callable[[], datetime] = now
    stopping: Callable[[], bool] = lambda: False
    _pauses: dict[tuple[int, str], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = self.settings
        names = tuple(juror.name for juror in self.panel.juror) if self.panel else None
        self.sample = Sample(own.sample.share, own.sample.seed, own.sample.by)
        self.asking = self.panel and Asking(
            self.panel, own.jury, self.log, self.monotonic, self.clock
        )
        self.routing = routing_of(self.engine, own.routing.rule, self.folder.path, self.log)
        self.agreement = Agreement(
            own.agreement, own.alarm, names, self.log, self.monotonic, self.clock
        )

    def look(self, wait: float = 0.0) -> bool:
        """Do what is to be done now; return whether more is waiting that can be done at once.

        A step that fails, as on a full disk, is logged and tried again at the next look; the others go
        on, but the jury and clinicians get nothing that was not searched for authors' names.
        """
        more = False
        self._tried("feed", lambda: self._fed(wait))
        handled = self._tried("drops", self._drops)
        if self._tried("mask", self._mask) is not None:
            self._tried("assign", self.give_out)
            more = bool(self.asking and self._tried("jury", self._ask))
            self._tried("routing", self._route)
        self._tried("agreement", lambda: self.agreement.look(self.engine))
        self._tried("messages", self.tell)
        return bool(handled) or more

    def _tried(self, step: str, do: Callable[[], int | bool | None]) -> int | None:
        """Do one step; None where it failed."""
        try:
            return int(do() or 0)
        except (MedjuryError, OSError) as error:
            self.log.write("step_failed", step=step, why=type(error).__name__)
            return None

    def _fed(self, wait: float) -> int:
        rows = self.feed.bring(self.folder.path, wait)
        if rows:
            self.log.write("received", rows=rows, taken=getattr(self.feed, "taken", None))
        return rows

    def _drops(self) -> int:
        return handle_drops(self.engine, self.folder, self.sample, self.log, self.stopping)

    def _mask(self) -> int:
        masked = mask_new(self.engine, OPERATOR)
        if masked:
            self.log.write("masked", responses=masked)
        return masked

    def _ask(self) -> bool:
        return bool(self.asking and self.asking.work(self.engine))

    def _route(self) -> int:
        return self.routing.look(self.engine) if self.routing else 0

    def give_out(self) -> int:
        """Give the drawn responses that have no reader to clinicians; return how many readings."""
        own = self.settings.sample
        drawn = drawn_without_reader(self.engine)
        if not drawn or not own.clinicians:
            return 0
        per_response = readers_of(self.engine, self.settings)
        work = work_of(self.engine, own.clinicians)
        slots = given_out(drawn, own.clinicians, per_response, work, own.seed)
        given = assign(self.engine, slots, own.seed, per_response=per_response)
        self.log.write("assigned", responses=len(drawn), readings=given)
        return given

    def tell(self) -> int:
        """Send each open alarm by each way by which it was not taken yet; return how many were."""
        taken = 0
        open_alarms = [alarm for alarm in alarms(self.engine) if alarm.is_open]
        for alarm in open_alarms:
            for way in self.ways.names:
                until, pause = self._pauses.get((alarm.id, way), (0.0, 0.0))
                if way in alarm.sent or self.monotonic() < until:
                    continue
                again = alarm.begun.get(way, 0) > 0
                note_step(self.engine, alarm.id, StepKind.BEGUN, way)
                why = send(self.ways, way, message_of(alarm, study_mark(self.engine), again))
                taken += not why
                note_step(
                    self.engine, alarm.id, StepKind.FAILED if why else StepKind.SENT, way, why
                )
                if why:
                    first = self.settings.alarm.again_minutes * 60
                    pause = min(LONGEST_AGAIN, pause * 2 or first)
                    self._pauses[alarm.id, way] = self.monotonic() + pause, pause
                self.log.write("told", alarm=alarm.id, way=way, again=again, failed=why)
        return taken


def run(
    watch: Watch, is_held: Callable[[], bool], after: Callable[[], None], *, once: bool = False
) -> None:
    """Look again and again; with `once`, until what is there has been handled.

    Parameters
    ----------
    is_held : tells whether the study's watch lock is still this watch's
    after : called after each look

    Raises
    ------
    Conflict
        If another watch took the lock while the database's server restarted.
    """
    poll, settle = watch.settings.source.poll_seconds, watch.settings.source.settle_seconds
    wait, patient_until = 0.0 if once else poll, 0.0
    while True:
        if not is_held():
            raise Conflict(
                "another watch is on in this study: its lock was lost, and this one ends"
            )
        more = watch.look(wait if isinstance(watch.feed, Lines) else 0.0)
        after()
        if more or not patient_until:
            patient_until = watch.monotonic() + 2 * settle + 1
        if more:
            continue
        ends = once or watch.feed.has_ended
        if ends and (not watch.folder.waiting() or watch.monotonic() > patient_until):
            return
        if ends or not isinstance(watch.feed, Lines):
            time.sleep(min(poll, max(settle / 4, 0.05)) if watch.folder.waiting() else poll)


def readers_of(engine: Engine, settings: WatchSettings) -> int:
    """Return how many clinicians rate each drawn response, as the study's design has it.

    Raises
    ------
    BadInput
        If there are not as many, one is not known, or one is named twice.
    Conflict
        If the design has another number.
    """
    own, stored = settings.sample, per_response_of(engine)
    if own.per_response and stored and own.per_response != stored:
        raise Conflict(
            f"sample.per_response = {own.per_response}: the study's design gives each response "
            f"{stored} clinicians; leave it out, or set {stored}"
        )
    number = own.per_response or stored or min(READERS, max(1, len(own.clinicians)))
    if len(set(own.clinicians)) < len(own.clinicians):
        raise BadInput("sample.clinicians: one is named twice")
    if unknown := sorted({*own.clinicians} - clinicians_known(engine, own.clinicians)):
        raise BadInput(
            f"sample.clinicians: {', '.join(unknown)} is no clinician of this study; "
            "`medjury rate people add` lets people in"
        )
    if own.clinicians and number > len(own.clinicians):
        raise BadInput(
            f"sample.clinicians: {len(own.clinicians)} named, and each response is read by {number}"
        )
    return number
