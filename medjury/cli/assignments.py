"""`medjury rate assign`, `adjudicate`, `flags`, `training`: who rates what, and how clinicians stand."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from itertools import count, islice
from pathlib import Path
from typing import Annotated, Any

import typer

from data.card import Settling
from data.errors import BadFile, BadInput
from data.importers.ratings import expert_rows
from data.importers.table import TableFile
from data.pace import Pace
from data.person import OPERATOR
from data.study.adjudication import Disagreement
from data.study.assignments import assign as store_assignments
from data.study.assignments import flags as all_flags
from data.study.assignments import pace_of
from data.study.people import invite
from data.study.room import Trainee, trainees
from data.study.standing import settings
from data.study.training import import_experts, let_through
from data.study.withdrawals import ended_words, ended_work
from data.training import MOST_ROUNDS
from medjury.cli.options import Reason, Seed, Study, Who, finite
from medjury.cli.output import counted, emit, say, show
from medjury.cli.people import print_codes
from medjury.services.adjudication import Settlement, found_differences, planned_settlement, settle
from medjury.services.adjudication import answer as answer_it
from medjury.services.design.assign import DesignRequest, designed
from medjury.services.design.plan import Design, plan_lines, plan_of

MOST_DIGITS = 4  # of a number of clinicians
WORDS = {"third": "third reading", "consensus": "consensus"}


def assign(
    study: Study,
    raters: Annotated[
        str,
        typer.Option(
            metavar="FILE|N", help="File with one name per line, or a number of clinicians."
        ),
    ],
    per_response: Annotated[
        int, typer.Option(help="Number of clinicians who rate each response.")
    ] = 2,
    repeats: Annotated[
        float,
        typer.Option(
            help="Share of responses each clinician sees a second time without being told.",
            callback=finite,
        ),
    ] = 0.1,
    seed: Seed = 0,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the design without storing it.")
    ] = False,
    minutes_per_response: Annotated[
        float | None,
        typer.Option(min=0.1, help="Minutes per reading; by default estimated.", callback=finite),
    ] = None,
) -> None:
    """Assign responses to clinicians; new clinicians get a sign-in code.

    Run it again with other raters or more responses: what has been begun stays, the rest moves.

    Example:
    medjury rate assign --raters raters.txt --per-response 2
    """
    engine = study.open()
    chosen = names(raters, ended_work(engine))
    design = designed(engine, DesignRequest(tuple(chosen), per_response, repeats, seed))
    pace = pace_of(engine, minutes_per_response)
    _show_design(design, pace)
    if not plan:
        invitations = invite(engine, list(design.load))
        dropped = [(slot.rater, slot.response, slot.pass_) for slot in design.dropped]
        new = store_assignments(engine, design.slots, seed, dropped, per_response)
        say(f"{new} assignments stored" if new else "nothing changed")
        if dropped:
            say(f"{len(dropped)} unopened assignments taken back")
        print_codes(invitations)
    left = ended_work(engine)
    for line, still_open in zip(ended_words(left), left.values(), strict=True):
        say(line + ("; `rate people end NAME --give-back` frees them" if still_open else ""))
    study.write(design.to_json(pace))


def names(raters: str, ended: Collection[str] = ()) -> list[str]:
    """Return the clinicians' names: from a file, one a line, or made from a number.

    Names of those whose access has ended are not made.
    """
    if raters.isdecimal():
        if len(raters) > MOST_DIGITS:
            raise BadInput(
                f"--raters: at most {10**MOST_DIGITS - 1} clinicians are made of a number"
            )
        made = (f"clinician-{number}" for number in count(1))
        return list(islice((name for name in made if name not in ended), int(raters)))
    try:
        lines = Path(raters).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(
            f"--raters {raters}: neither a number nor a file of names ({error})"
        ) from error
    return [line.strip() for line in lines if line.strip()]


def _show_design(design: Design, pace: Pace) -> None:
    """Print each clinician's work, and what to know of the design before anyone is invited."""
    plan = plan_of(design, pace)
    rows = [
        (rater, load, design.repeats_of(rater), f"{plan.minutes[rater]:,.0f}")
        for rater, load in design.load.items()
    ]
    title = f"{counted(design.per_response, 'clinician')} a response"
    show(title, ["clinician", "responses", "hidden repeats", "minutes"], rows)
    emit(*plan_lines(plan))


