"""What is told of a jury run: what it would take, what came of it, what it cost, and what to do next."""

from collections.abc import Iterator, Sequence
from typing import Any

from calibration.notes import counted
from data.calls import TokenCosts, other_model_words
from data.schema import Status
from data.study.calls import IN_FLIGHT
from data.study.masks import Planted
from jury.call import NO_CONNECTION, NO_CREDENTIALS
from jury.run_result import RunResult
from jury.session import NO_SUCH_MODEL, REFUSES
from jury.window import WindowSource
from medjury.services.panels import (
    RunEstimate,
    refuse_too_long,
    too_long_for,
    too_long_words,
)

NAMED = 5
AGAIN = "run the same command again: only what is missing is asked for"
BY_STATUS: dict[str, str] = {
    Status.AUTH: "the key was refused: put a valid one in the variable that the panel's "
    "api_key_env names, or give the identity that signs in the right to use the model, then run again",
    Status.QUOTA: "the account has no credit: add some with the provider, then run again",
    Status.BUDGET_STOPPED: "the cap was reached: run again, with a larger --max-usd if you like; "
    "it counts anew in each run, and `medjury study settings budget` bounds all runs together",
    Status.OFF_CONTRACT: "an endpoint billed more than a call can cost, so no cap can be kept with "
    "it: see what it bills, mend max_tokens or the prices in the panel, or take another",
    Status.NO_PROBABILITIES: 'the log-probabilities that scores = "expected" needs did not come, or '
    "say too little of a score: `medjury jury probe PANEL` tells whether they are served; else leave "
    "scores out, give the juror another name, and run with --replicates",
    Status.EMPTY_RESPONSE: "an empty response cannot be rated: mend the imported file",
    Status.TOO_LONG: "the text is longer than the juror's context window: asking again does not help; "
    "take a juror with a larger one",
    Status.TRUNCATED: "the answers did not end within max_tokens: give a juror that explains at length "
    'explanation = "none" and another name; a larger max_tokens helps one that reasons',
    Status.CUT: "the host read a part of the text only, and judged that: start it with a larger context "
    "(Ollama: OLLAMA_CONTEXT_LENGTH, llama.cpp: -c) and name it as context_window in the panel",
    Status.REFUSED: "the juror refused: asking again is unlikely to help, another model may",
    Status.CONTENT_FILTER: "the provider's filter stopped it: asking again is unlikely to help; "
    "ask the provider to loosen it, or take another model",
    Status.RATE_LIMITED: "the rate was limited: set requests_per_minute or tokens_per_minute in "
    "the panel, or run again later",
}
BY_REASON = {
    NO_SUCH_MODEL: "mend model or base_url in the panel; `medjury jury probe PANEL` tries it",
    REFUSES: "delete that line in the panel and give the juror another name",
    NO_CONNECTION: "nobody answers there: start the server or mend base_url, then run again",
    NO_CREDENTIALS: "sign in on the machine that asks (for Azure `az login`, for Google `gcloud auth "
    "application-default login`, for AWS `aws sso login` or keys), then run again",
}
ANSWERED = (
    Status.INVALID_JSON,
    Status.TWO_VERDICTS,
    Status.MISSING_CRITERION,
    Status.OUT_OF_RANGE,
)
FORM = (
    "the jurors answered, but not in the form asked for: asking again costs as much and is "
    'unlikely to help. Try another schema, explanation = "none", or another model'
)


def estimate_warnings(estimate: RunEstimate) -> Iterator[str]:
    """Yield a warning for every juror that will meet its own family, or when that can be told."""
    own = estimate.own
    for juror, family in own.unlisted.items():
        yield (
            f"juror {juror}: family {family!r} is none that medjury knows or this study has, and counts "
            "as unknown; name a known one in the panel, or say who is of it with `medjury study settings "
            "families MODEL=FAMILY`"
        )
    if own.is_blind and estimate.families:
        yield "how many responses are by a juror's own family is known after unblinding"
    yield from (
        f"{one} will rate {of} written by its own family" for one, of in _own_family(estimate)
    )
    if own.unknown and estimate.families:
        of = f"{own.unknown} of {counted(own.responses or 0, 'response')}"
        has = "has an author" if own.unknown == 1 else "have authors"
        yield f"{of} {has} whose family is unknown"


