"""The study's ratings as the statistics take them, and whom a command means by its jury."""

from typing import TYPE_CHECKING

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.queries import benchmarks, simulated_raters
from data.queries.attempts import missing_verdicts
from data.queries.frames import ratings_frame, responses_frame

if TYPE_CHECKING:
    from calibration.scores import Scores


def scores_of(engine: Engine) -> "Scores":
    """Return the study's ratings as the statistics take them."""
    from calibration.scores import RubricShape, Scores

    shapes = {
        one.name: RubricShape(one.rubric.criteria, one.rubric.scale.min, one.rubric.scale.max)
        for one in benchmarks(engine)
    }
    ratings, responses = ratings_frame(engine), responses_frame(engine)
    if not (ratings["kind"] == "clinician").any():
        raise BadInput(
            "no clinician has rated anything in this study yet: `medjury assign` and `medjury serve` "
            "let them rate, `medjury ratings FILE` brings in ratings made elsewhere"
        )
    return Scores(ratings, responses, shapes, simulated_raters(engine))


def all_jurors(scores: "Scores") -> list[str]:
    """Return the jurors who sit where none are named: real ones never sit with simulated ones."""
    everybody = scores.raters("juror")
    real = [name for name in everybody if name not in scores.simulated]
    return real or list(everybody)


def silent_jurors(engine: Engine, scores: "Scores") -> list[str]:
    """Return the jurors who were asked and have no rating at all, simulated ones left out."""
    asked = {one.juror for one in missing_verdicts(engine)}
    return sorted(asked - {*scores.raters("juror"), *scores.simulated})


def named_jurors(panel: str | None, jurors: str | None) -> list[str] | None:
    """Return the jurors the user names, one way or the other; None means all."""
    if panel and jurors is not None:
        raise typer.BadParameter("give --panel or --jurors, not both")
    if panel:
        from jury.panel import read_panel

        return [one.name for one in read_panel(panel).juror]
    return None if jurors is None else _each_once(jurors)


def _each_once(jurors: str) -> list[str]:
    """Return the names between the commas; refuse an empty one, and one that comes again."""
    names = [name.strip() for name in jurors.split(",")]
    again = dict.fromkeys(name for name in names if name and names.count(name) > 1)
    wrong = [f"{name} more than once" for name in again]
    wrong += ["an empty name"] if "" in names else []
    if wrong:
        raise typer.BadParameter(
            f"{jurors!r} has {' and '.join(wrong)}: name every juror once", param_hint="--jurors"
        )
    return names


def panel_families(panel: str | None) -> dict[str, str]:
    """Return the model families that a panel gives its jurors; none without a panel."""
    if panel is None:
        return {}
    from jury.panel import read_panel

    return {one.name: one.family for one in read_panel(panel).juror}
