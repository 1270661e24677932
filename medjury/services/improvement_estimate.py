"""What an improvement would take, before anything is sent."""

from dataclasses import replace

from sqlalchemy import Engine

from calibration.learning import CHOOSE, TEST, TRAIN
from data.study.standing import benchmarks
from jury.admission import with_counted_prices
from jury.estimate import estimate
from medjury.services.improvement import ImprovementEstimate, ImproveQuestion
from medjury.services.learning_material import material_of, views_on_one_rubric

UNASKED = "never asked"


def estimate_improvement(engine: Engine, question: ImproveQuestion) -> ImprovementEstimate:
    """Return what an improvement takes at most; nothing is sent or stored.

    Raises
    ------
    TooFew, BadInput
        As `improve`.
    """
    question.proposing()
    views = views_on_one_rubric(benchmarks(engine), question.benchmarks)
    material = material_of(engine, views, question.seed)
    split = {part: len(responses) for part, responses in material.parts.items()}
    panel = with_counted_prices(question.panel)
    tasks = [
        replace(view, rubric=view.rubric.model_copy(update={"version": UNASKED})) for view in views
    ]
    stripped = panel.model_copy(
        update={"juror": tuple(juror.model_copy(update={"reads": ""}) for juror in panel.juror)}
    )
    asked = material.keys(TRAIN, CHOOSE)
    rows = estimate(engine, stripped, tasks=tasks, only=asked)
    variants = bool(question.examples) + len(question.settings)
    responses = len(asked) * (1 + question.rounds) + split[CHOOSE] * variants + 2 * split[TEST]
    prices = [row.usd_likely for row in rows]
    known = [price for price in prices if price is not None]
    each = sum(known) / len(asked) if len(known) == len(prices) else None
    return ImprovementEstimate(
        split,
        responses * len(panel.juror),
        question.rounds,
        None if each is None else each * responses,
    )
