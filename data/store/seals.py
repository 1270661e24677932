"""Sealing rows: what an act's event says of the rows that it wrote, by their keys.

A row that is changed later is sealed anew, in the event of the act that changes it.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Float, func
from sqlmodel import Session, select

from data.record import (
    SALT_BYTES,
    SEALS,
    Key,
    column_hints,
    joined,
    leaf_of,
    sealed_setting,
    table_of,
)
from data.schema import Setting, Table

Seal = dict[str, Any]
SHORTEST = 4  # signs of a row's hint, among rows that were sealed together
MOST_HINTS = 5000


def sealed(*rows: Table) -> list[Seal]:
    """Return a seal for each row, whose key is known: it holds until the row is sealed anew."""
    return [seal_together(part, [_values(part, one)]) for one in rows for part in [_part(one)]]


def seal_together(part: str, rows: Sequence[Mapping[str, Any]]) -> Seal:
    """Return one seal for rows of a part of `SEALS`, with their keys, in the order of the keys."""
    spec = SEALS[part]
    cells = sorted((_cells(part, row) for row in rows), key=lambda row: row[0])
    leaves = [leaf_of(row) for row in cells]
    salts = [str(row[spec.columns.index("salt")]) for row in cells] if spec.salted else []
    seal: Seal = {
        "table": part,
        "keys": list(_runs([row[0] for row in cells])),
        "rows": len(cells),
        "width": len(spec.columns),
        "sha256": joined(leaves),
        "columns": column_hints(cells, salts),
    }
    if 1 < len(cells) <= MOST_HINTS:
        seal["each"] = "".join(leaf.hex()[:SHORTEST] for leaf in leaves)
    return seal


def taken_away(row: Table) -> Seal:
    """Return what says that a row is deleted, and what it was: who else was sealed with it stays."""
    part = _part(row)
    cells = _cells(part, _values(part, row))
    return {"table": part, "gone": [cells[0]], "was": [leaf_of(cells).hex()]}


def keep_setting(session: Session, key: str, value: str) -> list[Seal]:
    """Store a setting inside the caller's transaction; return its seal for the act's event."""
    return sealed(session.merge(Setting(key=key, value=value)))


def new_salt() -> str:
    """Return a random salt."""
    return secrets.token_hex(SALT_BYTES)


def last_key(session: Session, model: type[Table]) -> int:
    """Return the greatest key of a table, 0 where it has no row."""
    return session.exec(select(func.max(model.__table__.c.id))).one() or 0  # type: ignore[attr-defined]


def seal_since(
    session: Session, part: str, model: type[Table], last: int, rows: Sequence[Mapping[str, Any]]
) -> Seal:
    """Return one seal for rows that were just added, in their order, after the key `last`.

    Nobody else writes meanwhile, so the keys that are new are theirs.
    """
    keys = model.__table__.c.id  # type: ignore[attr-defined]
    found = session.exec(select(keys).where(keys > last).order_by(keys)).all()
    return seal_together(part, [{**row, "id": key} for key, row in zip(found, rows, strict=True)])


def _runs(keys: Sequence[Key]) -> Iterator[Any]:
    """Yield keys, whole numbers as runs from first to last."""
    start = last = None
    for key in keys:
        if not isinstance(key, int):
            yield key
        elif last is not None and key == last + 1:
            last = key
        else:
            if last is not None:
                yield [start, last]
            start = last = key
    if last is not None:
        yield [start, last]


def _part(row: Table) -> str:
    return str(row.__tablename__)


def _values(part: str, row: Table) -> dict[str, Any]:
    return {one: getattr(row, one) for one in SEALS[part].columns}


def _cells(part: str, row: Mapping[str, Any]) -> list[Any]:
    """Return what of a row is under the digest, as it is read back."""
    floats = _floats(part)
    cells: list[Any] = [_as_stored(row[one], one in floats) for one in SEALS[part].columns]
    if part == "setting":
        cells[1] = sealed_setting(*cells)
    return cells


def _as_stored(value: object, is_number: bool) -> object:
    """Return a value as it is read back: a whole number in a column of numbers is one of them."""
    return float(value) if is_number and isinstance(value, int) else value


@cache
def _floats(part: str) -> frozenset[str]:
    columns: Iterable[Any] = Table.metadata.tables[table_of(part)].columns
    return frozenset(one.name for one in columns if isinstance(one.type, Float))
