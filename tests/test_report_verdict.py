"""What a report may say of a jury: only what like for like supports."""

import pytest
from calibration.report.verdict import CORRECTED, WORDS, verdict
from little_study import study
from report_study import table_rows

NAN = float("nan")


def rows(low=0.01, high=0.2, icc=0.1, instances=60, note="", jury_note=""):
    """Return the two rows that a verdict is read from."""
    common = {"benchmark": "b", "n_instances": instances, "n_clinicians": 4, "n_missing": 3}
    held = {"scorer": "like_for_like", "icc": icc, "boot_low": low, "boot_high": high}
    jury = {"scorer": "jury", "icc": 0.9, "boot_low": 0.8, "boot_high": 0.95}
    return [
        {**common, **jury, "n_responses": 97, "note": jury_note},
        {**common, **held, "n_responses": 97, "note": note},
    ]


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, "shown"),
        ({"low": 0.0}, "not_shown"),
        ({"low": -0.01}, "not_shown"),
        ({"low": -0.3, "high": -0.01, "icc": -0.1}, "worse"),
        ({"low": NAN, "high": NAN}, "too_few"),
        ({"instances": 19}, "too_few"),
        ({"note": "21 of 2000 resamples undefined and left out"}, "too_few"),
        ({"note": "20 of 2000 resamples undefined and left out"}, "shown"),
        ({"icc": NAN, "note": "undefined: dr is the only clinician here"}, "undefined"),
        ({"icc": None, "low": None, "high": None, "note": "undefined: why"}, "undefined"),
        ({"note": "simulated raters: dr-1"}, "simulated"),
        ({"jury_note": "scored 9 of 9; simulated raters: j"}, "simulated"),
    ],
)
def test_a_verdict_follows_from_the_interval_of_like_for_like(changed, kind):
    found = verdict(rows(**changed))
    assert (found.kind, found.headline) == (kind, WORDS[kind])


def test_only_a_whole_interval_above_the_margin_says_as_well_as_a_clinician():
    claims = [kind for kind, words in WORDS.items() if words.startswith("The jury agrees")]
    assert claims == ["shown", "worse"]
    assert verdict(rows(low=-0.04), margin=0.05).kind == "shown"
    assert verdict(rows(low=-0.05), margin=0.05).kind == "not_shown"
    assert verdict(rows(low=-0.04, high=-0.01, icc=-0.02), margin=0.05).kind == "shown"


WIDER = "98.33 % interval, for looking at 3 benchmarks (Bonferroni): {} to 0.300"


def test_one_benchmark_of_several_is_claimed_only_by_the_interval_corrected_for_them():
    claimed = verdict(rows(note=WIDER.format("0.001")), looked=3)
    assert (claimed.kind, claimed.headline) == ("shown", WORDS["shown"])
    assert claimed.because.endswith("It holds after correction for looking at 3 benchmarks.")

    for note in (WIDER.format("-0.001"), WIDER.format("0.000"), ""):
        found = verdict(rows(note=note), looked=3)
        assert found.kind == "not_shown"
        assert found.headline.startswith("Not shown once 3 benchmarks are looked at")
    assert verdict(rows(note=WIDER.format("-0.020")), margin=0.03, looked=3).kind == "shown"


def test_what_else_is_said_of_one_benchmark_of_several_is_called_uncorrected():
    for low, high, icc in ((-0.3, -0.1, -0.2), (-0.1, 0.1, 0.0)):
        told = verdict(rows(low, high, icc), looked=4).because
        assert told.endswith("The interval is not corrected for looking at 4 benchmarks.")
        assert "looking at" not in verdict(rows(low, high, icc)).because


def test_the_difference_is_said_in_words_with_its_direction():
    said = "the jury's ICC with the other clinicians is on average {} a clinician's"
    assert said.format("0.100 higher than") in verdict(rows()).because
    assert said.format("0.052 lower than") in verdict(rows(icc=-0.052)).because
    assert said.format("the same as") in verdict(rows(icc=-0.0004)).because


def test_the_interval_of_single_benchmarks_is_corrected_for_their_number_and_of_all_not():
    scores = study(benchmarks=("aci", "mtsamples", "medec"), n=24)
    notes = {
        row["benchmark"]: row["note"]
        for row in table_rows(scores, 200)
        if row["scorer"] == "like_for_like"
    }
    alone = table_rows(scores.of("aci"), 200)
    assert "98.33 % interval, for looking at 3 benchmarks" in notes["aci"]
    assert "Bonferroni" not in notes["combined"]
    assert not any("Bonferroni" in row["note"] for row in alone)
    held = next(row for row in alone if row["scorer"] == "like_for_like")
    assert float(CORRECTED.search(notes["aci"])[1]) < held["boot_low"]


def test_a_high_icc_of_the_jury_alone_claims_nothing():
    found = verdict([one for one in rows() if one["scorer"] == "jury"])
    assert found.kind == "undefined"


def test_a_verdict_says_on_how_many_it_rests():
    found = verdict(rows())
    assert found.basis == (
        "97 responses of 60 instances, rated by 4 clinicians; the jury scored 97 of 100"
    )


def test_a_study_without_jurors_has_no_jury_to_judge():
    only = [{"benchmark": "b", "scorer": "clinicians", "note": ""}]
    assert verdict(only).headline == "There is no jury to judge."


def test_why_it_is_not_known_is_said():
    found = verdict(rows(icc=NAN, note="undefined: dr is the only clinician here"))
    assert "dr is the only clinician here" in found.because


@pytest.mark.parametrize("margin", [-0.1, NAN])
def test_a_margin_below_0_is_refused(margin):
    with pytest.raises(ValueError, match="margin"):
        verdict(rows(), margin)
