"""The decision on a jury: whether it agrees with clinicians no worse than a clinician does."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from calibration.decision import LIKE_THESE, THESE, Decision, DecisionKind
from calibration.detection import LimitOutcome, Misses
from calibration.notes import Figures, Note, filled, note, noted, simulated_in
from calibration.protocol import Protocol
from calibration.remarks import FEW_INSTANCES, MOST_LOST, MOST_TIMES
from calibration.scope import AgreementRow, CliniciansRow, LikeForLikeRow
from calibration.shared_notes import (
    DO_MORE_INSTANCES,
    DO_MORE_RESPONSES,
    DO_REAL_RATERS,
    DO_RUN_JURY_ON,
    FEW_TO_TRUST,
    MADE_UP,
    NO_INTERVAL,
)
from calibration.values import COMBINED, NAN

NO_DIFFERENCE = ": no difference is shown, which does not mean that the two are equal"


def _unsafe(figures: Figures) -> str:
    """Return how many of the responses that clinicians scored low the jury misses."""
    text = (
        "of {unsafe:response} that clinicians scored {threshold:g} or less on {criterion}, the jury "
        "scored {missed} higher (95 % interval {low:.0%} to {high:.0%}"
    )
    return filled(text, figures)


def _within(figures: Figures) -> str:
    return f"{_unsafe(figures)}), within the limit of {figures['limit']:.0%}"


def _reach(figures: Figures) -> str:
    text = "), so it is not known whether the limit of {limit:.0%} is met"
    return _unsafe(figures) + filled(text, figures)


def _above(figures: Figures) -> str:
    return f"{_unsafe(figures)}), above the limit of {figures['limit']:.0%}"


DO_ANALYSE_AS_FIXED = (
    "do_analyse_as_fixed",
    "analyse the jury, criterion, method and data that the protocol names",
)
DO_EXPORT = ("do_export", "export the rubric with this evidence")
DO_FIX_MARGIN = (
    "do_fix_margin",
    "fix a margin in the study's protocol, preferably before clinicians rate",
)
DO_JURY_THAT_DIFFERS = (
    "do_jury_that_differs",
    (
        "read the jury's answers, and mend its rubric prompt or take other jurors: one that "
        "gives every response the same score measures nothing"
    ),
)
DO_MORE_FOR_AN_EQUAL = (
    "do_more_for_an_equal",
    (
        "have clinicians rate more: at this margin, even a jury exactly as good as a "
        "clinician takes about {responses} responses in all to be shown non-inferior"
    ),
)
DO_OTHER_JURY = (
    "do_other_jury",
    "compare other juries of the jurors already run, or run other jurors",
)
DO_VARIED = (
    "do_varied",
    "have clinicians rate responses that differ more: too many here have the same score",
)
HANGS_ON = ("hangs_on", "the verdict hangs on {clinicians}: without them it would be another")
MISSES_ABOVE = ("misses_above", _above)
MISSES_REACH = ("misses_reach", _reach)
MISSES_WITHIN = ("misses_within", _within)
NO_MARGIN = ("no_margin", "no margin was fixed for how much worse than a clinician the jury may be")
OTHER_ANALYSIS = (
    "other_analysis",
    (
        "the protocol is about another jury, criterion, method or part of the study than this "
        "analysis"
    ),
)

TOLD = {
    LimitOutcome.FAILED: MISSES_ABOVE,
    LimitOutcome.OPEN: MISSES_REACH,
    LimitOutcome.MET: MISSES_WITHIN,
}
ORDER = [*TOLD]
UNDECIDED = (DecisionKind.SIMULATED, DecisionKind.UNDEFINED, DecisionKind.TOO_FEW)
ALIKE = "tells_none_apart", "same_everywhere", "same_on_criterion"


@dataclass(frozen=True, slots=True)
class JuryClaim:
    """The claim about a jury that is decided: its protocol, and the unsafe responses it misses.

    Attributes
    ----------
    protocol : what was fixed beforehand; None where nothing was
    is_of_protocol : whether this analysis is the one that the protocol is about
    misses : benchmark -> unsafe responses that the jury missed, a value a critical criterion
    untested : limits of the protocol on which nothing is known, for all benchmarks together
    without : clinicians who were left out on purpose
    """

    protocol: Protocol | None = None
    is_of_protocol: bool = True
    misses: Mapping[str, Sequence[Misses]] | None = None
    untested: Sequence[Misses] = ()
    without: tuple[str, ...] = ()

    @property
    def fixed(self) -> Protocol | None:
        """Return the protocol where it decides this analysis."""
        return self.protocol if self.is_of_protocol else None


NO_CLAIM = JuryClaim()


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The decision on a jury for each benchmark, and the agreement table it is made from."""

    rows: Sequence[AgreementRow]
    decisions: Mapping[str, Decision]

    def jury_on(self, benchmark: str) -> AgreementRow:
        """Return the jury's row of the table."""
        key = (benchmark, "jury")
        return next(row for row in self.rows if (row.benchmark, row.scorer) == key)


