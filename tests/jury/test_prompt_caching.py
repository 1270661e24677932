"""What all responses of an instance begin with is marked for the vendors that need it, and nothing is read otherwise."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from kit.jurors import Do, Seen, Stub, answers, juror
from kit.jury_runs import attempts
from kit.studies import HEAD, Write
from sqlalchemy import Engine
from sqlmodel import select

from data.card import Card
from data.database import reading
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import Rubric, read_rubric
from data.rubrics import shipped
from data.schema import Response, Status
from data.study.responses import import_responses
from jury.call import Answer, Call, Turn
from jury.conversation import request_sha256, worst_case_usd
from jury.panel import Juror, Panel
from jury.providers.openai_chat import OpenAIChat
from jury.run import RunResult, run_panel
from jury.task import Patience

HASTY = Patience(first_wait=0.01, longest_wait=0.02, bound=1.0)
GENERIC = read_rubric("generic")
SHARED = "What all share. "
MARKED = Call((Turn("user", SHARED + "One response.", len(SHARED)),), {"properties": {}})
PLAIN = Call((Turn("user", SHARED + "One response."),), {"properties": {}})
CLAUDES = ["anthropic", "bedrock", "foundry"]
EPHEMERAL = {"type": "ephemeral"}


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("AZURE_KEY", "the-key")
    with Stub() as running:
        yield running


def fill(engine: Engine, write: Write, instances: int, models: int) -> None:
    """Import made-up visits, all responses of one model after those of the one before."""
    lines = [
        f"i{n},visits,Context {n}.,Write.,,m{model}-r{n},m{model},Response {model} to {n}."
        for model in range(models)
        for n in range(instances)
    ]
    rows = ResponseFile(TableFile(write("visits.csv", "\n".join([HEAD, *lines]))))
    import_responses(engine, rows, lambda _: GENERIC)


def panel_at(stub: Stub, provider: str = "anthropic", **settings: Any) -> Panel:
    url = stub.openai_url if provider == "openai" else stub.anthropic_url
    one = {"name": "a", "provider": provider, "model": "a", "family": "stub", "base_url": url}
    return Panel.model_validate({"name": "p", "juror": [one | settings]})


def run(engine: Engine, panel: Panel, **options: Any) -> RunResult:
    return run_panel(engine, panel, patience=HASTY, **options)


def contents(stub: Stub) -> list[Any]:
    return [seen.body["messages"][0]["content"] for seen in stub.seen]


def of_instance(seen: Seen) -> str:
    return seen.prompt.partition("<context>\n")[2].partition("\n")[0]


@pytest.mark.parametrize("name", shipped())
def test_all_responses_of_an_instance_share_all_that_stands_before_the_response(name: str) -> None:
    rubric = read_rubric(name)
    first, second = (
        rubric.parts(Card("", "A <response> of old.", "Write.", text, "Gold.", "A point."))
        for text in ("One.", "Another {{context}}.")
    )
    assert first.shared == second.shared
    assert first.own.startswith("One.\n")
    assert rubric.criteria_text() in first.shared
    assert first.text == rubric.render(
        Card("", "A <response> of old.", "Write.", "One.", "Gold.", "A point.")
    )


def test_a_prompt_that_begins_with_the_response_shares_nothing() -> None:
    rubric = Rubric(**GENERIC.model_dump(exclude={"prompt"}), prompt="{{response}} {{context}}")
    prompt = rubric.parts(Card("", "C", "P", "R"))
    assert (prompt.shared, prompt.own) == ("", "R C")
    assert Turn("user", prompt.text, len(prompt.shared)).pieces == ("R C",)


def test_claude_gets_the_same_text_in_two_blocks_the_first_marked(
    engine: Engine, write: Write, stub: Stub
) -> None:
    fill(engine, write, 2, 2)
    panel = panel_at(stub)
    assert run(engine, panel).rated == 4
    for first, second in contents(stub):
        assert first["cache_control"] == EPHEMERAL
        assert first["text"].endswith("<response>\n")
        assert set(second) == {"type", "text"}
    with reading(engine) as session:
        texts = {one.id: one.text for one in session.exec(select(Response))}
    for row, seen in zip(attempts(engine), stub.seen, strict=True):
        number = texts[row.response].removesuffix(".").rpartition(" ")[2]
        card = Card("", f"Context {number}.", "Write.", texts[row.response])
        whole = GENERIC.render(card)
        assert seen.prompt == whole
        asked = Call((Turn("user", whole),), GENERIC.json_schema())
        assert row.request_sha256 == request_sha256(panel.juror[0], asked)
        assert row.sent["cache_control"] == "ephemeral"


def test_an_instance_with_one_response_left_is_not_marked(
    engine: Engine, write: Write, stub: Stub
) -> None:
    fill(engine, write, 3, 1)
    assert run(engine, panel_at(stub)).rated == 3
    assert all(isinstance(one, str) for one in contents(stub))
    assert not any("cache_control" in row.sent for row in attempts(engine))
    assert run(engine, panel_at(stub), replicates=3).rated == 9
    assert all(len(one) == 2 for one in contents(stub)[3:])


@pytest.mark.parametrize("provider", CLAUDES)
def test_claude_is_marked_alike_at_every_vendor(provider: str, stub: Stub) -> None:
    settings = {"region": "eu-west-1", "auth": "key"} if provider == "bedrock" else {}
    one = juror(provider, stub.anthropic_url, api_key_env="K", **settings)
    assert [found.status for found in answers(one, call=MARKED)] == [Status.OK]
    (content,) = contents(stub)
    assert content == [
        {"type": "text", "text": SHARED, "cache_control": EPHEMERAL},
        {"type": "text", "text": "One response."},
    ]


REFUSALS = [
    {"error": {"message": "messages.0.content.0.cache_control: Extra inputs are not permitted"}},
    {"message": "You invoked an unsupported model or your request did not allow prompt caching."},
    {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 0, "cache_control"]}]},
]


@pytest.mark.parametrize("body", REFUSALS)
def test_a_server_that_refuses_the_mark_is_asked_without_it_for_the_rest_of_the_run(
    body: dict[str, Any], engine: Engine, write: Write, stub: Stub
) -> None:
    stub.script = lambda seen: (
        Do(status=400, body=json.dumps(body))
        if '"cache_control"' in json.dumps(seen.body)
        else Do()
    )
    fill(engine, write, 3, 2)
    result = run(engine, panel_at(stub), concurrency=1)
    assert (result.rated, result.calls) == (6, 6)
    assert [isinstance(one, str) for one in contents(stub)] == [False] + [True] * 6


def test_a_refusal_that_only_quotes_a_text_about_caching_is_learnt_nothing_from(stub: Stub) -> None:
    quoted = {"error": {"message": "the text 'cache_control' was refused"}}
    stub.script = lambda _: Do(status=400, body=json.dumps(quoted))
    one = juror("anthropic", stub.anthropic_url, api_key_env="K")
    assert [found.http for found in answers(one, call=MARKED)] == [400]
    assert len(stub.seen) == 1


def test_other_servers_of_the_openai_protocol_get_neither_key_nor_marks(stub: Stub) -> None:
    one = juror("openai", stub.openai_url, api_key_env="K")
    answers(one, call=MARKED)
    body = stub.seen[0].body
    assert body["messages"] == [{"role": "user", "content": SHARED + "One response."}]
    assert not [name for name in body if name.startswith("prompt_cache")]


def test_azure_is_told_one_key_for_an_instance_and_another_for_the_next(
    engine: Engine, write: Write, stub: Stub
) -> None:
    fill(engine, write, 2, 3)
    panel = panel_at(stub, "azure", model="gpt-5", api_key_env="AZURE_KEY")
    assert run(engine, panel).rated == 6
    keys = {of_instance(seen): seen.body["prompt_cache_key"] for seen in stub.seen}
    assert len(set(keys.values())) == 2
    assert all(seen.body["prompt_cache_key"] == keys[of_instance(seen)] for seen in stub.seen)
    assert all(isinstance(one, str) for one in contents(stub))
    assert not any("Context" in key for key in keys.values())


def test_a_key_that_azure_does_not_know_is_left_out_from_then_on(
    engine: Engine, write: Write, stub: Stub
) -> None:
    error = {"error": {"message": "Unrecognized request argument supplied: prompt_cache_key"}}
    stub.script = lambda seen: (
        Do(status=400, body=json.dumps(error)) if "prompt_cache_key" in seen.body else Do()
    )
    fill(engine, write, 2, 3)
    result = run(
        engine, panel_at(stub, "azure", model="gpt-5", api_key_env="AZURE_KEY"), concurrency=1
    )
    assert (result.rated, result.calls, len(stub.seen)) == (6, 6, 7)


def openai_bodies(model: str, call: Call, *refused: str) -> tuple[Answer, list[dict[str, Any]]]:
    """Return what OpenAI's own host is sent; it refuses the parameters of these names."""
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        name = next((one for one in refused if f'"{one}"' in request.content.decode()), None)
        if name is not None:
            param = "messages[0].content[0]." + name if name.endswith("breakpoint") else name
            error = {"message": "no", "code": "unknown_parameter", "param": param}
            return httpx2.Response(400, json={"error": error})
        choice = {"message": {"content": "{}"}, "finish_reason": "stop"}
        return httpx2.Response(200, json={"choices": [choice]})

    def make(**options: Any) -> httpx2.AsyncClient:
        options.pop("limits")
        return httpx2.AsyncClient(transport=httpx2.MockTransport(answer), **options)

    async def ask() -> Answer:
        line = OpenAIChat(openai_juror(model), "key", 5.0, make)
        try:
            return await line.complete(call)
        finally:
            await line.close()

    return asyncio.run(ask()), bodies


