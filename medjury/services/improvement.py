"""What is asked of an improvement of a jury, what came of it, and its JSON."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any

from pydantic import ValidationError

from calibration.json_values import json_value
from calibration.learning import PartGain
from calibration.values import NAN
from data.errors import BadInput
from data.rubric import Rubric, rubric_toml
from jury.panel import Juror, Panel, first_fault

SETTINGS = ("effort", "explanation", "scores", "temperature")


class Outcome(StrEnum):
    """How an improvement ended.

    BETTER: the gain on the test part lies above 0. NOT_SHOWN: a rubric was chosen, and its gain there
    may be none. NONE_BETTER: none was better on the part to choose by; the test part is unopened.
    STOPPED: the cap, the proposer or a juror ended it; run again, it goes on.
    """

    BETTER = "better"
    NOT_SHOWN = "not_shown"
    NONE_BETTER = "none_better"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ImproveQuestion:
    """What is asked for.

    Attributes
    ----------
    benchmarks
        Rated on one rubric; none for all of the study.
    proposer
        Name of the panel's juror that proposes rubrics; "" is the panel's own `proposer`, else its
        first juror.
    rounds
        Proposals asked for, at most.
    examples
        Responses by clinicians that jurors are shown, where that helps; 0 tries none.
    settings
        Of the jurors, to be tried, such as ("explanation", "after").
    max_usd
        Cap on what is spent from here on, in US dollars.
    """

    panel: Panel
    benchmarks: tuple[str, ...] = ()
    proposer: str = ""
    rounds: int = 3
    examples: int = 3
    settings: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    max_usd: float | None = None
    concurrency: int | None = None
    reps: int = 2000

    def proposing(self) -> Juror:
        """Return the model that proposes.

        Raises
        ------
        BadInput
            If the panel has no juror of that name, or its proposer is at a host where none of its
            jurors is: clinicians' comments and texts would go where the panel does not say.
        """
        panel = self.panel
        known = {juror.name: juror for juror in panel.juror}
        if self.proposer and self.proposer not in known:
            raise BadInput(f"proposer {self.proposer!r}: the jurors are {', '.join(known)}")
        chosen = known.get(self.proposer) or panel.proposer or panel.juror[0]
        if not chosen.simulated and chosen.place not in panel.hosts():
            raise BadInput(
                f"panel {panel.name}, proposer {chosen.name}: its host {chosen.place} receives no text "
                f"from this panel, whose jurors are at {', '.join(panel.hosts()) or 'no host'}; name a "
                "model at one of them"
            )
        if chosen.simulated != any(juror.simulated for juror in panel.juror):
            raise BadInput(
                f"panel {panel.name}, proposer {chosen.name}: a simulated model and real jurors do not mix"
            )
        return chosen

    def asked(self) -> dict[str, Any]:
        """Return what makes it the same improvement when it is asked for again."""
        return {
            "panel": self.panel.name,
            "jurors": [{"name": juror.name} | juror.profile() for juror in self.panel.juror],
            "proposer": {"name": self.proposing().name} | self.proposing().profile(),
            "benchmarks": list(self.benchmarks),
            "rounds": self.rounds,
            "examples": self.examples,
            "settings": [list(one) for one in self.settings],
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True)
class Tried:
    """One candidate: what was changed, how far it is from the clinicians, and whether it was kept.

    `train` and `choose` are mean distances in points on these parts, NaN where it was not run;
    `reason` says why a proposal could not be used.
    """

    change: str
    train: float = NAN
    choose: float = NAN
    kept: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class IccGain:
    """The ICCs of both juries on the test part, and their difference, not corrected for `n_tried` comparisons."""

    before: float
    after: float
    difference: float
    low: float
    high: float
    p: float
    kind: str
    n_tried: int


@dataclass(frozen=True, slots=True)
class Improved:
    """What came of an improvement.

    Attributes
    ----------
    parts
        "train", "choose", "test" -> gain; train and choose flatter, as the rubric was made and
        chosen by them. "test" is absent until it is opened.
    split
        Part -> how many instances and responses.
    opened_before
        Earlier improvements of the study that had opened a test part with some of the same instances.
    diff
        The rubric that was learned against the one before, line by line.
    panel_file
        The panel that was learned, as TOML; "" where none was.
    """

    id: int
    outcome: Outcome
    panel: str
    jurors: tuple[str, ...]
    rubric: Mapping[str, str]
    split: Mapping[str, Mapping[str, int]]
    tried: tuple[Tried, ...]
    parts: Mapping[str, PartGain] = field(default_factory=dict)
    icc: IccGain | None = None
    opened_before: int = 0
    simulated: bool = False
    usd: float = 0.0
    usd_unknown: int = 0
    stopped: str = ""
    diff: tuple[str, ...] = ()
    panel_file: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return what `medjury jury improve --json` writes, and the study keeps."""
        body: dict[str, Any] = json_value(self)
        return body


