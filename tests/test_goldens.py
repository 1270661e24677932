"""What was recorded stays: figures of every analyse command, and the words of the demo study.

The figures are of the demo and of four public data sets (SummEval-OP, MIT; MentalBench, MIT; ACI-Bench,
CC BY 4.0, its ratings drawn; MSLR Cochrane, Apache-2.0; docs/real-data.md has the sources), recorded by
`kit.goldens` with the code of commit f7873ea6. A key may go on purpose, and then stands in GONE, with
the one figure that was mended; none else changes its value. The words are those of the terminal and the report page; `make words` records them anew.
"""

import re
from difflib import unified_diff

import pytest
from kit import demo_words
from kit.goldens import STUDIES, answers, differences, recorded

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

GONE = (  # what went, or was mended, as regular expressions
    r"\.(calibrate|published)\.json\.(details\.)?(alt_test|disattenuated|effective_jurors) is gone",
    r"\.calibrate\.json\.details\.severity\[\d+\]\.shrunken is gone",
    r"\.calibrate\.json\.details\.missing\[\d+\]\.icc_(highest|lowest) is gone",
    r"\.calibrate\.json\.details\.other_measures\[\d+\]\.(icc_absolute(_low|_high)?|kendall) is gone",
    r"\.calibrate\.json\.details\.differences\[\d+\]\.(detectable is gone|notes\b.*)",  # two notes less
    r"\.compare\.json\.(detectable is gone|notes\b.*)",
    r"\.juries\.json\.(common|decision\.basis\[0\]\.(least|most)) is gone",
    r"\.route\.json\.(baseline|learned) is gone",
    r"\.calibrate\.json\.details\.missing\[\d+\]\.notes has 1 for 2",  # the note on those bounds
    r"\.route\.json\.more_rated_responses: .*",  # by the tests as they are made; it was too few
)


@pytest.mark.real
@pytest.mark.parametrize("name", STUDIES)
def test_the_figures_of_a_study_are_those_recorded(name: str) -> None:
    found = differences(recorded(name), answers(name))
    assert [one for one in found if not any(re.fullmatch(gone, one) for gone in GONE)] == []


def test_the_words_for_the_demo_study_are_those_recorded() -> None:
    lines = (demo_words.recorded().splitlines(), demo_words.said().splitlines())
    changed = [*unified_diff(*lines, "recorded", "said", lineterm="", n=1)]
    shown = "\n".join(changed[:80])
    assert not changed, f"if they are meant, `make words` records them anew:\n{shown}"
