"""How rows were sealed when 0011 was written; kept so, whatever `data.record` does."""

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
import sqlmodel

SHORT, SHORTEST, MOST_HINTS = 6, 4, 5000
TYPES: dict[str, Any] = {
    "time": sqlmodel.UTCDateTime(),
    "json": sa.JSON(),
    "yes": sa.Boolean(),
    "number": sa.Float(),
}
CALL = (
    "number request_sha256 sent:json raw status reason tokens_in tokens_out tokens_cached "
    "tokens_reasoning usd:number price_source latency_seconds:number request_id returned_model at:time "
    "tokens_cache_write usd_cached:number usd_cache_write:number usd_out:number"
)
# Part -> its columns, the key first. Rows that are never changed are sealed together.
TOGETHER = {
    "instance": "id benchmark instance_id context prompt reference checklist",
    "response": "id response_id instance commitment",
    "authorship": "response model salt",
    "assignment": "id code rater response position pass_ assigned_at:time",
    "drill": "id rater response round scores:json at:time",
    "attempt": f"id rater response rubric_sha256 replicate {CALL} distribution:json",
    "reference_check": f"id instance rater absent:yes facts:json {CALL}",
}
ALONE = {
    "rubric": "sha256 name version body added:time",
    "study_text": "sha256 body added:time",
    "benchmark": "name category subcategory rubric_sha256",
    "rater": "id kind handle family pseudonym specialty simulated:yes profile:json",
    "account": "id name role email rater created:time ended:time salt",
    "access": "lookup account secret_hash once:yes created:time expires:time used:time revoked:time",
    "progress": "id state revision done_at:time previous:number reference_opened_at:time",
    "intent": "key rater response instance replicate usd_most:number at:time counted:time",
    "jury_batch": "id marker rater host requests sent:json prepared:time",
    "setting": "key value",
}
TABLES = {"progress": "assignment"}
REQUEST = "batch custom_id response replicate rubric_sha256 request_sha256 usd_most:number"
PARTS = {"training:": ("ended", "rounds"), "jury_run": ("token", "by", "order", "since", "started")}
UNTOUCHED = ["open", 0, None, None, None]
Cells = list[Any]


