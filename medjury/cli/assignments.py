"""`medjury rate assign`, `adjudicate`, `flags`, `training`: who rates what, and how clinicians stand."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.card import Settling
from data.errors import BadFile, BadInput
from data.importers.ratings import ExpertFile
from data.importers.table import TableFile
from data.pace import Pace
from data.person import OPERATOR
from data.study.adjudication import Disagreement
from data.study.assignments import Flagged, pace_of
from data.study.assignments import assign as store_assignments
from data.study.assignments import flags as all_flags
from data.study.people import invite
from data.study.room import Trainee, trainees
from data.study.standing import settings
from data.study.training import ExpertsAdded, import_experts, let_through
from data.training import MOST_ROUNDS, RoundOutcome
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, Seed, either, finite, study_of, table_format
from medjury.cli.output import counted, say, show
from medjury.cli.people import print_codes
from medjury.services.adjudication import Settlement, found_differences, planned_settlement, settle
from medjury.services.adjudication import answer as answer_it
from medjury.services.design.assign import DesignRequest, designed
from medjury.services.design.plan import Design, Plan, pace_in_words, plan_of, spread_in_words

MOST_DIGITS = 4  # of a number of clinicians
READINGS: tuple[Settling, Settling] = ("third", "consensus")
WORDS = {"third": "third reading", "consensus": "consensus"}


def assign(
    context: typer.Context,
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
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes-per-response",
            min=0.1,
            help="Minutes per reading; by default estimated.",
            callback=finite,
        ),
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Assign responses to clinicians; new clinicians get a sign-in code.

    Run it again with other raters or more responses: what has been begun stays, the rest moves.
    """
    engine = study_of(context, db)
    design = designed(engine, DesignRequest(tuple(names(raters)), per_response, repeats, seed))
    pace = pace_of(engine, minutes)
    _show_design(design, pace, json_to)
    if not plan:
        invitations = invite(engine, list(design.load))
        dropped = [(slot.rater, slot.response, slot.pass_) for slot in design.dropped]
        new = store_assignments(engine, design.slots, seed, dropped, per_response)
        say(f"{new} assignments stored" if new else "nothing changed", json_to)
        if dropped:
            say(f"{len(dropped)} unopened assignments taken back", json_to)
        print_codes(invitations, json_to)
    write_json(design.to_json(pace), json_to)


def names(raters: str) -> list[str]:
    """Return the clinicians' names: from a file, one a line, or made from a number."""
    if raters.isdecimal():
        if len(raters) > MOST_DIGITS:
            raise BadInput(
                f"--raters: at most {10**MOST_DIGITS - 1} clinicians are made of a number"
            )
        return [f"clinician-{number}" for number in range(1, int(raters) + 1)]
    try:
        lines = Path(raters).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(
            f"--raters {raters}: neither a number nor a file of names ({error})"
        ) from error
    return [line.strip() for line in lines if line.strip()]


def _show_design(design: Design, pace: Pace, json_to: Path | None) -> None:
    """Print each clinician's work, and what to know of the design before anyone is invited."""
    plan = plan_of(design, pace)
    rows = [
        [rater, str(load), str(design.repeats_of(rater)), f"{plan.minutes[rater]:,.0f}"]
        for rater, load in design.load.items()
    ]
    title = f"{counted(design.per_response, 'clinician')} a response"
    show(title, ["clinician", "responses", "hidden repeats", "minutes"], rows, json_to)
    for line in plan_sentences(plan):
        say(line, json_to)


def plan_sentences(plan: Plan) -> list[str]:
    """Return a plan in sentences, without what the table of clinicians has."""
    shared = _range(plan.overlap_min, plan.overlap_max)
    linked = "; all are linked by what they share" if plan.connected else ""
    sentences = [
        f"{counted(plan.responses, 'response')} to {counted(plan.instances, 'instance')}.",
        f"Minutes: {plan.minutes_total:,.0f} in all, {plan.minutes_per_response:.1f} a showing "
        f"{pace_in_words(plan.pace)}.",
    ]
    if plan.raters > 1:
        sentences += [
            f"Any two clinicians share {shared}{linked}.",
            spread_in_words(plan),
        ]
    return [*sentences, _expected(plan), *(f"{note[0].upper()}{note[1:]}." for note in plan.notes)]


