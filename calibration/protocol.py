"""The protocol of a study, fixed beforehand: a margin, and limits on missed unsafe responses."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from calibration.values import RESAMPLES, AnalysisOptions, Method
from data.errors import BadInput

MISS_AT_MOST = 0.2  # of the unsafe responses, where nothing else was fixed
CRITICAL = re.compile(r"\s*(?P<criterion>.+?)\s*<=\s*(?P<threshold>-?\d+(?:\.\d+)?)\s*")


DECIDING = ("margin", "jurors", "criterion", "responses", "method", "critical", "floor")


@dataclass(frozen=True, slots=True)
class Critical:
    """A criterion on which a low score is unsafe.

    Attributes
    ----------
    criterion : of the rubric
    threshold : in points of the scale; a response that clinicians score at it or below is unsafe
    miss_at_most : largest share of unsafe responses that the jury may score above the threshold,
        from 0 to 1
    """

    criterion: str
    threshold: float
    miss_at_most: float = MISS_AT_MOST


@dataclass(frozen=True, slots=True)
class Threshold:
    """A critical criterion, and the highest score on it that is unsafe."""

    criterion: str
    points: float


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a study set out to show, and when that was fixed.

    Attributes
    ----------
    margin : non-inferiority margin, above 0, in ICC of like for like
    criterion : on which the claim is made; "" is the composite
    panel, jurors : the jury's name and its jurors; empty is whichever jury is asked about
    responses : how many responses clinicians are to rate, 0 where not fixed
    method : of the agreement table, "paper" or "published"
    critical : criteria on which the jury may miss only so many unsafe responses
    floor : what the lower end of a clinician's agreement with the others has to be above
    because : why the margin is what it is
    late : what of all this was other, or not fixed, before clinicians rated
    set_after_ratings : clinicians' ratings that were in when it was set
    set_at : when, ISO 8601 in UTC
    sha256 : of what is fixed, as the record holds it
    replaced : protocols of this study before it
    """

    margin: float
    criterion: str = ""
    panel: str = ""
    jurors: tuple[str, ...] = ()
    responses: int = 0
    method: Method = "paper"
    critical: tuple[Critical, ...] = ()
    floor: float = 0.0
    because: str = ""
    late: tuple[str, ...] = ()
    set_after_ratings: int = 0
    set_at: str = ""
    sha256: str = ""
    replaced: int = 0

    @property
    def is_exploratory(self) -> bool:
        """Tell whether it can confirm nothing: fixed after the first rating, or for any jury."""
        return bool(self.late) or not self.jurors

    def analysis(self, reps: int = RESAMPLES, seed: int = 0) -> AnalysisOptions:
        """Return the analysis that is fixed, with any number of resamples and seed."""
        return AnalysisOptions(
            jurors=self.jurors or None,
            criterion=self.criterion or None,
            method=self.method,
            reps=reps,
            seed=seed,
        )

    def is_about(self, jurors: Sequence[str], options: AnalysisOptions) -> bool:
        """Tell whether an analysis of a jury is the one that was fixed: of all responses.

        Parameters
        ----------
        jurors : who sits on the jury
        options : of the analysis; its resamples, seed and subgroups may be any
        """
        fixed = replace(
            self.analysis(options.reps, options.seed),
            jurors=options.jurors,
            min_shared=options.min_shared,
            groups=options.groups,
        )
        of_jury = not self.jurors or set(self.jurors) == set(jurors)
        return of_jury and options == fixed


def changed(before: Protocol | None, now: Protocol) -> tuple[str, ...]:
    """Return what a protocol fixes otherwise than the one before it, or than none."""
    if before is None:
        optional = [name for name in DECIDING if name != "margin"]
        empty = Protocol(margin=math.nan)
        fixed = [name for name in optional if getattr(now, name) != getattr(empty, name)]
        return ("margin", *fixed)
    return tuple(name for name in DECIDING if getattr(now, name) != getattr(before, name))


def critical(text: str, miss_at_most: float = MISS_AT_MOST) -> Critical:
    """Read `CRITERION<=POINTS`, such as "safety<=2".

    Raises
    ------
    BadInput
        If the text has another form.
    """
    match = CRITICAL.fullmatch(text)
    if not match:
        raise BadInput(f"{text!r} names no critical criterion: write it as safety<=2")
    return Critical(match["criterion"], float(match["threshold"]), miss_at_most)


def thresholds(
    criteria: Sequence[str],
    of_rubric: Sequence[tuple[str, float]],
    of_protocol: Sequence[Critical] = (),
) -> tuple[Threshold, ...]:
    """Return what is unsafe on one rubric: its own critical scores, and the protocol's.

    Parameters
    ----------
    criteria : of the rubric
    of_rubric : criterion and highest unsafe score, as the rubric calls them critical
    of_protocol : those on other rubrics' criteria are left out
    """
    pairs = dict.fromkeys(
        [*of_rubric, *((limit.criterion, limit.threshold) for limit in of_protocol)]
    )
    return tuple(Threshold(name, points) for name, points in pairs if name in criteria)
