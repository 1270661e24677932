"""`medjury analyse`: juries, models, predict, route, errors and monitor."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from calibration.values import RESAMPLES
from data.errors import BadInput
from data.files import frame_cells, write_csv
from data.person import OPERATOR
from data.safe_text import visible
from medjury.cli.dask_workers import On, computing
from medjury.cli.files import write_files
from medjury.cli.options import (
    OF_SCORES,
    Analysis,
    CsvNew,
    Html,
    NoReps,
    Reason,
    Study,
    Who,
    finite,
    named_jurors,
)
from medjury.cli.output import (
    emit,
    fitted,
    fitting,
    progress,
    room,
    say,
    seat_words,
    show_decision,
    warn,
)

if TYPE_CHECKING:
    from calibration.models import ModelComparison
    from calibration.pairs import PairScores
    from calibration.routing import Harm
    from calibration.tables.errors import BenchmarkErrors, PickedResponse
    from calibration.values import AnalysisOptions
    from medjury.services.juries import RankedJuries
    from medjury.services.models import ModelsTask
    from medjury.services.monitoring import Monitored
    from medjury.services.routing import StudyRoutes

SIZES = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")
FALLEN = 1
MIN_WIDTH = 20  # of a line of quoted words
NO_REPORT = "no report frozen yet: `medjury analyse calibrate --freeze` keeps one to compare with"
PREDICTED = (
    "corrected: the jury on all n + N responses, corrected by what clinicians said of n. gain: so "
    "many times n ratings would give clinicians alone that interval. Right if the n are a random "
    "sample of their benchmark.",
    "Single responses: the jury's composite mapped to the clinicians' scale, -+ half the width, from "
    "rated instances that the map was not fitted on.",
)


def juries(
    study: Study,
    analysis: Annotated[Analysis, "jurors benchmark criterion method reps seed"],
    sizes: Annotated[
        str | None, typer.Option(metavar="A-B", help="Sizes of juries to rank; by default 1-5.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="Number of juries to print.")] = 10,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            metavar="a,b", help="A jury to compare; give it twice for the difference of two."
        ),
    ] = None,
    on: On = None,
) -> None:
    """Rank every possible jury of the jurors that have rated, corrected for having chosen the best of many.

    Example:
    medjury analyse juries --reps 200
    """
    from medjury.services.juries import RankingQuestion, rank_juries, ranking_json
    from medjury.services.pairs import pairs_alone

    numbers, options = _sizes(sizes), analysis.options()
    if compare:
        if on:
            raise typer.BadParameter("a comparison draws no resamples", param_hint="--on")
        _compare(study, analysis, compare)
        return
    engine = study.open()
    if of_pairs := pairs_alone(engine, options):
        _juries_of_pairs(study, of_pairs, options, numbers, top)
        return
    with computing(on, "scores, no texts, are") as executor, progress("resampling") as at:
        question = RankingQuestion(options, numbers, top)
        ranked = rank_juries(engine, question, tick=at, executor=executor)
    warn(ranked.unnoted)
    emit(*(f"asked, and gave no rating: {name}; in no jury" for name in ranked.silent))
    show_decision(ranked.decision)
    _show_ranking(ranked)
    emit(*ranked.told)
    study.write(ranking_json(ranked))


def _juries_of_pairs(
    study: Study,
    scores: "PairScores",
    options: "AnalysisOptions",
    sizes: Sequence[int] | None,
    top: int,
) -> None:
    """Rank the juries of a study of pairs by their agreement with the clinicians on these."""
    from calibration.json_values import json_value
    from calibration.pair_juries import pair_ranking
    from calibration.tables.pairs import JURIES
    from medjury.services.pairs import seated

    rows = pair_ranking(scores, seated(scores, options), sizes)
    emit(fitted(JURIES, rows[:top], JURIES.caption))
    study.write({"rows": json_value(rows)})


def _compare(study: Study, analysis: Analysis, texts: Sequence[str]) -> None:
    """Compare two juries: print which agrees better and the table."""
    from calibration.tables.juries import COMPARISON
    from medjury.services.juries import ComparisonQuestion, compare_juries, comparison_json

    two = [named_jurors(None, jurors) or () for jurors in texts]
    if len(two) != 2 or {*two[0]} == {*two[1]}:
        raise BadInput("--compare: give it twice, with juries that differ in a juror")
    question = ComparisonQuestion(analysis.options(), two[0], two[1])
    compared = compare_juries(study.open(), question)
    warn(compared.unnoted)
    show_decision(compared.decision)
    caption = f"{compared.row.benchmark}: {COMPARISON.caption}"
    emit("", fitted(COMPARISON, [compared.row], caption), *compared.told)
    study.write(comparison_json(question, compared))


def _show_ranking(ranked: "RankedJuries") -> None:
    """Print the best jury of each size, the first of all, the best for their cost, and the notes."""
    from calibration.tables.juries import RANKING, legend

    ranking, top = ranked.ranking, ranked.question.top
    manner = f"(method {ranked.question.options.method}, mean of members)"
    front = ranking.front
    prices = " at made-up prices" if ranked.made_up else ""
    more = f", {top} of {len(front)}" if len(front) > top else ""
    parts = {
        "the best jury of each size": ranking.by_size,
        f"the first of {len(ranking.rows):,} juries": ranking.rows[:top],
        f"no cheaper jury agrees as well{prices}, the cheapest first{more}": front[:top],
    }
    for about, rows in parts.items():
        if rows:
            emit("", fitted(RANKING, rows, f"{ranked.benchmark}: {about} {manner}"))
    emit(*(f"  {line}" for line in (*legend(front), *map(str, ranked.notes))))


def _sizes(text: str | None) -> range | None:
    """Return the sizes that `A-B` or `A` means."""
    if text is None:
        return None
    match = SIZES.fullmatch(text)
    if match is None:
        raise BadInput(f"--sizes {text}: give one size or two as 1-5")
    low, high = int(match[1]), int(match[2] or match[1])
    if not 1 <= low <= high:
        raise BadInput(f"--sizes {text}: the first is at least 1 and at most the last")
    return range(low, high + 1)


def models(
    study: Study,
    analysis: Annotated[Analysis, "panel jurors criterion reps seed"],
    by: Annotated[
        Literal["clinicians", "jury", "corrected", "all"],
        typer.Option(
            help="Whose scores compare the models; corrected: the jury's, by clinicians'."
        ),
    ] = "all",
    costs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV of what each model cost; columns model, usd."),
    ] = None,
    unblind: Annotated[
        bool,
        typer.Option(
            "--unblind", help="Disclose the authors of a study that is still open; recorded."
        ),
    ] = False,
    reason: Reason = "",
    who: Who = "coordinator",
) -> None:
    """Compare the models: win rates, mean scores, categories, cost. Unblinds.

    Example:
    medjury analyse models --reps 200 --unblind --reason "rating has ended"
    """
    from calibration.json_values import json_value
    from calibration.tables.models import WAYS
    from calibration.tables.pairs import WINS
    from data.study.authors import author_names
    from medjury.services import models as service
    from medjury.services.pairs import pairs_alone
    from medjury.services.record import steered

    if unblind != bool(reason.strip()):
        raise BadInput("--unblind needs a --reason, which stays in the record, and only it does")
    options = analysis.options()
    prices = service.read_costs(costs) if costs else {}
    engine = study.open()
    task = None
    if pairs_alone(engine, options) is None:
        ways = WAYS if by == "all" else (by,)
        task = service.prepared(engine, service.ModelsRequest(options, ways))
    service.refuse_blind(engine, reason)  # before it is told whether a model is in the study
    service.refuse_unknown(prices, author_names(engine))
    service.lift(engine, reason, who)
    body: dict[str, Any] = {}
    if task is not None:
        with progress("resampling") as at:
            found, not_noted = service.compared(engine, task, at, prices)
        _show_models(task, found, named=bool(options.jurors))
        warn(not_noted)
        body = service.to_json(task, found)
    if won := service.wins(engine, options):
        emit("", fitted(WINS, won, WINS.caption))
        body["pairs"] = json_value(won)
    emit(*steered(engine))
    study.write({"rows": body.get("pairs", []), **body})


def _show_models(task: "ModelsTask", found: "ModelComparison", *, named: bool) -> None:
    """Print the decision, by whose scores, and the tables."""
    from calibration.models import deciding_way
    from calibration.tables.models import MEANING, category_table, difference_table, model_table
    from calibration.tables.numbers import TERMINAL

    show_decision(found.decision)
    emit("", *seat_words(task.silent, named=named))
    say(f"jury: {', '.join(task.jury)}" if task.jury else "by clinicians alone")
    emit(fitting(model_table, found.rows, TERMINAL), f"\n{MEANING}\n")
    decides = deciding_way(found.rows)
    if pairs := [row for row in found.differences if row.by == decides]:
        emit(difference_table(pairs, TERMINAL, narrow=True), "", notes=False)
    if by_category := category_table(found.rows, TERMINAL):
        emit(by_category, "", notes=False)


def predict(
    study: Study,
    analysis: Annotated[Analysis, f"{OF_SCORES} seed"],
    level: Annotated[
        float, typer.Option(help="Of the intervals, between 0 and 1.", callback=finite)
    ] = 0.9,
    csv_to: CsvNew = None,
) -> None:
    """Predict clinicians' scores of responses they did not rate, from a validated jury.

    Example:
    medjury analyse predict --csv predictions.csv
    """
    from calibration.tables.planning import means_table, single_table
    from medjury.services.predicting import csv_of, to_json
    from medjury.services.predicting import predict as predicted

    _check_share("--level", level)
    options = analysis.options()
    engine = study.open()
    with progress("resampling") as at:
        found = predicted(engine, options, level, at)
    warn(found.unnoted)
    show_decision(found.decision)
    emit(f"jury: {', '.join(found.jury)}")
    emit(*seat_words(found.silent, named=options.jurors is not None), "")
    emit(fitting(means_table, found.rows, level), "", notes=False)
    emit(single_table(found.rows, level), "", *PREDICTED, *found.told)
    if csv_to is not None:
        say(f"{csv_to}: {write_csv(csv_to, *csv_of(found.responses))} responses")
    study.write(to_json(found))


def _check_share(option: str, share: float) -> None:
    if not 0 < share < 1:
        raise BadInput(f"{option} {share:g}: give a share between 0 and 1, such as 0.9")


def route(
    study: Study,
    analysis: Annotated[Analysis, OF_SCORES],
    at_most: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Harmful: the clinicians' mean is at or under this.",
            callback=finite,
        ),
    ] = None,
    off_by: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Harmful: the jury is further than this from the clinicians' mean.",
            callback=finite,
        ),
    ] = None,
    bound: Annotated[
        float | None,
        typer.Option(
            help="Largest share of harmful ones among the passed; by default 0.05.", callback=finite
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="With which the bound holds; by default 0.9.", callback=finite),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Keep the rule under a name, to route later responses by it."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Route every response by the rule kept under this name."),
    ] = None,
    csv_to: CsvNew = None,
) -> None:
    """Say which responses the jury may pass and which a clinician must read, with a bound that holds.

    Example:
    medjury analyse route --at-most 3 --bound 0.3 --csv routes.csv
    """
    from medjury.services.routing import csv_of, to_json
    from medjury.services.routing import keep as keep_rule

    if by is not None:
        harm = {"at_most": at_most, "off_by": off_by, "bound": bound, "confidence": confidence}
        _refuse_a_question(asdict(analysis) | harm | {"keep": keep})
        _route_by(study, by, csv_to)
        return
    routes = _routes(study, analysis, _harm(at_most, off_by, analysis.criterion), bound, confidence)
    _show_routes(routes)
    if csv_to is not None:
        say(f"{csv_to}: {write_csv(csv_to, *csv_of(routes))} responses")
    kept = {}
    if keep is not None:
        rule = keep_rule(OPERATOR, study.open(), keep, routes)
        say(f"kept as {rule.name}, sha256 {rule.sha256}")
        kept = {"kept": {"name": rule.name, "sha256": rule.sha256}}
    study.write(to_json(routes) | kept)


def _routes(
    study: Study, analysis: Analysis, harm: "Harm", bound: float | None, confidence: float | None
) -> "StudyRoutes":
    """Return the rule that keeps the bound, and what it makes of every response."""
    from calibration.routing import RouteQuestion
    from medjury.services.routing import route as routed

    bound = 0.05 if bound is None else bound
    confidence = 0.9 if confidence is None else confidence
    _check_share("--bound", bound)
    _check_share("--confidence", confidence)
    question = RouteQuestion(
        harm, bound, confidence, analysis.jury, analysis.benchmark, analysis.min_jurors
    )
    engine = study.open()
    with progress("routing", None):
        return routed(engine, question)


def _refuse_a_question(asked: dict[str, object]) -> None:
    """Refuse options that a kept rule has answered for good."""
    others = ("method", "reps", "seed")  # which this command does not take
    given = [name for name, value in asked.items() if value is not None and name not in others]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise BadInput(f"--by: the kept rule has its own harm, bound and jury; leave out {options}")


def _route_by(study: Study, name: str, csv_to: Path | None) -> None:
    """Route every response by a kept rule."""
    from calibration.routing import changed_line, kept_details, kept_headline
    from medjury.services.routing import changed_since, kept_rule, route_study

    engine = study.open()
    kept = kept_rule(engine, name)
    changed = changed_since(engine, kept.rule)
    with progress("routing", None):
        decided = route_study(engine, kept.rule)
    why = [*decided["why"]]
    emit(kept_headline(name, kept.rule, why), *kept_details(kept.rule, why))
    emit(*([changed_line(changed)] if changed else []))
    if csv_to is not None:
        say(f"{csv_to}: {write_csv(csv_to, *frame_cells(decided))} responses")
    passed = int((decided["decision"] == "pass").sum())
    counts = {"passed": passed, "read": len(decided) - passed, "changed": list(changed)}
    about = {"name": name, "sha256": kept.sha256, "at": kept.at.isoformat(), "by": kept.by}
    study.write({"by": about | asdict(kept.rule), **counts})


def _harm(at_most: float | None, off_by: float | None, criterion: str | None) -> "Harm":
    from calibration.routing import Harm

    if at_most is not None and off_by is None:
        return Harm("low", at_most, criterion)
    if off_by is not None and at_most is None:
        if off_by < 0:
            raise BadInput(f"--off-by {off_by:g}: give points, 0 or more")
        return Harm("error", off_by, criterion)
    raise BadInput(
        "say which responses are harmful: --at-most POINTS (the clinicians' mean is at or under it) or "
        "--off-by POINTS (the jury is further from it), one of the two"
    )


def _show_routes(routes: "StudyRoutes") -> None:
    """Print what came of it, who sits on the jury, the rule, and the work that is left."""
    from calibration.routing import headline, rules_table, work_lines

    found = routes.found
    emit(headline(found, simulated=bool(routes.simulated)), f"jury: {', '.join(routes.jury)}")
    if routes.simulated:
        say(f"simulated: {', '.join(routes.simulated)}")
    emit(*seat_words(routes.silent, named=False), "", rules_table(found))
    emit(*work_lines(found, routes.unread, routes.hours), *routes.told)


def errors(
    study: Study,
    analysis: Annotated[Analysis, OF_SCORES],
    per_group: Annotated[
        int, typer.Option(metavar="N", help="Examples at the most for each reason.")
    ] = 3,
    csv_to: CsvNew = None,
    html: Html = None,
) -> None:
    """Show which errors clinicians mark, and the worst and most disputed responses in their words.

    Example:
    medjury analyse errors --benchmark visits --per-group 3
    """
    from calibration.tables.errors import ABOUT, RULE, page
    from medjury.services.errors import ErrorsQuestion, csv_of, study_errors, to_json

    jury = analysis.jury
    question = ErrorsQuestion(
        analysis.benchmark, jury, analysis.min_jurors, per_group, analysis.criterion
    )
    engine = study.open()
    with progress("errors", None):
        found = study_errors(engine, question)
    say(f"jury: {', '.join(found.jury) or 'none has rated'}")
    emit(*seat_words(found.silent, named=jury is not None))
    if found.simulated:
        say(f"simulated, no evidence: {', '.join(found.simulated)}")
    for benchmark in found.benchmarks:
        _show_errors(benchmark)
    emit("", ABOUT, RULE.format(found.per_group), *found.told)
    if html is not None:
        text = page(found.benchmarks, found.jury, found.simulated, found.per_group)
        write_files({"--html": (html, text)})
        say(f"{html}: written")
    if csv_to is not None:
        say(f"{csv_to}: {write_csv(csv_to, *csv_of(found))} examples")
    study.write(to_json(found))


def _show_errors(found: "BenchmarkErrors") -> None:
    from calibration.tables.errors import errors_table, left_out_lines
    from calibration.tables.numbers import TERMINAL

    emit("", fitting(errors_table, found, TERMINAL))
    emit(*(f"  {line}" for line in left_out_lines(found)), "", *_examples(found.picked))


def _examples(examples: "Sequence[PickedResponse]") -> Iterator[str]:
    """Yield the examples, reason by reason, and the reasons that have none.

    A quote is one line; what a terminal would obey or not show stands as U+ and a number.
    """
    from calibration.tables.errors import (
        figures_line,
        missing_reasons,
        quote_kind,
        reason_heading,
    )

    for reason, own in groupby(examples, key=lambda one: (one.picked_for, one.error)):
        yield reason_heading(*reason)
        for one in own:
            yield f"  {one.response_id}: {figures_line(one)}"
            line = quote_kind(one.quote)
            if one.quote is not None:
                note = f" Note: {visible(one.quote.note)}" if one.quote.note else ""
                line += f': "{visible(one.quote.words)}"{note}'
            size = max(MIN_WIDTH, room())
            yield from wrap(line, size, initial_indent="    ", subsequent_indent="    ")
    yield from missing_reasons(examples)


def monitor(
    study: Study,
    analysis: Annotated[Analysis, f"{OF_SCORES} method"],
    min_icc: Annotated[float, typer.Option(help="Smallest acceptable ICC.", callback=finite)] = 0.4,
    false_alarms: Annotated[
        float,
        typer.Option(min=0.01, max=0.2, help="Accepted probability of a false alarm per year."),
    ] = 0.05,
    every: Annotated[
        Literal["week", "month", "quarter"], typer.Option(help="Calendar period.")
    ] = "month",
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Show and watch periods from this day on.")
    ] = None,
    min_instances: Annotated[
        int, typer.Option(min=3, help="Smallest number of instances in a period.")
    ] = 20,
    baseline: Annotated[
        int | None,
        typer.Option(min=1, help="Number of first periods that set the target; by default 3."),
    ] = None,
    baseline_report: Annotated[
        int | None,
        typer.Option(metavar="ID", help="Number of the frozen report that sets the target."),
    ] = None,
    target: Annotated[
        float | None, typer.Option(metavar="ICC", help="Target ICC, if known.", callback=finite)
    ] = None,
    reps: NoReps = RESAMPLES,
) -> None:
    """Follow the jury's agreement with clinicians over time; exit 1 when it has fallen.

    Example:
    medjury analyse monitor
    """
    from calibration.values import MonitoringOptions
    from medjury.services.monitoring import monitor as monitored

    _check_target(min_icc, target, (baseline, baseline_report, target))
    options = MonitoringOptions(
        today=datetime.now(UTC).date(),
        analysis=analysis.options(reps=reps),
        panel=analysis.panel,
        every=every,
        least=min_instances,
        since=_day(since),
        floor=min_icc,
        false_alarms=false_alarms,
        baseline=baseline or 3,
        baseline_report=baseline_report,
        target=target,
    )
    engine = study.open()
    with progress("computing", None):
        monitoring = monitored(engine, options)
    warn(monitoring.unnoted)
    show_monitored(monitoring)
    study.write(monitoring.to_json())
    if monitoring.decision.kind == "fallen":
        raise typer.Exit(FALLEN)


def show_monitored(monitoring: "Monitored") -> None:
    """Print the decision, then the periods, what speaks for a change, and the frozen reports."""
    from calibration.monitoring import DRIFTS
    from calibration.notes import sentence
    from calibration.tables.monitoring import ANCHOR, REPORTS, mix_table, periods_table
    from calibration.tables.numbers import TERMINAL

    show_decision(monitoring.decision)
    emit(f"jury: {', '.join(monitoring.jury)}", fitting(periods_table, monitoring, TERMINAL))
    if monitoring.anchor:
        emit(fitted(ANCHOR, monitoring.anchor, ANCHOR.caption))
    if monitoring.mix:
        emit(mix_table(monitoring.mix, TERMINAL))
    if monitoring.mix or monitoring.anchor:
        say(f"Drift: {DRIFTS[monitoring.drift]}.")
    emit(*(sentence(note) for row in monitoring.jurors for note in row.notes))
    reports = monitoring.reports
    emit(fitted(REPORTS, reports, REPORTS.caption) if reports else NO_REPORT)


def _check_target(min_icc: float, target: float | None, targets: tuple[float | None, ...]) -> None:
    """Refuse numbers that no ICC can be, and two targets at once."""
    for name, value in (("--min-icc", min_icc), ("--target", target)):
        if value is not None and not (math.isfinite(value) and value <= 1):
            raise typer.BadParameter(f"{value} is no ICC: at most 1", param_hint=name)
    if target == 1:
        raise typer.BadParameter("1 leaves no room to fall below", param_hint="--target")
    if sum(target is not None for target in targets) > 1:
        raise typer.BadParameter("give one of --baseline, --baseline-report and --target")


def _day(since: str | None) -> date | None:
    try:
        return None if since is None else date.fromisoformat(since)
    except ValueError as error:
        raise typer.BadParameter(
            f"{since!r} is no day; write it as 2026-03-01", param_hint="--since"
        ) from error
