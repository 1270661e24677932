"""The agreement table as it is printed."""

import io
from typing import Any

import pytest
from medjury.cli.agreement_notes import told
from medjury.cli.agreement_table import NARROW, WIDE, fits, laid_out
from rich.console import Console

from medjury.cli import output
from medjury.cli.output import progress, show, width

BERT = "bertscore-all-MiniLM-L6-v2-5"
SEVERAL = "instances: the F interval takes them as independent"


def row(scorer: str, **other: Any) -> dict[str, Any]:
    """Return a row of `calibrate --json` with the widest figures there are."""
    figures = dict.fromkeys(["icc", "f_low", "f_high", "boot_low", "boot_high", "spearman"], -1.25)
    counts = {"n_responses": 384, "n_missing": 0, "n_pairs": None}
    return {"scorer": scorer, **figures, **counts, "note": "", **other}


CLINICIANS = row("clinicians", f_low=None, f_high=None, spearman=None, n_pairs=3)
ROWS = [row("jury"), row(f"metric:{BERT}"), CLINICIANS]


@pytest.mark.parametrize("room", [80, 100, 120])
def test_every_line_of_a_table_fits_the_screen_and_no_scorer_is_folded(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(output, "words", Console(file=written, width=room))

    show("title", *laid_out(ROWS, narrow=not fits(ROWS, room)))

    lines = written.getvalue().splitlines()
    assert any(line.startswith(BERT) for line in lines)
    assert any(line.startswith("clinicians, by pairs") for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= room


def test_intervals_stand_side_by_side_only_where_there_is_room() -> None:
    assert (fits(ROWS, 80), fits(ROWS, 120)) == (False, True)
    assert laid_out(ROWS, narrow=False)[0] == WIDE
    headings, cells = laid_out(ROWS, narrow=True)
    assert headings == NARROW
    assert width(headings, cells) <= 80
    assert cells[0][2] == "-1.25 to -1.25\nF -1.25 to -1.25"
    assert cells[2][2:4] == ["-1.25 to -1.25", "3 pairs,\n384 shared"]


def test_where_it_is_narrow_no_interval_can_be_taken_for_the_other() -> None:
    only_f = row("jury", boot_low=None, boot_high=None)
    headings, cells = laid_out([only_f, CLINICIANS], narrow=True)
    assert not any("\n" in heading for heading in headings)
    assert [one[2] for one in cells] == ["F -1.25 to -1.25", "-1.25 to -1.25"]


def test_pairs_are_counted_with_what_they_share_and_one_pair_is_singular() -> None:
    _, cells = laid_out([CLINICIANS, CLINICIANS | {"n_pairs": 1, "n_responses": 15}], narrow=False)
    assert [one[4] for one in cells] == ["3 pairs, 384 shared", "1 pair, 15 shared"]


def test_like_for_like_has_no_count_where_it_is_undefined() -> None:
    alone = row("like_for_like", icc=None, n_responses=0, n_missing=14)
    assert laid_out([alone], narrow=False)[1][0][4] == ""
    assert laid_out([row("like_for_like", n_missing=2)], narrow=False)[1][0][4] == "384 of 386"


def test_a_scorer_without_z_is_shown_with_what_it_scored() -> None:
    flat = row("juror:gpt", icc=None, n_responses=0, note="scored 20 of 20; undefined: no z")
    assert laid_out([flat], narrow=False)[1][0][4] == "20 of 20"


def test_a_fragile_comparison_like_for_like_is_called_so_in_the_table() -> None:
    note = "fragile: 9 of 10 comparisons rest on fewer than 10 responses"
    rows = [row("like_for_like", note=note), row("like_for_like")]
    _, cells = laid_out(rows, narrow=True)
    assert [one[0] for one in cells] == ["like for like, fragile", "like for like"]


def test_nothing_is_minus_zero() -> None:
    tiny = row("jury", icc=-0.0001, boot_low=-0.004, boot_high=0.2, spearman=-0.001)
    _, (cells,) = laid_out([tiny], narrow=False)
    assert (cells[1], cells[2], cells[5]) == ("0.000", "0.00 to 0.20", "0.00")


def test_several_responses_an_instance_are_said_once_with_the_greatest_count() -> None:
    notes = [f"scored 9 of 9; {n} responses from 40 {SEVERAL}" for n in (377, 384, 90)]
    rows = [row(f"juror:{n}", note=note) for n, note in enumerate(notes)]
    assert told(rows) == [f"up to 384 responses from 40 {SEVERAL}"]
    assert told([rows[0], rows[0]]) == [f"377 responses from 40 {SEVERAL}"]


def test_a_note_of_every_row_names_nobody() -> None:
    said = "364 of 599 responses are analysed"
    assert told([row("jury", note=said), row("clinicians", note=said)]) == [said]


def test_off_a_terminal_progress_writes_nothing_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(output, "progress_console", Console(file=written))
    with progress("resampling", 1.0) as at:
        at(0.5)
    assert written.getvalue() == ""
