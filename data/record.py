"""The record of a study: what each table has under its digest, and the record's head as a file.

`SEALS` drives what the store digests, what `verify` compares, and the test that changes every cell
of a study. A column that stands nowhere here fails that test.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from data.errors import BadFile, BadInput

Key = int | str
RUN, TRAINING = "jury_run", "training:"
SALT_BYTES = 16
_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))  # made once: it is slow
ACT = {"id": "the order of the events", "batch": "the event that names it"}
MASKING = "the event that masked the response"
WORKING = "work at a provider that is not done: what comes of it is stored, and sealed, as calls"
CALL = (
    *("number", "request_sha256", "sent", "raw", "status", "reason", "tokens_in", "tokens_out"),
    *("tokens_cached", "tokens_reasoning", "usd", "price_source", "latency_seconds"),
    *("request_id", "returned_model", "at"),
    *("tokens_cache_write", "usd_cached", "usd_cache_write", "usd_out"),
)
# Of these settings a part is sealed: the rest is rewritten with each draft, or each few seconds.
SEALED_PARTS: Mapping[str, tuple[str, ...]] = {
    TRAINING: ("ended", "rounds"),
    RUN: ("token", "by", "order", "since", "started"),
}
UNSEALED_PARTS: Mapping[str, str] = {
    TRAINING: "what is entered in training and not answered, and which page was read last: "
    "it never counts; who may begin, and how each round went, is sealed",
    RUN: "whether the run that is on still lives and what it told last: a line on a screen; "
    "who started it, and what it asks for, is sealed",
}
FIRST_LINE = "medjury head 1"
HEAD_ENDING = ".head"
MOST_HEAD_BYTES = 10_000
EVENT_HASH = re.compile("[0-9a-f]{64}")
HEAD_LINES = re.compile(
    rf"{FIRST_LINE}\nstudy ([0-9a-f]{{64}})\nevents (0|[1-9][0-9]{{0,17}})\nhead ([0-9a-f]{{64}})\n"
)


class How(StrEnum):
    """How rows of a table are sealed in the record.

    KEYS: events name rows by their keys with a digest, and the newest that names a row counts.
    ACT: `batch` names the act that wrote the row, whose event has a digest of all its rows.
    OWN: the events of the table's own acts say what it must hold.
    """

    KEYS = "keys"
    ACT = "act"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Sealed:
    """How one table, or some of its columns, is sealed in the record.

    Attributes
    ----------
    columns
        Under the digest, for KEYS with the key first.
    checked
        Column that `verify` compares with something else -> with what.
    left_out
        Column that nothing is compared with -> why a change of it moves no figure, right or name.
    table
        Name of the table, where it is not that of the part.
    """

    how: How
    columns: tuple[str, ...] = ()
    checked: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    table: str = ""


SEALS: Mapping[str, Sealed] = {
    "rubric": Sealed(How.KEYS, ("sha256", "name", "version", "body", "added")),
    "study_text": Sealed(How.KEYS, ("sha256", "body", "added")),
    "benchmark": Sealed(How.KEYS, ("name", "category", "subcategory", "rubric_sha256")),
    "instance": Sealed(
        How.KEYS,
        ("id", "benchmark", "instance_id", "context", "prompt", "reference", "checklist"),
    ),
    "point_set": Sealed(
        How.ACT,
        ("instance", "benchmark_rubric", "rubric_sha256", "author", "at"),
        ACT,
    ),
    "response": Sealed(
        How.KEYS,
        ("id", "response_id", "instance", "commitment"),
        checked={
            "text": "the commitment",
            "salt": "the commitment",
            "shown": MASKING,
        },
    ),
    "authorship": Sealed(How.KEYS, ("response", "model", "salt")),
    "mask": Sealed(
        How.OWN,
        checked=dict.fromkeys(("id", "response", "start", "end", "text", "at"), MASKING),
    ),
    "subgroup": Sealed(How.ACT, ("response", "name", "value"), ACT),
    "rater": Sealed(
        How.KEYS,
        ("id", "kind", "handle", "family", "pseudonym", "specialty", "simulated", "profile"),
    ),
    "account": Sealed(
        How.KEYS, ("id", "name", "role", "email", "rater", "created", "ended", "salt")
    ),
    "access": Sealed(
        How.KEYS,
        ("lookup", "account", "secret_hash", "once", "created", "expires", "used", "revoked"),
    ),
    "rating": Sealed(
        How.ACT,
        (
            *("response", "rater", "criterion", "score", "rubric_sha256", "pass_", "replicate"),
            *("comment", "at"),
        ),
        ACT,
    ),
    "superseded": Sealed(How.OWN, checked={"rating": "the ratings"}),
    "assignment": Sealed(
        How.KEYS,
        ("id", "code", "rater", "response", "position", "pass_", "assigned_at"),
        left_out={
            "draft": "what a clinician has entered and not submitted: it counts nowhere, and they "
            "see it before they submit it",
            "draft_seq": "the number of the draft: it keeps two windows of one clinician apart",
            "submitted_seq": "the number of the draft that was submitted: as `draft_seq`",
            "seconds_active": "grows with each draft; the time that a rating took is "
            "`submission.seconds`, which is sealed. Only working time is told from it",
            "opened_at": "when a response was first shown; the record says when it was rated, "
            "recused, or its reference opened",
        },
    ),
    "progress": Sealed(
        How.KEYS,
        ("id", "state", "revision", "done_at", "previous", "reference_opened_at"),
        table="assignment",
    ),
    "remark": Sealed(How.ACT, ("assignment", "kind", "text", "revision", "at", "about"), ACT),
    "submission": Sealed(
        How.ACT,
        ("assignment", "revision", "comment", "seconds", "study_text", "appearance", "at"),
        ACT,
    ),
    "span": Sealed(
        How.ACT,
        (
            *("assignment", "criterion", "start", "end", "text", "error", "note", "revision"),
            *("at", "side", "severity", "linked"),
        ),
        ACT,
    ),
    "review": Sealed(How.ACT, ("response", "reviewer", "kind", "text", "at"), ACT),
    "expert": Sealed(
        How.OWN,
        checked=dict.fromkeys(
            ("response", "criterion", "score", "why"), "the newest import of expert scores"
        ),
        left_out={"id": "nothing refers to it, and the order of experts' scores counts nowhere"},
    ),
    "drill": Sealed(How.KEYS, ("id", "rater", "response", "round", "scores", "at")),
    "attempt": Sealed(
        How.KEYS, ("id", "rater", "response", "rubric_sha256", "replicate", *CALL, "distribution")
    ),
    "reference_check": Sealed(How.KEYS, ("id", "instance", "rater", "absent", "facts", *CALL)),
    "improvement": Sealed(
        How.KEYS, ("id", "at", "rubric_sha256", "asked", "split", "opened", "learned", "result")
    ),
    "proposal": Sealed(
        How.KEYS, ("id", "improvement", "rater", "round", "parent", "rubric_sha256", *CALL)
    ),
    "intent": Sealed(
        How.KEYS,
        ("key", "rater", "response", "instance", "replicate", "usd_most", "at", "counted"),
    ),
    "jury_batch": Sealed(
        How.KEYS,
        ("id", "marker", "rater", "host", "requests", "sent", "prepared"),
        left_out=dict.fromkeys(
            (
                *("state", "provider_id", "input_file", "counts", "reason"),
                *("asked", "submitted", "closed"),
            ),
            WORKING,
        ),
    ),
    "jury_request": Sealed(
        How.ACT,
        ("custom_id", "response", "replicate", "rubric_sha256", "request_sha256", "usd_most"),
        checked={"batch": "the event that prepared the batch"},
        left_out={"outcome": WORKING},
    ),
    "event": Sealed(
        How.OWN,
        checked={
            "id": "the order of the chain",
            **dict.fromkeys(("at", "actor", "action", "detail", "previous", "sha256"), "the chain"),
        },
    ),
    "report": Sealed(
        How.OWN,
        checked=dict.fromkeys(("id", "at", "fingerprint", "body"), "the event that froze it"),
    ),
    "setting": Sealed(How.KEYS, ("key", "value")),
    "composition": Sealed(
        How.OWN,
        checked=dict.fromkeys(
            (
                *("key", "jurors", "needed", "benchmark", "instances", "criterion", "method"),
                *("simulated", "compared", "icc", "n_responses", "fingerprint", "times"),
                *("first_at", "last_at"),
            ),
            "the events of its evaluations",
        ),
    ),
}


def canonical_values(values: Iterable[object]) -> bytes:
    """Return a row's values as bytes that are the same before and after storage."""
    plain = [_utc_text(value) if isinstance(value, datetime) else value for value in values]
    return _ENCODER.encode(plain).encode() + b"\n"


