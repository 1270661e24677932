"""The paper's pages: Table 1 from the public leaderboard equals the printed one, and a study says what it lacks."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kit.demo_study import Demo
from kit.studies import Run

from calibration.paper.leaderboard import Leaderboard, leaderboard_rows
from data.importers.leaderboard import read_leaderboard

# Models' means on HELM's benchmarks as the public leaderboard of MedHELM gave them in 2025, and Table 1 as printed:
# win rate, SD over opponents, macro-average, SD over benchmarks.
LEADERBOARD = Path(__file__).parent / "fixtures" / "medhelm_leaderboard.csv"
PRINTED = {
    "DeepSeek R1": (0.66, 0.11, 0.75, 0.21),
    "o3-mini (2025-01-31)": (0.66, 0.15, 0.77, 0.18),
    "Claude 3.5 Sonnet (20241022)": (0.63, 0.15, 0.74, 0.20),
    "Claude 3.7 Sonnet (20250219)": (0.63, 0.15, 0.73, 0.21),
    "GPT-4o (2024-05-13)": (0.58, 0.17, 0.74, 0.18),
    "Gemini 2.0 Flash": (0.43, 0.18, 0.71, 0.20),
    "GPT-4o mini (2024-07-18)": (0.37, 0.17, 0.71, 0.19),
    "Llama 3.3 Instruct (70B)": (0.30, 0.15, 0.70, 0.21),
    "Gemini 1.5 Pro (001)": (0.23, 0.08, 0.68, 0.20),
}
Write = Callable[[str, str], Path]


def copied(demo: Demo, folder: Path) -> str:
    """Return the URL of a copy of the demo study."""
    shutil.copy(demo.study, folder / "demo.db")
    return f"sqlite:///{folder / 'demo.db'}"


def test_table_1_from_the_leaderboard_is_the_printed_one() -> None:
    read = read_leaderboard(LEADERBOARD)
    names, metrics = zip(*read.headings, strict=True)
    scores = np.array(read.scores, dtype=np.float64)
    rows = leaderboard_rows(Leaderboard(read.models, names, metrics, scores, read.win_rates))
    found = {
        row.model: (row.win_rate, row.win_rate_sd_strict, row.macro_average, row.macro_average_sd)
        for row in rows
    }
    assert [row.model for row in rows] == [*PRINTED]
    for model, printed in PRINTED.items():
        assert found[model] == pytest.approx(printed, abs=0.005 + 1e-9), model
    assert {row.n_benchmarks for row in rows} == {37}


def test_pages_of_a_leaderboard_say_how_far_published_win_rates_agree(
    run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "pages"
    code, said, _ = run(
        "share", "paper", "--from", str(LEADERBOARD), "--out", str(out), "--json", "-"
    )
    body = json.loads(said)
    assert code == 0
    off = [one for one in body["published"] if not one["equal"]]
    assert max(abs(one["published"] - one["computed"]) for one in off) < 0.0021
    assert len(off) == 2  # ties at three digits
    assert body["pages"]["table_2"]["absent"] == "no_instances"
    categories = {row["category"] for row in body["pages"]["figure_4"]["rows"]}
    assert len(categories) == 5
    assert {path.name for path in out.iterdir()} == set(body["files"])
    page = (out / "index.html").read_text("utf-8")
    assert "7 of 9 published win rates equal" in page
    assert (out / "figure_3.svg").read_text("utf-8").startswith("<?xml")
    assert r"\toprule" in (out / "table_1.tex").read_text("utf-8")


def test_every_page_of_the_demo_study_has_figures_and_says_simulated(
    demo: Demo, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "pages"
    words = (
        "--db",
        copied(demo, tmp_path),
        "share",
        "paper",
        "--out",
        str(out),
        "--reps",
        "50",
    )
    code, said, err = run(*words, "--unblind", "--reason", "to see the pages", "--json", "-")
    assert code == 0, err
    pages, measured = (json.loads(said)[name] for name in ("pages", "measured"))
    assert [name for name, page in pages.items() if page["absent"]] == []
    assert all(page["rows"] for page in pages.values())
    assert [name for name, page in pages.items() if not page["simulated"]] == []
    for path in out.glob("*.csv"):
        rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
        assert {row["simulated"] for row in rows} == {"1"}, path.name
    for path in (*out.glob("*.tex"), *out.glob("*.svg"), out / "index.html"):
        assert "simulated" in path.read_text("utf-8").lower(), path.name
    scorers = {row["scorer"] for row in pages["table_2"]["rows"]}
    assert {"jury", "clinicians", "metric:rouge-l"} <= scorers
    assert not any(name.startswith(("juror:", "metric:medcalc")) for name in scorers)
    assert measured == {"demo_calculations": "medcalc"}
    assert {row["n_benchmarks"] for row in pages["table_1"]["rows"]} == {6}
    means = {(row["model"], row["benchmark"]): row["mean"] for row in pages["figure_3"]["rows"]}
    assert means["simulated/birch", "demo_calculations"] == pytest.approx(11 / 12)
    assert len(means) == 3 * 6
    page = (out / "index.html").read_text("utf-8")
    assert "Scored by their keys: demo_calculations by medcalc" in page


def test_made_up_costs_of_the_demo_are_called_so_and_give_way_to_those_that_are_given(
    demo: Demo, run: Run, tmp_path: Path, write: Write
) -> None:
    costs = write("costs.csv", "model,usd\nsimulated/alder,5\nsimulated/birch,12\n")
    words = ("--db", copied(demo, tmp_path), "share", "paper", "--reps", "50", "--json", "-")
    lifted = ("--unblind", "--reason", "to see the pages")
    made_up, given = tmp_path / "made_up", tmp_path / "given"
    of_demo, own = (
        json.loads(run(*words, *lifted, "--out", str(out), *more)[1])["pages"]["figure_5"]
        for out, more in ((made_up, ()), (given, ("--costs", str(costs))))
    )
    assert of_demo["differs"] == ["made_up_costs"]
    assert all(row["usd"] > 0 for row in of_demo["rows"])
    assert "US dollars, made up" in (made_up / "figure_5.svg").read_text("utf-8")
    assert own["differs"] == ["own_costs"]
    assert sorted(row["usd"] or 0 for row in own["rows"]) == [0, 5, 12]
    assert "made up" not in (given / "figure_5.svg").read_text("utf-8")


def test_a_study_that_is_blind_is_not_unblinded_by_accident(
    demo: Demo, run: Run, tmp_path: Path
) -> None:
    code, _, err = run(
        "--db",
        copied(demo, tmp_path),
        "share",
        "paper",
        "--out",
        str(tmp_path / "pages"),
        "--reps",
        "20",
    )
    assert code == 2
    assert "--reason" in err
    assert not (tmp_path / "pages").exists()


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("Name,A - EM\nm,1\nn,2\n", (), "whose first column is Model"),
        ("Model,A - EM\nm,1\n", (), "has 1 models and 1 benchmarks"),
        ("Model,A - EM\nm,1\nm,2\n", (), "is empty or stands twice"),
        ("Model,A - EM\nm,1\nn,good\n", (), "is no number"),
        ("Model,A - EM\nm,1\nn,2\n", ("--jurors", "j"), "--jurors belongs to a study"),
    ],
)
def test_what_is_no_leaderboard_is_refused_and_nothing_is_written(
    run: Run, write: Write, tmp_path: Path, text: str, words: tuple[str, ...], said: str
) -> None:
    path, out = write("board.csv", text), tmp_path / "pages"
    code, _, err = run("share", "paper", "--from", str(path), "--out", str(out), *words)
    assert (code, said in " ".join(err.split())) == (2, True), err
    assert not out.exists()


def test_a_release_of_helm_is_read_as_well(run: Run, write: Write, tmp_path: Path) -> None:
    header = [{"value": name} for name in ("Model", "Mean win rate", "A - EM", "B - Jury Score")]
    rows = [
        [{"value": "m"}, {"value": 1.0}, {"value": 0.5}, {"value": 5}],
        [{"value": "n"}, {"value": 0.0}, {"value": 0.25}, {}],
    ]
    path = write("group.json", json.dumps([{"header": header, "rows": rows}]))
    code, said, _ = run(
        "share", "paper", "--from", str(path), "--out", str(tmp_path / "p"), "--json", "-"
    )
    assert code == 0
    table = json.loads(said)["pages"]["table_1"]["rows"]
    assert [(row["model"], row["macro_average"], row["n_benchmarks"]) for row in table] == [
        ("m", 0.75, 2),
        ("n", 0.25, 1),
    ]
