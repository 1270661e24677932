"""Of many notes those that warn are seen first, and none is lost."""

import numpy as np
import pytest

from calibration import remarks
from calibration.icc import Interval
from calibration.notes import note, noted
from calibration.tables.spec import parted, table_notes

ENDS = Interval(0.1, 0.6)
LOUD = noted(
    remarks.few_instances(5),
    remarks.negative(-0.2, 0.1, 0.0),
    remarks.negative(-0.2, -0.1, -0.3),
    remarks.no_variance(["dr_a"]),
    remarks.undefined_resamples(np.array([np.nan] * 10 + [0.5] * 90)),
    note("fragile_pairs", "fragile_pairs", fragile=5, pairs=5, least=10),
    note("no_variance", "no_variance", raters=("compared, each on 7 responses or more",)),
)
QUIET = noted(
    remarks.corrected(5, 0.99, ENDS),
    remarks.undefined_resamples(np.array([np.nan] + [0.5] * 99)),
    note("held_on", "held_on", clinicians=4, least=7),
    note("held_iccs", "held_iccs", jury=0.495, clinician=0.394),
    note("own_means", "own_means", icc=0.7),
)


@pytest.mark.parametrize("groups", [[""], ["aci", "mts"]])
def test_what_only_adds_figures_is_folded_and_what_warns_is_not(groups: list[str]) -> None:
    every = table_notes([(one, "Jury", (*QUIET, *LOUD)) for one in groups])
    loud, quiet = parted(every)
    assert [one.code for one in loud] == [one.code for one in LOUD]
    assert [one.code for one in quiet] == [one.code for one in QUIET]


def test_a_warning_is_not_folded_for_the_figures_in_it() -> None:
    named = "with the other clinicians: jury 0.4, BCa bootstrap 0.1 to 0.6; read no more into it"
    warning = remarks.no_variance([named])
    assert warning is not None
    every = table_notes([(f"b{n}", "Jury", (*QUIET, warning)) for n in range(2)])
    loud, quiet = parted([*every, *table_notes([("aci", "Jury", (warning,))])])
    assert len(loud) == 2
    assert all(named in one.text for one in loud)
    assert len(quiet) == len(QUIET)
