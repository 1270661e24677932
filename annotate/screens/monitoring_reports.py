"""Reports that were frozen: all of them, what is different between two, and freezing one more."""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import tables
from annotate.screens import frame
from annotate.screens.monitoring_controls import ALL, WHOLE
from calibration.tables.numbers import DASH, fixed, interval
from data import queries
from data.person import Person, only
from data.queries.reports import FrozenReport
from data.schema import Role

Row = Mapping[str, Any]
Cells = tuple[str, str, str, bool]
MOST_DIGITS = 15
LONGEST_NAME = 60
SHORT = 12
MADE = "report-frozen"
DIGITS = 3
# Each with the word of its control where it was not chosen.
OPTIONS = {
    "benchmark": ALL,
    "criterion": WHOLE,
    "references": "all",
    "min_shared": "all",
    "min_jurors": "all",
}
NONE_YET = "No report is frozen yet: freeze one on as many responses as there are, to compare with."
SIMULATED = "simulated raters: "


def show(engine: Engine, person: Person, scope: Sequence[str]) -> None:
    """Show the frozen reports, compare two, and let a coordinator freeze one of this scope."""
    found = queries.frozen_reports(person, engine)
    st.html('<h2 class="mj-part">Frozen reports</h2>')
    if found:
        _listed(found)
    else:
        st.html(f'<p class="mj-said">{html.escape(NONE_YET)}</p>')
    if len(found) > 1:
        _compared(found)
    if person.role == Role.COORDINATOR:
        _form(engine, person, scope)


def say_frozen() -> None:
    """Say that a report was just frozen: at once, for what follows is computed anew."""
    if made := st.session_state.pop(MADE, None):
        told = f"{made} is frozen. It is kept as it is, and the record vouches for it."
        st.html(f'<p class="mj-good" role="status">{html.escape(told)}</p>')


def _listed(found: Sequence[FrozenReport]) -> None:
    rows = [_figures(one) for one in found]
    columns = [
        tables.words("Report", "report"),
        tables.words("Frozen (UTC)", "at"),
        tables.words("On", "benchmark"),
        tables.number("ICC(C,2)", "icc", DIGITS),
        tables.between("95 %", "boot_low", "boot_high"),
        tables.count("Responses", "n_responses"),
        tables.count("Instances", "n_instances"),
        tables.words("Jury", "jury"),
        tables.words("Raters", "made_up"),
    ]
    st.html(tables.table(rows, columns, "What each report found"))


def _compared(found: Sequence[FrozenReport]) -> None:
    """Show two reports side by side; which ones stands in the URL."""
    known = {_title(one): one for one in found}
    names = [*known]
    earlier, later, _ = st.columns((1, 1, 2))
    a = earlier.selectbox(
        "Compare", names, index=len(names) - 2, key="earlier", bind="query-params"
    )
    b = later.selectbox("with", names, index=len(names) - 1, key="later", bind="query-params")
    rows = [
        {"what": what, "a": one, "b": other, "differs": "changed" if differs else ""}
        for what, one, other, differs in pairs(known[a], known[b])
    ]
    columns = [
        tables.words("Of", "what"),
        tables.words(a, "a"),
        tables.words(b, "b"),
        tables.words("Difference", "differs"),
    ]
    changed = sum(bool(row["differs"]) for row in rows)
    st.html(tables.table(rows, columns, f"{a} and {b}: {changed} of {len(rows)} lines differ"))


