"""What each scorer gave each model on each benchmark: the figures that leaderboards hold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.clustered_mean import clustered_mean
from calibration.composite import composites
from calibration.models.scores import check_names
from calibration.scores import Scores

CLINICIANS, JURY, JUROR = "clinicians", "jury", "juror:"


@dataclass(frozen=True, slots=True)
class BenchmarkMean:
    """A model's mean on one benchmark by one scorer, in points of the rubric's scale.

    Attributes
    ----------
    scorer : str
        "clinicians", "jury", or "juror:NAME".
    mean, error, low, high : float
        Mean of composites over responses, its standard error, and the 95 % interval by t, both
        with instances as clusters; NaN without a response, and the latter three with fewer than
        two instances or without any variance between them.
    n_responses, n_missing : int
        The model's responses with a score by this scorer, and those without.
    n_instances : int
        Instances with such a response.
    scale_low, scale_high : int
    simulated : tuple of str
        Simulated raters whose scores are in it.
    """

    model: str
    benchmark: str
    scorer: str
    mean: float
    error: float
    low: float
    high: float
    n_responses: int
    n_missing: int
    n_instances: int
    scale_low: int
    scale_high: int
    simulated: tuple[str, ...]


def benchmark_means(
    scores: Scores, authors: Mapping[str, str], jurors: Sequence[str]
) -> list[BenchmarkMean]:
    """Return the means of all models by clinicians, by the jury, and by each of its jurors.

    A jury has a score only where all its jurors have a composite. Models in alphabetical order.

    Parameters
    ----------
    scores : Scores
    authors : response_id -> model, of every response
    jurors : the jury; empty for clinicians alone

    Raises
    ------
    Unknown
        If a juror is not in the study.
    """
    check_names(scores, jurors, None)
    given = composites(scores).values
    responses = scores.responses.assign(model=scores.responses["response_id"].map(dict(authors)))
    columns = dict(_columns(given, jurors))
    return [
        _mean(scores, own, (str(model), str(benchmark), scorer), points, raters)
        for (benchmark, model), own in responses.groupby(["benchmark", "model"], sort=True)
        for scorer, (points, raters) in columns.items()
    ]


def _columns(
    given: pd.DataFrame, jurors: Sequence[str]
) -> Iterator[tuple[str, tuple[pd.Series, frozenset[str]]]]:
    """Yield each scorer's points by response, and whose scores are in them."""
    doctors = given[given["kind"] == "clinician"]
    if len(doctors):
        own = doctors.groupby("response_id")["composite"].mean()
        yield CLINICIANS, (own, frozenset(doctors["rater"]))
    seated = given[(given["kind"] == "juror") & given["rater"].isin(list(jurors))]
    if jurors:
        found = seated.groupby("response_id")["composite"].agg(["mean", "count"])
        whole = found.loc[found["count"] == len(set(jurors)), "mean"]
        yield JURY, (whole, frozenset(jurors))
    for name in jurors:
        own = seated[seated["rater"] == name].set_index("response_id")["composite"]
        yield f"{JUROR}{name}", (own, frozenset([name]))


def _mean(
    scores: Scores,
    own: pd.DataFrame,
    about: tuple[str, str, str],
    points: pd.Series,
    raters: frozenset[str],
) -> BenchmarkMean:
    """Return the mean of a model's responses to one benchmark by one scorer."""
    model, benchmark, scorer = about
    values = points.reindex(own["response_id"]).to_numpy(dtype=np.float64)
    _, clusters = np.unique(own["instance_id"].to_numpy(dtype=str), return_inverse=True)
    found = clustered_mean(values, clusters.astype(np.int64), int(clusters.max()) + 1)
    ends, shape = found.interval(), scores.rubrics[benchmark]
    rated = int((~np.isnan(values)).sum())
    return BenchmarkMean(
        model=model,
        benchmark=benchmark,
        scorer=scorer,
        mean=found.value,
        error=found.error,
        low=ends.low,
        high=ends.high,
        n_responses=rated,
        n_missing=len(values) - rated,
        n_instances=found.instances,
        scale_low=shape.low,
        scale_high=shape.high,
        simulated=tuple(sorted(raters & scores.simulated)),
    )
