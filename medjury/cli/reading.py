"""`medjury rate assign` and `medjury serve`: who rates what, and the page they rate on."""

import os
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from annotate.assign import DesignRequest, designed
from annotate.plan import Design, Plan, pace_in_words, plan_of, spread_in_words
from data.errors import BadFile, BadInput
from data.pace import Pace
from data.person import OPERATOR
from data.queries import has_coordinator
from data.schema import Role
from data.store import Invitation, add_people, invite
from data.store import assign as store_assignments
from medjury.cli.options import Db, Json, Seed, finite, study_of, url_of
from medjury.cli.output import counted, say, show
from medjury.cli.places import write_json
from medjury.services.pace import pace_of

FIRST = "coordinator"
MOST_DIGITS = 4  # of a number of clinicians


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
            help="Share of responses each clinician sees twice, unmarked.", callback=finite
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
    found = designed(engine, DesignRequest(tuple(names(raters)), per_response, repeats, seed))
    pace = pace_of(engine, minutes)
    _show(found, pace, json_to)
    if not plan:
        invitations = invite(engine, list(found.load))
        dropped = [(one.rater, one.response, one.pass_) for one in found.dropped]
        new = store_assignments(engine, found.slots, seed, dropped, per_response)
        say(f"{new} assignments stored" if new else "nothing changed", json_to)
        if dropped:
            say(f"{len(dropped)} unopened assignments taken back", json_to)
        print_codes(invitations, json_to)
    write_json(found.to_json(pace), json_to)


def serve(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the page.")] = 8501,
    host: Annotated[
        str, typer.Option(help="Address to listen on; change it only behind a proxy with TLS.")
    ] = "127.0.0.1",
    secrets: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="File whose \\[auth] part lets hospital accounts sign in."
        ),
    ] = Path(".streamlit/secrets.toml"),
    egress: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the hosts, keys and prices jurors may use; by default MEDJURY_EGRESS.",
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create the study and a coordinator if there are none.")
    ] = False,
    db: Db = None,
) -> None:
    """Serve the pages of clinicians and researchers."""
    from annotate.server import serve as serve_page
    from jury.egress import VARIABLE, egress_of

    if egress is not None:
        os.environ[VARIABLE] = str(egress.resolve())  # runs are processes of their own
    egress_of()
    if create:
        print_codes(first_coordinator(study_of(context, db, create=True)))
    serve_page(url_of(context, db), port, host, secrets)


def first_coordinator(engine: Engine) -> list[Invitation]:
    """Add a coordinator where a study has none, so that somebody can steer it from the page."""
    if has_coordinator(engine):
        return []
    return add_people(OPERATOR, engine, [FIRST], Role.COORDINATOR)


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


def print_codes(invitations: list[Invitation], json_to: Path | None = None) -> None:
    """Print sign-in codes; this is the only time they can be seen."""
    if invitations:
        rows = [[one.handle, one.code] for one in invitations]
        show(
            "Sign-in codes: hand them over now, only their hashes are kept",
            ["name", "code"],
            rows,
            json_to,
        )


def _show(found: Design, pace: Pace, json_to: Path | None) -> None:
    """Print each clinician's work, and what to know of the design before anyone is invited."""
    plan = plan_of(found, pace)
    rows = [
        [rater, str(load), str(found.repeats_of(rater)), f"{plan.minutes[rater]:,.0f}"]
        for rater, load in found.load.items()
    ]
    title = f"{counted(found.per_response, 'clinician')} a response"
    show(title, ["clinician", "responses", "hidden repeats", "minutes"], rows, json_to)
    for line in told(plan):
        say(line, json_to)


def told(plan: Plan) -> list[str]:
    """Return a plan in sentences, without what the table of clinicians has."""
    shared = _range(plan.overlap_min, plan.overlap_max)
    linked = "; all are linked by what they share" if plan.connected else ""
    said = [
        f"{counted(plan.responses, 'response')} to {counted(plan.instances, 'instance')}.",
        f"Minutes: {plan.minutes_total:,.0f} in all, {plan.minutes_per_response:.1f} a showing "
        f"{pace_in_words(plan.pace)}.",
    ]
    if plan.raters > 1:
        said += [
            f"Any two clinicians share {shared}{linked}.",
            spread_in_words(plan),
        ]
    return [*said, _expected(plan), *(f"{note[0].upper()}{note[1:]}." for note in plan.notes)]


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
