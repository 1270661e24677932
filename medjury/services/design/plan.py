"""A design, and what a coordinator should know of it before anyone is invited."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from calibration.notes import counted
from data.pace import Pace, PaceSource, Work
from data.study.assignments import Assigned, Item, Slot
from medjury.services.design.deal import GAP, Showing, adjacent, groups

ASSUMED_ICC = (
    0.45  # about what clinicians of published studies reach; an assumption, not a forecast
)


@dataclass(frozen=True)
class Design:
    """A design: which clinician reads which responses, in which order.

    Attributes
    ----------
    slots
        What is to be stored; positions count from 0 in each rater's own order.
    raters
        Handles of those who can be given work, sorted.
    responses
        All that is to be rated, by primary key.
    asked
        The share of hidden repeats asked for.
    kept, dropped
        Of a design that was extended: the slots that stay, and the open ones to delete.
    """

    slots: tuple[Slot, ...]
    raters: tuple[str, ...]
    responses: tuple[Item, ...]
    per_response: int
    asked: float
    seed: int
    kept: tuple[Assigned, ...] = ()
    dropped: tuple[Assigned, ...] = ()

    @cached_property
    def orders(self) -> dict[str, list[Showing]]:
        """Everything each rater is shown, in order; those who left come last."""
        instance = {item.response: item.instance for item in self.responses}
        placed = sorted(
            (slot.position, slot.rater, slot.response, slot.pass_) for slot in self._all()
        )
        orders: dict[str, list[Showing]] = {rater: [] for rater in self.raters}
        for _, rater, response, pass_ in placed:
            orders.setdefault(rater, []).append(Showing(response, instance[response], pass_))
        return orders

    @cached_property
    def readers(self) -> dict[int, list[str]]:
        """The raters of each response, sorted; a repeat does not count."""
        readers: dict[int, list[str]] = {item.response: [] for item in self.responses}
        for slot in sorted(self._all(), key=lambda slot: slot.rater):
            if not slot.pass_:
                readers[slot.response].append(slot.rater)
        return readers

    @property
    def load(self) -> dict[str, int]:
        """First readings of each rater who can be given work."""
        counts = Counter(rater for readers in self.readers.values() for rater in readers)
        return {rater: counts[rater] for rater in self.raters}

    @cached_property
    def overlap(self) -> dict[str, int]:
        """Responses shared by each pair of raters, keyed "a|b", also by those who left."""
        raters = sorted(self.orders)
        shared = {f"{a}|{b}": 0 for index, a in enumerate(raters) for b in raters[index + 1 :]}
        for readers in self.readers.values():
            for index, a in enumerate(readers):
                for b in readers[index + 1 :]:
                    shared[f"{a}|{b}"] += 1
        return shared

    @property
    def repeats(self) -> int:
        """Hidden repeats of all raters."""
        return sum(slot.pass_ for slot in self._all())

    def repeats_of(self, rater: str) -> int:
        """Hidden repeats of one rater."""
        return sum(showing.pass_ for showing in self.orders[rater])

    @cached_property
    def connected(self) -> bool:
        """Whether shared responses link every rater with every other."""
        number = {rater: index for index, rater in enumerate(sorted(self.orders))}
        blocks = ([number[rater] for rater in readers] for readers in self.readers.values())
        return len(set(groups(blocks, len(number)))) == 1

    @cached_property
    def adjacent(self) -> int:
        """How often one instance is shown twice in a row, at the rater where it is most often."""
        return max((adjacent(line) for line in self.orders.values()), default=0)

    @cached_property
    def model_spread(self) -> int | None:
        """The largest difference between two raters' counts of one model's responses, if told."""
        if not any(response.model for response in self.responses):
            return None
        columns = self._model_counts().values()
        return max((max(column) - min(column) for column in columns), default=0)

    @cached_property
    def short_of_repeats(self) -> dict[str, int]:
        """How many hidden repeats fewer than asked each rater gets; only those with any."""
        short = {r: round(self.asked * load) - self.repeats_of(r) for r, load in self.load.items()}
        return {rater: missing for rater, missing in short.items() if missing > 0}

    def work(self, rater: str) -> Work:
        """Return one rater's work: what they read and score, hidden repeats included."""
        item = {item.response: item for item in self.responses}
        shown = [item[showing.response] for showing in self.orders[rater]]
        words, criteria = sum(item.words for item in shown), sum(item.criteria for item in shown)
        return Work(len(shown), words, criteria)

    def to_json(self, pace: Pace | None = None) -> dict[str, Any]:
        """Return the design's figures as `medjury rate assign --json` writes them."""
        return {
            "seed": self.seed,
            "per_response": self.per_response,
            "load": self.load,
            "overlap": self.overlap,
            "repeats": self.repeats,
            "plan": asdict(plan_of(self, pace)),
        }

    def _all(self) -> Iterator[Slot | Assigned]:
        yield from self.kept
        yield from self.slots

    def _model_counts(self) -> dict[str, list[int]]:
        model = {item.response: item.model for item in self.responses}
        counts = Counter(
            (model[response], rater)
            for response, readers in self.readers.items()
            for rater in readers
        )
        return {
            name: [counts[name, r] for r in self.raters] for name in sorted(set(model.values()))
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The figures of a design: work, overlap, balance and precision.

    Attributes
    ----------
    load_min, load_max
        First readings of the clinicians with fewest and most.
    overlap_min, overlap_max
        Responses that any two clinicians share.
    connected
        Whether shared responses link every clinician with every other.
    model_spread
        The largest difference between two clinicians' counts of one model's responses; None where
        the design was made without looking at models, as the study is blind.
    adjacent
        How often one instance is shown twice in a row, at the clinician where it is most often.
    repeats_missing
        Hidden repeats that were asked for and found no place.
    minutes_per_response, minutes, minutes_total
        Mean of a showing; of each clinician; of all.
    pace
        What the minutes rest on.
    icc_assumed, icc_low, icc_high, icc_width
        The 95 % interval of the agreement, were it as assumed; None with too few responses.
    icc_width_by_instances
        The width if the instances alone counted.
    notes
        What the design could not give.
    """

    responses: int
    instances: int
    raters: int
    load_min: int
    load_max: int
    overlap_min: int
    overlap_max: int
    connected: bool
    model_spread: int | None
    adjacent: int
    repeats_missing: int
    minutes_per_response: float
    minutes: Mapping[str, float]
    minutes_total: float
    pace: Pace
    icc_assumed: float
    icc_low: float | None
    icc_high: float | None
    icc_width: float | None
    icc_width_by_instances: float | None
    notes: Sequence[str]


def plan_of(design: Design, pace: Pace | None = None) -> Plan:
    """Return the figures of a design at a pace; by default a reader's pace, from words alone."""
    pace = pace or Pace()
    shared = [design.overlap["|".join(pair)] for pair in _pairs(design.raters)]
    minutes = {rater: pace.minutes(design.work(rater)) for rater in design.raters}
    showings = sum(len(design.orders[rater]) for rater in design.raters)
    return Plan(
        responses=len(design.responses),
        instances=len({item.instance for item in design.responses}),
        raters=len(design.raters),
        load_min=min(design.load.values()),
        load_max=max(design.load.values()),
        overlap_min=min(shared, default=0),
        overlap_max=max(shared, default=0),
        connected=design.connected,
        model_spread=design.model_spread,
        adjacent=design.adjacent,
        repeats_missing=sum(design.short_of_repeats.values()),
        minutes_per_response=sum(minutes.values()) / showings if showings else 0.0,
        minutes=minutes,
        minutes_total=sum(minutes.values()),
        pace=pace,
        icc_assumed=ASSUMED_ICC,
        **_expected_interval(design),
        notes=_notes(design),
    )


def _pairs(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield every pair, each sorted as the keys of `overlap` are."""
    for index, first in enumerate(names):
        for other in names[index + 1 :]:
            yield first, other


def _expected_interval(design: Design) -> dict[str, float | None]:
    """Return the exact 95 % F interval of an ICC(C,2) that would come out as assumed.

    Once with all responses taken as independent, the best case; and once with the
    instances alone counted, as if the responses to one instance said all the same.
    """
    from calibration.icc import f_interval  # only a plan needs scipy, raters never do

    best = f_interval(ASSUMED_ICC, len(design.responses))
    least = f_interval(ASSUMED_ICC, len({item.instance for item in design.responses}))
    ends = {
        "icc_low": best.low,
        "icc_high": best.high,
        "icc_width": best.high - best.low,
        "icc_width_by_instances": least.high - least.low,
    }
    return {name: round(end, 4) if math.isfinite(end) else None for name, end in ends.items()}


def _notes(design: Design) -> list[str]:
    """Return sentences on what the design could not achieve."""
    short = design.short_of_repeats
    sentences = {
        f"fewer hidden repeats than asked for {', '.join(short)}: a repeat stands at least "
        f"{GAP} places after its first showing, and the list is too short": bool(short),
        "one reading a response: no two clinicians share any, so their agreement cannot be "
        "computed": design.per_response == 1,
        "not all clinicians are linked by shared responses: add responses or readings": (
            not design.connected and design.per_response > 1
        ),
        "some pairs share fewer than 10 responses: their ICC is fragile": (
            design.per_response > 1
            and any(design.overlap["|".join(pair)] < 10 for pair in _pairs(design.raters))
        ),
        "one instance is shown twice in a row: a list holds too few other instances": (
            design.adjacent > 0
        ),
        f"the interval assumes an ICC(C,2) of {ASSUMED_ICC}": True,
    }
    return [note for note, holds in sentences.items() if holds]


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield a plan in sentences, without what the table of clinicians has."""
    yield f"{counted(plan.responses, 'response')} to {counted(plan.instances, 'instance')}."
    yield (
        f"Minutes: {plan.minutes_total:,.0f} in all, {plan.minutes_per_response:.1f} a reading "
        f"{_pace_in_words(plan.pace)}."
    )
    if plan.raters > 1:
        least, most = plan.overlap_min, plan.overlap_max
        shared = counted(most, "response") if least == most else f"{least} to {most} responses"
        linked = "; all are linked by what they share" if plan.connected else ""
        yield f"Any two clinicians share {shared}{linked}."
        yield _spread_in_words(plan)
    if plan.icc_width is None:
        yield "Too few responses for an interval."
    else:
        alone = plan.icc_width_by_instances
        dependent = "" if alone is None else f" ({alone:.2f} if the instances alone counted)"
        yield (
            f"Expected 95 % interval of the agreement: {plan.icc_low:z.2f} to "
            f"{plan.icc_high:z.2f}, width {plan.icc_width:.2f}{dependent}."
        )
    yield from (f"{note[0].upper()}{note[1:]}." for note in plan.notes)


def _spread_in_words(plan: Plan) -> str:
    """Return how evenly clinicians see the models, or why that is not told."""
    if plan.model_spread is None:
        return "Dealt without looking at who wrote what, as the study is blind."
    return f"Clinicians' counts of one model's responses differ by {plan.model_spread} at most."


def _pace_in_words(pace: Pace) -> str:
    """Return what an estimate of minutes is based on, to be shown after it."""
    if pace.source == PaceSource.SAID:
        return "as you say"
    speed = f"{60 / pace.seconds_per_word:.0f} words of source and response a minute"
    if pace.source == PaceSource.MEASURED:
        return f"at this study's own pace, {speed}: the median of {pace.timed:,} showings"
    return (
        f"estimated from {speed} and {pace.seconds_per_criterion:g} seconds a criterion, as none or "
        "too few showings are timed"
    )
