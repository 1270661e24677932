"""The real SDKs against a server on the loopback: every way a request can end is an answer."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest
from kit.jurors import USAGE_IN, USAGE_OUT, Do, Seen, Stub

from data.schema import Status
from jury.call import Answer, Call, Turn
from jury.panel import Juror
from jury.providers.registry import open_provider

SECRET = "MRS-EXAMPLE-HAS-A-FEVER"
SCHEMA = {"type": "object", "properties": {"test": {"type": "object"}}}
CALL = Call((Turn("user", SECRET),), SCHEMA)
BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def juror(provider: str, stub: Stub, **settings: Any) -> Juror:
    url = stub.openai_url if provider == "openai" else stub.anthropic_url
    body = {"name": "j", "provider": provider, "model": "m", "family": "f", "base_url": url}
    return Juror.model_validate(body | settings)


def answer(one: Juror, call: Call = CALL, timeout: float = 5.0) -> Answer:
    async def ask() -> Answer:
        line = open_provider(one, "none", timeout)
        try:
            return await line.complete(call)
        finally:
            await line.close()

    return asyncio.run(ask())


@BOTH
def test_an_answer_brings_text_tokens_model_and_request_id(provider: str) -> None:
    with Stub([Do("hello")]) as stub:
        got = answer(juror(provider, stub, temperature=0.0, effort="low"))
    assert (got.status, got.text, got.http) == (Status.OK, "hello", 200)
    assert (got.usage.tokens_in, got.usage.tokens_out) == (USAGE_IN, USAGE_OUT)
    assert got.usage.tokens_cached == 10
    assert (got.returned_model, got.request_id) == ("m-returned", "req-1")
    assert (got.sent["temperature"], got.sent["model"], got.sent["schema"]) == (
        0.0,
        "m",
        "json_schema",
    )
    assert SECRET not in str(got.sent)


def test_an_openai_request_carries_schema_temperature_and_limit() -> None:
    with Stub([Do("x")]) as stub:
        answer(juror("openai", stub, temperature=0.0, max_tokens=77))
    body = stub.seen[0].body
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["response_format"]["json_schema"]["strict"] is True
    assert (body["temperature"], body["max_tokens"]) == (0.0, 77)
    assert body["messages"] == [{"role": "user", "content": SECRET}]


def test_an_anthropic_request_carries_schema_temperature_and_effort() -> None:
    with Stub([Do("x")]) as stub:
        answer(juror("anthropic", stub, temperature=0.0, max_tokens=77, effort="low"))
    body = stub.seen[0].body
    assert body["output_config"]["format"] == {"type": "json_schema", "schema": SCHEMA}
    assert body["output_config"]["effort"] == "low"
    assert (body["temperature"], body["max_tokens"]) == (0.0, 77)


@BOTH
def test_a_juror_without_temperature_sends_none(provider: str) -> None:
    with Stub([Do("x")]) as stub:
        answer(juror(provider, stub), replace(CALL, form="text"))
    assert "temperature" not in stub.seen[0].body
    assert stub.seen[0].form == "text"


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
    with Stub([do]) as stub:
        got = answer(juror(provider, stub), timeout=0.5)
    assert (got.status, got.transient) == (status, transient)
    assert len(stub.seen) == 1
    assert got.reason
    assert SECRET not in got.reason


def test_an_answer_stopped_by_a_content_filter_is_marked_so() -> None:
    with Stub([Do(finish="filtered")]) as stub:
        assert answer(juror("openai", stub)).status == Status.CONTENT_FILTER


@BOTH
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "3600"}, 3600.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Sat, 21 Nov 2020 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_what_an_endpoint_asks_to_wait_is_read_and_not_slept(
    provider: str, headers: dict[str, str], seconds: float | None
) -> None:
    with Stub([Do(status=429, headers=headers)]) as stub:
        assert answer(juror(provider, stub)).retry_after == seconds


@BOTH
def test_an_answer_without_token_counts_has_unknown_ones(provider: str) -> None:
    with Stub([Do("x", usage=False)]) as stub:
        usage = answer(juror(provider, stub)).usage
    assert (usage.tokens_in, usage.tokens_out) == (None, None)


@BOTH
def test_a_redirect_is_not_followed_to_another_host(provider: str) -> None:
    with Stub() as other, Stub() as stub:
        stub.script = [Do(status=307, headers={"location": other.openai_url + "/chat/completions"})]
        got = answer(juror(provider, stub))
    assert (got.status, got.http) == (Status.REQUEST_FAILED, 307)
    assert other.seen == []


@BOTH
def test_the_environment_cannot_redirect_a_juror(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Stub() as other, Stub() as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", other.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", other.anthropic_url)
        for proxy in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(proxy, other.anthropic_url)
        assert answer(juror(provider, stub)).status == Status.OK
    assert (len(stub.seen), other.seen) == (1, [])


@BOTH
def test_no_prompt_reaches_a_log_even_at_debug_level(
    provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    def script(seen: Seen) -> Do:
        return Do(status=400) if seen.number else Do("x")

    with Stub(script) as stub:
        one = juror(provider, stub)
        answer(one)
        with caplog.at_level(logging.DEBUG):
            for name in ("anthropic", "openai", "httpx2", "httpcore2", "anthropic._base_client"):
                caplog.set_level(logging.DEBUG, logger=name)
            answer(one)
    assert SECRET not in caplog.text