@lru_cache(maxsize=256)
def _utc_text(time: datetime) -> str:
    """Return a time as its rows are digested; rows that were written together share it."""
    return time.astimezone(UTC).isoformat()


def table_of(part: str) -> str:
    """Return the table that a part of `SEALS` is of."""
    return SEALS[part].table or part


def leaf_of(cells: Sequence[object]) -> bytes:
    """Return the SHA-256 of one row."""
    return hashlib.sha256(canonical_values(cells)).digest()


def joined(leaves: Iterable[bytes]) -> str:
    """Return one SHA-256 for rows that were sealed together, from their own."""
    return hashlib.sha256(b"".join(leaves)).hexdigest()


def commitment(salt: str, text: str) -> str:
    """Return a salted SHA-256 of a text: it proves the text and reveals nothing without the salt."""
    return hashlib.sha256(canonical_values([salt, text])).hexdigest()


def sealed_setting(key: str, value: str) -> object:
    """Return the sealed part of a setting's value: all of it, but for `SEALED_PARTS`."""
    kind = TRAINING if key.startswith(TRAINING) else key
    names = SEALED_PARTS.get(kind)
    if names is None:
        return value
    try:
        stored = json.loads(value)
        return [stored.get(name) for name in names]
    except (ValueError, AttributeError):
        return value


