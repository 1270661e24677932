"""Which responses clinicians rate next, and whether they may stop."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine

from calibration.json_values import json_value
from calibration.scope import AgreementRow
from calibration.scores import Scores
from calibration.stopping import judge, statistic_of
from calibration.values import COMBINED, NORMAL_95, AnalysisOptions
from calibration.ward_values import Look, PastLook, Stopping
from data.errors import BadInput, TooFew
from data.person import Person, only
from data.schema import Role
from data.store.stopping import record_look
from medjury.services.calibrate import CalibrationQuestion, calibrate
from medjury.services.record import protocol_of

LEAST = 20  # instances below which the error of a figure is not known well enough to stop by
NON_INFERIOR, ICC = "non_inferior", "icc"


@dataclass(frozen=True, slots=True)
class NextQuestion:
    """What is to be shown, and how many responses are wanted.

    Attributes
    ----------
    icc : the jury's ICC is to be over this; None is the goal of the protocol
    planned : responses to be rated at most; None is the protocol's number, else all of the study
    number : of responses to list
    seed : of their order
    """

    icc: float | None = None
    planned: int | None = None
    number: int = 20
    seed: int = 0


@dataclass(frozen=True, slots=True)
class NextResponse:
    """A response that no clinician has rated."""

    response: str
    benchmark: str


@dataclass(frozen=True)
class NextToRate:
    """What the look says, and what to rate next.

    Attributes
    ----------
    goal : "non_inferior" or "icc"
    look : at which figure; its estimate is NaN where there is none yet
    found : what it says; None where fewer than 20 instances are rated, or the figure is undefined
    looks : responses rated at each look so far, this one too
    responses : to rate next, in their order, unless the goal is decided
    instances : rated
    simulated : raters that are
    """

    goal: str
    look: Look
    found: Stopping | None
    looks: tuple[int, ...]
    responses: tuple[NextResponse, ...]
    simulated: tuple[str, ...]


@only(Role.RESEARCHER, Role.COORDINATOR)
def next_to_rate(by: Person, engine: Engine, question: NextQuestion) -> NextToRate:
    """Look at the goal for those who steer a study: see `look_at`."""
    return look_at(engine, by.actor, question)


def look_at(engine: Engine, actor: str, question: NextQuestion) -> NextToRate:
    """Look at the goal, which the record counts, and list what to rate next.

    Responses are drawn at random within benchmarks, so many of each as its share of what is left:
    choosing them by the jury's scores would bias what is to be shown.

    Raises
    ------
    BadInput
        If there is no protocol and no ICC, or the plan is another than that of the first look.
    TooFew, Unrated
        As `medjury.services.calibrate.calibrate`.
    """
    protocol = protocol_of(engine)
    if question.icc is None and protocol is None:
        raise BadInput(
            "no goal: fix a protocol first (`medjury study protocol set --margin 0.1`), or give --icc"
        )
    options = protocol.analysis() if protocol else AnalysisOptions()
    found = calibrate(engine, CalibrationQuestion(options, reference=False))
    goal = NON_INFERIOR if question.icc is None else ICC
    target = -protocol.margin if question.icc is None and protocol else float(question.icc or 0)
    row = _row(found.rows, "like_for_like" if goal == NON_INFERIOR else "jury")
    planned = (
        question.planned or (protocol.responses if protocol else 0) or len(found.scores.responses)
    )
    error = (row.boot_high - row.boot_low) / (2 * NORMAL_95)
    look = Look(row.n_responses, planned, row.icc, error, target, row.n_instances)
    simulated = tuple(
        sorted({*found.scores.simulated} & {*found.jury, *found.scores.raters("clinician")})
    )
    if row.n_instances < LEAST or not error > 0:
        rest = _next(found.scores, question)
        return NextToRate(goal, look, None, (), rest, simulated)
    about = {
        "goal": goal,
        "target": target,
        "jury": sorted(found.jury),
        "criterion": options.criterion,
    }
    seen = record_look(engine, actor, about, row.n_responses, planned, statistic_of(look))
    looks = [PastLook(*one) for one in seen]
    decided = judge(looks[:-1], look)
    left = _next(found.scores, question) if decided.verdict.goes_on else ()
    counted = tuple(one.rated for one in looks)
    return NextToRate(goal, look, decided, counted, left, simulated)


def _row(rows: Sequence[AgreementRow], scorer: str) -> AgreementRow:
    """Return a scorer's row of all benchmarks combined, or of the only one."""
    own = [row for row in rows if row.scorer == scorer]
    if not own:
        raise TooFew(
            f"no agreement of {scorer} yet: clinicians and the jury must have rated the same responses"
        )
    return next((row for row in own if row.benchmark == COMBINED), own[-1])


def _next(scores: Scores, question: NextQuestion) -> tuple[NextResponse, ...]:
    """Return responses that no clinician rated, of each benchmark in proportion, cases unrated first."""
    clinical = scores.ratings[scores.ratings["kind"] == "clinician"]
    rated, cases = {*clinical["response_id"]}, {*clinical["instance_id"]}
    left = scores.responses[~scores.responses["response_id"].isin(rated)]
    ranked: list[tuple[bool, float, str, str]] = []
    for benchmark, own in left.groupby("benchmark", sort=True):
        pairs = zip(own["response_id"], own["instance_id"], strict=True)
        drawn = sorted((case in cases, _drawn(question.seed, name), name) for name, case in pairs)
        ranked += [
            (seen, (place + 0.5) / len(drawn), name, str(benchmark))
            for place, (seen, _, name) in enumerate(drawn)
        ]
    ordered = sorted(ranked)
    return tuple(
        NextResponse(name, benchmark) for *_, name, benchmark in ordered[: question.number]
    )


def _drawn(seed: int, name: str) -> str:
    """Return what orders responses at random, the same each time, whatever else is in the study."""
    return hashlib.sha256(f"{seed}/{name}".encode()).hexdigest()


def to_json(result: NextToRate) -> dict[str, Any]:
    """Return a look as `rate next --json` has it."""
    found = result.found
    values: dict[str, Any] = json_value(
        {
            "goal": result.goal,
            "target": result.look.target,
            "verdict": found.verdict.value if found else "too_few",
            "estimate": result.look.estimate,
            "low": found.low if found else None,
            "high": found.high if found else None,
            "fixed_low": found.fixed_low if found else None,
            "fixed_high": found.fixed_high if found else None,
            "ordered": found.ordered if found else None,
            "critical": found.critical if found else None,
            "chance": found.chance if found else None,
            "more_responses": found.more if found else None,
            "rated": result.look.rated,
            "instances": result.look.instances,
            "planned": result.look.planned,
            "looks": list(result.looks),
            "simulated": list(result.simulated),
            "next": [asdict(one) for one in result.responses],
        }
    )
    return values
