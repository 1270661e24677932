"""Panels and runs as tables: jurors, probes, estimates, and the run that is on or was the last."""

import html
from collections.abc import Mapping, Sequence
from datetime import date, datetime

import streamlit as st
from sqlalchemy import Engine

from annotate import jury_panels, jury_runs
from annotate.screens import frame
from annotate.screens.frame import Cell, caption, notice, paragraph, table
from data.calls import TokenCosts, first_asking_words, other_model_words
from data.errors import MedjuryError
from data.person import Person
from data.schema import now
from data.study import runs
from data.study.calls import other_models, usable_at_first
from data.study.runs import JurorProgress, RunOrder, RunRow, stop_run
from jury.fitness import Fitness, SelfTest
from jury.panel import Juror, Panel
from jury.probe import ProbeRow
from jury.window import WindowSource, WindowUse
from medjury.services.panels import RunEstimate, too_long_for, too_long_words

POLL_SECONDS = 2
KINDS = ("Tokens in", "From a cache", "Written to a cache", "Tokens out")
HEADS = ("Juror", "Failed, and why", "Rated", "Missing", "Failed", "Calls", *KINDS, "USD")
SHOWN_REASONS = 3
INTERRUPTED, MISSING, USER_ERROR = 130, 1, 2
JURORS = (
    "Juror",
    "Model",
    "Family",
    "Texts go to",
    "Key is in",
    "Model ends",
    "US dollars per million tokens, in / out",
)
PROBED = (
    *("Juror", "Status", "Answered as", "Form", "Temperature", "Injections", "Fit"),
    *("Ends", "USD"),
)
FIT = {True: "fit", False: "not fit", None: "not known"}
ORDERED = {True: "yes", False: "no", None: "not known"}
ESTIMATED = (
    *("Juror", "Own family", "Calls", "Tokens in", "Longest prompt", "Context window"),
    *("USD, likely", "USD, at most"),
)
AFTER = "known after unblinding"
NOWHERE = "nowhere: simulated"
TOO_LONG = (
    "A run does not start like this. Choose jurors with larger windows, correct context_window in the "
    "panel, or tick Leave out long texts."
)


def show(engine: Engine, person: Person) -> None:
    """Show the run, again every two seconds while it is on."""
    run = runs.last_run(person, engine)
    if run is not None:
        every = POLL_SECONDS if run.on else None
        st.fragment(_card, run_every=every)(engine, person, on=run.on)


def _card(engine: Engine, person: Person, *, on: bool) -> None:
    """Draw the run; the whole page again once it has ended or whoever looks is shut out."""
    try:
        run = runs.last_run(person, engine)
        if run is None or run.on != on:
            st.rerun()
        rows = _progress(engine, person, run)
    except MedjuryError:
        st.rerun()
    with st.container(key="lab-run"):
        st.html(_head(run) + _figures(engine, person, run, rows))
        _show_said(run)
        with frame.refusals():
            _acts(engine, person, run, rows)


def _progress(engine: Engine, person: Person, run: RunRow) -> list[JurorProgress]:
    """Return how far each juror is in rating."""
    jurors = [juror.name for juror in jury_panels.checked(run.order.text).juror]
    return runs.jury_progress(person, engine, run, jurors)


def _figures(engine: Engine, person: Person, run: RunRow, rows: Sequence[JurorProgress]) -> str:
    """Return what a run has brought and cost."""
    others, first = other_models(engine), usable_at_first(engine)
    usable = "; ".join(
        f"{juror.juror}: {first_asking_words(*first[juror.juror])}"
        for juror in rows
        if juror.juror in first
    )
    answered = (
        notice(f"{juror.juror}: {other_model_words(others[juror.juror])}")
        for juror in rows
        if juror.juror in others
    )
    said = caption(f"In this study, {usable}.") if usable else ""
    return _facts(run, rows) + _table(run, rows) + said + "".join(answered)


