"""What an instance's prompts share is marked for caches, the same prompt asked once."""

import asyncio
import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import httpx2
import pytest
from kit.batches import BatchStub
from kit.batches import run as run_batch
from kit.jurors import Do, Seen, Stub, answers, juror, verdict
from kit.jury_runs import attempts, fill, panel_at, ratings, run, started, stored, written
from kit.studies import HEAD, Write, import_file
from kit.study_place import behind_the_record
from sqlalchemy import Engine
from sqlmodel import select

from data.card import Card
from data.rubric import Rubric, read_rubric
from data.rubrics.pairs import with_pairs
from data.schema import Response, Status
from data.study.calls import missing_verdicts
from data.study.costs import juror_costs
from jury.call import Answer, Call, Turn
from jury.conversation import request_sha256, worst_case_usd
from jury.providers.openai_chat import OpenAIChat

GENERIC = read_rubric("generic")
SHARED = "What all share. "
MARKED = Call((Turn("user", SHARED + "One response.", len(SHARED)),), {"properties": {}})
PLAIN = Call((Turn("user", SHARED + "One response."),), {"properties": {}})
CLAUDES = ["anthropic", "bedrock", "foundry"]
EPHEMERAL = {"type": "ephemeral"}


@pytest.fixture
def stub(monkeypatch) -> Iterator[Stub]:
    monkeypatch.setenv("AZURE_KEY", "the-key")
    with Stub() as running:
        yield running


def visits(engine: Engine, write: Write, instances: int, models: int) -> None:
    """Import made-up visits, all responses of one model after those of the one before."""
    lines = [
        f"i{n},visits,Context {n}.,Write.,,m{model}-r{n},m{model},Response {model} to {n}."
        for model in range(models)
        for n in range(instances)
    ]
    import_file(engine, write("visits.csv", "\n".join([HEAD, *lines])))


def contents(stub: Stub) -> list[Any]:
    return [seen.body["messages"][0]["content"] for seen in stub.seen]


def in_blocks(**mark: Any) -> list[dict[str, Any]]:
    shared, own = ({"type": "text", "text": one} for one in (SHARED, "One response."))
    return [shared | mark, own]


def of_instance(seen: Seen) -> str:
    return seen.prompt.partition("<context>\n")[2].partition("\n")[0]


@pytest.mark.parametrize("name", with_pairs())
def test_all_responses_of_an_instance_share_all_that_stands_before_the_response(name):
    rubric = read_rubric(name)
    card = Card("", "A <response> of old.", "Write.", "One.", "Gold.", "A point.")
    first = rubric.parts(card)
    assert first.shared == rubric.parts(replace(card, response="Another {{context}}.")).shared
    assert first.own.startswith("One.\n")
    assert rubric.criteria_text() in first.shared
    assert first.text == rubric.render(card)


def test_a_prompt_that_begins_with_the_response_shares_nothing():
    rubric = Rubric(**GENERIC.model_dump(exclude={"prompt"}), prompt="{{response}} {{context}}")
    prompt = rubric.parts(Card("", "C", "P", "R"))
    assert (prompt.shared, prompt.own) == ("", "R C")
    assert Turn("user", prompt.text, len(prompt.shared)).marked({"mark": 1}) == "R C"


def test_claude_gets_the_same_text_in_two_blocks_the_first_marked(engine, write, stub):
    visits(engine, write, 2, 2)
    panel = panel_at(stub, vendor="anthropic")
    assert run(engine, panel).rated == 4
    for first, second in contents(stub):
        assert first["cache_control"] == EPHEMERAL
        assert first["text"].endswith("<response>\n")
        assert set(second) == {"type", "text"}
    texts = {one.id: one.text for one in stored(engine, select(Response))}
    for row, seen in zip(attempts(engine), stub.seen, strict=True):
        number = texts[row.response].removesuffix(".").rpartition(" ")[2]
        whole = GENERIC.render(Card("", f"Context {number}.", "Write.", texts[row.response]))
        assert seen.prompt == whole
        asked = Call((Turn("user", whole),), GENERIC.json_schema())
        assert row.request_sha256 == request_sha256(panel.juror[0], asked)
        assert row.sent["cache_control"] == "ephemeral"