def pairs(a: FrozenReport, b: FrozenReport) -> Iterator[Cells]:
    """Yield what is compared, what each report has of it in words, and whether it differs."""
    one, other = _figures(a), _figures(b)
    yield _iccs(one, other)
    for name in ("n_responses", "n_instances"):
        yield _both(name.removeprefix("n_").capitalize(), one[name], other[name])
    yield _both("Ratings, fingerprint", a.fingerprint, b.fingerprint, SHORT)
    was, now = a.body, b.body
    for name in _names(was, now, "rubrics"):
        told = [each.get("rubrics", {}).get(name) for each in (was, now)]
        yield f"Rubric of {name}", _rubric(told[0]), _rubric(told[1]), told[0] != told[1]
    yield _both("Jurors", one["jury"], other["jury"])
    for name in _names(was, now, "jurors"):
        marks = [each.get("jurors", {}).get(name, {}).get("sha256", "") for each in (was, now)]
        yield _both(f"Settings of {name}", marks[0] or DASH, marks[1] or DASH, SHORT)
    yield _both("Method", was.get("method"), now.get("method"))
    options = (was.get("options", {}), now.get("options", {}))
    for name, unset in OPTIONS.items():
        told = [each.get(name) or unset for each in options]
        yield _both(name.replace("_", " ").capitalize(), told[0], told[1])
    for name in ("reps", "seed", "version"):
        yield _both(name.capitalize(), was.get(name), now.get(name))


def _names(was: Row, now: Row, part: str) -> Sequence[str]:
    return sorted({*was.get(part, {}), *now.get(part, {})})


def _both(what: str, one: object, other: object, shown: int | None = None) -> Cells:
    """Return two values in words, the first so many signs of them, compared as they are stored."""
    return what, f"{one}"[:shown], f"{other}"[:shown], one != other


def _iccs(one: Row, other: Row) -> Cells:
    """Return two ICCs with their intervals, with as many digits as tell them apart."""
    ends = ("icc", "boot_low", "boot_high")
    differs = any(one[name] != other[name] for name in ends)
    digits = DIGITS
    while differs and digits < MOST_DIGITS and _icc(one, digits) == _icc(other, digits):
        digits += 1
    return "ICC(C,2) with the clinicians", _icc(one, digits), _icc(other, digits), differs


def _form(engine: Engine, person: Person, scope: Sequence[str]) -> None:
    """Let a coordinator freeze what holds now."""
    with st.form("freeze", clear_on_submit=True, border=False):
        told, press = st.columns((3, 1), vertical_alignment="bottom")
        name = told.text_input(
            "Freeze a report now, of the jury and the scope chosen above; call it (optional)",
            max_chars=LONGEST_NAME,
        )
        pressed = press.form_submit_button("Freeze a report", type="primary", width="stretch")
    if pressed and _freeze(person, engine, name, scope):
        st.session_state[MADE] = _title(queries.frozen_reports(person, engine)[-1])
        st.rerun()


@only(Role.COORDINATOR)
def _freeze(person: Person, engine: Engine, name: str, scope: Sequence[str]) -> bool:
    """Run the calibration that is frozen; tell whether it was."""
    called = "".join(sign for sign in name if sign.isprintable()).strip()[:LONGEST_NAME]
    asked = ("calibrate", *scope, "--freeze", f"--name={called}")
    return frame.figures(person, engine, *asked) is not None


def _figures(one: FrozenReport) -> dict[str, Any]:
    """Return a report's jury with its ICC: on all benchmarks together, or on its only one."""
    rows = [row for row in one.body.get("rows", ()) if row["scorer"] == "jury"]
    combined = [row for row in rows if row["benchmark"] == "combined"]
    jury: Row = next(iter(combined or rows), {})
    made_up = SIMULATED in jury.get("note", "")
    return {
        "report": _title(one),
        "at": f"{one.at:%Y-%m-%d %H:%M}",
        "benchmark": jury.get("benchmark"),
        **{name: jury.get(name) for name in ("icc", "boot_low", "boot_high")},
        **{name: jury.get(name, 0) for name in ("n_responses", "n_instances")},
        "jury": ", ".join(one.body.get("jury", ())) or DASH,
        "made_up": "simulated" if made_up else "real",
    }


def _title(one: FrozenReport) -> str:
    name = one.body.get("name", "")
    return f"{one.id} {name}" if name else f"{one.id}"


def _icc(row: Row, digits: int) -> str:
    ends = interval(row["boot_low"], row["boot_high"], digits - 1)
    return f"{fixed(row['icc'], digits)}{f' ({ends})' if ends else ''}"


def _rubric(told: Row | None) -> str:
    if told is None:
        return DASH
    return f"{told['name']} {str(told['version'])[:SHORT]}, {told['sha256'][:SHORT]}"
