"""Comparing rows with the seals that events hold of them: which row, which column, which act."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any

from sqlalchemy import Row
from sqlalchemy import Table as DbTable
from sqlmodel import Session

from data.importers.package import AUTHORS_ADDED, EVERY, RESTORED, WITHHELD
from data.queries.base import columns_of
from data.queries.package import kept_setting
from data.record import (
    SEALS,
    SHORT,
    How,
    Key,
    column_hints,
    joined,
    leaf_of,
    sealed_setting,
    table_of,
)
from data.schema import Table
from data.store.access import SESSION_KEY
from data.store.seals import SHORTEST

PAGE, AT_ONCE = 2000, 500
SEALED = "sealed"  # the act of the migration that seals a study of before
MOST_NAMED = 5
PARTS = tuple(name for name, one in SEALS.items() if one.how is How.KEYS)
STAYS = tuple(name for name in PARTS if table_of(name) not in EVERY)


@dataclass(slots=True)
class Seal:
    """What one event says of some rows of a part of `SEALS`.

    Attributes
    ----------
    displaced
        Key -> SHA-256 of rows that a later act changed or deleted, as they were.
    """

    part: str
    event: int
    keys: list[Key]
    width: int
    sha256: str
    columns: str = ""
    each: str = ""
    is_withheld: bool = False
    displaced: dict[Key, bytes] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns under the digest; the table may have been given others since."""
        return SEALS[self.part].columns[: self.width]


class Seals:
    """All seals of a chain, the newest of each row.

    Attributes
    ----------
    since
        When a study of before was sealed, as it was found then; None if it was from its beginning.
    authors_withheld
        Whether this study came from a package without authors, and they were not added since.
    """

    def __init__(self) -> None:
        self.newest: dict[str, dict[Key, Seal]] = {part: {} for part in PARTS}
        self.since: datetime | None = None
        self.authors_withheld = False

    def take(self, event: Row[Any]) -> None:
        """Take in what an event seals, and what of the study it leaves behind."""
        if event.action == RESTORED:
            self._leave_behind(authors=event.detail.get("authors") == "with")
        if event.action == AUTHORS_ADDED:
            self.authors_withheld = False
        if event.action == SEALED and self.since is None:
            self.since = event.at
        for said in event.detail.get("sealed", ()):
            if said["table"] in self.newest:
                self._take(event.id, said)

    def _take(self, event: int, said: Mapping[str, Any]) -> None:
        newest = self.newest[said["table"]]
        for key, leaf in zip_longest(said.get("gone", ()), said.get("was", ())):
            before = newest.pop(key, None)
            if before is not None and leaf is not None:
                before.displaced[key] = bytes.fromhex(leaf)
        if "gone" in said:
            return
        keys = list(_keys(said["keys"]))
        told = {name: said.get(name, "") for name in ("columns", "each")}
        seal = Seal(said["table"], event, keys, said["width"], said["sha256"], **told)
        newest.update(dict.fromkeys(keys, seal))

    def _leave_behind(self, *, authors: bool) -> None:
        """Forget what no package brings: ways in, secrets, and work at a provider."""
        for part in STAYS:
            self.newest[part].clear()
        settings = self.newest["setting"]
        for key in [one for one in settings if not kept_setting(str(one))]:
            del settings[key]
        self.authors_withheld = not authors
        for seal in self.newest["authorship"].values():
            seal.is_withheld = not authors


def sealed_findings(
    session: Session, part: str, seals: Seals, counts: dict[str, int]
) -> Iterator[str]:
    """Yield how rows of a part differ from their seals; note in `counts` how many are sealed."""
    checked = _Part(session, part, seals)
    yield from checked.findings()
    counts[part] = checked.rows


def named(keys: Sequence[object], number: int) -> str:
    """Return the keys of some rows, the first few of many; no text of a row."""
    names = ", ".join(str(key)[:40] for key in keys[:MOST_NAMED])
    return f"{names} and {number - MOST_NAMED} more" if number > MOST_NAMED else names