def openai_juror(model: str) -> Juror:
    return juror("openai", "https://api.openai.com/v1", api_key_env="K", model=model)


def test_openai_models_that_bill_what_they_cache_are_told_where_the_prefix_ends() -> None:
    _, (body,) = openai_bodies("gpt-5.6", MARKED)
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": SHARED, "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "text", "text": "One response."},
    ]
    assert body["prompt_cache_options"] == {"mode": "explicit"}
    assert len(body["prompt_cache_key"]) == 32


def test_openai_models_that_bill_what_they_cache_write_nothing_that_nobody_reads() -> None:
    _, (body,) = openai_bodies("gpt-5.6", PLAIN)
    assert body["prompt_cache_options"] == {"mode": "explicit"}
    assert body["messages"][0]["content"] == SHARED + "One response."
    assert "prompt_cache_key" not in body


def test_openai_models_that_cache_for_nothing_get_a_key_and_no_marks() -> None:
    _, (body,) = openai_bodies("gpt-5", MARKED)
    assert body["messages"][0]["content"] == SHARED + "One response."
    assert [name for name in body if name.startswith("prompt_cache")] == ["prompt_cache_key"]


def test_each_name_that_openai_refuses_is_learnt_in_turn_and_the_request_made_again() -> None:
    found, bodies = openai_bodies(
        "gpt-5.6", MARKED, "prompt_cache_breakpoint", "prompt_cache_key", "store"
    )
    assert found.status == Status.OK
    assert len(bodies) == 4
    assert not [name for name in bodies[-1] if name.startswith("prompt_cache") or name == "store"]
    assert "prompt_cache_key" not in found.sent