def decisions(rows: Sequence[AgreementRow], claim: JuryClaim = NO_CLAIM) -> dict[str, Decision]:
    """Return the decision on each benchmark by name, the last on all combined.

    Parameters
    ----------
    rows : the agreement table
    claim : as in `decide`
    """
    names = [*dict.fromkeys(row.benchmark for row in rows)]
    single = sum(name != COMBINED for name in names)
    return {
        name: decide(
            [row for row in rows if row.benchmark == name],
            claim,
            n_side_by_side=1 if name == COMBINED else single,
        )
        for name in names
    }


def decide(
    rows: Sequence[AgreementRow], claim: JuryClaim = NO_CLAIM, n_side_by_side: int = 1
) -> Decision:
    """Return the decision on the jury that the rows of one benchmark support.

    Parameters
    ----------
    rows : rows of the agreement table, all of one benchmark
    claim : JuryClaim
        What was fixed beforehand, and the unsafe responses that the jury misses.
    n_side_by_side : int
        How many benchmarks are looked at side by side, this one among them. With several,
        "non_inferior" takes the interval at level 1 - 0.05 / n_side_by_side (Bonferroni); no other kind
        is corrected for it, and the reasons say so.

    Returns
    -------
    Decision
        Of subject "agreement". Its kind is the first that holds of:

        simulated : a rater behind the claim is
        undefined : no jury, or no difference
        too_few : fewer than 20 instances, no interval, over 1 % of resamples without a difference,
            or fewer responses rated than the protocol plans
        no_reference : the lower end of a clinician's ICC with the others is not above 0, or not
            above the protocol's floor
        no_protocol : no margin was fixed for this analysis
        exploratory : what decides was fixed after the first rating, or for no jury in particular
        inferior : the whole interval of the difference lies below minus the margin, or the jury
            is shown to miss more unsafe responses than it may
        non_inferior : the whole interval lies above minus the margin; the margin is at most half
            the lower end of a clinician's ICC; the lower end of the jury's own ICC is above 0;
            every limit on missed unsafe responses is kept; and, with three or more clinicians,
            without each of them in turn the difference is still above minus the margin and the
            clinicians are still shown to agree
        inconclusive : none of these

        `scope` is "clinicians_like_these" where the interval over clinicians too lies above minus
        the margin, else "these_clinicians". `hangs_on` names those without whom the clinicians
        would (or would not) be shown to agree, or the difference would lie on the other side of
        minus the margin.

    Raises
    ------
    ValueError
        If there are no rows.

    References
    ----------
    Piaggio et al. (2012), JAMA 308, 2594: the interval and the margin, and a reference that has
    its effect. ICH E10 (2000), 1.5.1: assay sensitivity. FDA (2016), Non-inferiority trials: a
    margin that keeps half of the effect that is shown.
    """
    if not rows:
        raise ValueError("a verdict takes rows")
    jury = next((row for row in rows if row.scorer == "jury"), None)
    held = next((row for row in rows if isinstance(row, LikeForLikeRow)), None)
    if jury is None or held is None:
        lacking = (
            note("no_juror", "no juror has rated a response of this study"),
            note("do_run_jury", "run a jury on the responses that clinicians have rated"),
        )
        return Decision("agreement", DecisionKind.UNDEFINED, reasons=lacking[:1], next=lacking[1])
    between = next((row for row in rows if isinstance(row, CliniciansRow)), None)
    against = [one.rater for one in (between.each if between else ()) if one.against_others]
    case = _Case(held, jury, claim, n_side_by_side, tuple(against))
    kind = _kind(case)
    return Decision(
        "agreement",
        kind,
        estimate=held.icc,
        low=held.low,
        high=held.high,
        reasons=noted(*_reasons(kind, case)),
        basis=noted(_basis(jury)),
        next=_next(kind, case),
        margin=case.protocol.margin if case.protocol else math.nan,
        scope=LIKE_THESE if held.population_low > -case.margin else THESE,
        clinicians=held.n_clinicians,
        hangs_on=() if kind in UNDECIDED else case.hangs_on,
        without=claim.without,
    )


