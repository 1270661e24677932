"""Points drafted by a juror: from the case alone, stored as drafts, and nothing changed by nonsense."""

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import HASTY, panel_at
from kit.jury_runs import run as run_jury
from kit.studies import Run
from sqlalchemy import Engine
from sqlmodel import select
from streamlit.testing.v1 import AppTest

from annotate import jury_runs
from annotate.navigation import study as served
from annotate.screens import lab_run
from data.database import reading
from data.errors import BadInput, Conflict, NotAllowed
from data.person import OPERATOR, Person
from data.points import points_of, points_rubric
from data.queries.cases import drafting, drafts_of, without_points
from data.queries.costs import study_spending
from data.queries.lab import last_run
from data.queries.record import verify
from data.queries.study import benchmarks
from data.schema import PointCall, Role
from data.store.jury_runs import RunOrder, keep_panel
from jury.budget import Budget
from jury.panel import panel_toml
from jury.point_drafts import DraftQuestion, draft_estimate, draft_points
from medjury.cli.commands import BY_NAME
from medjury.services.point_drafts import DraftScope, drafts_estimate

PRICED = {"usd_per_million_in": 1.0, "usd_per_million_out": 1.0}
POINT = {"point": "Says that there is no fever", "weight": 5, "kind": "must", "critical": True}
GOOD = json.dumps({"points": [POINT, POINT | {"point": "Says so twice", "kind": "must_not"}]})


def asked(stub: Stub, juror: str = "", **settings: Any) -> DraftQuestion:
    return DraftQuestion(panel_at(stub, **PRICED | settings), juror, "visits", points_rubric())


def test_a_juror_drafts_points_from_the_case_and_never_from_a_response(
    small_study: Engine, stub: Stub
) -> None:
    stub.script = lambda _: Do(GOOD)
    expected = draft_estimate(small_study, asked(stub))
    assert (expected.calls, stub.seen) == (2, [])
    result = draft_points(small_study, asked(stub), patience=HASTY)
    assert (result.rated, result.missing, len(stub.seen)) == (2, 0, 2)
    for seen in stub.seen:
        assert not any(text in seen.prompt for text in ("denies fever", "has fever", "Mild pain."))
    assert sum("Any fever?" in seen.prompt for seen in stub.seen) == 1
    assert sum("No fever." in seen.prompt for seen in stub.seen) == 1  # the reference of one
    drafts = drafts_of(OPERATOR, small_study, "visits")
    assert [(one.instance_id, one.author) for one in drafts] == [("i1", "a"), ("i2", "a")]
    assert points_of(drafts[0].rubric)[0].critical
    assert without_points(small_study, "visits") == ["i1", "i2"]
    with pytest.raises(BadInput, match="have no points yet"):
        run_jury(small_study, panel_at(stub))
    assert draft_points(small_study, asked(stub), patience=HASTY).calls == 0
    assert study_spending(small_study).usd == pytest.approx(result.usd) != 0
    assert verify(small_study).findings == ()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Do("I would rather not."), "invalid_json"),
        (Do('{"points": [{"point": "Says'), "invalid_json"),
        (Do('{"points": []}'), "invalid_json"),
        (Do(json.dumps({"points": [POINT | {"weight": None}]})), "invalid_json"),
        (Do(json.dumps({"points": [{"point": "Says it"}]})), "invalid_json"),
        (Do(json.dumps({"points": [POINT | {"weight": -1}]})), "invalid_json"),
        (Do(json.dumps({"points": [POINT | {"kind": "must_not"}]})), "invalid_json"),
        (Do(GOOD + ' {"points": []}'), "two_verdicts"),
        (Do(finish="truncated", text=GOOD), "truncated"),
        (Do(drop=True), "request_failed"),
    ],
)
def test_a_drafter_that_answers_nonsense_or_breaks_off_changes_nothing_and_its_money_is_told(
    small_study: Engine, stub: Stub, answer: Do, status: str
) -> None:
    stub.script = lambda _: answer
    before = [one.rubric.sha256 for one in benchmarks(small_study)]
    result = draft_points(small_study, asked(stub), patience=HASTY)
    assert (result.rated, result.by_status) == (0, {status: 2})
    assert drafts_of(OPERATOR, small_study, "visits") == []
    assert [one.rubric.sha256 for one in benchmarks(small_study)] == before
    with reading(small_study) as session:
        calls = session.exec(select(PointCall)).all()
    assert len(calls) == len(stub.seen)
    assert all(call.reason for call in calls)
    if status == "invalid_json":
        assert result.usd > 0
    assert verify(small_study).findings == ()


def test_what_cannot_be_put_on_points_is_refused_before_anything_is_sent(
    small_study: Engine, stub: Stub
) -> None:
    with pytest.raises(BadInput, match="the jurors are a"):
        draft_points(small_study, asked(stub, "z"))
    run_jury(small_study, panel_at(stub))
    calls = len(stub.seen)
    with pytest.raises(Conflict, match="has ratings on generic"):
        draft_points(small_study, asked(stub, name="b"))
    assert len(stub.seen) == calls


