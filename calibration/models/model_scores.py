"""Scores of each model's responses by clinicians and jury, and their means by benchmark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from calibration.clustered_intervals import clustered_mean
from calibration.composite import composites, required_criteria
from calibration.models.win_rate import unit_scale
from calibration.scores import Array, Scores
from data.errors import BadInput, TooFew, Unknown


@dataclass(frozen=True)
class Layout:
    """Which models and benchmarks there are, and how many instances each benchmark has."""

    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """Every response of the study with its model and what it was given.

    Attributes
    ----------
    frame : DataFrame
        response_id, benchmark, instance (numbered from 0 within its benchmark), model
        (its number in `layout.models`), clinicians and jury: means of composites from 0,
        the worst, to 1, the best; NaN where there is none.
    layout : Layout
    simulated : column -> simulated raters whose scores are in it
    left_out : benchmarks whose rubric lacks the criterion
    """

    frame: pd.DataFrame
    layout: Layout
    simulated: Mapping[str, frozenset[str]]
    left_out: tuple[str, ...] = ()

    def of(self, benchmark: str) -> pd.DataFrame:
        """Return the responses to one benchmark."""
        return self.frame[self.frame["benchmark"] == benchmark]

    def by_instance(self, benchmark: str, column: str) -> Array:
        """Return the mean over a model's responses to an instance, shape (models, instances)."""
        own, place = self.of(benchmark), self.layout.benchmarks.index(benchmark)
        means = own.dropna(subset=[column]).groupby(["model", "instance"])[column].mean()
        found = np.full((len(self.layout.models), self.layout.sizes[place]), np.nan)
        where = np.array(list(means.index), dtype=np.int64).reshape(-1, 2)
        found[where[:, 0], where[:, 1]] = means.to_numpy()
        return found


def model_table(
    scores: Scores,
    authors: Mapping[str, str],
    jurors: Sequence[str],
    criterion: str | None = None,
) -> Table:
    """Return every response with its model, the clinicians' mean and the jury's.

    Raw composites, no z: it would take away what is asked for. The jury has a score only
    where all its jurors have a composite. Both are put on 0 to 1 (`unit_scale`).

    Parameters
    ----------
    scores : Scores
    authors : response_id -> model, of every response
    jurors : the jury; empty for none
    criterion : instead of the composite; benchmarks without it are left out

    Raises
    ------
    Unknown
        If a juror or the criterion is not in the study.
    BadInput
        If a response has no author.
    TooFew
        If the study has no responses.
    """
    check_names(scores, jurors, criterion)
    names = required_criteria(scores.rubrics, criterion)
    responses = scores.responses[scores.responses["benchmark"].isin(list(names))]
    if not len(responses):
        raise TooFew("the study has no responses to compare models by")
    if lost := [name for name in responses["response_id"] if name not in authors]:
        raise BadInput(f"{len(lost)} responses, {lost[0]} first, have no author in the study")
    values = composites(scores, criterion).values
    given = values[values["kind"].isin(["clinician", "juror"])]
    frame = responses.assign(
        clinicians=_scaled(scores, responses, _clinicians(given)),
        jury=_scaled(scores, responses, _jury(given, jurors)),
        author=responses["response_id"].map(dict(authors)),
    )
    doctors = frozenset(given.loc[given["kind"] == "clinician", "rater"])
    of = {"clinicians": doctors, "jury": frozenset(jurors)}
    table = _numbered(frame, {name: who & scores.simulated for name, who in of.items()})
    return replace(table, left_out=tuple(one for one in scores.benchmarks if one not in names))


def check_names(scores: Scores, jurors: Sequence[str], criterion: str | None) -> None:
    """Raise Unknown if a juror or the criterion is not in the study."""
    known = scores.raters("juror")
    if lost := [name for name in jurors if name not in known]:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise Unknown(f"no ratings by a juror {', '.join(lost)} in this study: {has}")
    criteria = dict.fromkeys(name for one in scores.rubrics.values() for name in one.criteria)
    if criterion is not None and criterion not in criteria:
        raise Unknown(f"no rubric has the criterion {criterion}: they have {', '.join(criteria)}")


def _clinicians(given: pd.DataFrame) -> pd.Series:
    own = given[given["kind"] == "clinician"]
    return own.groupby("response_id")["composite"].mean()


def _jury(given: pd.DataFrame, jurors: Sequence[str]) -> pd.Series:
    own = given[(given["kind"] == "juror") & given["rater"].isin(list(jurors))]
    found = own.groupby("response_id")["composite"].agg(["mean", "count"])
    return found.loc[found["count"] == len(set(jurors)), "mean"]


def _scaled(scores: Scores, responses: pd.DataFrame, points: pd.Series) -> Array:
    """Return scores of the responses in their order, from 0 to 1; NaN where there is none."""
    shapes = [scores.rubrics[name] for name in responses["benchmark"]]
    low = np.array([one.low for one in shapes], dtype=np.float64)
    high = np.array([one.high for one in shapes], dtype=np.float64)
    own = points.reindex(responses["response_id"]).to_numpy(dtype=np.float64)
    return unit_scale(own, low, high)


def _numbered(frame: pd.DataFrame, simulated: Mapping[str, frozenset[str]]) -> Table:
    """Return the table with models and instances by number."""
    benchmarks = tuple(sorted(frame["benchmark"].unique()))
    models, model = np.unique(frame["author"].to_numpy(dtype=str), return_inverse=True)
    codes = [
        frame.loc[frame["benchmark"] == name, "instance_id"].astype("category").cat.codes
        for name in benchmarks
    ]
    sizes = tuple(int(own.max()) + 1 for own in codes)
    numbered = frame.assign(model=model, instance=pd.concat(codes).astype(np.int64))
    columns = ["response_id", "benchmark", "instance", "model", "clinicians", "jury"]
    layout = Layout(tuple(map(str, models)), benchmarks, sizes)
    return Table(numbered[columns].reset_index(drop=True), layout, simulated)


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