@dataclass(frozen=True, slots=True)
class _Case:
    """The rows of one benchmark that decide, the claim, and who ranks against the other clinicians."""

    held: LikeForLikeRow
    jury: AgreementRow
    claim: JuryClaim
    n_side_by_side: int
    against: tuple[str, ...]

    @property
    def protocol(self) -> Protocol | None:
        return self.claim.fixed

    @property
    def margin(self) -> float:
        return self.protocol.margin if self.protocol else 0.0

    @property
    def floor(self) -> float:
        """Return what the lower end of a clinician's agreement has to be above."""
        return self.protocol.floor if self.protocol else 0.0

    @property
    def misses(self) -> Sequence[Misses]:
        """Return the misses, those above their limit first and those that keep it last."""
        misses = [*(self.claim.misses or {}).get(self.held.benchmark, ())]
        misses += self.claim.untested if self.n_side_by_side == 1 else ()
        return sorted(misses, key=lambda miss: ORDER.index(miss.outcome))

    @property
    def of_interval(self) -> DecisionKind:
        """Return the kind of decision that the interval supports at the margin, corrected for several benchmarks."""
        low = self.held.low if self.n_side_by_side == 1 else self.held.corrected_low
        if self.held.low > -self.margin:
            return DecisionKind.NON_INFERIOR if low > -self.margin else DecisionKind.INCONCLUSIVE
        return DecisionKind.INFERIOR if self.held.high < -self.margin else DecisionKind.INCONCLUSIVE

    @property
    def of_misses(self) -> DecisionKind:
        """Return the kind of decision that the missed unsafe responses support."""
        outcomes = {misses.outcome for misses in self.misses}
        if LimitOutcome.FAILED in outcomes:
            return DecisionKind.INFERIOR
        return (
            DecisionKind.INCONCLUSIVE
            if LimitOutcome.OPEN in outcomes
            else DecisionKind.NON_INFERIOR
        )

    @property
    def clinicians_agree(self) -> bool:
        return self.held.clinician_low > self.floor

    @property
    def hangs_on(self) -> tuple[str, ...]:
        """Return those without whom clinicians, or the jury with them, would be on another side."""
        every = self._side(self.held.icc, self.held.clinician_low)
        return tuple(
            one.clinician
            for one in self.held.without
            if self._side(one.difference, one.clinician_low) != every
        )

    def _side(self, difference: float, clinician_low: float) -> tuple[bool, bool]:
        agree = clinician_low > self.floor
        return agree, agree and (self.protocol is None or difference > -self.margin)

    def unshown(self) -> Iterator[Note]:
        """Yield what keeps a jury from being non-inferior though its interval lies above the margin."""
        held, margin = self.held, self.margin
        if self.hangs_on:
            yield note(*HANGS_ON, clinicians=self.hangs_on)
        if not held.jury_low > 0:
            yield note("jury_unshown", _jury_unshown, low=held.jury_low)
        if not margin <= held.clinician_low / 2:
            yield note(
                "margin_wide",
                (
                    "the margin of {margin:g} is more than half of what a clinician's agreement with the "
                    "others is shown to be, {low:z.2f}: a jury that knows little of what clinicians know "
                    "could keep it"
                ),
                margin=margin,
                low=held.clinician_low,
            )