def _acts(engine: Engine, person: Person, run: RunRow, rows: Sequence[JurorProgress]) -> None:
    """Offer to stop a run, and to take up one that left something out."""
    if run.on:
        words = "Stop without waiting" if run.stops else "Stop"
        if run.stops < 2 and st.button(words, key=f"stop-{run.stops}"):
            stop_run(person, engine, run.token)
            st.rerun(scope="fragment")
        return
    is_incomplete = any(juror.rated < juror.total for juror in rows)
    if is_incomplete and st.button("Resume", key="resume", type="primary"):
        jury_runs.start(person, engine, run.order)
        st.rerun()


def _head(run: RunRow) -> str:
    """Return what run it is, and what has become of it."""
    state, kind = _state(run)
    order = run.order
    about = [f"started by {run.by}, {_when(run.started)}"]
    about += [f"ended {_when(run.ended)}"] if run.ended else []
    about += [", ".join(order.benchmarks) or "all benchmarks"]
    about += [f"{order.replicates} verdicts each"] if order.replicates > 1 else []
    about += ["in batches"] if order.batch else []
    details = html.escape(" \N{MIDDLE DOT} ".join(about))
    return (
        f'<div class="mj-run-head"><h2 class="mj-part">Run of the panel {html.escape(order.panel)}'
        f'</h2><span class="mj-state mj-{kind}" role="status">{html.escape(state)}</span>'
        f"<p>{details}</p></div>"
    )


def _state(run: RunRow) -> tuple[str, str]:
    """Return a run's state in words, and the kind of it."""
    if run.on:
        return (
            ("stopping: waiting for what is in flight", "stopping")
            if run.stops
            else ("running", "on")
        )
    if run.lost:
        return "lost: its process has ended. What was stored stays; press Resume", "bad"
    if run.stops or run.code == INTERRUPTED:
        return "stopped; what was stored stays", "stopping"
    words = {0: ("complete", "done"), MISSING: ("ended, verdicts are missing", "stopping")}
    return words.get(run.code or 0, ("refused" if run.code == USER_ERROR else "failed", "bad"))


def _facts(run: RunRow, rows: Sequence[JurorProgress]) -> str:
    """Return the sums: rated, missing, failed, spent."""
    rated, total = sum(juror.rated for juror in rows), sum(juror.total for juror in rows)
    spent, unknown = sum(juror.usd for juror in rows), sum(juror.unknown for juror in rows)
    facts = [
        ("Rated", f"{rated:,}", f"of {total:,}", _bar("Verdicts rated", rated, total)),
        ("Missing", f"{total - rated:,}", "", ""),
        ("Failed in this run", f"{sum(sum(juror.failed.values()) for juror in rows):,}", "", ""),
        *_money(run, sum(juror.calls for juror in rows), spent, unknown),
    ]
    return '<dl class="mj-facts">' + "".join(_fact(*fact) for fact in facts) + "</dl>"


def _money(run: RunRow, calls: int, usd: float, unknown: int) -> list[tuple[str, str, str, str]]:
    """Return the calls of a run and what it has spent of its cap."""
    cap = "no cap" if run.order.cap is None else f"of a cap of ${run.order.cap:,.2f}"
    also = f", {unknown} of unknown price" if unknown else ""
    bar = _bar("Of the cap spent", usd, run.order.cap) if run.order.cap else ""
    return [("Calls", f"{calls:,}", "", ""), ("Spent in this run", f"${usd:,.4f}", cap + also, bar)]


def _fact(name: str, value: str, small: str, bar: str) -> str:
    return f"<div><dt>{name}</dt><dd>{value} <small>{html.escape(small)}</small>{bar}</dd></div>"


def _bar(label: str, part: float, total: float | None) -> str:
    """Return a bar with its share in words for those who do not see it."""
    percent = min(100, round(100 * part / total)) if total else 0
    return (
        f'<span class="mj-share" role="progressbar" aria-label="{label}" aria-valuemin="0" '
        f'aria-valuemax="100" aria-valuenow="{percent}"><span style="width:{percent}%"></span></span>'
    )


