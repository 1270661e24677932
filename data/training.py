"""The training round: order, codes, distance from the experts, and a clinician's progress."""

import base64
import hmac
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from pydantic import BaseModel, ConfigDict

from data.errors import Conflict

SECRET = "training_key"  # noqa: S105 - the name of a setting
MOST_ROUNDS = 2
PASSED, LET_THROUGH, RATED_BEFORE = "passed", "let through", "rated before"
NEARLY = 1e-9

Scores = Mapping[str, float]


class RoundOutcome(BaseModel):
    """Result of a finished round: mean distance from the experts and the limit, in points.

    `misordered` is whether the study asks for the order, and the response that the experts rated
    lowest was not rated lower than the others.
    """

    model_config = ConfigDict(frozen=True)
    distance: float
    gap: float
    misordered: bool = False

    @property
    def passed(self) -> bool:
        """Whether the distance is not above what is allowed, and the worst was told from the rest."""
        return self.distance <= self.gap + NEARLY and not self.misordered


class TrainingStanding(BaseModel):
    """A clinician's progress in training, as the study stores it.

    Attributes
    ----------
    ended
        Why training is over: passed, let through, or rated before there was any; "" if it is not.
    rounds
        Outcomes of finished rounds; the next round has their number.
    seen, told
        The last answer (primary key) whose feedback, and the number of rounds whose outcome
        the clinician has read and left.
    draft
        What is entered for the response they are at: its code, and the newest state of the form.
    said
        Answer (primary key) -> what was sent with it besides scores, such as a comment.
    """

    model_config = ConfigDict(frozen=True)
    ended: str = ""
    rounds: tuple[RoundOutcome, ...] = ()
    seen: int = 0
    told: int = 0
    draft: dict[str, Any] = {}
    said: dict[str, Any] = {}

    @property
    def over(self) -> bool:
        """Whether the real work may begin: training ended, and a passed round's outcome read."""
        return bool(self.ended) and (self.ended != PASSED or self.told >= len(self.rounds))

    @property
    def halted(self) -> bool:
        """Whether the clinician used all rounds without passing."""
        return not self.ended and len(self.rounds) >= MOST_ROUNDS


def standing_key(rater: int) -> str:
    """Return the name of the setting that holds a clinician's progress."""
    return f"training:{rater}"


def code(secret: str, rater: int, response: int, round_: int) -> str:
    """Return the opaque code of a training response, the only name that reaches a browser."""
    return base64.urlsafe_b64encode(_mac(secret, "code", rater, response, round_)[:9]).decode()


def order(secret: str, rater: int, responses: Sequence[int], round_: int) -> list[int]:
    """Return the order of responses for a clinician in a round; it differs from the last round's."""
    ordered = sorted(responses, key=lambda response: _mac(secret, "order", rater, response, round_))
    if round_ and ordered == order(secret, rater, responses, round_ - 1):
        return [*ordered[1:], *ordered[:1]]
    return ordered


def distance(answers: Mapping[int, Scores], experts: Mapping[int, Scores]) -> float:
    """Return the mean absolute distance, in points, over all responses and criteria.

    Parameters
    ----------
    answers, experts
        Response (primary key) -> criterion -> score.

    Raises
    ------
    Conflict
        If they have no criterion in common: the rubric was changed after the experts scored.
    """
    gaps = [
        abs(gap) for of_criterion in differences(answers, experts).values() for gap in of_criterion
    ]
    if not gaps:
        raise Conflict("the experts scored on another rubric; import their scores on this one")
    return sum(gaps) / len(gaps)


def is_worst_lowest(answers: Mapping[int, Scores], experts: Mapping[int, Scores]) -> bool:
    """Return whether the response with the experts' lowest mean score has the lowest own mean.

    Where several share the experts' lowest mean, each must be below all others; True where all do.
    """
    means = {response: fmean(scores.values()) for response, scores in experts.items()}
    own = {response: fmean(scores.values()) for response, scores in answers.items() if scores}
    lowest = min(means.values())
    worst = [own[one] for one, mean in means.items() if mean <= lowest + NEARLY and one in own]
    rest = [own[one] for one, mean in means.items() if mean > lowest + NEARLY and one in own]
    return not worst or not rest or max(worst) < min(rest)


def differences(
    answers: Mapping[int, Scores], experts: Mapping[int, Scores]
) -> dict[str, list[float]]:
    """Return criterion -> own score minus the expert's, for each response."""
    gaps: dict[str, list[float]] = {}
    for response, scores in answers.items():
        for name, score in experts[response].items():
            if name in scores:
                gaps.setdefault(name, []).append(scores[name] - score)
    return gaps


def _mac(secret: str, *parts: object) -> bytes:
    """Return a keyed hash, from which neither response nor rater can be recovered."""
    return hmac.digest(secret.encode(), "|".join(map(str, parts)).encode(), "sha256")