def test_an_instance_with_one_response_left_is_not_marked(engine, write, stub):
    visits(engine, write, 3, 1)
    panel = panel_at(stub, vendor="anthropic")
    assert run(engine, panel).rated == 3
    assert all(isinstance(one, str) for one in contents(stub))
    assert not any("cache_control" in row.sent for row in attempts(engine))
    assert run(engine, panel, replicates=3).rated == 9
    assert all(len(one) == 2 for one in contents(stub)[3:])


@pytest.mark.parametrize("provider", CLAUDES)
def test_claude_is_marked_alike_at_every_vendor(provider, stub):
    settings = {"region": "eu-west-1", "auth": "key"} if provider == "bedrock" else {}
    one = juror(provider, stub.anthropic_url, api_key_env="K", **settings)
    assert [found.status for found in answers(one, call=MARKED)] == [Status.OK]
    assert contents(stub) == [in_blocks(cache_control=EPHEMERAL)]


UNKNOWN_KEY = {"error": {"message": "Unrecognized request argument supplied: prompt_cache_key"}}
REFUSALS = [
    {"error": {"message": "messages.0.content.0.cache_control: Extra inputs are not permitted"}},
    {"message": "You invoked an unsupported model or your request did not allow prompt caching."},
    {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 0, "cache_control"]}]},
    UNKNOWN_KEY,
]


@pytest.mark.parametrize("body", REFUSALS)
def test_a_server_that_refuses_the_mark_is_asked_without_it(engine, write, stub, body):
    azure = ("azure", "prompt_cache_key")
    vendor, mark = azure if body is UNKNOWN_KEY else ("anthropic", "cache_control")

    def is_marked(seen: Seen) -> bool:
        return f'"{mark}"' in json.dumps(seen.body)

    stub.script = lambda seen: Do(status=400, body=json.dumps(body)) if is_marked(seen) else Do()
    visits(engine, write, 3, 2)
    result = run(engine, panel_at(stub, vendor=vendor, api_key_env="AZURE_KEY"), concurrency=1)
    assert (result.rated, result.calls) == (6, 6)
    assert [is_marked(seen) for seen in stub.seen] == [True] + [False] * 6
    stub.seen.clear()
    quoted = {"error": {"message": f"the text '{mark}' was refused"}}
    stub.script = lambda _: Do(status=400, body=json.dumps(quoted))
    one = juror(vendor, stub.anthropic_url, api_key_env="K")
    assert [found.http for found in answers(one, call=MARKED)] == [400]
    assert len(stub.seen) == 1, "nothing is learnt from a refusal that only quotes a text"


def test_other_servers_of_the_openai_protocol_get_neither_key_nor_marks(stub):
    one = juror("openai", stub.openai_url, api_key_env="K")
    answers(one, call=MARKED)
    body = stub.seen[0].body
    assert body["messages"] == [{"role": "user", "content": SHARED + "One response."}]
    assert not [name for name in body if name.startswith("prompt_cache")]


def test_azure_is_told_one_key_for_an_instance_and_another_for_the_next(engine, write, stub):
    visits(engine, write, 2, 3)
    panel = panel_at(stub, vendor="azure", model="gpt-5", api_key_env="AZURE_KEY")
    assert run(engine, panel).rated == 6
    keys = {of_instance(seen): seen.body["prompt_cache_key"] for seen in stub.seen}
    assert len(set(keys.values())) == 2
    assert all(seen.body["prompt_cache_key"] == keys[of_instance(seen)] for seen in stub.seen)
    assert all(isinstance(one, str) for one in contents(stub))
    assert not any("Context" in key for key in keys.values())


def openai_bodies(model: str, call: Call, *refused: str) -> tuple[Answer, list[dict[str, Any]]]:
    """Return what OpenAI's own host is sent; it refuses the parameters of these names."""
    bodies: list[dict[str, Any]] = []
    one = juror("openai", "https://api.openai.com/v1", api_key_env="K", model=model)

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
        line = OpenAIChat(one, "key", 5.0, make)
        try:
            return await line.complete(call)
        finally:
            await line.close()

    return asyncio.run(ask()), bodies


