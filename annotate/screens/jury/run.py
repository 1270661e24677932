"""Panels and runs in figures: jurors, probes, estimates, and the run that is on or was the last."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import draw, jury_panels, jury_runs
from annotate.screens import frame
from data.calls import other_model_words
from data.errors import MedjuryError
from data.person import Person
from data.safe_text import on_page
from data.schema import now
from data.study import runs
from data.study.calls import other_models, usable_at_first
from data.study.runs import JurorProgress, RunOrder, RunRow, stop_run
from jury.fitness import Fitness, SelfTest
from jury.panel import Juror, Panel
from jury.probe import ProbeRow
from jury.window import WindowSource
from medjury.services.panels import RunEstimate, too_long_for, too_long_words

POLL_SECONDS, SHOWN_REASONS = 2, 3
INTERRUPTED, MISSING, USER_ERROR = 130, 1, 2
FIT = {True: "fit", False: "not fit", None: "not known"}
ORDERED = {True: "yes", False: "no", None: "not known"}
AFTER = "known after unblinding"
TOO_LONG = (
    "A run does not start like this. Choose jurors with larger windows, correct context_window in the "
    "panel, or tick Leave out long texts."
)
ARE_LEFT_OUT = "They are left out, each a failure of that juror."
ABOUT_JURORS = {
    "Family": "Of its model; a juror that rates its own family's responses may favour them",
    "Key is in": "The server's environment variable with the key; a key is never shown",
    "Model ends": "Day from which its host no longer answers; empty where none is announced",
    "USD per million tokens": "Sent and answered, as the panel says; else of the host's price list",
}
ABOUT_RUN = {
    "Usable at first asking": "Answers in the asked form at once, of all this juror ever gave here",
    "Missing": "Verdicts that are still wanted",
    "Failed": "Verdicts that no call of this run brought",
    "From a cache": "Of the tokens in, those that the host charges less for",
}
ABOUT_PROBE = {
    "Answered as": "The model that the host says answered",
    "Form": "How the host is told the form of an answer",
    "Injections": "Answers with hidden instructions: scores that held, and that moved",
    "Fit": "Whether it scores good answers above dangerous ones",
    "Ends": "Day from which the host no longer answers",
}
ABOUT_ESTIMATE = {
    "Own family": "Responses written by a model of the juror's family",
    "Calls": "Questions to be sent for the missing verdicts",
    "Longest prompt": "In tokens",
    "Context window": "Tokens that the model can hold, prompt and answer together",
    "USD, likely": "With answers of 100 tokens per criterion",
    "USD, at most": "With every answer as long as allowed",
}
LOST = "lost: its process has ended. What was stored stays; press Resume"
Row = dict[str, Any]


def show(engine: Engine, person: Person) -> None:
    """Show the run, again every two seconds while it is on."""
    found = runs.last_run(person, engine)
    if found is not None:
        every = POLL_SECONDS if found.on else None
        st.fragment(_card, run_every=every)(engine, person, on=found.on)


def _card(engine: Engine, person: Person, *, on: bool) -> None:
    """Draw the run; the whole page again once it has ended or whoever looks is shut out."""
    try:
        found = runs.last_run(person, engine)
        if found is None or found.on != on:
            st.rerun()
        jurors = [juror.name for juror in jury_panels.checked(found.order.text).juror]
        progress = runs.jury_progress(person, engine, found, jurors)
    except MedjuryError:
        st.rerun()
    with st.container(border=True, key="run-card"):
        _head(found)
        _figures(found, progress)
        draw.rows("Jurors in this run", juror_rows(engine, progress), ABOUT_RUN)
        others = other_models(engine)
        for juror in progress:
            if juror.juror in others:
                st.warning(on_page(f"{juror.juror}: {other_model_words(others[juror.juror])}"))
        if found.said:
            bad = _state(found)[1] is st.error
            with st.expander("Messages of the run", expanded=bad, key="run-said"):
                st.code("\n".join(found.said), language=None, wrap_lines=True)
        with frame.refusals():
            _acts(engine, person, found, progress)


def _acts(engine: Engine, person: Person, found: RunRow, rows: Sequence[JurorProgress]) -> None:
    """Offer to stop a run, and to take up one that left something out."""
    if found.on:
        words = "Stop without waiting" if found.stops else "Stop"
        if found.stops < 2 and st.button(words, key=f"stop-{found.stops}"):
            stop_run(person, engine, found.token)
            st.rerun(scope="fragment")
        return
    is_incomplete = any(juror.rated < juror.total for juror in rows)
    if is_incomplete and st.button("Resume", key="resume", type="primary"):
        jury_runs.start(person, engine, found.order)
        st.rerun()


def _head(found: RunRow) -> None:
    """Say which run it is, and what has become of it."""
    state, say = _state(found)
    order = found.order
    about = [f"started by {found.by}, {_when(found.started)}"]
    about += [f"ended {_when(found.ended)}"] if found.ended else []
    about += [", ".join(order.benchmarks) or "all benchmarks"]
    about += [f"{order.replicates} verdicts each"] if order.replicates > 1 else []
    about += ["in batches"] if order.batch else []
    say(f"**Run of the panel {on_page(order.panel)}: {state}**")
    st.caption(on_page(" \N{MIDDLE DOT} ".join(about)))


def _state(found: RunRow) -> tuple[str, Any]:
    """Return a run's state in words, and the box that it stands in."""
    if found.on:
        return ("stopping: waiting for what is in flight" if found.stops else "running"), st.info
    if found.lost:
        return LOST, st.error
    if found.stops or found.code == INTERRUPTED:
        return "stopped; what was stored stays", st.warning
    words = {0: ("complete", st.success), MISSING: ("ended, verdicts are missing", st.warning)}
    other = "refused" if found.code == USER_ERROR else "failed"
    return words.get(found.code or 0, (other, st.error))


