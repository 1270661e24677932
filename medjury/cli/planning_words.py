"""A plan on the screen, as sentences for a protocol, and as JSON."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from medjury.cli.output import counted, say, show
from medjury.cli.planning_rows import EITHER, Piloted, PlanRow, PowerRow, Wanted, two

INSTANCES = (
    "Responses are counted one an instance: several to one instance are no independent evidence, "
    "and the numbers of responses for a width then count instances."
)
PAPER = (
    "The MedHELM paper planned with a single-rater ICC of 0.75 and obtained 0.31, ICC(C,2) 0.47: "
    "be prepared for the row with the lower ICC."
)
BASES = {
    "assumed": "as assumed",
    "paper obtained": "as the MedHELM paper obtained",
    "pilot": "as in the pilot",
    "low end": "at the low end of the pilot's 95 % interval",
}
SIMULATED = "simulated raters: "
CORRECTED = (
    "The numbers of responses are corrected for all the instances there are: the interval then "
    "speaks of these alone, and calibrate prints the wider one, which speaks of others too."
)


def print_plan(
    rows: Sequence[PlanRow],
    shown: Sequence[PowerRow],
    told: Sequence[str],
    wanted: Wanted,
    json_to: Path | None,
) -> None:
    """Print the two tables of a plan, then its sentences."""
    aim = "single-rater ICC" if rows[0].icc_of == 1 else "ICC(C,2)"
    simulated = ", simulated" if any(SIMULATED in row.note for row in rows) else ""
    title = f"responses for a 95 % interval of the {aim}, {wanted.width:g} wide{simulated}"
    share = f"n, {wanted.assurance * 100:g} %"
    columns = ("planned for", "ICC(C,2)", "single", "n, 50 %", share, "n", "width")
    show(title, columns, [_cells(row) for row in rows], json_to)
    say("", json_to)
    if shown:
        against = ("jury against", "n", "found in 80 %", "difference", "power", "n for it")
        title = f"difference of two ICC(C,2) that n responses find{simulated}"
        show(title, against, [_shown(row) for row in shown], json_to)
        say("", json_to)
    for line in told:
        say(line, json_to)


def _cells(row: PlanRow) -> list[str]:
    whom = row.basis if row.scorer == EITHER else f"{row.scorer}, {row.basis}"
    return [
        whom,
        *(_number(value) for value in (two(row.icc_single), row.icc_single)),
        *(_count(value) for value in (row.n_bonett, row.n_zou, row.n)),
        _number(row.width_expected),
    ]


def _shown(row: PowerRow) -> list[str]:
    power = "-" if math.isnan(row.power) else f"{row.power * 100:.0f} %"
    numbers = [_number(row.mde), _number(row.difference), power, _count(row.n_for_difference)]
    return [_against(row), str(row.n), *numbers]


def _against(row: PowerRow) -> str:
    name = "held-out clinician" if row.compared == "like_for_like" else row.compared
    return name.removeprefix("metric:").removeprefix("juror:")


def _number(value: float) -> str:
    return f"{value:z.2f}" if math.isfinite(value) else "-"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def sentences(
    rows: Sequence[PlanRow], shown: Sequence[PowerRow], wanted: Wanted, pilot: Piloted | None
) -> list[str]:
    """Return what a protocol can say, with what it rests on."""
    return [
        *(_of_plan(row, wanted) for row in rows if row.n is not None),
        *(f"Nothing to plan for {row.scorer}: {_told(row.note)}." for row in rows if row.n is None),
        *(_of_power(row) for row in shown),
        *(_of_pilot(pilot) if pilot else _of_assumptions(wanted)),
        *_simulated([*(row.note for row in rows), *(row.note for row in shown)]),
        *([CORRECTED] if wanted.population else []),
        INSTANCES,
        PAPER,
    ]


def _of_plan(row: PlanRow, wanted: Wanted) -> str:
    aim, value = ("single-rater ICC", row.icc_single)
    if row.icc_of == 2:
        aim, value = "ICC(C,2)", two(row.icc_single)
    share = f"{wanted.assurance * 100:g} %"
    return (
        f"With {_load(row, wanted)}, the 95 % interval of the {aim} ({row.scorer}), if that is "
        f"{value:z.2f} {BASES[row.basis]}, is expected to be {_number(row.width_expected)} wide, "
        f"and in {share} of such studies no wider than {_number(row.width_assured)}. A width of "
        f"{row.width:g} takes {row.n_bonett} responses on average (Bonett), {row.n_zou} with "
        f"{share} assurance (Zou), {row.n_exact} with the exact F interval."
    )


def _load(row: PlanRow, wanted: Wanted) -> str:
    clinicians = counted(row.per_response, "clinician")
    said = f"{row.n} responses rated by {clinicians} each ({row.readings} readings"
    if row.per_clinician:
        said += f", up to {row.per_clinician} for each of {wanted.clinicians} clinicians"
    if math.isfinite(row.minutes_per_clinician):
        hours = row.minutes_per_clinician / 60
        said += f", about {hours:.1f} hours each at {wanted.minutes:.1f} minutes a response"
    return said + ")"


def _of_power(row: PowerRow) -> str:
    said = f"Jury against {_against(row)}: {row.n} responses "
    if math.isfinite(row.mde):
        said += f"find a difference of {row.mde:.2f} with 80 % power at two-sided 5 %"
    else:
        said += _unfound(row)
    if math.isfinite(row.power):
        said += f", one of {row.difference:g} with {row.power * 100:.0f} %"
        more = f"for 80 % it takes {row.n_for_difference}"
        said += f"; {more}" if row.n_for_difference else ""
    note = _told(row.note)
    return f"{said} ({row.source}{'; ' if note else ''}{note})."


def _unfound(row: PowerRow) -> str:
    known = math.isfinite(row.sd)
    return "find not even a difference of 1 with 80 % power" if known else "find what is unknown"


def _told(note: str) -> str:
    """Return a note without the simulated raters, who are named once for all."""
    return "; ".join(part for part in note.split("; ") if not part.startswith(SIMULATED))


def _simulated(notes: Sequence[str]) -> list[str]:
    parts = [part for note in notes for part in note.split("; ") if part.startswith(SIMULATED)]
    names = {name for part in parts for name in part.removeprefix(SIMULATED).split(", ")}
    return (
        [f"The pilot's figures are of simulated raters: {', '.join(sorted(names))}."]
        if names
        else []
    )


def _of_assumptions(wanted: Wanted) -> Iterator[str]:
    yield (
        "All of this holds if the ICC is what was assumed, and power for scorers with a shared "
        f"error of {wanted.shared:g}: the correlation of what the clinicians' mean leaves "
        "unexplained of the two."
    )


def _of_pilot(pilot: Piloted) -> Iterator[str]:
    """Yield what the pilot found, and what of it carries over only to a study like it."""
    yield f"Pilot: {pilot.benchmark}, jury {', '.join(pilot.jurors) or 'none'}."
    for one in (pilot.clinicians, pilot.jury):
        if not math.isfinite(one.icc):
            continue
        name = (
            "single-rater ICC of clinicians"
            if one.scorer == "clinicians"
            else "ICC(C,2) of the jury"
        )
        note = _told(one.note)
        yield (
            f"The pilot's {name}: {_number(one.icc)}, 95 % interval {_number(one.low)} to "
            f"{_number(one.high)} over {counted(one.n_instances, 'instance')}"
            f"{'; ' if note else ''}{note}."
        )
    yield (
        "Power and a jury's ICC hold for as many clinicians a response, and responses an "
        "instance, as in the pilot."
    )
    if pilot.minutes is not None:
        yield f"Median time of {pilot.timed} finished readings: {pilot.minutes:.1f} minutes."
    yield from pilot.told


def to_json(
    rows: Sequence[PlanRow],
    shown: Sequence[PowerRow],
    told: Sequence[str],
    wanted: Wanted,
    pilot: Piloted | None,
    given: tuple[float | None, float | None],
) -> dict[str, Any]:
    """Return the plan as `plan --json` has it; what is undefined becomes None."""
    assumed: dict[str, Any] = {"icc": given[0], "single_icc": given[1], "pilot": None}
    if pilot:
        assumed |= {"pilot": dataclasses.asdict(pilot)}
    whole = {
        "assumed": assumed | dataclasses.asdict(wanted),
        "rows": [dataclasses.asdict(row) for row in rows],
        "power": [dataclasses.asdict(row) for row in shown],
        "sentences": list(told),
    }
    plain: dict[str, Any] = _plain(whole)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