def _basis(jury: AgreementRow) -> Note | None:
    if not jury.n_responses + jury.n_missing:
        return None
    return note(
        "rests_on",
        _rests_on,
        responses=jury.n_responses,
        instances=jury.n_instances,
        clinicians=jury.n_clinicians,
        missing=jury.n_missing,
    )


def _kind(case: _Case) -> DecisionKind:
    if simulated_in([case.held, case.jury]):
        return DecisionKind.SIMULATED
    if not math.isfinite(case.held.icc):
        return DecisionKind.UNDEFINED
    if _why_too_few(case):
        return DecisionKind.TOO_FEW
    if not case.clinicians_agree:
        return DecisionKind.NO_REFERENCE
    if case.protocol is None:
        return DecisionKind.NO_PROTOCOL
    if case.protocol.is_exploratory:
        return DecisionKind.EXPLORATORY
    both = {case.of_interval, case.of_misses}
    if DecisionKind.INFERIOR in both:
        return DecisionKind.INFERIOR
    is_shown = both == {DecisionKind.NON_INFERIOR} and not any(case.unshown())
    return DecisionKind.NON_INFERIOR if is_shown else DecisionKind.INCONCLUSIVE


def _why_too_few(case: _Case) -> Note | None:
    """Return why nothing is decided yet, or None where something is."""
    held, planned = case.held, case.protocol.responses if case.protocol else 0
    if held.n_instances < FEW_INSTANCES:
        return note(*FEW_TO_TRUST, instances=held.n_instances, least=FEW_INSTANCES)
    if not math.isfinite(held.low):
        return note(*NO_INTERVAL)
    if held.undefined_resamples > MOST_LOST * held.resamples:
        return note(
            "lost_to_trust",
            "{lost} of {resamples} resamples have no difference: that interval is unreliable",
            lost=held.undefined_resamples,
            resamples=held.resamples,
        )
    if case.n_side_by_side == 1 and held.n_responses < planned:
        return note(
            "before_planned",
            (
                "the protocol plans {planned:response} and only {responses} are analysed: too early "
                "for a verdict"
            ),
            planned=planned,
            responses=held.n_responses,
        )
    return None


def _reasons(kind: DecisionKind, case: _Case) -> Iterator[Note | None]:
    if kind is DecisionKind.SIMULATED:
        yield note(*MADE_UP, raters=simulated_in([case.held, case.jury]))
    if kind is DecisionKind.UNDEFINED:
        why = [one for one in case.held.notes if one.code != "analysed"]
        alike = [one for one in case.jury.notes if one.code == "tells_none_apart"]
        yield from (why[:1] if not alike else [])
    if kind is DecisionKind.NO_REFERENCE:
        yield note(
            "clinicians_unshown", _clinicians_unshown, floor=case.floor, low=case.held.clinician_low
        )
    if kind is DecisionKind.EXPLORATORY:
        yield _why_exploratory(case.protocol)
    if kind in (DecisionKind.NON_INFERIOR, DecisionKind.INCONCLUSIVE):
        yield from _closest(kind, case)
    if kind not in (DecisionKind.UNDEFINED, DecisionKind.SIMULATED):
        yield from (_of_misses(one) for one in case.misses)
    if case.against:
        yield note(
            "against_others",
            (
                "ranks responses against the other clinicians: {clinicians}. Look for a turned scale "
                "or scores in the wrong rows"
            ),
            clinicians=case.against,
        )
    if kind is DecisionKind.NO_REFERENCE and case.hangs_on:
        yield note(*HANGS_ON, clinicians=case.hangs_on)
    if math.isfinite(case.held.icc):
        yield _gap(case.held)
        if kind is DecisionKind.TOO_FEW:
            yield _why_too_few(case)
        elif kind not in (DecisionKind.SIMULATED, DecisionKind.NO_REFERENCE):
            yield from _at_margin(kind, case)
    yield from (one for one in case.jury.notes if one.code in ALIKE)


