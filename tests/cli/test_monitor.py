"""`medjury analyse monitor` as its user meets it."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from kit.rating_files import CRITERIA, monthly_ratings, monthly_responses
from kit.studies import Run, bring_in
from sqlalchemy import Engine, text

from data.study.frames import clinician_dates
from data.study.ledger import compositions_tried
from data.study.verify import verify
from medjury.services.panels import juror_ends

Write = Callable[[str, str], Path]

QUICK = ("--reps", "20")


@pytest.fixture
def studied(run: Run, tmp_path: Path) -> Callable[..., None]:
    """Fill the study: months, responses a month, and months in which the jury is good."""

    def fill(months: int, a_month: int, good: int, again: bool = False) -> None:
        texts = monthly_responses(months * a_month).splitlines()
        bring_in(run, tmp_path, texts, monthly_ratings(months, a_month, good, again).splitlines())

    return fill


def monitor(run: Run, *arguments: str) -> tuple[int, dict[str, object]]:
    code, out, err = run("analyse", "monitor", *QUICK, "--json", "-", *arguments)
    assert "Traceback" not in err
    return code, json.loads(out)


def test_while_agreement_holds_it_ends_with_zero(run: Run, studied: Callable[..., None]) -> None:
    studied(5, 20, 5)
    code, body = monitor(run)
    assert code == 0
    assert (body["fallen"], body["judged"], body["alarm"]) == (False, True, None)
    assert [one["period"] for one in body["periods"]] == [f"2025-0{m}" for m in range(1, 6)]
    assert [one["role"] for one in body["periods"]] == ["baseline"] * 3 + ["watched"] * 2
    assert body["drift"]["drift"] == "none"
    assert body["decision"]["kind"] == "steady"


def test_anchors_of_a_benchmark_that_no_clinician_rates_count_too(
    run: Run, studied: Callable[..., None], tmp_path: Path
) -> None:
    studied(3, 20, 3, again=True)
    before = {row["scorer"]: row["n_responses"] for row in monitor(run)[1]["anchor"]}
    texts = monthly_responses(12).replace("visits", "letters").replace(",task,r", ",task,letter-r")
    rows = [f"response_id,rater,kind,{','.join(CRITERIA)},rated_at,replicate"]
    rows += [
        f"letter-r{k},{juror},juror,3,4,{1 + k % 5},2025-0{1 + 2 * again}-10T09:00:00Z,{again}"
        for k in range(12)
        for juror in ("gpt", "claude")
        for again in range(2 if k < 5 else 1)
    ]
    bring_in(run, tmp_path, texts.splitlines(), rows)
    after = {row["scorer"]: row["n_responses"] for row in monitor(run)[1]["anchor"]}
    assert after == {scorer: number + 5 for scorer, number in before.items()}


def test_a_jury_that_stops_agreeing_ends_with_one_and_names_the_month(
    run: Run, studied: Callable[..., None]
) -> None:
    studied(6, 20, 4, again=True)
    code, body = monitor(run)
    assert code == 1
    assert body["fallen"]
    assert body["alarm"] in ("2025-05", "2025-06")
    assert str(body["alarm"]) in body["decision"]["reasons"][0]["words"]
    assert body["drift"]["drift"] == "model"
    assert {one["scorer"] for one in body["anchor"]} == {"juror:gpt", "juror:claude", "jury"}
    assert body["decision"]["kind"] == "fallen"
    assert body["decision"]["estimate"] < body["target"]["icc"]
    assert run("analyse", "monitor", *QUICK)[1].startswith("Agreement has fallen.")


def test_a_threshold_above_the_newest_icc_ends_with_one_without_an_alarm(
    run: Run, studied: Callable[..., None]
) -> None:
    studied(2, 20, 2)
    code, body = monitor(run, "--min-icc", "0.999")
    assert code == 1
    assert "below the floor of 1.00" in body["decision"]["reasons"][0]["words"]
    assert body["decision"]["headline"] == "Agreement is below the floor of 1.00."
    assert monitor(run, "--min-icc", "-1", "--min-instances", "20")[0] == 0


def test_a_study_without_dates_is_one_period_and_says_why(
    run: Run, small_study: Engine, write: Write
) -> None:
    rows = [
        f"{name},{who},{kind},{score},{score},3"
        for who, kind in (("dr_a", "clinician"), ("j", "juror"))
        for name, score in (("r11", 1), ("r12", 4), ("r21", 2), ("r22", 5))
    ]
    table = "\n".join([f"response_id,rater,kind,{','.join(CRITERIA)}", *rows])
    assert run("rate", "ratings", str(write("ratings.csv", table)))[0] == 0
    code, body = monitor(run)
    assert (code, len(body["periods"])) == (0, 1)
    assert body["periods"][0]["too_few"]
    assert body["decision"]["kind"] == "too_few"
    assert "responses to 18 more instances" in body["decision"]["next"]["words"]
    assert "ratings imported without rated_at" in run("analyse", "monitor", *QUICK)[1]


def test_reports_are_listed_with_what_changed_and_can_be_the_target(
    run: Run, studied: Callable[..., None], write: Write, engine: Engine
) -> None:
    studied(4, 20, 4)
    assert "frozen as report 1:" in run("analyse", "calibrate", *QUICK, "--freeze")[1]
    more = monthly_ratings(4, 20, 4, seed=9).replace("dr", "late")
    assert run("rate", "ratings", str(write("more.csv", more)))[0] == 0
    assert run("analyse", "calibrate", *QUICK, "--freeze", "--jurors", "gpt")[0] == 0
    first, second = monitor(run)[1]["reports"]
    assert (first["report"], first["name"], first["changed"]) == (1, "", [])
    assert second["changed"][0] == "juror claude left"
    assert any(one.startswith("ratings (80 -> 80 responses)") for one in second["changed"])
    assert verify(engine).findings == ()
    _, body = monitor(run, "--baseline-report", "1")
    assert body["target"]["icc"] == pytest.approx(first["icc"])
    words = "not watched yet: 1 more completed period with enough instances needed"
    assert body["target"]["note"] == words
    assert run("analyse", "monitor", "--baseline-report", "7")[2].startswith("medjury: no report 7")
    assert run("analyse", "monitor", "--baseline-report", "1", "--method", "published")[0] == 2


def test_a_correction_moves_no_response_to_another_month(
    run: Run, studied: Callable[..., None], write: Write, engine: Engine
) -> None:
    studied(1, 20, 1)
    before = clinician_dates(engine)
    later = monthly_ratings(1, 20, 1, seed=5).replace("2025-01", "2025-09")
    clinical = [line for line in later.splitlines() if "juror" not in line]
    assert run("rate", "ratings", str(write("later.csv", "\n".join(clinical))))[0] == 0
    after = clinician_dates(engine)
    assert {name: one.first for name, one in before.items()} == {
        name: one.first for name, one in after.items()
    }


def test_looking_is_noted_in_the_ledger_once(
    run: Run, studied: Callable[..., None], engine: Engine
) -> None:
    studied(2, 20, 2)
    run("analyse", "calibrate", *QUICK)
    monitor(run)
    entries = [one for one in compositions_tried(engine) if one.benchmark == "visits"]
    assert [(one.jurors, one.times) for one in entries] == [(["claude", "gpt"], 2)]


def test_without_a_jury_there_is_nothing_to_monitor(
    run: Run, small_study: Engine, write: Write
) -> None:
    table = f"response_id,rater,kind,{','.join(CRITERIA)}\nr11,dr_a,clinician,1,2,3"
    assert run("rate", "ratings", str(write("ratings.csv", table)))[0] == 0
    code, _, err = run("analyse", "monitor")
    assert code == 2
    assert "no juror has rated anything" in err


def test_the_end_of_a_model_is_known_by_model_and_host() -> None:
    profile = {"model": "gpt-4o-2024-05-13", "host": "api.openai.com"}
    elsewhere = profile | {"host": "hospital.example"}
    today = date(2026, 10, 1)
    rows = juror_ends(["a", "b", "c"], {"a": profile, "b": elsewhere}, None, today)
    assert [one.ends for one in rows] == [date(2026, 10, 23), None, None]
    assert rows[0].days_left == 22
    assert [bool(one.notes) for one in rows] == [True, False, False]
    (gone,) = juror_ends(["a"], {"a": profile}, None, date(2026, 12, 1))
    assert (gone.ends, gone.days_left) == (date(2026, 10, 23), -39)


def test_a_users_panel_may_know_an_end_that_shipped_ones_do_not(write: Write) -> None:
    panel = write(
        "panel.toml",
        'name = "p"\n[[juror]]\nname = "a"\nprovider = "openai"\nmodel = "m"\nfamily = "x"\n'
        'base_url = "http://127.0.0.1:1/v1"\nretires = 2027-01-01\n',
    )
    (row,) = juror_ends(["a"], {}, str(panel), date(2026, 12, 1))
    assert (row.juror, row.model, row.ends, row.days_left) == ("a", "m", date(2027, 1, 1), 31)
    assert row.told("model_ends")


def test_simulated_raters_are_called_so_wherever_a_figure_shows(
    run: Run, studied: Callable[..., None], engine: Engine
) -> None:
    studied(3, 20, 3)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE rater SET simulated = true WHERE handle = 'dr1'"))
    run("analyse", "calibrate", *QUICK, "--freeze")
    said = run("analyse", "monitor", *QUICK)[1]
    assert said.startswith("Simulated: nothing here is evidence.")
    assert "Simulated. visits: agreement by month, method paper" in said
    assert "Simulated raters: dr1." in said
    code, body = monitor(run, "--target", "0.99")
    assert (code, body["decision"]["kind"]) == (0, "simulated")
    assert body["simulated"] == ["dr1"]
    assert body["reports"][0]["simulated"]
