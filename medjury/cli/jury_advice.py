"""What to do about verdicts that are missing: by the reasons why they are."""

from collections.abc import Iterator

from data.schema import Status
from jury.batch.room import IN_FLIGHT
from jury.call import NO_CONNECTION
from jury.elsewhere import LOST, NO_WORKER
from jury.lane import NO_SUCH_MODEL, REFUSES_TEMPERATURE
from jury.tally import RunResult

AGAIN = "run the same command again: only what is missing is asked for"
BY_STATUS: dict[str, str] = {
    Status.AUTH: "the key was refused: put a valid one in the variable that the panel's "
    "api_key_env names, then run again",
    Status.QUOTA: "the account has no credit: add some with the provider, then run again",
    Status.BUDGET_STOPPED: "the cap was reached: run again, with a larger --max-usd if you like; "
    "it counts anew in each run",
    Status.EMPTY_RESPONSE: "an empty response cannot be rated: mend the imported file",
    Status.REFUSED: "the juror refused: asking again is unlikely to help, another model may",
    Status.CONTENT_FILTER: "the provider's filter stopped it: asking again is unlikely to help; "
    "ask the provider to loosen it, or take another model",
    Status.RATE_LIMITED: "the rate was limited: set requests_per_minute or tokens_per_minute in "
    "the panel, or run again later",
}
WORKERS = (
    "the workers of --on were lost: start some with `dask worker ADDRESS`, and the scheduler if it "
    "is gone (local:N starts its own); then run the same command again: it goes on with what is "
    "missing"
)
BY_REASON = {
    NO_SUCH_MODEL: "mend model or base_url in the panel; `medjury jury probe PANEL` tries it",
    REFUSES_TEMPERATURE: "delete the temperature in the panel and give the juror another name",
    NO_CONNECTION: "nobody answers there: start the server or mend base_url, then run again",
    NO_WORKER: WORKERS,
    LOST: WORKERS,
}
ANSWERED = (
    Status.INVALID_JSON,
    Status.MISSING_CRITERION,
    Status.OUT_OF_RANGE,
    Status.TRUNCATED,
)
FORM = (
    "the jurors answered, but not in the form asked for: asking again costs as much and is "
    "unlikely to help. Try a larger max_tokens, another schema, or another model"
)


def advice(result: RunResult) -> list[str]:
    """Return what to do about what is missing, a sentence for each kind of reason."""
    return list(dict.fromkeys(_advice(result))) if result.missing else []


def _advice(result: RunResult) -> Iterator[str]:
    for juror, counts in result.by_juror.items():
        why = result.stopped.get(juror, "")
        mended = [said for words, said in BY_REASON.items() if words in why]
        for name, count in counts.items():
            if not count or name in (Status.OK, IN_FLIGHT):
                continue
            if name in (Status.REQUEST_FAILED, Status.TIMEOUT) and mended:
                yield from mended
            elif name in ANSWERED:
                yield FORM
            else:
                yield BY_STATUS.get(Status(name), AGAIN) if name in list(Status) else AGAIN


def by_juror(result: RunResult) -> list[str]:
    """Return a line for each juror that has verdicts missing, with how they ended."""
    lines = []
    for juror, counts in result.by_juror.items():
        each = [f"{count} {name}" for name, count in counts.items() if count and name != Status.OK]
        if each:
            lines.append(f"missing: {juror}: {', '.join(each)}")
    return lines
