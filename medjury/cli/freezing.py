"""`medjury calibrate --freeze`: keep a calibration as it is, to monitor against later."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from data.queries import benchmarks
from data.queries.attempts import juror_profiles
from data.queries.ledger import fingerprint
from data.store.reports import freeze

if TYPE_CHECKING:
    from medjury.services.calibrate import Calibration

FIGURES = ("method", "k", "reps", "seed", "rows", "references")
OPTIONS = ("benchmark", "criterion", "min_shared", "min_jurors", "references")
Freeze = Annotated[
    bool, typer.Option("--freeze", help="Keep this calibration in the study, for `monitor`.")
]
Name = Annotated[str, typer.Option("--name", help="With --freeze: what to call it.")]


def named(frozen: bool, name: str) -> str | None:
    """Return the name of the report that is wanted, None where none is; refuse a name for none."""
    if name and not frozen:
        raise typer.BadParameter("belongs to --freeze", param_hint="--name")
    return name if frozen else None


def freeze_calibration(
    engine: Engine, found: "Calibration", called: str | None, body: Mapping[str, Any]
) -> Iterator[str]:
    """Freeze a calibration as a report where that is asked for; yield a line that says so.

    Parameters
    ----------
    found
        The calibration; the report holds the fingerprint of every rating that counted.
    called
        What the user calls the report, None where none is wanted.
    body
        As `calibrate --json` has it; its details are left out.
    """
    if called is None:
        return
    options = found.question.options
    kept = {key: body[key] for key in FIGURES if key in body}
    kept |= _told(engine, called, found.jury) | {
        "options": {name: getattr(options, name) for name in OPTIONS}
    }
    number = freeze(engine, fingerprint(found.ratings), kept)
    named = f" ({called})" if called else ""
    yield f"frozen as report {number}{named}: `medjury monitor` shows it and what comes after it"


def _told(engine: Engine, name: str, jury: Sequence[str]) -> dict[str, Any]:
    """Return what a report holds beside the figures: on what, by whom and with what."""
    profiles = juror_profiles(engine, jury)
    return {
        "name": name,
        "version": version("medjury"),
        "jury": sorted(jury),
        "jurors": {
            one: {"profile": dict(profile), "sha256": _sha256(profile)}
            for one, profile in sorted(profiles.items())
        },
        "rubrics": {
            one.name: {
                "name": one.rubric.name,
                "version": one.rubric.version,
                "sha256": one.rubric.sha256,
            }
            for one in benchmarks(engine)
        },
    }


def _sha256(profile: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(profile), sort_keys=True).encode()).hexdigest()
