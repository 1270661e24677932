"""`medjury analyse monitor`: a jury's agreement with clinicians over time; exit 1 when it has fallen.

Its OpenMetrics text has figures and names of benchmarks and jurors, and nothing else.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medjury.cli.files import STANDARD_OUTPUT, write_files, write_json, writes_to
from medjury.cli.options import (
    BenchmarkOption,
    Criterion,
    Db,
    Json,
    Jurors,
    MinJurors,
    NoReps,
    NoSeed,
    PanelOption,
    finite,
    named_jurors,
    study_of,
)
from medjury.cli.output import (
    fitting,
    progress,
    say,
    say_unnoted,
    show_decision,
    show_fitted,
    show_table,
)

if TYPE_CHECKING:
    from medjury.services.monitoring import Monitored

FALLEN = 1
NO_REPORT = "no report frozen yet: `medjury analyse calibrate --freeze` keeps one to compare with"
Method = Literal["paper", "published"]
Every = Literal["week", "month", "quarter"]
Metrics = Annotated[
    Path | None,
    typer.Option(
        "--openmetrics",
        metavar="FILE",
        help="Write the figures as OpenMetrics; - is standard output.",
        callback=writes_to,
    ),
]
ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def monitor(
    context: typer.Context,
    min_icc: Annotated[float, typer.Option(help="Smallest acceptable ICC.", callback=finite)] = 0.4,
    false_alarms: Annotated[
        float,
        typer.Option(min=0.01, max=0.2, help="Accepted probability of a false alarm per year."),
    ] = 0.05,
    every: Annotated[Every, typer.Option(help="Calendar period.")] = "month",
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Show and watch periods from this day on.")
    ] = None,
    least: Annotated[
        int,
        typer.Option("--min-instances", min=3, help="Smallest number of instances in a period."),
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
    panel: PanelOption = None,
    jurors: Jurors = None,
    method: Annotated[
        Method,
        typer.Option(
            help="paper: z of each rater, then their mean; published: the raters' mean, then its z."
        ),
    ] = "paper",
    benchmark: BenchmarkOption = None,
    criterion: Criterion = None,
    min_jurors: MinJurors = None,
    reps: NoReps = 2000,
    seed: NoSeed = 0,
    metrics_to: Metrics = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Follow the jury's agreement with clinicians over time; exit 1 when it has fallen."""
    from calibration.values import AnalysisOptions, MonitoringOptions
    from medjury.services.monitoring import monitor as monitored

    _check(min_icc, target, (baseline, baseline_report, target))
    analysis = AnalysisOptions(
        jurors=named_jurors(panel, jurors),
        min_jurors=min_jurors,
        benchmark=benchmark,
        criterion=criterion,
        method=method,
        reps=reps,
        seed=seed,
    )
    options = MonitoringOptions(
        today=datetime.now(UTC).date(),
        analysis=analysis,
        panel=panel,
        every=every,
        least=least,
        since=_day(since),
        floor=min_icc,
        false_alarms=false_alarms,
        baseline=baseline or 3,
        baseline_report=baseline_report,
        target=target,
    )
    engine = study_of(context, db)
    with progress("computing", None):
        monitoring = monitored(engine, options)
    say_unnoted(monitoring.unnoted)
    show_monitored(monitoring, STANDARD_OUTPUT if metrics_to == STANDARD_OUTPUT else json_to)
    if metrics_to is not None:
        write_openmetrics(openmetrics(monitoring), metrics_to)
    write_json(monitoring.to_json(), json_to)
    if monitoring.decision.kind == "fallen":
        raise typer.Exit(FALLEN)


def show_monitored(monitoring: "Monitored", to: Path | None = None) -> None:
    """Print the decision, then the periods, what speaks for a change, and the frozen reports."""
    from calibration.monitoring import DRIFTS
    from calibration.notes import sentence
    from calibration.tables.monitoring import ANCHOR, REPORTS, mix_table, periods_table
    from calibration.tables.numbers import TERMINAL

    show_decision(monitoring.decision, to)
    say(f"jury: {', '.join(monitoring.jury)}", to)
    show_table(fitting(partial(periods_table, monitoring, TERMINAL), to), to)
    if monitoring.anchor:
        show_fitted(ANCHOR, monitoring.anchor, ANCHOR.caption, to)
    if monitoring.mix:
        show_table(mix_table(monitoring.mix, TERMINAL), to)
    if monitoring.mix or monitoring.anchor:
        say(f"Drift: {DRIFTS[monitoring.drift]}.", to)
    for note in (note for row in monitoring.jurors for note in row.notes):
        say(sentence(note), to)
    if monitoring.reports:
        show_fitted(REPORTS, monitoring.reports, REPORTS.caption, to)
    else:
        say(NO_REPORT, to)