class _Part:
    """The rows of one part of `SEALS`, compared with their newest seals."""

    def __init__(self, session: Session, part: str, seals: Seals) -> None:
        self.session, self.part, self.seals = session, part, seals
        self.newest = seals.newest[part]
        self.rows = 0

    def findings(self) -> Iterator[str]:
        """Yield what is wrong, row by row where it can be told."""
        leaves: dict[Key, bytes] = {}
        unknown: list[Key] = []
        for key, cells in self._rows():
            seal = self.newest.get(key)
            if seal is None:
                unknown += [] if self._may_be_unsealed(cells) else [key]
            elif seal.is_withheld and self.seals.authors_withheld:
                yield from self._withheld(key, cells)
            else:
                leaves[key] = leaf_of(cells[: seal.width])
                self.rows += 1
        if unknown:
            yield f"{_named(self.part, unknown)}: no event vouches for {_it(unknown)}"
        for seal in {id(one): one for one in self.newest.values()}.values():
            yield from self._compare(seal, leaves)

    def _compare(self, seal: Seal, leaves: Mapping[Key, bytes]) -> Iterator[str]:
        """Yield which rows of one seal are gone or changed."""
        if seal.is_withheld and self.seals.authors_withheld:
            return
        mine = [key for key in seal.keys if self.newest.get(key) is seal]
        gone = [key for key in mine if key not in leaves]
        if self.part == "setting" and gone == [SESSION_KEY]:
            return  # no copy has it: without it nobody is signed in
        if gone:
            yield f"{_named(self.part, gone)}: gone since event {seal.event}"
        found = {key: leaves[key] for key in mine if key in leaves} | seal.displaced
        if not gone and joined(found[key] for key in seal.keys if key in found) != seal.sha256:
            yield self._changed(seal, mine, found)

    def _changed(self, seal: Seal, mine: Sequence[Key], found: Mapping[Key, bytes]) -> str:
        """Say which rows of a seal were changed, and in which columns, as far as it tells."""
        rows = [key for key, hint in zip(seal.keys, _pieces(seal.each, SHORTEST), strict=False)
                if key in found and found[key].hex()[:SHORTEST] != hint]  # fmt: skip
        columns = self._columns(seal, mine) if not seal.displaced else []
        which = _named(self.part, rows or mine)
        what = ", ".join(columns) or "something"
        return f"{which}: {what} changed since event {seal.event}"

    def _columns(self, seal: Seal, mine: Sequence[Key]) -> list[str]:
        """Return the columns whose hints are not those of the seal."""
        rows = {key: cells[: seal.width] for key, cells in self._rows(mine)}
        cells = [rows[key] for key in mine]
        at = seal.names.index("salt") if SEALS[self.part].salted else None
        salts = [] if at is None else [str(row[at]) for row in cells]
        now = _pieces(column_hints(cells, salts), SHORT)
        pairs = zip(seal.names, _pieces(seal.columns, SHORT), now, strict=False)
        different = [name for name, said, hint in pairs if said != hint]
        return ["salt"] if "salt" in different and at is not None else different

    def _rows(self, keys: Sequence[Key] = ()) -> Iterator[tuple[Key, list[Any]]]:
        """Yield key and cells of every row, or of some if they are few, in the order of the keys."""
        spec, table = SEALS[self.part], _table(self.part)
        query = columns_of(*(table.c[name] for name in spec.columns))
        if 0 < len(keys) <= AT_ONCE:
            query = query.where(table.c[spec.columns[0]].in_(keys))
        query = query.order_by(*table.primary_key)
        for row in self.session.execute(query.execution_options(yield_per=PAGE)):
            cells = list(row)
            if self.part == "setting":
                cells[1] = sealed_setting(*cells)
            yield cells[0], cells

    def _may_be_unsealed(self, cells: Sequence[object]) -> bool:
        """Tell whether a row needs no seal: an assignment with which nobody has done anything."""
        return self.part == "progress" and cells[1:] == ["open", 0, None, None, None]

    def _withheld(self, key: Key, cells: Sequence[object]) -> Iterator[str]:
        if cells[1:] != [WITHHELD, ""]:
            yield f"authorship {key}: an author, where the study came without"


def _table(part: str) -> DbTable:
    return Table.metadata.tables[table_of(part)]


def _keys(said: Sequence[Any]) -> Iterator[Key]:
    """Yield the keys that a seal names: texts, and runs of whole numbers."""
    for one in said:
        if isinstance(one, list):
            yield from range(one[0], one[1] + 1)
        else:
            yield one


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _it(keys: Sequence[Key]) -> str:
    return "it" if len(keys) == 1 else "them"


def _named(part: str, keys: Sequence[Key]) -> str:
    """Return table and rows by their keys."""
    return f"{table_of(part)} {named(keys, len(keys))}"
