"""Composites: scales that differ, answers in the place of scores, z within raters, and the responses that are analysed."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from kit.scores import FIELDS, scores_of, study

from calibration.answered import abstention_rows, applicability_rows, disputed_rows
from calibration.columns import column_icc
from calibration.rating_matrix import (
    analysed_grid,
    composites,
    mean_of_given,
    without_variance,
    z_within_raters,
)
from calibration.scope import scopes, without_instances
from calibration.scores import RATING_KEY, RubricShape, Scores
from calibration.table import ENOUGH_EACH, LOWERED, agreement_rows
from calibration.values import AnalysisOptions
from data.card import CANNOT_TELL, NOT_APPLICABLE, Reply
from data.errors import BadInput, BadRubric, OffScale
from data.question import every_score
from data.rubric import read_rubric, rubric_toml
from jury.parse import parse

NAN = np.nan
CLINICIANS = 20


def test_z_is_pandas_mean_and_sd_with_ddof_1_over_what_a_rater_gave():
    random = np.random.default_rng(0)
    table = random.normal(size=(30, 4))
    table[random.random(table.shape) < 0.3] = NAN
    frame = pd.DataFrame(table)
    expected = ((frame - frame.mean()) / frame.std(ddof=1)).to_numpy()
    assert z_within_raters(table) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("column", "is_flat"),
    [
        ([3.0, 3.0, 3.0], True),
        ([(5 + 4 + 4) / 3, (4 + 5 + 4) / 3, 13 / 3 + 1e-15], True),  # rounding is no variance
        ([0.8501, 0.8502, 0.8503], False),  # but a narrow metric's is
        ([3, NAN, NAN], True),
        ([NAN] * 3, True),
    ],
)
def test_equal_single_or_no_scores_are_without_variance(column, is_flat):
    table = np.column_stack([column, [1.0, 2.0, 4.0]])
    assert without_variance(table).tolist() == [is_flat, False]
    assert np.isnan(z_within_raters(table)[:, 0]).all() == is_flat


def test_the_analysed_set_is_what_a_clinician_rated():
    rows = [
        *(("r2", "i1", "aci", "dr", "clinician", 4.0), ("r1", "i1", "aci", "dr", "clinician", 3.0)),
        ("r1", "i1", "aci", "j0", "juror", 2.0),
        ("r3", "i2", "aci", "j0", "juror", 1.0),  # no clinician
        ("r4", "i4", "chw", "dr", "clinician", 5.0),  # another benchmark
    ]
    rated = pd.DataFrame(rows, columns=[*FIELDS[:5], "composite"])
    grid = analysed_grid(rated, ["aci"], jurors=["j0", "j1"], metrics=[])
    assert (grid.responses, grid.raters) == (("r1", "r2"), ("dr", "j0", "j1"))
    assert (grid.clusters.tolist(), grid.n_clusters) == ([0, 0], 1)
    assert grid.composites == pytest.approx(np.array([[3, 2, NAN], [4, NAN, NAN]]), nan_ok=True)


@pytest.mark.parametrize("each", [5, 10])
def test_z_within_few_responses_lowers_the_icc_by_about_what_the_table_says(each):
    random, lowered = np.random.default_rng(each), []
    n = each * CLINICIANS // 2
    for _ in range(150):
        quality = random.normal(size=(n, 1))
        scores = quality + random.normal(size=(n, CLINICIANS + 1))
        readers = (2 * np.arange(n)[:, None] + [0, 1]) % CLINICIANS
        given = np.full((n, CLINICIANS), NAN)
        np.put_along_axis(given, readers, np.take_along_axis(scores, readers, axis=1), axis=1)
        jury = z_within_raters(scores[:, -1:])[:, 0]
        as_if_known = mean_of_given(given / np.sqrt(2))
        both = as_if_known, mean_of_given(z_within_raters(given))
        iccs = [column_icc(column, jury, "paper") for column in both]
        lowered.append(iccs[0] - iccs[1])
    assert np.mean(lowered) == pytest.approx(LOWERED / each, abs=0.02)


@pytest.mark.parametrize(
    ("n", "method", "said"), [(12, "paper", True), (60, "paper", False), (12, "published", False)]
)
def test_the_jurys_row_says_that_z_rests_on_few_responses_a_clinician(n, method, said):
    rows = agreement_rows(study(n=n), AnalysisOptions(reps=0, method=method))
    jury = next(row for row in rows if row.scorer == "jury")
    told = jury.told("few_each")
    assert bool(told) == said
    if told:
        assert told["median"] < ENOUGH_EACH
        assert told["lower"] == pytest.approx(LOWERED / told["median"])


ACI, CHW = ("accuracy", "completeness", "clarity"), ("accuracy", "clarity")
RUBRICS = {name: RubricShape(own, 1, 5) for name, own in (("aci", ACI), ("chw", CHW))}


def rate(response, rater, scores, kind="clinician", pass_=0, replicate=0):
    benchmark = response.split("-")[0]
    return [
        (response, f"{response}-instance", benchmark, rater, kind, name, value, pass_, replicate)
        for name, value in scores.items()
    ]


def study_of(*readings):
    return scores_of([row for reading in readings for row in reading], RUBRICS)


THREE = {"accuracy": 5, "completeness": 3, "clarity": 4}
TWO = {"accuracy": 2, "clarity": 3}
WHOLE, METRIC = ("aci-1", "a", THREE), ("aci-1", "bert", {"f": 0.9, "p": 0.7}, "metric")
AGAIN = [
    *(("aci-1", "a", dict.fromkeys(THREE, score), "clinician", n) for n, score in ((0, 2), (1, 5))),
    *(("aci-1", "j", dict.fromkeys(THREE, score), "juror", 0, n) for n, score in enumerate((1, 4))),
    ("aci-1", "j", {"accuracy": 5}, "juror", 0, 2),
]
PART, CHW_1 = ("aci-2", "a", {"accuracy": 5, "completeness": 2}), ("chw-1", "a", TWO)
COMPOSITES = {
    "mean of criteria": ([WHOLE, ("chw-1", "a", TWO)], None, {"aci-1 a": 4, "chw-1 a": 2.5}, {}),
    "one is lacking": ([WHOLE, PART], None, {"aci-1 a": 4}, {"a": 1}),
    "all lack": ([WHOLE, ("aci-2", "a", {"empathy": 5})], None, {"aci-1 a": 4}, {"a": 1}),
    "NaN": ([WHOLE, ("aci-2", "a", THREE | {"clarity": NAN})], None, {"aci-1 a": 4}, {"a": 1}),
    "off the rubric": ([("chw-1", "a", TWO | {"empathy": 5})], None, {"chw-1 a": 2.5}, {}),
    "repeats and replicates": (AGAIN, None, {"aci-1 a": 3.5, "aci-1 j": 2.5}, {"j": 1}),
    "one criterion": ([WHOLE, PART, CHW_1], "completeness", {"aci-1 a": 3, "aci-2 a": 2}, {}),
    "a metric's own": ([METRIC, WHOLE], None, {"aci-1 bert": 0.8, "aci-1 a": 4}, {}),
    "a metric's own, of one": ([METRIC, WHOLE], "clarity", {"aci-1 bert": 0.8, "aci-1 a": 4}, {}),
    "a metric alone": ([METRIC], None, {"aci-1 bert": 0.8}, {}),
    "nothing": ([], None, {}, {}),
}


@pytest.mark.parametrize(
    ("readings", "criterion", "expected", "incomplete"), COMPOSITES.values(), ids=COMPOSITES
)
def test_a_composite_is_the_mean_of_what_was_asked_and_a_reading_that_lacks_some_has_none(
    readings, criterion, expected, incomplete
):
    found = composites(study_of(*(rate(*one) for one in readings)), criterion)
    names = found.values["response_id"] + " " + found.values["rater"]
    assert dict(zip(names, found.values["composite"], strict=True)) == pytest.approx(expected)
    lacking = zip(found.incomplete["rater"], found.incomplete["readings"], strict=True)
    assert dict(lacking) == incomplete
    assert {*found.incomplete["benchmark"]} <= {"aci"}


@pytest.mark.parametrize("score", [0, 6])
def test_a_score_off_the_scale_is_refused_by_name(score):
    with pytest.raises(OffScale, match=f"clarity={score} by a on aci-1"):
        study_of(rate("aci-1", "a", {"clarity": score}))


@pytest.mark.parametrize(
    ("readings", "why"),
    [
        ([("aci-1", "clinician"), ("aci-1", "clinician")], "two scores for accuracy on aci-1"),
        ([("aci-1", "clinician"), ("aci-2", "juror")], "a is two kinds"),
        ([("aci-1", "nurse")], "nurse"),
    ],
)
def test_a_score_given_twice_and_a_rater_of_two_kinds_or_none_are_refused(readings, why):
    with pytest.raises(BadInput, match=why):
        study_of(*(rate(response, "a", THREE, kind) for response, kind in readings))


def test_tables_that_do_not_belong_together_are_refused_by_name():
    scores = study_of(rate("aci-1", "a", THREE), rate("aci-2", "a", THREE))
    for changed, why in (
        ({"ratings": scores.ratings.drop(columns="replicate")}, "replicate"),
        ({"responses": scores.responses.iloc[:1]}, "aci-2"),
        ({"rubrics": {}}, "no rubric for the benchmarks aci"),
    ):
        with pytest.raises(BadInput, match=why):
            replace(scores, **changed)
    assert set(RATING_KEY) < set(scores.ratings.columns)


NA, UNSURE = "not_applicable", "cannot_tell"


def of(cells, shape=RubricShape(("x", "y"), 1, 5)):  # noqa: B008 it is frozen
    """Return scores of cells (response, rater, kind, criterion, points or answer)."""
    rows = [(name, name, "b", *given) for name, *given in cells]
    table = pd.DataFrame(rows, columns=FIELDS).assign(pass_=0, replicate=0)
    is_answer = table["score"].map(lambda one: isinstance(one, str))
    ratings = table[~is_answer].astype({"score": float}).reset_index(drop=True)
    instead = table[is_answer].rename(columns={"score": "answer"}).reset_index()
    about = table[FIELDS[:3]].drop_duplicates()
    return Scores(ratings, about, {"b": shape}, instead=instead)


@pytest.fixture
def answered():
    cells = []
    for n in range(20):
        for rater, kind, y in (
            ("a", "clinician", NA if n < 8 else 4),
            ("b", "clinician", NA if n < 10 else 3),
            ("j", "juror", NA if 4 <= n < 8 else UNSURE if n == 19 else 5),
        ):
            cells += [(f"r{n:02}", rater, kind, "x", 1 + (n + len(cells)) % 5)]
            cells += [(f"r{n:02}", rater, kind, "y", y)]
    return of(cells)


def test_agreement_on_whether_a_criterion_applies_is_cohens_kappa_and_gwets_ac1(answered):
    [scope] = scopes(answered, AnalysisOptions(jurors=("j",)))
    clinicians, juror = applicability_rows(scope, answered)
    # a and b: both no on 8, both yes on 10, apart on 2
    agreed, chance = 18 / 20, (0.4 * 0.5) + (0.6 * 0.5)
    assert clinicians.kappa == pytest.approx((agreed - chance) / (1 - chance))
    share = 0.45
    by_chance = 2 * share * (1 - share)
    assert clinicians.ac1 == pytest.approx((agreed - by_chance) / (1 - by_chance))
    assert (clinicians.criterion, clinicians.n_responses) == ("y", 20)
    assert juror.not_applicable == pytest.approx(4 / 19)


def test_how_much_each_rater_answers_and_how_close_it_is_there(answered):
    [scope] = scopes(answered, AnalysisOptions(jurors=("j",)))
    rows = {row.rater: row for row in abstention_rows(scope, answered)}
    assert (rows["j"].n_scored, rows["j"].n_not_applicable, rows["j"].n_cannot_tell) == (35, 4, 1)
    assert rows["j"].answered == pytest.approx(39 / 40)
    assert rows["a"].answered == 1
    assert rows["a"].apart > 0


def test_nothing_is_told_where_nobody_left_anything_open():
    cells = [(f"r{n}", who, kind, one, 1 + n % 5) for n in range(6) for one in ("x", "y")
             for who, kind in (("a", "clinician"), ("b", "clinician"), ("j", "juror"))]  # fmt: skip
    scores = of(cells)
    [scope] = scopes(scores, AnalysisOptions(jurors=("j",)))
    assert applicability_rows(scope, scores) == abstention_rows(scope, scores) == []


def test_rows_count_what_their_own_raters_left_open_and_no_more_what_is_left_out(answered):
    rows = {row.scorer: row for row in agreement_rows(answered, AnalysisOptions(jurors=("j",)))}
    assert (rows["jury"].n_not_applicable, rows["jury"].n_cannot_tell) == (4, 1)
    assert (rows["clinicians"].n_not_applicable, rows["clinicians"].n_cannot_tell) == (18, 0)
    fewer = without_instances(answered, [f"r{n:02}" for n in range(8)])
    rows = {row.scorer: row for row in agreement_rows(fewer, AnalysisOptions(jurors=("j",)))}
    assert (rows["jury"].n_not_applicable, rows["clinicians"].n_not_applicable) == (0, 2)


def test_the_distance_is_split_by_how_far_the_clinicians_are_from_each_other():
    both = {"all alike": (3, 3, 4), "a point apart": (3, 4, 3.5), "two or more apart": (1, 5, 5)}
    cells = [
        (f"r{n}{kind[:5]}", who, "juror" if who == "j" else "clinician", one, points)
        for n in range(5)
        for kind, given in both.items()
        for who, points in zip("abj", given, strict=True)
        for one in ("x", "y")
    ]
    scores = of(cells)
    [scope] = scopes(scores, AnalysisOptions(jurors=("j",)))
    rows = [row for row in disputed_rows(scope, scores) if row.criterion == "x"]
    assert [row.clinicians for row in rows] == [*both]
    assert [row.n for row in rows] == [5, 5, 5]
    assert [row.distance for row in rows] == pytest.approx([1, 0, 2])


PDSQI = read_rubric("pdsqi_9")
GOOD = dict.fromkeys(PDSQI.criteria, 4.0) | {"respectful": 1.0}


def answer(**said):
    rows = (f'"{name}": {{"score": {said.get(name, score)}}}' for name, score in GOOD.items())
    return "{" + ", ".join(rows) + "}"


def test_pdsqi_9_has_a_yes_or_no_item_and_one_that_need_not_apply():
    assert (PDSQI.scale_of("respectful").min, PDSQI.scale_of("respectful").max) == (0, 1)
    assert PDSQI.answers_of("synthesized") == (NOT_APPLICABLE,)
    assert PDSQI.answers_of("accurate") == ()
    assert PDSQI.composite_ends == (0, 1)
    assert read_rubric("generic").own_ends == ()


def test_a_rubric_of_mixed_scales_is_written_and_read_the_same(tmp_path):
    (tmp_path / "rubric.toml").write_text(rubric_toml(PDSQI))
    (tmp_path / "prompt.txt").write_text(PDSQI.prompt)
    assert read_rubric(tmp_path).sha256 == PDSQI.sha256


def test_a_juror_is_told_and_may_answer_each_criterion_on_its_own_scale():
    scores = PDSQI.json_schema()["properties"]
    assert scores["respectful"]["properties"]["score"] == {"type": "integer", "enum": [0, 1]}
    allowed = scores["synthesized"]["properties"]["score"]["anyOf"]
    assert {"type": "string", "enum": [NOT_APPLICABLE]} in allowed
    told = PDSQI.schema_text()
    assert "The score of respectful is a whole number on the scale 0-1." in told
    assert 'synthesized is a whole number on the scale 1-5 or "not_applicable"' in told
    assert every_score(read_rubric("generic")) == "every score a whole number on the scale 1-5"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        *(({}, "ok"), ({"synthesized": '"not_applicable"'}, "ok"), ({"respectful": '"1"'}, "ok")),
        ({"synthesized": "null"}, "missing_criterion"),
        *(({"synthesized": one}, "out_of_range") for one in ('"Not applicable"', '"cannot_tell"')),
        *(({"accurate": one}, "out_of_range") for one in ('"not_applicable"', "0")),
        ({"respectful": "5"}, "out_of_range"),
    ],
)
def test_an_answer_is_read_only_where_the_criterion_allows_it(said, read):
    found = parse(answer(**said), PDSQI)
    assert found.status == read
    if said.get("synthesized") == '"not_applicable"':
        given = {**GOOD, "synthesized": NOT_APPLICABLE}
        assert found.reply == Reply(given, dict.fromkeys(GOOD, ""))


@pytest.mark.parametrize(
    ("criterion", "written", "stored"),
    [
        *(("synthesized", one, NOT_APPLICABLE) for one in ("NA", "n/a")),
        *(("synthesized", "3", 3.0), ("respectful", "0", 0.0)),
    ],
)
def test_a_file_says_not_applicable_by_na(criterion, written, stored):
    assert PDSQI.score(criterion, written, "dr_a", "r1") == stored


@pytest.mark.parametrize(("criterion", "written"), [("accurate", "NA"), ("respectful", "2")])
def test_what_a_criterion_does_not_allow_is_refused_with_its_own_scale(criterion, written):
    with pytest.raises(OffScale, match=f"scale of {criterion} of pdsqi_9 is"):
        PDSQI.score(criterion, written, "dr_a", "r1")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "cited"', 'name = "cited"\nweight = 2', "every criterion weighs the same"),
        ('\n0 = "No:', '\n2 = "No:', "respectful: anchor 2 is off the scale 0-1"),
    ],
)
def test_weights_and_an_anchor_off_its_scale_are_refused(tmp_path, old, new, said):
    (tmp_path / "rubric.toml").write_text(rubric_toml(PDSQI).replace(old, new))
    (tmp_path / "prompt.txt").write_text(PDSQI.prompt)
    with pytest.raises(BadRubric, match=said):
        read_rubric(tmp_path)


@pytest.mark.parametrize(
    ("said", "mean"),
    [
        ({}, (8 * 0.75 + 1) / 9),
        ({"synthesized": NOT_APPLICABLE}, (7 * 0.75 + 1) / 8),
        ({"synthesized": CANNOT_TELL}, None),
    ],
)
def test_a_readings_mean_is_the_composite_of_the_figures(said, mean):
    assert PDSQI.composite(GOOD | said) == (mean if mean is None else pytest.approx(mean))
    assert PDSQI.composite({"accurate": 4.0}) is None


def mixed(*given):
    """Return scores of one clinician on two criteria whose scales differ: (response, criterion, said)."""
    shape = RubricShape(("accurate", "respectful"), 0, 1, scales=((1, 5), (0, 1)))
    return of([(name, "a", "clinician", *said) for name, *said in given], shape)


def test_where_scales_differ_the_composite_is_the_mean_share_of_the_scales():
    scores = mixed(("r1", "accurate", 4), ("r1", "respectful", 1), ("r2", "accurate", 3))
    found = composites(scores)
    assert found.values["composite"].to_list() == [(0.75 + 1) / 2]
    assert found.incomplete["readings"].to_list() == [1]
    alone = composites(scores, "accurate").values
    assert alone["composite"].to_list() == [4, 3]  # in points of the criterion


def test_what_does_not_apply_is_left_out_of_the_mean_and_a_score_off_its_own_scale_is_refused():
    answers = ("r1", "respectful", NOT_APPLICABLE), ("r2", "respectful", CANNOT_TELL)
    found = composites(mixed(("r1", "accurate", 3), ("r2", "accurate", 5), *answers))
    assert found.values[["response_id", "composite"]].to_numpy().tolist() == [["r1", 0.5]]
    assert found.incomplete["readings"].to_list() == [1]
    with pytest.raises(OffScale, match="respectful=3 by a"):
        mixed(("r1", "respectful", 3))
