"""Whether notes look like the validated ones, in words and as tables."""

from calibration.tables.numbers import TERMINAL, Typeface, chance, fixed, interval
from calibration.tables.spec import Group, Table, TableNote
from calibration.ward_values import ALPHA, LEAST, Compared, GroupStanding, Standing, Transported

STANDINGS = {
    Standing.ALIKE: "no difference found",
    Standing.DIFFERENT: "not validated for these: other {}",
    Standing.NOT_RATED: "not validated for these: none was rated",
    Standing.FEW: "too few to say",
}
GROUPS = ("notes", "validated", "new", "standing")
PROPERTIES = ("notes", "property", "validated", "new", "difference", "95 %", "gap", "p by Holm")
ABOUT = (
    f"validated, new: cases. Not validated: none was rated, or a property differs with p by Holm under {ALPHA:g} "
    f"over all comparisons and by a gap of 0.1 or more. Under {LEAST} cases of either nothing is said. That no "
    "difference was found does not show that the jury agrees with clinicians on these notes."
)
ABOUT_GAP = (
    "Means are of cases; difference: new less validated. gap: the largest difference of the shares at or under any "
    "value; of texts the energy coefficient of their embeddings; of a mix the share that would have to move. p "
    "by permutation of cases."
)


def headline(found: Transported, *, simulated: bool = False) -> str:
    """Return whether the jury is validated for such notes, as far as can be seen."""
    made_up = "simulated, no judgement: " if simulated else ""
    bad = [
        one.group
        for one in found.groups
        if one.standing in (Standing.DIFFERENT, Standing.NOT_RATED)
    ]
    if bad:
        return f"{made_up}not validated for: {', '.join(bad)}"
    if found.all_alike:
        return f"{made_up}no difference found from the notes that the jury was validated on"
    return f"{made_up}no difference found where there are enough notes to compare"


def groups_table(found: Transported) -> Table:
    """Return the standing of each group of notes."""
    rows = tuple(
        (one.group, str(one.validated), str(one.new), _standing(one)) for one in found.groups
    )
    words = frozenset(("notes", "standing"))
    return Table("Groups of notes", GROUPS, (Group("", rows),), (TableNote(ABOUT),), words)


def properties_table(found: Transported, face: Typeface = TERMINAL) -> Table:
    """Return every comparison."""
    rows = tuple(_row(one, face) for one in found.compared)
    words = frozenset(("notes", "property"))
    return Table("Comparisons", PROPERTIES, (Group("", rows),), (TableNote(ABOUT_GAP),), words)


def _standing(one: GroupStanding) -> str:
    return STANDINGS[one.standing].format(" and ".join(one.differs))


def _row(one: Compared, face: Typeface) -> tuple[str, ...]:
    figures = (fixed(value, 2, face) for value in (one.validated, one.new, one.difference))
    ends = interval(one.low, one.high, 2, face) or face.none
    return (one.group, one.what, *figures, ends, fixed(one.gap, 2, face), chance(one.p_holm, face))
