"""What is said of missing verdicts: which, why, what to do, and what all calls have cost."""

import json
from collections.abc import Callable

import pytest
from kit.jurors import Do, Script, Seen, Stub, verdict
from kit.studies import RESPONSES, Run, Write
from sqlalchemy import Engine

from data.study.calls import missing_verdicts, without_texts
from medjury.services.run_words import AGAIN, BY_REASON, BY_STATUS, FORM

BODY = 'provider = "openai"\nfamily = "f"\nmodel = "m"\nschema = "json_schema"\n'


@pytest.fixture
def ask(run: Run, write: Write) -> Callable[..., tuple[int, str, str]]:
    """Import the small study and run a panel of one juror, a, whose server follows a script."""
    run("study", "import", str(write("responses.csv", RESPONSES)))

    def asked(script: Script, *options: str, settings: str = "") -> tuple[int, str, str]:
        with Stub(script) as stub:
            body = f'{BODY}{settings}base_url = "{stub.openai_url}"\n'
            panel = write("p.toml", f'name = "p"\n[[juror]]\nname = "a"\n{body}')
            return run("jury", "run", str(panel), *options)

    return asked


Ask = Callable[..., tuple[int, str, str]]


def leaky(seen: Seen) -> Do:
    words = "Patient denies fever" if "Patient denies fever" in seen.prompt else 3
    return Do(verdict(seen, words))


def test_what_is_missing_is_listed_with_its_reason_and_no_text_or_author(
    run: Run, ask: Ask
) -> None:
    code, out, _ = ask(leaky, settings="usd_per_million_in = 1\nusd_per_million_out = 10\n")
    assert code == 1
    assert "missing: a: 1 out_of_range" in out
    code, out, err = run("jury", "missing", "--json", "-")
    body = json.loads(out)
    (row,) = body["missing"]
    assert code == 0
    assert (row["juror"], row["response_id"], row["status"]) == ("a", "r11", "out_of_range")
    assert (row["replicate"], row["calls"], row["benchmark"]) == (0, 2, "visits")
    assert row["reason"] == "accuracy: score (no number) is not a whole number on the scale 1-5"
    assert body["jurors"] == [{"juror": "a", "missing": 1, "by_status": {"out_of_range": 1}}]
    assert (body["calls"], body["usd"], body["usd_unknown"]) == (5, pytest.approx(0.01), 0)
    for word in ("denies", "fever", "model-one"):
        assert word not in out + err
    assert "missing: a: 1 out_of_range" in err
    assert "spent over all runs: $0.0100 (5 calls)" in err


def test_what_was_rated_later_is_missing_no_more_and_stays_paid(run: Run, ask: Ask) -> None:
    ask(lambda _: Do("prose"))
    ask(lambda _: Do())
    _, out, _ = run("jury", "missing")
    assert "no verdict is missing" in out
    assert "and 12 calls of unknown price (12 calls)" in out


def test_a_study_that_no_juror_was_asked_about_misses_nothing(small_study: Engine) -> None:
    assert missing_verdicts(small_study) == []


def test_a_verdict_that_a_cap_left_out_is_missing_with_no_call_and_no_bound(
    run: Run, ask: Ask
) -> None:
    code, said, _ = ask(
        lambda _: Do(), "--max-usd", "0", settings="usd_per_million_in=1\nusd_per_million_out=1\n"
    )
    rows = json.loads(run("jury", "missing", "--json", "-")[1])["missing"]
    assert (code, len(rows), {one["calls"] for one in rows}) == (1, 4, {0})
    assert {one["reason"] for one in rows} == {"not asked: the next request could pass the cap"}
    assert "the paper's upper bound" not in said


@pytest.mark.parametrize(
    ("do", "said"),
    [
        (Do(status=401), BY_STATUS["auth"]),
        (Do(status=429, code="insufficient_quota"), BY_STATUS["quota"]),
        (Do(status=404), BY_REASON["no such model or address"]),
        (
            Do(status=400, body='{"error": {"param": "temperature"}}'),
            BY_REASON["the model refuses"],
        ),
        (Do("prose"), FORM),
        (Do(refusal="No."), BY_STATUS["refused"]),
    ],
)
def test_the_advice_fits_the_reason(ask: Ask, do: Do, said: str) -> None:
    code, out, _ = ask(lambda _: do, settings="temperature = 0.0\n")
    assert code == 1
    assert said in out
    assert AGAIN not in out


def test_a_failure_that_may_pass_is_advised_to_be_asked_again(ask: Ask) -> None:
    code, out, _ = ask(lambda _: Do(status=413))
    assert (code, AGAIN in out) == (1, True)


@pytest.mark.parametrize("score", ['"4/5"', "7", "4.5", "true"])
def test_a_number_in_a_reason_stays(score: str) -> None:
    said = f"clarity: score {score} is not a whole number on the scale 1-5"
    assert without_texts(said) == said


@pytest.mark.parametrize("score", ['"Mrs Smith"', '"12.03.1950"', '{"a": "fever"}', '"a\nb"'])
def test_words_in_a_reason_do_not_stay(score: str) -> None:
    said = f"clarity: score {score} is not a whole number on the scale 1-5"
    assert score not in without_texts(said)
