from kit.scores import study

from calibration.data_quality import missing_rows
from calibration.scope import scopes
from calibration.values import AnalysisOptions


def rows_of(scores, needed=None, name=None, **options):
    found = list(scopes(scores, AnalysisOptions(**{"reps": 0, "min_jurors": needed} | options)))
    scope = next(one for one in found if name in (None, one.name))
    return {row.scorer: row for row in missing_rows(scope, scores)}


def gap_study(**options):
    """Return a study in which gpt said nothing of r1 and half of r2, and llama half of r2 and r3."""
    scores = study(n=20, **options)
    table = scores.ratings
    at = table["response_id"]
    gone = (table["rater"] == "gpt") & (at == "aci-r1")
    half = (table["rater"] == "gpt") & (at == "aci-r2") | (
        (table["rater"] == "llama") & at.isin(["aci-r2", "aci-r3"])
    )
    gone |= half & (table["criterion"] == "clarity")
    return type(scores)(table[~gone], scores.responses, scores.rubrics, scores.simulated)


def test_what_is_missing_is_counted_by_what_is_known_of_it():
    rows = rows_of(gap_study())
    counts = {
        name: (row.n_responses, row.n_scored, row.n_missing, row.n_no_rating, row.n_incomplete)
        for name, row in rows.items()
    }

    assert counts == {
        "jury": (20, 17, 3, 1, 2),
        "juror:claude": (20, 20, 0, 0, 0),
        "juror:gpt": (20, 18, 2, 1, 1),
        "juror:llama": (20, 18, 2, 0, 2),
        "metric:rouge-l": (20, 20, 0, 0, 0),
    }


def test_two_of_three_jurors_are_enough_where_two_are_asked():
    row = rows_of(gap_study(), needed=2)["jury"]
    assert (row.n_scored, row.n_no_rating, row.n_incomplete) == (19, 0, 1)


def test_a_metric_has_counts_too():
    scores = gap_study()
    gone = (scores.ratings["kind"] == "metric") & (scores.ratings["response_id"] == "aci-r9")
    less = type(scores)(scores.ratings[~gone], scores.responses, scores.rubrics)
    row = rows_of(less)["metric:rouge-l"]

    assert (row.n_scored, row.n_no_rating, row.n_incomplete) == (19, 1, 0)


def test_a_jury_that_scored_nothing_together_has_no_score():
    scores = study(n=10)
    table = scores.ratings
    even = table["response_id"].str[-1].astype(int) % 2 == 0
    gone = (table["rater"] == "gpt") & even | ((table["rater"] == "llama") & ~even)
    row = rows_of(type(scores)(table[~gone], scores.responses, scores.rubrics))["jury"]

    assert (row.n_scored, row.n_no_rating) == (0, 10)
