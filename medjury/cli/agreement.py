"""`medjury analyse calibrate`: the agreement of jury, jurors and metrics with clinicians, and its reports."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from calibration.values import RESAMPLES
from medjury.cli.files import write_files, writes_each
from medjury.cli.options import OF_SCORES, Analysis, NoReps, Study
from medjury.cli.output import emit, fitted, progress, say, seat_words, show_decision, warn

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from calibration.pair_results import PairResult
    from calibration.tables.spec import TableSpec
    from medjury.services.calibration import Calibration

FORMS: Mapping[str, str] = {".md": "markdown", ".csv": "csv", ".tex": "latex"}  # else "html"
FEW_NOTES = 3  # that change how the table is read; --details has all
LEGEND = (
    "Terms: kappa is quadratic weighted, alpha Krippendorff's for ordinal scores, AC2 Gwet's; other: "
    "between points."
)
OF_ONE = "--benchmark NAME shows the same of one benchmark; --json has all of them"
ABOUT = (
    "ICC(C,2) = ICC(3,2) is consistency: a rater who is always a point stricter still agrees. Like "
    "for like is a difference: the jury's ICC with the other clinicians minus a held-out clinician's."
)
AGAIN = (
    "Same clinician again is ICC(A,1), absolute agreement of a reading with its hidden repeat: one "
    "reading, not a mean."
)
BRIEF = ("jury", "jury_held_out", "clinicians")


def calibrate(
    study: Study,
    analysis: Annotated[Analysis, f"{OF_SCORES} method"],
    min_shared: Annotated[
        int, typer.Option(min=2, help="Smallest number of responses two clinicians must share.")
    ] = 2,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Leave out a clinician's ratings; repeatable."),
    ] = None,
    use: Annotated[
        Literal["all", "sound", "adjudicated"],
        typer.Option(
            help="sound: instances whose reference the jurors found sound; adjudicated: "
            "clinicians' ratings after adjudication."
        ),
    ] = "all",
    details: Annotated[
        bool,
        typer.Option(
            "--details", "--notes", help="Print and write each benchmark, all tables and all notes."
        ),
    ] = False,
    reports: Annotated[
        list[Path] | None,
        typer.Option(
            "--table",
            "--html",
            metavar="FILE",
            help="Write a page to read and print, or the table as FILE.md, .csv or .tex; repeatable.",
            callback=writes_each,
        ),
    ] = None,
    freeze: Annotated[
        bool,
        typer.Option("--freeze", help="Keep this calibration in the study, for `analyse monitor`."),
    ] = False,
    reps: NoReps = RESAMPLES,
) -> None:
    """Compare the jury, its jurors and metrics with the clinicians: the agreement table.

    Example:
    medjury analyse calibrate
    """
    from medjury.services.calibration import CalibrationQuestion, as_json
    from medjury.services.frozen_reports import keep_report
    from medjury.services.scores import panel_families

    if freeze and use == "adjudicated":
        raise typer.BadParameter("freezes independent readings alone", param_hint="--freeze")
    options = analysis.options(
        references="sound" if use == "sound" else "all",
        reading="adjudicated" if use == "adjudicated" else "independent",
        min_shared=min_shared,
        reps=reps,
        without=tuple(dict.fromkeys(without or ())),
    )
    engine, to_json = study.open(), study.json_to is not None
    places = {to: FORMS.get(to.suffix.lower(), "html") for to in reports or ()}
    question = CalibrationQuestion(
        options,
        details=details,
        page=details or "html" in places.values(),
        further=details or freeze or to_json or bool(places),
        reference=freeze or to_json,
        families=tuple(panel_families(analysis.panel).items()),
        check=True,
    )
    calibration = print_agreement(engine, question)
    _write_reports(engine, calibration, places)
    if not (to_json or freeze):
        return
    body = as_json(calibration, details=details)
    study.write(body)
    if freeze:
        number = keep_report(engine, calibration, "", body)
        say(
            f"frozen as report {number}: `medjury analyse monitor` shows it and what comes after it"
        )


def print_agreement(engine: "Engine", question: Any = None) -> "Calibration":
    """Compute the agreement table, print it and what was asked for with it, and return it."""
    from medjury.services.calibrate import calibrate
    from medjury.services.calibration import THE_TABLE

    with progress("resampling") as at:
        calibration = calibrate(engine, question or THE_TABLE, tick=at)
    print_calibration(calibration)
    return calibration


def print_calibration(calibration: "Calibration", *, has_more: bool = True) -> None:
    """Print the table and what was asked for with it; `has_more` where --details is there to be asked."""
    warn(*calibration.warnings)
    show_calibration(calibration, has_more=has_more)
    if calibration.pairs:
        show_pairs(calibration.pairs)
    _show_unsafe(calibration)
    _show_subgroups(calibration)
    emit(*calibration.told)
    if calibration.question.details:
        _show_details(calibration)


def show_pairs(found: "PairResult") -> None:
    """Print the table of pairs, the best juries, and the models where they are known."""
    from calibration.tables.pairs import JURIES, MOST_JURIES, PAIRS, WINS

    emit("", fitted(PAIRS, found.last, PAIRS.caption))
    if found.juries:
        emit("", fitted(JURIES, found.juries[:MOST_JURIES], JURIES.caption))
    if found.plan is not None and found.plan.n_for_power is not None:
        say(
            f"A jury as good as a human is shown to be no worse at this margin by about {found.plan.n_for_power} "
            f"pairs, each judged by {found.plan.per_pair} humans who agree as these do."
        )
    if found.models:
        emit("", fitted(WINS, found.models, WINS.caption))


def _write_reports(engine: "Engine", calibration: "Calibration", places: dict[Path, str]) -> None:
    """Write every report that is asked for, all or none."""
    from medjury.services.reports import report_text

    write_files(
        {f"--html {to}": (to, report_text(engine, calibration, f)) for to, f in places.items()}
    )
    emit(*(f"{form} report: {to}" for to, form in places.items()))


def show_calibration(calibration: "Calibration", *, has_more: bool = True) -> None:
    """Print the answer first, then the table, then the notes that change how it is read."""
    from calibration.notes import listed, quoted, simulated_in
    from calibration.tables.agreement import EACH

    left_out, details = _left_out(calibration), calibration.question.details
    if calibration.jury:
        say(f"jury: {listed(calibration.jury)}{left_out}")
    named = bool(calibration.question.options.jurors)
    emit(*seat_words([*map(quoted, calibration.silent)], named=named))
    show_decision(calibration.decision)
    say("")
    names = [*calibration.decisions]
    for name in names if details else names[-1:]:
        _show_benchmark(calibration, name)
    if calibration.check_line:
        say(calibration.check_line)
    if len(calibration.raters) > 1:  # one alone has no others to be compared with
        emit(fitted(EACH, calibration.raters, f"{EACH.caption}{left_out}"))
    if not names:
        return
    if not details:
        several = len(names) - 1
        each = f"each of {several} benchmarks, " if several else ""
        if has_more:
            say(f"--details: {each}all behind it, and all notes.")
        return
    if made_up := simulated_in(calibration.rows):
        say(f"simulated raters: {listed(made_up)}")
    has_repeats = any(row.scorer == "intra_rater" for row in calibration.rows)
    say(f"{ABOUT} {AGAIN}" if has_repeats else ABOUT)


def _show_details(calibration: "Calibration") -> None:
    """Print every section that has rows: of all benchmarks combined, or of the last one."""
    from calibration.tables.jurors import SECTIONS

    for name, spec in SECTIONS.items():
        every: Sequence[Any] = calibration.details.get(name, ())
        if rows := _last(every):
            _show_section(spec, rows)
            say("")
    emit(LEGEND, *([OF_ONE] if len(calibration.decisions) > 1 else []))


def _show_section(spec: "TableSpec", rows: Sequence[Any]) -> None:
    """Print one section with the notes that warn, or a line where there is nothing to tabulate."""
    shown, remainder = spec.shown(rows), spec.rest(rows)
    if not spec.says(shown):
        say(remainder or f"{spec.caption}: {_undefined(spec, shown)}")
        return
    table = fitted(spec, shown, spec.caption)
    emit(replace(table, notes=tuple(one for one in table.notes if not one.is_quiet)))
    if remainder:
        say(f"  {remainder}")


def _undefined(spec: "TableSpec", rows: Sequence[Any]) -> str:
    """Return in a line why no row of a section has a figure."""
    return "; ".join(note.text for note in fitted(spec, rows, "").notes) or "nothing to tell"


def _show_benchmark(calibration: "Calibration", name: str) -> None:
    from calibration.tables.agreement import AGREEMENT
    from calibration.tables.numbers import place

    rows = [row for row in calibration.rows if row.benchmark == name]
    question = calibration.question
    title = f"{place(name)}{_left_out(calibration)}: agreement with the clinicians (method {question.options.method})"
    table = fitted(AGREEMENT, rows, title)
    emit(table, notes=question.details)
    if question.details:
        say("")
        return
    warning = [note for note in table.notes if not note.is_quiet and note.code != "includes_zero"]
    emit(*(f"  {note.text}" for note in warning[:FEW_NOTES]))


def _left_out(calibration: "Calibration") -> str:
    """Return whose ratings were left out on purpose, as a heading says it; "" where nobody's were."""
    from calibration.notes import listed

    names = calibration.question.options.without
    return f", without {listed(names)}" if names else ""