def test_a_cap_is_kept_and_texts_of_the_case_are_data(small_study: Engine, stub: Stub) -> None:
    stub.script = lambda _: Do(GOOD)
    result = draft_points(small_study, asked(stub), budget=Budget(0.0), patience=HASTY)
    assert (result.by_status, stub.seen) == ({"budget_stopped": 2}, [])
    draft_points(small_study, asked(stub), patience=HASTY)
    for seen in stub.seen:
        assert seen.prompt.count("</context>") == 1


def test_the_command_estimates_drafts_and_tells_what_is_missing(
    small_study: Engine, run: Run, tmp_path: Path, stub: Stub
) -> None:
    def script(seen: Seen) -> Do:
        return Do(GOOD if "fever" in seen.prompt else "No.")

    stub.script = script
    path = tmp_path / "p.toml"
    path.write_text(panel_toml(panel_at(stub, **PRICED)))
    call = ("study", "points", "draft", str(path), "--benchmark", "visits")
    code, out, err = run(*call, "--estimate", "--json", "-")
    assert (code, json.loads(out)["calls"], stub.seen) == (0, 2, []), err
    code, out, err = run(*call, "--json", "-")
    body = json.loads(out)
    assert (code, body["drafted"], body["missing"]) == (1, 1, {"invalid_json": 1}), err
    assert body["usd"] > 0
    name = "study points draft"
    assert run(*name.split(), *shlex.split(BY_NAME[name].example))[0] == 0


def order_of(stub: Stub, cap: float | None = 1.0) -> RunOrder:
    text = panel_toml(panel_at(stub, "a", "b", **PRICED))
    return RunOrder("p", text, ("visits",), cap=cap, task="draft", juror="b")


def test_drafts_asked_for_in_the_app_are_the_command_s_and_what_they_cost_is_told(
    small_study: Engine, stub: Stub
) -> None:
    stub.script = lambda seen: Do(GOOD if "fever" in seen.prompt else "No.")
    order = order_of(stub)
    expected = drafts_estimate(
        small_study, DraftScope(panel_at(stub, "a", "b", **PRICED), "b", "visits")
    )
    assert (expected.juror, expected.calls, stub.seen) == ("b", 2, [])
    jury_runs.start(OPERATOR, small_study, order)
    end = time.monotonic() + 120
    while (run := last_run(OPERATOR, small_study)) is not None and run.ended is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert run is not None
    assert (run.code, run.figures["drafted"], run.figures["missing"]) == (1, 1, {"invalid_json": 1})
    found = drafting(OPERATOR, small_study, run.started, run.ended)
    assert (found.drafts, found.calls) == (1, len(stub.seen))
    assert found.usd == pytest.approx(run.figures["usd"]) != 0
    facts = lab_run._draft_facts(run, found)
    assert f"${found.usd:,.4f}" in facts
    assert "1 invalid_json" in facts
    assert [one.author for one in drafts_of(OPERATOR, small_study, "visits")] == ["b"]
    assert verify(small_study).findings == ()


def test_only_coordinators_ask_for_drafts_and_paid_ones_need_a_cap(
    small_study: Engine, stub: Stub
) -> None:
    for role in (Role.RESEARCHER, Role.CLINICIAN):
        with pytest.raises(NotAllowed):
            jury_runs.start(Person(9, "one", role), small_study, order_of(stub))
    with pytest.raises(BadInput, match="set a cap in US dollars"):
        jury_runs.start(OPERATOR, small_study, order_of(stub, cap=None))
    assert (last_run(OPERATOR, small_study), stub.seen) == (None, [])


SCRIPT = """
from annotate.navigation import study
from annotate.screens.study_points import show
from data.queries import Person
show(study(), Person(7, "One", "ROLE", None))
"""


@pytest.mark.parametrize("role", [Role.COORDINATOR, Role.RESEARCHER])
def test_the_page_of_points_offers_drafts_to_coordinators_with_estimate_cap_and_cost(
    small_study: Engine, stub: Stub, monkeypatch: pytest.MonkeyPatch, role: Role
) -> None:
    stub.script = lambda _: Do(GOOD)
    panel = panel_at(stub, "a", "b", **PRICED)
    keep_panel(OPERATOR, small_study, panel.name, panel_toml(panel))
    monkeypatch.setenv("MEDJURY_DB", small_study.url.render_as_string(hide_password=False))
    page = AppTest.from_string(SCRIPT.replace("ROLE", role), default_timeout=60).run()
    buttons = {one.label: one for one in page.button}
    if role == Role.RESEARCHER:
        assert "Ask for drafts" not in buttons
        return
    buttons["Ask for drafts"].click()
    text = drawn(page.run())
    assert "set a cap in US dollars" in text
    assert "The first draft puts visits on points" in text
    assert "Sources, tasks and references go to 127.0.0.1" in text
    {one.label: one for one in page.button}["Estimate"].click()
    assert "2 instances with neither points nor a draft" in drawn(page.run())
    assert stub.seen == []
    draft_points(small_study, asked(stub), patience=HASTY)
    text = drawn(page.run())
    assert "Drafted by a." in text
    assert "Says that there is no fever" in text
    served().dispose()


def drawn(page: AppTest) -> str:
    assert not page.exception, [error.value for error in page.exception]
    return "\n".join(str(part.proto) for part in page.main)
