"""The scopes of a table: each benchmark, and all of them combined."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from calibration.agreement import Panel
from calibration.codes import NoteCode as Code
from calibration.composite import Composites, composites, required_criteria
from calibration.grid import analysed_grid
from calibration.repeats import Repeats, repeats
from calibration.scope import Asked, Scope
from calibration.scores import COMBINED, Scores
from calibration.values import Note, note
from data.errors import BadInput, TooFew, Unknown


@dataclass(frozen=True)
class Sitting:
    """Who sits on the jury, and how many of them a response needs; None: all of them."""

    jurors: Sequence[str] | None = None
    needed: int | None = None


def scopes(
    scores: Scores, sitting: Sitting, asked: Asked, report: Callable[[float], None] | None = None
) -> Iterator[Scope]:
    """Yield each benchmark, then "combined" if there are several.

    `report` is told the share of the work done, from above 0 to 1, as a scope resamples.

    Raises
    ------
    Unknown, BadInput, TooFew
        As `table.agreement_table`, before the first is yielded.
    """
    jury = checked(scores, sitting, asked)
    found = composites(scores, asked.criterion)
    if not (found.values["kind"] == "clinician").any():
        raise TooFew("no clinician has rated a response on all criteria: nothing to agree with")
    names, again = _scope_names(scores), repeats(scores, asked.criterion)
    loops, told = 1 + bool(again), report or _silent
    for place, name in enumerate(names):
        advance = _Progress(told, place, len(names), loops * asked.reps)
        yield _scope(scores, (found, again), name, jury, asked, advance)
        told((place + 1) / len(names))


def checked(scores: Scores, sitting: Sitting, asked: Asked) -> Panel | None:
    """Return the jury, None without jurors; raise what `scopes` would of names and options."""
    chosen = known_jurors(scores, sitting.jurors)
    _check_options(asked)
    _check_criterion(scores, asked.criterion)
    return _jury(chosen, sitting.needed)


def why_undefined_scope(scores: Scores, scope: Scope) -> Note | None:
    """Return why a scope has no agreement at all, or None."""
    criterion = scope.asked.criterion
    if criterion is not None and not _members(scores, scope.name, criterion):
        return note(Code.NO_CRITERION, criterion=criterion)
    if not scope.grid.responses:
        return note(Code.NOT_RATED)
    clinical = scope.given[scope.given["kind"] == "clinician"]
    shapes = [scores.rubrics[name] for name in clinical["benchmark"].unique()]
    if len({(shape.low, shape.high) for shape in shapes}) > 1:
        return note(Code.DIFFERENT_SCALES)
    return None


def known_jurors(scores: Scores, jurors: Sequence[str] | None) -> tuple[str, ...]:
    """Return the jurors asked for, each once, or all; raise Unknown for one without a rating."""
    known = scores.raters("juror")
    if jurors is None:
        return known
    if lost := [name for name in jurors if name not in known]:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise Unknown(f"no ratings by a juror {', '.join(lost)} in this study: {has}")
    return tuple(dict.fromkeys(jurors))


def _jury(jurors: tuple[str, ...], min_jurors: int | None) -> Panel | None:
    needed = len(jurors) if min_jurors is None else min_jurors
    if jurors and not 1 <= needed <= len(jurors):
        raise BadInput(f"min_jurors={needed}: the jury has {len(jurors)} jurors")
    return Panel(jurors, needed) if jurors else None


def _check_options(asked: Asked) -> None:
    if asked.method not in ("paper", "published"):
        raise BadInput(f"method {asked.method}: it is paper or published")
    if asked.reps < 0:
        raise BadInput(f"reps={asked.reps}: it is 0 or more")
    if asked.min_shared < 2:
        raise BadInput(f"min_shared={asked.min_shared}: an ICC needs at least 2 shared responses")


def _check_criterion(scores: Scores, criterion: str | None) -> None:
    known = dict.fromkeys(name for shape in scores.rubrics.values() for name in shape.criteria)
    if criterion is not None and criterion not in known:
        raise Unknown(f"no rubric has the criterion {criterion}: they have {', '.join(known)}")


def _scope_names(scores: Scores) -> list[str]:
    several = len(scores.benchmarks) > 1
    return [*scores.benchmarks, *([COMBINED] if several else [])]


def _members(scores: Scores, name: str, criterion: str | None) -> list[str]:
    """Return the benchmarks of a scope that can have composites."""
    can = required_criteria(scores.rubrics, criterion)
    return [one for one in scores.benchmarks if one in can and name in (one, COMBINED)]


def _scope(
    scores: Scores,
    read: tuple[Composites, Repeats],
    name: str,
    jury: Panel | None,
    asked: Asked,
    tick: Callable[[int], None],
) -> Scope:
    found, again = read
    members = _members(scores, name, asked.criterion)
    jurors, metrics = jury.members if jury else (), scores.raters("metric")
    short = found.incomplete[found.incomplete["benchmark"].isin(members)]
    return Scope(
        name=name,
        grid=analysed_grid(found.values, members, jurors=jurors, metrics=metrics),
        given=found.values[found.values["benchmark"].isin(members)],
        in_study=int(scores.responses["benchmark"].isin(members).sum()),
        incomplete={
            str(name): int(n) for name, n in short.groupby("rater")["readings"].sum().items()
        },
        repeats=again.of(members),
        jury=jury,
        jurors=jurors,
        metrics=metrics,
        simulated=scores.simulated,
        asked=asked,
        tick=tick,
        looked=1 if name == COMBINED else len(scores.benchmarks),
    )


class _Progress:
    """Turns resamples done on one of several scopes into the share of all the work done."""

    def __init__(self, report: Callable[[float], None], place: int, of: int, work: int) -> None:
        self.report, self.place, self.of, self.work = report, place, of, work
        self.done = 0

    def __call__(self, resamples: int) -> None:
        self.done += resamples
        self.report((self.place + self.done / self.work) / self.of)


def _silent(share: float) -> None:
    """Report progress to nobody."""
