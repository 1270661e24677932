"""The monitoring screen: whether the jury still agrees with the clinicians, and if not, why."""

import html
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import streamlit as st
from calibration.report.numbers import fixed, interval
from sqlalchemy import Engine

from annotate import charts, tables
from annotate.commands import Figures
from annotate.screens import frame, monitoring_controls, monitoring_reports, monitoring_verdict
from annotate.screens.monitoring_verdict import sentence
from data import queries
from data.person import Person

Row = Mapping[str, Any]
STYLE = (files("annotate") / "screens" / "monitoring.css").read_text("utf-8")
ABOUT = (
    "How far the jury agrees with the clinicians, period by period, and what speaks for a change."
)
NOBODY = "No juror has rated a response of this study yet."
FIRST = "Run a jury, or bring in scores made elsewhere; clinicians' ratings are needed beside them."
ROLES = {"baseline": "baseline", "watched": "", "left out": "left out"}
NOTICE_DAYS = 90
IN_COLUMNS = ("scored ", "simulated raters: ", "too few: ")
OF_ICC = (
    "Points are ICC(C,2) of the jury with the clinicians, lines the bootstrap interval over "
    "instances. Baseline periods make the target."
)
OF_CUSUM = (
    "Falls below the target added up over the watched periods, in standard errors; an alarm "
    "stands until watching begins anew."
)


def show(engine: Engine, person: Person) -> None:
    """Show agreement over time, what was chosen of it, and the reports that were frozen."""
    frame.begin(person, "Monitoring", ABOUT)
    st.html(f"<style>{STYLE}</style>")
    if not queries.jurors_heard(person, engine):
        frame.empty(NOBODY, FIRST)
        return
    asked, scope = monitoring_controls.watched(engine, person)
    monitoring_reports.say_frozen()
    figures = st.container()  # they take a while: a report just frozen is listed before them
    monitoring_reports.show(engine, person, scope)
    with figures:
        found = frame.figures(person, engine, "monitor", *asked)
        if found is not None:
            monitoring_verdict.show(found)
            _beside(found)
            _tables(found)


def _beside(found: Figures) -> None:
    """Show the charts, and beside them what the fall may come from and when models end."""
    with st.container(key="beside"):
        drawn, told = st.columns((8, 5), gap="large")
        with drawn:
            _charts(found)
        with told:
            st.html(_why(found) + _target(found["target"]))
            st.html(_ends(found["jurors"]))


def _charts(found: Figures) -> None:
    roles = {row["period"]: row["role"] for row in found["cusum"]}
    rows = charts.drawn("chart_monitoring:period_rows", found["periods"], roles)
    target = found["target"]["icc"]
    of_icc = charts.drawn("chart_monitoring:chart_periods", rows, found["threshold"], target)
    charts.show(of_icc, "agreement-over-time", OF_ICC, _alt(found))
    summed = charts.drawn("chart_monitoring:cusum_rows", found["cusum"])
    if summed:
        chart = charts.drawn("chart_monitoring:chart_cusum", summed)
        words = f"alarm in {found['alarm']}" if found["alarm"] else "no alarm"
        charts.show(chart, "cusum", OF_CUSUM, f"CUSUM of {len(summed)} periods, limit 4: {words}")


def _alt(found: Figures) -> str:
    """Return the chart of periods in words."""
    told = [f"{row['period']} {fixed(row['icc'], 2)}" for row in found["periods"]]
    return f"ICC by {found['every']}, least wanted {found['threshold']:.2f}: {', '.join(told)}"


def _why(found: Figures) -> str:
    """Return what the data say of the reason, in the command's words."""
    lines = "".join(_said(sentence(one)) for one in found["drift"]["said"])
    return _part("What speaks for what") + lines


def _target(target: Row) -> str:
    """Return what the periods are compared with."""
    if target["note"]:
        return _part("Target") + _said(sentence(target["note"]))
    ends = interval(target["low"], target["high"], 2)
    told = f"ICC {fixed(target['icc'], 2)}{f' (95 % {ends})' if ends else ''}, from {target['source']}."
    more = (
        " A target from few periods has an error of its own and raises more false alarms; "
        "a frozen report on many responses is better."
    )
    return _part("Target") + _said(told + (more if target["source"] == "baseline" else ""))


def _ends(rows: Sequence[Row]) -> str:
    """Return when the jurors' models end, with the days left."""
    columns = [
        tables.words("Juror", "juror"),
        tables.words("Model", "model"),
        tables.words("Ends", "ends"),
        tables.count("Days left", "days_left"),
    ]
    near = [
        f"{row['juror']}: validate its successor while both can be asked"
        if row["days_left"] > 0
        else f"{row['juror']}: its model has ended, no new response can be scored by it"
        for row in rows
        if row["days_left"] is not None and row["days_left"] <= NOTICE_DAYS
    ]
    unknown = "A dash: no end is announced, or the model is not known."
    return tables.table(rows, columns, "When the jurors' models end", [*near, unknown])