def _show_unsafe(calibration: "Calibration") -> None:
    """Print what is found of unsafe responses: always with details, else where it is critical.

    Of all benchmarks combined, or of the last one; without details of the jury and a clinician.
    """
    from calibration.tables.numbers import TERMINAL, place
    from calibration.tables.response_groups import by_threshold, detection_spec, threshold

    details = calibration.question.details
    rows = [row for row in calibration.detection if details or row.scorer in BRIEF]
    for own in by_threshold(_last(rows)).values():
        spec = detection_spec(own)
        title = f"{place(own[0].benchmark)}: {spec.caption}, {threshold(own[0], TERMINAL)}"
        emit("", fitted(spec, own, title))


def _show_subgroups(calibration: "Calibration") -> None:
    """Print the subgroups: all with details, else those to look at."""
    from calibration.tables.numbers import place
    from calibration.tables.response_groups import SUBGROUPS

    rows = list(calibration.subgroups)
    if not calibration.question.details:
        rows = [row for row in rows if row.finding != "shown" or row.bias_p_holm <= 0.05]
    if shown := _last(rows):
        emit("", fitted(SUBGROUPS, shown, f"{place(shown[0].benchmark)}: {SUBGROUPS.caption}"))


def _last(rows: Sequence[Any]) -> list[Any]:
    """Return the rows of all benchmarks combined, or of the last one."""
    return [row for row in rows if row.benchmark == rows[-1].benchmark]
