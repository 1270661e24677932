"""`medjury analyse errors`: which errors clinicians mark, with examples in their words."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from data.csv_files import write_csv
from data.errors import BadFile
from data.safe_text import visible
from medjury.cli.files import write_files, write_json, writes_to
from medjury.cli.options import (
    BenchmarkOption,
    Criterion,
    Db,
    Json,
    Jurors,
    MinJurors,
    PanelOption,
    named_jurors,
    study_of,
)
from medjury.cli.output import fitting, progress, room, say, seat_words, show_table

if TYPE_CHECKING:
    from calibration.tables.errors import BenchmarkErrors, PickedResponse, Quote
    from medjury.services.errors import StudyErrors

MIN_WIDTH = 20  # of a line of quoted words
CsvNew = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Write a row an example; new.", callback=writes_to),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a page to read.", callback=writes_to),
]


def errors(
    context: typer.Context,
    panel: PanelOption = None,
    jurors: Jurors = None,
    benchmark: BenchmarkOption = None,
    per_group: Annotated[
        int, typer.Option(metavar="N", help="Examples at the most for each reason.")
    ] = 3,
    criterion: Criterion = None,
    min_jurors: MinJurors = None,
    csv_to: CsvNew = None,
    html_to: Html = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Show which errors clinicians mark, and the worst and most disputed responses in their words."""
    from medjury.services.errors import ErrorsQuestion, csv_of, study_errors, to_json

    if csv_to is not None and csv_to.exists():
        raise BadFile(f"--csv {csv_to}: is there already; name another file")
    question = ErrorsQuestion(
        benchmark, named_jurors(panel, jurors), min_jurors, per_group, criterion
    )
    engine = study_of(context, db)
    with progress("errors", None):
        found = study_errors(engine, question)
    _show(found, json_to, named=question.jurors is not None)
    if html_to is not None:
        from calibration.tables.errors import page

        text = page(found.benchmarks, found.jury, found.simulated, found.per_group)
        write_files({"--html": (html_to, text)})
        say(f"{html_to}: written", json_to)
    if csv_to is not None:
        say(f"{csv_to}: {write_csv(csv_to, *csv_of(found))} examples", json_to)
    write_json(to_json(found), json_to)


def _show(found: "StudyErrors", json_to: Path | None, *, named: bool) -> None:
    """Print who sits on the jury, each benchmark's table, and its examples."""
    say(f"jury: {', '.join(found.jury) or 'none has rated'}", json_to)
    if found.silent:
        say(seat_words(found.silent, named=named), json_to)
    if found.simulated:
        say(f"simulated, no evidence: {', '.join(found.simulated)}", json_to)
    for benchmark in found.benchmarks:
        _show_benchmark(benchmark, json_to)
    for line in _told(found):
        say(line, json_to)


def _show_benchmark(found: "BenchmarkErrors", json_to: Path | None) -> None:
    from calibration.tables.errors import errors_table, left_out_lines
    from calibration.tables.numbers import TERMINAL

    say("", json_to)
    show_table(fitting(partial(errors_table, found, TERMINAL), json_to), json_to)
    for line in left_out_lines(found):
        say(f"  {line}", json_to)
    say("", json_to)
    for line in _examples(found.picked, room(json_to)):
        say(line, json_to)


def _told(found: "StudyErrors") -> Iterator[str]:
    """Yield how to read it all, and what holds for the whole study."""
    from calibration.tables.errors import ABOUT, RULE

    yield from ("", ABOUT, RULE.format(found.per_group))
    yield from found.told


def _examples(examples: "Sequence[PickedResponse]", width: int) -> Iterator[str]:
    """Yield the examples, reason by reason, and the reasons that have none."""
    from calibration.tables.errors import figures_line, missing_reasons, reason_heading

    for reason, own in groupby(examples, key=lambda one: (one.picked_for, one.error)):
        yield reason_heading(*reason)
        for one in own:
            yield f"  {one.response_id}: {figures_line(one)}"
            yield from _wrapped(_quoted(one.quote), width)
    yield from missing_reasons(examples)


def _quoted(said: "Quote | None") -> str:
    """Return a quote as one line; what a terminal would obey or not show stands as U+ and a number."""
    from calibration.tables.errors import quote_kind

    if said is None:
        return quote_kind(said)
    note = f" Note: {visible(said.note)}" if said.note else ""
    return f'{quote_kind(said)}: "{visible(said.words)}"{note}'


def _wrapped(line: str, width: int) -> list[str]:
    return wrap(line, max(MIN_WIDTH, width), initial_indent="    ", subsequent_indent="    ")
