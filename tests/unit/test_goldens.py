"""What was recorded by `kit.goldens` stays: figures of every analyse command, and the demo's words."""

import json
from difflib import unified_diff

import pytest
from kit.goldens import STUDIES, WORDS, differences, figures, of, recorded, words

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("name", STUDIES)
def test_the_figures_of_a_study_are_those_recorded(name: str) -> None:
    assert differences(json.loads(recorded(of(name))), figures(name)) == []


def test_the_words_for_the_demo_study_are_those_recorded() -> None:
    lines = (recorded(WORDS).splitlines(), words().splitlines())
    changed = [*unified_diff(*lines, "recorded", "said", lineterm="", n=1)]
    shown = "\n".join(changed[:80])
    assert not changed, f"if they are meant, `python -m kit.goldens` records them anew:\n{shown}"
