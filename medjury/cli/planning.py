"""`medjury plan`: how many responses and clinicians a study needs, and what it can show."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.queries.export import READINGS, reading_rows
from data.schema import State
from medjury.cli.options import Db, Json, Seed, finite, named_jurors, study_of
from medjury.cli.output import progress
from medjury.cli.places import check_json, write_json
from medjury.cli.planning_rows import EITHER, Expected, Piloted, Wanted, plan_rows, power_rows
from medjury.cli.planning_words import print_plan, sentences, to_json
from medjury.services.ledger import Looked
from medjury.services.record import steered
from medjury.services.scores import all_jurors, scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.scope import Scope
    from calibration.scores import Scores

PAPER = 0.31  # the single-rater ICC that the MedHELM paper obtained, having planned with 0.75
SHARED = 0.5  # of the errors of two scorers, where no pilot tells
PILOT_ONLY = {"--db": "db", "--panel": "panel", "--jurors": "jurors", "--benchmark": "benchmark"}


@dataclass(frozen=True, slots=True)
class Source:
    """Where the ICC to plan with comes from: one of two assumptions, or the study's own ratings."""

    icc: float | None
    single: float | None
    pilot: bool
    db: str | None = None
    panel: str | None = None
    jurors: str | None = None
    benchmark: str | None = None


