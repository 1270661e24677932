"""Panels made of jurors that have rated: each as the panel has it that it rated with."""

import pytest

from annotate import jury_panels
from annotate.jury_panels import checked, panel_of, shipped_texts
from data.errors import BadPanel
from jury.panel import read_panel, shipped


@pytest.mark.parametrize("name", shipped())
def test_a_panel_of_all_jurors_of_one_that_ships_is_that_panel_under_another_name(
    name: str,
) -> None:
    jurors = read_panel(name).juror
    profiles = {juror.name: juror.profile() for juror in jurors}
    new, text = panel_of([*profiles], profiles, {name: shipped_texts()[name]})
    assert new == jury_panels.RECOMMENDED
    assert checked(text).juror == jurors


def test_a_new_panel_takes_a_name_that_no_other_has() -> None:
    juror = read_panel("simulated").juror[0]
    texts = {"simulated": shipped_texts()["simulated"], "recommended": "", "recommended-2": ""}
    assert panel_of([juror.name], {juror.name: juror.profile()}, texts)[0] == "recommended-3"


def test_a_juror_that_rated_with_other_settings_is_named_and_put_on_no_panel() -> None:
    juror = read_panel("simulated").juror[0]
    texts = {"simulated": shipped_texts()["simulated"]}
    for profile in ({}, juror.profile() | {"model": "another"}):
        with pytest.raises(BadPanel, match=f"{juror.name}: rated with settings that stand in no"):
            panel_of([juror.name], {juror.name: profile}, texts)