def _closest(kind: DecisionKind, case: _Case) -> Iterator[Note]:
    """Yield what the headline has to say beside the margin."""
    if kind is DecisionKind.INCONCLUSIVE and case.of_interval is DecisionKind.NON_INFERIOR:
        yield from case.unshown()
    if kind is DecisionKind.NON_INFERIOR and case.held.high < 0:
        yield note(
            "worse_within",
            (
                "the whole interval lies below 0: the jury agrees less than a clinician does, by less "
                "than {margin:g}"
            ),
            margin=case.margin,
        )


def _why_exploratory(protocol: Protocol | None) -> Note | None:
    if protocol is None:
        return None
    if protocol.late:
        late = {"late": protocol.late, "ratings": protocol.set_after_ratings}
        return note("protocol_late", _late, **late, margin=protocol.margin)
    return note(
        "protocol_for_any",
        "the protocol names no jury: of several that are tried, one may pass by luck",
        margin=protocol.margin,
    )


def _at_margin(kind: DecisionKind, case: _Case) -> Iterator[Note | None]:
    """Yield notes on interval and margin, when the margin was fixed, and for which clinicians it holds."""
    if kind is DecisionKind.NO_PROTOCOL:
        yield note(*(OTHER_ANALYSIS if case.claim.protocol else NO_MARGIN))
        return
    yield from _reading(case)
    protocol = case.protocol
    if protocol and not protocol.late:
        yield note(
            "fixed_before",
            "the margin of {margin:g} was fixed before any rating was seen",
            margin=protocol.margin,
        )
    if protocol and protocol.because:
        yield note("because", "why this margin: {because}", because=protocol.because)
    yield _population(case)


def _gap(held: LikeForLikeRow) -> Note:
    ends = ("low", "high", "jury_low", "jury_high", "clinician_low", "clinician_high")
    known = {name: value if math.isfinite(value := getattr(held, name)) else None for name in ends}
    return note(
        "gap",
        _gap_words,
        gap=held.icc,
        low=known.pop("low"),
        high=known.pop("high"),
        jury=held.jury_icc,
        clinician=held.clinician_icc,
        **known,
    )


def _of_misses(misses: Misses) -> Note:
    about = {"criterion": misses.criterion, "threshold": misses.threshold}
    if not math.isfinite(misses.missed):
        return note(
            "none_unsafe",
            (
                "clinicians scored no response {threshold:g} or less on {criterion}: whether the jury "
                "finds such responses is not known"
            ),
            **about,
        )
    seen = about | {"unsafe": misses.n_bad, "missed": misses.n_missed}
    seen |= {"low": misses.low, "high": misses.high}
    return note(*TOLD[misses.outcome], **seen, limit=misses.at_most)


def _reading(case: _Case) -> Iterator[Note | None]:
    """Yield notes on where the interval lies to the margin, and on several benchmarks."""
    kind, held, margin = case.of_interval, case.held, case.margin
    n_side_by_side = case.n_side_by_side
    if kind is DecisionKind.NON_INFERIOR:
        yield note(
            "all_above", "the whole interval lies above -{margin:g}, the margin", margin=margin
        )
        yield (
            note(
                "holds_corrected",
                "it holds after correction for {benchmarks} benchmarks",
                benchmarks=n_side_by_side,
            )
            if n_side_by_side > 1
            else None
        )
        return
    if kind is DecisionKind.INFERIOR:
        yield note(
            "all_below", "the whole interval lies below -{margin:g}, the margin", margin=margin
        )
    elif held.low > -margin:
        yield note(
            "corrected_reaches",
            (
                "the interval lies above -{margin:g}, the margin, but corrected for {benchmarks} "
                "benchmarks it does not"
            ),
            margin=margin,
            benchmarks=n_side_by_side,
        )
        return
    else:
        yield note(
            "reaches_below",
            (
                "the interval includes -{margin:g}, the margin: more data may show on which side it "
                "lies"
            ),
            margin=margin,
        )
    yield (
        note(
            "not_corrected",
            "the interval is not corrected for {benchmarks} benchmarks",
            benchmarks=n_side_by_side,
        )
        if n_side_by_side > 1
        else None
    )