def _own_family(estimate: RunEstimate) -> list[tuple[str, str]]:
    """Return the jurors that meet their own family, and how often of how many."""
    responses = counted(estimate.own.responses or 0, "response")
    return [
        (f"juror {juror} (family {estimate.families[juror]})", f"{number} of {responses}")
        for juror, number in estimate.own.own.items()
        if number
    ]


def estimate_lines(estimate: RunEstimate) -> Iterator[str]:
    """Yield what is told of a run that is only estimated: warnings, input, windows, time, bound."""
    yield from estimate_warnings(estimate)
    uses = [row.window for row in estimate.jurors if row.window.longest_tokens]
    if uses:
        longest = max(uses, key=lambda use: use.longest_tokens)
        known = [use.tokens for use in uses if use.tokens is not None]
        smallest = f"; smallest context window: {min(known):,}" if known else ""
        tokens = f"about {longest.longest_tokens:,} tokens"
        yield f"longest prompt: {tokens} ({longest.longest_response}){smallest}"
    yield from unknown_window_note(estimate)
    timed = [row for row in estimate.jurors if row.calls and row.seconds is not None]
    for row in timed:
        takes, calls = time_words(row.seconds or 0.0), counted(row.calls, "call")
        yield f"juror {row.juror}: {takes} at its pace so far ({calls}, {row.at_once} at a time)"
    if len(timed) > 1 and estimate.seconds is not None:
        yield f"the run: {time_words(estimate.seconds)}"
    yield from _paper_bound(estimate)


def result_notes(estimate: RunEstimate, *, complete: bool) -> Iterator[str]:
    """Yield what is told below a result that took calls: the bound, and own families again.

    Under a cap nobody knows how many of those were rated, and they are not told twice.
    """
    yield from _paper_bound(estimate)
    for juror, number in _own_family(estimate) if complete else ():
        yield f"{juror} has {number} of its own family in this; they count as all do"


def left_out_notes(estimate: RunEstimate, *, asked_for: bool) -> list[str]:
    """Return what is left out as too long for a juror; raise BadInput if that was not asked for."""
    if not asked_for:
        refuse_too_long(estimate)
    return [
        f"{too_long_words(too_long)}: left out, each stored as a failure"
        for too_long in too_long_for(estimate)
    ]


def unknown_window_note(estimate: RunEstimate) -> Iterator[str]:
    """Yield of which jurors no context window is known."""
    jurors = [
        row.juror
        for row in estimate.jurors
        if row.calls and row.window.source == WindowSource.UNKNOWN
    ]
    if jurors:
        yield (
            f"context window not known: {', '.join(jurors)}; set context_window in the panel, and what "
            "is too long is found before it is sent"
        )


