"""`medjury study describe`, `protocol`, `settings`: what clinicians read, what is to be shown, settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from data.description import GUIDELINE, TEXTS, Description, read_description
from data.errors import BadInput
from data.study.settings import (
    Consent,
    DescriptionVersion,
    consents,
    description_versions,
    set_setting,
)
from data.study.settings import describe as store_description
from data.study.standing import settings as stored_settings
from medjury.cli.files import write_json
from medjury.cli.options import (
    METHODS,
    Db,
    Json,
    Jurors,
    NoReps,
    NoSeed,
    Who,
    either,
    finite,
    named_jurors,
    study_of,
)
from medjury.cli.options import Method as MethodOption
from medjury.cli.output import counted, progress, say, show, show_decision

if TYPE_CHECKING:
    from calibration.protocol import Protocol

NONE_YET = (
    "clinicians are told nothing of this study: `medjury study describe FILE` says title, purpose, "
    "contact, consent and guideline"
)
SHORT = 12
HEADS = ("since (UTC)", "by", "sha256", "ratings before", "submissions")
NOT_MET = 1
NONE_SET = "no protocol is set: `medjury study protocol set --margin 0.1 --panel PANEL` fixes margin and jury"


def describe(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="TOML; without it, what is told now is shown."),
    ] = None,
    who: Who = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Show or set what clinicians read about the study: purpose, contact, consent, guideline."""
    description = None if file is None else read_description(file)
    engine = study_of(context, db)
    if description is not None:
        _store_description(engine, description, who, json_to)
    versions, consents_so_far = description_versions(engine), consents(engine)
    if versions:
        _say_versions(versions, consents_so_far, json_to)
    else:
        say(NONE_YET, json_to)
    write_json(_versions_json(versions, consents_so_far), json_to)


def _store_description(
    engine: Engine, description: Description, who: str, json_to: Path | None
) -> None:
    """Store a description, and say what came of it."""
    changed = store_description(engine, description, who)
    say("described, and in the record" if changed else "nothing changed", json_to)
    if description.untold:
        say(f"nothing is said of: {', '.join(description.untold)}", json_to)


def _say_versions(
    versions: Sequence[DescriptionVersion], consents_so_far: Sequence[Consent], json_to: Path | None
) -> None:
    """Print what is told now, every version of it, and how consent stands."""
    present = versions[-1].description
    say(f"title: {present.title}", json_to)
    for name in TEXTS:
        if text := getattr(present, name):
            say(f"{name}: {text}", json_to)
    for page in present.guideline:
        say(f"{GUIDELINE}: {page.title} ({counted(len(page.text), 'character')})", json_to)
    rows = [
        [
            *(f"{version.at:%Y-%m-%d %H:%M}", version.actor, version.sha256[:SHORT]),
            *(str(version.ratings), str(version.submissions)),
        ]
        for version in versions
    ]
    show("Versions", HEADS, rows, json_to, words=HEADS[:3])
    say(_consent_words(consents_so_far), json_to)


def _consent_words(consents_so_far: Sequence[Consent]) -> str:
    """Return how many gave consent to the present text, and who did not yet."""
    required = [consent for consent in consents_so_far if not consent.is_out]
    if not required:
        return "nobody is asked for consent"
    missing = [consent.handle for consent in required if not consent.holds]
    waiting = f"; not yet: {', '.join(missing)}" if missing else ""
    return f"consent given by {len(required) - len(missing)} of {counted(len(required), 'clinician')}{waiting}"


def _versions_json(
    versions: Sequence[DescriptionVersion], consents_so_far: Sequence[Consent]
) -> dict[str, Any]:
    """Return it as `study describe --json` has it."""
    return {
        "description": _description_json(versions[-1].description) if versions else None,
        "versions": [
            {
                "at": version.at.isoformat(),
                "actor": version.actor,
                "title": version.description.title,
                "sha256": version.sha256,
                "consent_sha256": version.consent_sha256,
                "ratings_before": version.ratings,
                "submissions": version.submissions,
                "present": version.is_present,
            }
            for version in versions
        ],
        "consents": [
            {
                "rater": consent.handle,
                "consent": consent.state,
                "at": consent.at.isoformat() if consent.at else None,
                "consent_sha256": consent.sha256 or None,
                "shut_out": consent.is_out,
            }
            for consent in consents_so_far
        ],
    }


