"""Storing what responses belong to: added once, never changed, and no door to their authors."""

from collections import Counter
from collections.abc import Iterable, Sequence

from sqlmodel import Session, col, select

from data.errors import Conflict
from data.importers.groups import PREFIX, tells_authors
from data.importers.rows import ResponseRow
from data.schema import Authorship, Subgroup
from data.store.audit import Batch

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
                    f"the study has another {PREFIX}{name} for this response; groups never change",
                )
    session.add_all(new)
    session.flush()
    written.add({"response": one.response, "name": one.name, "value": one.value} for one in new)
    return Counter(one.name for one in new)


def subgroup_names(session: Session) -> list[str]:
    """Return the names of the study's groups, in alphabetical order."""
    return sorted(session.exec(select(Subgroup.name).distinct()))


def refuse_authors(session: Session, names: Iterable[str]) -> None:
    """Refuse groups whose values tell who wrote a response, in the whole study.

    Raises
    ------
    Conflict
        If values correspond one to one with authors, are authors' names, or are too many.
    """
    for name in sorted(set(names)):
        query = (
            select(Subgroup.value, Authorship.model)
            .join(Authorship, col(Authorship.response) == col(Subgroup.response))
            .where(Subgroup.name == name)
            .distinct()
        )
        pairs = [(value, author) for value, author in session.exec(query)]
        if tells_authors(pairs):
            raise Conflict(
                f"{PREFIX}{name} tells who wrote a response: its values are authors, or go one to one "
                "with them, which would lift the blind; nothing was imported"
            )
        if len({value for value, _ in pairs}) > MOST_VALUES:
            raise Conflict(
                f"{PREFIX}{name} has more than {MOST_VALUES} values: give a few groups, such as bands "
                "of age; nothing was imported"
            )
