"""What is said around a jury run: where texts go, what it costs, and what to do next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine

from data.calls import TokenCosts, other_model_words
from data.schema import Status
from data.study.calls import waiting_in_batches
from data.study.masks import Planted
from jury.batch.run import IN_FLIGHT, BatchProgress
from jury.call import NO_CONNECTION, NO_CREDENTIALS
from jury.panel import Panel
from jury.run_result import RunProgress, RunResult
from jury.session import NO_SUCH_MODEL, REFUSES
from jury.window import WindowSource
from medjury.cli.output import counted
from medjury.services.panels import (
    RunEstimate,
    refuse_too_long,
    too_long_for,
    too_long_words,
)

MISSING = 1
NAMED = 5
FULL_PRICES = "these are the full prices; with --batch a listed price is about half of it"
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


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is to do, as the command's options say."""

    max_usd: float | None
    replicates: int
    benchmarks: list[str] | None
    concurrency: int | None
    batch: bool
    leave_out_too_long: bool = False


def announcement(panel: Panel) -> list[str]:
    """Return what is said before anything is sent."""
    hosts = panel.hosts()
    where = "texts will be sent to: " + ", ".join(hosts) if hosts else "no text leaves this machine"
    simulated = [juror.name for juror in panel.juror if juror.simulated]
    lines = [f"panel {panel.name}: {where}", *panel.notices(datetime.now(UTC).date())]
    return lines + ([f"simulated jurors: {', '.join(simulated)}"] if simulated else [])


def batch_warnings(engine: Engine, panel: Panel) -> list[str]:
    """Return a warning for every juror that a live run would ask again and pay again."""
    waiting = waiting_in_batches(engine, [juror.name for juror in panel.juror])
    return [
        f"juror {name}: {counted(number, 'request')} in a batch already, which this run asks and "
        "pays for again; run with --batch to collect them instead"
        for name, number in waiting.items()
    ]


def own_price_notes(panel: Panel) -> list[str]:
    """Return a sentence for every juror whose price is the panel's own."""
    return [
        f"juror {juror.name}: the panel's own price counts in full; put the price for batches there "
        "if it differs"
        for juror in panel.juror
        if juror.usd_per_million_in or juror.usd_per_million_out  # nothing to say where both are 0
    ]


def estimate_warnings(estimate: RunEstimate) -> Iterator[str]:
    """Yield a warning for every juror that will meet its own family, or when that can be told."""
    own = estimate.own
    yield from _unlisted_family_warnings(estimate)
    if own.is_blind and estimate.families:
        yield "how many responses are by a juror's own family is known after unblinding"
    for juror, number in _own_family_counts(estimate):
        yield f"{juror} will rate {number} written by its own family"
    if own.unknown and estimate.families:
        of = f"{own.unknown} of {counted(own.responses or 0, 'response')}"
        has = "has an author" if own.unknown == 1 else "have authors"
        yield f"{of} {has} whose family is unknown"


def result_notes(estimate: RunEstimate, *, complete: bool) -> Iterator[str]:
    """Yield what is told below a result that took calls: the bound, and own families again.

    Under a cap nobody knows how many of those were rated, and they are not told twice.
    """
    yield from paper_bound_note(estimate)
    for juror, number in _own_family_counts(estimate) if complete else ():
        yield f"{juror} has {number} of its own family in this; they count as all do"


def repeated_input_note(estimate: RunEstimate) -> Iterator[str]:
    """Yield how much of the input a vendor may serve from a cache; no figure counts on it."""
    repeated = sum(row.tokens_repeated for row in estimate.jurors)
    if repeated:
        total = sum(row.tokens_in for row in estimate.jurors)
        yield (
            f"{repeated:,} of {total:,} tokens of input begin as an earlier request does: a vendor that "
            "caches may bill them at less; the figures do not count on it"
        )


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


def longest_note(estimate: RunEstimate) -> Iterator[str]:
    """Yield the longest prompt, and the smallest window that is known."""
    uses = [row.window for row in estimate.jurors if row.window.longest_tokens]
    if uses:
        longest = max(uses, key=lambda use: use.longest_tokens)
        known = [use.tokens for use in uses if use.tokens is not None]
        smallest = f"; smallest context window: {min(known):,}" if known else ""
        yield (
            f"longest prompt: about {longest.longest_tokens:,} tokens ({longest.longest_response})"
            f"{smallest}"
        )


def time_notes(estimate: RunEstimate) -> Iterator[str]:
    """Yield how long the calls of jurors take that were asked in the study before, and the run."""
    known = [row for row in estimate.jurors if row.calls and row.seconds is not None]
    for row in known:
        calls = counted(row.calls, "call")
        takes = time_words(row.seconds or 0.0)
        yield f"juror {row.juror}: {takes} at its pace so far ({calls}, {row.at_once} at a time)"
    if len(known) > 1 and estimate.seconds is not None:
        yield f"the run: {time_words(estimate.seconds)}"


def time_words(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {max(1.0, seconds):.0f} s"


def paper_bound_note(estimate: RunEstimate) -> Iterator[str]:
    """Yield the paper's bound, if the run has anything to ask."""
    if estimate.bound.tokens_out:
        yield f"the paper's upper bound for the same: {_usd(estimate.bound.usd)}"


def progress_words(now: RunProgress) -> str:
    """Return the bar's words: what is rated, what failed and why, what was spent."""
    failed = [f"{count} {name}" for name, count in now.by_status.items() if name != "ok"]
    words = [f"{now.by_status.get('ok', 0)} rated", *failed, f"${now.usd:.2f}"]
    return ", ".join(words)


def batch_progress_words(now: BatchProgress) -> str:
    """Return the bar's words: what is rated, in flight, failed and spent."""
    ended = f" ({now.answered} ended there)" if now.answered else ""
    return (
        f"{now.rated} rated, {now.in_flight} in flight{ended}, {now.failed} failed, ${now.usd:.2f}"
    )


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


def token_notes(result: RunResult) -> Iterator[str]:
    """Yield what a run's calls took by kind of token, and what it did not have to ask."""
    if result.shared_prompts:
        verdicts = counted(result.shared_prompts, "verdict")
        yield f"{verdicts} without a call: the very same prompt was rated before, and asked once"
    if words := token_words(result.tokens):
        yield f"tokens: {words}"


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


def missing_by_juror(result: RunResult) -> list[str]:
    """Return a line for each juror that has verdicts missing, with how they ended."""
    lines = []
    for juror, counts in result.by_juror.items():
        statuses = [
            f"{count} {name}" for name, count in counts.items() if count and name != Status.OK
        ]
        if statuses:
            lines.append(f"missing: {juror}: {', '.join(statuses)}")
    return lines


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


def _unlisted_family_warnings(estimate: RunEstimate) -> Iterator[str]:
    """Yield for each family that is in no list what to do about it."""
    for juror, family in estimate.own.unlisted.items():
        yield (
            f"juror {juror}: family {family!r} is none that medjury knows or this study has, and counts "
            "as unknown; name a known one in the panel, or say who is of it with `medjury study settings "
            "families MODEL=FAMILY`"
        )


def _own_family_counts(estimate: RunEstimate) -> Iterator[tuple[str, str]]:
    """Yield the jurors that meet their own family, and how often of how many."""
    for juror, number in estimate.own.own.items():
        if number:
            of = f"{number} of {counted(estimate.own.responses or 0, 'response')}"
            yield f"juror {juror} (family {estimate.families[juror]})", of


def _usd(amount: float | None) -> str:
    return "unknown, as the price of a juror is" if amount is None else f"${amount:.4f}"
