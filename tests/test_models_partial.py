"""Figures of models on fewer benchmarks than those beside them: every table says so."""

from typing import Any

import pytest

from annotate.screens import models, models_costs, models_partial
from calibration.report.chart_models import chart_heatmap
from medjury.cli.models_table import print_models

WHY = "fewer than 5 instances that clinicians and jury both scored on notes"
NOTE = f"scored 9 of 30; {WHY}: on 1 of 2 benchmarks, not comparable with models that have one"


def row(model: str, by: str, on: int, note: str = "") -> dict[str, Any]:
    figures = dict.fromkeys(["win_rate", "win_rate_sd", "macro_average", "macro_average_sd"], 0.5)
    figures |= dict.fromkeys(["win_rate_low", "win_rate_high", "low", "high"], 0.5)
    counts = {"rank": 1, "rank_low": 1, "rank_high": 1, "win_rate_by_instance": None}
    counts |= {"n_benchmarks": on, "n_responses": 9, "n_missing": 21, "n_paired": 0}
    return {"model": model, "by": by, "note": note, **figures, **counts}


ROWS = [row("one", "clinicians", 2), row("two", "clinicians", 2)]
ROWS += [row("one", "corrected", 1, NOTE), row("two", "corrected", 1, NOTE)]


def test_a_figure_on_fewer_benchmarks_says_on_how_many_in_its_cell() -> None:
    shown = models._leaders(ROWS, 2)
    assert shown.count("1 of 2 benchmarks</small>") == 4
    assert "1 of 2 benchmarks</small>" not in models._leaders(ROWS[:2], 2)


def test_the_reason_is_read_without_unfolding_anything() -> None:
    shown = models._leaders(ROWS, 2)
    open_, _, folded = shown.partition("<details")
    assert WHY in open_
    assert "(all models)" in open_
    assert "scored 9 of 30" in folded


def test_a_models_name_in_such_a_cell_is_no_markup() -> None:
    assert "&lt;b&gt;" in models_partial.marked("<b>", ROWS[2], 2)


def test_a_cell_of_the_heatmap_tells_what_its_mean_rests_on() -> None:
    assert models_partial.without({"note": "without notes; few"}) == "without notes"
    cell = {"model": "m", "place": "p", "value": 0.5}
    told = chart_heatmap([cell | {"rests": "without notes"}], "Mean").to_dict()
    assert told["layer"][0]["encoding"]["tooltip"][-1]["field"] == "rests"
    assert "tooltip" not in chart_heatmap([cell], "Mean").to_dict()["layer"][0]["encoding"]


def test_the_printed_table_says_so_too(capsys: pytest.CaptureFixture[str]) -> None:
    costs = {"models": [], "jury": None}
    body = {"rows": ROWS, "benchmarks": ["letters", "notes"], "categories": [], "detectable": []}
    print_models(body | {"costs": costs})
    assert capsys.readouterr().out.count("1 of 2 benchmarks") >= 2


def test_unknown_tokens_have_their_reason() -> None:
    jurors = [{"juror": "gpt", "tokens_in": None}, {"juror": "llama", "tokens_in": 7}]
    told = models_costs.notes_of({"jurors": jurors, "note": "no bound"})
    assert told == ["no bound", f"{models_costs.UNCOUNTED}: gpt"]
    assert models_costs.notes_of({"jurors": jurors[1:], "note": ""}) == []
