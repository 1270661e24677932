"""Jurors that are read by the probabilities of their scores, over the real SDK on the loopback."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.batches import BatchStub
from kit.batches import run as run_in_batches
from kit.jurors import Do, Seen, Stub, served, verdict_of
from kit.jury_runs import attempts, panel_at, ratings, run
from kit.studies import Run
from sqlalchemy import Engine

from data.card import Card
from data.errors import BadPanel
from data.question import ORDER_SENTENCES
from data.rubric import read_rubric, shipped
from jury.call import Call, Turn
from jury.conversation import request_sha256
from jury.panel import Juror, read_panel, refuse_form
from jury.probe import ProbeRow, probe

EXPECTED = {"scores": "expected"}
MEAN = pytest.approx(4.2)
CARD = Card("c", "context", "task", "response", "reference", None)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(served) as running:
        yield running


def probed(stub: Stub, **settings: Any) -> ProbeRow:
    [row] = probe(panel_at(stub, **settings))
    return row


def test_the_mean_is_rated_and_the_stated_verdict_and_its_distribution_are_kept(
    small_study: Engine, stub: Stub
) -> None:
    result = run(small_study, panel_at(stub, **EXPECTED))
    assert result.rated == 4
    assert all(row.score == MEAN for row in ratings(small_study))
    assert {row.comment for row in ratings(small_study)} == {"38,5 °C 🩺; 2 of 5"}
    one = attempts(small_study)[0]
    assert one.answer is not None
    assert one.answer["clarity"] == {
        "stated": 4,
        "probabilities": pytest.approx({"3": 0.1, "4": 0.6, "5": 0.3}),
        "mass": pytest.approx(1.0),
    }
    assert json.loads(one.raw)["clarity"]["score"] == 4
    assert (one.sent["scores"], one.sent["top_logprobs"]) == ("expected", 20)


def test_a_server_without_log_probabilities_stops_its_juror_after_one_answer(
    small_study: Engine, stub: Stub
) -> None:
    stub.script = lambda seen: Do(verdict_of(seen))
    result = run(small_study, panel_at(stub, **EXPECTED), concurrency=1)
    assert result.by_status == {"no_probabilities": 4}
    assert len(stub.seen) == 1
    assert "sends no log-probabilities" in result.stopped["a"]
    assert ratings(small_study) == []


def test_one_answer_without_them_among_others_is_missing_alone(
    small_study: Engine, stub: Stub
) -> None:
    def script(seen: Seen) -> Do:
        bare = "Mild pain." in seen.prompt
        return Do(verdict_of(seen)) if bare else served(seen)

    stub.script = script
    result = run(small_study, panel_at(stub, **EXPECTED), concurrency=1)
    assert result.by_status == {"ok": 3, "no_probabilities": 1}
    assert (result.stopped, len(stub.seen)) == ({}, 4)


def test_a_distribution_that_says_too_little_is_missing_with_its_figures_and_not_asked_again(
    small_study: Engine, stub: Stub, run_command: Run
) -> None:
    stub.script = lambda seen: served(seen, shares={"4": 0.3, "5": 0.1, "N": 0.6})
    result = run(small_study, panel_at(stub, **EXPECTED))
    assert (result.by_status, len(stub.seen)) == ({"no_probabilities": 4}, 4)
    assert ratings(small_study) == []
    one = attempts(small_study)[0]
    assert "0.400 of the probability lies on points of the scale" in one.reason
    assert one.answer is not None
    assert one.answer["clarity"]["mass"] == pytest.approx(0.4)
    code, out, _ = run_command("jury", "missing", "--json", "-")
    assert code == 0
    assert {row["status"] for row in json.loads(out)["missing"]} == {"no_probabilities"}


@pytest.fixture
def run_command(run: Run) -> Run:
    return run


REFUSALS = [
    (400, {"message": "Unsupported parameter: 'logprobs' is not supported with this model.",
           "param": "logprobs", "code": "unsupported_parameter"}),
    (403, {"message": "You are not allowed to request logprobs from this model", "param": None}),
    (400, {"message": "Logprobs is not enabled for models/m", "status": "INVALID_ARGUMENT"}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "error"), REFUSALS)
def test_a_model_that_refuses_to_tell_them_is_stopped_with_the_line_to_delete(
    small_study: Engine, stub: Stub, status: int, error: dict[str, Any]
) -> None:
    stub.script = lambda seen: (
        Do(status=status, body=json.dumps({"error": error})) if "logprobs" in seen.body else Do()
    )
    result = run(small_study, panel_at(stub, **EXPECTED), concurrency=1)
    assert result.missing == 4
    assert 'the model refuses scores = "expected"; delete that line' in result.stopped["a"]
    assert ratings(small_study) == []
    stub.seen.clear()
    row = probed(stub, **EXPECTED)
    assert 'refuses scores = "expected": delete that line of juror a' in row.reason
    assert row.probabilities == "not served"


@pytest.mark.parametrize(
    "error",
    [
        {
            "message": "Invalid 'top_logprobs': integer above maximum value.",
            "param": "top_logprobs",
        },
        {"message": "Requested sample logprobs of 20, which is greater than max allowed: 5"},
    ],
)
def test_a_server_that_grants_five_alternatives_is_asked_for_five_from_then_on(
    small_study: Engine, stub: Stub, error: dict[str, Any]
) -> None:
    def script(seen: Seen) -> Do:
        too_many = seen.body["top_logprobs"] > 5
        return Do(status=400, body=json.dumps({"error": error})) if too_many else served(seen)

    stub.script = script
    result = run(small_study, panel_at(stub, **EXPECTED), concurrency=1)
    assert result.rated == 4
    assert [seen.body["top_logprobs"] for seen in stub.seen] == [20, 5, 5, 5, 5]
    assert probed(stub, **EXPECTED).unsupported == ("top_logprobs",)


def test_a_batch_asks_for_them_and_reads_them_as_a_live_run_does(small_study: Engine) -> None:
    with BatchStub() as stub:
        panel = panel_at(stub, "a", **EXPECTED)
        stub.script = served
        result = run_in_batches(small_study, panel)
    assert result.rated == 4
    assert all(row.score == MEAN for row in ratings(small_study))
    assert {one.answer["clarity"]["stated"] for one in attempts(small_study)} == {4}  # type: ignore[index]


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "vertex", "foundry"])
def test_a_panel_whose_provider_serves_none_is_refused_with_what_to_do(
    write: Callable[[str, str], Path], provider: str
) -> None:
    places = {"bedrock": 'region = "r"', "vertex": 'region = "r"\nproject = "p"'}
    path = write(
        "p.toml",
        f'name = "p"\n[[juror]]\nname = "claude"\nprovider = "{provider}"\nmodel = "m"\n'
        f'family = "f"\nscores = "expected"\n{places.get(provider, "")}\n'
        + (
            'base_url = "http://127.0.0.1:1"\napi_key_env = "K"\n' if provider not in places else ""
        ),
    )
    with pytest.raises(
        BadPanel, match=f"juror 'claude', scores: provider \"{provider}\" serves no"
    ):
        read_panel(path)


@pytest.mark.parametrize("explanation", ["before", "after", "none"])
def test_the_prompt_the_schema_and_the_answer_follow_the_panels_order(
    small_study: Engine, stub: Stub, explanation: str
) -> None:
    result = run(small_study, panel_at(stub, explanation=explanation))
    assert result.rated == 4
    wanted = {
        "before": ["explanation", "score"],
        "after": ["score", "explanation"],
        "none": ["score"],
    }[explanation]
    for seen in stub.seen:
        form = seen.body["response_format"]["json_schema"]["schema"]["properties"]["clarity"]
        assert (list(form["properties"]), form["required"]) == (wanted, wanted)
        asked = [ORDER_SENTENCES[one] in seen.prompt for one in ("before", "after", "none")]
        assert asked == [one == explanation for one in ("before", "after", "none")]
        shown = seen.prompt[seen.prompt.rindex('"clarity": ') :]
        assert [word for word in ("explanation", "score") if f'"{word}"' in shown] == sorted(wanted)
        if explanation != "none":
            assert (shown.index('"score"') < shown.index('"explanation"')) == (
                explanation == "after"
            )
    comments = {row.comment for row in ratings(small_study)}
    assert comments == ({""} if explanation == "none" else {"38,5 °C 🩺; 2 of 5"})


def test_expected_scores_go_with_any_order(small_study: Engine, stub: Stub) -> None:
    for order in ("before", "after", "none"):
        run(small_study, panel_at(stub, order, explanation=order, **EXPECTED))
    assert all(row.score == MEAN for row in ratings(small_study))
    assert len(ratings(small_study)) == 4 * 3 * len(read_rubric("generic").criteria)


def test_every_shipped_prompt_can_be_asked_in_every_order() -> None:
    for name in shipped():
        rubric = read_rubric(name)
        assert rubric.shows_form
        assert rubric.prompt.count(ORDER_SENTENCES["before"]) == 1
        assert rubric.render(CARD, "before") == rubric.render(CARD)
        assert rubric.json_schema("before") == rubric.json_schema()


def test_a_prompt_with_words_of_its_own_on_the_order_is_followed_by_one_that_counts() -> None:
    generic = read_rubric("generic")
    prompt = "{{response}}\nExplain each score before you give it.\n{{schema}}"
    own = generic.model_copy(update={"prompt": prompt})
    assert "even where" not in own.render(CARD)
    assert own.render(CARD, "after").endswith(
        "Give each score before its explanation, even where another order is named above."
    )


def test_the_order_is_not_read_out_of_a_patients_text() -> None:
    told = Card(
        "c", ORDER_SENTENCES["before"], "task", f"{ORDER_SENTENCES['before']} {{{{schema}}}}"
    )
    shown = read_rubric("generic").render(told, "none")
    assert shown.count(ORDER_SENTENCES["before"]) == 2
    assert "{{schema}}" in shown


def test_a_prompt_that_writes_its_form_out_is_never_asked_otherwise(
    small_study: Engine, stub: Stub
) -> None:
    panel = panel_at(stub, explanation="after")
    own = read_rubric("generic").model_copy(update={"prompt": "{{response}} Give JSON."})
    assert own.render(CARD) == "response Give JSON."
    with pytest.raises(BadPanel, match=r'juror a: explanation = "after" cannot be asked for'):
        refuse_form(panel, own)
    assert stub.seen == []


HASHES = {
    "generic": "95c64ee6e28dedda1f7e25d125fe7eed384057dd645bde38bb6a7de9ee41143d",
    "aci_bench": "905226ae90d4a3529a0807370c9c54ceaf332858e14fd9225aef193129e0e3f8",
}


@pytest.mark.parametrize("name", HASHES)
def test_a_juror_that_sets_neither_is_asked_as_before_they_could_be_set(name: str) -> None:
    one = Juror(
        name="j",
        provider="openai",
        model="m",
        family="f",
        base_url="http://127.0.0.1:1/v1",
        temperature=0.0,
    )
    assert not {"explanation", "scores"} & one.profile().keys()
    rubric = read_rubric(name)
    call = Call((Turn("user", rubric.render(CARD)),), rubric.json_schema())
    assert request_sha256(one, call) == HASHES[name]
