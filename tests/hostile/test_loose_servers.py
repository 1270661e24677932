"""Servers that keep to the protocol loosely, or break off: each call ends and leaves a row."""

import asyncio
import json
import random
import time
from collections import Counter

import pytest
from kit.jurors import Do, Seen, Stub, verdict
from kit.jury_runs import attempts, many
from kit.loopback import AsyncLoopback
from sqlmodel import select

from data.database import reading
from data.schema import Rating, Status
from jury.call import Answer
from jury.panel import Panel
from jury.providers.registry import forms_of, open_provider
from jury.run import run_panel
from jury.task import FormFallback, Patience

HASTY = Patience(first_wait=0.01, longest_wait=0.02)


def panel(url, **settings):
    one = {"name": "a", "provider": "openai", "model": "m", "family": "f", "base_url": url}
    return Panel.model_validate({"name": "p", "juror": [one | settings]})


def ratings(engine):
    with reading(engine) as session:
        return len(session.exec(select(Rating)).all())


def ran(engine, script, **settings):
    with Stub(script) as stub:
        return run_panel(engine, panel(stub.openai_url, **settings), patience=HASTY)


def llama(seen, message, **more):
    """Return a reply as llama.cpp's server writes one: little more than the message."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"} | message}
    return Do(body=json.dumps({"model": seen.model, "choices": [choice]} | more))


def test_a_server_that_answers_a_schema_with_500_is_asked_in_words(engine, write):
    many(engine, write, 6)
    result = ran(engine, lambda seen: Do() if seen.form == "text" else Do(status=500))
    assert (result.rated, result.missing) == (6, 0)
    assert {row.sent["schema"] for row in attempts(engine) if row.status == Status.OK} == {"text"}


def test_a_verdict_on_a_higher_rung_comes_down_to_the_form_another_has_proved():
    fallback, failed = (
        FormFallback(forms_of(panel("http://h").juror[0])),
        Answer(Status.REQUEST_FAILED, http=500),
    )
    assert fallback.below("json_schema", failed, 1) is None
    fallback.works("text")
    forms = ("json_schema", "json_object", "text")
    assert [fallback.below(form, failed, 1) for form in forms] == ["text", "text", None]


def test_a_refusal_is_told_by_its_kind_where_its_code_is_the_status_once_again(engine, write):
    many(engine, write, 1)
    body = json.dumps({"error": {"message": "no", "type": "invalid_request_error", "code": "400"}})
    ran(engine, lambda _: Do(status=400, body=body))
    assert {row.reason for row in attempts(engine)} == {"HTTP 400 invalid_request_error"}


def test_a_server_that_ignores_the_form_is_read_all_the_same(engine, write):
    many(engine, write, 4)
    result = ran(engine, lambda seen: Do(f"```json\n{verdict(seen)}\n```"))
    assert (result.rated, result.calls) == (4, 4)
    assert {row.sent["schema"] for row in attempts(engine)} == {"json_schema"}


def test_a_server_without_usage_has_unknown_tokens_and_an_unknown_cost(engine, write):
    many(engine, write, 2)
    prices = {"usd_per_million_in": 1.0, "usd_per_million_out": 1.0}
    result = ran(engine, lambda seen: llama(seen, {"content": verdict(seen)}), **prices)
    assert (result.rated, result.usd, result.usd_unknown) == (2, 0.0, 2)
    assert [(row.tokens_in, row.usd) for row in attempts(engine)] == [(None, None)] * 2


@pytest.mark.parametrize("content", ["", None])
def test_reasoning_without_an_answer_is_no_rating_even_where_it_holds_a_verdict(
    engine, write, content
):
    many(engine, write, 2)
    result = ran(
        engine,
        lambda seen: llama(seen, {"content": content, "reasoning_content": verdict(seen, 5)}),
    )
    assert (result.rated, dict(result.by_status)) == (0, {"invalid_json": 2})
    assert ratings(engine) == 0


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        '{"choices": []}',
        '{"choices": [null]}',
        '{"choices": [{"message": "hello"}]}',
        '{"error": {"message": "loading model"}}',
        '{"choices": [{"message": {"content": [{"type": "text"}]}}], "usage": []}',
        "[" * 50_000,
    ],
)
def test_a_success_that_holds_no_answer_is_a_failure_with_a_row(engine, write, body):
    many(engine, write, 1)
    result = ran(engine, lambda _: Do(body=body))
    assert result.rated == 0
    assert len(attempts(engine)) == result.calls > 0


class Breaking(AsyncLoopback):
    """A server that ends connections in the ways of `ENDINGS`, in turn, and never answers."""

    ENDINGS = ("at once", "in the head", "in mid-body", "reset", "silence")

    def __init__(self) -> None:
        super().__init__()
        self.ended: Counter[str] = Counter()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """End the connection in the way whose turn it is."""
        how = self.ENDINGS[self.ended.total() % len(self.ENDINGS)]
        self.ended[how] += 1
        try:
            if how != "at once":
                await reader.readuntil(b"\r\n\r\n")
            if how == "in the head":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-ty")
            if how in ("in mid-body", "silence"):
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900"
                writer.write(head + b'\r\n\r\n{"choices": [{"message": {"content": "{')
            await writer.drain()
            if how == "silence":
                await asyncio.sleep(3600)
            if how == "reset":
                writer.transport.abort()
        except (asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_300_broken_connections_hang_no_call_and_leave_300_rows(engine, write):
    many(engine, write, 300)
    patience = Patience(tries=1, in_a_row=1000)
    with Breaking() as server:
        one = panel(f"http://127.0.0.1:{server.port}/v1", schema="text")
        line = {"a": open_provider(one.juror[0], "none", timeout=2.0)}
        began = time.monotonic()
        result = run_panel(engine, one, concurrency=16, patience=patience, providers=line)
        seconds = time.monotonic() - began
    rows = attempts(engine)
    assert (result.rated, result.calls, len(rows), ratings(engine)) == (0, 300, 300, 0)
    assert len({row.response for row in rows}) == 300
    assert Counter(row.status for row in rows)[Status.TIMEOUT] == 60
    assert all(row.reason and "Response" not in row.reason for row in rows)
    assert all((row.latency_seconds or 0) < 4.0 for row in rows)
    assert seconds < 60


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_drops_among_answers_cost_no_rating_and_hide_no_call(engine, write):
    many(engine, write, 300)
    dice = random.Random(4)  # noqa: S311 - a fixed course of drops
    dropped: list[int] = []

    def script(seen: Seen) -> Do:
        drop = dice.random() < 0.5
        dropped.append(drop)
        return Do(drop=drop)

    with Stub(script) as stub:
        patience = Patience(tries=20, first_wait=0.001, longest_wait=0.002, in_a_row=1000)
        result = run_panel(engine, panel(stub.openai_url, schema="text"), patience=patience)
    assert (result.rated, result.missing) == (300, 0)
    assert result.calls == len(dropped) == len(attempts(engine)) == 300 + sum(dropped)
