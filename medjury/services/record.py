"""What the record of a study owes every report."""

from sqlalchemy import Engine

from data.queries.record import acts


def steered(engine: Engine) -> list[str]:
    """Return, for every report, when and why the blind was lifted or the study reopened."""
    return [
        f"{act.action} on {act.at:%Y-%m-%d %H:%M} UTC by {act.actor}: {act.detail['reason']}"
        for act in acts(engine, "unblinded", "reopened")
    ]
