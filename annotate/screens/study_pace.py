"""When the clinicians will be done, if they go on as in the last two weeks."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import Engine

from data import queries
from data.person import Person
from data.queries import Workload

WINDOW_DAYS = 14
FEWEST, FEWEST_DAYS = 10, 3  # showings, and days with any, below which nothing is foretold
FEWEST_OF_ONE = 5  # showings of one clinician
Z = 1.2816  # of an 80 % interval
HORIZON_DAYS = 730
SILENT_DAYS = 7


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


def outlook(
    engine: Engine, person: Person, workloads: Sequence[Workload], present: datetime
) -> Outlook:
    """Return when the work of those who have not left will end."""
    times = queries.finished(person, engine, present - timedelta(days=WINDOW_DAYS))
    here = [one for one in workloads if not (one.ended or one.simulated)]
    before = sum(one.done for one in workloads if not one.simulated) > len(times)
    days = by_day([at for _, at in times], present, begun_before=before)
    own = Counter(who for who, _ in times)
    ends = {
        one.handle: _after(present, one.open * len(days) / own[one.handle])
        for one in here
        if one.open and own[one.handle] >= FEWEST_OF_ONE
    }
    early, likely, late = (
        None if one is None else _after(present, one)
        for one in spread(sum(one.open for one in here), days)
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
    if sum(days) < FEWEST or sum(one > 0 for one in days) < FEWEST_DAYS or not open_:
        return None, None, None
    number = len(days)
    rate = sum(days) / number
    variance = max(sum((one - rate) ** 2 for one in days) / (number - 1), rate)

    def reached(sign: int) -> float | None:
        for step in range(1, 4 * HORIZON_DAYS):
            after = step / 4
            doubt = Z * math.sqrt(variance * after + variance * after**2 / number)
            if rate * after + sign * doubt >= open_:
                return after
        return None

    return reached(1), open_ / rate, reached(-1)


def silent(one: Workload, present: datetime) -> bool:
    """Tell whether somebody has work left and ended none of it for a week."""
    week = present - timedelta(days=SILENT_DAYS)
    waits = one.open > 0 and not (one.ended or one.simulated)
    return waits and (one.last is None or one.last < week)


def _after(present: datetime, days: float) -> date:
    return (present + timedelta(days=min(days, 10 * HORIZON_DAYS))).date()
