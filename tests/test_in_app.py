"""A message that names a command is read in the app as the place where that is done."""

import re
from pathlib import Path

import pytest

from annotate.in_app import PLACES, in_app
from annotate.navigation import SCREENS
from annotate.screens.frame import lead, refused
from medjury.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
QUOTED = re.compile(r"`(?:medjury )?((?:study|rate|jury|analyse|share) [a-z ]*[a-z])")


def test_each_command_that_has_a_place_exists_and_its_place_is_a_screen() -> None:
    names = {command.name for command in COMMANDS}
    titles = {screen.title for screen in SCREENS}
    assert {name.partition(" --")[0] for name in PLACES} <= names
    assert {place.partition(",")[0] for place in PLACES.values()} <= titles


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (
            "dr-a is in this study already; `medjury rate people renew` gives a new code",
            "dr-a is in this study already; “People, Manage, New personal code” gives a new code",
        ),
        ("`medjury jury run PANEL` lets one rate", "“Jury lab, Run the jury” lets one rate"),
        ("see `jury run --estimate`: it", "see “Jury lab, Estimate”: it"),
        ("`medjury study lock --reopen --reason x`", "“Study, Record, Reopen”"),
        ("`medjury study unblind --reason x`", "`medjury study unblind --reason x`"),
        ("a file `a.csv` and `jury`", "a file `a.csv` and `jury`"),
    ],
)
def test_commands_are_named_by_their_places_and_all_else_stays(told: str, read: str) -> None:
    assert in_app(told) == read


def test_what_a_screen_refuses_or_leads_with_names_no_command() -> None:
    told = "nobody has rated yet: `medjury rate assign` lets them"
    for drawn in (refused(told), lead(told)):
        assert "medjury rate" not in drawn
        assert "“Study, Design”" in drawn
    assert "&lt;b&gt;" in refused("<b>")


def test_the_messages_of_services_about_a_study_name_only_commands_with_a_place() -> None:
    named: set[str] = set()
    for module in ("scores", "juries", "monitoring", "learning_material"):
        text = (ROOT / "medjury" / "services" / f"{module}.py").read_text("utf-8")
        named |= {found[1].strip() for found in QUOTED.finditer(text)}
    lost = {name for name in named if in_app(f"`medjury {name}`").startswith("`")}
    assert len(named) >= 4
    assert lost <= {"jury references"}, lost