@dataclass(frozen=True, slots=True)
class Head:
    """The last event of a record at a point in time.

    Attributes
    ----------
    sha256
        Its hash.
    events
        How many events there were; None where only the hash was kept.
    study
        Hash of the first event: of which study it is; "" where only the hash was kept.
    """

    sha256: str
    events: int | None = None
    study: str = ""

    def to_text(self) -> str:
        """Return the file's content, always the same for the same head."""
        return f"{FIRST_LINE}\nstudy {self.study}\nevents {self.events}\nhead {self.sha256}\n"


def head_given(given: str) -> Head:
    """Return a head from its hash, or from the file that has it.

    Raises
    ------
    BadInput
        If it is neither: a slip of the pen is no forgery.
    BadFile
        If the file is no head, or was changed so that it cannot be one.
    """
    text = given.strip()
    if EVENT_HASH.fullmatch(text.lower()):
        return Head(text.lower())
    path = Path(text)
    if path.is_file():
        return _head_of_file(path)
    raise BadInput(
        f"head {text[:80]!r}: neither a file nor a hash of the record; a hash has 64 characters 0-9 "
        "and a-f, as `medjury study verify` and `medjury study lock` print it"
    )


def _head_of_file(path: Path) -> Head:
    try:
        with path.open("rb") as file:
            body = file.read(MOST_HEAD_BYTES).decode("ascii", "replace").replace("\r\n", "\n")
    except OSError as error:
        raise BadFile(f"head {path}: {error.strerror}") from error
    match = HEAD_LINES.fullmatch(body)
    if match is None:
        raise BadFile(
            f"head {path}: not a head as `medjury study lock` and `medjury share export --package` write it "
            f"(its first line is {FIRST_LINE!r}); check its signature, or take another copy"
        )
    study, events, sha256 = match.groups()
    return Head(sha256, int(events), study)
