"""How juries tried are counted: alike on every screen and page."""

from dataclasses import dataclass

from calibration.messages.juries import tried
from calibration.report.content import Study, Tried
from calibration.report.ledger import different, ever_tried, juries_tried, ledger_words


@dataclass(frozen=True)
class Entry:
    """One look at one jury."""

    jurors: tuple[str, ...]
    simulated: bool = False


def test_a_jury_is_its_jurors_whatever_the_order_and_the_way():
    entries = [Entry(("a", "b")), Entry(("b", "a")), Entry(("a",))]
    assert different(entries) == 2
    assert ever_tried(entries) == (
        "of real jurors, 2 different juries in 3 ways "
        "(benchmark, criterion, method, responses, jurors needed)"
    )


def test_one_is_singular_and_simulated_juries_are_counted_apart():
    told = ever_tried([Entry(("a",)), Entry(("s",), True), Entry(("s",), True)])
    assert told.startswith("of real jurors, 1 different jury in 1 way (")
    assert "; with simulated jurors, 1 different jury in 2 ways (" in told


def test_the_page_says_of_the_ledger_what_the_ranking_says():
    tries = [
        Tried(("a",), 1, "aci", one, "paper", "", 0.5, 9, 1, "2026-01-01", simulated=False)
        for one in ("", "accuracy", "clarity")
    ]
    study = Study("", tried=tries)
    assert juries_tried(study) == 1
    assert tried(1, 3) in ledger_words(study)
