"""Frozen reports over time: what each found, and what is different from the one before."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data.queries.reports import FrozenReport

JURY = "jury"
NO_ROW: Mapping[str, Any] = {
    **dict.fromkeys(("icc", "boot_low", "boot_high")),
    **dict.fromkeys(("n_responses", "n_instances"), 0),
}


def reported(found: Sequence[FrozenReport], benchmark: str) -> list[dict[str, Any]]:
    """Return a row a report: the jury's ICC on one benchmark, and what has changed since.

    Parameters
    ----------
    found
        The oldest first.
    benchmark
        Or "combined"; a report that has no such row has the ICC None.
    """
    before: list[FrozenReport | None] = [None, *found]
    return [
        _row(one, benchmark) | {"changed": list(_changed(last, one, benchmark)) if last else []}
        for last, one in zip(before, found, strict=False)
    ]


def jury_row(body: Mapping[str, Any], benchmark: str) -> Mapping[str, Any]:
    """Return the jury's row of a report on a benchmark; one without figures if it has none."""
    for row in body.get("rows", ()):
        if row["benchmark"] == benchmark and row["scorer"] == JURY:
            return row  # type: ignore[no-any-return]  # as calibrate wrote it
    return NO_ROW


def simulated(body: Mapping[str, Any], benchmark: str) -> bool:
    """Tell whether a report's figure rests on simulated raters."""
    return "simulated raters: " in jury_row(body, benchmark).get("note", "")


def _row(one: FrozenReport, benchmark: str) -> dict[str, Any]:
    row, body = jury_row(one.body, benchmark), one.body
    return {
        "report": one.id,
        "at": one.at.isoformat(),
        "name": body.get("name", ""),
        "benchmark": benchmark,
        "icc": row["icc"],
        "boot_low": row["boot_low"],
        "boot_high": row["boot_high"],
        "n_responses": row["n_responses"],
        "n_instances": row["n_instances"],
        "jury": body.get("jury", []),
        "method": body.get("method"),
        "version": body.get("version"),
        "fingerprint": one.fingerprint,
        "simulated": simulated(body, benchmark),
    }


def _changed(last: FrozenReport, one: FrozenReport, benchmark: str) -> Iterator[str]:
    """Yield in words what differs between a report and the one before it."""
    was, now = last.body, one.body
    yield from _rubrics(was.get("rubrics", {}), now.get("rubrics", {}))
    yield from _jurors(was, now)
    for name in ("method", "version"):
        if was.get(name) != now.get(name):
            yield f"{name} {was.get(name)} -> {now.get(name)}"
    options = ({**was.get("options", {})}, {**now.get("options", {})})
    for name in sorted({*options[0], *options[1]} - {"jurors"}):
        if options[0].get(name) != options[1].get(name):
            yield f"{name} {options[0].get(name)} -> {options[1].get(name)}"
    n = [jury_row(body, benchmark)["n_responses"] for body in (was, now)]
    if last.fingerprint != one.fingerprint:
        yield f"ratings ({n[0]} -> {n[1]} responses)"


def _rubrics(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*was, *now}):
        if name not in was:
            yield f"benchmark {name} is new"
        elif name not in now:
            yield f"benchmark {name} is gone"
        elif was[name]["sha256"] != now[name]["sha256"]:
            yield f"rubric of {name}"


def _jurors(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    before, after = set(was.get("jury", ())), set(now.get("jury", ()))
    yield from (f"juror {name} joined" for name in sorted(after - before))
    yield from (f"juror {name} left" for name in sorted(before - after))
    for name in sorted(before & after):
        old, new = (body.get("jurors", {}).get(name, {}).get("sha256") for body in (was, now))
        if old != new:
            yield f"settings of juror {name}"
