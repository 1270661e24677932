"""Context windows: who says them, what fits, and what becomes of what does not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.batches import run as run_in_batches
from kit.batches import stub as stub
from kit.jurors import Do, Stub, juror
from kit.jury_runs import attempts, many, panel_at
from kit.jury_runs import run as run_jury
from kit.studies import HEAD, import_file

from annotate.screens.jury import run as jury_run
from data.schema import Status
from jury.call import TOO_LONG
from jury.estimate import estimate
from jury.panel import read_panel
from jury.window import WINDOW_MARGIN, PromptSize, WindowSource, prompt_size, window_use
from medjury.services.panels import RunScope, run_estimate, too_long_for, too_long_words

Write = Callable[[str, str], Path]
LONG = 20_000  # characters: more tokens than WINDOW, whichever way they are counted
WINDOW, ANSWER = 3_000, 200


@pytest.fixture
def texts(write):
    """Write a file of three responses of one instance, of which r1 and r2 are long, r2 more so."""
    words = [("r0", "Short."), ("r1", "x" * LONG), ("r2", "y" * (LONG + 700))]
    lines = [f"i1,visits,A case.,Write.,,{name},m,{text}" for name, text in words]
    return write("long.csv", "\n".join([HEAD, *lines]))


def small(server, **settings):
    return panel_at(server, context_window=WINDOW, max_tokens=ANSWER, **settings)


@pytest.fixture
def jury(run, write, texts):
    """Return what runs a jury command on the long texts; its code, words, and how often it asked."""
    with Stub() as server:

        def asked(
            command: str, *options: str, window: str = f"context_window = {WINDOW}"
        ) -> tuple[int, str, str, int]:
            settings = f'schema = "json_schema"\nmax_tokens = {ANSWER}\n{window}\n'
            at = f'provider = "openai"\nmodel = "m"\nfamily = "f"\nbase_url = "{server.openai_url}"\n'
            head = f'name = "p"\n[[juror]]\nname = "short-sighted"\n{at}{settings}'
            run("study", "import", str(texts))
            given = run("jury", command, str(write("p.toml", head)), *options)
            return *given, len(server.seen)

        yield asked


def test_a_window_is_the_panels_own_or_the_price_lists_or_unknown_and_then_holds_everything():
    vendor, ward = "https://api.openai.com/v1", "http://127.0.0.1:8000/v1"
    old = {"model": "gpt-4o-2024-05-13"}
    for url, settings, tokens, source in (
        (vendor, old, 128_000, WindowSource.PRICE_LIST),
        (vendor, old | {"context_window": 64_000}, 64_000, WindowSource.PANEL),
        (ward, {"model": "gpt-4o"}, None, WindowSource.UNKNOWN),
    ):
        found = window_use(juror("openai", url, **settings))
        assert (found.tokens, found.source) == (tokens, source)
    assert not prompt_size(juror("openai", ward, model="gpt-4o"), "x" * 10_000_000).is_too_long
    assert window_use(read_panel("simulated").juror[0]).source == WindowSource.SIMULATED


def test_the_estimates_error_and_the_answer_are_kept_free():
    needed = PromptSize(1_000, None, 200).needed
    assert needed == round(1_000 * WINDOW_MARGIN) + 200 > 1_200
    assert not PromptSize(1_000, needed, 200).is_too_long
    assert PromptSize(1_000, needed - 1, 200).is_too_long


def test_scripts_that_take_more_tokens_a_letter_are_counted_so():
    one = juror("openai", "http://127.0.0.1:8000/v1")
    latin, chinese = (prompt_size(one, sign * 700).tokens for sign in "a\u75c5")
    assert (latin, chinese) == (200, 600)


@pytest.mark.parametrize("options", [(), ("--batch",), ("--estimate",)])
def test_what_does_not_fit_is_refused_in_one_message_before_anything_is_sent(jury, engine, options):
    code, out, err, asked = jury("run", *options)
    assert (code, asked, attempts(engine)) == (2, 0, [])
    assert "left out" not in out + err
    (message,) = (line for line in err.splitlines() if "medjury: " in line)
    for words in (
        *("juror short-sighted: 2 responses do not fit", "3,000 tokens (by the panel)"),
        *("The longest, r2, takes about", "--leave-out-too-long"),
    ):
        assert words in message


def test_references_that_do_not_fit_are_refused_before_anything_is_sent(jury, engine, texts):
    lines = [f"i{n},visits,{'x' * LONG},Write.,Said {n}.,r{n},m,A response." for n in range(2)]
    short = "i2,visits,A case.,Write.,Said.,r2,m,A response."
    texts.write_text("\n".join([HEAD, *lines, short]))
    code, _, err, asked = jury("references")
    assert (code, asked, attempts(engine)) == (2, 0, [])
    (message,) = (line for line in err.splitlines() if "medjury: " in line)
    assert "juror short-sighted: 2 references do not fit" in message
    assert "The longest, visits/i0, takes about" in message
    assert "--leave-out-too-long" not in message, "references has no such option"


def test_an_estimate_has_the_window_and_the_longest_response_as_figures(jury):
    code, out, *_ = jury("run", "--replicates", "2", "--estimate", "--json", "-")
    (row,) = json.loads(out)["jurors"]
    assert (code, row["calls"]) == (2, 2), "what does not fit is not asked about"
    window = row["window"]
    assert window.pop("longest_tokens") > LONG / 3.5
    told = {"tokens": WINDOW, "source": "panel", "max_tokens": ANSWER, "too_long": 2}
    assert window == told | {"longest_response": "r2"}
    code, out, *_ = jury("run", "--estimate", window="")
    assert (code, "context window not known: short-sighted" in out) == (0, True)


def test_what_does_not_fit_is_left_out_as_failures_where_that_is_asked_for(jury, run, engine):
    code, out, _, asked = jury("run", "--leave-out-too-long")
    assert (code, asked, "missing: short-sighted: 2 too_long" in out) == (1, 1, True)
    left_out = [row for row in attempts(engine) if row.status == Status.TOO_LONG]
    assert [(row.number, row.usd, row.tokens_in) for row in left_out] == [(0, 0.0, None)] * 2
    assert all(row.reason.startswith(f"not asked: {TOO_LONG}: about ") for row in left_out)
    _, out, _ = run("jury", "missing", "--json", "-")
    assert {row["status"] for row in json.loads(out)["missing"]} == {"too_long"}


def test_a_batch_leaves_out_what_does_not_fit(engine, texts, stub):
    import_file(engine, texts)
    result = run_in_batches(engine, small(stub, vendor="anthropic"))
    assert result.by_status == {"ok": 1, "too_long": 2}


LITELLM = {"code": "400", "param": None}
LITELLM |= {"message": "litellm.ContextWindowExceededError: litellm.BadRequestError: too long"}


@pytest.mark.parametrize(
    ("vendor", "error", "told"),
    [
        ("openai", {"code": "context_length_exceeded", "message": "too many"}, "context_length_exceeded: "),
        ("anthropic", {"message": "prompt is too long: 208310 tokens > 200000 maximum"}, ""),
        ("anthropic", {"message": "input length and `max_tokens` exceed context limit: 1 + 2 > 2"}, ""),
        ("openai", {"message": "This model's maximum context length is 4096 tokens.", "code": 400}, ""),
        # As llama.cpp's server 0.5.0 and litellm's proxy 1.106.2 in front of it answered.
        ("openai", {"code": 400, "type": "exceed_context_size_error"}, "exceed_context_size_error: "),
        ("openai", LITELLM, "ContextWindowExceededError: "),
    ],
)  # fmt: skip
def test_a_vendors_refusal_of_a_long_prompt_is_stored_told_and_not_sent_again_in_any_form(
    engine, write, vendor, error, told
):
    many(engine, write, 12)
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error"} | error})
    with Stub(lambda _: Do(status=400, body=body)) as server:
        result = run_jury(engine, panel_at(server, vendor=vendor, schema="auto"))
    assert dict(result.stopped) == {}, "texts are at fault, not the juror"
    assert (result.calls, result.by_status) == (12, {"too_long": 12})
    assert all(row.reason.endswith(f"{told}{TOO_LONG}") for row in attempts(engine))


def test_an_error_that_quotes_such_words_is_none_about_length(engine, write):
    many(engine, write, 1)
    quoted = {"type": "invalid_request_error", "message": "bad text: 'prompt is too long'"}
    with Stub(lambda _: Do(status=400, body=json.dumps({"error": quoted}))) as server:
        result = run_jury(engine, panel_at(server))
    assert result.by_status == {"request_failed": 1}


def test_the_lab_says_what_does_not_fit_and_what_comes_of_it(engine, texts):
    import_file(engine, texts)
    with Stub() as server:
        panel = small(server)
        expected = run_estimate(engine, RunScope(panel))
        assert estimate(engine, panel)[0].window.too_long == 2
    [too_long] = too_long_for(expected)
    assert "2 responses do not fit" in too_long_words(too_long)
    assert f"{WINDOW:,}" in str(jury_run.estimate_rows(expected))