def _table(run: RunRow, rows: Sequence[JurorProgress]) -> str:
    """Return the jurors side by side."""
    cells: list[list[Cell]] = [
        [
            juror.juror,
            _reasons(juror) or None,
            f"{juror.rated:,} of {juror.total:,}",
            juror.total - juror.rated,
            sum(juror.failed.values()),
            juror.calls,
            *_kinds(juror.tokens),
            usd(juror.usd) + (f" + {juror.unknown} unknown" if juror.unknown else ""),
        ]
        for juror in rows
    ]
    return table(f"Jurors in the run of {run.order.panel}", HEADS, cells, words=2)


def _kinds(tokens: TokenCosts) -> list[Cell]:
    """Return tokens by kind, each with its cost; nothing where there were none."""
    kinds = [
        (tokens.input, tokens.usd_input),
        (tokens.cached, tokens.usd_cached),
        (tokens.cache_write, tokens.usd_cache_write),
        (tokens.output, tokens.usd_output),
    ]
    return [f"{number:,}, {usd(amount)}" if number else None for number, amount in kinds]


def _reasons(juror: JurorProgress) -> str:
    """Return how a juror's verdicts failed, commonest first."""
    commonest = list(juror.failed.items())[:SHOWN_REASONS]
    reasons = [
        f"{number} {status}" + (f" ({juror.reasons[status]})" if juror.reasons.get(status) else "")
        for status, number in commonest
    ]
    return "; ".join(reasons)


def _show_said(run: RunRow) -> None:
    """Show what the command told, as it told it; once opened it stays open as figures are redrawn."""
    if not run.said:
        return
    lines = html.escape("\n".join(run.said))
    with st.expander("Messages of the run", expanded=_state(run)[1] == "bad", key="lab-said"):
        st.html(
            '<pre class="mj-told-lines" tabindex="0" role="region" '
            f'aria-label="Messages of the run">{lines}</pre>'
        )


def _when(at: datetime) -> str:
    """Return a time of today as a time, another with its day."""
    return f"{at:%H:%M} UTC" if at.date() == now().date() else f"{at:%d %b %Y, %H:%M} UTC"


def jurors_table(panel: Panel, environment: Mapping[str, str]) -> str:
    """Return who sits on a panel; of a key only the variable's name, and whether it is set."""
    rows = [_juror(juror, environment) for juror in panel.juror]
    return table(f"Jurors of the panel {panel.name}", JURORS, rows, words=6)


def notices(panel: Panel, today: date) -> list[str]:
    """Return what is to be known before the panel is run, most urgent first."""
    over = [
        f"juror {juror.name}: {juror.model} ended on {end} and cannot be asked any more; a run "
        "refuses this panel"
        for juror in panel.juror
        if (end := juror.end()) is not None and end <= today
    ]
    simulated = [juror.name for juror in panel.juror if juror.simulated]
    made_up = [f"simulated, no judgement: {', '.join(simulated)}"] if simulated else []
    return over + panel.notices(today) + made_up


def probe_table(rows: Sequence[ProbeRow]) -> str:
    """Return what each juror answered to a probe."""
    return table("Probe", PROBED, [_probed(row) for row in rows], words=8)


def probe_reasons(rows: Sequence[ProbeRow]) -> list[str]:
    """Return why jurors did not answer as they should, or were not found fit."""
    reasons = [f"{row.juror}: {row.reason}" for row in rows if row.reason]
    tried = [(row.juror, row.pairs) for row in rows if row.pairs and not row.pairs.simulated]
    return reasons + [f"{juror}: {test}" for juror, test in tried if not test.fit]


def pairs_tables(rows: Sequence[ProbeRow]) -> str:
    """Return every juror's scores of the good and the dangerous answers, a table each."""
    return "".join(
        _pairs_table(row.juror, row.pairs) for row in rows if row.pairs and row.pairs.outcomes
    )


