"""What is known of a panel before it rates: cost, how its jurors answer, and when their models end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from sqlalchemy import Engine

from calibration.notes import Note, Noted, counted, note, noted
from data.errors import BadInput
from data.schema import now
from data.study.authors import OwnFamily, own_family
from data.study.costs import study_spending
from data.study.runs import keep_probes, newest_probes
from jury.admission import with_counted_prices
from jury.cost import JurorEstimate, PaperBound, rates, upper_bound
from jury.estimate import estimate, seconds_of_run
from jury.exports.bundle import digest
from jury.fitness import INJECTIONS, pairs_for
from jury.panel import NOTICE_DAYS, Juror, Panel, read_panel, shipped
from jury.probe import ProbeRow, probe
from jury.references import reference_windows
from jury.window import WINDOW_MARGIN, WindowSource, WindowUse

MODEL_ENDED = (
    "model_ended",
    "juror {juror} ({model}) ended on {day}: no new response can be scored by it",
)
MODEL_ENDS = (
    "model_ends",
    ("juror {juror} ({model}) ends on {day}: validate its successor while both can be asked"),
)


@dataclass(frozen=True, slots=True)
class RunScope:
    """Who is to rate, how often, and the responses of which benchmarks; of all where none is named."""

    panel: Panel
    replicates: int = 1
    benchmarks: tuple[str, ...] = ()
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What a run would take, and whom it would meet.

    Attributes
    ----------
    panel
        Its name.
    jurors
        A row a juror, in the panel's order.
    families
        Juror -> family, of real jurors: a simulated one is of none.
    own
        How many responses were written by a juror's own family; no juror is told, and nobody
        while the study is blind.
    bound
        What the MedHELM paper's formula says that it costs at most.
    seconds
        How long it takes; None where a juror has not been asked in this study yet.
    """

    panel: str
    jurors: tuple[JurorEstimate, ...]
    families: Mapping[str, str]
    own: OwnFamily
    bound: PaperBound
    seconds: float | None


def run_estimate(engine: Engine, scope: RunScope) -> RunEstimate:
    """Return what a run of a panel would take; nothing is sent or stored."""
    panel, benchmarks = with_counted_prices(scope.panel), scope.benchmarks or None
    rows = estimate(
        engine,
        panel,
        replicates=scope.replicates,
        benchmarks=benchmarks,
        concurrency=scope.concurrency,
    )
    families = {juror.name: juror.family for juror in panel.juror if not juror.simulated}
    own = own_family(engine, families, benchmarks)
    seconds = seconds_of_run(panel, rows, scope.concurrency)
    bound = upper_bound(rows, [rates(juror, now()) for juror in panel.juror])
    return RunEstimate(panel.name, tuple(rows), families, own, bound, seconds)


def refuse_beyond_budget(engine: Engine, expected: RunEstimate, max_usd: float | None) -> None:
    """Raise BadInput if a run is likely to cost more than the study's budget leaves.

    A run with a cap of its own within what is left may go: it asks as far as that goes.
    """
    spent = study_spending(engine)
    if spent.left is None or spent.budget is None:
        return
    likely = sum(juror.usd_likely or 0.0 for juror in expected.jurors)
    bounded = max_usd is not None and 0 < max_usd <= spent.left
    if likely <= max(0.0, spent.left) or bounded:
        return
    left = max(0.0, spent.left)
    raise BadInput(
        f"the study's budget is ${spent.budget:.2f}: ${spent.usd:.4f} is spent over all runs, "
        f"${left:.4f} is left, and this run is likely to cost ${likely:.4f}; raise it with "
        "`medjury study settings budget USD`"
        + (f", or give --max-usd {left:.4f} or less to go as far as it goes" if left else "")
    )


@dataclass(frozen=True, slots=True)
class TooLong:
    """Responses, or references, that do not fit a juror's context window, and the longest of them.

    `responses` is how many they are, whatever `what` says that they are; `tokens` are those of the longest prompt, estimated; `answer` those kept for what the juror
    writes.
    """

    juror: str
    responses: int
    window: int
    source: WindowSource
    longest: str
    tokens: int
    answer: int
    what: Literal["response", "reference"] = "response"


def too_long_for(expected: RunEstimate) -> list[TooLong]:
    """Return the jurors whose context windows cannot hold what they are to read, in panel order."""
    return _too_long({row.juror: row.window for row in expected.jurors}, "response")


def _too_long(
    uses: Mapping[str, WindowUse], what: Literal["response", "reference"]
) -> list[TooLong]:
    return [
        TooLong(
            *(juror, use.too_long, use.tokens, use.source),
            *(use.longest_response, use.longest_tokens, use.max_tokens, what),
        )
        for juror, use in uses.items()
        if use.too_long and use.tokens is not None
    ]


def too_long_words(too_long: TooLong) -> str:
    """Return what does not fit a juror's context window, and how that was reckoned."""
    do = "does" if too_long.responses == 1 else "do"
    by = "by the panel" if too_long.source == WindowSource.PANEL else "by the price list"
    return (
        f"juror {too_long.juror}: {counted(too_long.responses, too_long.what)} {do} not fit its "
        f"context window of {too_long.window:,} tokens "
        f"({by}). The longest, {too_long.longest}, takes about {too_long.tokens:,}; tokens are estimated, "
        f"so {WINDOW_MARGIN - 1:.0%} is added, and {too_long.answer:,} are kept for the answer"
    )


