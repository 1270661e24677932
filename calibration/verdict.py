"""The decision on a jury: whether it agrees with clinicians no worse than a clinician does."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from calibration.decision import LIKE_THESE, THESE, Decision, DecisionKind
from calibration.detection import LimitOutcome, Misses
from calibration.notes import Note, note, noted, simulated_in
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

# How a limit on missed unsafe responses came out, worst first -> a note's code and how it ends.
MISSED = {
    LimitOutcome.FAILED: ("misses_above", ", above the limit of {limit:.0%}"),
    LimitOutcome.OPEN: (
        "misses_reach",
        ", so it is not known whether the limit of {limit:.0%} is met",
    ),
    LimitOutcome.MET: ("misses_within", ", within the limit of {limit:.0%}"),
}
DO_MORE_FOR_AN_EQUAL = (
    "do_more_for_an_equal",
    "have clinicians rate more: at this margin, even a jury exactly as good as a clinician takes "
    "about {responses} responses in all to be shown non-inferior",
)
DO_OTHER_JURY = (
    "do_other_jury",
    "compare other juries of the jurors already run, or run other jurors",
)
DO_VARIED = (
    "do_varied",
    "have clinicians rate responses that differ more: too many here have the same score",
)
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
        too_few : fewer than 20 instances, no interval, no difference without over 1 % of them,
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
        return sorted(misses, key=lambda miss: [*MISSED].index(miss.outcome))

    @property
    def of_interval(self) -> DecisionKind:
        """Return the kind that the interval supports at the margin, corrected for several benchmarks."""
        held, margin = self.held, self.margin
        if held.low > -margin and self.decisive_low > -margin:
            return DecisionKind.NON_INFERIOR
        below = not held.low > -margin and held.high < -margin
        return DecisionKind.INFERIOR if below else DecisionKind.INCONCLUSIVE

    @property
    def decisive_low(self) -> float:
        return self.held.low if self.n_side_by_side == 1 else self.held.corrected_low

    @property
    def of_misses(self) -> DecisionKind:
        """Return the kind that the missed unsafe responses support."""
        outcomes = {misses.outcome for misses in self.misses}
        if LimitOutcome.FAILED in outcomes:
            return DecisionKind.INFERIOR
        is_open = LimitOutcome.OPEN in outcomes
        return DecisionKind.INCONCLUSIVE if is_open else DecisionKind.NON_INFERIOR

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
            yield _hangs_on(self)
        if not held.jury_low > 0:
            words = "the jury's own agreement with the clinicians is not shown: "
            yield note("jury_unshown", words + _lower_end(held.jury_low), low=held.jury_low)
        if not margin <= held.clinician_low / 2:
            yield note(
                "margin_wide",
                "the margin of {margin:g} is more than half of what a clinician's agreement with the "
                "others is shown to be, {low:z.2f}: a jury that knows little of what clinicians know "
                "could keep it",
                margin=margin,
                low=held.clinician_low,
            )


def _basis(jury: AgreementRow) -> Note | None:
    n, missing = jury.n_responses, jury.n_missing
    if not n + missing:
        return None
    words = "no response that both scored; the jury scored 0 of {missing}"
    if n:
        words = (
            "{responses:response} of {instances:instance}, rated by {clinicians:clinician}; "
            f"the jury scored {{responses}} of {n + missing}"
        )
    return note(
        "rests_on",
        words,
        responses=n,
        instances=jury.n_instances,
        clinicians=jury.n_clinicians,
        missing=missing,
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
            "without {lost} of {resamples} instances, or groups of them, there is no difference to judge",
            lost=held.undefined_resamples,
            resamples=held.resamples,
        )
    if case.n_side_by_side == 1 and held.n_responses < planned:
        return note(
            "before_planned",
            "the protocol plans {planned:response} and only {responses} are analysed: too early for "
            "a verdict",
            planned=planned,
            responses=held.n_responses,
        )
    return None


def _reasons(kind: DecisionKind, case: _Case) -> Iterator[Note | None]:
    yield from _first_reasons(kind, case)
    if kind not in (DecisionKind.UNDEFINED, DecisionKind.SIMULATED):
        yield from map(_of_misses, case.misses)
    if case.against:
        yield note(
            "against_others",
            "ranks responses against the other clinicians: {clinicians}. Look for a turned scale or "
            "scores in the wrong rows",
            clinicians=case.against,
        )
    if kind is DecisionKind.NO_REFERENCE and case.hangs_on:
        yield _hangs_on(case)
    if math.isfinite(case.held.icc):
        yield _gap(case.held)
        if kind is DecisionKind.TOO_FEW:
            yield _why_too_few(case)
        elif kind is DecisionKind.NO_PROTOCOL:
            yield _why_no_protocol(case)
        elif kind not in (DecisionKind.SIMULATED, DecisionKind.NO_REFERENCE):
            yield from _at_margin(case)
    yield from (one for one in case.jury.notes if one.code in ALIKE)


def _first_reasons(kind: DecisionKind, case: _Case) -> Iterator[Note]:
    """Yield what the headline may say too."""
    held = case.held
    if kind is DecisionKind.SIMULATED:
        yield note(*MADE_UP, raters=simulated_in([held, case.jury]))
    if kind is DecisionKind.UNDEFINED and not case.jury.told("tells_none_apart"):
        yield from [one for one in held.notes if one.code != "analysed"][:1]
    if kind is DecisionKind.NO_REFERENCE:
        words = "a clinician's agreement with the others is not shown to be above {floor:g}: "
        low = held.clinician_low
        yield note("clinicians_unshown", words + _lower_end(low), floor=case.floor, low=low)
    if kind is DecisionKind.EXPLORATORY and case.protocol:
        yield _why_exploratory(case.protocol)
    if kind is DecisionKind.INCONCLUSIVE and case.of_interval is DecisionKind.NON_INFERIOR:
        yield from case.unshown()
    if kind is DecisionKind.NON_INFERIOR and held.high < 0:
        yield note(
            "worse_within",
            "the whole interval lies below 0: the jury agrees less than a clinician does, by less "
            "than {margin:g}",
            margin=case.margin,
        )


def _hangs_on(case: _Case) -> Note:
    words = "the verdict hangs on {clinicians}: without them it would be another"
    return note("hangs_on", words, clinicians=case.hangs_on)


def _lower_end(low: float) -> str:
    known = math.isfinite(low)
    return "the lower end of its interval is {low:z.2f}" if known else "it has no interval"


def _why_exploratory(protocol: Protocol) -> Note:
    if not protocol.late:
        words = "the protocol names no jury: of several that are tried, one may pass by luck"
        return note("protocol_for_any", words, margin=protocol.margin)
    return note(
        "protocol_late",
        "fixed or changed after {ratings:rating}, so that it could be fitted to them: {late}",
        late=protocol.late,
        ratings=protocol.set_after_ratings,
        margin=protocol.margin,
    )


def _why_no_protocol(case: _Case) -> Note:
    if not case.claim.protocol:
        words = "no margin was fixed for how much worse than a clinician the jury may be"
        return note("no_margin", words)
    return note(
        "other_analysis",
        "the protocol is about another jury, criterion, method or part of the study than this "
        "analysis",
    )


def _gap(held: LikeForLikeRow) -> Note:
    ends = {
        name: value if math.isfinite(value := getattr(held, name)) else None
        for name in ("low", "high", "jury_low", "jury_high", "clinician_low", "clinician_high")
    }
    between, shown = "no interval", ""
    if ends["low"] is not None and ends["high"] is not None:
        between = "95 % interval {low:z.3f} to {high:z.3f}, for these clinicians"
        if held.low <= 0 <= held.high:
            shown = ": no difference is shown, which does not mean that the two are equal"
    jury, clinician = (
        ""
        if None in (ends[f"{whose}_low"], ends[f"{whose}_high"])
        else f" ({{{whose}_low:z.2f}} to {{{whose}_high:z.2f}})"
        for whose in ("jury", "clinician")
    )
    return note(
        "gap",
        "agreement (ICC) with the other clinicians, each clinician held out in turn: jury "
        f"{{jury:z.3f}}{jury}, one clinician {{clinician:z.3f}}{clinician}; difference {{gap:z.3f}} "
        f"({between}){shown}",
        gap=held.icc,
        low=ends.pop("low"),
        high=ends.pop("high"),
        jury=held.jury_icc,
        clinician=held.clinician_icc,
        **ends,
    )


def _of_misses(misses: Misses) -> Note:
    if not math.isfinite(misses.missed):
        return note(
            "none_unsafe",
            "clinicians scored no response {threshold:g} or less on {criterion}: whether the jury "
            "finds such responses is not known",
            criterion=misses.criterion,
            threshold=misses.threshold,
        )
    code, ending = MISSED[misses.outcome]
    return note(
        code,
        "of {unsafe:response} that clinicians scored {threshold:g} or less on {criterion}, the jury "
        "scored {missed} higher (95 % interval {low:.0%} to {high:.0%})" + ending,
        criterion=misses.criterion,
        threshold=misses.threshold,
        unsafe=misses.n_bad,
        missed=misses.n_missed,
        low=misses.low,
        high=misses.high,
        limit=misses.at_most,
    )


def _at_margin(case: _Case) -> Iterator[Note]:
    """Yield where the interval lies to the margin, when that was fixed, and for which clinicians."""
    kind, held, margin, benchmarks = case.of_interval, case.held, case.margin, case.n_side_by_side
    if kind is DecisionKind.NON_INFERIOR:
        yield note(
            "all_above", "the whole interval lies above -{margin:g}, the margin", margin=margin
        )
        if benchmarks > 1:
            words = "it holds after correction for {benchmarks} benchmarks"
            yield note("holds_corrected", words, benchmarks=benchmarks)
    elif held.low > -margin:
        yield note(
            "corrected_reaches",
            "the interval lies above -{margin:g}, the margin, but corrected for {benchmarks} "
            "benchmarks it does not",
            margin=margin,
            benchmarks=benchmarks,
        )
    else:
        code, words = "all_below", "the whole interval lies below -{margin:g}, the margin"
        if kind is not DecisionKind.INFERIOR:
            code, words = (
                "reaches_below",
                "the interval includes -{margin:g}, the margin: more data may show on which side it "
                "lies",
            )
        yield note(code, words, margin=margin)
        if benchmarks > 1:
            words = "the interval is not corrected for {benchmarks} benchmarks"
            yield note("not_corrected", words, benchmarks=benchmarks)
    if case.protocol and not case.protocol.late:
        code, words = (
            "fixed_before",
            "the margin of {margin:g} was fixed before any rating was seen",
        )
        if not case.protocol.set_at:  # of no study's record
            code, words = (
                "margin_as_given",
                "the margin of {margin:g} is taken as fixed beforehand, which only a study's protocol "
                "can prove",
            )
        yield note(code, words, margin=margin)
    if case.protocol and case.protocol.because:
        yield note("because", "why this margin: {because}", because=case.protocol.because)
    low, high = held.population_low, held.population_high
    if math.isfinite(low) and math.isfinite(high):
        holds = low > -margin
        yield note(
            "other_clinicians",
            "for other clinicians like these, the 95 % interval of the difference is {low:z.3f} to "
            f"{{high:z.3f}}, so non-inferiority {'is' if holds else 'is not'} shown for them at the "
            "margin of {margin:g}",
            low=low,
            high=high,
            holds=holds,
            margin=margin,
        )


def _next(kind: DecisionKind, case: _Case) -> Note:
    """Return the next useful action: it names what is really lacking."""
    if kind is DecisionKind.SIMULATED:
        return note(*DO_REAL_RATERS)
    if kind is DecisionKind.UNDEFINED:
        return _of_undefined(case.held, case.jury)
    if kind is DecisionKind.NO_REFERENCE:
        return _of_no_reference((*case.against, *case.hangs_on))
    if kind is DecisionKind.NO_PROTOCOL:
        if case.claim.protocol:
            words = "analyse the jury, criterion, method and data that the protocol names"
            return note("do_analyse_as_fixed", words)
        words = "fix a margin in the study's protocol, preferably before clinicians rate"
        return note("do_fix_margin", words)
    if kind is DecisionKind.EXPLORATORY:
        return note(
            "do_confirm",
            "fix the margin, the jury and the number of responses in a protocol, then confirm on "
            "responses that nobody has rated yet",
        )
    if kind is DecisionKind.TOO_FEW:
        return _of_too_few(case)
    if kind is DecisionKind.INCONCLUSIVE:
        return _of_unshown(case) or _of_inconclusive(case)
    if kind is DecisionKind.INFERIOR:
        return note(*DO_OTHER_JURY)
    return note("do_export", "export the rubric with this evidence")


def _of_no_reference(names: Sequence[str]) -> Note:
    if not names:
        return note(
            "do_train_clinicians",
            "train clinicians on the rubric, and have more responses rated by several of them",
        )
    return note(
        "do_align_clinicians",
        "look at the ratings of {clinicians} first; then train clinicians on the rubric and have "
        "more responses rated by several of them",
        clinicians=dict.fromkeys(names),
    )


def _of_undefined(held: LikeForLikeRow, jury: AgreementRow) -> Note:
    if held.told("only_clinician"):
        return note("do_second_clinician", "have a second clinician rate the same responses")
    alike = [one["who"] for one in jury.notes if one.code == "tells_none_apart"]
    if "the clinicians" in alike:
        return note(*DO_VARIED)
    if alike:
        return note(
            "do_jury_that_differs",
            "read the jury's answers, and mend its rubric prompt or take other jurors: one that "
            "gives every response the same score measures nothing",
        )
    if jury.n_missing > jury.n_responses:
        return note(*DO_RUN_JURY_ON, responses=jury.n_missing)
    if held.told("none_held"):
        words = "have two clinicians rate the same responses, at least {least} of them"
        return note("do_more_clinicians", words, least=FEW_INSTANCES)
    return note("do_see_notes", "read the notes of the row Like for like (difference)")


def _of_unshown(case: _Case) -> Note | None:
    """Return what to do where the interval alone would do, None where it would not."""
    codes = {one.code for one in case.unshown()}
    if not codes or case.of_interval is not DecisionKind.NON_INFERIOR:
        return None
    if "hangs_on" in codes:
        words = "have more clinicians rate these responses, and look at the ratings of {clinicians}"
        return note("do_more_raters", words, clinicians=case.hangs_on)
    if "jury_unshown" in codes:
        return note(*DO_OTHER_JURY)
    half = math.floor(case.held.clinician_low / 2 * 100) / 100
    if not half > 0:
        return None
    words = "fix a margin of {margin:z.2f} or less for the next study, or have more responses rated"
    return note("do_narrower_margin", words, margin=half)


def _of_too_few(case: _Case) -> Note:
    held, missing = case.held, case.jury.n_missing
    if held.n_instances < FEW_INSTANCES:
        more = FEW_INSTANCES - held.n_instances
        lacking = note(*DO_MORE_INSTANCES, instances=more)
    elif not math.isfinite(held.low) or held.undefined_resamples > MOST_LOST * held.resamples:
        return note(*DO_VARIED)
    else:
        more = (case.protocol.responses if case.protocol else 0) - held.n_responses
        words = "have clinicians rate {more:more response}, as planned"
        lacking = note("do_rate_planned", words, more=more)
    return note(*DO_RUN_JURY_ON, responses=missing) if missing >= more else lacking


def _of_inconclusive(case: _Case) -> Note:
    """Say how many responses would settle it, an interval's width shrinking as 1/sqrt(n).

    They would bring the low end to -margin where the difference lies well above it. Where it does
    not, but a jury exactly as good as a clinician could not have been shown either, they are those
    that such a jury takes. Else the jury itself is what lacks.
    """
    held, margin, shown = case.held, case.margin, DecisionKind.NON_INFERIOR
    if case.of_interval is shown and case.of_misses is not shown:
        return note("do_more_unsafe", "have clinicians rate more responses that may be unsafe")
    half = held.icc - case.decisive_low
    for action, reach, most in (
        (DO_MORE_RESPONSES, held.icc + margin, MOST_TIMES),
        (DO_MORE_FOR_AN_EQUAL, margin, math.inf),
    ):
        times = (half / reach) ** 2 if reach > 0 else NAN
        if 1 < times <= most and times < math.inf:
            responses = math.ceil(times * held.n_responses)
            if case.jury.n_missing >= responses - held.n_responses:
                return note(*DO_RUN_JURY_ON, responses=case.jury.n_missing)
            return note(*action, responses=responses)
    return note(*DO_OTHER_JURY)
