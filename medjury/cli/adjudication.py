"""`medjury rate adjudicate` and `medjury rate flags`: where clinicians differ, and what they flag."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from annotate.adjudicate import Settlement, found_differences, planned_settlement, settle
from annotate.adjudicate import answer as answer_it
from data.card import SETTLING, Settling
from data.person import OPERATOR
from data.queries import Difference, Flagged
from data.queries import flags as all_flags
from data.queries.study import settings
from data.store import invite
from medjury.cli.options import Db, Json, Seed, study_of
from medjury.cli.output import counted, say, show
from medjury.cli.places import write_json
from medjury.cli.reading import names, print_codes

WORDS = {"third": "third reading", "consensus": "consensus"}


def adjudicate(
    context: typer.Context,
    reading: Annotated[
        str | None,
        typer.Option(
            "--assign",
            metavar="[third|consensus]",
            help="Give each to a clinician: shown nothing of the others, or what they said.",
        ),
    ] = None,
    raters: Annotated[
        str | None,
        typer.Option(metavar="FILE|N", help="As in `assign`; by default all who can rate."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show who would; store nothing.")] = False,
    seed: Seed = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """List responses on which clinicians differ, and assign a reading that settles them."""
    if reading is None and (raters is not None or plan):
        raise typer.BadParameter("goes with --assign", param_hint="--plan, --raters")
    if reading is not None and reading not in SETTLING:
        raise typer.BadParameter(
            f"{reading!r} is neither third nor consensus", param_hint="--assign"
        )
    engine = study_of(context, db)
    found = found_differences(engine)
    show_differences(found, json_to)
    chosen = settings(engine)
    body: dict[str, object] = {
        "adjudicate_from": chosen.adjudicate_from,
        "adjudicate_by": chosen.adjudicate_by,
        "differences": [_json(one) for one in found],
        "plan": None,
        "assigned": 0,
    }
    if reading is not None:
        how: Settling = "third" if reading == "third" else "consensus"
        who = None if raters is None else names(raters)
        made = planned_settlement(engine, how, who, seed)
        _show_plan(made, found, json_to)
        body["plan"] = _plan_json(made, found)
        if not plan:
            print_codes(invite(engine, who or []), json_to)
            body["assigned"] = settle(OPERATOR, engine, made)
            say(f"{counted(len(made.places), 'reading')} given out", json_to)
    write_json(body, json_to)


def show_differences(found: Sequence[Difference], json_to: Path | None = None) -> None:
    """Print where clinicians differ, and how far each difference is settled."""
    if not found:
        say("no two clinicians differ by that much", json_to)
        return
    rows = [
        [
            *(one.response_id, one.benchmark, f"{one.points:g}", one.criterion),
            *(str(one.clinicians), state(one)),
        ]
        for one in found
    ]
    heads = ["response", "benchmark", "points", "on", "clinicians", "settled"]
    show("Where clinicians differ", heads, rows, json_to, words=("benchmark", "on", "settled"))


def state(one: Difference) -> str:
    """Return in words how far a difference is settled."""
    if one.reading:
        return f"{'by' if one.is_done else 'given out:'} {WORDS[one.reading]}"
    if one.waits_for:
        return f"waits for {counted(one.waits_for, 'reading')}"
    return "no"


def _show_plan(made: Settlement, found: Sequence[Difference], json_to: Path | None = None) -> None:
    rows = [[name, str(load)] for name, load in made.load.items()]
    if rows:
        show(
            f"Each {WORDS[made.reading]} by one clinician", ["clinician", "readings"], rows, json_to
        )
    for responses, why in (
        (made.waiting, "not given out, as somebody has still to rate it"),
        (made.nobody, "not given out, as none of these clinicians may settle it"),
        (made.naming, "not for a consensus, as a comment on it may name a model"),
    ):
        if responses:
            say(f"{counted(len(responses), 'response')} {why}: {', '.join(responses)}", json_to)


def _json(one: Difference) -> dict[str, object]:
    return {name: value for name, value in asdict(one).items() if name != "response"}


def _plan_json(made: Settlement, found: Sequence[Difference]) -> dict[str, object]:
    known = {one.response: one.response_id for one in found}
    return {
        "reading": made.reading,
        "places": {known[key]: name for key, name in made.places.items()},
        "load": dict(made.load),
        "waiting": list(made.waiting),
        "nobody": list(made.nobody),
        "naming": list(made.naming),
    }


def flags(
    context: typer.Context,
    number: Annotated[
        int | None, typer.Option("--answer", metavar="NUMBER", help="Answer this flag.")
    ] = None,
    text: Annotated[str, typer.Option(help="The answer; its clinician reads it.")] = "",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """List the flags that clinicians raised, or answer one."""
    if (number is None) != (not text):
        raise typer.BadParameter("give both or neither", param_hint="--answer, --text")
    engine = study_of(context, db)
    if number is not None:
        answer_it(OPERATOR, engine, number, text)
        say("answered; the clinician sees it when they next rate", json_to)
    found = all_flags(OPERATOR, engine)
    _show_flags(found, json_to)
    write_json({"flags": [_flag_json(one) for one in found]}, json_to)


def _show_flags(found: Sequence[Flagged], json_to: Path | None = None) -> None:
    if not found:
        say("nothing is flagged", json_to)
        return
    rows = [
        [
            *(str(one.id), one.response_id, one.rater, one.flag, one.text or "-"),
            one.answers[-1] if one.answers else "-",
            "yes" if one.seen else "no",
        ]
        for one in found
    ]
    heads = ["number", "response", "clinician", "flag", "words", "answer", "seen"]
    show("Flags", heads, rows, json_to, words=heads[1:])


def _flag_json(one: Flagged) -> dict[str, object]:
    return asdict(one) | {"at": one.at.isoformat(), "answers": list(one.answers)}
