"""The study's ratings as the statistics take them, who sits on a jury, and which instances count."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.notes import counted
from data.database import one_moment
from data.errors import BadInput, Unknown, Unrated
from data.study.calls import missing_verdicts
from data.study.frames import (
    assigned_benchmarks,
    ratings_frame,
    responses_frame,
    specialties,
    subgroups,
)
from data.study.references import References, references
from data.study.standing import benchmarks, simulated_raters

if TYPE_CHECKING:
    import pandas as pd

    from calibration.scores import Scores
    from medjury.services.calibration import Kept


REFERENCES = ("all", "sound")
BY_KEY = "score"  # criterion on which answers are scored by their key


def scores_of(engine: Engine) -> "Scores":
    """Return the study's ratings as the statistics take them, all of one moment.

    Without benchmarks whose answers are scored by a key and by nobody else: no clinician or juror
    has read one of them, or is to read it. Raises Unrated where no clinician has rated anything.
    """
    with one_moment(engine):
        return _scores(engine)


def _scores(engine: Engine) -> "Scores":
    from calibration.scores import RubricShape, Scores

    used = {benchmark.name: benchmark.rubric for benchmark in benchmarks(engine)}
    shapes = {
        name: RubricShape(rubric.criteria, *rubric.composite_ends, rubric.critical, rubric.own_ends)
        for name, rubric in used.items()
    }
    every, responses = ratings_frame(engine), responses_frame(engine)
    is_score = every["answer"] == ""
    ratings = every[is_score].drop(columns="answer").reset_index(drop=True)
    instead = every[~is_score].drop(columns="score").reset_index(drop=True)
    if not (ratings["kind"] == "clinician").any():
        if pair_benchmarks := [name for name, one in used.items() if one.compares]:
            raise Unrated(
                "no clinician has rated a response by itself in this study: what its pairs "
                f"({', '.join(pair_benchmarks)}) say stands in agreement, ranking of juries, and models"
            )
        raise Unrated(
            "no clinician has rated anything in this study yet: let them rate (`medjury rate assign`; in the "
            "app: Set up, Clinicians) or import ratings made elsewhere (`medjury rate ratings FILE`; Set up, Notes)"
        )
    if apart := _keyed(engine, ratings):
        ratings, responses, instead = (
            table[~table["benchmark"].isin(apart)].reset_index(drop=True)
            for table in (ratings, responses, instead)
        )
    return Scores(
        ratings,
        responses,
        shapes,
        simulated_raters(engine),
        groups=subgroups(engine),
        specialties=specialties(engine),
        instead=instead,
    )


def _keyed(engine: Engine, ratings: "pd.DataFrame") -> list[str]:
    """Return the benchmarks whose answers a metric scored by their key, and that nobody reads."""
    is_metric = ratings["kind"] == "metric"
    by_key = ratings.loc[is_metric & (ratings["criterion"] == BY_KEY), "benchmark"]
    apart = {*by_key.unique()} - {*ratings.loc[~is_metric, "benchmark"].unique()}
    return sorted(apart - assigned_benchmarks(engine)) if apart else []


def silent_jurors(engine: Engine, scores: "Scores") -> list[str]:
    """Return the jurors who were asked and have no rating at all, simulated ones left out."""
    jurors_asked = {verdict.juror for verdict in missing_verdicts(engine)}
    return sorted(jurors_asked - {*scores.raters("juror"), *scores.simulated})


def jury_named(scores: "Scores", jurors: Sequence[str] | None, silent: Sequence[str]) -> list[str]:
    """Return the jury, by default all who have rated; refuse a juror whom the study does not know."""
    jury = jurors or scores.all_jurors()
    if not jury:
        raise BadInput(
            "no juror has rated anything in this study yet: run a jury (`medjury jury run PANEL`; in the app: "
            "Jury) or import ratings made elsewhere (`medjury rate ratings FILE`; Set up, Notes)"
        )
    jurors_known = {*scores.raters("juror"), *silent}
    if lost := [name for name in jury if name not in jurors_known]:
        has = f"it has {', '.join(sorted(jurors_known))}" if jurors_known else "it has none"
        raise Unknown(f"no ratings by a juror {', '.join(lost)} in this study: {has}")
    return list(dict.fromkeys(jury))


def panel_families(panel: str | None) -> dict[str, str]:
    """Return the model families that a panel gives its jurors; none without a panel."""
    if panel is None:
        return {}
    from jury.panel import read_panel

    asked = read_panel(panel)
    return {juror.name: juror.family for juror in asked.juror}


def sound_only(engine: Engine, scores: "Scores") -> "Kept":
    """Leave out the instances whose references jurors have marked.

    Raises
    ------
    BadInput
        If no juror has answered about any reference, or nothing would be left.
    """
    from calibration.scope import without_instances
    from medjury.services.calibration import Kept

    checked = references(engine)
    if not checked.jurors:
        raise BadInput(
            "--use sound: no reference of this study has been checked yet; "
            "`medjury jury references PANEL` asks jurors about them"
        )
    left = without_instances(scores, checked.marked)
    if left.responses.empty:
        raise BadInput("--use sound: every instance is marked, so nothing would be left")
    responses = len(scores.responses) - len(left.responses)
    counts = {
        "kept": "sound",
        "responses_left_out": responses,
        "instances_left_out": len(checked.marked),
        "instances_not_known": len(checked.not_known),
        "instances_unchecked": len(checked.unchecked),
        "checked_by": list(checked.jurors),
        "simulated": checked.simulated,
    }
    return Kept(left, _told(checked, responses), counts)


def _told(checked: References, responses: int) -> tuple[str, ...]:
    """Return what a reader has to know of what was left out."""
    jurors = f"{'simulated ' if checked.simulated else ''}jurors {', '.join(checked.jurors)}"
    return (
        f"references sound: {counted(responses, 'response')} of "
        f"{counted(len(checked.marked), 'instance')} left out, whose references state facts that the "
        f"source does not hold (say {jurors})",
        f"kept though not known: {counted(len(checked.not_known), 'instance')}; kept without a "
        f"reference or a context to check: {counted(len(checked.unchecked), 'instance')}",
    )