def _population(case: _Case) -> Note | None:
    """Return what holds for clinicians like these, where that is known."""
    low, high = case.held.population_low, case.held.population_high
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    holds = low > -case.margin
    return note(
        "other_clinicians", _other_clinicians, low=low, high=high, holds=holds, margin=case.margin
    )


def _next(kind: DecisionKind, case: _Case) -> Note | None:
    """Return the next useful action: it names what is really lacking."""
    held, jury = case.held, case.jury
    if kind is DecisionKind.SIMULATED:
        return note(*DO_REAL_RATERS)
    if kind is DecisionKind.UNDEFINED:
        return _of_undefined(held, jury)
    if kind is DecisionKind.NO_REFERENCE:
        names = tuple(dict.fromkeys([*case.against, *case.hangs_on]))
        several = note(
            "do_align_clinicians",
            (
                "look at the ratings of {clinicians} first; then train clinicians on the rubric and "
                "have more responses rated by several of them"
            ),
            clinicians=names,
        )
        return (
            several
            if names
            else note(
                "do_train_clinicians",
                "train clinicians on the rubric, and have more responses rated by several of them",
            )
        )
    if kind is DecisionKind.NO_PROTOCOL:
        return note(*(DO_ANALYSE_AS_FIXED if case.claim.protocol else DO_FIX_MARGIN))
    if kind is DecisionKind.EXPLORATORY:
        return note(
            "do_confirm",
            (
                "fix the margin, the jury and the number of responses in a protocol, then confirm on "
                "responses that nobody has rated yet"
            ),
        )
    if kind is DecisionKind.TOO_FEW:
        return _of_too_few(case)
    if kind is DecisionKind.INCONCLUSIVE:
        return _of_unshown(case) or _of_inconclusive(case)
    return note(*(DO_OTHER_JURY if kind is DecisionKind.INFERIOR else DO_EXPORT))


def _of_undefined(held: LikeForLikeRow, jury: AgreementRow) -> Note:
    if held.told("only_clinician"):
        return note("do_second_clinician", "have a second clinician rate the same responses")
    alike = [one["who"] for one in jury.notes if one.code == "tells_none_apart"]
    if alike:
        return note(*(DO_VARIED if "the clinicians" in alike else DO_JURY_THAT_DIFFERS))
    if jury.n_missing > jury.n_responses:
        return note(*DO_RUN_JURY_ON, responses=jury.n_missing)
    if held.told("none_held"):
        return note(
            "do_more_clinicians",
            "have two clinicians rate the same responses, at least {least} of them",
            least=FEW_INSTANCES,
        )
    return note("do_see_notes", "read the notes of the row Like for like (difference)")


def _of_unshown(case: _Case) -> Note | None:
    """Return what to do where the interval alone would do, None where it would not."""
    codes = {one.code for one in case.unshown()}
    if not codes or case.of_interval is not DecisionKind.NON_INFERIOR:
        return None
    if "hangs_on" in codes:
        return note(
            "do_more_raters",
            "have more clinicians rate these responses, and look at the ratings of {clinicians}",
            clinicians=case.hangs_on,
        )
    if "jury_unshown" in codes:
        return note(*DO_OTHER_JURY)
    half = math.floor(case.held.clinician_low / 2 * 100) / 100
    return (
        note(
            "do_narrower_margin",
            (
                "fix a margin of {margin:z.2f} or less for the next study, or have more responses "
                "rated"
            ),
            margin=half,
        )
        if half > 0
        else None
    )


