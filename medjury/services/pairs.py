"""The study's pairs as the statistics take them, and what they say of a jury."""

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.values import AnalysisOptions, real_first
from data.database import one_moment
from data.study.calls import missing_verdicts
from data.study.frames import preferences_frame
from data.study.pairs import pairs_frame
from data.study.standing import benchmarks, simulated_raters

if TYPE_CHECKING:
    import pandas as pd

    from calibration.pairs import PairScores


def pair_scores(engine: Engine) -> "PairScores | None":
    """Return the study's preferences, all of one moment; None where no clinician has judged a pair."""
    with one_moment(engine):
        pairs = pairs_frame(engine)
        return None if pairs.empty else _scores(engine, pairs)


def _scores(engine: Engine, pairs: "pd.DataFrame") -> "PairScores | None":
    from calibration.pairs import PairScores

    own = preferences_frame(engine)
    if not (own["kind"] == "clinician").any():
        return None
    names = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion"]
    own = own.astype(dict.fromkeys(names, "str")).rename(
        columns={"response_id": "pair_id", "score": "preference"}
    )
    own = own.assign(pass_=own["pass_"] + own["replicate"]).drop(columns="replicate")
    rubrics = {one.name: one.rubric.criteria for one in benchmarks(engine) if one.rubric.compares}
    jurors = {*own.loc[own["kind"] == "juror", "rater"]}
    simulated = simulated_raters(engine)
    asked = {one.juror for one in missing_verdicts(engine) if one.benchmark in rubrics}
    return PairScores(own, pairs, simulated, frozenset(asked - jurors - simulated), rubrics)


def seated(scores: "PairScores", options: AnalysisOptions) -> AnalysisOptions:
    """Return the options with who sits where none are named: real jurors never with simulated ones."""
    if options.jurors:
        return options
    everybody = [name for name in scores.raters("juror") if name not in scores.silent]
    return replace(options, jurors=tuple(real_first(everybody, scores.simulated)) or None)


def beside(scores: "PairScores", options: AnalysisOptions) -> AnalysisOptions | None:
    """Return how pairs are analysed beside scores; None where one benchmark, criterion or other jury is asked for."""
    known = scores.raters("juror")
    if options.benchmark or options.criterion or {*(options.jurors or ())} - {*known}:
        return None
    without = tuple(name for name in options.without if name in scores.raters("clinician"))
    needed = options.min_jurors if options.jurors else None
    return seated(scores, replace(options, without=without, min_jurors=needed))


def margin_unit(engine: Engine) -> str:
    """Return what a study's margin is in: ICC, or the share of pairs where it has nothing but pairs."""
    rated = [one.rubric.compares for one in benchmarks(engine) if one.responses]
    return "share of pairs" if rated and all(rated) else "ICC"


def pairs_alone(engine: Engine, options: AnalysisOptions) -> "PairScores | None":
    """Return the preferences where a question is about pairs alone; else None."""
    scores = pair_scores(engine)
    return scores if scores is not None and is_of_pairs(engine, scores, options) else None


def is_of_pairs(engine: Engine, scores: "PairScores", options: AnalysisOptions) -> bool:
    """Tell whether a question is about pairs alone: the study has nothing else, or it names theirs."""
    rated = [one for one in benchmarks(engine) if not one.rubric.compares and one.responses]
    of_pairs = {name for own in scores.criteria.values() for name in own}
    others = {name for one in rated for name in one.rubric.criteria}
    named = options.benchmark in scores.benchmarks
    return named or not rated or options.criterion in of_pairs - others