def time_words(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {max(1.0, seconds):.0f} s"


def _paper_bound(estimate: RunEstimate) -> list[str]:
    """Return the paper's bound, if the run has anything to ask."""
    bound = estimate.bound
    usd = "unknown, as the price of a juror is" if bound.usd is None else f"${bound.usd:.4f}"
    return [f"the paper's upper bound for the same: {usd}"] if bound.tokens_out else []


def cost_words(result: RunResult) -> str:
    """Return what a run has cost, as far as it is known."""
    unknown = counted(result.usd_unknown, "call")
    return f"${result.usd:.4f}" + (f" and {unknown} of unknown price" if result.usd_unknown else "")


def token_words(tokens: TokenCosts) -> str:
    """Return what calls took and cost, by kind of token; only kinds that there were."""
    reasoning = f", of them {tokens.reasoning:,} of reasoning" if tokens.reasoning else ""
    kinds = [
        ("input", tokens.input, tokens.usd_input, ""),
        ("input from a cache", tokens.cached, tokens.usd_cached, ""),
        ("input written to a cache", tokens.cache_write, tokens.usd_cache_write, ""),
        ("output", tokens.output, tokens.usd_output, reasoning),
    ]
    words = [f"{name} {number:,} (${usd:.4f}{more})" for name, number, usd, more in kinds if number]
    return ", ".join(words)


def result_lines(result: RunResult) -> Iterator[str]:
    """Yield what a run has come to: complete, or what is missing and why, and what it cost."""
    total = result.rated + result.missing
    yield (
        f"{result.panel}: scored {result.rated} of {total} "
        f"({counted(result.responses, 'response')} x {counted(result.jurors, 'juror')}), "
        f"{counted(result.calls, 'call')}, {cost_words(result)}"
    )
    if result.shared_prompts:
        verdicts = counted(result.shared_prompts, "verdict")
        yield f"{verdicts} without a call: the very same prompt was rated before, and asked once"
    if words := token_words(result.tokens):
        yield f"tokens: {words}"
    for juror, counts in result.by_juror.items():
        if statuses := [f"{n} {name}" for name, n in counts.items() if n and name != Status.OK]:
            yield f"missing: {juror}: {', '.join(statuses)}"
    yield from (f"juror {juror} was stopped: {why}" for juror, why in result.stopped.items())
    yield from answer_notes(result)
    yield from spending_notes(result)
    yield from advice(result)


def answer_notes(result: RunResult) -> Iterator[str]:
    """Yield which jurors answered as another model, and whose explanations say nothing."""
    for juror, models in result.other_models.items():
        yield f"juror {juror}: {other_model_words(models)}"
    for juror, number in result.placeholders.items():
        yield f"juror {juror}: {counted(number, 'explanation')} that repeat the form and say nothing"


def spending_notes(result: RunResult) -> Iterator[str]:
    """Yield what the study may have spent besides what it knows, and how its budget stands."""
    if result.calls_carried:
        calls = f"{counted(result.calls_carried, 'call')} in flight when a run before was killed"
        yield f"{calls}: at most ${result.usd_carried:.4f}, counted against this run's --max-usd"
    if result.calls_in_flight:
        yield in_flight_words(result.calls_in_flight, result.usd_in_flight)
    if result.budget is not None or result.calls_in_flight:
        of = "" if result.budget is None else f" of a budget of ${result.budget:.2f}"
        yield f"spent on the study over all runs, at most: ${result.usd_study:.4f}{of}"


def in_flight_words(calls: int, usd: float) -> str:
    """Return what calls that nobody knows the cost of can have cost."""
    return (
        f"{counted(calls, 'call')} in flight when a run was killed, never answered or in a batch: "
        f"at most ${usd:.4f}, not in the figures above"
    )


def advice(result: RunResult) -> list[str]:
    """Return what to do about what is missing, a sentence for each kind of reason."""
    return list(dict.fromkeys(_advice(result))) if result.missing else []


def planted_words(planted: Sequence[Planted]) -> Iterator[str]:
    """Yield which responses hold a verdict or tags of the prompt, the first few by name."""
    verdicts = [response.response_id for response in planted if response.verdict]
    if verdicts:
        yield (
            f"{counted(len(verdicts), 'response')} with a ready-made verdict in the text: "
            f"{_first(verdicts)}; look at their scores under Agreement, Responses"
        )
    tags = [
        f"{response.response_id} (in {' and '.join(response.tags_broken_in)})"
        for response in planted
        if response.tags_broken_in
    ]
    if tags:
        yield (
            f"{counted(len(tags), 'response')} with tags of the prompt itself, broken in what jurors "
            f"are sent: {_first(tags)}; look at their scores under Agreement, Responses"
        )


def _first(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def _advice(result: RunResult) -> Iterator[str]:
    for juror, counts in result.by_juror.items():
        why = result.stopped.get(juror, "")
        remedies = [advice for words, advice in BY_REASON.items() if words in why]
        for name, count in counts.items():
            if not count or name in (Status.OK, IN_FLIGHT):
                continue
            if name in (Status.REQUEST_FAILED, Status.TIMEOUT, Status.AUTH) and remedies:
                yield from remedies
            elif name in ANSWERED:
                yield FORM
            else:
                yield BY_STATUS.get(Status(name), AGAIN) if name in list(Status) else AGAIN


def estimate_json(estimate: RunEstimate) -> dict[str, Any]:
    """Return the keys that `jury run --json` has beside the contract's."""
    own, bound = estimate.own, estimate.bound
    return {
        "own_family": {
            row.juror: None if own.is_blind else own.own.get(row.juror, 0)
            for row in estimate.jurors
        },
        "author_family_unknown": own.unknown,
        "paper_tokens_in": bound.tokens_in,
        "paper_tokens_out": bound.tokens_out,
        "paper_usd": bound.usd,
    }
