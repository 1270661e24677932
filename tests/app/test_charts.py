"""Tables of the screens: numbers that sort as numbers, texts that no spreadsheet or browser runs."""

from annotate import draw
from calibration.headlines import CLOSER, HEADLINES
from calibration.tables.numbers import DASH, MINUS, place
from calibration.tables.spec import Group, Table
from calibration.values import COMBINED

MOST_WORDS = 30


def test_numbers_are_numbers_and_what_is_undefined_is_empty() -> None:
    table = Table(
        "t",
        ("Scorer", "ICC", "95 %", "95 %"),
        (
            Group("visits", (("Jury", "0.62", f"{MINUS}0.1 to 0.7", "1,234"),)),
            Group(place(COMBINED), (("=1+1", DASH, "<b>x</b>", f"{MINUS}2"),)),
        ),
        help={"ICC": "how far both rise together"},
    )
    columns, config = draw.framed(table)
    assert columns == {
        "Group": [place(COMBINED), "visits"],
        "Scorer": ["'=1+1", "Jury"],
        "ICC": [None, 0.62],
        "95 %": ["<b>x</b>", f"{MINUS}0.1 to 0.7"],
        "95 %\N{ZERO WIDTH SPACE}": [-2.0, 1234.0],
    }
    assert config["ICC"]["help"] == "how far both rise together"
    assert config["ICC"]["type_config"]["format"] == "%.2f"


def test_a_verdict_is_one_sentence_of_at_most_thirty_words() -> None:
    every = [text for own in HEADLINES.values() for text in own.values()] + [*CLOSER.values()]
    assert {text for text in every if len(text.split()) > MOST_WORDS} == set()