def adjudicate(
    study: Study,
    reading: Annotated[
        Settling | None,
        typer.Option(
            "--assign",
            help="Give each to a clinician: shown nothing of the others, or what they said.",
        ),
    ] = None,
    raters: Annotated[
        str | None,
        typer.Option(metavar="FILE|N", help="As in `rate assign`; by default all who can rate."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show who would; store nothing.")] = False,
    seed: Seed = 0,
) -> None:
    """List responses on which clinicians differ, and assign a reading that settles them.

    Example:
    medjury rate adjudicate
    """
    if reading is None and (raters is not None or plan):
        raise typer.BadParameter("goes with --assign", param_hint="--plan, --raters")
    engine = study.open()
    differences = found_differences(OPERATOR, engine)
    _show_differences(differences)
    study_settings = settings(engine)
    body: dict[str, Any] = {
        "adjudicate_from": study_settings.adjudicate_from,
        "adjudicate_by": study_settings.adjudicate_by,
        "differences": [
            {name: value for name, value in asdict(difference).items() if name != "response"}
            for difference in differences
        ],
        "plan": None,
        "assigned": 0,
    }
    if reading is not None:
        clinicians = None if raters is None else names(raters)
        settlement = planned_settlement(OPERATOR, engine, reading, clinicians, seed)
        _show_settlement(settlement)
        body["plan"] = _settlement_json(settlement, differences)
        if not plan:
            print_codes(invite(engine, clinicians or []))
            body["assigned"] = settle(OPERATOR, engine, settlement)
            say(f"{counted(len(settlement.places), 'reading')} given out")
    study.write(body)


def _show_differences(differences: Sequence[Disagreement]) -> None:
    """Print where clinicians differ, and how far each difference is settled."""
    if not differences:
        say("no two clinicians differ by that much")
        return
    heads = ["response", "benchmark", "points", "on", "clinicians", "settled"]
    rows = [
        (
            one.response_id,
            one.benchmark,
            f"{one.points:g}",
            one.criterion,
            one.clinicians,
            _state(one),
        )
        for one in differences
    ]
    show("Where clinicians differ", heads, rows, words=("benchmark", "on", "settled"))


def _state(difference: Disagreement) -> str:
    """Return in words how far a difference is settled."""
    if difference.reading:
        return f"{'by' if difference.is_done else 'given out:'} {WORDS[difference.reading]}"
    if difference.waits_for:
        return f"waits for {counted(difference.waits_for, 'reading')}"
    return "no"


def _show_settlement(settlement: Settlement) -> None:
    if settlement.load:
        title = f"Each {WORDS[settlement.reading]} by one clinician"
        show(title, ["clinician", "readings"], [*settlement.load.items()])
    for responses, why in (
        (settlement.waiting, "not given out, as somebody has still to rate it"),
        (settlement.nobody, "not given out, as none of these clinicians may settle it"),
        (settlement.naming, "not for a consensus, as a comment on it may name a model"),
        (settlement.of_points, "rated by points of the case, which a third reading settles"),
    ):
        if responses:
            say(f"{counted(len(responses), 'response')} {why}: {', '.join(responses)}")


def _settlement_json(
    settlement: Settlement, differences: Sequence[Disagreement]
) -> dict[str, object]:
    response_ids = {difference.response: difference.response_id for difference in differences}
    return {
        "reading": settlement.reading,
        "places": {response_ids[key]: name for key, name in settlement.places.items()},
        "load": dict(settlement.load),
        "waiting": list(settlement.waiting),
        "nobody": list(settlement.nobody),
        "naming": list(settlement.naming),
        "of_points": list(settlement.of_points),
    }


def flags(
    study: Study,
    number: Annotated[
        int | None, typer.Option("--answer", metavar="NUMBER", help="Answer this flag.")
    ] = None,
    text: Annotated[str, typer.Option(help="The answer; its clinician reads it.")] = "",
) -> None:
    """List the flags that clinicians raised, or answer one.

    Example:
    medjury rate flags
    """
    if (number is None) != (not text):
        raise typer.BadParameter("give both or neither", param_hint="--answer, --text")
    engine = study.open()
    if number is not None:
        answer_it(OPERATOR, engine, number, text)
        say("answered; the clinician sees it when they next rate")
    raised = all_flags(OPERATOR, engine)
    heads = ["number", "response", "clinician", "flag", "words", "answer", "seen"]
    rows = [
        [
            *(flag.id, flag.response_id, flag.rater, flag.flag, flag.text or "-"),
            flag.answers[-1] if flag.answers else "-",
            "yes" if flag.seen else "no",
        ]
        for flag in raised
    ]
    if rows:
        show("Flags", heads, rows, words=heads[1:])
    else:
        say("nothing is flagged")
    values = [asdict(flag) for flag in raised]
    study.write({"flags": [one | {"at": one["at"].isoformat()} for one in values]})


def training(
    study: Study,
    path: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Expert scores: CSV or JSON Lines.")
    ] = None,
    let: Annotated[
        str | None, typer.Option(metavar="NAME", help="Let a clinician begin who has not passed.")
    ] = None,
    reason: Reason = "",
    who: Who = "coordinator",
) -> None:
    """Import expert scores for the training round, or show how clinicians stand in it.

    Example:
    medjury rate training experts.csv
    """
    engine = study.open()
    if path is not None and let is not None:
        raise BadInput("give either a file of expert scores or --let, not both")
    if let is not None:
        let_through(engine, let, reason, who)
        say(f"{let} may begin; the reason is in the record")
    elif path is None:
        _show_training(study, trainees(engine))
    else:
        table = TableFile(path)
        added = import_experts(engine, expert_rows(table))
        say(
            f"{path.name}: {added.added} expert scores imported, {added.changed} changed, "
            f"{added.unchanged} were there already ({table.encoding})"
        )
        if not (added.added or added.changed):
            say("nothing changed")
        say(
            f"{added.responses} responses are for training: every clinician rates them first, "
            "`medjury rate assign` and `medjury analyse calibrate` leave them out"
        )
        study.write(asdict(added))


def _show_training(study: Study, clinicians: Sequence[Trainee]) -> None:
    """Print how every clinician stands, a column a round."""
    if not clinicians:
        say("no training: no expert scores, or no clinician who can sign in")
    else:
        rounds = [f"round {number + 1}" for number in range(MOST_ROUNDS)]
        title = f"Mean distance from the experts over {clinicians[0].total} responses, in points"
        show(title, ["clinician", *rounds, "may begin"], [_trainee_row(t) for t in clinicians])
    study.write({"clinicians": [_trainee_json(trainee) for trainee in clinicians]})


def _trainee_row(trainee: Trainee) -> list[str]:
    """Return how far each round is or whether it was passed, whether they may begin, and why."""
    cells = [
        f"{outcome.distance:.2f} {'passed' if outcome.passed else 'not passed'}"
        for outcome in trainee.rounds
    ]
    if trainee.answered:
        cells.append(f"{trainee.answered} of {trainee.total} answered")
    cells = (cells + [""] * MOST_ROUNDS)[:MOST_ROUNDS]
    halted = f'no: --let "{trainee.name}" --reason "..."' if trainee.halted else "not yet"
    return [trainee.name, *cells, f"yes, {trainee.ended}" if trainee.ended else halted]


def _trainee_json(trainee: Trainee) -> dict[str, object]:
    named = ("name", "answered", "total", "ended", "halted")
    rounds = [outcome.model_dump() | {"passed": outcome.passed} for outcome in trainee.rounds]
    return {name: getattr(trainee, name) for name in named} | {"rounds": rounds}