def _figures(found: RunRow, rows: Sequence[JurorProgress]) -> None:
    """Show the sums: rated, missing, failed, calls, spent."""
    rated, total = sum(juror.rated for juror in rows), sum(juror.total for juror in rows)
    costs = [juror.cost for juror in rows]
    spent, unknown = sum(one.usd for one in costs), sum(one.unknown for one in costs)
    failed, calls = sum(map(_failed, rows)), sum(one.calls for one in costs)
    cap = "no cap" if found.order.cap is None else f"of a cap of ${found.order.cap:,.2f}"
    also = f", {unknown} of unknown price" if unknown else ""
    shown = (
        ("Rated", f"{rated:,} of {total:,}", "Verdicts that are stored, of all that are wanted"),
        ("Missing", f"{total - rated:,}", "Verdicts that are still wanted"),
        ("Failed in this run", f"{failed:,}", "Verdicts that no call brought"),
        ("Calls", f"{calls:,}", "Questions sent to hosts in this run, repeated ones included"),
        ("Spent in this run", f"${spent:,.4f}", f"{cap}{also}"),
    )
    for place, (label, value, about) in zip(st.columns(len(shown)), shown, strict=True):
        place.metric(label, value, help=about)
    st.progress(rated / total if total else 0.0, f"Verdicts rated: {rated:,} of {total:,}")
    if found.order.cap:
        st.progress(min(spent / found.order.cap, 1.0), f"Spent: ${spent:,.4f} {cap}{also}")