def _tables(found: Figures) -> None:
    """Show the figures of every period, of the anchor and of the case mix."""
    watched = {row["period"]: row for row in found["cusum"]}
    rows = [row | _watched(row, watched.get(row["period"], {})) for row in found["periods"]]
    columns = [
        tables.words("Period", "period"),
        tables.Column(
            "Scored", lambda row: f"{row['n_responses']} of {row['n_responses'] + row['n_missing']}"
        ),
        tables.count("Instances", "n_instances"),
        tables.count("Clinicians", "n_clinicians"),
        tables.number("ICC(C,2)", "icc"),
        tables.between("95 %", "boot_low", "boot_high"),
        tables.number("CUSUM", "sum"),
        tables.words("State", "state"),
    ]
    notes = [f"{row['period']}: {note}" for row in rows if (note := _told(row["note"]))]
    title = f"{found['benchmark']}: agreement by {found['every']}, method {found['method']}"
    st.html(_part("Figures") + tables.table(rows, columns, title, notes))
    _anchor(found["anchor"])
    _mix(found["case_mix"])


def _watched(row: Row, one: Row) -> dict[str, Any]:
    """Return what the CUSUM has of a period."""
    if row["too_few"]:
        return {"sum": None, "state": "too few"}
    state = "ALARM" if one.get("alarm") else ROLES.get(one.get("role", ""), "")
    return {"sum": one.get("cusum") if one.get("role") == "watched" else None, "state": state}


def _anchor(rows: Sequence[Row]) -> None:
    """Show how responses scored again were scored: a change there is one of the model."""
    if not rows:
        st.html(
            _said(
                "No anchor: nothing was scored again a week or more later. A run in the Jury lab "
                'with more "Verdicts of each juror" makes one, and tells a changed model from other '
                "cases."
            )
        )
        return
    columns = [
        tables.Column("Scorer", lambda row: row["scorer"].removeprefix("juror:"), is_words=True),
        tables.count("Scored again", "n_responses"),
        tables.number("Shift, points", "shift"),
        tables.between("95 %", "low", "high"),
        tables.probability("p (Holm)", "p_holm"),
        tables.number("ICC(A,1)", "icc_one"),
        tables.number("ICC first", "icc_first"),
        tables.number("ICC latest", "icc_latest"),
        tables.between("95 % of change", "change_low", "change_high"),
    ]
    notes = [f"{row['scorer']}: {note}" for row in rows if (note := _told(row["note"]))]
    st.html(tables.table(rows, columns, "Anchor: the same responses scored again", notes))


def _mix(mix: Row) -> None:
    """Show whether other responses were rated than before."""
    if mix.get("mean_now") is None:
        st.html(_said(f"Case mix: {mix['note']}."))
        return
    told = [
        (
            "Clinicians' mean, points",
            mix["mean_baseline"],
            mix["mean_now"],
            ("mean_low", "mean_high"),
        ),
        ("Clinicians' SD, points", mix["sd_baseline"], mix["sd_now"], ()),
        ("ICC(C,2)", mix["icc_baseline"], mix["icc_now"], ("change_low", "change_high")),
        ("ICC with the baseline's shares", None, mix["icc_reweighted"], ()),
        ("ICC of the baseline with the spread of now", None, mix["icc_spread"], ()),
    ]
    rows = [
        {"what": what, "then": then, "now": now}
        | dict(zip(("low", "high"), (mix[end] for end in ends), strict=False))
        for what, then, now, ends in told
    ]
    columns = [
        tables.words("Figure", "what"),
        tables.number(mix["baseline"], "then"),
        tables.number(mix["now"], "now"),
        tables.between("95 % of change", "low", "high"),
    ]
    shares = [
        f"{one['benchmark']}: {one['baseline']:.0%} of responses then, {one['now']:.0%} now"
        for one in mix["shares"]
        if len(mix["shares"]) > 1
    ]
    notes = [*shares, *([mix["note"]] if mix["note"] else [])]
    st.html(tables.table(rows, columns, "Case mix: were other responses rated?", notes))


def _told(note: str) -> str:
    """Return a note without what stands in columns."""
    return "; ".join(one for one in note.split("; ") if not one.startswith(IN_COLUMNS))


def _part(title: str) -> str:
    return f'<h2 class="mj-part">{html.escape(title)}</h2>'


def _said(text: str) -> str:
    return f'<p class="mj-said">{html.escape(text)}</p>'
