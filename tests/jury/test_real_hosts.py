"""What real hosts send is read, or refused with the reason that they give."""

import json
from collections import Counter

import pytest
from kit.jurors import Do, Seen, Stub, answers, juror, verdict, verdict_of
from kit.jury_runs import attempts, fill, many, panel_at, run
from kit.real_hosts import HOSTS, said
from kit.studies import Write
from rich.console import Console
from sqlalchemy import Engine
from sqlmodel import select

from data.calls import is_other_model
from data.database import reading
from data.schema import Attempt, Rater, Status
from data.study.calls import other_models, usable_at_first
from medjury.cli.output import progress
from medjury.services.run_words import answer_notes


def test_some_thirty_real_hosts_in_one_panel_end_as_they_should(
    engine: Engine, write: Write
) -> None:
    fill(engine, write, ("i1", "The patient walked. " * 2000))
    with Stub(lambda seen: HOSTS[seen.model].answer(seen)) as stub:
        run(engine, panel_at(stub, *HOSTS))
    with reading(engine) as session:
        names = {rater.id: rater.handle for rater in session.exec(select(Rater))}
    last: dict[str, Attempt] = {names[row.rater]: row for row in attempts(engine)}
    for name, host in HOSTS.items():
        row = last[name]
        assert (name, row.status, row.number) == (name, host.status, host.calls)
        assert host.reason in row.reason, name


def test_a_refusal_keeps_what_the_host_said(engine: Engine, write: Write) -> None:
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


def test_an_answer_cut_off_while_it_explains_is_asked_for_without_explanations(
    engine: Engine, write: Write
) -> None:
    many(engine, write, 1)

    def script(seen: Seen) -> Do:
        explains = "explanation" in json.dumps(seen.body["response_format"])
        return (
            Do(text='{"accuracy": {"explanation": "a a a', finish="truncated")
            if explains
            else Do(verdict_of(seen))
        )

    with Stub(script) as stub:
        result = run(engine, panel_at(stub))
        first, second = stub.seen
    assert (result.rated, result.calls) == (1, 2)
    assert '"maxLength": 400' in json.dumps(first.body["response_format"])
    assert "give the score alone" in second.prompt
    assert len(second.body["messages"]) == 1, "a runaway is not quoted back"


def test_a_server_that_knows_no_lengths_keeps_its_form_and_is_told_none(
    engine: Engine, write: Write
) -> None:
    many(engine, write, 3)
    refusal = json.dumps({"error": {"message": "schema: 'maxLength' is not permitted"}})

    def script(seen: Seen) -> Do:
        is_told = "maxLength" in json.dumps(seen.body)
        return Do(status=400, body=refusal) if is_told else Do()

    with Stub(script) as stub:
        result = run(engine, panel_at(stub))
    assert result.rated == 3
    assert {row.sent["schema"] for row in attempts(engine)} == {"json_schema"}


def test_an_explanation_that_repeats_the_form_is_counted(engine: Engine, write: Write) -> None:
    many(engine, write, 2)

    def script(seen: Seen) -> Do:
        return Do(verdict(seen).replace("because", "<one or two sentences>"))

    with Stub(script) as stub:
        result = run(engine, panel_at(stub))
    assert result.rated == 2
    assert result.placeholders == {"a": 6}
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
def test_another_model_than_was_asked_for_is_told_apart_from_a_snapshot(
    asked: str, returned: str, is_other: bool
) -> None:
    assert is_other_model(asked, returned) is is_other


def test_how_many_answers_were_usable_at_first_asking_is_told_by_juror(
    engine: Engine, write: Write
) -> None:
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


def test_a_reply_without_end_is_dropped_at_two_megabytes() -> None:
    with Stub(lambda _: Do(body='{"choices": [' + " " * 2_100_000)) as stub:
        answer = answers(juror("openai", stub.openai_url))[0]
    assert (answer.status, answer.reason) == (
        Status.REQUEST_FAILED,
        "the reply does not end within 2 MB",
    )
    assert not answer.transient


def test_a_time_for_answers_is_a_jurors_setting_and_longer_in_the_house() -> None:
    times = [
        juror("openai", "https://api.openai.com/v1").seconds,
        juror("openai", "http://127.0.0.1:8000/v1").seconds,
        juror("openai", "http://127.0.0.1:8000/v1", timeout=0.3).seconds,
    ]
    assert times == [120.0, 600.0, 0.3]


def test_unknown_tokens_at_a_price_of_nothing_cost_nothing(engine: Engine, write: Write) -> None:
    many(engine, write, 1)
    free = {"usd_per_million_in": 0.0, "usd_per_million_out": 0.0}
    with Stub(lambda _: Do(usage=False)) as stub:
        result = run(engine, panel_at(stub, **free))
    assert (result.usd, result.usd_unknown) == (0.0, 0)


def test_without_a_terminal_a_run_writes_a_line_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 10.0, 70.0, 70.0, 80.0])
    monkeypatch.setattr("medjury.cli.output.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("medjury.cli.output.progress_console", Console(stderr=True))
    with progress("panel p", None) as at:
        for done in (1, 2, 3):
            at(done, 9, f"{done} rated")
    assert capsys.readouterr().err.split("\n") == ["panel p: 2 of 9 2 rated", ""]
