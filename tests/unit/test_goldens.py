"""What was recorded of the demo study by `kit.goldens` stays: figures of every analyse command, and words."""

import json
from difflib import unified_diff

import pytest
from kit.goldens import FIGURES, WORDS, differences, figures, recorded, words

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_the_figures_of_the_demo_study_are_those_recorded() -> None:
    assert differences(json.loads(recorded(FIGURES)), figures()) == []


def test_the_words_for_the_demo_study_are_those_recorded() -> None:
    lines = (recorded(WORDS).splitlines(), words().splitlines())
    changed = [*unified_diff(*lines, "recorded", "said", lineterm="", n=1)]
    shown = "\n".join(changed[:80])
    assert not changed, f"if they are meant, `python -m kit.goldens` records them anew:\n{shown}"