def plan(
    context: typer.Context,
    icc: Annotated[
        float | None,
        typer.Option(min=0, max=0.99, help="ICC(C,2) expected, as the agreement table has it."),
    ] = None,
    single_icc: Annotated[
        float | None,
        typer.Option(min=0, max=0.99, help="Single-rater ICC expected instead."),
    ] = None,
    pilot: Annotated[
        bool, typer.Option("--pilot", help="Take both from the ratings of this study.")
    ] = False,
    width: Annotated[
        float,
        typer.Option(min=0.01, max=2, help="Of the 95 % interval, end to end."),
    ] = 0.3,
    per_response: Annotated[int, typer.Option(min=1, help="Clinicians per response.")] = 2,
    assurance: Annotated[
        float,
        typer.Option(min=0.5, max=0.99, help="Share of studies to obtain the width."),
    ] = 0.8,
    clinicians: Annotated[
        int | None, typer.Option(min=1, help="Clinicians there are, for the load of each.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes-per-response",
            min=0.01,
            help="With --pilot, by default measured.",
            callback=finite,
        ),
    ] = None,
    responses: Annotated[
        int | None, typer.Option(min=4, help="Responses you can afford: what will they give?")
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(min=0.001, max=1, help="Between two ICC(C,2), to be shown."),
    ] = None,
    shared: Annotated[
        float | None,
        typer.Option(
            "--shared-error",
            min=0,
            max=0.99,
            help="Of the two scorers, by default 0.5; not for --pilot.",
        ),
    ] = None,
    population: Annotated[
        int | None, typer.Option(min=4, help="Instances there are at all, if few.")
    ] = None,
    panel: Annotated[str | None, typer.Option(metavar="PANEL", help="The pilot's jury.")] = None,
    jurors: Annotated[str | None, typer.Option(metavar="a,b,c", help="The same, named.")] = None,
    benchmark: Annotated[str | None, typer.Option(help="The pilot's; by default all.")] = None,
    seed: Seed = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Plan a study: responses and clinicians for an interval, and the difference it can show."""
    check_json(json_to)
    source = Source(icc, single_icc, pilot, db, panel, jurors, benchmark)
    wanted = Wanted(
        width, per_response, assurance, clinicians, minutes, responses, difference, population,
        SHARED if shared is None else shared, seed,
    )  # fmt: skip
    _check(source, wanted)
    if pilot and shared is not None:
        raise BadInput("--shared-error is assumed, --pilot measures it: leave one of them out")
    with progress("planning", None):
        found = piloted(context, source, seed) if pilot else None
    if found and minutes is None:
        wanted = replace(wanted, minutes=found.minutes)
    expected = list(found.expected(per_response) if found else _assumed(source, per_response))
    rows = plan_rows(expected, wanted)
    shown = power_rows(rows, wanted, found)
    told = sentences(rows, shown, wanted, found)
    print_plan(rows, shown, told, wanted, json_to)
    write_json(to_json(rows, shown, told, wanted, found, (icc, single_icc)), json_to)


def _check(source: Source, wanted: Wanted) -> None:
    given = [source.icc is not None, source.single is not None, source.pilot]
    if sum(given) != 1:
        raise BadInput(
            "give one of --icc (ICC(C,2), as in the agreement table), --single-icc (of one rater) "
            "and --pilot (both from the ratings of this study)"
        )
    if not source.pilot:
        for option, name in PILOT_ONLY.items():
            if getattr(source, name) is not None:
                raise BadInput(f"{option} names a pilot's ratings: give --pilot with it")
    if wanted.clinicians is not None and wanted.clinicians < wanted.per_response:
        raise BadInput(
            f"--clinicians {wanted.clinicians}: {wanted.per_response} different ones rate a response "
            "(--per-response)"
        )
    if wanted.population and wanted.responses and wanted.responses > wanted.population:
        raise BadInput(
            f"--responses {wanted.responses}: there are {wanted.population} instances (--population), "
            "and a response counts once an instance"
        )


def _assumed(source: Source, per_response: int) -> Iterator[Expected]:
    """Yield what an assumed ICC means for clinicians and jury, and what the paper obtained."""
    from calibration.planning.sample_size import single_of

    given = source.single is not None
    single = source.single if source.single is not None else single_of(source.icc or 0.0)
    whom = [("jury", 2)] if per_response == 1 else [("clinicians", per_response), ("jury", 2)]
    whom = [(EITHER, 2)] if per_response == 2 else whom
    for scorer, columns in whom:
        one = Expected(scorer, "assumed", single, columns, 1 if given else 2)
        yield one
        if single > PAPER:
            yield replace(one, basis="paper obtained", single=PAPER)


def piloted(context: typer.Context, source: Source, seed: int) -> Piloted:
    """Return what the study's ratings say; the ledger is told that a jury was looked at."""
    from threadpoolctl import threadpool_limits

    from calibration.planning.pilot import clinicians_reliability, jury_reliability, variations

    engine = study_of(context, source.db)
    chosen = named_jurors(source.panel, source.jurors)
    scores = scores_of(engine)
    if chosen:
        scores = replace(scores, silent=frozenset(silent_jurors(engine, scores)))
    jury = chosen or all_jurors(scores)
    scope = _scope(scores, jury, source.benchmark, seed)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        clinicians, of_jury = clinicians_reliability(scope), jury_reliability(scope)
        varied = variations(scope)
    if jury:
        looked = Looked(jury, len(jury), "", "paper", "")
        icc = of_jury.icc if math.isfinite(of_jury.icc) else None
        row = {"benchmark": scope.name, "scorer": "jury", "icc": icc}
        looked.remember(engine, [row | {"n_responses": of_jury.n_responses}], (), scores.ratings)
    timed, measured = _minutes(engine)
    told = tuple(steered(engine))
    return Piloted(
        scope.name, tuple(jury), clinicians, of_jury, tuple(varied), timed, measured, told
    )


def _scope(scores: "Scores", jury: list[str], benchmark: str | None, seed: int) -> "Scope":
    """Return one benchmark of the study, or by default all of it."""
    from calibration.scope import Asked
    from calibration.scopes import Sitting, scopes, why_undefined_scope

    found = {one.name: one for one in scopes(scores, Sitting(jury or None), Asked(seed=seed))}
    if benchmark is not None and benchmark not in found:
        raise BadInput(f"--benchmark {benchmark}: the study has {', '.join(found)}")
    scope = found[benchmark] if benchmark is not None else list(found.values())[-1]
    if reason := why_undefined_scope(scores, scope):
        raise BadInput(f"no pilot in {scope.name}: {reason}; --benchmark names one by itself")
    return scope


def _minutes(engine: Engine) -> tuple[float | None, int]:
    """Return the median minutes of a finished reading, and of how many; None of none."""
    state, seconds = READINGS.index("state"), READINGS.index("seconds_active")
    spent = [
        float(row[seconds])
        for row in reading_rows(engine)
        if row[state] == State.DONE and row[seconds] > 0
    ]
    return (median(spent) / 60 if spent else None), len(spent)