def _check(min_icc: float, target: float | None, targets: tuple[float | None, ...]) -> None:
    """Refuse numbers that no ICC can be, and two targets at once."""
    for name, value in (("--min-icc", min_icc), ("--target", target)):
        if value is not None and not (math.isfinite(value) and value <= 1):
            raise typer.BadParameter(f"{value} is no ICC: at most 1", param_hint=name)
    if target == 1:
        raise typer.BadParameter("1 leaves no room to fall below", param_hint="--target")
    if sum(target is not None for target in targets) > 1:
        raise typer.BadParameter("give one of --baseline, --baseline-report and --target")


def _day(since: str | None) -> date | None:
    if since is None:
        return None
    try:
        return date.fromisoformat(since)
    except ValueError as error:
        raise typer.BadParameter(
            f"{since!r} is no day; write it as 2026-03-01", param_hint="--since"
        ) from error


@dataclass(frozen=True, slots=True)
class Gauge:
    """A family of gauges: each sample has its labels and its value; NaN where undefined."""

    name: str
    what: str
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)
    unit: str = ""

    def lines(self) -> Iterator[str]:
        """Yield the family in OpenMetrics text."""
        yield f"# TYPE {self.name} gauge"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {_escaped(self.what)}"
        for labels, value in self.samples:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            yield f"{self.name}{{{inside}}} {_number(value)}"


def openmetrics(monitoring: "Monitored | None", also: Iterable[Gauge] = ()) -> str:
    """Return what was found, and other families, as OpenMetrics text, which ends with `# EOF`.

    Its figures are those of the newest period that is judged. A family without a sample is
    left out.
    """
    found = _families(monitoring) if monitoring is not None else ()
    families = [family for family in (*found, *also) if family.samples]
    lines = [line for family in families for line in family.lines()]
    return "\n".join([*lines, "# EOF"]) + "\n"


def write_openmetrics(text: str, to: Path) -> None:
    """Write the text, whole or not at all: a scraper may read at any moment."""
    if to == STANDARD_OUTPUT:
        print(text, end="")
        return
    write_files({"--openmetrics": (to, text)})


def _families(monitoring: "Monitored") -> Iterable[Gauge]:
    newest = monitoring.judged
    labels = {
        "benchmark": monitoring.benchmark,
        "scorer": "jury",
        "simulated": "true" if monitoring.simulated else "false",
    }
    yield from (
        Gauge(f"medjury_{name}", about, [(labels, math.nan if value is None else float(value))])
        for name, about, value in (
            ("icc", "ICC(C,2) of the jury with the clinicians, newest period.", newest.icc),
            ("icc_low", "Lower end of its 95 % interval.", newest.low),
            ("icc_high", "Upper end of its 95 % interval.", newest.high),
            ("icc_threshold", "Floor: the least ICC that is wanted.", monitoring.options.floor),
            ("icc_target", "Target ICC.", monitoring.target_icc),
            ("period_responses", "Responses the ICC rests on.", newest.n_responses),
            ("period_instances", "Instances of these responses.", newest.n_instances),
            ("period_missing", "Responses the jury has no score for.", newest.n_missing),
            ("fall", "Largest fall below the target, in standard errors.", newest.scan),
            ("fall_limit", "Fall that raises an alarm.", newest.limit),
            ("alarm", "1 if a fall has reached its limit.", bool(monitoring.below)),
            ("fallen", "1 if agreement has fallen.", monitoring.decision.kind == "fallen"),
            (
                "judged",
                "0 if the ICC is undefined and nothing can be said.",
                math.isfinite(monitoring.icc),
            ),
        )
    )
    yield Gauge(
        "medjury_period_end_timestamp_seconds",
        "End of the newest period that is judged.",
        [(labels, _midnight(newest.end) + 86_400)],
        "seconds",
    )
    yield Gauge(
        "medjury_report_timestamp_seconds",
        "When the newest report was frozen.",
        [({"report": f"{row.report}"}, row.at.timestamp()) for row in monitoring.reports[-1:]],
        "seconds",
    )
    yield Gauge(
        "medjury_juror_end_timestamp_seconds",
        "Day from which the model of a juror cannot be asked.",
        [({"juror": row.juror}, _midnight(row.ends)) for row in monitoring.jurors if row.ends],
        "seconds",
    )


def _midnight(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()


def _number(value: float) -> str:
    return "NaN" if not math.isfinite(value) else repr(float(value))


def _escaped(text: str) -> str:
    return "".join(ESCAPED.get(sign, sign) for sign in text)
