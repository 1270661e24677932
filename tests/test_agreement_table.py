"""The agreement table as it is printed, and what `calibrate` prints around it."""

import io
import json
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.studies import Run, rated
from rich.console import Console

from calibration.codes import CODES, NoteCode
from calibration.messages import words
from calibration.scope import AgreementRow, LikeForLikeRow
from calibration.tables.agreement import AGREEMENT
from calibration.tables.numbers import TERMINAL
from calibration.tables.spec import RowNotes, Table, laid_out, table_notes
from calibration.values import NAN, note
from medjury.cli import output
from medjury.cli.agreement_show import fitted
from medjury.cli.output import progress, show_table, table_width

BERT = "bertscore-all-MiniLM-L6-v2-5"
FIGURES = dict.fromkeys(
    ["icc", "low", "high", "f_low", "f_high", "boot_low", "boot_high", "spearman"], -1.25
)
WIDE = ("Scorer", "ICC(C,2)", "95 %", "F 95 %", "Spearman", "Scored", "Instances")
NARROW = ("Scorer", "ICC(C,2)", "95 %", "Scored")


def row(scorer: str, **other: Any) -> AgreementRow:
    """Return a row with the widest figures there are."""
    kind = LikeForLikeRow if scorer == "like_for_like" else AgreementRow
    return kind("b", scorer, **FIGURES | {"n_responses": 384} | other)


def cells_of(*rows: AgreementRow, narrow: bool = False) -> list[tuple[str, ...]]:
    """Return the cells of the table that the terminal shows."""
    return [*table_of(*rows, narrow=narrow).groups[0].rows]


def table_of(*rows: AgreementRow, narrow: bool = False) -> Table:
    return laid_out(AGREEMENT, rows, TERMINAL, narrow=narrow)


CLINICIANS = row("clinicians", f_low=NAN, f_high=NAN, spearman=NAN, n_pairs=3)
ROWS = [row("jury"), row(f"metric:{BERT}"), CLINICIANS]


