"""A study's figures of models for leaderboards: means by clinicians, jury and jurors. Unblinds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from data.errors import NotAllowed
from data.person import is_blind
from data.queries import benchmarks
from data.queries.authors import authors
from data.queries.jury import juror_profiles
from data.queries.study import study_id
from medjury.services.models import BLIND
from medjury.services.scores import all_jurors, scores_of

if TYPE_CHECKING:
    from calibration.models.model_scores import BenchmarkMean

SHAPES = ("helm", "every-eval-ever")


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The rows, and the jurors who sit."""

    rows: "tuple[BenchmarkMean, ...]"
    jurors: tuple[str, ...]
    study: str

    @property
    def simulated(self) -> tuple[str, ...]:
        """Simulated raters whose scores are in a figure."""
        return tuple(sorted({name for one in self.rows for name in one.simulated}))

    @property
    def about(self) -> str:
        """What stands above the tables."""
        made_up = f" SIMULATED raters took part: {', '.join(self.simulated)}." * bool(
            self.simulated
        )
        return (
            f"Mean composite of each model by clinicians and by a jury of {len(self.jurors)}; "
            f"medjury {version('medjury')}, study {self.study[:12]}.{made_up}"
        )


def leaderboard(engine: Engine) -> Leaderboard:
    """Return the figures of a study whose blind is lifted, by all its jurors.

    Raises
    ------
    NotAllowed
        If the blind is not lifted.
    """
    from calibration.models.model_scores import benchmark_means

    if is_blind(engine):
        raise NotAllowed(BLIND)
    scores = scores_of(engine)
    jurors = all_jurors(scores)
    rows = benchmark_means(scores, authors(engine), jurors)
    return Leaderboard(tuple(rows), tuple(jurors), study_id(engine))


def leaderboard_files(
    engine: Engine, found: Leaderboard, shape: str, at: datetime, organization: str
) -> Mapping[str, str]:
    """Return the files of a leaderboard in one of `SHAPES`, by path."""
    from calibration.writers.every_eval_ever import Judge, Source, records
    from calibration.writers.release import release

    if shape == "helm":
        return release(found.rows, f"medjury-{found.study[:12]}", f"{at:%Y-%m-%d}", found.about)
    profiles = juror_profiles(engine, list(found.jurors))
    used = benchmarks(engine)
    source = Source(
        study=found.study,
        version=version("medjury"),
        seconds=int(at.timestamp()),
        organization=organization,
        judges=[
            Judge(name, str(profiles.get(name, {}).get("model") or name), profiles.get(name, {}))
            for name in found.jurors
        ],
        prompts={one.name: one.rubric.prompt for one in used},
        rubrics={one.name: one.rubric.sha256 for one in used},
    )
    return records(found.rows, source)
