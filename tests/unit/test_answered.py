"""What raters leave open: applicability, abstention, and clear against disputed responses."""

import pandas as pd
import pytest

from calibration.answered import abstention_rows, applicability_rows, disputed_rows
from calibration.scope import scopes, without_instances
from calibration.scores import RubricShape, Scores
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions

NA, UNSURE = "not_applicable", "cannot_tell"


def of(cells, benchmark="b"):
    """Return scores of cells (response, rater, kind, criterion, points or answer)."""
    columns = ["response_id", "rater", "kind", "criterion", "said"]
    table = pd.DataFrame(cells, columns=columns)
    table = table.assign(
        instance_id=table["response_id"], benchmark=benchmark, pass_=0, replicate=0
    )
    is_answer = table["said"].map(lambda one: isinstance(one, str))
    ratings = table[~is_answer].rename(columns={"said": "score"}).astype({"score": float})
    instead = table[is_answer].rename(columns={"said": "answer"})
    about = table[["response_id", "instance_id", "benchmark"]].drop_duplicates()
    shape = RubricShape(("x", "y"), 1, 5)
    return Scores(
        ratings.reset_index(drop=True), about, {benchmark: shape}, instead=instead.reset_index()
    )


@pytest.fixture
def study():
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


def test_agreement_on_whether_a_criterion_applies_is_cohens_kappa_and_gwets_ac1(study) -> None:
    [scope] = scopes(study, AnalysisOptions(jurors=("j",)))
    clinicians, juror = applicability_rows(scope, study)
    # a and b: both no on 8, both yes on 10, apart on 2
    agreed, chance = 18 / 20, (0.4 * 0.5) + (0.6 * 0.5)
    assert clinicians.kappa == pytest.approx((agreed - chance) / (1 - chance))
    share = 0.45
    by_chance = 2 * share * (1 - share)
    assert clinicians.ac1 == pytest.approx((agreed - by_chance) / (1 - by_chance))
    assert (clinicians.criterion, clinicians.n_responses) == ("y", 20)
    assert juror.not_applicable == pytest.approx(4 / 19)


def test_how_much_each_rater_answers_and_how_close_it_is_there(study) -> None:
    [scope] = scopes(study, AnalysisOptions(jurors=("j",)))
    rows = {row.rater: row for row in abstention_rows(scope, study)}
    assert (rows["j"].n_scored, rows["j"].n_not_applicable, rows["j"].n_cannot_tell) == (35, 4, 1)
    assert rows["j"].answered == pytest.approx(39 / 40)
    assert rows["a"].answered == 1
    assert rows["a"].apart > 0


def test_nothing_is_told_where_nobody_left_anything_open() -> None:
    cells = [(f"r{n}", who, kind, one, 1 + n % 5) for n in range(6) for one in ("x", "y")
             for who, kind in (("a", "clinician"), ("b", "clinician"), ("j", "juror"))]  # fmt: skip
    scores = of(cells)
    [scope] = scopes(scores, AnalysisOptions(jurors=("j",)))
    assert applicability_rows(scope, scores) == abstention_rows(scope, scores) == []


def test_rows_count_what_their_own_raters_left_open(study) -> None:
    rows = {row.scorer: row for row in agreement_rows(study, AnalysisOptions(jurors=("j",)))}
    assert (rows["jury"].n_not_applicable, rows["jury"].n_cannot_tell) == (4, 1)
    assert (rows["clinicians"].n_not_applicable, rows["clinicians"].n_cannot_tell) == (18, 0)


def test_the_distance_is_split_by_how_far_the_clinicians_are_from_each_other() -> None:
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


def test_what_is_left_out_with_its_instances_is_counted_no_more(study) -> None:
    fewer = without_instances(study, [f"r{n:02}" for n in range(8)])
    rows = {row.scorer: row for row in agreement_rows(fewer, AnalysisOptions(jurors=("j",)))}
    assert (rows["jury"].n_not_applicable, rows["clinicians"].n_not_applicable) == (0, 2)