def test_openai_models_are_told_where_the_prefix_ends_where_they_bill_what_they_cache():
    whole, mode = SHARED + "One response.", {"mode": "explicit"}
    blocks = in_blocks(prompt_cache_breakpoint=mode)
    explicit = {"prompt_cache_options": mode}
    for model, call, content, options, has_key in (
        ("gpt-5.6", MARKED, blocks, explicit, True),
        ("gpt-5.6", PLAIN, whole, explicit, False),
        ("gpt-5", MARKED, whole, {}, True),
    ):
        _, (body,) = openai_bodies(model, call)
        key = body.pop("prompt_cache_key", "")
        assert (body["messages"][0]["content"], len(key)) == (content, 32 * has_key)
        told = {name: value for name, value in body.items() if name.startswith("prompt_cache")}
        assert told == options


def test_each_name_that_openai_refuses_is_learnt_in_turn_and_the_request_made_again():
    refused = ("prompt_cache_breakpoint", "prompt_cache_key", "store")
    found, bodies = openai_bodies("gpt-5.6", MARKED, *refused)
    assert (found.status, len(bodies)) == (Status.OK, 4)
    assert not [name for name in bodies[-1] if name.startswith("prompt_cache") or name == "store"]
    assert "prompt_cache_key" not in found.sent


def test_what_is_marked_is_held_against_a_cap_at_the_price_of_writing_it():
    claude = juror("anthropic", "https://api.anthropic.com", model="claude-sonnet-4-5")
    marked, plain = worst_case_usd(claude, MARKED), worst_case_usd(claude, PLAIN)
    # A listed model may write by itself: always at its dearest.
    assert None is not marked == plain
    priced = claude.model_copy(update={"usd_per_million_in": 3.0, "usd_per_million_out": 0.0})
    dear, cheap = worst_case_usd(priced, MARKED), worst_case_usd(priced, PLAIN)
    assert None is not dear == pytest.approx(1.25 * (cheap or 0.0))


def test_no_second_response_of_an_instance_is_sent_before_the_first_has_come(engine, write, stub):
    stub.script = lambda _: Do(seconds=0.2)
    visits(engine, write, 4, 5)
    assert run(engine, panel_at(stub, vendor="anthropic"), concurrency=16).rated == 20
    assert len({of_instance(seen) for seen in stub.seen[:4]}) == 4  # the firsts go together
    assert stub.peak > 8  # and then everyone else
    stub.seen.clear()
    visits(engine, write, 6, 5)
    assert run(engine, panel_at(stub, "b", vendor="anthropic"), concurrency=3).rated == 30
    asked = [of_instance(seen) for seen in stub.seen]
    for name in set(asked):
        first, *others = (place for place, one in enumerate(asked) if one == name)
        assert others[-1] - first < 15  # not one model's responses after another's


def test_a_first_that_fails_does_not_keep_the_others_from_being_asked(engine, write, stub):
    stub.script = lambda seen: Do(text="no") if "Response 0 to" in seen.prompt else Do()
    visits(engine, write, 3, 3)
    result = run(engine, panel_at(stub, vendor="anthropic"), concurrency=8)
    assert (result.rated, result.missing) == (6, 3)


def keys(engine: Engine) -> dict[str, int]:
    return {one.response_id: one.id or 0 for one in stored(engine, select(Response))}


def scores(engine: Engine, response: int) -> list[tuple[str, float, str]]:
    rows = [one for one in ratings(engine) if one.response == response]
    return sorted((one.criterion, one.score, one.comment) for one in rows)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_two_responses_of_one_text_are_asked_once_and_rated_alike(engine, write, stub, concurrency):
    # With another score each time, so that it shows whose verdict it is.
    stub.script = lambda seen: Do(verdict(seen, 1 + seen.number % 5), seconds=0.02)
    fill(engine, write, ("i", "Same."), ("i", "Other."), ("i", "Same."))
    panel = panel_at(stub, usd_per_million_in=2.0, usd_per_million_out=10.0)
    result = run(engine, panel, concurrency=concurrency)
    assert (result.rated, result.calls, result.shared_prompts) == (3, 2, 1)
    assert (len(stub.seen), result.to_json()["shared_prompts"]) == (2, 1)
    own = keys(engine)
    first, other, second = (scores(engine, own[name]) for name in ("r0", "r1", "r2"))
    assert first == second != other
    rows = {(one.response, one.number): one for one in attempts(engine)}
    given, shared = rows[own["r0"], 1], rows[own["r2"], 0]
    assert shared.sent == {"same_prompt_as": given.id}
    assert (shared.status, shared.raw, shared.usd) == (Status.OK, given.raw, 0.0)
    assert (shared.tokens_in, shared.tokens_out) == (None, None)
    assert shared.price_source == "same prompt as another response: asked once"
    assert shared.request_sha256 == given.request_sha256
    assert result.usd == pytest.approx(2 * 0.003)
    cost = juror_costs(engine)["a"]
    assert (cost.calls, cost.verdicts, cost.unknown) == (2, 2, 0)


