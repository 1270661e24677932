"""The ledger of a report: how many juries were ever compared with the clinicians."""

from collections.abc import Sequence
from typing import Any

from calibration.notes import listed
from calibration.report.content import Study
from calibration.shared_notes import tried_words
from calibration.tables.numbers import fixed, place, whole
from calibration.tables.spec import Group, Table, TableNote

MOST = 25
MINUTE = "%Y-%m-%d %H:%M"


def different(entries: Sequence[Any]) -> int:
    """Return how many different juries entries of the ledger are of, by their jurors alone."""
    return len({tuple(sorted(one.jurors)) for one in entries})


def ever_tried(entries: Sequence[Any]) -> str:
    """Return how many juries of real jurors were ever tried, and how many with simulated ones."""
    real, made_up = ([one for one in entries if one.simulated == kind] for kind in (False, True))
    words = f"of real jurors, {tried_words(different(real), len(real))}"
    simulated = f"; with simulated jurors, {tried_words(different(made_up), len(made_up))}"
    return words + (simulated if made_up else "")


def ledger_words(study: Study) -> str:
    """Return how many juries were tried, and how choosing among them biases the figures."""
    if not study.tried:
        return "No jury was compared with the clinicians."
    juries = f"Ever compared with these clinicians, by any command: {ever_tried(study.tried)}."
    luck = (
        " The best of many juries is partly luck: the intervals and p values on this page are not "
        "corrected for choosing."
        if juries_tried(study) > 1
        else ""
    )
    return juries + luck


def juries_tried(study: Study) -> int:
    """Return how many different juries of real jurors were ever compared with the clinicians."""
    return different([one for one in study.tried if not one.simulated])


def tried_table(study: Study) -> Table:
    """Return the ledger jury by jury, the latest entries first."""
    order = sorted(study.tried, key=lambda one: f"{one.last_at:{MINUTE}}", reverse=True)
    n_omitted = len(order) - MOST
    notes = (TableNote(f"{n_omitted} earlier ones are not listed."),) if n_omitted > 0 else ()
    by_jury: dict[str, list[tuple[str, ...]]] = {}
    for entry in order[:MOST]:
        criterion = entry.criterion or "composite"
        figures = (fixed(entry.icc, 3), whole(entry.n_responses), whole(entry.times))
        cells = (place(entry.benchmark), criterion, entry.method, *figures)
        row = (*cells, f"{entry.last_at:{MINUTE}}")
        by_jury.setdefault(_jury(entry), []).append(row)
    return Table(
        "The ledger of juries tried",
        ("Benchmark", "Criterion", "Method", "ICC(C,2)", "Responses", "Times", "Last, UTC"),
        tuple(Group(jury, tuple(rows)) for jury, rows in by_jury.items()),
        notes,
        frozenset(("Criterion", "Method")),
    )


def _jury(entry: Any) -> str:
    needed = "" if entry.needed == len(entry.jurors) else f"; {entry.needed} needed"
    instances = f"; {entry.instances}" if entry.instances else ""
    simulated = " (simulated)" if entry.simulated else ""
    return listed(entry.jurors) + needed + instances + simulated
