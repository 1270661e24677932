"""`medjury analyse watch`: outputs of a ward as they come, rated, and an alarm where agreement falls."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from data.errors import BadInput
from medjury.cli.files import STANDARD_OUTPUT, write_json, writes_to
from medjury.cli.monitor import FALLEN, Gauge, Metrics, openmetrics, write_openmetrics
from medjury.cli.options import Db, study_of
from medjury.cli.output import say

if TYPE_CHECKING:
    from annotate.watching.cycle import Watch
    from annotate.watching.settings import WatchSettings

NO_MESSAGES = "alarms are kept in the study and shown on the screen Ward; nobody is sent one"


def watch(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER|URL|-",
            help="Folder that outputs are dropped into, a database to ask, or - for JSON lines.",
        ),
    ],
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="Settings of the watch, TOML."),
    ] = None,
    folder: Annotated[
        Path,
        typer.Option("--folder", help="Where rows of a database or lines are kept as files."),
    ] = Path("watch-drops"),
    once: Annotated[
        bool, typer.Option("--once", help="Handle what is there, and end; for cron.")
    ] = False,
    shown: Annotated[
        bool, typer.Option("--show", help="Show the settings and who is told; do nothing.")
    ] = False,
    log_to: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Append the log there; default: to the output."),
    ] = None,
    metrics_to: Metrics = None,
    json_to: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="With --once: write what came of it as JSON; - is standard output.",
            callback=writes_to,
        ),
    ] = None,
    db: Db = None,
) -> None:
    """Watch a ward: take in outputs as they come, have them rated, raise an alarm when agreement falls.

    With --once, exit 1 while an alarm is open that nobody has acknowledged.
    """
    from annotate.watching.settings import read_settings

    own = read_settings(settings)
    if json_to is not None and not once:
        raise BadInput(
            "--json belongs to --once: a watch that goes on tells what it does in its log"
        )
    if STANDARD_OUTPUT in (json_to, metrics_to) and log_to is None and not shown:
        raise BadInput("standard output is the log's: name a file with --log")
    engine = study_of(context, db)
    made = _made(engine, source, own, folder, log_to)
    if shown:
        _show(made)
        return
    _run(made, metrics_to, once=once)
    if once:
        figures = figures_of(made)
        write_json(figures, json_to)
        if figures["alarms_open"]:
            raise typer.Exit(FALLEN)


def _made(
    engine: Any, source: str, own: "WatchSettings", folder: Path, log_to: Path | None
) -> "Watch":
    """Return the watch, once everything that it needs is there and allowed."""
    from annotate.watching.cycle import Watch, readers_of
    from annotate.watching.drops import Folder
    from annotate.watching.feeds import Files, feed_of
    from annotate.watching.log import Log
    from annotate.watching.messages import ways_of

    feed = feed_of(source, own.source.query, sys.stdin.buffer)
    at = Path(source) if isinstance(feed, Files) else folder
    if isinstance(feed, Files) and not at.is_dir():
        raise BadInput(f"{at}: no such folder; make it, and let outputs be dropped into it")
    readers_of(engine, own)
    return Watch(
        engine,
        own,
        Folder(at, own.source),
        ways_of(own.alarm),
        _panel(own.jury.panel),
        Log(log_to),
        feed,
    )


def _panel(name: str) -> Any:
    """Return the panel of a name, checked as a run would; None for none."""
    from datetime import UTC, datetime

    from jury.admission import api_keys
    from jury.panel import read_panel, refuse_ended

    if not name:
        return None
    panel = read_panel(name)
    refuse_ended(panel, datetime.now(UTC).date())
    api_keys(panel)
    return panel


def _run(made: "Watch", metrics_to: Path | None, *, once: bool) -> None:
    """Hold the study's watch lock and look, again and again."""
    from annotate.watching.cycle import run
    from annotate.watching.lock import watch_lock

    def after() -> None:
        if metrics_to is not None:
            try:
                text = openmetrics(made.agreement.newest, _gauges(figures_of(made)))
                write_openmetrics(text, metrics_to)
            except (OSError, BadInput):
                made.log.write("step_failed", step="openmetrics", why="OSError")

    with watch_lock(made.engine) as is_held:
        made.folder.prepare()
        made.log.write("watching", source=type(made.feed).__name__.lower(), once=once)
        run(made, is_held, after, once=once)


def figures_of(made: "Watch") -> dict[str, Any]:
    """Return how the watch stands: counts and US dollars, no text and no name of a file."""
    from data.queries.watch import alarms, drawn_without_reader, intakes

    taken = intakes(made.engine)
    waiting = made.asking.pending(made.engine) if made.asking else {}
    open_alarms = [alarm for alarm in alarms(made.engine) if alarm.is_open]
    return {
        "drops": taken.drops,
        "refused": taken.refused,
        "responses": taken.responses,
        "unchanged": taken.unchanged,
        "drawn": taken.drawn,
        "drawn_without_reader": len(drawn_without_reader(made.engine)),
        "verdicts_waiting": {name: len(keys) for name, keys in waiting.items()},
        "jurors_down": sorted(made.asking.down) if made.asking else [],
        "usd_today": round(made.asking.spent(made.engine), 6) if made.asking else 0.0,
        "daily_usd": made.settings.jury.daily_usd,
        "budget_used_up": bool(made.asking and made.asking.used_up),
        "alarms_open": len(open_alarms),
    }


GAUGES = {
    "drops": "Drops taken in.",
    "refused": "Drops refused.",
    "responses": "Outputs taken in.",
    "drawn": "Outputs drawn for clinicians.",
    "drawn_without_reader": "Drawn outputs that no clinician was given.",
    "usd_today": "US dollars that the jury may have cost since midnight UTC.",
    "budget_used_up": "1 if the day's budget has no room for the next call.",
    "alarms_open": "Alarms that nobody has acknowledged.",
}


def _gauges(figures: dict[str, Any]) -> list[Gauge]:
    """Return the figures as families of gauges."""
    families = [
        Gauge(f"medjury_watch_{name}", about, [({"watch": "1"}, float(figures[name]))])
        for name, about in GAUGES.items()
    ]
    waiting: list[tuple[Mapping[str, str], float]] = [
        ({"juror": name}, float(n)) for name, n in figures["verdicts_waiting"].items()
    ]
    return [*families, Gauge("medjury_watch_verdicts_waiting", "Verdicts not given yet.", waiting)]


def _show(made: "Watch") -> None:
    """Print every setting, and who would be told of an alarm."""
    from annotate.watching.cycle import readers_of

    for name, value in made.settings.rows():
        say(f"{name:26} {value}")
    readers = readers_of(made.engine, made.settings)
    named = len(made.settings.sample.clinicians)
    if named:
        say(f"each drawn response is read by {readers} of {named} clinicians")
    else:
        say("sample.clinicians names nobody: what is drawn waits until it does")
    ways = " and ".join(made.ways.names)
    say(f"an alarm is sent by {ways} to {made.settings.alarm.owner}" if ways else NO_MESSAGES)
