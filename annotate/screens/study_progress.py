"""How far the clinicians and the responses are, and when all will be done."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import NormalDist
from urllib.parse import urlsplit

import streamlit as st
from sqlalchemy import Engine

from annotate import reminders
from annotate.reminders import is_due
from annotate.screens import frame
from annotate.screens.frame import Cell, good, heading, paragraph, table
from data.person import Person
from data.schema import Role, now
from data.study import people, steering
from data.study.people import Workload
from data.study.standing import settings

WINDOW_DAYS = 14
FEWEST, FEWEST_DAYS = 10, 3  # showings, and days with any, below which nothing is foretold
FEWEST_OF_ONE = 5  # showings of one clinician
Z = NormalDist().inv_cdf(0.9)  # of an 80 % interval
HORIZON_DAYS = 730
OF_CLINICIANS = (
    *("Clinician", "State", "Done", "Assigned", "Could not rate", "Flagged"),
    *("Recused", "Rated elsewhere", "Median time", "Last rated", "Done by"),
)
MOST_TIMES = 4  # readings of a response from which on they share a column
NONE_DUE = (
    "No reminder is due. Listed here are clinicians who have had open work for {days} days, "
    "finished none of it in that time, and were not reminded since."
)
DUE = (
    "For clinicians who have had open work for {days} days and finished none of it in that "
    "time. A reminder has no score and nothing of a patient."
)
SENT = "reminders-sent"
ABOUT_CLINICIANS = (
    "Done and Assigned include hidden repeats and readings that settle a difference. "
    "Flagged: the current submission has a flag. Recused: the clinician recused, and the "
    "response is free for another. Rated elsewhere: imported, without an assignment. Done "
    "by: expected at the clinician's own pace of the last two weeks."
)


@dataclass(frozen=True, slots=True)
class Outlook:
    """When all open work ends at the present pace.

    Attributes
    ----------
    per_day
        Mean showings ended a day.
    early, likely, late
        80 % of fortnights that vary like this one would end between the first and the last;
        `late` is None where the pace may as well be nil, all are where nothing is foretold.
    ends
        Clinician -> when their own work ends at their own pace; left out where they have
        rated too little in these two weeks.
    """

    per_day: float
    early: date | None
    likely: date | None
    late: date | None
    ends: dict[str, date]


def show(engine: Engine, person: Person) -> None:
    """Show the outlook, every clinician, and how often responses have been read."""
    present = now()
    workloads = people.workloads(person, engine)
    if not workloads:
        frame.empty(
            "Nobody has been given work yet, and nobody has rated.",
            "A coordinator makes a design under Design, or brings ratings in under Import.",
        )
        return
    ahead, days = outlook(engine, person, workloads, present), settings(engine).remind_days
    st.html(
        heading("Outlook")
        + "".join(paragraph(sentence) for sentence in _foretold(workloads, ahead, present, days))
    )
    rows = [_row(workload, ahead, present, days) for workload in workloads]
    st.html(
        heading("Clinicians")
        + table("Work of each clinician", OF_CLINICIANS, rows, words=2)
        + paragraph(ABOUT_CLINICIANS)
    )
    _show_responses(engine, person)
    if person.role == Role.COORDINATOR:
        _show_reminders(engine, person, present, days)


def _foretold(
    workloads: Sequence[Workload], ahead: Outlook, present: datetime, days: int
) -> list[str]:
    """Return in words when the work will end, and how sure that is."""
    open_ = sum(
        workload.open for workload in workloads if not (workload.ended or workload.simulated)
    )
    if not sum(workload.total for workload in workloads):
        return ["No work is assigned: all ratings were imported."]
    if not open_:
        return ["All assigned work is done."]
    if ahead.likely is None:
        made_up = any(workload.simulated for workload in workloads)
        left_out = " Simulated clinicians are not counted." if made_up else ""
        return [
            f"{open_:,} readings are open. Clinicians ended too few in the last {WINDOW_DAYS} days to "
            f"say when these will end: that takes ten readings, on three days or more.{left_out}"
        ]
    latest = (
        f"and the latest {_day(ahead.late, present)}"
        if ahead.late
        else "but days vary so much that no latest date can be given"
    )
    forecast = (
        f"{open_:,} readings are open. At {ahead.per_day:.1f} a day, the pace of the last "
        f"{WINDOW_DAYS} days, they end about {_day(ahead.likely, present)}; the earliest is "
        f"{_day(ahead.early, present)} {latest}, in four of five cases, if the days to come vary "
        "as these did."
    )
    return [forecast, *_slowest(workloads, ahead, present, days)]


def _slowest(
    workloads: Sequence[Workload], ahead: Outlook, present: datetime, days: int
) -> list[str]:
    """Return who holds the end up: work is not passed on by itself."""
    quiet = [workload.handle for workload in workloads if is_due(workload, present, days)]
    sentences = []
    if ahead.ends and ahead.likely:
        last = max(ahead.ends, key=lambda handle: ahead.ends[handle])
        if ahead.ends[last] > ahead.likely:
            sentences.append(f"{last} alone would need until {_day(ahead.ends[last], present)}.")
    if quiet:
        sentences.append(
            f"Nothing for {days} days from {', '.join(quiet)}: their part will not end at this "
            "pace. Remind them below, or pass their open work on under Design."
        )
    return sentences


def _row(workload: Workload, ahead: Outlook, present: datetime, days: int) -> list[Cell]:
    end = ahead.ends.get(workload.handle)
    return [
        *(
            workload.handle,
            _state(workload, present, days),
            workload.done,
            workload.total,
            workload.unrated,
            workload.flagged,
        ),
        *(workload.recused, workload.elsewhere, _minutes(workload.seconds)),
        f"{workload.last.day} {workload.last:%b}" if workload.last else None,
        f"{end.day} {end:%b}" if end else None,
    ]


def _state(workload: Workload, present: datetime, days: int) -> str:
    """Return in a word or two where somebody stands."""
    if workload.simulated:
        return "simulated"
    if workload.ended:
        return "shut out"
    if not workload.open:
        return "done"
    if not workload.done:
        return "not begun"
    return "silent" if is_due(workload, present, days) else "at work"


def _show_responses(engine: Engine, person: Person) -> None:
    """Show how many responses have been rated by how many clinicians."""
    readings = steering.readings_by_response(person, engine)
    most = min(max((max(counts) for counts in readings.values() if counts), default=0), MOST_TIMES)
    heads = ["Benchmark", "Responses", *(_times(number, most) for number in range(most + 1))]
    rows: list[list[Cell]] = [
        [
            name,
            counts.total(),
            *(counts[number] for number in range(most)),
            sum(counts[number] for number in counts if number >= most),
        ]
        for name, counts in sorted(readings.items())
    ]
    if len(rows) > 1:
        rows.append(
            ["All", *(sum(column) for column in zip(*(row[1:] for row in rows), strict=True))]
        )
    st.html(
        heading("Responses by the number of clinicians who have rated them")
        + table("Responses by number of readings", heads, rows)
    )


def _times(number: int, most: int) -> str:
    return f"{number} or more" if number == most == MOST_TIMES else f"{number}"


def _show_reminders(engine: Engine, person: Person, present: datetime, days: int) -> None:
    """Show who is due a reminder: to be sent where there is a mail server, else to copy."""
    base = urlsplit(st.context.url or "")
    reminders_due = reminders.due(person, engine, present, f"{base.scheme}://{base.netloc}")
    st.html(heading("Reminders"))
    if message := st.session_state.pop(SENT, None):
        st.html(good(message))
    if not reminders_due:
        st.html(paragraph(NONE_DUE.format(days=days)))
        return
    st.html(paragraph(DUE.format(days=days)))
    with frame.refusals():
        server = reminders.mail_server()
        with_address = [reminder for reminder in reminders_due if reminder.email]
        if server and with_address:
            _send(engine, person, server, with_address)
    chosen = st.selectbox("Clinician", [reminder.name for reminder in reminders_due], key="remind")
    reminder = next(due for due in reminders_due if due.name == chosen)
    with st.container(key="reminder"):
        st.code(reminder.text, language=None, wrap_lines=True)


def _send(
    engine: Engine, person: Person, server: reminders.MailServer, recipients: list[reminders.Due]
) -> None:
    """Send each a reminder when asked."""
    st.html(
        paragraph(
            f"By mail from {server.sender}: {', '.join(recipient.name for recipient in recipients)}."
        )
    )
    if st.button(f"Send {len(recipients)} by mail", key="remind-now", type="primary"):
        names = reminders.send(person, engine, server, recipients)
        st.session_state[SENT] = f"Sent to {', '.join(names)}, and in the record."
        st.rerun()


def _minutes(seconds: float | None) -> str | None:
    return None if not seconds else f"{seconds / 60:.1f} min"


def _day(day: date | None, present: datetime) -> str:
    """Return a date as people say it, with the year where it is another."""
    if day is None:
        return ""
    year = f" {day.year}" if day.year != present.year else ""
    return f"{day.day} {day:%B}{year}"


def outlook(
    engine: Engine, person: Person, workloads: Sequence[Workload], present: datetime
) -> Outlook:
    """Return when the work of those who have not left will end."""
    times = people.finished_showings(person, engine, present - timedelta(days=WINDOW_DAYS))
    active = [workload for workload in workloads if not (workload.ended or workload.simulated)]
    before = sum(workload.done for workload in workloads if not workload.simulated) > len(times)
    days = by_day([at for _, at in times], present, begun_before=before)
    own = Counter(clinician for clinician, _ in times)
    ends = {
        workload.handle: _after(present, workload.open * len(days) / own[workload.handle])
        for workload in active
        if workload.open and own[workload.handle] >= FEWEST_OF_ONE
    }
    early, likely, late = (
        None if days_ahead is None else _after(present, days_ahead)
        for days_ahead in spread(sum(workload.open for workload in active), days)
    )
    return Outlook(sum(days) / len(days) if days else 0.0, early, likely, late, ends)


def by_day(times: Sequence[datetime], present: datetime, *, begun_before: bool) -> list[int]:
    """Return how many showings ended in each 24 hours back from now, newest first.

    The days before the first showing of all are left out.
    """
    ages = Counter(int((present - at).total_seconds() // 86_400) for at in times)
    length = WINDOW_DAYS if begun_before else max(ages, default=-1) + 1
    return [ages[day] for day in range(min(length, WINDOW_DAYS))]


def spread(open_: int, days: Sequence[int]) -> tuple[float | None, float | None, float | None]:
    """Return after how many days open work ends: early, likely and late end of an 80 % interval.

    Parameters
    ----------
    days
        Showings ended on each of the last days.

    After t days, r t +- z sqrt(v t + v t^2 / n) are done: r and v are mean and variance of the
    n days; the first term is the days to come, the second how well r is known. v is at least
    r, that of showings which come one by one. None throughout where the days tell too little.
    """
    if sum(days) < FEWEST or sum(count > 0 for count in days) < FEWEST_DAYS or not open_:
        return None, None, None
    number = len(days)
    rate = sum(days) / number
    variance = max(sum((count - rate) ** 2 for count in days) / (number - 1), rate)

    def reached(sign: int) -> float | None:
        for step in range(1, 4 * HORIZON_DAYS):
            after = step / 4
            doubt = Z * math.sqrt(variance * after + variance * after**2 / number)
            if rate * after + sign * doubt >= open_:
                return after
        return None

    return reached(1), open_ / rate, reached(-1)


def _after(present: datetime, days: float) -> date:
    return (present + timedelta(days=min(days, 10 * HORIZON_DAYS))).date()
