"""Charts and tables of the screens: made apart from the raters' process, complete, harmless."""

import pickle
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

from annotate import charts, tables, vega, worker
from data.errors import MedjuryError

ROWS = [
    {"label": "Jury", "kind": "jury", "value": 0.62, "low": 0.41, "high": 0.77},
    {"label": "<b>x</b>", "kind": "juror", "value": 0.5, "low": None, "high": None},
]


PNG = b"\x89PNG"


@pytest.mark.not_quick
def test_a_chart_is_drawn_in_a_process_of_its_own_and_once() -> None:
    spec = charts.drawn("charts:chart_intervals", ROWS)
    worker.end()
    assert charts.drawn("charts:chart_intervals", ROWS) == spec
    assert not worker._worker.runs, "nobody was asked again"
    assert [one["label"] for one in charts.plotted(spec)] == ["Jury", "<b>x</b>"]
    assert "datasets" not in spec


@pytest.mark.not_quick
def test_what_was_drawn_is_kept_in_bounded_memory() -> None:
    letters = 1 + worker.MOST_BYTES // 8
    made = [worker.make("operator:mul", "abcdefghijkl"[n], letters) for n in range(12)]

    assert [one[0] for one in made] == [*"abcdefghijkl"]
    assert len(worker._made) < 8
    assert sum(map(len, worker._made.values())) < worker.MOST_BYTES


@pytest.mark.not_quick
def test_what_was_drawn_takes_no_more_room_than_its_bytes() -> None:
    rows = [{"value": n / 7} for n in range(10_000)]
    written = len(pickle.dumps(rows))
    worker.make("builtins:sum", [1])
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    worker.make("builtins:list", rows)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 0.9 * written < after - before < 1.2 * written


def test_who_wakes_the_worker_does_not_wait_for_it() -> None:
    worker.end()
    begun = time.monotonic()
    worker.wake()
    assert time.monotonic() - begun < 0.2
    assert worker.make("builtins:sum", [1, 2, 4]) == 7
    assert worker._worker.runs


def test_what_cannot_be_drawn_says_so_and_is_not_kept() -> None:
    kept = len(worker._made)
    for _ in range(2):
        with pytest.raises(MedjuryError, match="could not be computed"):
            charts.drawn("charts:no_such_chart")
    assert len(worker._made) == kept


def test_a_drawn_chart_is_plain_whatever_made_its_rows() -> None:
    rows = [{**ROWS[0], "value": np.array([0.5, 2.5])[0], "low": np.float64("nan")}, ROWS[1]]
    drawn = vega.drawn("charts:chart_intervals", rows)
    row = charts.plotted(drawn)[0]
    assert (type(row["value"]), row["value"], row["low"]) == (float, 0.5, None)
    assert b"numpy" not in pickle.dumps(drawn)
    assert b"altair" not in pickle.dumps(drawn)


@pytest.mark.not_quick
def test_a_chart_becomes_an_svg_and_a_png_without_a_network() -> None:
    spec = charts.drawn("charts:chart_intervals", ROWS)
    picked = charts.pickable(spec, "point", "label")
    assert "<svg" in worker.make("annotate.vega:svg", picked)
    assert worker.make("annotate.vega:png", picked).startswith(PNG)


def test_the_server_loads_no_data_frames_to_show_a_chart() -> None:
    code = (
        "import sys; from annotate import charts, tables; import streamlit as st\n"
        f"charts.show(charts.drawn('charts:chart_intervals', {ROWS!r}), 'one', 'Caption', 'Alt')\n"
        "print(sorted({'pandas', 'numpy', 'altair', 'pyarrow'} & {*sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


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