def test_a_verdict_of_an_earlier_run_is_shared_with_a_response_that_came_later(engine, write, stub):
    fill(engine, write, ("i", "Same."))
    assert run(engine, panel_at(stub, "a")).calls == 1
    fill(engine, write, ("i", "Same."), ("i", "Same."))
    for name, calls, shared in (("a", 0, 1), ("a", 0, 0), ("b", 1, 1)):
        result = run(engine, panel_at(stub, name))
        assert (result.rated, result.calls, result.shared_prompts) == (2, calls, shared)
    assert missing_verdicts(engine) == []


def test_a_verdict_on_a_text_that_has_been_masked_since_is_not_shared(engine, write, stub):
    fill(engine, write, ("i", "I am A."))
    run(engine, panel_at(stub))
    fill(engine, write, ("i", "I am A."), ("i", "I am X."))
    with behind_the_record(engine) as session:
        first = session.get_one(Response, keys(engine)["r0"])
        first.shown = "I am X."
        session.add(first)
    result = run(engine, panel_at(stub))
    assert (result.rated, result.calls, result.shared_prompts) == (2, 1, 0)


def test_a_prompt_goes_into_a_batch_once_and_into_the_next_where_its_call_failed(engine, write):
    fill(engine, write, ("i", "Same."), ("i", "Same."), ("i", "Bad."), ("i", "Bad."))
    with BatchStub() as stub:
        stub.script = lambda seen: Do(text="no") if "Bad." in seen.prompt else Do()
        result = run_batch(engine, panel_at(stub))
        sizes = [len(one.requests) for one in stub.batches.values()]
    assert (result.rated, result.missing, result.calls, result.shared_prompts) == (2, 2, 3, 1)
    assert sizes == [2, 1]  # one of each pair, then the other of the pair that failed
    assert result.by_status == {"ok": 2, "invalid_json": 2}


def test_a_killed_run_and_the_next_ask_a_prompt_once_unless_in_flight(engine, write, stub):
    fill(engine, write, *[(f"i{n}", "Same.") for n in range(6) for _ in range(5)])
    stub.script = lambda seen: Do(seconds=0.0 if seen.number < 3 else 30.0)
    panel = panel_at(stub)
    child = started(str(engine.url), written(write, panel))
    while len(stub.seen) < 6 and child.poll() is None:
        Event().wait(0.02)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    in_flight = len(stub.seen) - 3
    stub.script = lambda _: Do()
    result = run(engine, panel)
    assert (result.rated, result.missing) == (30, 0)
    assert len(stub.seen) == 6 + in_flight
    given = {one.id for one in attempts(engine) if one.number > 0}
    shared = [one for one in attempts(engine) if one.number == 0]
    assert len(shared) == 24
    assert {one.sent["same_prompt_as"] for one in shared} <= given
    assert len(ratings(engine)) == 30 * 3


SAME, ELSEWHERE, NO = ("i", "Same."), ("j", "Same."), Do(text="no")


@pytest.mark.parametrize(
    ("given", "script", "jurors", "replicates", "counts"),
    [
        ([SAME, SAME], [], "ab", 3, (12, 0, 6, 6)),
        ([SAME, ELSEWHERE], [], "a", 1, (2, 0, 2, 0)),
        ([SAME] * 3, [NO, NO], "a", 1, (2, 1, 3, 1)),
        ([SAME, SAME], [NO], "a", 1, (2, 0, 2, 1)),
    ],
    ids=["juror and replicate", "another instance", "a failure", "asked once more"],
)
def test_a_verdict_is_shared_by_prompt_juror_and_replicate_and_a_failure_is_not(
    engine, write, stub, given, script, jurors, replicates, counts
):
    stub.script = lambda seen: script[seen.number] if seen.number < len(script) else Do()
    fill(engine, write, *given)
    result = run(engine, panel_at(stub, *jurors), replicates=replicates)
    assert (result.rated, result.missing, result.calls, result.shared_prompts) == counts
    assert run(engine, panel_at(stub, *jurors), replicates=replicates).missing == 0
