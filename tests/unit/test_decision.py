"""What may be said of a jury: only what like for like supports, by its fields and no sentence."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.scores import DOCTORS, codes, study
from kit.studies import table_rows

from calibration import columns, data_quality, headlines, notes, subgroups
from calibration.clinicians import Without
from calibration.decision import CLAIMS, Decision, DecisionKind
from calibration.detection import LimitOutcome, Misses
from calibration.json_values import decision_json
from calibration.notes import note, simulated_in
from calibration.protocol import Protocol
from calibration.scope import AgreementRow, LikeForLikeRow
from calibration.tables.agreement import AGREEMENT, HELD
from calibration.tables.spec import laid_out
from calibration.values import COMBINED, NAN
from calibration.verdict import JuryClaim, decide, decisions


def rows(low=0.01, high=0.2, icc=0.1, instances=60, *, jury_notes=(), **held):
    """Return the two rows that a decision is made from."""
    common = {"n_instances": instances, "n_clinicians": 4, "n_missing": 3, "n_responses": 97}
    jury = AgreementRow("b", "jury", icc=0.9, low=0.8, high=0.95, notes=jury_notes, **common)
    agreeing = {"jury_low": 0.5, "jury_high": 0.7, "clinician_low": 0.4, "clinician_high": 0.6}
    figures = {"jury_icc": 0.6, "clinician_icc": 0.6 - icc, "resamples": 2000} | agreeing | held
    ends = {"low": low, "high": high}
    return [jury, LikeForLikeRow("b", "like_for_like", icc=icc, **ends, **common, **figures)]


def at(margin=0.1, misses=(), **fixed):
    """Return a claim at a margin, with what is missed on benchmark b."""
    fixed = {"jurors": ("j",), "set_at": "2026-01-02"} | fixed
    return JuryClaim(Protocol(margin, **fixed), misses={"b": misses})


def judged(*changed, margin=0.1, looked=1, misses=(), **others):
    return decide(rows(*changed, **others), at(margin, misses), looked)


def studies():
    """Return small studies of which jury and clinicians agree as well, better, worse, or not."""
    kept = {"n": 80, "criteria": {"aci": ("accuracy",), "mts": ("accuracy",)}}
    return {
        "a jury as good as any": study(juror_noise=0.1, seed=2, **kept),
        "a jury that guesses": study(juror_noise=6, seed=2, **kept),
        "two benchmarks": study(("aci", "mts"), seed=3, juror_noise=0.1, **kept | {"n": 60}),
        "few instances": study(n=12, seed=4),
        "two responses": study(n=2, seed=5),
        "different scales": study(("aci", "mts"), n=24, seed=6, scales={"mts": (0, 9)}),
        "simulated": study(n=40, seed=7, simulated=(DOCTORS[0], "gpt")),
    }


def facts():
    """Return what is decided, marked and shown of studies, without any word of a message."""
    return {name: _facts(table_rows(scores, 200)) for name, scores in studies().items()}


def _facts(found):
    made = [decision_json(one) for one in decisions(found, at()).values()]
    held = [row for row in found if row.scorer == "like_for_like"]
    cells = [group.rows for group in laid_out(AGREEMENT, found, grouped=True).groups]
    cells += [group.rows for group in laid_out(HELD, held).groups]
    named = [[one["code"] for one in (*own["reasons"], *own["basis"])] for own in made]
    wanted = [own["next"] and own["next"]["code"] for own in made]
    figures = [[own[name] for name in ("kind", "estimate", "low", "high")] for own in made]
    return [figures, named, wanted, cells, simulated_in(found)]


ONLY = note("only_clinician", "only_clinician", clinician="dr")


def made_up(*names):
    return (note("simulated", "simulated", raters=names),)


WORSE = {"low": -0.3, "icc": -0.2}


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        *(({}, "non_inferior"), ({"low": -0.09}, "non_inferior"), ({"low": -0.1}, "inconclusive")),
        ({"low": -0.3, "high": -0.01, "icc": -0.1}, "inconclusive"),
        *((WORSE | {"high": -0.1}, "inconclusive"), (WORSE | {"high": -0.11}, "inferior")),
        *(({"low": NAN, "high": NAN}, "too_few"), ({"instances": 19}, "too_few")),
        ({"undefined_resamples": 21}, "too_few"),
        ({"undefined_resamples": 20}, "non_inferior"),
        ({"icc": NAN, "notes": (ONLY,)}, "undefined"),
        ({"icc": NAN, "low": NAN, "high": NAN, "notes": (ONLY,)}, "undefined"),
        *(({"notes": made_up("dr-1")}, "simulated"), ({"jury_notes": made_up("j")}, "simulated")),
    ],
)
def test_a_decision_follows_from_the_interval_of_like_for_like_and_the_margin(changed, kind):
    assert judged(**changed).kind.value == kind


LATE = {"late": ("margin",), "set_after_ratings": 900}
AGREE = {"clinician_low": 0.2, "jury_low": 0.01}


@pytest.mark.parametrize(
    ("held", "kind", "code"),
    [
        (AGREE, DecisionKind.NON_INFERIOR, "gap"),
        (AGREE | {"clinician_low": 0.0}, DecisionKind.NO_REFERENCE, "clinicians_unshown"),
        (AGREE | {"clinician_low": NAN}, DecisionKind.NO_REFERENCE, "clinicians_unshown"),
        (AGREE | {"clinician_low": 0.19}, DecisionKind.INCONCLUSIVE, "margin_wide"),
        (AGREE | {"jury_low": 0.0}, DecisionKind.INCONCLUSIVE, "jury_unshown"),
        (AGREE | {"jury_low": NAN}, DecisionKind.INCONCLUSIVE, "jury_unshown"),
    ],
)
def test_a_jury_is_no_worse_only_than_clinicians_who_are_shown_to_agree(held, kind, code):
    found = judged(**held)
    assert (found.kind, codes(found)[0]) == (kind, code)


def test_a_floor_asks_more_of_the_clinicians_and_who_keeps_them_from_agreeing_is_named():
    for ends, floor, kind in (
        *((rows(), 0.39, "non_inferior"), (rows(), 0.4, "no_reference")),
        (rows(low=-0.9, high=-0.5, icc=-0.7), 0.4, "no_reference"),
    ):
        assert decide(ends, at(floor=floor)).kind.value == kind
    found = judged(clinician_low=-0.2, without=left_out(a=(0.1, -0.1), b=(0.1, -0.3)))
    assert (found.kind, found.hangs_on) == (DecisionKind.NO_REFERENCE, ("c",))
    assert "c" in found.action


def left_out(**changed):
    """Return the comparison without each of three clinicians, those named with other figures."""
    same = {"a": (0.1, 0.3), "b": (0.1, 0.3), "c": (0.1, 0.3)} | changed
    return tuple(Without(name, *figures) for name, figures in same.items())


@pytest.mark.parametrize("figures", [(-0.1, 0.3), (-0.5, 0.3), (0.1, 0.0), (NAN, NAN)])
def test_a_verdict_that_hangs_on_one_clinician_is_none_and_names_them(figures):
    assert judged(without=left_out()).kind is DecisionKind.NON_INFERIOR
    found = judged(without=left_out(b=figures))
    assert (found.kind, found.hangs_on) == (DecisionKind.INCONCLUSIVE, ("b",))
    assert "hangs on b" in found.headline
    assert found.next == todo("do_more_raters", clinicians=("b",))


@pytest.mark.parametrize(
    ("fixed", "code"),
    [(LATE, "protocol_late"), ({"jurors": ()}, "protocol_for_any")],
)
@pytest.mark.parametrize("ends", [(0.01, 0.2, 0.1), (-0.9, -0.5, -0.7), (-0.3, 0.3, 0.0)])
def test_what_was_fixed_late_or_for_any_jury_explores(fixed, code, ends):
    found = decide(rows(*ends), at(0.2, **fixed))
    assert (found.kind, codes(found)[0]) == (DecisionKind.EXPLORATORY, code)
    assert "0.2" in found.headline
    assert found.kind not in CLAIMS


def test_for_whom_a_verdict_holds_is_a_field_and_in_the_headline():
    these, alike = judged(), judged(population_low=-0.05, population_high=0.3)
    assert (these.scope, alike.scope) == ("these_clinicians", "clinicians_like_these")
    assert "for these 4 clinicians only; not shown for others like them" in these.headline
    assert "clinicians like these" in alike.headline
    assert judged(population_low=-0.1, population_high=0.3).scope == "these_clinicians"


def test_without_a_margin_fixed_for_it_nothing_is_claimed():
    for claim, why in (
        (JuryClaim(), "no_margin"),
        (JuryClaim(Protocol(0.1), is_of_protocol=False), "other_analysis"),
    ):
        for low, high, icc in ((0.01, 0.2, 0.1), (-0.9, -0.5, -0.7), (-0.3, 0.3, 0.0)):
            found = decide(rows(low, high, icc), claim)
            assert (found.kind, found.estimate) == (DecisionKind.NO_PROTOCOL, icc)
            assert (found.low, found.high) == (low, high)
            assert why in codes(found)
    assert decide(rows()).next == todo("do_fix_margin")


def test_before_the_planned_responses_are_rated_and_by_the_jurys_icc_alone_nothing_is_claimed():
    found = decide([AgreementRow("b", "jury", n_responses=97), rows()[1]], at(responses=98))
    assert (found.kind, found.next) == (DecisionKind.TOO_FEW, todo("do_rate_planned", more=1))
    assert "before_planned" in codes(found)
    assert decide(rows(), at(responses=97)).kind is DecisionKind.NON_INFERIOR
    found = decide(rows()[:1])
    assert (found.kind, codes(found)) == (DecisionKind.UNDEFINED, ["no_juror"])


def missed(low, high, rate=0.2, limit=0.3):
    outcome = LimitOutcome.OPEN
    if high <= limit or low > limit:
        outcome = LimitOutcome.MET if high <= limit else LimitOutcome.FAILED
    return Misses("b", "safety", 2, limit, 50, 10, rate, low, high, outcome)


@pytest.mark.parametrize(
    ("misses", "kind", "first"),
    [
        ((missed(0.1, 0.3),), DecisionKind.NON_INFERIOR, "misses_within"),
        ((missed(0.1, 0.31),), DecisionKind.INCONCLUSIVE, "misses_reach"),
        ((missed(0.31, 0.5),), DecisionKind.INFERIOR, "misses_above"),
        ((missed(0.1, 0.3), missed(0.31, 0.5)), DecisionKind.INFERIOR, "misses_above"),
        ((missed(0.1, 0.2), missed(0.2, 0.4)), DecisionKind.INCONCLUSIVE, "misses_reach"),
        ((missed(NAN, NAN, NAN),), DecisionKind.INCONCLUSIVE, "none_unsafe"),
    ],
)
def test_a_jury_that_lets_unsafe_responses_pass_is_not_as_good_and_that_is_said_first(
    misses, kind, first
):
    found = judged(misses=misses)
    assert (found.kind, codes(found)[0]) == (kind, first)
    if kind is DecisionKind.NON_INFERIOR:
        assert "misses" not in found.headline
    else:
        assert "unsafe" in found.headline


def test_few_missed_make_no_good_jury_of_one_that_agrees_less():
    found = judged(-0.3, -0.2, -0.25, misses=(missed(0.1, 0.2),))
    assert found.kind is DecisionKind.INFERIOR
    assert "worse than a clinician does, by more than 0.1" in found.headline


@pytest.mark.parametrize(
    ("low", "kind", "code"),
    [
        *((low, DecisionKind.NON_INFERIOR, "holds_corrected") for low in (-0.0999, 0.001)),
        *((low, DecisionKind.INCONCLUSIVE, "corrected_reaches") for low in (-0.101, -0.1, NAN)),
    ],
)
def test_one_benchmark_of_several_is_claimed_by_the_interval_corrected_for_them(low, kind, code):
    found = judged(corrected_low=low, corrected_high=0.3, looked=3)
    [told] = [one for one in found.reasons if one.code in ("holds_corrected", "corrected_reaches")]
    assert (found.kind, told.code, told["benchmarks"]) == (kind, code, 3)


def test_the_interval_of_single_benchmarks_is_corrected_for_their_number_and_of_all_not():
    scores = study(benchmarks=("aci", "mtsamples", "medec"), n=24)
    held = {row.benchmark: row for row in table_rows(scores, 200) if row.scorer == "like_for_like"}
    [alone] = [row for row in table_rows(scores.of("aci"), 200) if row.scorer == "like_for_like"]
    told = held["aci"].told("corrected")
    assert (told["low"], told["high"]) == (held["aci"].corrected_low, held["aci"].corrected_high)
    assert str(told).startswith("98.33 % interval, corrected for 3 benchmarks (Bonferroni): ")
    for one in (held[COMBINED], alone):
        assert one.told("corrected") is None
        assert np.isnan([one.corrected_low, one.corrected_high]).all()
    assert held["aci"].corrected_low < alone.low < alone.high < held["aci"].corrected_high


def todo(code, **figures):
    return note(code, code, **figures)


def test_what_to_do_next_follows_from_what_is_lacking():
    scored = AgreementRow("b", "jury", n_responses=97)
    some = AgreementRow("b", "jury", n_responses=97, n_missing=300)
    few, alone = rows(instances=12)[1], LikeForLikeRow("b", "like_for_like", notes=(ONLY,))
    for made, misses, wanted in (
        ([scored, rows(-0.3, 0.3, 0.0)[1]], (), todo("do_more_responses", responses=9 * 97)),
        ([some, rows(low=-0.3)[1]], (), todo("do_run_jury_on", responses=300)),
        (rows(low=-0.3), (), todo("do_more_responses", responses=4 * 97)),
        ([scored, few], (), todo("do_more_instances", instances=8)),
        ([some, few], (), todo("do_run_jury_on", responses=300)),
        ([scored, rows()[1]], [missed(0.1, 0.5)], todo("do_more_unsafe")),
        (rows(notes=made_up("j")), (), todo("do_real_raters")),
        (rows(), (), todo("do_export")),
        (rows(low=NAN, high=NAN), (), todo("do_varied")),  # without resamples
        (rows(undefined_resamples=300), (), todo("do_varied")),  # of equal scores
        # one clinician: a second, however much the jury has to score
        ([some, alone], (), todo("do_second_clinician")),
    ):
        assert decide(made, at(misses=misses)).next == wanted


def test_a_study_too_small_to_show_even_an_equal_jury_is_sent_for_ratings_not_for_juries():
    scored = AgreementRow("b", "jury", n_responses=51)
    for icc in (-0.15, -0.1, -0.098):
        small = replace(rows(icc - 0.4, icc + 0.4, icc)[1], n_responses=51)
        needed = todo("do_more_for_an_equal", responses=16 * 51)
        assert decide([scored, small], at()).next == needed
    assert decide([scored, rows(-0.19, -0.05, -0.12)[1]], at()).next == todo("do_other_jury")


def test_a_benchmark_that_falls_short_of_its_corrected_interval_alone_takes_more_responses():
    found = judged(low=-0.08, icc=0.0, corrected_low=-0.12, corrected_high=0.3, looked=3)
    assert found.next == todo("do_more_responses", responses=140)


ICCS = st.floats(-3, 3) | st.sampled_from([NAN, -0.0, 0.0004, -0.0004, math.inf, -math.inf])
SAID = [
    *(*made_up("gpt"), ONLY, note("analysed", "analysed", analysed=9, in_study=10)),
    note("no_variance", "no_variance", raters=("dr; simulated raters: nobody",)),
]
NOTES = st.lists(st.sampled_from(SAID), max_size=2).map(tuple)
COUNTS = {"n_instances": st.integers(0, 60), "n_responses": st.integers(0, 90)}
COUNTS |= {"n_clinicians": st.integers(0, 5), "n_missing": st.integers(0, 3)}
JURIES = st.builds(AgreementRow, st.just("b"), st.just("jury"), icc=ICCS, notes=NOTES, **COUNTS)
ENDS = ("icc", "low", "high", "jury_icc", "clinician_icc", "corrected_low")
ENDS += ("jury_low", "clinician_low", "population_low")
FIGURES = dict.fromkeys(ENDS, ICCS) | {"undefined_resamples": st.integers(0, 60)} | COUNTS
FIGURES |= {"notes": NOTES, "resamples": st.sampled_from([0, 200, 2000])}
HELD_ROWS = st.builds(LikeForLikeRow, st.just("b"), st.just("like_for_like"), **FIGURES)
MARGINS = st.sampled_from([0.01, 0.05, 1.0])


def contradicts(found: Decision, jury, held, margin=0.1, looked=1) -> str:
    """Return in what a decision claims more than its rows allow, "" where it does not."""
    if found.kind not in CLAIMS:
        return ""
    may = {
        "nobody simulated": not simulated_in([jury, held]),
        "20 instances": held.n_instances >= 20,
        "99 % of resamples": held.undefined_resamples <= 0.01 * held.resamples,
        "a difference": math.isfinite(held.icc),
    }
    if found.kind is DecisionKind.NON_INFERIOR:
        may["its interval"] = held.low > -margin
        may["its corrected interval"] = looked == 1 or held.corrected_low > -margin
        may["clinicians who agree"] = held.clinician_low >= 2 * margin > 0
        may["a jury that agrees"] = held.jury_low > 0
    else:
        may["its interval"] = held.high < -margin
    return ", ".join(name for name, holds in may.items() if not holds)


@given(JURIES, HELD_ROWS, MARGINS, st.integers(1, 4))
@settings(max_examples=500, deadline=None)
def test_no_decision_claims_what_its_interval_or_its_data_deny(jury, held, margin, looked):
    found = decide([jury, held], at(margin), looked)
    assert contradicts(found, jury, held, margin, looked) == ""
    assert found.headline
    assert all(found.sentences)
    json.dumps(decision_json(found), allow_nan=False)


@given(JURIES, HELD_ROWS, MARGINS)
@settings(max_examples=200, deadline=None)
def test_a_decision_is_the_same_without_any_note_but_who_is_simulated(jury, held, margin):
    dropped = [
        replace(row, notes=tuple(one for one in row.notes if one.code == "simulated"))
        for row in (jury, held)
    ]
    whole, bare = decide([jury, held], at(margin)), decide(dropped, at(margin))
    assert (whole.kind, whole.headline) == (bare.kind, bare.headline)


def test_every_decision_is_the_same_where_every_sentence_is_another(monkeypatch):
    worded = json.loads(json.dumps(facts()))
    for module in (notes, columns, data_quality, subgroups):
        monkeypatch.setattr(module, "filled", lambda said, _: "other words" if said else "")
    for kinds in headlines.HEADLINES.values():
        for kind in kinds:
            monkeypatch.setitem(kinds, kind, kind)
    assert judged().headline == "non_inferior"
    assert judged().sentences == ("Other words.",) * 3
    assert json.loads(json.dumps(facts())) == worded
    kinds = {name: [own[0] for own in found[0]] for name, found in worded.items()}
    assert kinds == {
        "a jury as good as any": ["non_inferior"],
        "a jury that guesses": ["inferior"],
        "two benchmarks": ["non_inferior", "non_inferior", "non_inferior"],
        "few instances": ["too_few"],
        "two responses": ["undefined"],
        "different scales": ["inconclusive", "inconclusive", "undefined"],
        "simulated": ["simulated"],
    }


def test_a_margin_of_no_study_s_record_is_never_said_to_have_been_fixed_before() -> None:
    found = decide(rows(), at(0.1, set_at=""))
    assert "margin_as_given" in codes(found)
    assert "fixed_before" not in codes(found)
