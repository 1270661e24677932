"""The table of errors that clinicians marked, the examples below it, and what both leave out."""

from collections.abc import Iterator, Sequence
from typing import Any

from calibration.error_values import BenchmarkErrors, ErrorGroup, PickedFor, PickedResponse, Quote
from calibration.notes import counted
from calibration.tables.numbers import PAGE, TERMINAL, Typeface, fixed, known
from calibration.tables.spec import (
    Table,
    TableSpec,
    between,
    count,
    laid_out,
    number,
    share,
    signed,
)

GROUPS = {
    ErrorGroup.MARKED: "any mark",
    ErrorGroup.GRAVE: "critical or major",
    ErrorGroup.UNMARKED: "read, nothing marked",
    ErrorGroup.UNREAD: "read elsewhere, no marks",
}
REASONS = {
    PickedFor.LOWEST: "Lowest scores",
    PickedFor.JURY: "Jury farthest from the clinicians",
    PickedFor.CLINICIANS: "Clinicians farthest from each other",
}
NONE = {
    PickedFor.LOWEST: "no clinician rated a response on all criteria",
    PickedFor.JURY: "the jury and the clinicians differ on no response that both scored",
    PickedFor.CLINICIANS: "clinicians differ on no response, or none was rated by two",
}
RULE = (
    "Examples are extremes, picked by rule: they show what errors are like, not how many there are. Lowest "
    "scores and each error type: the lowest clinicians' mean first, then the largest disagreement. "
    "Disagreements: the largest first, then the lowest mean. Ties go by response id. At most {} for each "
    "reason; a response may stand under several."
)
ABOUT = (
    "Share: of the responses that clinicians read where marks can be made, first readings only, with "
    "Wilson's interval clustered by instance. Gap: jury minus clinicians, in points, with its interval "
    "between instances. Spread: largest minus smallest composite of a response's clinicians. Nothing is "
    "adjusted: who marked has scored too, and a response may have several errors."
)
NO_QUOTE = "no clinician marked or commented on it"


def named(key: str) -> str:
    """Return the name of a group as a table has it, from the `key` of its row."""
    group, _, error = key.partition(":")
    return error or GROUPS[ErrorGroup(group)]


def _is_shown(row: Any) -> bool:
    """Tell whether a group is worth a row: it has a response, or it says that nothing was marked."""
    return bool(row.n_responses or (row.group is ErrorGroup.MARKED and row.n_read))


def errors_table(found: BenchmarkErrors, face: Typeface = PAGE, *, narrow: bool = False) -> Table:
    """Return the groups of a benchmark that have a response as a table."""
    caption = f"{found.benchmark}: {ERRORS.caption}"
    return laid_out(ERRORS, ERRORS.shown(found.rows), face, caption=caption, narrow=narrow)


SHARE = "Of the responses that clinicians read, how many are in this group."
SPREAD = "How far the clinicians' scores of a response lie apart, in points."
ERRORS = TableSpec(
    "Errors that clinicians marked",
    "key",
    "Error",
    (
        count("Responses", "n_responses"),
        number("Share", "share", help=SHARE),
        between("95 %, share", "low", "high"),
        number("Clinicians", "clinicians"),
        number("Jury", "jury", wide=True),
        signed("Gap", "gap", help="Mean of the jury's score minus the clinicians', in points."),
        between("95 %, gap", "gap_low", "gap_high"),
        number("Spread", "spread", wide=True, help=SPREAD),
        count("Marks", "n_marks", wide=True),
        share("Places two marked", "n_shared", "n_places", wide=True),
        count("Critical or major", "n_grave", wide=True),
    ),
    in_columns=frozenset({"marks_without_jury"}),
    named=named,
    wanted=_is_shown,
)


def reason_heading(picked_for: PickedFor, error: str) -> str:
    """Return the heading of the examples of one reason."""
    return f"Error type: {error}" if picked_for is PickedFor.ERROR else REASONS[picked_for]


def missing_reasons(picked: Sequence[PickedResponse]) -> Iterator[str]:
    """Yield why there are no examples of a reason, one each that has none."""
    own = {one.picked_for for one in picked}
    yield from (f"{REASONS[of]}: none, {why}" for of, why in NONE.items() if of not in own)


def figures_line(picked: PickedResponse, face: Typeface = TERMINAL) -> str:
    """Return the figures of an example in a line."""
    one = picked.n_clinicians == 1
    spread = "" if one else f", spread {fixed(picked.spread, 2, face)}"
    line = f"clinicians {fixed(picked.clinicians, 2, face)} (of {picked.n_clinicians}{spread})"
    if known(picked.jury):
        sign = "+" if picked.gap > 0 else ""
        line += f", jury {fixed(picked.jury, 2, face)} ({sign}{fixed(picked.gap, 2, face)})"
    else:
        line += ", no score of the jury"
    if not picked.errors:
        return f"{line}; nothing marked" if picked.is_read else line
    return f"{line}; marked: {', '.join(picked.errors)}"


def quote_kind(said: Quote | None) -> str:
    """Return what a quote is of: a mark with its kind, a comment, or that there is none."""
    if said is None:
        return NO_QUOTE
    if said.is_mark:
        kind = ", ".join(filter(None, (said.criterion, said.error, said.severity)))
        return f"marked in the {said.side} ({kind})"
    return f"comment on {said.criterion}" if said.criterion else "comment on the whole"


def left_out_lines(found: BenchmarkErrors) -> Iterator[str]:
    """Yield how many responses of a benchmark the figures are of, and what they leave out."""
    line = f"{found.n_rated:,} of {counted(found.n_in_study, 'response')} rated by clinicians on all criteria"
    if found.n_unscored:
        line += f", {found.n_unscored:,} of them not scored by the jury"
    yield line
    if found.n_unscored is None:
        yield "no juror has rated: gaps are undefined"
    if found.n_incomplete:
        yield f"left out: {counted(found.n_incomplete, 'reading')} of clinicians that lack a criterion"
    if found.n_outside:
        yield f"left out: {counted(found.n_outside, 'marked response')} that no clinician rated on all criteria"
    if found.n_rated and not any(row.n_read for row in found.rows):
        yield "no response was read where marks can be made: shares are undefined"
    elif found.n_rated and not any(row.n_marks for row in found.rows):
        yield "no clinician marked anything"
