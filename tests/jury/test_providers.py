"""The real SDKs against the loopback: every end is an answer, and only what a panel says is sent."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from kit.identity_servers import TokenServer
from kit.jurors import USAGE_IN, USAGE_OUT, Do, Seen, Stub, answers, juror
from kit.jury_runs import panel_at

from data.schema import Status
from jury.api_protocols import unsupported_parameter
from jury.call import Answer, Call, Turn
from jury.probe import probe
from jury.session import fatal

SECRET = "MRS-EXAMPLE-HAS-A-FEVER"


CALL = Call((Turn("user", SECRET),), {"type": "object", "properties": {"test": {"type": "object"}}})
BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def asked(
    provider: str, *script: Do, form: Any = "json_schema", **settings: Any
) -> tuple[Answer, Stub]:
    """Return the answer of a server that follows a script, and the server."""
    with Stub([*script]) as stub:
        url = stub.openai_url if provider == "openai" else stub.anthropic_url
        call = replace(CALL, form=form)
        return answers(juror(provider, url, **settings), call=call, seconds=0.5)[0], stub


@BOTH
def test_an_answer_brings_text_tokens_model_and_request_id(provider: str) -> None:
    got, _ = asked(provider, Do("hello"), temperature=0.0, effort="low")
    assert (got.status, got.text, got.http) == (Status.OK, "hello", 200)
    assert (got.usage.tokens_in, got.usage.tokens_out) == (USAGE_IN, USAGE_OUT)
    assert got.usage.tokens_cached == 10
    assert (got.returned_model, got.request_id) == ("m-returned", "req-1")
    told = (got.sent["temperature"], got.sent["model"], got.sent["schema"])
    assert told == (0.0, "m", "json_schema")
    assert SECRET not in str(got.sent)


def test_a_request_carries_schema_temperature_limit_and_effort() -> None:
    settings = {"temperature": 0.0, "max_tokens": 77}
    body = asked("openai", Do("x"), **settings)[1].seen[0].body
    assert body["response_format"]["json_schema"]["schema"] == CALL.schema
    assert body["response_format"]["json_schema"]["strict"] is True
    assert (body["temperature"], body["max_tokens"]) == (0.0, 77)
    assert body["messages"] == [{"role": "user", "content": SECRET}]
    body = asked("anthropic", Do("x"), effort="low", **settings)[1].seen[0].body
    assert body["output_config"]["format"] == {"type": "json_schema", "schema": CALL.schema}
    assert body["output_config"]["effort"] == "low"
    assert (body["temperature"], body["max_tokens"]) == (0.0, 77)


@BOTH
def test_a_juror_without_temperature_sends_none_and_without_counts_has_none(provider: str) -> None:
    got, stub = asked(provider, Do("x", usage=False), form="text")
    assert "temperature" not in stub.seen[0].body
    assert stub.seen[0].form == "text"
    assert (got.usage.tokens_in, got.usage.tokens_out) == (None, None)


FAILURES = [
    (Do(status=401), Status.AUTH, False),
    (Do(status=403), Status.AUTH, False),
    (Do(status=402), Status.QUOTA, False),
    (Do(status=429), Status.RATE_LIMITED, True),
    (Do(status=429, code="insufficient_quota"), Status.QUOTA, False),
    (Do(status=400), Status.REQUEST_FAILED, False),
    (Do(status=404), Status.REQUEST_FAILED, False),
    (Do(status=500), Status.REQUEST_FAILED, True),
    (Do(status=529, code="overloaded_error"), Status.REQUEST_FAILED, True),
    (Do(status=504), Status.TIMEOUT, True),
    (Do(drop=True), Status.REQUEST_FAILED, True),
    (Do(seconds=2), Status.TIMEOUT, True),
    (Do(body="<html>Sign in to the hospital network</html>"), Status.REQUEST_FAILED, True),
    (Do(body="[]"), Status.REQUEST_FAILED, True),
    (Do(finish="truncated", text='{"a'), Status.TRUNCATED, False),
    (Do(refusal="I would rather not."), Status.REFUSED, False),
]


@BOTH
@pytest.mark.parametrize(("do", "status", "transient"), FAILURES)
def test_each_failure_has_its_status_and_tells_nothing_of_the_text(
    provider: str, do: Do, status: Status, transient: bool
) -> None:
    got, stub = asked(provider, do)
    assert (got.status, got.transient) == (status, transient)
    assert len(stub.seen) == 1
    assert got.reason
    assert SECRET not in got.reason


@BOTH
def test_a_redirect_is_not_followed_to_another_host(provider: str) -> None:
    with Stub() as other:
        moved = {"location": other.openai_url + "/chat/completions"}
        got, _ = asked(provider, Do(status=307, headers=moved))
    assert (got.status, got.http) == (Status.REQUEST_FAILED, 307)
    assert other.seen == []


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
        found = answers(juror("openai", stub.openai_url), 2)
    assert ([answer.http for answer in found], len(stub.seen)) == ([400, 400], 3)
    assert all({"max_tokens", "max_completion_tokens"} & seen.body.keys() for seen in stub.seen)


FASTAPI = {"detail": [{"type": "extra_forbidden", "loc": ["body", "store"], "msg": "Extra"}]}
ERRORS = [
    (json.loads(refusal("store")), "store"),
    (FASTAPI, "store"),
    ({"error": {"message": "Unrecognized request argument supplied: max_tokens"}}, "max_tokens"),
    ({"error": {"message": "This model does not support the effort parameter."}}, "effort"),
    ({"error": {"message": "the note says: Unsupported parameter: 'max_tokens'"}}, ""),
    ({"error": {"message": 7, "param": ["max_tokens"], "code": "unsupported_parameter"}}, ""),
    ({"error": {"message": "too large", "param": "max_tokens", "code": "invalid_value"}}, ""),
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
    assert fatal(answer).startswith(f'{answer.reason}: the model refuses effort = "low"; ')


def test_the_probe_tells_what_to_write_and_what_was_learnt() -> None:
    with Stub(refusing("reasoning_effort", "max_tokens")) as stub:
        (row,) = probe(panel_at(stub, effort="low"))
    assert (row.status, row.effort, row.temperature) == (Status.OK, "refused", "not set")
    assert row.reason.startswith('refuses effort = "low"')
    assert row.to_json()["unsupported"] == ["max_tokens"]


MARK = "from-the-environment"
LITERAL = re.compile(r"""["']([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)["']""")
# Proxies and certificates are the network's, and a hospital often has no other way out.
OF_THE_NETWORK = re.compile(r"(HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)")
HEADERS = ("Authorization", "X-Api-Key", "Api-Key", "X-Added", "OpenAI-Organization")
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
ASK = """
import asyncio, json, sys
from jury.call import Call, Turn
from jury.panel import Juror
from jury.providers.registry import open_provider

async def ask(settings):
    line = open_provider(Juror.model_validate(settings), "the-key", 5.0)
    try:
        return str((await line.complete(Call((Turn("user", "A-TEXT"),), {}))).status)
    finally:
        await line.close()

print(json.dumps([asyncio.run(ask(one)) for one in json.loads(sys.argv[1])]))
"""


def variables() -> Iterator[str]:
    """Yield what may be a variable's name in any module of the SDKs that looks at the environment."""
    for sdk in (openai, anthropic):
        for path in Path(str(sdk.__file__)).parent.rglob("*.py"):
            text = path.read_text("utf-8")
            if "environ" in text or "getenv" in text or "ENV_" in text:
                yield from LITERAL.findall(text)


def environment(other: Stub) -> dict[str, str]:
    """Return the environment with each of these variables set to something that can be recognised."""
    found = {name: f"{MARK}-{name}" for name in variables() if not OF_THE_NETWORK.fullmatch(name)}
    headers = "\n".join(f"{name}: {MARK}" for name in HEADERS)
    for name in found:
        if name.endswith("CUSTOM_HEADERS"):
            found[name] = headers
        elif name.endswith(("_URL", "_ENDPOINT")):
            found[name] = f"{other.anthropic_url}/{MARK}"
        elif name.endswith("_LOG"):
            found[name] = "debug"
    return dict(os.environ) | found | {"DEFER_PYDANTIC_BUILD": "true"}


def with_keys(stub: Stub) -> list[dict[str, Any]]:
    """Return a juror of each kind that is asked with a key."""
    one = {"name": "j", "model": "m", "family": "f", "api_key_env": "THE_KEY"}
    one |= {"base_url": stub.anthropic_url}
    bedrock = {"provider": "bedrock", "auth": "key", "region": "eu-central-1"}
    at_openai = {"base_url": stub.openai_url}
    kinds: list[dict[str, str]] = [
        {"provider": "openai"} | at_openai,
        {"provider": "anthropic"},
        {"provider": "azure"},
        {"provider": "azure", "api_version": "1"},
        {"provider": "foundry"},
        {"provider": "gemini"} | at_openai,
        bedrock,
    ]
    return [one | kind for kind in kinds]


def answered(jurors: list[dict[str, Any]], variables: dict[str, str]) -> str:
    """Return what a process of its own wrote, in which each juror has answered."""
    command = [sys.executable, "-c", ASK, json.dumps(jurors)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["ok"] * len(jurors)
    return done.stdout + done.stderr


def test_the_environment_cannot_redirect_a_juror() -> None:
    """The bytes are the same with every variable that an SDK reads, and nothing is logged."""
    with Stub() as stub, Stub() as other:
        found = environment(other)
        assert {"OPENAI_CUSTOM_HEADERS", "ANTHROPIC_PROFILE", "AZURE_OPENAI_AD_TOKEN"} <= {*found}
        written = answered(with_keys(stub), found | dict.fromkeys(PROXIES, other.anthropic_url))
        answered(with_keys(stub), dict(os.environ))
    half = len(stub.raw) // 2
    assert half == len(with_keys(stub))
    assert stub.raw[:half] == stub.raw[half:]
    for raw in stub.raw:
        assert MARK.encode() not in raw
        assert b"the-key" in raw
    assert other.raw == []
    assert "A-TEXT" not in written


def test_a_juror_that_signs_in_sends_its_own_credentials_and_nothing_else_of_the_environment(
    tmp_path: Path,
) -> None:
    profile = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_EC2_METADATA_DISABLED": "true"}
    ours = "aws_access_key_id = AKID\naws_secret_access_key = secret\n"
    (tmp_path / "config").write_text(f"[profile ward]\n{ours}", "utf-8")
    with Stub() as stub, Stub() as other, TokenServer() as tokens:
        panel = [one | {"api_key_env": "", "auth": "entra"} for one in with_keys(stub)[2:5]]
        place = {"region": "eu-central-1", "base_url": stub.anthropic_url}
        aws = {"provider": "bedrock", "auth": "iam", "profile": "ward"}
        google = {"provider": "vertex", "auth": "google", "project": "ward-7"}
        panel += [panel[0] | place | aws, panel[0] | place | google]
        identity = tokens.managed_identity() | tokens.service_account(tmp_path)
        answered(panel, environment(other) | identity | profile)
    for raw in stub.raw:
        assert MARK.encode() not in raw
    sent = [seen.headers["authorization"] for seen in stub.seen]
    assert all(one.startswith("Bearer token-") for one in [*sent[:3], sent[4]])
    assert "Credential=AKID/" in sent[3]
    assert "/eu-central-1/bedrock/aws4_request" in sent[3]
    assert other.raw == []
