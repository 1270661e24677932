"""`medjury study`: what clinicians are told of it, the versions of that, and who gave consent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.description import GUIDELINE, TEXTS, Description, read_description
from data.queries.descriptions import Consent, DescriptionVersion, consents, description_versions
from data.store import describe as store_description
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import counted, say, show
from medjury.cli.places import write_json
from medjury.cli.record import Who

NONE_YET = (
    "clinicians are told nothing of this study: `medjury study describe FILE` says title, purpose, "
    "contact, consent and guideline"
)
SHORT = 12
HEADS = ("since (UTC)", "by", "sha256", "ratings before", "submissions")


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
    wanted = None if file is None else read_description(file)
    engine = study_of(context, db)
    if wanted is not None:
        _store(engine, wanted, who, json_to)
    versions, given = description_versions(engine), consents(engine)
    if versions:
        _say(versions, given, json_to)
    else:
        say(NONE_YET, json_to)
    write_json(_body(versions, given), json_to)


def _store(engine: Engine, wanted: Description, who: str, json_to: Path | None) -> None:
    """Store a description, and say what came of it."""
    changed = store_description(engine, wanted, who)
    say("described, and in the record" if changed else "nothing changed", json_to)
    if wanted.untold:
        say(f"nothing is said of: {', '.join(wanted.untold)}", json_to)


def _say(
    versions: Sequence[DescriptionVersion], given: Sequence[Consent], json_to: Path | None
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
            *(f"{one.at:%Y-%m-%d %H:%M}", one.actor, one.sha256[:SHORT]),
            *(str(one.ratings), str(one.submissions)),
        ]
        for one in versions
    ]
    show("Versions", HEADS, rows, json_to, words=HEADS[:3])
    say(_consent_words(given), json_to)


def _consent_words(given: Sequence[Consent]) -> str:
    """Return how many gave consent to the present text, and who did not yet."""
    asked = [one for one in given if not one.is_out]
    if not asked:
        return "nobody is asked for consent"
    missing = [one.handle for one in asked if not one.holds]
    waiting = f"; not yet: {', '.join(missing)}" if missing else ""
    return f"consent given by {len(asked) - len(missing)} of {counted(len(asked), 'clinician')}{waiting}"


def _body(versions: Sequence[DescriptionVersion], given: Sequence[Consent]) -> dict[str, Any]:
    """Return it as `study describe --json` has it."""
    return {
        "description": _told(versions[-1].description) if versions else None,
        "versions": [
            {
                "at": one.at.isoformat(),
                "actor": one.actor,
                "title": one.description.title,
                "sha256": one.sha256,
                "consent_sha256": one.consent_sha256,
                "ratings_before": one.ratings,
                "submissions": one.submissions,
                "present": one.is_present,
            }
            for one in versions
        ],
        "consents": [
            {
                "rater": one.handle,
                "consent": one.state,
                "at": one.at.isoformat() if one.at else None,
                "consent_sha256": one.sha256 or None,
                "shut_out": one.is_out,
            }
            for one in given
        ],
    }


def _told(description: Description) -> dict[str, Any]:
    pages = [{"title": one.title, "text": one.text} for one in description.guideline]
    return {
        "title": description.title,
        **{name: getattr(description, name) for name in TEXTS},
        GUIDELINE: pages,
        "sha256": description.sha256,
        "consent_sha256": description.consent_sha256,
    }
