"""Charts and tables of the screens: made apart from the raters' process, complete, harmless."""

import base64
import json
import subprocess
import sys
import tracemalloc

import pytest

from annotate import charts, drawing, tables
from data.errors import MedjuryError

ROWS = [
    {"label": "Jury", "kind": "jury", "value": 0.62, "low": 0.41, "high": 0.77},
    {"label": "<b>x</b>", "kind": "juror", "value": 0.5, "low": None, "high": None},
]
PNG = b"\x89PNG"


def test_a_chart_is_drawn_in_a_process_of_its_own_and_once() -> None:
    spec = charts.drawn("charts:chart_intervals", ROWS)
    drawing.end()
    assert charts.drawn("charts:chart_intervals", ROWS) == spec
    assert not drawing._running, "nobody was asked again"
    assert [one["label"] for one in charts.plotted(spec)] == ["Jury", "<b>x</b>"]
    assert "datasets" not in spec


def test_what_was_drawn_is_kept_in_bounded_memory() -> None:
    letters = 1 + drawing.MOST_KEPT // 8
    made = [drawing.make("operator:mul", "abcdefghijkl"[n], letters) for n in range(12)]

    assert [one[0] for one in made] == [*"abcdefghijkl"]
    assert len(drawing._made) < 8
    assert sum(map(len, map(str, drawing._made.values()))) < 1.01 * drawing.MOST_KEPT


def test_what_was_drawn_takes_no_more_room_than_its_characters() -> None:
    rows = [{"value": n / 7} for n in range(10_000)]
    written = len(json.dumps(rows))
    drawing.wake()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    drawing.make("builtins:list", rows)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 0.9 * written < after - before < 1.2 * written


def test_a_drawing_process_that_ended_is_started_again() -> None:
    drawing.wake()
    [child] = drawing._running
    child.kill()
    child.wait()
    assert charts.drawn("charts:chart_influence", [{"label": "a", "kind": "response", "change": 1}])


def test_an_answer_that_was_cut_off_is_asked_for_again() -> None:
    drawing.end()
    call = [sys.executable, "-c", "input(); print('[1, 2', end='')"]
    pipe = subprocess.PIPE
    drawing._running.append(subprocess.Popen(call, stdin=pipe, stdout=pipe, text=True))

    assert drawing.make("builtins:list", [1, 2, 3]) == [1, 2, 3]


def test_what_cannot_be_drawn_says_so() -> None:
    with pytest.raises(MedjuryError, match="could not be drawn"):
        drawing.make("calibration.report.charts:no_such_chart")


def test_a_chart_becomes_an_svg_and_a_png_without_a_network() -> None:
    spec = charts.drawn("charts:chart_intervals", ROWS)
    picked = charts.pickable(spec, "point", "label")
    assert "<svg" in drawing.make("annotate.charts:svg", picked)
    assert base64.b64decode(drawing.make("annotate.charts:png", picked)).startswith(PNG)


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
        [tables.words("Scorer", "label"), tables.between("95 %", "low", "high")],
        "A & B",
        ["<i>note</i>"],
    )
    assert '<th scope="row">&lt;b&gt;x&lt;/b&gt;</th><td>\N{EN DASH}</td>' in shown
    assert "<td>0.41 to 0.77</td>" in shown
    assert "<caption>A &amp; B</caption>" in shown
    assert "<li>&lt;i&gt;note&lt;/i&gt;</li>" in shown


def test_a_csv_has_every_row_in_full_and_no_formula() -> None:
    rows = [{"name": "=1+1", "icc": 0.123456789}, {"name": "a", "icc": None}]
    assert tables.csv_of(rows) == "name,icc\n'=1+1,0.123456789\na,\n"
