"""Frozen reports: what a calibration found, kept as it was, under the audit chain.

Like an entry in the ledger a report is a record of looking at the study, no content of it: a
locked study takes reports too. None is ever changed or deleted.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Engine

from data.database import transaction
from data.schema import Report, now
from data.store.audit import canonical_values, log

FROZEN = "report frozen"


def freeze(engine: Engine, fingerprint: str, body: Mapping[str, Any]) -> int:
    """Keep a report, with an event that holds its digest; return its number.

    Parameters
    ----------
    fingerprint
        Of the ratings it was computed from: `queries.ledger.fingerprint`.
    body
        Plain values that JSON takes, without NaN.

    Raises
    ------
    NoStudy
        If the database cannot be written to.
    """
    plain = json.loads(json.dumps(body, allow_nan=False))
    with transaction(engine) as session:
        report = Report(at=now(), fingerprint=fingerprint, body=plain)
        session.add(report)
        session.flush()
        digest = report_sha256(report.at, fingerprint, plain)
        log(session, "researcher", FROZEN, {"report": report.id, "sha256": digest})
        return report.id or 0


def report_sha256(at: datetime, fingerprint: str, body: Mapping[str, Any]) -> str:
    """Return the SHA-256 over all that a report holds."""
    content = json.dumps(body, sort_keys=True)
    return hashlib.sha256(canonical_values([at, fingerprint, content])).hexdigest()
