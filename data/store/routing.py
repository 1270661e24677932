"""Routing rules that are kept: each an event of the record, which nobody changes."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine
from sqlmodel import select

from data.database import transaction
from data.errors import BadInput, Conflict
from data.record import log
from data.schema import Event

RULE_KEPT = "routing rule kept"
LONGEST_NAME = 60


def keep_rule(engine: Engine, actor: str, name: str, rule: Mapping[str, Any]) -> str:
    """Keep a routing rule under a name; return its SHA-256.

    A locked study takes it too: it is no content of the study, but what was found of it.

    Parameters
    ----------
    engine, actor : of which study, and who keeps it
    name : up to 60 printable signs; a name is given once
    rule : plain values that JSON takes, without NaN

    Raises
    ------
    BadInput
        If the name is none.
    Conflict
        If a rule of this name is kept already.
    """
    if name != name.strip() or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        raise BadInput(f"name {name[:80]!r}: give a rule 1 to {LONGEST_NAME} printable signs")
    plain = json.loads(json.dumps(rule, allow_nan=False))
    sha256 = rule_sha256(plain)
    with transaction(engine) as session:
        every = session.exec(select(Event.detail).where(Event.action == RULE_KEPT)).all()
        if name in {one["name"] for one in every}:
            raise Conflict(f"a routing rule {name} is kept already; a rule is never changed")
        log(session, actor, RULE_KEPT, {"name": name, "sha256": sha256, "rule": plain})
    return sha256


def rule_sha256(rule: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a rule as it is kept."""
    text = json.dumps(rule, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
