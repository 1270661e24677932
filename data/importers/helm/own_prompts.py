"""Rubrics of prompts that HELM's users wrote for benchmarks of their own, and of prompts unknown."""

import hashlib
import re

from data.rubric import PLACEHOLDER, Criterion, Gold, Rubric, Scale
from data.rubrics.helm import (
    AUDIENCE,
    BENCHMARKS,
    COMPARED,
    IF_NEEDED,
    OURS,
    THEIRS,
    WIDEST,
    Unusable,
)

RELEASE = "HELM of unknown version"
MEDHELMS = Scale(min=1, max=5)
NUMBER, TO = r"(\d{1,3})", r"\s*(?:-|\u2013|to)\s*"
SCALES = (
    rf"\bfrom\s+{NUMBER}\b[^.\n]{{0,60}}?\bto\s+{NUMBER}\b",
    rf"\bbetween\s+{NUMBER}\b[^.\n]{{0,60}}?\band\s+{NUMBER}\b",
    rf"\b{NUMBER}{TO}{NUMBER}\b[^.\n]{{0,20}}\bscale\b",
    rf"\bscale\b[^.\n\d]{{0,20}}{NUMBER}{TO}{NUMBER}\b",
)
UNDESCRIBED = "The prompt has no words of its own for this point"
NO_WORDS = "not known: the run does not hold the prompt"
UNKNOWN = (
    "(The run does not hold the prompt that HELM's jurors were asked with. This text takes its "
    "place, and no juror was ever asked with it.)\n\n<response>\n{{response}}\n</response>\n"
)


def in_own_words(name: str, template: str, criteria: tuple[str, ...], scale: Scale) -> Rubric:
    """Return the rubric that puts somebody's prompt, word for word, to a juror."""
    if PLACEHOLDER.search(THEIRS.sub("", template)):
        raise Unusable("its prompt holds a placeholder that is not HELM's")
    prompt = THEIRS.sub(lambda found: OURS[found[1] or found[2]], template)
    anchors = {point: _anchor(template, point) for point in scale.points}
    return Rubric(
        name=f"helm_{name}",
        version=f"{RELEASE}, prompt sha256 {hashlib.sha256(template.encode()).hexdigest()}",
        audience=AUDIENCE,
        gold=_gold(prompt),
        scale=scale,
        criterion=tuple(
            Criterion(name=one, question=_question(template, one), anchors=anchors)
            for one in criteria
        ),
        prompt=prompt,
    )


def without_prompt(name: str, criteria: tuple[str, ...], scale: Scale | None) -> Rubric:
    """Return a rubric of what is known: ratings on it never mix with those on a known prompt."""
    if scale is None and name not in BENCHMARKS:
        raise Unusable("the run does not hold its prompt; name its rubric with --rubric")
    held = scale or MEDHELMS
    known = hashlib.sha256("\0".join([name, str(held), *criteria]).encode()).hexdigest()
    anchors = dict.fromkeys(held.points, NO_WORDS)
    return Rubric(
        name=f"helm_{name}",
        version=f"prompt unknown, name, scale and criteria sha256 {known}",
        audience="not known",
        gold="when_needed",
        scale=held,
        criterion=tuple(Criterion(name=one, question=one, anchors=anchors) for one in criteria),
        prompt=UNKNOWN,
    )


def scale_of(template: str) -> Scale:
    """Return the scale that a prompt names in one of the usual ways.

    Raises
    ------
    Unusable
        If it names none, or two that differ.
    """
    said = (found for one in SCALES for found in re.findall(one, template, re.IGNORECASE))
    ends = {(int(low), int(high)) for low, high in said if 0 < int(high) - int(low) < WIDEST}
    if len(ends) != 1:
        raise Unusable(
            f"its prompt names {'no scale' if not ends else 'more than one scale'}; name its "
            "rubric, with the same prompt and its scale, with --rubric"
        )
    low, high = ends.pop()
    return Scale(min=low, max=high)


def _gold(prompt: str) -> Gold:
    if "{{reference}}" not in prompt:
        return "never"
    compared = COMPARED.search(prompt)
    return "when_needed" if compared is None or IF_NEEDED.search(compared[1]) else "always"


def _anchor(template: str, point: int) -> str:
    """Return what stands in brackets behind a point, or behind its equals sign."""
    found = re.search(rf"\b{point}\s*(?:\(([^()\n]+)\)|=\s*([^,;()\n]+))", template)
    return (found[1] or found[2]).strip() if found else UNDESCRIBED


def _question(template: str, criterion: str) -> str:
    """Return what stands on the criterion's line behind a dash or a colon."""
    word = re.escape(criterion).replace("_", "[ _]")
    found = re.search(rf"^\W*{word}\W*?\s*[:\u2013-]\s*(\w[^\n]+)$", template, re.I | re.M)
    return found[1].strip() if found else f"{criterion}, as the jurors' prompt puts it"