def seals(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return seals of all rows as they are found."""
    told = [_seal(part, list(_rows(connection, part, names))) for part, names in TOGETHER.items()]
    alone = (
        _seal(part, [row])
        for part, names in ALONE.items()
        for row in _rows(connection, part, names)
        if part != "progress" or row[1:] != UNTOUCHED
    )
    return [one for one in told if one["rows"]] + list(alone)


def requests(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return what an event says of the requests of each batch."""
    batches: dict[int, list[Cells]] = {}
    for batch, *cells in _rows(connection, "jury_request", REQUEST):
        batches.setdefault(batch, []).append(cells)
    return [
        {
            "table": "jury_request",
            "batch": batch,
            "rows": len(rows),
            "sha256": hashlib.sha256(b"".join(map(canonical, sorted(rows)))).hexdigest(),
        }
        for batch, rows in batches.items()
    ]


def add_salts(connection: sa.Connection) -> None:
    """Give responses, authors and accounts their salts, and responses what holds their texts."""
    _salt(connection, "authorship", "response")
    _salt(connection, "account", "id")
    response = sa.table("response", *map(sa.column, ("id", "text", "salt", "commitment")))
    given = (
        sa.update(response)
        .where(response.c.id == sa.bindparam("of"))
        .values(salt=sa.bindparam("new"), commitment=sa.bindparam("said"))
    )
    for page in _pages(connection.execute(sa.select(response.c.id, response.c.text)).all()):
        salts = [secrets.token_hex(16) for _ in page]
        pairs = zip(page, salts, strict=True)
        rows = [
            {"of": key, "new": salt, "said": hashlib.sha256(canonical([salt, text])).hexdigest()}
            for (key, text), salt in pairs
        ]
        connection.execute(given, rows)


def masked(connection: sa.Connection) -> dict[str, dict[str, str]]:
    """Return the digests of masked texts and of their places, by response_id."""
    names = "id start end text at:time"
    texts = connection.execute(
        sa.text(
            "SELECT response.id, response_id, shown, authorship.salt FROM response"
            " JOIN authorship ON authorship.response = response.id WHERE shown IS NOT NULL"
        )
    ).all()
    places: dict[int, list[Any]] = {}
    for response, *cells in _rows(connection, "mask", f"response {names}"):
        places.setdefault(response, []).append(cells)
    shown = {name: _sha256([text]) for _, name, text, _ in texts}
    masks = {
        name: _sha256([salt, *(cell for one in sorted(places.get(key, [])) for cell in one)])
        for key, name, _, salt in texts
    }
    return {"shown": shown, "places": masks}


def canonical(values: Iterable[object]) -> bytes:
    """Return a row's values as bytes."""
    body = json.dumps([_plain(value) for value in values], separators=(",", ":"))
    return body.encode() + b"\n"


def _sha256(values: Iterable[object]) -> str:
    return hashlib.sha256(canonical(values)).hexdigest()


def _seal(part: str, rows: Sequence[Cells]) -> dict[str, Any]:
    rows = sorted(rows, key=lambda row: row[0])
    leaves = [hashlib.sha256(canonical(row)).digest() for row in rows]
    salts = [row[-1] for row in rows] if part in ("authorship", "account") else []
    seal: dict[str, Any] = {
        "table": part,
        "keys": list(_runs([row[0] for row in rows])),
        "rows": len(rows),
        "width": len((TOGETHER | ALONE)[part].split()),
        "sha256": hashlib.sha256(b"".join(leaves)).hexdigest(),
    }
    if 0 < len(rows) <= MOST_HINTS:
        columns = zip(*rows, strict=True)
        seal["columns"] = "".join(_sha256([*column, *salts])[:SHORT] for column in columns)
    if 1 < len(rows) <= MOST_HINTS:
        seal["each"] = "".join(leaf.hex()[:SHORTEST] for leaf in leaves)
    return seal


def _rows(connection: sa.Connection, part: str, names: str) -> Iterator[Cells]:
    """Yield the rows of a part of a table."""
    parsed = [one.partition(":") for one in names.split()]
    columns = [sa.column(name, TYPES.get(kind, sa.String())) for name, _, kind in parsed]
    # Text and whole numbers are read as the database gives them.
    table = sa.table(TABLES.get(part, part), *columns)
    for row in connection.execute(sa.select(*table.columns)):
        cells = list(row)
        if part == "setting":
            cells[1] = _sealed_setting(*cells)
        yield cells


def _sealed_setting(key: str, value: str) -> object:
    names = PARTS.get("training:" if key.startswith("training:") else key)
    if names is None:
        return value
    try:
        held = json.loads(value)
        return [held.get(name) for name in names]
    except (ValueError, AttributeError):
        return value


def _salt(connection: sa.Connection, name: str, key: str) -> None:
    table = sa.table(name, sa.column(key), sa.column("salt"))
    given = sa.update(table).where(table.c[key] == sa.bindparam("of"))
    given = given.values(salt=sa.bindparam("new"))
    for page in _pages(connection.execute(sa.select(table.c[key])).all()):
        connection.execute(given, [{"of": one, "new": secrets.token_hex(16)} for (one,) in page])


def _pages(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[start : start + 500] for start in range(0, len(rows), 500))


def _runs(keys: Sequence[Any]) -> Iterator[Any]:
    start = last = None
    for key in keys:
        if isinstance(key, str):
            yield key
        elif last is not None and key == last + 1:
            last = key
        else:
            if last is not None:
                yield [start, last]
            start = last = key
    if last is not None:
        yield [start, last]


def _plain(value: object) -> object:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def any_rows(connection: sa.Connection) -> bool:
    """Tell whether the study holds anything that could be sealed."""
    names: Mapping[str, str] = TOGETHER | ALONE
    return any(
        connection.scalar(sa.select(sa.exists(sa.select(sa.text("1")).select_from(sa.table(one)))))
        for one in {TABLES.get(part, part) for part in names}
    )