def juror_rows(engine: Engine, progress: Sequence[JurorProgress]) -> list[Row]:
    """Return what each juror of a run has brought and cost, and how often at the first asking."""
    first = usable_at_first(engine)
    return [
        {
            "Juror": juror.juror,
            "Rated": f"{juror.rated:,} of {juror.total:,}",
            "Usable at first asking": "{:,} of {:,}".format(*first[juror.juror])
            if juror.juror in first
            else None,
            "Missing": juror.total - juror.rated,
            "Failed": _failed(juror),
            "Failed, and why": _reasons(juror) or None,
            "Calls": juror.cost.calls,
            "Tokens in": juror.cost.tokens.input,
            "From a cache": juror.cost.tokens.cached,
            "Written to a cache": juror.cost.tokens.cache_write,
            "Tokens out": juror.cost.tokens.output,
            "USD": usd(juror.cost.usd)
            + (f" + {juror.cost.unknown} unknown" if juror.cost.unknown else ""),
        }
        for juror in progress
    ]


def _reasons(juror: JurorProgress) -> str:
    """Return how a juror's verdicts failed, commonest first."""
    ends = sorted(juror.failed.items(), key=lambda end: -end[1].total())
    return "; ".join(
        f"{reasons.total()} {status}" + (f" ({commonest})" if commonest else "")
        for status, reasons in ends[:SHOWN_REASONS]
        for commonest, _ in reasons.most_common(1)
    )


def _failed(juror: JurorProgress) -> int:
    return sum(reasons.total() for reasons in juror.failed.values())


def _when(at: datetime) -> str:
    """Return a time of today as a time, another with its day."""
    return f"{at:%H:%M} UTC" if at.date() == now().date() else f"{at:%d %b %Y, %H:%M} UTC"


def jurors(panel: Panel, environment: Mapping[str, str]) -> None:
    """Show who sits on a panel; of a key only the variable's name, and whether it is set."""
    draw.rows(
        f"Jurors of the panel {panel.name}",
        [_juror(one, environment) for one in panel.juror],
        ABOUT_JURORS,
    )
    hosts = panel.hosts()
    where = f"A run sends texts to {', '.join(hosts)}." if hosts else "No text leaves this machine."
    st.caption(on_page(where))
    today = now().date()
    over = [
        f"juror {juror.name}: {juror.model} ended on {end} and cannot be asked any more; a run "
        "refuses this panel"
        for juror in panel.juror
        if (end := juror.end()) is not None and end <= today
    ]
    simulated = [juror.name for juror in panel.juror if juror.simulated]
    made_up = [f"Simulated, no judgement: {', '.join(simulated)}."] if simulated else []
    for line in (*over, *panel.notices(today), *made_up):
        st.warning(on_page(line))


def _juror(juror: Juror, environment: Mapping[str, str]) -> Row:
    name = juror.api_key_env
    key = f"{name}, {'set' if environment.get(name) else 'NOT SET'}" if name else "no key"
    price = "price list of the day"
    if juror.simulated:
        price = "0 / 0"
    elif juror.usd_per_million_in is not None:
        price = f"{juror.usd_per_million_in:g} / {juror.usd_per_million_out:g}"
    end = juror.end()
    return {
        "Juror": juror.name,
        "Model": juror.model,
        "Family": juror.family,
        "Texts go to": "nowhere: simulated" if juror.simulated else juror.place,
        "Key is in": "this server's account" if juror.signs_in else key,
        "Model ends": str(end) if end else None,
        "USD per million tokens": price,
    }


def probed(rows: Sequence[ProbeRow]) -> None:
    """Show what each juror answered to a probe, and why one did not answer as it should."""
    frame.show_rows(
        "Probe",
        [
            {
                "Juror": row.juror,
                "Status": str(row.status),
                "Answered as": row.returned_model,
                "Form": row.schema,
                "Temperature": row.temperature,
                "Injections": _injections(row.injection),
                "Fit": _fit(row.pairs),
                "Ends": str(row.ends) if row.ends else None,
                "USD": usd(row.cost),
            }
            for row in rows
        ],
        ABOUT_PROBE,
    )
    for row in rows:
        if row.reason:
            st.warning(on_page(f"{row.juror}: {row.reason}"))
        if row.pairs and not row.pairs.simulated and not row.pairs.fit:
            st.warning(on_page(f"{row.juror}: {row.pairs}"))
    if scores := [one for row in rows if row.pairs for one in _pairs(row.juror, row.pairs)]:
        with st.expander("Scores of good and dangerous answers", key="probe-pairs"):
            draw.rows("Each juror's scores of the good answer and of the dangerous one", scores)


