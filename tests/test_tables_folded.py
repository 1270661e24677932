"""Tables of a screen: the first stands open, others are closed under their name, and nothing is lost."""

import re

from annotate.tables import EACH_BENCHMARK, MOST_OPEN, folded, of_long_table, of_tables
from calibration.tables.spec import Group, Table, TableNote

OPEN = re.compile(r"<details.*?</details>", re.DOTALL)


def table(caption: str, groups: int, rows: int) -> Table:
    every = tuple(
        Group(f"bench {group}", tuple((f"row {group}.{row}", "1") for row in range(rows)))
        for group in range(groups)
    )
    return Table(caption, ("name", "number"), every, (TableNote("a note"),))


def shown(markup: str) -> str:
    """Return what stands open."""
    return OPEN.sub("", markup)


def test_the_first_table_stands_open_and_each_other_under_its_caption() -> None:
    markup = of_tables([table("First", 1, 2), table("Second", 1, 2), table("<Third>", 1, 2)])
    assert "First" in shown(markup)
    assert "Second" not in shown(markup)
    assert "<summary>Second</summary>" in markup
    assert "<summary>&lt;Third&gt;</summary>" in markup
    assert of_tables([]) == ""


def test_of_a_long_table_all_rows_are_there_and_the_last_group_stands_open() -> None:
    markup = of_long_table(table("Long", 5, MOST_OPEN // 2))
    assert all(f"row {group}.0" in markup for group in range(5))
    assert "row 4.0" in shown(markup)
    assert "row 0.0" not in shown(markup)
    assert "a note" in shown(markup)
    assert f"<summary>{EACH_BENCHMARK}</summary>" in markup


def test_a_short_table_and_one_without_groups_stand_open_whole() -> None:
    assert "<details" not in of_long_table(table("Short", 2, MOST_OPEN // 2))
    assert "<details" not in of_long_table(table("One group", 1, 3 * MOST_OPEN))


def test_a_fold_is_closed_unless_it_is_asked_for_open() -> None:
    assert '<details class="mj-folded"><summary>' in folded("What it is", "<p>It</p>")
    assert '<details class="mj-folded" open>' in folded("What it is", "<p>It</p>", is_open=True)
