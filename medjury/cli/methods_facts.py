"""What a methods section and a checklist are filled from: counts, figures, and what was missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from data.queries import benchmarks
from data.queries.attempts import by_juror, juror_profiles, missing_verdicts
from data.queries.export_methods import Facts, facts
from data.queries.record import locked_since
from data.queries.settings import settings
from data.queries.study import BenchmarkView
from medjury.cli.output import progress
from medjury.services.ledger import Looked
from medjury.services.record import steered
from medjury.services.scores import all_jurors, scores_of

if TYPE_CHECKING:
    from calibration.scores import Scores

REPS, SEED = 2000, 0


@dataclass(frozen=True, eq=False)
class Known:
    """All that the study knows of itself.

    Attributes
    ----------
    rows
        Of the agreement table, as `medjury calibrate --json` has them.
    readings, incomplete
        Clinicians' readings, and those of them that lack a criterion.
    unread
        Responses that no clinician has rated.
    failures
        Juror -> how calls ended whose verdict is missing -> number.
    """

    facts: Facts
    benchmarks: Sequence[BenchmarkView]
    rows: Sequence[Mapping[str, Any]]
    jury: Sequence[str]
    profiles: Mapping[str, Mapping[str, Any]]
    readings: int
    incomplete: int
    unread: int
    failures: Mapping[str, Mapping[str, int]]
    reference: str
    steered: Sequence[str]
    locked: str | None
    reps: int

    @property
    def simulated(self) -> tuple[str, ...]:
        """Return all raters behind whom nobody stands."""
        return tuple(name for kind in self.facts.raters.values() for name in kind.simulated)


def known_of(engine: Engine, reps: int = REPS) -> Known:
    """Return what the study knows; the jury that is looked at is noted in the ledger."""
    scores = scores_of(engine)
    jury = all_jurors(scores)
    read, incomplete = _readings(scores)
    rated = set(scores.ratings.loc[scores.ratings["kind"] == "clinician", "response_id"])
    return Known(
        facts=facts(engine),
        benchmarks=[one for one in benchmarks(engine) if one.name in scores.benchmarks],
        rows=_rows(engine, scores, jury, reps),
        jury=jury,
        profiles=juror_profiles(engine, jury),
        readings=read,
        incomplete=incomplete,
        unread=len(set(scores.responses["response_id"]) - rated),
        failures=by_juror(missing_verdicts(engine)),
        reference=settings(engine).reference,
        steered=steered(engine),
        locked=locked_since(engine),
        reps=reps,
    )


def _rows(engine: Engine, scores: "Scores", jury: list[str], reps: int) -> list[dict[str, Any]]:
    """Return the rows of the agreement table by the default method."""
    from threadpoolctl import threadpool_limits

    from calibration.table import agreement_table, to_json

    with threadpool_limits(1), progress("resampling", 1.0) as at:
        table = agreement_table(scores, jurors=jury or None, reps=reps, seed=SEED, tick=at)
    body: Mapping[str, Any] = to_json(table, method="paper", reps=reps, seed=SEED)
    rows: list[dict[str, Any]] = body["rows"]
    if jury:
        Looked(jury, len(jury), "", "paper", "").remember(engine, rows, [], scores.ratings)
    return rows


def _readings(scores: "Scores") -> tuple[int, int]:
    """Return how many readings clinicians gave, and how many of them lack a criterion."""
    own = scores.ratings[scores.ratings["kind"] == "clinician"]
    each = own.groupby(["benchmark", "response_id", "rater", "pass_"])["criterion"].nunique()
    needed = [len(scores.rubrics[str(name)].criteria) for name in each.index.get_level_values(0)]
    return len(each), int((each.to_numpy() < needed).sum())
