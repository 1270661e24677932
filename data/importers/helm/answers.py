"""Which answers of a HELM run can be rated, and what of them has no place in a study."""

from collections import Counter
from collections.abc import Iterator

from data.importers.helm.files import RequestState


def taken_of(states: list[RequestState]) -> tuple[list[tuple[int, RequestState]], dict[str, int]]:
    """Return the answers that can be rated, with their numbers, and how many others there are."""
    taken, left_out = [], Counter[str]()
    for number, state in enumerate(states, start=1):
        if why := _why_not(state):
            left_out[why] += 1
        else:
            taken.append((number, state))
    return taken, dict(left_out)


def _why_not(state: RequestState) -> str:
    """Return why an answer cannot be rated, or ""."""
    one = state.instance
    reasons = {
        "perturbed": one.perturbation is not None,
        "training instance": one.split == "train",
        "redacted": one.input.redacted or state.output.redacted,
        "empty question": one.input.absent,
        "empty response": state.output.absent,
    }
    return next((why for why, holds in reasons.items() if holds), "")


def notes_of(states: Iterator[RequestState]) -> dict[str, int]:
    """Count what of the answers that were taken is not in the study."""
    found = Counter[str]()
    for state in states:
        found["redacted reference"] += state.gold.redacted
        found["further reference"] += max(0, len(state.instance.references) - 1)
        found["further completion"] += len(state.result.completions) - 1 if state.result else 0
    return {what: number for what, number in found.items() if number}
