"""Probing a panel: what each juror supports, told without a text of the study."""

import json
from typing import Any

import pytest
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import HASTY
from sqlalchemy import Engine

from data.schema import Status
from jury.call import Answer
from jury.fitness import INJECTIONS
from jury.panel import Panel, read_panel
from jury.probe import probe
from jury.run import run_panel
from jury.session import fatal


def panel(stub: Stub, **settings: Any) -> Panel:
    one = {"name": "a", "provider": "openai", "model": "m", "family": "f"}
    return Panel.model_validate(
        {"name": "p", "juror": [one | {"base_url": stub.openai_url} | settings]}
    )


def test_a_juror_that_answers_is_told_with_schema_model_host_and_end() -> None:
    with Stub() as stub:
        (row,) = probe(panel(stub, temperature=0.0, retires="2027-01-14"))
    assert (row.status, row.schema, row.temperature) == (Status.OK, "json_schema", "accepted")
    assert (row.returned_model, row.host, str(row.ends)) == (
        "m-returned",
        "127.0.0.1",
        "2027-01-14",
    )
    assert len(stub.seen) == 1


def test_a_server_without_schemas_is_told_so() -> None:
    with Stub(lambda seen: Do() if seen.form == "text" else Do(status=500)) as stub:
        (row,) = probe(panel(stub))
    assert (row.status, row.schema, row.temperature) == (Status.OK, "text", "not set")


def test_a_model_that_refuses_a_temperature_is_told_so() -> None:
    with Stub(lambda seen: Do(status=400) if "temperature" in seen.body else Do()) as stub:
        (row,) = probe(panel(stub, temperature=0.0))
    assert (row.status, row.schema, row.temperature) == (Status.OK, "json_schema", "refused")
    assert row.reason == "refuses temperature = 0: delete that line of juror a in the panel"
    assert "temperature" not in stub.seen[-1].body


OPENAI = {"message": "Unsupported value", "param": "temperature", "code": "unsupported_value"}
ECHO = {"message": "too long: 'temperature 39.5 since Monday'", "param": None}


@pytest.mark.parametrize(
    ("error", "sent", "stops"),
    [
        (OPENAI, {"temperature": 0.0}, True),
        ({"message": "`temperature` is not supported by this model"}, {"temperature": 0.0}, True),
        ({"message": "Unsupported parameter: 'temperature'"}, {"temperature": 0.0}, True),
        (OPENAI, {}, False),
        (ECHO, {"temperature": 0.0}, False),
        ("temperature", {"temperature": 0.0}, False),
        ({"message": None}, {"temperature": 0.0}, False),
    ],
)
def test_only_an_error_about_a_temperature_that_was_sent_stops_a_juror_for_it(
    error: Any, sent: dict[str, Any], stops: bool
) -> None:
    text = json.dumps({"error": error})
    why = fatal(Answer(Status.REQUEST_FAILED, "HTTP 400", text, sent, http=400))
    assert why == (
        "HTTP 400: the model refuses temperature = 0; delete that line in the panel and give the "
        "juror another name"
        if stops
        else ""
    )


def test_a_run_stops_a_juror_that_refuses_its_temperature_after_one_call(
    small_study: Engine,
) -> None:
    body = json.dumps({"error": OPENAI})
    with Stub(lambda _: Do(status=400, body=body)) as stub:
        result = run_panel(small_study, panel(stub, temperature=0.0), concurrency=1)
    assert (result.rated, result.calls, len(stub.seen)) == (0, 1, 1)
    assert "refuses temperature = 0" in result.stopped["a"]


def test_a_refused_key_is_told_and_costs_one_call() -> None:
    with Stub([Do(status=401)]) as stub:
        (row,) = probe(panel(stub))
    assert (row.status, row.reason, row.schema) == (Status.AUTH, "HTTP 401 some_error", "")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("I would say three.", Status.INVALID_JSON),
        ('{"test": {"explanation": "fine", "score": 7}}', Status.OUT_OF_RANGE),
        ('{"test": {"explanation": "fine"}}', Status.MISSING_CRITERION),
    ],
)
def test_an_answer_that_cannot_be_used_twice_is_not_ok_and_ends_the_probe(
    text: str, status: Status
) -> None:
    with Stub(lambda _: Do(text)) as stub:
        (row,) = probe(panel(stub), injections=INJECTIONS)
    assert (row.status, row.schema, row.injection) == (status, "json_schema", None)
    assert row.reason
    assert len(stub.seen) == 2


def test_an_answer_that_was_cut_off_is_asked_for_without_explanation_as_in_a_run() -> None:
    def script(seen: Seen) -> Do:
        if '"explanation"' in seen.prompt:
            return Do('{"test": {"expl', finish="truncated")
        return Do('{"test": {"score": 3}}')

    with Stub(script) as stub:
        (row,) = probe(panel(stub))
    assert (row.status, row.schema, len(stub.seen)) == (Status.OK, "json_schema", 2)


def test_a_failure_that_passes_is_waited_for_as_in_a_run() -> None:
    with Stub(lambda seen: Do(status=503) if seen.number < 4 else Do()) as stub:
        (row,) = probe(panel(stub), patience=HASTY)
    assert (row.status, len(stub.seen)) == (Status.OK, 5)


def test_simulated_jurors_answer_a_probe() -> None:
    assert [row.status for row in probe(read_panel("simulated"))] == [Status.OK] * 3


def test_a_probe_that_nobody_answered_has_an_unknown_cost() -> None:
    with Stub(lambda _: Do(drop=True)) as stub:
        priced = panel(stub, usd_per_million_in=1.0, usd_per_million_out=1.0)
        (row,) = probe(priced, patience=HASTY)
    assert (row.status, row.usd) == (Status.REQUEST_FAILED, None)
