"""Figures with settled differences in them: only where they are asked for, and named."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kit.scores import FIELDS, rated
from kit.studies import HEAD, Run, bring_in

from calibration.adjudicated import adjudicated, with_independent
from calibration.scores import RubricShape
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions
from data.card import CONSENSUS, THIRD

N = 40


def study(seed=0):
    """Return scores of three clinicians and two jurors, whole points."""
    random = np.random.default_rng(seed)
    quality = random.normal(3, 1, (N, 1))
    points = np.clip(np.round(quality + random.normal(0, 0.9, (N, 5))), 1, 5)
    return rated(points[:, :3], points[:, 3:])


def settling(scores, score_of, pass_=THIRD, rater="dr9", criterion="safety"):
    """Return the readings that settle some responses: response_id -> score."""
    instances = scores.responses.set_index("response_id")["instance_id"]
    rows = [
        (name, instances[name], "visits", rater, "clinician", criterion, score)
        for name, score in score_of.items()
    ]
    return pd.DataFrame(rows, columns=FIELDS).assign(pass_=pass_, replicate=0)


def rows_of(scores, method="published"):
    asked = AnalysisOptions(method=method, reps=20, seed=0, further=False)
    return {one.scorer: one for one in agreement_rows(scores, asked)}


def test_the_settling_reading_stands_in_the_place_of_the_clinicians_mean():
    scores = study()
    first = list(scores.responses["response_id"])[:12]
    given = {name: float(1 + place % 5) for place, name in enumerate(first)}
    found = adjudicated(scores, settling(scores, given))
    assert (found.responses, found.third, found.consensus) == (12, 12, 0)
    wide = scores.ratings.pivot(index="response_id", columns="rater", values="score")
    people = wide[["dr0", "dr1", "dr2"]].mean(axis=1)
    people.update(pd.Series(given))
    jury = wide[["j0", "j1"]].mean(axis=1)
    r = np.corrcoef(people, jury)[0, 1]
    assert rows_of(found.scores)["jury"].icc == pytest.approx(2 * r / (1 + r), abs=1e-12)


def test_a_consensus_goes_before_a_third_reading_and_half_a_reading_before_none():
    scores = study(3)
    one, two = list(scores.responses["response_id"])[:2]
    third = settling(scores, {one: 1.0})
    both = pd.concat([third, settling(scores, {one: 5.0}, CONSENSUS, "dr8")])
    found = adjudicated(scores, both)
    own = found.scores.ratings.query("response_id == @one and kind == 'clinician'")
    assert own[["rater", "score", "pass_"]].values.tolist() == [["dr8", 5.0, 0]]
    assert (found.third, found.consensus) == (0, 1)
    shapes = {"visits": RubricShape(("safety", "another"), 1, 5)}
    lacking = settling(scores, {two: 2.0}, criterion="another")
    assert adjudicated(replace(scores, rubrics=shapes), lacking).responses == 0
    nothing = adjudicated(scores, settling(scores, {}))
    assert (nothing.scores is scores, nothing.responses) == (True, 0)


def test_what_compares_clinicians_with_one_another_is_of_independent_readings():
    scores = study(4)
    people = scores.ratings[scores.ratings["kind"] == "clinician"]
    spread = people.groupby("response_id")["score"].agg(np.ptp)
    given = dict.fromkeys(spread[spread >= 2].index, 3.0)
    found = adjudicated(scores, settling(scores, given))
    alone, settled = rows_of(scores), rows_of(found.scores)
    assert settled["clinicians"].icc > alone["clinicians"].icc + 0.05  # the worst are gone
    both = {one.scorer: one for one in with_independent([*settled.values()], [*alone.values()])}
    assert list(both) == list(alone)
    for scorer in ("clinicians", "like_for_like"):
        assert both[scorer].icc == alone[scorer].icc
        assert both[scorer].told("independent_readings")
    assert both["jury"] == settled["jury"]


@pytest.fixture
def judged(run: Run, tmp_path: Path) -> Run:
    """Make a study of 24 responses, two clinicians and two jurors, with six differences settled."""
    random = np.random.default_rng(5)
    responses = [HEAD, *(f"i{n},b,context,prompt,,r{n},m{n % 2},text {n}" for n in range(24))]
    ratings = ["response_id,rater,kind,criterion,score,pass"]
    names = ("accuracy", "completeness", "clarity")
    for n in range(24):
        quality = random.normal(3, 1)
        for who in ("dr0", "dr1", "j0", "j1"):
            kind = "clinician" if who.startswith("dr") else "juror"
            for name in names:
                score = int(np.clip(np.round(quality + random.normal(0, 0.9)), 1, 5))
                ratings.append(f"r{n},{who},{kind},{name},{score},0")
        if n < 6:
            pass_ = THIRD if n < 4 else CONSENSUS
            ratings += [f"r{n},dr2,clinician,{name},{1 + n % 5},{pass_}" for name in names]
    bring_in(run, tmp_path, responses, ratings)
    return run


def asked(run: Run, folder: Path, *options: str) -> dict:
    to = folder / "out.json"
    code, _, told = run("analyse", "calibrate", "--reps", "50", "--json", str(to), *options)
    assert code == 0, told
    return json.loads(to.read_text("utf-8"))


def test_figures_are_of_independent_readings_unless_asked_and_say_so(
    judged: Run, tmp_path: Path
) -> None:
    alone = asked(judged, tmp_path)
    assert alone["reading"] == "independent"
    assert alone["adjudicated"] == {"responses": 6, "third": 4, "consensus": 2}
    settled = asked(judged, tmp_path, "--use", "adjudicated")
    assert settled["reading"] == "adjudicated"
    assert settled["adjudicated"] == alone["adjudicated"]
    own, other = ({row["scorer"]: row for row in one["rows"]} for one in (alone, settled))
    assert own.keys() == other.keys()
    assert own["jury"]["icc"] != other["jury"]["icc"]
    assert own["jury"]["n_responses"] == other["jury"]["n_responses"] == 24
    for scorer in ("clinicians", "like_for_like"):
        assert own[scorer]["icc"] == other[scorer]["icc"]
        assert "independent_readings" in {one["code"] for one in other[scorer]["notes"]}
    assert alone["reliability"] == settled["reliability"]
    for options in (("--use", "both"), ("--use", "adjudicated", "--freeze")):
        assert judged("analyse", "calibrate", *options)[0] == 2
    assert (
        judged("study", "protocol", "set", "--margin", "0.1")[0] == 0
    )  # is about independent ones
    assert asked(judged, tmp_path)["decision"]["kind"] != "no_protocol"
    assert asked(judged, tmp_path, "--use", "adjudicated")["decision"]["kind"] == "no_protocol"