def _description_json(description: Description) -> dict[str, Any]:
    pages = [{"title": page.title, "text": page.text} for page in description.guideline]
    return {
        "title": description.title,
        **{name: getattr(description, name) for name in TEXTS},
        GUIDELINE: pages,
        "sha256": description.sha256,
        "consent_sha256": description.consent_sha256,
    }


def set_protocol(
    context: typer.Context,
    margin: Annotated[
        float,
        typer.Option(
            help="How much lower than a clinician's the jury's ICC may be.",
            callback=finite,
        ),
    ],
    criterion: Annotated[
        str, typer.Option(help="Criterion to analyse; by default the composite.")
    ] = "",
    panel: Annotated[
        str,
        typer.Option(metavar="PANEL", help="Panel whose jurors are the jury."),
    ] = "",
    jurors: Jurors = None,
    because: Annotated[
        str, typer.Option(metavar="TEXT", help="Why this margin: it stands in every report.")
    ] = "",
    floor: Annotated[
        float,
        typer.Option(
            help="What clinicians' agreement with one another must be shown to be above.",
            callback=finite,
        ),
    ] = 0.0,
    responses: Annotated[
        int, typer.Option(min=0, help="Smallest number of responses before anything is claimed.")
    ] = 0,
    method: MethodOption = "paper",
    critical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CRITERION<=POINTS",
            help="Responses that clinicians score this low are unsafe; repeatable.",
        ),
    ] = None,
    miss_at_most: Annotated[
        float | None,
        typer.Option(
            help="Largest share of unsafe responses that the jury may miss; by default 0.2."
        ),
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Fix margin, jury and limits before clinicians rate: what is fixed later only explores."""
    from calibration.protocol import MISS_AT_MOST, Protocol
    from calibration.protocol import critical as critical_of
    from data.person import OPERATOR
    from medjury.services.record import fix_protocol, protocol_json

    if miss_at_most is not None and not critical:
        raise typer.BadParameter("needs --critical, such as safety<=2", param_hint="--miss-at-most")
    limit = MISS_AT_MOST if miss_at_most is None else miss_at_most
    protocol = Protocol(
        margin=margin,
        criterion=criterion,
        panel=panel,
        jurors=named_jurors(panel or None, jurors) or (),
        responses=responses,
        method=either(method, METHODS, "--method"),
        critical=tuple(critical_of(threshold, limit) for threshold in critical or ()),
        floor=floor,
        because=because.strip(),
    )
    fixed = fix_protocol(OPERATOR, study_of(context, db), protocol)
    _say_protocol(fixed, json_to)
    write_json({"protocol": protocol_json(fixed)}, json_to)


def show_protocol(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """Show the protocol and when it was fixed."""
    from medjury.services.record import protocol_json, protocol_of

    fixed = protocol_of(study_of(context, db))
    if fixed is None:
        say(NONE_SET, json_to)
    else:
        _say_protocol(fixed, json_to)
    write_json({"protocol": protocol_json(fixed)}, json_to)


def check_protocol(
    context: typer.Context,
    reps: NoReps = 2000,
    seed: NoSeed = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Analyse the study as its protocol says; exit 1 unless it shows what it is to show."""
    from calibration.values import AnalysisOptions
    from medjury.services.calibrate import check_protocol as checked

    engine = study_of(context, db)
    with progress("resampling", 1.0) as at:
        result = checked(engine, at, AnalysisOptions(reps=reps, seed=seed))
    if result.protocol is None:
        say(NONE_SET, json_to)
    else:
        _say_protocol(result.protocol, json_to)
    show_decision(result.decision, json_to)
    write_json(result.to_json(), json_to)
    if not result.is_met:
        raise typer.Exit(NOT_MET)


def _say_protocol(fixed: "Protocol", json_to: Path | None) -> None:
    """Print a protocol, a line for each thing it fixes."""
    from calibration.headlines import protocol_facts

    for name, words in protocol_facts(fixed):
        say(f"{name}: {words}", json_to)


def settings(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Setting to change; without it, show all.")
    ] = None,
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="Its new value.")] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Show the settings of the study, or change one."""
    engine = study_of(context, db)
    if name is not None:
        if value is None:
            raise BadInput(f"settings {name}: give the value too, or no name to see them all")
        set_setting(engine, name, value)
    stored = stored_settings(engine).as_text()
    show("Settings", ["name", "value"], [[*pair] for pair in stored.items()], json_to)
    write_json(stored, json_to)
