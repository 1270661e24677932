"""Errors that clinicians marked, in words, as a table and as a page: light, for the screens."""

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from calibration.notes import Noted, counted
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
from calibration.values import NAN
from calibration.writers import html_page, html_table

GROUPS = {
    "marked": "any mark",
    "grave": "critical or major",
    "unmarked": "read, nothing marked",
    "unread": "read elsewhere, no marks",
}
REASONS = {
    "lowest": "Lowest scores",
    "jury_apart": "Jury farthest from the clinicians",
    "clinicians_apart": "Clinicians farthest from each other",
}
NONE = {
    "lowest": "no clinician rated a response on all criteria",
    "jury_apart": "the jury and the clinicians differ on no response that both scored",
    "clinicians_apart": "clinicians differ on no response, or none was rated by two",
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
TITLE = "Error analysis"
HOLDS_WORDS = (
    "This page quotes what clinicians marked and wrote, which may hold words of patients: keep it where "
    "the study is kept. It names no clinician and no author of a response."
)


@dataclass(frozen=True)
class ErrorRow(Noted):
    """One group of a benchmark's rated responses. NaN: undefined, as notes say.

    Attributes
    ----------
    group : "marked", "unmarked" and "unread" part all rated responses; "grave" (a critical or major
        mark) and "error" are parts of "marked" that overlap
    error : the error type of an "error" group, else ""
    n_responses, n_read : responses of the group; and all that a clinician read where marks can be made
    share, low, high : n_responses to n_read, 0 to 1, with its 95 % interval by Wilson, clustered by
        instance; NaN for "unread", which is no part of them
    n_marks, n_grave : marks of the kind, and the critical or major ones among them
    clinicians : mean over the group of the clinicians' mean composite, in points
    jury : mean of its composite on those of them that it scored
    gap, gap_low, gap_high : mean on them of jury minus clinicians, with its 95 % interval by t
        between instances
    spread : mean of the largest composite minus the smallest, where two clinicians have one
    n_places, n_shared : places marked so on responses that two clinicians or more read, and those of
        them that two or more marked; see `calibration.errors.places`
    """

    benchmark: str
    group: str
    error: str = ""
    n_responses: int = 0
    n_read: int = 0
    share: float = NAN
    low: float = NAN
    high: float = NAN
    n_marks: int = 0
    n_grave: int = 0
    clinicians: float = NAN
    jury: float = NAN
    gap: float = NAN
    gap_low: float = NAN
    gap_high: float = NAN
    spread: float = NAN
    n_places: int = 0
    n_shared: int = 0

    @property
    def key(self) -> str:
        """Return what names it in its benchmark: the group, and after a colon the error type."""
        return f"{self.group}:{self.error}"


@dataclass(frozen=True, slots=True)
class Quote:
    """A clinician's marked words or comment, as they are.

    Attributes
    ----------
    is_mark : else it is a comment
    words, note : verbatim; the note is the clinician's on the mark
    criterion, error, severity, side : of the mark; of a comment the criterion alone, "" on the whole
    """

    is_mark: bool
    words: str
    note: str = ""
    criterion: str = ""
    error: str = ""
    severity: str = ""
    side: str = ""


@dataclass(frozen=True, slots=True)
class PickedResponse:
    """An example, and why it is one.

    Attributes
    ----------
    picked_for, error : the reason, of `REASONS` or "error"; then the error type, else ""
    place : among those picked for that reason, from 1
    clinicians, n_clinicians : their mean composite in points, and of how many
    spread : the largest of their composites minus the smallest; NaN with one clinician
    jury, gap : its composite, and that minus the clinicians'; NaN where it gave none
    errors : the types that were marked in it, in alphabetical order
    is_read : whether a clinician read it where marks can be made
    quote : the one quote of it; None where nobody marked or wrote
    """

    benchmark: str
    picked_for: str
    error: str
    place: int
    response_id: str
    instance_id: str
    clinicians: float
    n_clinicians: int
    spread: float
    jury: float
    gap: float
    errors: tuple[str, ...] = ()
    is_read: bool = True
    quote: Quote | None = None


@dataclass(frozen=True)
class BenchmarkErrors:
    """What a benchmark shows of errors, and what is left out of it.

    Attributes
    ----------
    rows, picked : its groups and its examples, reason by reason
    n_in_study, n_rated : its responses, and those with a clinician's composite, which is all that is
        counted here
    n_incomplete : clinicians' readings that lack a criterion, and so a composite
    n_unscored : rated responses without a score of the jury; None without a jury
    n_outside : responses with a mark that are not among the rated ones
    simulated : raters in it that are simulated
    """

    benchmark: str
    rows: tuple[ErrorRow, ...]
    picked: tuple[PickedResponse, ...]
    n_in_study: int
    n_rated: int
    n_incomplete: int
    n_unscored: int | None
    n_outside: int
    simulated: tuple[str, ...] = ()


def _named(key: str) -> str:
    group, _, error = key.partition(":")
    return error or GROUPS[group]


def _is_shown(row: Any) -> bool:
    """Tell whether a group is worth a row: it has a response, or it says that nothing was marked."""
    return bool(row.n_responses or (row.group == "marked" and row.n_read))


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
    named=_named,
    wanted=_is_shown,
)


