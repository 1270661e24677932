"""The tables of juries: the ranking, two beside each other, and the ledger of all that were tried."""

from collections.abc import Iterable, Sequence
from typing import Any

from calibration.notes import listed
from calibration.shared_notes import juries_words
from calibration.tables.agreement import DIFFERENCE
from calibration.tables.numbers import Typeface, fixed, place, whole
from calibration.tables.spec import (
    Column,
    Group,
    Table,
    TableNote,
    TableSpec,
    count,
    icc,
    icc_between,
    number,
    probability,
)

LEGEND = (
    "Expected: ICC on new responses, corrected for choosing the best; quote its interval.",
    "Observed: interval of the ICC on these responses, not corrected for choosing.",
    "US dollars: cost of a response by all its jurors.",
    "Best value: no cheaper jury agrees as well.",
)
COMPARISON = TableSpec(
    "ICC(C,2) of two juries with the clinicians on the same responses",
    "b",
    "Compared with",
    (
        number("First", "icc_a", 3, help="ICC(C,2) of the first jury with the clinicians."),
        number("Second", "icc_b", 3, help="That of the second, which the first is compared with."),
        number("Difference", "difference", 3, help=DIFFERENCE),
        icc_between("95 %", "low", "high", 3),
        probability("p", "p"),
        count("Comparisons", "n_tried"),
        count("Responses", "n_responses"),
    ),
    in_columns=frozenset(["only_both"]),
    named=lambda name: name.removeprefix("jury:"),
)


def legend(front: Sequence[object]) -> tuple[str, ...]:
    """Return how to read a ranking; best value is explained only where some jury has one."""
    return LEGEND if front else LEGEND[:-1]


def _usd(row: Any, face: Typeface) -> str:
    return "unknown" if row.usd_per_response is None else fixed(row.usd_per_response, 4, face)


def _best_value(row: Any, face: Typeface) -> str:
    is_known = row.usd_per_response is not None
    return ("yes" if row.on_front else "no") if is_known else face.none


RANKING = TableSpec(
    "Juries, the best first",
    "name",
    "Jury",
    (
        count("Rank", "rank", wide=True),
        count("Jurors", "size", wide=True),
        icc(),
        number("Expected", "icc_honest", 3, help=LEGEND[0]),
        icc_between("95 % of expected", "honest_low", "honest_high"),
        icc_between("95 % observed", "low", "high", wide=True, help=LEGEND[1]),
        Column("US dollars", _usd, help=LEGEND[2]),
        Column("Best value", _best_value, is_words=True, wide=True, help=LEGEND[3]),
        count("Responses", "n_responses"),
    ),
    in_columns=frozenset(["undefined_resamples"]),
    named=str,
)


MOST_TRIED = 25
MINUTE = "%Y-%m-%d %H:%M"
WAY = "benchmark, criterion, method, responses, jurors needed"


def tried_words(juries: int, ways: int) -> str:
    """Return how many juries were compared with clinicians, and in how many ways, as text."""
    different = f"{whole(juries)} different {juries_words(juries)}"
    return f"{different} in {whole(ways)} {'way' if ways == 1 else 'ways'} ({WAY})"


def different(entries: Iterable[Any]) -> int:
    """Return how many different juries entries of the ledger are of, by their jurors alone."""
    return len({tuple(sorted(one.jurors)) for one in entries})


def juries_tried(entries: Iterable[Any]) -> int:
    """Return how many different juries of real jurors were ever compared with the clinicians."""
    return different(one for one in entries if not one.simulated)


def ever_tried(entries: Sequence[Any]) -> str:
    """Return how many juries of real jurors were ever tried, and how many with simulated ones."""
    real, made_up = ([one for one in entries if one.simulated == kind] for kind in (False, True))
    words = f"of real jurors, {tried_words(different(real), len(real))}"
    simulated = f"; with simulated jurors, {tried_words(different(made_up), len(made_up))}"
    return words + (simulated if made_up else "")


def ledger_words(entries: Sequence[Any]) -> str:
    """Return how many juries were tried, and how choosing among them biases the figures."""
    if not entries:
        return "No jury was compared with the clinicians."
    juries = f"Ever compared with these clinicians, by any command: {ever_tried(entries)}."
    luck = (
        " The best of many juries is partly luck: the intervals and p values on this page are not "
        "corrected for choosing."
    )
    return juries + (luck if juries_tried(entries) > 1 else "")


def tried_table(entries: Sequence[Any]) -> Table:
    """Return the ledger jury by jury, the latest entries first."""
    order = sorted(entries, key=lambda one: one.last_at, reverse=True)
    by_jury: dict[str, list[tuple[str, ...]]] = {}
    for entry in order[:MOST_TRIED]:
        needed = "" if entry.needed == len(entry.jurors) else f"; {entry.needed} needed"
        instances = f"; {entry.instances}" if entry.instances else ""
        simulated = " (simulated)" if entry.simulated else ""
        cells = (place(entry.benchmark), entry.criterion or "composite", entry.method)
        figures = (fixed(entry.icc, 3), whole(entry.n_responses), whole(entry.times))
        row = (*cells, *figures, f"{entry.last_at:{MINUTE}}")
        by_jury.setdefault(listed(entry.jurors) + needed + instances + simulated, []).append(row)
    omitted = len(order) - MOST_TRIED
    return Table(
        "The ledger of juries tried",
        ("Benchmark", "Criterion", "Method", "ICC(C,2)", "Responses", "Times", "Last, UTC"),
        tuple(Group(jury, tuple(rows)) for jury, rows in by_jury.items()),
        (TableNote(f"{omitted} earlier ones are not listed."),) if omitted > 0 else (),
        frozenset(("Criterion", "Method")),
    )