@pytest.mark.parametrize("room", [80, 100, 120])
def test_every_line_of_a_table_fits_the_screen_and_no_scorer_is_folded(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(output, "console", Console(file=written, width=room))

    show_table(fitted(AGREEMENT, ROWS, "title", None))

    lines = written.getvalue().splitlines()
    assert any(line.startswith(BERT) for line in lines)
    assert any(line.startswith("Clinicians, by pairs") for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= room


def test_what_is_for_wide_places_is_left_out_only_where_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {}
    for room in (80, 100, 120):
        monkeypatch.setattr(output, "console", Console(file=io.StringIO(), width=room))
        found[room] = fitted(AGREEMENT, ROWS, "title", None)
    assert [one.columns for one in found.values()] == [
        NARROW,
        ("Scorer", "ICC(C,2)", "95 %", "F 95 %", "Scored"),
        WIDE,
    ]
    assert [table_width(one) <= room for room, one in found.items()] == [True] * 3
    assert found[80].groups[0].rows[2][2:4] == ("-1.25 to -1.25", "3 pairs, 384 shared")


def test_where_it_is_narrow_no_interval_can_be_taken_for_the_other() -> None:
    only_f = row("jury", low=NAN, high=NAN)
    cells = cells_of(only_f, CLINICIANS, narrow=True)
    assert not any(one.startswith("F ") for one in table_of(only_f, narrow=True).columns)
    assert [one[2] for one in cells] == ["-", "-1.25 to -1.25"]


def test_pairs_are_counted_with_what_they_share_and_one_pair_is_singular() -> None:
    cells = cells_of(CLINICIANS, row("clinicians", n_pairs=1, n_responses=15))
    assert [one[5] for one in cells] == ["3 pairs, 384 shared", "1 pair, 15 shared"]


def test_like_for_like_has_no_count_where_it_is_undefined() -> None:
    alone = row("like_for_like", icc=NAN, n_responses=0, n_missing=14)
    assert cells_of(alone)[0][5] == "-"
    assert cells_of(row("like_for_like", n_missing=2))[0][5] == "384 of 386"


def test_a_scorer_without_z_is_shown_with_what_it_scored() -> None:
    figures = {"scored": 20, "analysed": 20, "scored_in_study": 20, "in_study": 20}
    scored = note(NoteCode.COVERAGE, **figures)
    no_z = note(NoteCode.NO_Z, who="the scorer", several=False)
    flat = row("juror:gpt", icc=NAN, n_responses=0, notes=(scored, no_z))
    assert cells_of(flat)[0][5] == "20 of 20"
    assert cells_of(flat)[0][1] == "-"


def test_nothing_is_minus_zero() -> None:
    tiny = row("jury", icc=-0.0001, low=-0.004, high=0.2, spearman=-0.001)
    (cells,) = cells_of(tiny)
    assert (cells[1], cells[2], cells[4]) == ("0.000", "0.00 to 0.20", "0.00")


def test_several_responses_an_instance_are_said_once_whatever_their_numbers() -> None:
    notes = [note(NoteCode.SHARED_INSTANCES, responses=n, instances=40) for n in (377, 384, 90)]
    rows = [row(f"juror:{n}", notes=(one,)) for n, one in enumerate(notes)]
    assert [one.text for one in table_of(*rows).notes] == [
        "several responses of an instance: the F interval takes them as independent, the bootstrap "
        "does not"
    ]
    assert "384 responses from 40 instances" in words(notes[1])


def test_a_note_of_every_row_names_nobody() -> None:
    told = note(NoteCode.ANALYSED, analysed=364, in_study=599)
    rows = [RowNotes("", name, (told,)) for name in ("Jury", "Clinicians, by pairs")]
    assert [one.text for one in table_notes(rows)] == [words(told)]
    assert words(told).startswith("364 of 599 responses are analysed")


def test_off_a_terminal_progress_writes_nothing_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(output, "progress_console", Console(file=written))
    with progress("resampling", 1.0) as at:
        at(0.5)
    assert written.getvalue() == ""


JURORS = ("gpt-4o-2024-11-20", "claude-opus-4", "llama-3.3-70b")


@pytest.fixture
def like_the_demo(run: Run, tmp_path: Path) -> Run:
    """Make a study of two benchmarks, three jurors and two metrics that every response has."""
    random = np.random.default_rng(1)
    for benchmark, n, first in (("visits", 40, 0), ("plans", 30, 40)):
        rated(run, tmp_path, JURORS, benchmark, n, first)
    lines = ["response_id,rater,kind,criterion,score"]
    for i in range(70):
        lines += [f"r{i},{name},metric,f,{random.random():.3f}" for name in ("rouge-l", BERT)]
    (tmp_path / "m.csv").write_text("\n".join(lines))
    assert run("rate", "ratings", str(tmp_path / "m.csv"))[0] == 0
    return run


def test_calibrate_shows_the_decision_first_and_the_table_on_one_screen_of_80_by_24(
    like_the_demo: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = like_the_demo("analyse", "calibrate")
    assert code == 0
    said = (out + err).replace(str(tmp_path), "/study")  # the tests' folder has a long name
    shown = [part for line in said.splitlines() for part in textwrap.wrap(line, 80) or [""]]
    assert len(shown[: shown.index("Each clinician against the mean of the others")]) <= 24
    assert len(shown) <= 33, "\n".join(shown)
    assert shown[0].startswith("jury: ")
    assert shown[1] == "Not judged: no margin was fixed for this analysis."
    assert (out + err).splitlines()[-1].startswith("study ")
    assert [line for line in shown if line.startswith("Scorer")] == [
        line for line in shown if "ICC(C,2)" in line
    ]  # one table, the combined one
    for scorer in ("Jury", *JURORS, "rouge-l", BERT, "Clinicians, by pairs", "Like for like"):
        assert any(line.startswith(scorer) for line in shown), scorer


def test_each_benchmark_all_notes_and_what_is_behind_them_are_shown_where_they_are_asked_for(
    like_the_demo: Run,
) -> None:
    _, out, _ = like_the_demo("analyse", "calibrate", "--reps", "200")
    assert out.count("agreement with the clinicians (method paper)") == 1
    assert "BCa" not in out
    assert "--by-benchmark: each of 2; --notes: all notes; --details: all behind it" in out
    _, each, _ = like_the_demo("analyse", "calibrate", "--reps", "200", "--by-benchmark")
    assert each.count("agreement with the clinicians (method paper)") == 3
    assert "plans: agreement" in each
    _, noted, _ = like_the_demo("analyse", "calibrate", "--reps", "200", "--notes")
    assert "Jury: BCa bootstrap 0." in noted
    assert "200 resamples, seed 0." in noted
    assert "--notes" not in noted


def test_json_has_the_decision_and_the_notes_as_codes_beside_their_words(
    like_the_demo: Run,
) -> None:
    body = json.loads(like_the_demo("analyse", "calibrate", "--reps", "400", "--json", "-")[1])
    decision = body["decision"]
    rows = {(one["benchmark"], one["scorer"]): one for one in body["rows"]}
    held = rows["combined", "like_for_like"]
    keys = ["method", "k", "reps", "seed", "decision", "protocol", "reading", "adjudicated"]
    keys += ["rows", "raters", "reliability", "detection", "subgroups"]
    keys += ["checked_with"]
    assert list(body) == keys
    assert {"kind", "headline", "estimate", "low", "high", "reasons", "next"} <= decision.keys()
    assert (decision["estimate"], decision["low"], decision["high"]) == (
        *(held["icc"], held["low"], held["high"]),
    )
    assert next(one["code"] for one in decision["reasons"]) == "gap"
    assert all(one["code"] and one["words"] for one in decision["reasons"])
    assert decision["next"]["code"].startswith("do_")
    for one in body["rows"]:
        assert list(one)[-2:] == ["note", "notes"]
        codes = [own["code"] for own in one["notes"]]
        assert len(codes) == len(one["note"].split("; ")) if codes else one["note"] == ""
        assert set(codes) <= CODES
    assert {"jury_icc", "clinician_icc", "undefined_resamples"} <= held.keys()
    assert held["jury_icc"] - held["clinician_icc"] == pytest.approx(held["icc"])
    assert (held["corrected_low"], held["corrected_high"]) == (None, None)
    alone = rows["visits", "like_for_like"]
    assert alone["corrected_low"] < alone["boot_low"] < alone["boot_high"]
    assert alone["boot_high"] < alone["corrected_high"]
    assert alone["undefined_resamples"] == 0
