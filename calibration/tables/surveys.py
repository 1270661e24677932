"""The tables of a survey of a taxonomy: the sums, each card, the confusion of categories, comments."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from calibration.tables.numbers import TERMINAL, Typeface, fixed, interval
from calibration.tables.spec import Group, Table, TableNote

SUMMARY = (
    *("round", "answered", "as intended", "95 %", "kappa", "kappa, 95 %", "alpha", "alpha, 95 %"),
    *("comprehensive", "95 %, t", "clear", "95 %, t ", "comments"),
)
ITEMS = ("card", "as intended", "share", "95 %, Wilson", "placed elsewhere")
CHANGES = ("card", "round {}", "round {} ", "change", "what changed")
COMMENTS = ("about", "comment")
ON_THE_WHOLE = "On the whole"
ABOUT_SHARES = (
    "as intended: placements in the category that the taxonomy has the card in, of all placements. Its "
    "interval is Wilson's with clinicians as clusters: each places all cards, so placements of one "
    "clinician are not independent."
)
ABOUT_AGREEMENT = (
    "kappa: Fleiss' among clinicians; alpha: Krippendorff's for categories without an order. Their "
    "intervals resample cards. comprehensive, clear: mean of 1 to 5."
)
ABOUT_CONFUSION = "Rows: the category intended; columns: where clinicians placed the cards."
ABOUT_CHANGE = (
    "The interval takes the two rounds as independent; where the same clinicians answered both it is "
    "wider than it need be. Cards are told by their words."
)


def summary_table(rounds: Iterable[Any], face: Typeface = TERMINAL) -> Table:
    """Return `medjury.services.surveys.RoundResults` as a table, a row a round."""
    own = list(rounds)
    rows = tuple(tuple(_summary(one, face)) for one in own)
    made_up = (
        "Simulated. "
        if own
        and all(one.simulated == one.answered for one in own if one.answered)
        and any(one.simulated for one in own)
        else ""
    )
    notes = [TableNote(ABOUT_SHARES), TableNote(ABOUT_AGREEMENT)]
    notes += [
        TableNote(f"Round {one.round}: {one.simulated} of the clinicians are simulated.")
        for one in own
        if one.simulated
    ]
    return Table(f"{made_up}Survey of the taxonomy", SUMMARY, (Group("", rows),), tuple(notes))


def item_table(one: Any, face: Typeface = TERMINAL) -> Table:
    """Return the cards of a round, a group for each category."""
    groups = tuple(
        Group(category, tuple(_item(item, face) for item in items))
        for category, items in groupby(one.items, key=lambda item: str(item.intended))
    )
    caption = f"Round {one.round}: cards placed as intended"
    return Table(caption, ITEMS, groups, (), frozenset(("placed elsewhere",)))


def confusion_table(one: Any) -> Table:
    """Return how often cards of each category were placed in each, in a round."""
    numbers = [f"{place}" for place in range(1, len(one.categories) + 1)]
    rows = tuple(
        (f"{number} {name}", *(f"{count}" for count in counts))
        for number, name, counts in zip(numbers, one.categories, one.confusion, strict=True)
    )
    caption = f"Round {one.round}: confusion of categories"
    return Table(caption, ("intended", *numbers), (Group("", rows),), (TableNote(ABOUT_CONFUSION),))


def comment_table(one: Any) -> Table:
    """Return what clinicians said in a round, by card; without names."""
    rows = [(item.text, said) for item in one.items for said in item.comments]
    rows += [(ON_THE_WHOLE, said) for said in one.comments]
    caption = f"Round {one.round}: {len(rows)} comments"
    return Table(caption, COMMENTS, (Group("", tuple(rows)),), (), frozenset(COMMENTS))


def change_table(change: Any, face: Typeface = TERMINAL) -> Table:
    """Return what changed between two rounds, card by card."""
    rows = tuple(tuple(_change(item, face)) for item in change.items)
    seen = change.overall
    told = (
        f"Placed as intended, round {change.second} minus round {change.first}: "
        f"{fixed(100 * seen.value, 1, face)} points of 100"
    )
    if between := interval(100 * seen.interval.low, 100 * seen.interval.high, 1, face):
        told += f" (95 % {between})"
    columns = tuple(
        name.format(number)
        for name, number in zip(CHANGES, ("", change.first, change.second, "", ""), strict=True)
    )
    notes = (TableNote(f"{told}."), TableNote(ABOUT_CHANGE))
    caption = f"From round {change.first} to round {change.second}"
    return Table(caption, columns, (Group("", rows),), notes, frozenset(("what changed",)))


def _summary(one: Any, face: Typeface) -> list[str]:
    name = f"{one.round} ({one.kind}{', open' if one.is_open else ''})"
    answered = f"{one.answered} of {one.invited}"
    if not one.answered:
        return [name, answered, *(face.none for _ in SUMMARY[2:])]
    share, ratings = one.overall, (one.comprehensiveness, one.clarity)
    return [
        *(name, answered, f"{fixed(100 * share.value, 1, face)} %"),
        _percent(share.interval, face),
        *(
            cell
            for found in (one.kappa, one.alpha)
            for cell in (
                fixed(found.value, 2, face),
                interval(found.interval.low, found.interval.high, 2, face) or face.none,
            )
        ),
        *(
            cell
            for found in ratings
            for cell in (
                fixed(found.mean, 2, face),
                interval(found.interval.low, found.interval.high, 2, face) or face.none,
            )
        ),
        f"{one.n_comments}",
    ]


def _item(item: Any, face: Typeface) -> tuple[str, ...]:
    share = item.share
    elsewhere = ", ".join(f"{name} {count}" for name, count in item.elsewhere.items())
    return (
        item.text,
        f"{share.hits} of {share.trials}",
        f"{fixed(100 * share.value, 0, face)} %",
        _percent(share.interval, face),
        elsewhere or face.none,
    )


def _change(item: Any, face: Typeface) -> list[str]:
    first, second = item.first, item.second
    shown = [
        f"{fixed(100 * one.value, 0, face)} %" if one else face.none for one in (first, second)
    ]
    gap = fixed(100 * (second.value - first.value), 0, face) if first and second else face.none
    return [item.text, *shown, gap, _what(item)]


def _what(item: Any) -> str:
    if item.first is None:
        return "new"
    if item.second is None:
        return "gone"
    if item.intended_first != item.intended_second:
        return f"moved to {item.intended_second}"
    return ""


def _percent(ends: Any, face: Typeface) -> str:
    return interval(100 * ends.low, 100 * ends.high, 1, face) or face.none
