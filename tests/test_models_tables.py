"""Tables of models: what rests on fewer benchmarks, and intervals that always have a width."""

import math
import re

import pytest
from kit.model_study import QUALITY, by_model, compared, model_row, model_study

from annotate import tables
from calibration.codes import NoteCode as Code
from calibration.models.rows import CategoryRow
from calibration.report.chart_comparisons import chart_heatmap
from calibration.scores import Scores
from calibration.tables.models import (
    category_tables,
    estimate,
    model_tables,
    rank,
    rests_on,
)
from calibration.tables.numbers import TERMINAL
from calibration.values import note
from data.queries.costs import RecordedCalls
from medjury.services.model_costs import jury_cost

LACKS = note(
    Code.LACKS_BENCHMARKS,
    why=note(Code.FEW_RATED_BY_BOTH, least=5),
    benchmarks=["notes"],
    on=1,
    of=2,
)
WHY = "fewer than 5 instances that clinicians and jury both scored on notes"
ON_BOTH = [model_row("one"), model_row("two")]
ON_ONE = [
    model_row(name, by="corrected", n_benchmarks=1, without=("notes",), notes=(LACKS,))
    for name in ("one", "two")
]


def cells(table, column):
    place = table.columns.index(column)
    return [row[place] for group in table.groups for row in group.rows]


def test_a_model_on_fewer_benchmarks_says_on_how_many_in_its_row():
    of_clinicians, corrected = model_tables([*ON_BOTH, *ON_ONE])
    assert cells(corrected, "Benchmarks") == ["1 of 2", "1 of 2"]
    assert "Benchmarks" not in of_clinicians.columns
    narrow = model_tables(ON_ONE, TERMINAL, narrow=True)[0]
    assert "Benchmarks" in narrow.columns


def test_the_reason_stands_below_the_table_without_unfolding_anything():
    shown = tables.of_table(model_tables(ON_ONE)[0])
    assert WHY in shown.partition("<details")[0]


def test_a_models_name_is_no_markup_and_no_scorer():
    shown = tables.of_table(model_tables([model_row("<b>"), model_row("metric:jury")])[0])
    assert "&lt;b&gt;" in shown
    assert "metric:jury" in shown


def test_a_cell_of_the_heatmap_tells_what_its_mean_rests_on():
    row = CategoryRow("m", "p", "jury", 0.5, 0.4, 0.6, 0.0, 9, ("notes",))
    assert rests_on(row) == "without notes"
    cell = {"model": "m", "place": "p", "value": 0.5}
    told = chart_heatmap([cell | {"rests": rests_on(row)}], "Mean").to_dict()
    assert told["layer"][0]["encoding"]["tooltip"][-1]["field"] == "rests"
    assert "tooltip" not in chart_heatmap([cell], "Mean").to_dict()["layer"][0]["encoding"]


@pytest.mark.parametrize(
    ("value", "ends", "shown"),
    [
        (0.9, (0.6, 1.0), "0.90 (0.60 to 1.00)"),
        (0.938, (0.9361, 0.9394), "0.938 (0.936 to 0.939)"),
        (0.5, (math.nan, math.nan), "0.50"),
        (math.nan, (math.nan, math.nan), "-"),
    ],
)
def test_a_figure_has_the_digits_that_keep_its_ends_apart(value, ends, shown):
    assert estimate(value, ends, TERMINAL) == shown


def test_ranks_that_cannot_be_told_apart_are_a_range():
    shared = model_row("one", shared_rank_low=1, shared_rank_high=3)
    assert rank(shared, TERMINAL) == "1 to 3"
    assert rank(model_row("one", shared_rank_low=2, shared_rank_high=2), TERMINAL) == "2"
    none = model_row("one", rank=None, shared_rank_low=None, shared_rank_high=None)
    assert rank(none, TERMINAL) == "-"


def test_models_that_never_change_places_still_have_intervals_with_a_width():
    scores, authors = model_study(QUALITY | {"delta": 2.0}, n=60, rated=60, noise=0.05)
    found = compared(scores, authors, {"letters": "Writing"})
    for row in found.rows:
        assert row.win_rate_unchanged == 1, "four models this far apart never change places"
        assert row.win_rate_low < row.win_rate_high
    for table in (*model_tables(found.rows), *model_tables(found.rows, TERMINAL, narrow=True)):
        assert cells(table, "Rank") == ["1", "2", "3", "4"]
        for cell in cells(table, "Win rate, 95 %"):
            assert re.fullmatch(r"(\S+) \((?!\1 to \1).+ to .+\)", cell)


def test_categories_have_a_table_for_each_way_of_scoring_unless_there_is_one_only():
    scores, authors = model_study(QUALITY)
    found = compared(scores, authors, {"letters": "Medical Writing"})
    shown = category_tables(found.categories)
    assert [table.columns for table in shown] == [("Model", "no\ncategory", "Medical\nWriting")] * 3
    means = {(row.model, row.category, row.by): row.mean for row in found.categories}
    assert cells(shown[0], "Medical\nWriting") == [
        f"{means[model, 'Medical Writing', 'clinicians']:.2f}" for model in sorted(QUALITY)
    ]
    assert category_tables(compared(scores, authors).categories) == ()


def test_a_model_that_lacks_a_benchmark_is_named_in_a_field():
    scores, authors = model_study(QUALITY)
    absent = scores.responses["response_id"].str.fullmatch(r"letters-\d+-gamma")
    gone = set(scores.responses.loc[absent, "response_id"])
    kept = scores.ratings[~scores.ratings["response_id"].isin(gone)]
    left = Scores(kept, scores.responses[~absent], scores.rubrics)
    found = compared(left, authors, {"letters": "Writing", "notes": "Writing"}, by=["jury"])
    assert by_model(found, "jury")["gamma"].without == ("letters",)
    lacking = {row.model: row.without for row in found.categories}
    assert lacking == {"alpha": (), "beta": (), "gamma": ("letters",)}


def test_unknown_tokens_have_their_reason():
    calls = [RecordedCalls("gpt", 2, None, 0.5, 0), RecordedCalls("llama", 2, 7, 0.5, 0)]
    cost = jury_cost(calls, ["gpt", "llama"], None)
    assert cost.told(Code.TOKENS_UNKNOWN)["jurors"] == ("gpt",)
    assert cost.told(Code.BOUND_NEEDS_PANEL)
    assert not jury_cost(calls[1:], ["llama"], None).told(Code.TOKENS_UNKNOWN)


def test_a_simulated_juror_is_marked_in_the_costs_of_the_jury():
    calls = [RecordedCalls("gpt", 2, 7, 0.5, 0), RecordedCalls("made-up", 2, 7, 0.0, 0)]
    cost = jury_cost(calls, ["gpt", "made-up"], None, ["made-up", "other"])
    assert [one.simulated for one in cost.jurors] == [(), ("made-up",)]
    assert cost.simulated == ("made-up",)
