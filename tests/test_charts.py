"""Charts and tables of the screens: made apart from the raters' process, complete, harmless."""

import pytest

from annotate import charts, compute, tables, vega
from calibration.report.charts import chart_intervals
from data.errors import MedjuryError

ROWS = [
    {"label": "Jury", "kind": "jury", "value": 0.62, "low": 0.41, "high": 0.77},
    {"label": "<b>x</b>", "kind": "juror", "value": 0.5, "low": None, "high": None},
]


PNG = b"\x89PNG"


@pytest.mark.not_quick
def test_what_cannot_be_drawn_says_so() -> None:
    with pytest.raises(MedjuryError, match="could not be computed"):
        compute.call("annotate.vega:no_such_chart")


@pytest.mark.not_quick
def test_a_chart_becomes_an_svg_and_a_png_without_a_network() -> None:
    spec = vega.specification(chart_intervals(ROWS))
    picked = charts.pickable(spec, "point", "label")
    assert "<svg" in compute.call("annotate.vega:svg", picked)
    assert compute.call("annotate.vega:png", picked).startswith(PNG)


def test_a_table_escapes_its_texts_and_heads_its_rows() -> None:
    shown = tables.table(
        ROWS,
        [tables.words("Scorer", "label"), tables.number("Low", "low")],
        "A & B",
        ["<i>note</i>"],
    )
    assert '<th scope="row">&lt;b&gt;x&lt;/b&gt;</th><td>\N{EN DASH}</td>' in shown
    assert "<td>0.41</td>" in shown
    assert "<caption>A &amp; B</caption>" in shown
    assert "<li>&lt;i&gt;note&lt;/i&gt;</li>" in shown


def test_a_csv_has_every_row_in_full_and_no_formula() -> None:
    rows = [{"name": "=1+1", "icc": 0.123456789}, {"name": "a", "icc": None}]
    assert tables.csv_of(rows) == "name,icc\n'=1+1,0.123456789\na,\n"