def _of_too_few(case: _Case) -> Note:
    held, missing = case.held, case.jury.n_missing
    planned = case.protocol.responses if case.protocol else 0
    if held.n_instances < FEW_INSTANCES:
        lacking = note(*DO_MORE_INSTANCES, instances=FEW_INSTANCES - held.n_instances)
        more = FEW_INSTANCES - held.n_instances
    elif not math.isfinite(held.low) or held.undefined_resamples > MOST_LOST * held.resamples:
        return note(*DO_VARIED)
    else:
        more = planned - held.n_responses
        lacking = note(
            "do_rate_planned", "have clinicians rate {more:more response}, as planned", more=more
        )
    return note(*DO_RUN_JURY_ON, responses=missing) if missing >= more else lacking


def _of_inconclusive(case: _Case) -> Note:
    """Say how many responses would settle it, an interval's width shrinking as 1/sqrt(n).

    They would bring the low end to -margin where the difference lies well above it. Where it does
    not, but a jury exactly as good as a clinician could not have been shown either, they are those
    that such a jury takes. Else the jury itself is what lacks.
    """
    held, margin = case.held, case.margin
    if (
        case.of_interval is DecisionKind.NON_INFERIOR
        and case.of_misses is not DecisionKind.NON_INFERIOR
    ):
        return note("do_more_unsafe", "have clinicians rate more responses that may be unsafe")
    half = held.icc - (held.low if case.n_side_by_side == 1 else held.corrected_low)
    for code, reach, most in (
        (DO_MORE_RESPONSES, held.icc + margin, MOST_TIMES),
        (DO_MORE_FOR_AN_EQUAL, margin, math.inf),
    ):
        times = (half / reach) ** 2 if reach > 0 else NAN
        if 1 < times <= most and times < math.inf:
            responses = math.ceil(times * held.n_responses)
            if case.jury.n_missing >= responses - held.n_responses:
                return note(*DO_RUN_JURY_ON, responses=case.jury.n_missing)
            return note(*code, responses=responses)
    return note(*DO_OTHER_JURY)


def _gap_words(figures: Figures) -> str:
    gap, low, high = (figures[name] for name in ("gap", "low", "high"))
    between, shown = "no interval", ""
    if low is not None and high is not None:
        between = f"95 % interval {low:z.3f} to {high:z.3f}, for these clinicians"
        shown = NO_DIFFERENCE if low <= 0 <= high else ""
    text = (
        "agreement (ICC) with the other clinicians, each clinician held out in turn: jury {jury:z.3f}"
        f"{_ends(figures['jury_low'], figures['jury_high'])}, one clinician {{clinician:z.3f}}"
        f"{_ends(figures['clinician_low'], figures['clinician_high'])}; difference {gap:z.3f} "
        f"({between}){shown}"
    )
    return filled(text, figures)


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:z.2f} to {high:z.2f})"


def _lower_end(low: float) -> str:
    known = math.isfinite(low)
    return f"the lower end of its interval is {low:z.2f}" if known else "it has no interval"


def _clinicians_unshown(figures: Figures) -> str:
    text = "a clinician's agreement with the others is not shown to be above {floor:g}: "
    return filled(text, figures) + _lower_end(figures["low"])


def _jury_unshown(figures: Figures) -> str:
    text = "the jury's own agreement with the clinicians is not shown: "
    return text + _lower_end(figures["low"])


def _late(figures: Figures) -> str:
    text = "fixed or changed after {ratings:rating}, so that it could be fitted to them: {late}"
    return filled(text, figures)


def _other_clinicians(figures: Figures) -> str:
    shown = "is shown" if figures["holds"] else "is not shown"
    text = (
        "for other clinicians like these, the 95 % interval of the difference is {low:z.3f} to "
        f"{{high:z.3f}}, so non-inferiority {shown} for them at the margin of {{margin:g}}"
    )
    return filled(text, figures)


def _rests_on(figures: Figures) -> str:
    if not figures["responses"]:
        return filled("no response that both scored; the jury scored 0 of {missing}", figures)
    text = (
        "{responses:response} of {instances:instance}, rated by {clinicians:clinician}; the jury "
        f"scored {{responses}} of {figures['responses'] + figures['missing']}"
    )
    return filled(text, figures)
