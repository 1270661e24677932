"""Tables of models: what rests on fewer benchmarks, and intervals that always have a width."""

import re

from kit.model_study import QUALITY, by_model, compared, model_row, model_study

from calibration.scores import Scores
from calibration.tables.models import (
    difference_table,
    model_table,
    rank,
)
from calibration.tables.numbers import TERMINAL
from calibration.writers import html_table


def cells(table, column):
    place = table.columns.index(column)
    return [row[place] for group in table.groups for row in group.rows]


def test_a_models_name_is_no_markup_and_no_scorer():
    shown = html_table(model_table([model_row("<b>"), model_row("metric:jury")]))
    assert "&lt;b&gt;" in shown
    assert "metric:jury" in shown


def test_ranks_that_cannot_be_told_apart_are_a_range():
    shared = model_row("one", shared_rank_low=1, shared_rank_high=3)
    assert rank(shared, TERMINAL) == "1 to 3"
    assert rank(model_row("one", shared_rank_low=2, shared_rank_high=2), TERMINAL) == "2"
    none = model_row("one", shared_rank_low=None, shared_rank_high=None)
    assert rank(none, TERMINAL) == "-"


def test_models_that_never_change_places_still_have_intervals_with_a_width():
    scores, authors = model_study(QUALITY | {"delta": 2.0}, n=60, rated=60, noise=0.05)
    found = compared(scores, authors, {"letters": "Writing"})
    for row in found.rows:
        assert row.win_rate_low < row.win_rate_high
    for table in (model_table(found.rows), model_table(found.rows, TERMINAL, narrow=True)):
        assert [len(group.rows) for group in table.groups] == [4, 4, 4]
        assert cells(table, "Rank") == 3 * ["1", "2", "3", "4"]
        for cell in cells(table, "Win rate, 95 %"):
            assert re.fullmatch(r"(\S+) \((?!\1 to \1).+ to .+\)", cell)


def test_a_model_that_lacks_a_benchmark_is_named_in_a_field():
    scores, authors = model_study(QUALITY)
    absent = scores.responses["response_id"].str.fullmatch(r"letters-\d+-gamma")
    gone = set(scores.responses.loc[absent, "response_id"])
    kept = scores.ratings[~scores.ratings["response_id"].isin(gone)]
    left = Scores(kept, scores.responses[~absent], scores.rubrics)
    found = compared(left, authors, by=["jury"])
    assert by_model(found, "jury")["gamma"].without == ("letters",)


def test_the_table_of_differences_has_all_pairs_of_one_way_of_scoring():
    found = compared(*model_study(QUALITY, n=40, rated=40))
    pairs = [row for row in found.differences if row.by == "clinicians"]
    table = difference_table(pairs, TERMINAL)
    assert table.caption.endswith("minus another's, by clinicians")
    assert [row[:2] for group in table.groups for row in group.rows] == [
        *(("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma"))
    ]
    assert cells(table, "p, Holm, all pairs") == 3 * ["<0.001"]
