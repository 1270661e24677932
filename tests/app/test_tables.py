"""Tables and charts of the screens: numbers that sort as numbers, names that nothing computes, inks to read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.studies import RESPONSES

from annotate import draw
from annotate.draw import framed
from calibration.report import charts as report_charts
from calibration.tables.numbers import DASH, MINUS, place
from calibration.tables.spec import Group, Table
from calibration.values import COMBINED
from data.files import cells
from data.importers.ratings import expert_rows
from data.importers.table import TableFile
from data.safe_text import guarded, guarded_name, unguarded
from data.study.frames import ratings_frame

IDS = ["-5", "'-5", "-abc", "'-abc", "'x", "+1.5", "=1", "''=1", "5"]
HEAD = RESPONSES.splitlines()[0] + "\n"


@given(st.text("'=+-@\t\r05.a"))
def test_what_is_guarded_runs_nowhere_and_is_read_back(text):
    assert not guarded(text).startswith(tuple("=+-@\t\r"))
    assert unguarded(guarded(text)) == unguarded(guarded_name(text)) == text


def test_an_id_stands_in_every_csv_in_the_same_form():
    columns, _ = framed(Table("t", ("id",), (Group("", tuple((one,) for one in IDS)),)))
    exported = list(cells(["id"], [(one,) for one in IDS]))
    assert [[one] for one in columns["id"]] == exported
    assert (len({*columns["id"]}), columns["id"][0]) == (len(IDS), "-5")


def test_ids_that_differ_by_a_sign_keep_their_ratings_through_an_export(
    run, engine, write, tmp_path
):
    rows = "".join(f"i{n},v,c,p,,{guarded(one)},m,t {n}\n" for n, one in enumerate(IDS))
    assert run("study", "import", str(write("r.csv", HEAD + rows)))[0] == 0
    scores = "".join(
        f"{guarded(one)},dr,clinician,clarity,{1 + n % 5}\n" for n, one in enumerate(IDS)
    )
    given = write("s.csv", "response_id,rater,kind,criterion,score\n" + scores)
    assert run("rate", "ratings", str(given))[0] == 0
    held = ratings_frame(engine)
    given = {one: 1 + n % 5 for n, one in enumerate(IDS)}
    assert dict(zip(held["response_id"], held["score"], strict=True)) == given
    assert run("share", "export", str(tmp_path / "out"))[0] == 0
    code, _, err = run("rate", "ratings", str(tmp_path / "out" / "ratings.csv"))
    assert code == 0, err
    assert ratings_frame(engine)["response_id"].tolist() == held["response_id"].tolist()


@pytest.mark.parametrize("head", ["response_id,criterion,score", "response_id,clarity"])
def test_expert_scores_find_a_guarded_id(write, head):
    row = "'-abc,clarity,3\n" if "criterion" in head else "'-abc,3\n"
    [found] = expert_rows(TableFile(write("e.csv", f"{head}\n{row}")))
    assert (found.response_id, found.criterion) == ("-abc", "clarity")


def test_numbers_are_numbers_and_what_is_undefined_is_empty():
    table = Table(
        "t",
        ("Scorer", "ICC", "95 %", "95 %"),
        (
            Group("visits", (("Jury", "0.62", f"{MINUS}0.1 to 0.7", "1,234"),)),
            Group(place(COMBINED), (("=1+1", DASH, "<b>x</b>", f"{MINUS}2"),)),
        ),
        help={"ICC": "how far both rise together"},
    )
    columns, config = draw.framed(table)
    assert columns == {
        "Group": [place(COMBINED), "visits"],
        "Scorer": ["'=1+1", "Jury"],
        "ICC": [None, 0.62],
        "95 %": ["<b>x</b>", f"{MINUS}0.1 to 0.7"],
        "95 %\N{ZERO WIDTH SPACE}": [-2.0, 1234.0],
    }
    shown = config["ICC"]
    told = (shown["help"], shown["type_config"]["format"])
    assert told == ("how far both rise together", "%.2f")


PAPER = {"light": "#ffffff", "dark": "#15181c"}


def test_each_ink_of_a_chart_stands_out_from_its_paper_light_and_dark():
    for ink in (report_charts.ACCENT, report_charts.WARNING, report_charts.INK, report_charts.SOFT):
        assert contrast(ink, PAPER["light"]) >= 3, ink
        assert contrast(draw.ON_DARK[ink], PAPER["dark"]) >= 3, ink
    for ink in (draw.BLUE, draw.ORANGE, draw.GREY):
        assert min(contrast(ink, paper) for paper in PAPER.values()) >= 3, ink


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    found = re.findall(r"\d+", colour)[:3] if colour.startswith("rgb") else None
    parts = [
        int(one) / 255 for one in found or (str(int(colour[n : n + 2], 16)) for n in (1, 3, 5))
    ]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
