"""The study's ratings as the statistics take them, and who sits on a jury."""

from typing import TYPE_CHECKING

from sqlalchemy import Engine

from data.errors import Unrated
from data.queries import benchmarks, simulated_raters
from data.queries.frames import ratings_frame, responses_frame, specialties, subgroups
from data.queries.jury import missing_verdicts

if TYPE_CHECKING:
    from calibration.scores import Scores


def scores_of(engine: Engine) -> "Scores":
    """Return the study's ratings as the statistics take them."""
    from calibration.scores import RubricShape, Scores

    used = {one.name: one.rubric for one in benchmarks(engine)}
    shapes = {
        name: RubricShape(one.criteria, one.scale.min, one.scale.max, one.critical)
        for name, one in used.items()
    }
    ratings, responses = ratings_frame(engine), responses_frame(engine)
    if not (ratings["kind"] == "clinician").any():
        raise Unrated(
            "no clinician has rated anything in this study yet: `medjury assign` and `medjury serve` "
            "let them rate, `medjury ratings FILE` brings in ratings made elsewhere"
        )
    return Scores(
        ratings,
        responses,
        shapes,
        simulated_raters(engine),
        groups=subgroups(engine),
        specialties=specialties(engine),
    )


def all_jurors(scores: "Scores") -> list[str]:
    """Return the jurors who sit where none are named: real ones never sit with simulated ones."""
    everybody = scores.raters("juror")
    real = [name for name in everybody if name not in scores.simulated]
    return real or list(everybody)


def silent_jurors(engine: Engine, scores: "Scores") -> list[str]:
    """Return the jurors who were asked and have no rating at all, simulated ones left out."""
    asked = {one.juror for one in missing_verdicts(engine)}
    return sorted(asked - {*scores.raters("juror"), *scores.simulated})


def panel_families(panel: str | None) -> dict[str, str]:
    """Return the model families that a panel gives its jurors; none without a panel."""
    if panel is None:
        return {}
    from jury.panel import read_panel

    return {one.name: one.family for one in read_panel(panel).juror}
