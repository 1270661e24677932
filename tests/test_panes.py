"""A response is shown as its author laid it out; only a source is laid out by its turns."""

from annotate import panes

NOTE = "Limits: few events.\nPlan: stop.\nToday: no.\n\nThe rest stands."


def test_a_response_with_colons_keeps_its_own_form() -> None:
    assert "mj-turn" not in panes.pane(NOTE, "Response to rate", "response", "code")
    assert "Plan: stop.\nToday: no." in panes.pane(NOTE, "Response to rate", "response")


def test_a_dialogue_as_source_is_laid_out_by_its_turns() -> None:
    said = "[doctor] Any fever?\n[patient] No.\n[doctor] Good."
    assert panes.pane(said, "Source", "source", folds=True).count("mj-turn") == 3
