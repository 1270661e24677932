"""Probing a panel: what each juror supports, told without a text of the study."""

from typing import Any

from stub_llm import Do, Stub

from data.schema import Status
from jury.panel import Panel, read_panel
from jury.probe import probe


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


def test_a_refused_key_is_told_and_costs_one_call() -> None:
    with Stub([Do(status=401)]) as stub:
        (row,) = probe(panel(stub))
    assert (row.status, row.reason, row.schema) == (Status.AUTH, "HTTP 401 some_error", "")


def test_simulated_jurors_answer_a_probe() -> None:
    assert [row.status for row in probe(read_panel("simulated"))] == [Status.OK] * 3
