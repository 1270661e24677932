"""The small tables of a panel's file, and what a juror derives from claims."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from data.claims import FORMULAS

Name = Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=64)]


class Part(BaseModel):
    """A piece of a panel: immutable, with no key that we do not know and no value bent to fit."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


class Derived(Part):
    """What a juror's score on a criterion is derived from: its answers on the claims of a splitter.

    `of` is the juror whose plain verdict it completes. See `data.claims`.
    """

    criterion: Name
    formula: Name
    splitter: Name
    of: Name


class Claims(Part):
    """The table `[claims]` of a panel: its jurors judge claims, and a criterion is derived from that.

    `splitter` is a juror of the panel, unless the panel has a `[splitter]`. `name` is put behind a
    juror's own name in that of the juror who judges claims.
    """

    splitter: Annotated[str, Field(pattern=r"^[\w.-]*$", max_length=64)] = ""
    criterion: Name = "accuracy"
    formula: Name = "share"
    name: Annotated[str, Field(pattern=r"^[\w-]+$", max_length=20)] = "claims"

    def derived(self, splitter: str, of: str) -> Derived:
        """Return what a juror derives from its answers on the claims of a splitter."""
        return Derived(criterion=self.criterion, formula=self.formula, splitter=splitter, of=of)


def claims_fault(claims: Claims | None, jurors: Sequence[str], own: str) -> str:
    """Return why a panel's claims cannot be made, "" if they can.

    Parameters
    ----------
    claims : its table `[claims]`
    jurors : names of its jurors
    own : name in its table `[splitter]`, "" without one
    """
    if claims is None:
        return "splitter: without a table [claims] nothing is split" if own else ""
    if claims.formula not in FORMULAS:
        return f"claims: formula {claims.formula!r} is none of {', '.join(FORMULAS)}"
    if bool(own) == bool(claims.splitter):
        return (
            "claims: name a juror of this panel as splitter, or give a table [splitter], not both"
        )
    if claims.splitter and claims.splitter not in jurors:
        return (
            f"claims: splitter {claims.splitter!r} is no juror here; there are {', '.join(jurors)}"
        )
    judging = {f"{name}.{claims.name}" for name in jurors}
    if own in {*jurors, *judging}:
        return "splitter: a juror has its name; names must differ"
    if judging & set(jurors):
        return "claims: a juror has a name that a juror who judges claims would get"
    return ""
