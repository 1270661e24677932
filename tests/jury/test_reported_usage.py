"""What a host reports in numbers is believed only where it can be true; else a call counts at its most."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.jurors import Do, Seen, Stub, openai_body, verdict
from kit.jury_runs import HASTY, attempts, ratings
from kit.money import MOST_OUT, NEVER, bill, lying, most, panel, panel_file
from kit.reference_study import fill
from kit.studies import Run
from sqlalchemy import Engine, text

from data.schema import Status
from data.study.costs import study_spending
from data.study.settings import set_setting
from jury.api_protocols import http_failure
from jury.run import run_panel


@pytest.mark.parametrize("count", [*NEVER, 0, MOST_OUT * 10**6], ids=str)
def test_a_host_that_lies_of_its_tokens_frees_nobody_from_the_cap_and_loses_no_answer(
    engine: Engine, write: Callable[[str, str], Path], run: Run, tmp_path: Path, count: object
) -> None:
    fill(engine, write, 4)
    told = tmp_path / "told.json"

    def script(seen: Seen) -> Do:
        return lying(seen, count) if seen.model == "liar" else Do(tokens=(1000, 150))

    with Stub(script) as stub:
        panel = panel_file(write, stub, "liar", "honest")
        code, out, said = run("jury", "run", panel, "--max-usd", "0.4", "--json", str(told))
        body = json.loads(told.read_text("utf-8"))
        assert (code, "Traceback" in out + said) == (1, False)
        assert 0 <= body["usd"] <= body["usd_study"] <= 0.4
        by_model = [seen.model for seen in stub.seen]
        assert len(by_model) == body["rated"] == len(ratings(engine)) / 3
        honest = by_model.count("honest") * bill(1000, 150)
        assert honest + sum(most(seen) for seen in stub.seen if seen.model == "liar") <= 0.4
        assert run("jury", "run", panel, "--json", str(told))[0] == 0
        assert len(stub.seen) == 2 * 10, "what was answered is not asked again"
    calls = [one for one in attempts(engine) if one.number]
    assert {one.status for one in calls} == {Status.OK}
    lied = [one for one in calls if one.usd is None]
    assert len(lied) == 10
    assert {(one.tokens_in, one.tokens_out) for one in lied} == {(None, None)}
    assert "believed" in lied[0].price_source
    body = json.loads(told.read_text("utf-8"))
    assert body["usd_in_flight"] >= sum(most(seen) for seen in stub.seen if seen.model == "liar")


@pytest.mark.parametrize(
    "parts",
    [
        {"prompt_tokens_details": {"cached_tokens": 10**6}},
        {"prompt_tokens_details": {"cached_tokens": -(10**6)}},
        {"prompt_tokens_details": {"cache_write_tokens": "none"}},
        {"completion_tokens_details": {"reasoning_tokens": 10**30}},
        {"completion_tokens_details": {"reasoning_tokens": 100}},
        {"prompt_tokens": 0},
        {"prompt_tokens": -1},
        {"total_tokens": -1},
    ],
    ids=str,
)
def test_counts_that_contradict_one_another_are_not_believed(
    engine: Engine, write: Callable[[str, str], Path], parts: dict[str, Any]
) -> None:
    fill(engine, write, 1)
    with Stub(lambda seen: lying(seen, 50, **parts)) as stub:
        result = run_panel(engine, panel(stub, "a"), patience=HASTY)
    assert (result.missing, result.usd, result.usd_unknown) == (0, 0.0, 4)
    assert result.usd_study == result.usd_in_flight >= sum(map(most, stub.seen))


def test_tokens_that_stand_in_the_total_alone_were_written_too(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    fill(engine, write, 1)
    with Stub(lambda seen: lying(seen, 50, total_tokens=500 + 50 + 70)) as stub:
        result = run_panel(engine, panel(stub, "a"), patience=HASTY)
    assert result.usd == pytest.approx(4 * bill(500, 120))
    assert result.tokens.output == 4 * 120


def test_a_whole_number_of_thousands_of_digits_costs_no_answer(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    fill(engine, write, 1)

    def script(seen: Seen) -> Do:
        body = lying(seen, 12345).body or ""
        return Do(body=body.replace("12345", "9" * 5000))

    with Stub(script) as stub:
        result = run_panel(engine, panel(stub, "a"), patience=HASTY)
    assert (result.missing, len(stub.seen), result.usd_unknown) == (0, 4, 4)


def test_the_name_and_id_of_an_answer_may_hold_what_no_database_holds(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    fill(engine, write, 1)

    def script(seen: Seen) -> Do:
        whole = openai_body(seen, Do(), verdict(seen)) | {"model": "m\x00\ud800", "id": "\udfff"}
        return Do(body=json.dumps(whole), headers={"x-request-id": ""})

    with Stub(script) as stub:
        result = run_panel(engine, panel(stub, "a"), patience=HASTY)
    assert (result.missing, len(stub.seen)) == (0, 4)
    assert attempts(engine)[0].returned_model == "m\ufffd?"


def test_a_cost_below_nothing_opens_no_budget(
    engine: Engine, write: Callable[[str, str], Path], run: Run
) -> None:
    fill(engine, write, 12)
    with Stub(lambda _: Do(tokens=(1000, 150))) as stub:
        file = panel_file(write, stub, "a")
        assert run("jury", "run", file, "--max-usd", "0.2")[0] == 1
        paid = study_spending(engine).known
        with engine.begin() as connection:  # as an attack had it stored
            first = "(SELECT MIN(id) FROM attempt WHERE number > 0)"
            lie = "UPDATE attempt SET usd = -95, tokens_out = -1000000 WHERE id = "
            connection.execute(text(lie + first))
        assert study_spending(engine).known == pytest.approx(paid - bill(1000, 150))
        set_setting(engine, "budget", f"{paid}")
        before = len(stub.seen)
        code, _, said = run("jury", "run", file, "--max-usd", "1")
        assert (code, "the study's budget is" in " ".join(said.split())) == (2, True)
        assert run("jury", "run", file, "--max-usd", "0.001")[0] == 1
        assert len(stub.seen) == before
        for command in (["jury", "missing"], ["status"]):
            assert run(*command)[0] == 0


def test_a_gateway_that_timed_out_may_have_had_the_call_billed(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    fill(engine, write, 1)
    for code, usd_unknown in ((504, 1), (408, 1), (524, 1), (500, 0), (429, 0)):
        with Stub(lambda seen, code=code: Do(status=200 if seen.number else code)) as stub:
            jurors = panel(stub, f"a{code}")
            result = run_panel(engine, jurors, concurrency=1, patience=HASTY)
        assert (result.missing, result.usd_unknown) == (0, usd_unknown), code


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "86400"}, 86_400.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        *(
            ({"retry-after": value}, None)
            for value in ("", "-1", "nan", "inf", "1e400", f"{10**30}", "soon", "[]")
        ),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, None),
        ({"retry-after": "Fri, 31 Dec 99999999999 23:59:59 GMT"}, None),
        ({"retry-after-ms": "-1"}, None),
        ({"retry-after-ms": "nan"}, None),
    ],
)
def test_a_time_to_wait_is_one_that_somebody_could_wait(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert http_failure(429, headers, "").retry_after == seconds
