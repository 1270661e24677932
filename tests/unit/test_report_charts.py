"""Charts: what is drawn is what was measured, in few bytes, readable without colour."""

import re

import numpy as np

from calibration.report.charts import (
    COLOURS,
    SHAPES,
    chart_intervals,
    chart_scatter,
    svg,
)

NAN = float("nan")


def intervals(*ends):
    return [
        {"label": f"s{n}", "kind": "juror", "value": value, "low": low, "high": high}
        for n, (value, low, high) in enumerate(ends)
    ]


def values_of(chart):
    return (
        [row for rows in chart.to_dict()["datasets"].values() for row in rows]
        if ("datasets" in chart.to_dict())
        else [row for layer in chart.to_dict()["layer"] for row in layer["data"]["values"]]
    )


def test_an_interval_that_goes_on_below_minus_1_is_marked_as_cut_not_silently_shortened():
    shown = {
        row["label"]: row
        for row in values_of(
            chart_intervals(intervals((0.4, -0.2, 0.6), (0.1, -409.8, 0.6), (-6.7, -409.0, -3.0)))
        )
        if "label" in row
    }
    assert (shown["s0"]["low"], shown["s0"]["is_cut"]) == (-0.2, False)
    assert (shown["s1"]["low"], shown["s1"]["is_cut"]) == (-1.0, True)
    assert (shown["s2"]["value"], shown["s2"]["high"], shown["s2"]["is_cut"]) == (None, -1.0, True)


def test_an_undefined_figure_is_a_gap_not_a_0():
    shown = [
        row for row in values_of(chart_intervals(intervals((NAN, NAN, NAN)))) if "label" in row
    ]
    assert {(row["value"], row["low"], row["high"]) for row in shown} == {(None, None, None)}
    assert svg(chart_intervals(intervals((NAN, NAN, NAN)))).startswith("<svg")


def test_kinds_differ_in_shape_as_well_as_in_colour():
    assert len(set(SHAPES)) == len(set(COLOURS)) == 4


def test_every_response_is_counted_however_many_there_are():
    random = np.random.default_rng(0)
    for n in (200, 10_000):
        x = np.round(random.normal(3, 0.7, n), 1)
        y = np.round(random.normal(3, 0.7, n), 1)
        shown = values_of(chart_scatter(x, y))
        assert sum(row.get("responses", 0) for row in shown) == n


def test_a_chart_of_ten_thousand_responses_stays_small():
    random = np.random.default_rng(0)
    x, y = random.normal(3, 0.7, 10_000), random.normal(3, 0.7, 10_000)
    assert len(svg(chart_scatter(x, y))) < 300_000


def test_a_name_is_drawn_as_it_is_written_and_never_as_markup():
    name = '<script>alert(1)</script> & "q" role="x"'
    rows = [row | {"label": name} for row in intervals((0.4, 0.1, 0.6))]
    text = svg(chart_intervals(rows), label=name)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; " in text


def test_two_charts_on_a_page_share_no_id_and_each_is_one_image():
    chart = chart_scatter(np.array([1.0, 2.0, 2.0]), np.array([1.0, 3.0, 3.0]))
    first, second = (svg(chart, name, "said") for name in ("one", "two"))
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (first, second)]
    assert not ids[0] & ids[1]
    assert first.count("role=") == 1
    assert 'role="img" aria-label="said"' in first


def test_no_chart_fetches_anything():
    text = svg(chart_intervals(intervals((0.4, 0.1, 0.6))))
    assert not re.search(r"(href|src|url\()\W*https?:", text)
