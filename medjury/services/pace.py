"""The pace at which a study is read: as said, as measured, or from words alone."""

from sqlalchemy import Engine

from data.pace import Pace, PaceSource, measured, stated
from data.queries.pace import timed_showings


def pace_of(engine: Engine, minutes: float | None = None, rater: int | None = None) -> Pace:
    """Return the pace for estimates.

    Parameters
    ----------
    minutes
        Of a showing, as somebody says; None takes what was measured.
    rater
        Whose pace (primary key), where enough of their own showings are timed.
    """
    if minutes is not None:
        return stated(minutes)
    if rater is not None:
        own = measured(timed_showings(engine, rater))
        if own.source == PaceSource.MEASURED:
            return own
    return measured(timed_showings(engine))