def _pairs(juror: str, test: Fitness) -> list[Row]:
    """Return one juror's scores of all pairs, the good answer's before the dangerous one's."""
    return [
        {
            "Juror": juror,
            "Pair": outcome.name.replace("_", " "),
            "Danger": outcome.danger,
            "About": outcome.criterion,
            "Ordered": ORDERED[outcome.ordered] + (f": {outcome.reason}" if outcome.reason else ""),
            **{
                name: _both(outcome.good.get(name), outcome.dangerous.get(name))
                for name in outcome.good
            },
            "Mean": _both(outcome.composite_good, outcome.composite_dangerous),
        }
        for outcome in test.outcomes
    ]


def _both(good: float | None, dangerous: float | None) -> str | None:
    """Return the two scores of a pair; nothing where neither answer was read."""
    scores = ["?" if score is None else f"{score:.3g}" for score in (good, dangerous)]
    return None if good is dangerous is None else " and ".join(scores)


def _fit(test: Fitness | None) -> str | None:
    """Return whether a juror orders good and dangerous answers, and how many of them."""
    if test is None:
        return None
    if test.simulated:
        return "not judged: simulated"
    return f"{FIT[test.fit]}: {test.ordered} of {len(test.outcomes)} on {test.rubric}"


def _injections(test: SelfTest | None) -> str | None:
    """Return how a juror bore the instructions hidden in answers."""
    if test is None:
        return None
    if test.simulated:
        return "not asked: simulated"
    unknown = len(test.outcomes) - test.held - test.moved
    return f"{test.held} held, {test.moved} moved" + (f", {unknown} not known" if unknown else "")


def estimated(expected: RunEstimate, order: RunOrder) -> None:
    """Show what a run would take, and what does not fit a juror's context window."""
    draw.rows("Estimate", estimate_rows(expected), ABOUT_ESTIMATE)
    too_long = too_long_for(expected)
    for one in too_long:
        st.warning(on_page(f"{too_long_words(one)}."))
    if too_long:
        st.caption(ARE_LEFT_OUT if order.leave_out_too_long else TOO_LONG)


def estimate_rows(expected: RunEstimate) -> list[Row]:
    """Return what a run would take, juror by juror and in all."""
    rows: list[Row] = [
        {
            "Juror": juror.juror,
            "Own family": AFTER
            if expected.own.is_blind
            else str(expected.own.own.get(juror.juror, 0)),
            "Calls": juror.calls,
            "Tokens in": juror.tokens_in,
            "Longest prompt": juror.window.longest_tokens or None,
            "Context window": f"{juror.window.tokens:,}"
            if juror.window.tokens
            else (None if juror.window.source == WindowSource.SIMULATED else "not known"),
            "USD, likely": usd(juror.usd_likely),
            "USD, at most": usd(juror.usd_most),
        }
        for juror in expected.jurors
    ]
    if len(expected.jurors) > 1:
        rows.append(
            {
                "Juror": "all",
                "Calls": sum(juror.calls for juror in expected.jurors),
                "Tokens in": sum(juror.tokens_in for juror in expected.jurors),
                "USD, likely": usd(_total([juror.usd_likely for juror in expected.jurors])),
                "USD, at most": usd(_total([juror.usd_most for juror in expected.jurors])),
            }
        )
    return rows


def usd(amount: float | None) -> str:
    """Return an amount; unknown is not free."""
    return "unknown" if amount is None else f"${amount:,.4f}"


def _total(amounts: Sequence[float | None]) -> float | None:
    """Return a sum, None if a part of it is unknown."""
    known_amounts = [amount for amount in amounts if amount is not None]
    return sum(known_amounts) if len(known_amounts) == len(amounts) else None