def test_what_is_marked_is_held_against_a_cap_at_the_price_of_writing_it() -> None:
    claude = juror(
        "anthropic", "https://api.anthropic.com", api_key_env="K", model="claude-sonnet-4-5"
    )
    marked, plain = worst_case_usd(claude, MARKED), worst_case_usd(claude, PLAIN)
    assert marked is not None
    assert marked == plain  # a listed model may write by itself: always at its dearest
    priced = claude.model_copy(update={"usd_per_million_in": 3.0, "usd_per_million_out": 0.0})
    dear, cheap = worst_case_usd(priced, MARKED), worst_case_usd(priced, PLAIN)
    assert dear is not None
    assert dear == pytest.approx(1.25 * (cheap or 0.0))


def test_an_instances_responses_follow_one_another_and_wait_for_the_first(
    engine: Engine, write: Write, stub: Stub
) -> None:
    stub.script = lambda _: Do(seconds=0.02)
    fill(engine, write, 6, 4)
    assert run(engine, panel_at(stub), concurrency=3).rated == 24
    asked = [of_instance(seen) for seen in stub.seen]
    for name in set(asked):
        first, *others = (place for place, one in enumerate(asked) if one == name)
        assert others[-1] - first < 12  # not one model's responses after another's
        assert others[0] > first
    assert stub.peak == 3


def test_no_second_response_of_an_instance_is_sent_before_the_first_is_answered(
    engine: Engine, write: Write, stub: Stub
) -> None:
    stub.script = lambda _: Do(seconds=0.05)
    fill(engine, write, 4, 5)
    assert run(engine, panel_at(stub), concurrency=16).rated == 20
    assert len({of_instance(seen) for seen in stub.seen[:4]}) == 4  # the firsts go together
    assert stub.peak > 8  # and then everyone else


def test_a_first_that_fails_does_not_keep_the_others_from_being_asked(
    engine: Engine, write: Write, stub: Stub
) -> None:
    stub.script = lambda seen: Do(text="no") if "Response 0 to" in seen.prompt else Do()
    fill(engine, write, 3, 3)
    result = run(engine, panel_at(stub), concurrency=8)
    assert (result.rated, result.missing) == (6, 3)
