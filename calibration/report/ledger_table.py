"""The ledger on a page: how many juries were ever held against the clinicians."""

from calibration.messages.form import listed
from calibration.report.content import Study, Tried
from calibration.report.ways import different, ever_tried
from calibration.tables.notes import TableNote
from calibration.tables.numbers import fixed, place, whole
from calibration.tables.spec import Group, Table

MOST = 25


def ledger_words(study: Study) -> str:
    """Say how many juries were tried, and what choosing among them does."""
    if not study.tried:
        return "No jury was held against the clinicians."
    told = f"Ever held against these clinicians, by any command: {ever_tried(study.tried)}."
    luck = (
        " Who tries many and shows the best shows luck too: the intervals of this page are not "
        "corrected for choosing, the p by Holm are."
        if juries_tried(study) > 1
        else ""
    )
    return told + luck


def juries_tried(study: Study) -> int:
    """Return how many different juries of real jurors were ever held against the clinicians."""
    return different([one for one in study.tried if not one.simulated])


def tried_table(study: Study) -> Table:
    """Return the ledger jury by jury, what was looked at last first."""
    order = sorted(study.tried, key=lambda one: one.last, reverse=True)
    left = len(order) - MOST
    notes = (TableNote(f"{left} earlier ones are not listed."),) if left > 0 else ()
    listed: dict[str, list[tuple[str, ...]]] = {}
    for one in order[:MOST]:
        listed.setdefault(_jury(one), []).append(_cells(one))
    return Table(
        "The ledger of juries tried",
        ("Benchmark", "Criterion", "Method", "ICC(C,2)", "Responses", "Times", "Last, UTC"),
        tuple(Group(jury, tuple(rows)) for jury, rows in listed.items()),
        notes,
        frozenset(("Criterion", "Method")),
    )


def _jury(one: Tried) -> str:
    enough = "" if one.needed == len(one.jurors) else f"; {one.needed} needed"
    only = f"; {one.instances}" if one.instances else ""
    return listed(one.jurors) + enough + only + (" (simulated)" if one.simulated else "")


def _cells(one: Tried) -> tuple[str, ...]:
    criterion = one.criterion or "composite"
    figures = (fixed(one.icc, 3), whole(one.n_responses), whole(one.times))
    return (place(one.benchmark), criterion, one.method, *figures, one.last)
