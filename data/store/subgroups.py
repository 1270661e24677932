"""Storing what responses belong to: added once, never changed, and no door to their authors."""

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlmodel import Session, col, select

from data.errors import Conflict
from data.importers.responses import GROUP, tells_authors
from data.importers.rows import ResponseRow
from data.schema import Subgroup
from data.store.audit import Batch
from data.store.authors import Pair, pairs_of_group

MOST_VALUES = 100  # with more, a column is a number or a name of each response, and no group


def keep_subgroups(
    session: Session, rows: Sequence[tuple[int, ResponseRow]], written: Batch
) -> Counter[str]:
    """Store the groups of responses, given by their keys, that have none of that name yet.

    Returns
    -------
    Counter
        Name -> how many were stored.

    Raises
    ------
    BadRow
        If a response has another value already.
    """
    query = select(Subgroup).where(col(Subgroup.response).in_([key for key, _ in rows]))
    stored = {(one.response, one.name): one.value for one in session.exec(query)}
    new: list[Subgroup] = []
    for key, row in rows:
        for name, value in row.groups:
            if (key, name) not in stored:
                stored[key, name] = value
                new.append(Subgroup(response=key, name=name, value=value, batch=str(written.token)))
            elif stored[key, name] != value:
                raise row.origin.wrong(
                    "group",
                    "",
                    f"the study has another {GROUP}{name} for this response; groups never change",
                )
    session.add_all(new)
    session.flush()
    written.add({"response": one.response, "name": one.name, "value": one.value} for one in new)
    return Counter(one.name for one in new)


def refuse_authors(session: Session, claimed: Mapping[str, set[Pair]], batch: str) -> None:
    """Refuse groups of an import whose values tell who wrote a response.

    They are looked at in the whole study; of a blind one in the import, beside the values that the
    study has from others: an import of one value and one author then tells too much as well.

    Parameters
    ----------
    claimed
        Group -> its values with their authors, as the import has them.
    batch
        Names the import in what it stored.

    Raises
    ------
    Conflict
        If values correspond one to one with authors, are authors' names, or are too many.
    """
    for name in sorted(claimed):
        pairs, apart = pairs_of_group(session, name, claimed[name], batch)
        values = {value for value, _ in pairs}
        if tells_authors(pairs) or (apart and len(pairs) == 1 and not values & apart):
            more = "; bring all files with it in as one" if apart else ""
            raise Conflict(
                f"{GROUP}{name} tells who wrote a response: its values are authors, or go one to one "
                f"with them, which would lift the blind{more}; nothing was imported"
            )
        if len(apart | values) > MOST_VALUES:
            raise Conflict(
                f"{GROUP}{name} has more than {MOST_VALUES} values: give a few groups, such as bands "
                "of age; nothing was imported"
            )