def improved_of(body: Mapping[str, Any]) -> Improved:
    """Return what `to_json` wrote."""
    whole = dict(body) | {
        "outcome": Outcome(body["outcome"]),
        "tried": tuple(_figures(Tried, one) for one in body["tried"]),
        "parts": {part: _figures(PartGain, gain) for part, gain in body["parts"].items()},
        "icc": _figures(IccGain, body["icc"]) if body["icc"] else None,
        "jurors": tuple(body["jurors"]),
        "diff": tuple(body["diff"]),
    }
    return Improved(**whole)


def _figures(made: Any, body: Mapping[str, Any]) -> Any:
    return made(**{name: NAN if value is None else value for name, value in body.items()})


def with_setting(jurors: Sequence[Juror], setting: tuple[str, str]) -> tuple[Juror, ...]:
    """Return the jurors with one setting changed.

    Raises
    ------
    BadInput
        If a juror has no such setting, or cannot take the value.
    """
    name, value = setting
    if name not in SETTINGS:
        raise BadInput(f"--try {name}={value}: what can be tried is {', '.join(SETTINGS)}")
    return tuple(_changed(juror, name, value) for juror in jurors)


def _changed(juror: Juror, name: str, value: str) -> Juror:
    body = juror.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    try:
        return Juror.model_validate(body | {name: float(value) if name == "temperature" else value})
    except ValidationError as error:
        why = first_fault(error, {"juror": [body]})
    except ValueError:
        why = "not a number"
    raise BadInput(f"--try {name}={value}: juror {juror.name}: {why}")


def trial_juror(juror: Juror, own: Mapping[str, Any] | None) -> Juror:
    """Return a juror as it sits in a trial: under its own name only with its own settings."""
    plain = juror.model_copy(update={"reads": ""})
    if own is not None and plain.profile() == own:
        return plain
    digest = sha256(repr(sorted(plain.profile().items())).encode()).hexdigest()[:6]
    return plain.model_copy(update={"name": f"{plain.name[:50]}.try-{digest}"})


def seated(jurors: Sequence[Juror], improvement: int, reads: str) -> tuple[Juror, ...]:
    """Return the jurors of the panel that was learned, under names of their own."""
    return tuple(
        juror.model_copy(
            update={"name": f"{juror.name.split('.v', 1)[0][:50]}.v{improvement}", "reads": reads}
        )
        for juror in jurors
    )


def rubric_diff(before: Rubric, after: Rubric) -> tuple[str, ...]:
    """Return what differs between two rubrics, as a unified diff of their files."""
    old, new = (f"{rubric_toml(one)}{one.prompt}".splitlines() for one in (before, after))
    return tuple(difflib.unified_diff(old, new, before.version, after.version, lineterm="", n=2))


@dataclass(frozen=True, slots=True)
class ImprovementEstimate:
    """What an improvement takes at most: verdicts of jurors, proposals, and US dollars.

    `usd_likely` is of the verdicts, None where a price is not known; examples make prompts longer,
    and what the study has already is not asked again: neither is in it.
    """

    split: Mapping[str, int]
    verdicts: int
    proposals: int
    usd_likely: float | None
