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

from calibration.scope import AgreementRow, LikeForLikeRow
from calibration.tables.agreement import AGREEMENT
from calibration.tables.numbers import TERMINAL
from calibration.tables.spec import Table, laid_out
from calibration.values import NAN
from medjury.cli import output
from medjury.cli.output import emit, fitted, progress

BERT = "bertscore-all-MiniLM-L6-v2-5"
FIGURES = dict.fromkeys(["icc", "low", "high", "f_low", "f_high", "spearman"], -1.25)


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

    emit(fitted(AGREEMENT, ROWS, "title"))

    lines = written.getvalue().splitlines()
    assert any(line.startswith(BERT) for line in lines)
    assert any(line.startswith("Clinicians, by pairs") for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= room


def test_nothing_is_minus_zero() -> None:
    tiny = row("jury", icc=-0.0001, low=-0.004, high=0.2, spearman=-0.001)
    (cells,) = cells_of(tiny)
    assert (cells[1], cells[2], cells[3]) == ("0.000", "0.00 to 0.20", "0.00")


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
    assert {"jury_icc", "clinician_icc", "undefined_resamples"} <= held.keys()
    assert held["jury_icc"] - held["clinician_icc"] == pytest.approx(held["icc"])
    assert (held["corrected_low"], held["corrected_high"]) == (None, None)
    alone = rows["visits", "like_for_like"]
    assert alone["corrected_low"] < alone["low"] < alone["high"]
    assert alone["high"] < alone["corrected_high"]
    assert alone["undefined_resamples"] == 0
