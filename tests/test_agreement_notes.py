"""What the agreement tables say beside their figures: cells without a number, and notes."""

from medjury.cli.agreement_cells import bounds, probability
from medjury.cli.agreement_notes import told


def test_a_p_is_never_shown_as_0() -> None:
    shown = [probability("p")({"p": p}) for p in (None, 0.00049, 0.0009, 0.001, 0.25)]
    assert shown == ["-", "<0.001", "<0.001", "0.001", "0.250"]


def test_a_lower_bound_that_does_not_exist_is_told_in_its_cell() -> None:
    shown = [
        bounds({"icc_lowest": low, "icc_highest": high})
        for low, high in ((None, None), (None, 0.9), (-1.0, 0.9))
    ]
    assert shown == ["-", "no bound to 0.90", "-1.00 to 0.90"]


def test_a_note_on_one_criterion_says_which() -> None:
    rows = [
        {"scorer": name, "on": criterion, "note": note}
        for name, criterion, note in (
            ("j1", "accuracy", "few; own"),
            ("j2", "accuracy", "few"),
            ("j1", "clarity", "all"),
            ("j2", "clarity", "all; only here"),
        )
    ]
    assert told(rows) == [
        "accuracy: few",
        "j1 (accuracy): own",
        "clarity: all",
        "j2 (clarity): only here",
    ]


def test_what_holds_for_a_whole_table_comes_last_and_under_no_name() -> None:
    few = "fewer than 20 instances: the interval is too narrow to trust"
    analysed = "8 of 9 responses are analysed: the others have no complete reading by a clinician"
    rows = [
        {"scorer": "dr-a", "note": f"{few}; {analysed}; simulated raters: j1"},
        {"scorer": "dr-b", "note": f"stricter; {analysed}"},
    ]
    assert told(rows) == [
        "dr-b: stricter",
        f"{few} (dr-a)",
        analysed,
        "simulated raters: j1",
    ]
