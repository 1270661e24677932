"""A study's settings: checked when set, recorded, and with defaults."""

import pytest
from sqlalchemy import Engine

from data.card import ERRORS
from data.errors import BadInput, Unknown
from data.settings import Settings
from data.study.settings import set_setting
from data.study.standing import settings
from data.study.verify import acts


def test_what_was_never_set_is_the_default(engine: Engine) -> None:
    assert settings(engine) == Settings("on_request", 25, True, 1.0, ERRORS, False)


def test_a_setting_is_kept_and_recorded(engine: Engine) -> None:
    named = ("wrong", "Unsafe dose", "fehlt \u00fcberall")
    chosen = Settings(
        *("hidden", 0, False, 0.5, named, 2.0, "consensus", 5, 12.5),
        *((("ward-x", "house"),), ("aci",), True),
    )
    for name, value in chosen.as_text().items():
        set_setting(engine, name, value)
    assert settings(engine) == chosen
    assert len(acts(engine, "setting changed")) == 13


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("reference", "always"),
            ("ask_why", "1"),
            ("pause_minutes", "-1"),
            ("training_gap", "nan"),
        ),
        *(("budget", "-1"), ("budget", "inf"), ("budget", "five")),
        *(("error_types", ""), ("error_types", "wrong,,unsafe")),
        *(("error_types", "wrong,Wrong"), ("error_types", "<b>"), ("error_types", "=1+1")),
        ("error_types", ",".join(f"kind {number}" for number in range(13))),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(engine: Engine, name: str, value: str) -> None:
    with pytest.raises(BadInput, match=name):
        set_setting(engine, name, value)
    with pytest.raises(Unknown, match="pause_minutes"):
        set_setting(engine, "signing_key", value)
    assert settings(engine) == Settings()


def test_a_budget_may_be_taken_back_with_none(engine: Engine) -> None:
    set_setting(engine, "budget", "2500.5")
    assert settings(engine).budget == 2500.5
    set_setting(engine, "budget", "none")
    assert settings(engine).budget is None


def test_error_types_are_read_in_their_order_without_the_blanks_around_them(engine: Engine) -> None:
    set_setting(engine, "error_types", " missing , dose-wrong,unsafe ")
    assert settings(engine).error_types == ("missing", "dose-wrong", "unsafe")
