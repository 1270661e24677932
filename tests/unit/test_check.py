"""A verdict from one table of scores: who is who, what is refused, and figures as of a study."""

import numpy as np
import pandas as pd
import pytest

import calibration
import medjury
from calibration.protocol import Protocol
from data.errors import BadInput
from data.schema import Kind
from medjury.services.check import kind_of

RNG = np.random.default_rng(45)
TRUE = RNG.normal(3, 1, 80)
NAMES = ("dr_a", "dr_b", "dr_c", "gpt4", "claude")


def score(noise: float) -> list[int]:
    return [int(one) for one in np.clip(np.round(TRUE + RNG.normal(0, noise, len(TRUE))), 1, 5)]


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    own = {name: score(0.6) for name in NAMES}
    return pd.DataFrame({"item": [f"n{n}" for n in range(len(TRUE))], **own})


def melted(wide: pd.DataFrame) -> pd.DataFrame:
    long = wide.melt("item", var_name="rater", value_name="score")
    return long.assign(kind=long["rater"].map(lambda name: kind_of(name)))


def test_figures_are_those_of_the_agreement_table_wide_or_long(wide: pd.DataFrame) -> None:
    long = melted(wide)
    known = calibration.agreement(
        long.rename(columns={"item": "response_id"}),
        scale=(1, 5),
        protocol=Protocol(0.1, jurors=("claude", "gpt4")),
    )
    for found in (medjury.check(wide, margin=0.1), medjury.check(long, margin=0.1)):
        figures = ["icc", "low", "high", "n_responses"]
        assert found.table["scorer"].tolist() == known.table["scorer"].tolist()
        assert np.allclose(
            found.table[figures].astype(float), known.table[figures].astype(float), equal_nan=True
        )
        assert (found.decision.kind, found.decision.margin) == (known.decision.kind, 0.1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dr_a", Kind.CLINICIAN),
        ("Human1", Kind.CLINICIAN),
        ("expert-rating", Kind.CLINICIAN),
        ("GPT-4o", Kind.JUROR),
        ("llm_judge", Kind.JUROR),
        ("claude3", Kind.JUROR),
        ("ROUGE-L", Kind.METRIC),
        ("metric", Kind.METRIC),
        ("human_judge", ""),
        ("a", ""),
        ("drama", ""),
    ],
)
def test_who_is_who_is_told_by_whole_words_of_a_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_what_was_guessed_is_said_and_named_raters_alone_are_taken(wide: pd.DataFrame) -> None:
    found = medjury.check(wide, humans=["dr_a", "dr_b"], judges=["gpt4"])
    [who] = [dict(one.figures) for one in found.notes if one.code == "who_is_who"]
    assert (list(who["humans"]), list(who["judges"])) == (["dr_a", "dr_b"], ["gpt4"])
    [left] = [dict(one.figures) for one in found.notes if one.code == "columns_left"]
    assert set(left["columns"]) == {"dr_c", "claude"}


@pytest.mark.parametrize(
    ("change", "asked", "match"),
    [
        (lambda one: one.rename(columns=lambda name: name[-1]), {}, "--human"),
        (lambda one: one, {"humans": ["dr_z"]}, "nobody is called dr_z"),
        (lambda one: one, {"item": "note"}, "no column note"),
        (lambda one: one.assign(dr_a=["good", *one["dr_a"][1:]]), {}, "n0: 'good' is no score"),
        (lambda one: pd.concat([one, one[:1]]), {}, "two scores for n0"),
        (lambda one: one.assign(item=""), {}, "names no item"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(
    wide: pd.DataFrame, change, asked, match
) -> None:
    with pytest.raises(BadInput, match=match):
        medjury.check(change(wide), **asked)


def test_empty_cells_stay_missing_and_are_counted(wide: pd.DataFrame) -> None:
    holes = wide.astype(object).copy()
    holes.loc[:4, "dr_a"] = "NA"
    holes.loc[5:6, "gpt4"] = None
    found = medjury.check(holes)
    [note] = [one for one in found.notes if one.code == "cells_empty"]
    assert dict(note.figures)["number"] == 7
    jury = found.table.set_index("scorer").loc["jury"]
    assert int(jury["n_responses"]) == len(wide) - 2


def test_criteria_make_a_composite_and_one_can_be_asked_for(wide: pd.DataFrame) -> None:
    columns = {f"{name}.{one}": score(0.6) for name in NAMES for one in ("accuracy", "clarity")}
    frame = pd.DataFrame({"item": wide["item"], **columns})
    both, one = medjury.check(frame), medjury.check(frame, criterion="accuracy")
    of = [found.table.set_index("scorer").loc["jury", "icc"] for found in (both, one)]
    assert of[0] != of[1]
    alone = frame[["item", *(f"{name}.accuracy" for name in NAMES)]]
    assert medjury.check(alone).table["icc"][0] == pytest.approx(of[1])


def test_of_pass_and_fail_what_fails_is_found_or_missed(wide: pd.DataFrame) -> None:
    passing = wide.assign(**{name: np.where(wide[name] > 2, "pass", "fail") for name in NAMES})
    found = medjury.check(passing, judges=["gpt4"]).calibration
    [row] = [one for one in found.detection if one.scorer == "jury"]
    clinicians = (wide[["dr_a", "dr_b", "dr_c"]] > 2).mean(axis=1)
    fails, flagged = clinicians <= 0, wide["gpt4"] <= 2
    assert (row.n, row.n_bad) == (len(wide), int(fails.sum()))
    assert row.sensitivity == pytest.approx(flagged[fails].mean())
    assert row.specificity == pytest.approx((~flagged)[~fails].mean())


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda one: one[["item", "dr_a", "gpt4"]], "undefined"),
        (lambda one: one.assign(gpt4=3, claude=3), "undefined"),
        (lambda one: one[:12], "too_few"),
        (lambda one: one, "no_protocol"),
    ],
)
def test_nothing_is_claimed_without_a_second_human_spread_or_enough_items(
    wide: pd.DataFrame, change, kind: str
) -> None:
    assert medjury.check(change(wide)).decision.kind == kind


def test_a_dot_in_a_models_name_is_no_criterion() -> None:
    frame = pd.DataFrame({"experts": [1, 2, 3, 4] * 5, "claude-3.7-sonnet": [1, 2, 3, 5] * 5})
    found = medjury.check(frame)
    assert found.calibration.jury == ["claude-3.7-sonnet"]
    frame = frame.rename(columns={"experts": "experts.tone", "claude-3.7-sonnet": "gpt-4.1.tone"})
    assert medjury.check(frame).calibration.jury == ["gpt-4.1"]


def test_of_pass_and_fail_the_failing_share_is_corrected_for_the_judges_errors() -> None:
    human = [0, 0, 1, 1, 1, 1, 1, 1, 1, 1] * 6 + [""] * 60
    judge = [0, 1, 0, 1, 1, 1, 1, 1, 1, 1] * 12
    found = medjury.check(pd.DataFrame({"human": human, "judge": judge}, dtype=object).astype(str))
    row = next(row for row in found.calibration.detection if row.scorer == "jury")
    assert (row.n, row.n_all, row.sensitivity, row.specificity) == (60, 120, 0.5, 0.875)
    assert row.corrected_rate == pytest.approx((0.2 - 0.125) / (0.5 - 0.125))
    assert row.corrected_low < row.corrected_rate < row.corrected_high