def errors_table(found: BenchmarkErrors, face: Typeface = PAGE, *, narrow: bool = False) -> Table:
    """Return the groups of a benchmark that have a response as a table."""
    caption = f"{found.benchmark}: {ERRORS.caption}"
    return laid_out(ERRORS, ERRORS.shown(found.rows), face, caption=caption, narrow=narrow)


def reason_heading(picked_for: str, error: str) -> str:
    """Return the heading of the examples of one reason."""
    return f"Error type: {error}" if picked_for == "error" else REASONS[picked_for]


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
        return "no clinician marked or commented on it"
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


def page(
    parts: Sequence[BenchmarkErrors], jury: Sequence[str], simulated: Sequence[str], per_group: int
) -> str:
    """Return a page of its own, which asks no other place for anything; all text is escaped."""
    made_up = f"Simulated, no evidence: {', '.join(simulated)}." if simulated else ""
    mark = f'<p class="simulated"><strong>{html.escape(made_up)}</strong></p>' if made_up else ""
    who = f"Jury: {', '.join(jury) or 'none has rated'}."
    lines = "".join(map(_paragraph, (who, RULE.format(per_group), ABOUT, HOLDS_WORDS)))
    body = "".join(
        f"<h2>{html.escape(one.benchmark)}</h2>{html_table(errors_table(one))}"
        f"{''.join(map(_paragraph, left_out_lines(one)))}{examples_html(one.picked)}"
        for one in parts
    )
    return html_page(TITLE, f"{mark}<h1>{TITLE}</h1>{lines}{body}")


def _paragraph(line: str) -> str:
    return f"<p>{html.escape(line)}</p>"


def examples_html(
    examples: Sequence[PickedResponse], named: Callable[[str], str] = html.escape
) -> str:
    """Return the examples, reason by reason, and which reasons have none.

    `named` makes the HTML of a response's id.
    """
    groups = groupby(examples, key=lambda one: (one.picked_for, one.error))
    parts = [
        f'<h3>{html.escape(reason_heading(*reason))}</h3><ol class="mj-examples">'
        f"{''.join(_example(one, named) for one in own)}</ol>"
        for reason, own in groups
    ]
    return "".join((*parts, *map(_paragraph, missing_reasons(examples))))


def _example(example: PickedResponse, named: Callable[[str], str]) -> str:
    quote = example.quote
    words = f"<blockquote>{html.escape(quote.words)}</blockquote>" if quote else ""
    note = f"<small>note: {html.escape(quote.note)}</small>" if quote and quote.note else ""
    return (
        f"<li>{named(example.response_id)}: {html.escape(figures_line(example, PAGE))}"
        f"<br><small>{html.escape(quote_kind(quote))}</small>{words}{note}</li>"
    )
