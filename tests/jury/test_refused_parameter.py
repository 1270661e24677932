"""Parameters that a server refuses by name: learnt and sent otherwise, or told with what to write."""

import json
from typing import Any

import pytest
from kit.jurors import Do, Seen, Stub, answers, juror

from data.schema import Status
from jury.api_protocols import unsupported_parameter
from jury.call import Answer
from jury.panel import Panel
from jury.probe import probe
from jury.session import fatal


def refusing(*names: str) -> Any:
    """Return a script that refuses these parameters as OpenAI and Azure do."""

    def script(seen: Seen) -> Do:
        known = next((name for name in names if name in seen.body), None)
        return Do() if known is None else Do(status=400, body=refusal(known))

    return script


def refusal(name: str) -> str:
    said = f"Unsupported parameter: '{name}' is not supported with this model."
    error = {"message": said, "type": "invalid_request_error", "param": name}
    return json.dumps({"error": error | {"code": "unsupported_parameter"}})


@pytest.mark.parametrize(
    ("provider", "refused", "sent"),
    [
        ("openai", "max_tokens", "max_completion_tokens"),
        ("azure", "max_completion_tokens", "max_tokens"),
    ],
)
def test_the_name_of_the_limit_is_learnt_and_remembered(
    provider: str, refused: str, sent: str
) -> None:
    with Stub(refusing(refused)) as stub:
        found = answers(juror(provider, stub.openai_url, api_key_env="K", max_tokens=77), 3)
    assert [answer.status for answer in found] == [Status.OK] * 3
    assert len(stub.seen) == 4
    assert [seen.body[sent] for seen in stub.seen[1:]] == [77] * 3
    assert [answer.sent[sent] for answer in found] == [77] * 3


def test_a_server_that_knows_no_limit_at_all_is_not_asked_without_one() -> None:
    with Stub(refusing("max_tokens", "max_completion_tokens")) as stub:
        first, second = answers(juror("openai", stub.openai_url), 2)
    assert (first.http, second.http) == (400, 400)
    assert len(stub.seen) == 3
    assert all({"max_tokens", "max_completion_tokens"} & seen.body.keys() for seen in stub.seen)


def test_a_limit_that_is_only_too_large_is_not_sent_under_another_name() -> None:
    error = {"message": "max_tokens is too large", "param": "max_tokens", "code": "invalid_value"}
    with Stub(lambda _: Do(status=400, body=json.dumps({"error": error}))) as stub:
        answers(juror("openai", stub.openai_url))
    assert len(stub.seen) == 1


FASTAPI = {"detail": [{"type": "extra_forbidden", "loc": ["body", "store"], "msg": "Extra"}]}
ERRORS = [
    (json.loads(refusal("store")), "store"),
    (FASTAPI, "store"),
    ({"error": {"message": "Unrecognized request argument supplied: max_tokens"}}, "max_tokens"),
    ({"error": {"message": "This model does not support the effort parameter."}}, "effort"),
    ({"error": {"message": "the note says: Unsupported parameter: 'max_tokens'"}}, ""),
    ({"error": {"message": 7, "param": ["max_tokens"], "code": "unsupported_parameter"}}, ""),
    ({"error": "max_tokens"}, ""),
    ([], ""),
]


@pytest.mark.parametrize(("body", "name"), ERRORS)
def test_a_name_counts_in_its_field_or_at_the_beginning_of_the_message(
    body: Any, name: str
) -> None:
    answer = Answer(Status.REQUEST_FAILED, "HTTP 400", json.dumps(body), http=400)
    assert unsupported_parameter(answer) == name


@pytest.mark.parametrize(("provider", "name"), [("openai", "reasoning_effort"), ("anthropic", "")])
def test_an_effort_that_is_refused_stops_the_juror_with_what_to_write(
    provider: str, name: str
) -> None:
    said = {"error": {"message": "This model does not support the effort parameter."}}
    body = refusal(name) if name else json.dumps(said)
    with Stub(lambda _: Do(status=400, body=body)) as stub:
        (answer,) = answers(juror(provider, stub.anthropic_url, effort="low"))
    assert fatal(answer) == (
        f'{answer.reason}: the model refuses effort = "low"; '
        "delete that line in the panel and give the juror another name"
    )


def test_the_probe_tells_what_to_write_and_what_was_learnt() -> None:
    with Stub(refusing("reasoning_effort", "max_tokens")) as stub:
        one = juror("openai", stub.openai_url, effort="low")
        (row,) = probe(Panel(name="p", juror=(one,)))
    assert (row.status, row.effort, row.temperature) == (Status.OK, "refused", "not set")
    assert row.reason == 'refuses effort = "low": delete that line of juror j in the panel'
    assert row.unsupported == ("max_tokens",)
    assert row.to_json()["unsupported"] == ["max_tokens"]
