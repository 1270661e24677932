"""How far the clinicians and the responses are, and when all will be done."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.frame import show_heading, show_text
from calibration.notes import sentence
from data.person import Person
from data.schema import now
from data.study import people, steering
from data.study.people import Workload
from data.study.standing import settings
from medjury.services.reminders import is_due
from medjury.services.status import STATES, TITLES, StepStatus, StudyStatus, steps_of

WINDOW_DAYS = 14
FEWEST, FEWEST_OF_ONE = 10, 5  # readings ended, of all and of one, below which nothing is foretold
FARTHEST_DAYS = 3650
MOST_TIMES = 4  # readings of a response from which on they share a column
NOBODY = "Nobody has been given work yet, and nobody has rated."
TODO = (
    "Deal responses to clinicians under Set up, Clinicians, or import ratings under Set up, Notes."
)
ABOUT = {
    "Done": "Readings ended: hidden repeats and readings that settle a difference are counted",
    "Assigned": "Readings given out; what was given back is not counted",
    "Could not rate": "Readings that ended without scores",
    "Flagged": "The current submission has a flag",
    "Recused": "Given back: the response is free for another",
    "Elsewhere": "Rated in an imported file, without an assignment",
    "Minutes": "Median active time of a reading",
    "Done by": "At the clinician's own pace of the last two weeks",
}


@dataclass(frozen=True, slots=True)
class Outlook:
    """When all open work ends at the pace of the last two weeks.

    `per_day` is the mean of readings ended a day; `end` is None where nothing can be foretold;
    `ends` has those clinicians whose own pace is known.
    """

    per_day: float
    end: date | None
    ends: dict[str, date]


def show(engine: Engine, person: Person, study: StudyStatus) -> None:
    """Show the figures, the outlook, every clinician, and how often responses have been read."""
    _figures(study)
    workloads = people.workloads(person, engine)
    if workloads:
        present, days = now(), settings(engine).remind_days
        ahead = outlook(engine, person, workloads, present)
        show_heading("Clinicians", "Who has done how much, and when will all be done?")
        for line in foretold(workloads, ahead, present):
            show_text(line)
        rows = [_row(workload, ahead, present, days) for workload in workloads]
        share = st.column_config.ProgressColumn("Share", format="percent", help="Done of assigned")
        frame.show_rows("Work of each clinician", rows, ABOUT, Share=share)
        _show_responses(engine, person)
    else:
        frame.empty(NOBODY, TODO)
    with st.expander("Steps of the study: which is how far", key="steps"):
        show_steps(steps_of(study))


def _figures(study: StudyStatus) -> None:
    """Show the figures of the whole study."""
    work = study.clinicians
    places = st.columns(4)
    instances = sum(one.instances for one in study.benchmarks)
    places[0].metric("Responses", f"{work.responses:,}", help=f"To {instances:,} instances")
    places[1].metric(
        "Rated",
        f"{work.responses_rated:,}",
        help=f"Responses rated by a clinician; {work.shared:,} by two or more",
    )
    places[2].metric(
        "Clinicians", f"{work.clinicians:,}", help=f"With work; {work.invited:,} can sign in"
    )
    readings = f"{work.done:,} of {work.assigned:,}" if work.assigned else "none"
    places[3].metric(
        "Readings done", readings, help="Of those assigned; a reading is one response by one person"
    )
    if work.assigned:
        st.progress(min(work.done / work.assigned, 1.0))


def foretold(workloads: Sequence[Workload], ahead: Outlook, present: datetime) -> list[str]:
    """Return in words when the work will end."""
    open_ = sum(one.open for one in workloads if not (one.ended or one.simulated))
    if not sum(workload.total for workload in workloads):
        return ["No work is assigned: all ratings were imported."]
    if not open_:
        return ["All assigned work is done."]
    if ahead.end is None:
        made_up = any(workload.simulated for workload in workloads)
        left_out = " Simulated clinicians are not counted." if made_up else ""
        return [
            f"{open_:,} readings are open. Clinicians ended fewer than {FEWEST} in the last "
            f"{WINDOW_DAYS} days: too few to say when these will end.{left_out}"
        ]
    sentences = [
        f"{open_:,} readings are open. At {ahead.per_day:.1f} a day, the pace of the last "
        f"{WINDOW_DAYS} days, they end about {_day(ahead.end, present)}."
    ]
    last = max(ahead.ends, key=lambda handle: ahead.ends[handle], default="")
    if last and ahead.ends[last] > ahead.end:
        sentences.append(f"{last} alone would need until {_day(ahead.ends[last], present)}.")
    return sentences


def _row(workload: Workload, ahead: Outlook, present: datetime, days: int) -> dict[str, object]:
    return {
        "Clinician": workload.handle,
        "State": _state(workload, present, days),
        "Share": workload.done / workload.total if workload.total else None,
        "Done": workload.done,
        "Assigned": workload.total,
        "Could not rate": workload.unrated,
        "Flagged": workload.flagged,
        "Recused": workload.recused,
        "Elsewhere": workload.elsewhere,
        "Minutes": round(workload.seconds / 60, 1) if workload.seconds else None,
        "Last rated": workload.last.date() if workload.last else None,
        "Done by": ahead.ends.get(workload.handle),
    }


def _state(workload: Workload, present: datetime, days: int) -> str:
    """Return in a word or two where somebody stands."""
    states = {
        "simulated": workload.simulated,
        "shut out": workload.ended,
        "done": not workload.open,
        "not begun": not workload.done,
        "silent": is_due(workload, present, days),
    }
    return next((word for word, holds in states.items() if holds), "at work")


def _show_responses(engine: Engine, person: Person) -> None:
    """Show how many responses have been rated by how many clinicians."""
    readings = steering.readings_by_response(person, engine)
    most = min(max((max(counts) for counts in readings.values() if counts), default=0), MOST_TIMES)
    rows = []
    for name, counts in sorted(readings.items()):
        rated = {_times(number, most): counts[number] for number in range(most)}
        last = sum(counts[number] for number in counts if number >= most)
        rows.append(
            {"Benchmark": name, "Responses": counts.total()} | rated | {_times(most, most): last}
        )
    show_heading("Responses", "How many responses were rated by how many clinicians?")
    frame.show_rows("Responses by number of readings", rows)


def _times(number: int, most: int) -> str:
    return f"by {number} or more" if number == most == MOST_TIMES else f"by {number}"


def _day(day: date, present: datetime) -> str:
    """Return a date as people say it, with the year where it is another."""
    return f"{day.day} {day:%B}" + (f" {day.year}" if day.year != present.year else "")


def outlook(
    engine: Engine, person: Person, workloads: Sequence[Workload], present: datetime
) -> Outlook:
    """Return when the work of those who have not left will end at the present pace."""
    times = people.finished_showings(person, engine, present - timedelta(days=WINDOW_DAYS))
    active = [workload for workload in workloads if not (workload.ended or workload.simulated)]
    begun_before = sum(one.done for one in workloads if not one.simulated) > len(times)
    first = min((at for _, at in times), default=present)
    days = WINDOW_DAYS if begun_before else (present - first).days + 1
    own = Counter(clinician for clinician, _ in times)
    ends = {
        workload.handle: _after(present, workload.open * days / own[workload.handle])
        for workload in active
        if workload.open and own[workload.handle] >= FEWEST_OF_ONE
    }
    open_ = sum(workload.open for workload in active)
    per_day = len(times) / days
    known = len(times) >= FEWEST and open_ > 0
    return Outlook(per_day, _after(present, open_ / per_day) if known else None, ends)


def _after(present: datetime, days: float) -> date:
    return (present + timedelta(days=min(days, FARTHEST_DAYS))).date()


def show_steps(steps: Sequence[StepStatus]) -> None:
    """Show each step of a study: how far it is, and what came of it."""
    rows = [
        {"Step": TITLES[one.step], "State": STATES[one.state], "So far": sentence(one.answer)}
        for one in steps
    ]
    frame.show_rows("Steps of the study", rows, {"So far": "From counts and the newest report"})
