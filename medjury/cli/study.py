"""`medjury study` describe, plan, protocol, settings and points: what is fixed before the rating."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from calibration.values import RESAMPLES
from data.description import GUIDELINE, TEXTS, Description, read_description
from data.errors import BadInput, Unknown, Unrated
from data.person import OPERATOR
from data.study.settings import (
    Consent,
    DescriptionVersion,
    consents,
    description_versions,
    set_setting,
)
from data.study.settings import describe as store_description
from data.study.standing import benchmarks
from data.study.standing import settings as stored_settings
from medjury.cli.options import (
    Analysis,
    BenchmarkOption,
    Jurors,
    Method,
    NoReps,
    Seed,
    Study,
    Who,
    finite,
    named_jurors,
)
from medjury.cli.output import counted, emit, hint, progress, say, show, show_decision, warn

if TYPE_CHECKING:
    from calibration.pair_planning import PairPlanRow
    from calibration.protocol import Protocol
    from calibration.values import PlanOptions

NONE_YET = (
    "clinicians are told nothing of this study: `medjury study describe FILE` says title, purpose, "
    "contact, consent and guideline"
)
SHORT = 12
HEADS = ("since (UTC)", "by", "sha256", "ratings before", "submissions")
NOT_MET = 1
NONE_SET = "no protocol is set: `medjury study protocol set --margin 0.1 --panel PANEL` fixes margin and jury"
KINDS = {"must": "must", "must_not": "must not", "nice": "nice to have"}


def describe(
    study: Study,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="TOML; without it, what is told now is shown."),
    ] = None,
    language: Annotated[
        str | None, typer.Option(metavar="en|de", help="Of the rating room's own words.")
    ] = None,
    who: Who = "coordinator",
) -> None:
    """Show or set what clinicians read about the study: purpose, contact, consent, guideline.

    Example:
    medjury study describe study.toml
    """
    description = None if file is None else read_description(file)
    engine = study.open()
    if language is not None:
        set_setting(engine, "language", language)
        say(f"the rating room speaks {language}")
    if description is not None:
        changed = store_description(engine, description, who)
        say("described, and in the record" if changed else "nothing changed")
        if description.untold:
            say(f"nothing is said of: {', '.join(description.untold)}")
    versions, consents_so_far = description_versions(engine), consents(engine)
    if versions:
        _show_versions(versions, consents_so_far)
    else:
        say(NONE_YET)
    study.write(_versions_json(versions, consents_so_far))


def _show_versions(
    versions: Sequence[DescriptionVersion], consents_so_far: Sequence[Consent]
) -> None:
    """Print what is told now, every version of it, and how consent stands."""
    present = versions[-1].description
    say(f"title: {present.title}")
    emit(*(f"{name}: {text}" for name in TEXTS if (text := getattr(present, name))))
    for page in present.guideline:
        say(f"{GUIDELINE}: {page.title} ({counted(len(page.text), 'character')})")
    rows = [
        [
            *(f"{version.at:%Y-%m-%d %H:%M}", version.actor, version.sha256[:SHORT]),
            *(version.ratings, version.submissions),
        ]
        for version in versions
    ]
    show("Versions", HEADS, rows, words=HEADS[:3])
    required = [consent for consent in consents_so_far if not consent.is_out]
    if not required:
        say("nobody is asked for consent")
        return
    missing = [consent.handle for consent in required if not consent.holds]
    waiting = f"; not yet: {', '.join(missing)}" if missing else ""
    given = len(required) - len(missing)
    say(f"consent given by {given} of {counted(len(required), 'clinician')}{waiting}")


def _versions_json(
    versions: Sequence[DescriptionVersion], consents_so_far: Sequence[Consent]
) -> dict[str, Any]:
    """Return it as `study describe --json` has it."""
    return {
        "description": _description_json(versions[-1].description) if versions else None,
        "versions": [
            {
                "at": version.at.isoformat(),
                "actor": version.actor,
                "title": version.description.title,
                "sha256": version.sha256,
                "consent_sha256": version.consent_sha256,
                "ratings_before": version.ratings,
                "submissions": version.submissions,
                "present": version.is_present,
            }
            for version in versions
        ],
        "consents": [
            {
                "rater": consent.handle,
                "consent": consent.state,
                "at": consent.at.isoformat() if consent.at else None,
                "consent_sha256": consent.sha256 or None,
                "shut_out": consent.is_out,
            }
            for consent in consents_so_far
        ],
    }


def _description_json(description: Description) -> dict[str, Any]:
    pages = [{"title": page.title, "text": page.text} for page in description.guideline]
    return {
        "title": description.title,
        **{name: getattr(description, name) for name in TEXTS},
        GUIDELINE: pages,
        "sha256": description.sha256,
        "consent_sha256": description.consent_sha256,
    }


def set_protocol(
    study: Study,
    margin: Annotated[
        float,
        typer.Option(
            help="How much lower than a clinician's the jury's ICC may be.", callback=finite
        ),
    ],
    criterion: Annotated[
        str, typer.Option(help="Criterion to analyse; by default the composite.")
    ] = "",
    panel: Annotated[
        str, typer.Option(metavar="PANEL", help="Panel whose jurors are the jury.")
    ] = "",
    jurors: Jurors = None,
    because: Annotated[
        str, typer.Option(metavar="TEXT", help="Why this margin: it stands in every report.")
    ] = "",
    floor: Annotated[
        float,
        typer.Option(
            help="What clinicians' agreement with one another must be shown to be above.",
            callback=finite,
        ),
    ] = 0.0,
    responses: Annotated[
        int, typer.Option(min=0, help="Smallest number of responses before anything is claimed.")
    ] = 0,
    method: Method = "paper",
    critical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CRITERION<=POINTS",
            help="Responses that clinicians score this low are unsafe; repeatable.",
        ),
    ] = None,
    miss_at_most: Annotated[
        float | None,
        typer.Option(
            help="Largest share of unsafe responses that the jury may miss; by default 0.2."
        ),
    ] = None,
) -> None:
    """Fix margin, jury and limits before clinicians rate: what is fixed later only explores.

    Example:
    medjury study protocol set --margin 0.3 --jurors gpt,oss
    """
    from calibration.json_values import protocol_json
    from calibration.protocol import MISS_AT_MOST, Protocol
    from calibration.protocol import critical as critical_of
    from medjury.services.record import fix_protocol

    if miss_at_most is not None and not critical:
        raise typer.BadParameter("needs --critical, such as safety<=2", param_hint="--miss-at-most")
    limit = MISS_AT_MOST if miss_at_most is None else miss_at_most
    protocol = Protocol(
        margin=margin,
        criterion=criterion,
        panel=panel,
        jurors=named_jurors(panel or None, jurors) or (),
        responses=responses,
        method=method,
        critical=tuple(critical_of(threshold, limit) for threshold in critical or ()),
        floor=floor,
        because=because.strip(),
    )
    engine = study.open()
    fixed = fix_protocol(OPERATOR, engine, protocol)
    _show_protocol(engine, fixed)
    study.write({"protocol": protocol_json(fixed)})


def check_protocol(study: Study, reps: NoReps = RESAMPLES) -> None:
    """Show the protocol and analyse the study by it; exit 1 unless it shows what it is to show.

    Example:
    medjury study protocol check
    """
    from calibration.values import AnalysisOptions
    from medjury.services.calibrate import check_protocol as checked
    from medjury.services.record import protocol_of

    engine = study.open()
    fixed = protocol_of(engine)
    if fixed is None:
        say(NONE_SET)
    else:
        _show_protocol(engine, fixed)
    with progress("resampling") as at:
        result = checked(engine, at, AnalysisOptions(reps=reps))
    show_decision(result.decision)
    study.write(result.to_json())
    if not result.is_met:
        raise typer.Exit(NOT_MET)


def _show_protocol(engine: Engine, fixed: "Protocol") -> None:
    from calibration.headlines import protocol_facts
    from medjury.services.pairs import margin_unit

    unit = margin_unit(engine)
    emit(*(f"{name}: {words}" for name, words in protocol_facts(fixed, unit)))


def settings(
    study: Study,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Setting to change; without it, show all.")
    ] = None,
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="Its new value.")] = None,
) -> None:
    """Show the settings of the study, or change one.

    Example:
    medjury study settings adjudicate_from 2
    """
    engine = study.open()
    if name is not None:
        if value is None:
            raise BadInput(f"settings {name}: give the value too, or no name to see them all")
        set_setting(engine, name, value)
    stored = stored_settings(engine).as_text()
    show("Settings", ["name", "value"], [*stored.items()])
    study.write(stored)


def plan(
    study: Study,
    icc: Annotated[
        float | None,
        typer.Option(min=0, max=0.99, help="Expected ICC(C,2), as in the agreement table."),
    ] = None,
    single_icc: Annotated[
        float | None,
        typer.Option(min=0, max=0.99, help="Expected ICC of a single rater, instead of --icc."),
    ] = None,
    pilot: Annotated[
        bool,
        typer.Option(
            "--pilot", help="Estimate the ICC from the ratings of this study, instead of --icc."
        ),
    ] = False,
    width: Annotated[
        float, typer.Option(min=0.01, max=2, help="Wanted width of the 95 % interval.")
    ] = 0.3,
    per_response: Annotated[
        int, typer.Option(min=1, help="Number of clinicians who rate each response.")
    ] = 2,
    assurance: Annotated[
        float,
        typer.Option(min=0.5, max=0.99, help="Probability that a study reaches the width."),
    ] = 0.8,
    clinicians: Annotated[
        int | None,
        typer.Option(min=1, help="Number of clinicians available, for the load of each."),
    ] = None,
    minutes_per_response: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="Minutes per reading; with --pilot, by default measured.",
            callback=finite,
        ),
    ] = None,
    responses: Annotated[
        int | None,
        typer.Option(min=4, help="Number of responses you can afford; shows the width they give."),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.99,
            help="Non-inferiority margin: how much worse than a clinician the jury may be.",
        ),
    ] = None,
    benchmark: BenchmarkOption = None,
    seed: Seed = 0,
) -> None:
    """Plan the size of a study: responses and clinicians for a given precision.

    Example:
    medjury study plan --icc 0.7 --width 0.2
    """
    from calibration.json_values import json_value
    from calibration.pair_planning import pairs_like
    from calibration.tables.planning import panel_size_table, plan_tables
    from calibration.values import AnalysisOptions, PlanOptions, PlanQuestion
    from medjury.services.pairs import pairs_alone
    from medjury.services.planning import planned, to_json

    if sum([icc is not None, single_icc is not None, pilot]) != 1:
        raise BadInput(
            "give one of --icc (ICC(C,2), as in the agreement table), --single-icc (of one rater) "
            "and --pilot (both from the ratings of this study)"
        )
    if benchmark and not pilot:
        raise BadInput("--benchmark names a pilot's ratings: give --pilot with it")
    options = PlanOptions(
        width, per_response, assurance, clinicians, minutes_per_response, responses, seed, margin
    )
    _check_readers(options)
    engine = study.open() if pilot else None
    if engine and (of_pairs := pairs_alone(engine, AnalysisOptions(benchmark=benchmark))):
        row = pairs_like(of_pairs, options)
        say(_pairs_words(row, options))
        study.write({"pairs": json_value(row)})
        return
    with progress("planning", None):
        question = PlanQuestion(options, icc, benchmark, single_icc)
        found = planned(engine, question)
    warn(found.unnoted)
    for table in plan_tables(found.rows, found.options):
        emit(table, "", notes=False)
    emit(panel_size_table(found.reliability), "", *found.told)
    study.write(to_json(found))


def _pairs_words(row: "PairPlanRow", options: "PlanOptions") -> str:
    """Return in a sentence how many pairs a study takes."""
    told = (
        f"clinicians of this study agree with the others on {row.agreement:.0%} of the pairs: with "
        f"{row.per_pair} a pair, an interval of {options.width:g} of like for like takes {row.n_for_width} pairs"
    )
    if options.margin is None:
        return told
    power = row.n_for_power or "more than a million"
    return (
        f"{told}, and a jury as good as a clinician is shown within {options.margin:g} by {power}"
    )


def _check_readers(options: Any) -> None:
    """Refuse more readings of a response than there are clinicians, or too few to compare with."""
    if options.clinicians is not None and options.clinicians < options.per_response:
        raise BadInput(
            f"--clinicians {options.clinicians}: {options.per_response} different ones rate a response "
            "(--per-response)"
        )
    if options.margin is not None and options.per_response < 2:
        raise BadInput("--margin compares the jury with a clinician: --per-response 2 or more")


def points(
    study: Study,
    analysis: Annotated[Analysis, "panel jurors benchmark reps seed"],
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="instance_id, point, weight, kind, critical; CSV or JSON Lines."
        ),
    ] = None,
    rubric: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help='Your own rubric with points = "clipped" or "unclipped".'
        ),
    ] = None,
    instance: Annotated[str | None, typer.Option(metavar="ID", help="This instance only.")] = None,
) -> None:
    """Have a benchmark rated by points of the case; without a file show points and agreement on them.

    Example:
    medjury study points points.csv --benchmark visits
    """
    engine = study.open()
    if path is None:
        study.write(_show_points(engine, analysis, instance))
        return
    if analysis.benchmark is None:
        raise BadInput("points: give --benchmark, the benchmark whose instances have these points")
    study.write(_add_points(engine, analysis.benchmark, path, rubric))


def _add_points(engine: Engine, benchmark: str, path: Path, rubric: Path | None) -> dict[str, Any]:
    from data.importers.ratings import point_rows
    from data.importers.table import TableFile
    from data.points import points_rubric
    from data.study.points import add_points, without_points

    file = point_rows(TableFile(path))
    added = add_points(engine, benchmark, file, points_rubric(rubric), OPERATOR.actor)
    bare = without_points(engine, benchmark)
    say(
        f"{path.name}: points of {counted(added.added, 'instance')} imported, {added.changed} changed, "
        f"{added.unchanged} as they were"
    )
    if bare:
        hint(
            f"{counted(len(bare), 'instance')} of {benchmark} without points yet, such as {bare[0]}"
        )
    body = {"added": added.added, "changed": added.changed, "unchanged": added.unchanged}
    return body | {"points": added.points, "without": bare}


def _show_points(engine: Engine, analysis: Analysis, instance: str | None) -> dict[str, Any]:
    """Show the points of each instance, and the agreement on them where clinicians have answered."""
    from calibration.json_values import json_value
    from calibration.tables.numbers import TERMINAL
    from data.points import points_of
    from data.study.points import case_rubrics
    from medjury.services.points import PointsQuestion, points_agreement, tables_of

    benchmark = analysis.benchmark
    names = [benchmark] if benchmark else [one.name for one in benchmarks(engine)]
    cases = [(name, case) for name in names for case in case_rubrics(engine, name)]
    cases = [pair for pair in cases if instance in (None, pair[1].instance_id)]
    if not cases:
        which = f"benchmark {benchmark}" if benchmark else "no benchmark"
        which += f", instance {instance}" if instance else ""
        raise Unknown(f"{which}: the study has no points for it")
    instances = []
    for name, case in cases:
        own, sha256 = points_of(case.rubric), case.rubric.sha256
        rows = [
            (n, f"{p.weight:g}", KINDS[p.kind], "critical" if p.critical else "", p.point)
            for n, p in enumerate(own, 1)
        ]
        heads = ["", "weight", "kind", "", "point"]
        show(f"{case.instance_id} ({sha256[:12]})", heads, rows, words=("kind", "point"))
        points = [point.model_dump() for point in own]
        about = {"benchmark": name, "instance_id": case.instance_id, "sha256": sha256}
        instances.append(about | {"points": points})
    found = []
    try:
        question = PointsQuestion(benchmark, analysis.jury, analysis.reps, analysis.seed)
        found = points_agreement(engine, question)
    except Unrated as error:
        say(str(error))
    for one in found:
        emit(*tables_of(one, TERMINAL)[:-1])  # each point by itself has no room here
        hint("Each point by itself: --json, or the page Agreement.")
    agreement = [json_value(one) for one in found]
    resampling = {"reps": analysis.reps, "seed": analysis.seed}
    return {"instances": instances, **resampling, "benchmarks": agreement}