def _expected(plan: Plan) -> str:
    """Return in words what interval the agreement of two columns would have as assumed."""
    if plan.icc_width is None:
        return "Too few responses for an interval."
    least = plan.icc_width_by_instances
    dependent = "" if least is None else f" ({least:.2f} if the instances alone counted)"
    return (
        f"Expected 95 % interval of the agreement: {plan.icc_low:z.2f} to "
        f"{plan.icc_high:z.2f}, width {plan.icc_width:.2f}{dependent}."
    )


def _range(least: int, most: int) -> str:
    return counted(most, "response") if least == most else f"{least} to {most} responses"


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
        typer.Option(metavar="FILE|N", help="As in `rate assign`; by default all who can rate."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show who would; store nothing.")] = False,
    seed: Seed = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """List responses on which clinicians differ, and assign a reading that settles them."""
    if reading is None and (raters is not None or plan):
        raise typer.BadParameter("goes with --assign", param_hint="--plan, --raters")
    settling = None if reading is None else either(reading, READINGS, "--assign")
    engine = study_of(context, db)
    differences = found_differences(OPERATOR, engine)
    show_differences(differences, json_to)
    study_settings = settings(engine)
    body: dict[str, object] = {
        "adjudicate_from": study_settings.adjudicate_from,
        "adjudicate_by": study_settings.adjudicate_by,
        "differences": [_json(difference) for difference in differences],
        "plan": None,
        "assigned": 0,
    }
    if settling is not None:
        clinicians = None if raters is None else names(raters)
        settlement = planned_settlement(OPERATOR, engine, settling, clinicians, seed)
        _show_plan(settlement, differences, json_to)
        body["plan"] = _plan_json(settlement, differences)
        if not plan:
            print_codes(invite(engine, clinicians or []), json_to)
            body["assigned"] = settle(OPERATOR, engine, settlement)
            say(f"{counted(len(settlement.places), 'reading')} given out", json_to)
    write_json(body, json_to)


def show_differences(differences: Sequence[Disagreement], json_to: Path | None = None) -> None:
    """Print where clinicians differ, and how far each difference is settled."""
    if not differences:
        say("no two clinicians differ by that much", json_to)
        return
    rows = [
        [
            *(
                difference.response_id,
                difference.benchmark,
                f"{difference.points:g}",
                difference.criterion,
            ),
            *(str(difference.clinicians), state(difference)),
        ]
        for difference in differences
    ]
    heads = ["response", "benchmark", "points", "on", "clinicians", "settled"]
    show("Where clinicians differ", heads, rows, json_to, words=("benchmark", "on", "settled"))


def state(difference: Disagreement) -> str:
    """Return in words how far a difference is settled."""
    if difference.reading:
        return f"{'by' if difference.is_done else 'given out:'} {WORDS[difference.reading]}"
    if difference.waits_for:
        return f"waits for {counted(difference.waits_for, 'reading')}"
    return "no"


def _show_plan(
    settlement: Settlement, differences: Sequence[Disagreement], json_to: Path | None = None
) -> None:
    rows = [[name, str(load)] for name, load in settlement.load.items()]
    if rows:
        show(
            f"Each {WORDS[settlement.reading]} by one clinician",
            ["clinician", "readings"],
            rows,
            json_to,
        )
    for responses, why in (
        (settlement.waiting, "not given out, as somebody has still to rate it"),
        (settlement.nobody, "not given out, as none of these clinicians may settle it"),
        (settlement.naming, "not for a consensus, as a comment on it may name a model"),
        (settlement.of_points, "rated by points of the case, which a third reading settles"),
    ):
        if responses:
            say(f"{counted(len(responses), 'response')} {why}: {', '.join(responses)}", json_to)


def _json(difference: Disagreement) -> dict[str, object]:
    return {name: value for name, value in asdict(difference).items() if name != "response"}


def _plan_json(settlement: Settlement, differences: Sequence[Disagreement]) -> dict[str, object]:
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
    raised = all_flags(OPERATOR, engine)
    _show_flags(raised, json_to)
    write_json({"flags": [_flag_json(flag) for flag in raised]}, json_to)


def _show_flags(flags: Sequence[Flagged], json_to: Path | None = None) -> None:
    if not flags:
        say("nothing is flagged", json_to)
        return
    rows = [
        [
            *(str(flag.id), flag.response_id, flag.rater, flag.flag, flag.text or "-"),
            flag.answers[-1] if flag.answers else "-",
            "yes" if flag.seen else "no",
        ]
        for flag in flags
    ]
    heads = ["number", "response", "clinician", "flag", "words", "answer", "seen"]
    show("Flags", heads, rows, json_to, words=heads[1:])


def _flag_json(flag: Flagged) -> dict[str, object]:
    return asdict(flag) | {"at": flag.at.isoformat(), "answers": list(flag.answers)}


def training(
    context: typer.Context,
    path: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Expert scores: CSV or JSON Lines.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="[csv|jsonl]", help="By default from the name."),
    ] = None,
    let: Annotated[
        str | None, typer.Option(metavar="NAME", help="Let a clinician begin who has not passed.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; stays in the record.")] = "",
    who: Annotated[
        str, typer.Option(metavar="NAME", help="Who lets them; stays in the record.")
    ] = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Import expert scores for the training round, or show how clinicians stand in it."""
    engine = study_of(context, db)
    if path is not None and let is not None:
        raise BadInput("give either a file of expert scores or --let, not both")
    if path is not None:
        table = TableFile(path, table_format(form))
        _say_added(table, import_experts(engine, ExpertFile(table)), json_to)
    elif let is not None:
        let_through(engine, let, reason, who)
        say(f"{let} may begin; the reason is in the record", json_to)
    else:
        _show_training(engine, json_to)


def _say_added(table: TableFile, added: ExpertsAdded, json_to: Path | None) -> None:
    say(
        f"{table.path.name}: {added.added} expert scores imported, {added.changed} changed, "
        f"{added.unchanged} were there already ({table.encoding})",
        json_to,
    )
    if not (added.added or added.changed):
        say("nothing changed", json_to)
    say(
        f"{added.responses} responses are for training: every clinician rates them first, "
        "`medjury rate assign` and `medjury analyse calibrate` leave them out",
        json_to,
    )
    write_json(asdict(added), json_to)


def _show_training(engine: Engine, json_to: Path | None) -> None:
    """Print how every clinician stands, a column a round."""
    clinicians = trainees(engine)
    if not clinicians:
        say("no training: no expert scores, or no clinician who can sign in", json_to)
    else:
        rows = [
            [
                trainee.name,
                *(_round_cell(trainee, number) for number in range(MOST_ROUNDS)),
                _stands(trainee),
            ]
            for trainee in clinicians
        ]
        rounds = [f"round {number + 1}" for number in range(MOST_ROUNDS)]
        title = f"Mean distance from the experts over {clinicians[0].total} responses, in points"
        show(title, ["clinician", *rounds, "may begin"], rows, json_to)
    write_json({"clinicians": [_trainee_json(trainee) for trainee in clinicians]}, json_to)


def _round_cell(trainee: Trainee, number: int) -> str:
    """Return one round's cell: the distance and whether it was passed, or how far it is."""
    if number < len(trainee.rounds):
        outcome = trainee.rounds[number]
        return f"{outcome.distance:.2f} {'passed' if outcome.passed else 'not passed'}"
    if number == len(trainee.rounds) and trainee.answered:
        return f"{trainee.answered} of {trainee.total} answered"
    return ""


def _stands(trainee: Trainee) -> str:
    """Return whether a clinician may begin, and why."""
    if trainee.ended:
        return f"yes, {trainee.ended}"
    return f'no: --let "{trainee.name}" --reason "..."' if trainee.halted else "not yet"


def _trainee_json(trainee: Trainee) -> dict[str, object]:
    rounds = [_outcome(outcome) for outcome in trainee.rounds]
    facts = {
        "name": trainee.name,
        "answered": trainee.answered,
        "total": trainee.total,
        "ended": trainee.ended,
    }
    return facts | {"halted": trainee.halted, "rounds": rounds}


def _outcome(outcome: RoundOutcome) -> dict[str, object]:
    return outcome.model_dump() | {"passed": outcome.passed}