def refuse_too_long(expected: RunEstimate) -> None:
    """Raise BadInput, once for all jurors, if a response does not fit a juror's context window."""
    if too_long := too_long_for(expected):
        raise BadInput(
            "; ".join(map(too_long_words, too_long))
            + ". Take jurors with larger windows; set context_window in the panel where the list is wrong; "
            "or give --leave-out-too-long, which stores a failure for each such response, at no cost, "
            "and rates the others"
        )


def refuse_long_references(
    engine: Engine, panel: Panel, benchmarks: Sequence[str] | None = None
) -> None:
    """Raise BadInput, once for all jurors, if a reference's check does not fit a context window."""
    if too_long := _too_long(reference_windows(engine, panel, benchmarks), "reference"):
        raise BadInput(
            "; ".join(map(too_long_words, too_long))
            + ". Take jurors with larger windows; set context_window in the panel where the list is "
            "wrong; or give --benchmark for the benchmarks whose texts are shorter"
        )


def panel_probe(panel: Panel) -> tuple[ProbeRow, ...]:
    """Return how each juror answers, bears hidden instructions, and tells good from dangerous.

    Nothing of any study is sent.
    """
    return tuple(probe(panel, injections=INJECTIONS, pairs=pairs_for(panel)))


def keep_fitness(engine: Engine, actor: str, panel: Panel, rows: Sequence[ProbeRow]) -> None:
    """Put into a study's record which jurors a probe found fit; those not judged are left out."""
    keep_probes(
        engine,
        actor,
        [
            {"juror": row.juror, "profile": settings_sha256(juror), "fit": row.fit}
            | {"rubric": row.pairs.rubric, "ordered": row.pairs.ordered}
            | {"needed": row.pairs.needed, "of": len(row.pairs.outcomes)}
            for juror, row in zip(panel.juror, rows, strict=True)
            if row.pairs is not None and not row.pairs.simulated
        ],
    )


def settings_sha256(juror: Juror) -> str:
    """Return the SHA-256 of what a probe depends on of a juror: not the rubric that it reads."""
    profile = {name: value for name, value in juror.profile().items() if name != "reads"}
    return digest(profile)


def unprobed(engine: Engine, panel: Panel) -> list[str]:
    """Return which jurors of a panel no probe has found fit, in words.

    Raises
    ------
    BadInput
        If the newest probe found a juror not fit.
    """
    probes, told = newest_probes(engine), []
    for juror in panel.juror:
        probe = probes.get(settings_sha256(juror))
        if probe is not None and probe["fit"] is False:
            raise BadInput(
                f"panel {panel.name}: juror {juror.name} was found not fit by the probe of "
                f"{probe['on']}: on rubric {probe['rubric']} it ordered {probe['ordered']} of "
                f"{probe['of']} pairs of a good and a dangerous answer, and {probe['needed']} are "
                "needed. Take it out of the panel; or change its settings and try them with "
                "`medjury jury probe PANEL`"
            )
        if not juror.simulated and (probe is None or probe["fit"] is None):
            how = "was not probed" if probe is None else "is not known to be fit"
            told.append(f"juror {juror.name} {how}: `medjury jury probe PANEL` tells if it is fit")
    return told


@dataclass(frozen=True)
class JurorEnd(Noted):
    """When the model of a juror ends, by what its vendor has announced; None: not known.

    `days_left` below 0: it has ended.
    """

    juror: str
    model: str | None
    ends: date | None
    days_left: int | None


def juror_ends(
    jury: Sequence[str], profiles: Mapping[str, Mapping[str, Any]], panel: str | None, today: date
) -> list[JurorEnd]:
    """Return when the model of each juror ends, with a note where that is near.

    Parameters
    ----------
    jury
        Handles.
    profiles
        Handle -> settings it was run with; empty for one whose ratings were brought in.
    panel
        A panel of the user's; its jurors are known by their names, those of shipped panels by
        model and host. None and "not known" where neither has the juror, or announces an end.
    today
        In UTC.
    """
    own = {juror.name: juror for juror in read_panel(panel).juror} if panel else {}
    announced = {
        (juror.model, juror.host): juror
        for name in shipped()
        for juror in read_panel(name).juror
        if juror.end()
    }
    return [_end(name, own.get(name), profiles.get(name, {}), announced, today) for name in jury]


def _end(
    name: str,
    own: Juror | None,
    profile: Mapping[str, Any],
    announced: Mapping[tuple[Any, Any], Juror],
    today: date,
) -> JurorEnd:
    key = (profile.get("model"), profile.get("host"))
    juror = own if own and own.end() else announced.get(key)
    day = juror.end() if juror else None
    model = profile.get("model") or (own.model if own else None)
    left = (day - today).days if day else None
    return JurorEnd(name, model, day, left, notes=noted(_notice(name, model, day, left)))


def _notice(name: str, model: str | None, day: date | None, left: int | None) -> Note | None:
    """Say of a model that it has ended, or will within 90 days."""
    if left is None or left > NOTICE_DAYS:
        return None
    code = MODEL_ENDS if left > 0 else MODEL_ENDED
    return note(*code, juror=name, model=model, day=day)