def _pairs_table(juror: str, test: Fitness) -> str:
    """Return one juror's scores of all pairs, the good answer's before the dangerous one's."""
    criteria = next((list(outcome.good) for outcome in test.outcomes if outcome.good), [])
    cells: list[list[Cell]] = [
        [
            outcome.name.replace("_", " "),
            outcome.danger,
            outcome.criterion,
            ORDERED[outcome.ordered] + (f": {outcome.reason}" if outcome.reason else ""),
            *(_both(outcome.good.get(name), outcome.dangerous.get(name)) for name in criteria),
            _both(outcome.composite_good, outcome.composite_dangerous),
        ]
        for outcome in test.outcomes
    ]
    heads = ("Pair", "Danger", "About", "Ordered", *criteria, "Mean")
    title = f"{juror} on {test.rubric}: scores of the good and of the dangerous answer"
    return paragraph(title) + table(title, heads, cells, words=4)


def _both(good: float | None, dangerous: float | None) -> str | None:
    """Return the two scores of a pair; nothing where neither answer was read."""
    scores = ["?" if score is None else f"{score:.3g}" for score in (good, dangerous)]
    return None if good is dangerous is None else " and ".join(scores)


def estimate_table(expected: RunEstimate) -> str:
    """Return what a run would take, juror by juror and in all."""
    jurors, own = expected.jurors, expected.own
    rows: list[list[Cell]] = [
        [
            juror.juror,
            AFTER if own.is_blind else own.own.get(juror.juror, 0),
            juror.calls,
            juror.tokens_in,
            juror.window.longest_tokens or None,
            _window(juror.window),
            usd(juror.usd_likely),
            usd(juror.usd_most),
        ]
        for juror in jurors
    ]
    if len(jurors) > 1:
        calls, tokens = (
            sum(juror.calls for juror in jurors),
            sum(juror.tokens_in for juror in jurors),
        )
        likely = usd(_total([juror.usd_likely for juror in jurors]))
        most = usd(_total([juror.usd_most for juror in jurors]))
        rows.append(["all", None, calls, tokens, None, None, likely, most])
    return table("Estimate", ESTIMATED, rows)


def _window(use: WindowUse) -> Cell:
    """Return a juror's context window in tokens; a simulated juror reads no text."""
    return use.tokens or (None if use.source == WindowSource.SIMULATED else "not known")


def too_long_notice(expected: RunEstimate, order: RunOrder) -> str:
    """Return what does not fit a juror's context window, and what comes of it; empty if all fits."""
    left_out = order.leave_out_too_long
    end = "They are left out, each a failure of that juror." if left_out else TOO_LONG
    lines = [f"{too_long_words(too_long)}." for too_long in too_long_for(expected)]
    return notice("\n".join([*lines, end])) if lines else ""


def usd(amount: float | None) -> str:
    """Return an amount; unknown is not free."""
    return "unknown" if amount is None else f"${amount:,.4f}"


def _total(amounts: Sequence[float | None]) -> float | None:
    """Return a sum, None if a part of it is unknown."""
    known_amounts = [amount for amount in amounts if amount is not None]
    return sum(known_amounts) if len(known_amounts) == len(amounts) else None


def _juror(juror: Juror, environment: Mapping[str, str]) -> list[Cell]:
    name = juror.api_key_env
    key = f"{name}, {'set' if environment.get(name) else 'NOT SET'}" if name else "no key"
    if juror.signs_in:
        key = "this server's account"
    price = "price list of the day"
    if juror.usd_per_million_in is not None:
        price = f"{juror.usd_per_million_in:g} / {juror.usd_per_million_out:g}"
    if juror.simulated:
        return [juror.name, juror.model, juror.family, NOWHERE, "no key", None, "0 / 0"]
    end = juror.end()
    return [
        juror.name,
        juror.model,
        juror.family,
        juror.place,
        key,
        str(end) if end else None,
        price,
    ]


def _probed(row: ProbeRow) -> list[Cell]:
    answered = (row.juror, str(row.status), row.returned_model, row.schema, row.temperature)
    ends = str(row.ends) if row.ends else None
    return [
        *(cell or None for cell in answered),
        _injections(row.injection),
        _fit(row),
        ends,
        usd(row.cost),
    ]


def _fit(row: ProbeRow) -> str | None:
    """Return whether a juror orders good and dangerous answers, and how many of them."""
    if (test := row.pairs) is None:
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
    counts = f"{test.held} held, {test.moved} moved"
    return counts + (f", {unknown} not known" if unknown else "")
