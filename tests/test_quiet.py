"""Of many notes those that warn are seen first, and none is lost."""

import numpy as np
import pytest
from calibration.report.quiet import parted

from annotate import tables
from calibration import notes
from calibration.f_interval import Interval

ENDS = Interval(0.1, 0.6)
LOUD = (
    notes.few_instances(5),
    notes.shared_instances(8, 4),
    notes.negative(-0.2, 0.1, 0.0),
    notes.negative(-0.2, -0.1, -0.3),
    notes.no_variance(["dr_a"]),
    notes.undefined_resamples(np.array([np.nan] * 10 + [0.5] * 90)),
    "fragile: 5 of 5 pairs share fewer than 10 responses",
    "words that nobody knows",
)
QUIET = (
    notes.bca(ENDS),
    notes.looked(5, 0.99, ENDS),
    notes.undefined_resamples(np.array([np.nan] + [0.5] * 99)),
    "4 clinicians compared, each on 7 responses or more",
    "with the other clinicians: jury 0.495, a clinician 0.394",
)


@pytest.mark.parametrize("whom", ["", "aci, Jury: "])
def test_what_only_adds_figures_is_folded_and_what_warns_is_not(whom: str) -> None:
    told = [whom + one for one in (*QUIET, *LOUD)]
    loud, quiet = parted(told)
    assert [*loud] == [whom + one for one in LOUD]
    assert [*quiet] == [whom + one for one in QUIET]


def test_a_warning_is_not_folded_for_the_figures_in_it() -> None:
    named = "with the other clinicians: jury 0.4, BCa bootstrap 0.1 to 0.6; read no more into it"
    told = [f"aci, Jury: fragile, {named}"] * 9
    assert parted(told) == (told, [])


def test_every_note_stands_on_the_page_once_those_that_warn_first() -> None:
    page = tables.noted([*QUIET, *LOUD])
    assert all(page.count(tables.escaped(one)) == 1 for one in (*QUIET, *LOUD))
    before, _, folded = page.partition("<details")
    assert all(tables.escaped(one) in before for one in LOUD)
    assert all(tables.escaped(one) in folded for one in QUIET)
    assert f"{len(QUIET)} more notes" in folded


def test_a_handful_of_notes_is_shown_whole() -> None:
    assert "<details" not in tables.noted(QUIET)
    assert tables.noted([]) == ""
