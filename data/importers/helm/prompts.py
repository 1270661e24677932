"""The prompt of HELM's jurors, recovered from a run, as a rubric.

A run holds each prompt as it was sent, and what was filled in. Taken out again, all prompts of a
run must give the same template, and it must fill up to each of them to the last byte. Prompts that
users wrote for benchmarks of their own, and prompts unknown, make rubrics too.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from data.rubric import Criterion, Rubric, Scale
from data.rubrics.helm import (
    AUDIENCE,
    BENCHMARKS,
    OURS,
    SCALE,
    WIDEST,
    Unusable,
    gold_of,
    our_prompt,
    rubric_of,
    version_of,
)

RELEASE = "HELM of unknown version"
MEDHELMS, SHARE = Scale(min=1, max=5), Scale(min=0, max=1)
SHARES = ("health_bench", "health_bench_professional")  # jurors give a share of points
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
PLACE = re.compile(r"\{(QUESTION|RESPONSE|GOLD_RESPONSE)\}")
TRIED = 5  # filled prompts, those with the longest responses first


def in_own_words(name: str, template: str, criteria: tuple[str, ...], scale: Scale) -> Rubric:
    """Return a rubric with a user's own prompt, word for word."""
    prompt = our_prompt(template)
    anchors = {point: _anchor(template, point) for point in scale.points}
    return Rubric(
        name=f"helm_{name}",
        version=version_of(template, RELEASE),
        audience=AUDIENCE,
        gold=gold_of(prompt),
        scale=scale,
        criterion=tuple(
            Criterion(name=criterion, question=_question(template, criterion), anchors=anchors)
            for criterion in criteria
        ),
        prompt=prompt,
    )


def without_prompt(name: str, criteria: tuple[str, ...], scale: Scale | None) -> Rubric:
    """Return a rubric for an unknown prompt; its ratings never mix with those on a known one."""
    if scale is None and name not in (*BENCHMARKS, *SHARES):
        raise Unusable("the run does not hold its prompt; name its rubric with --rubric")
    known_scale = scale or (SHARE if name in SHARES else MEDHELMS)
    digest = hashlib.sha256("\0".join([name, str(known_scale), *criteria]).encode()).hexdigest()
    anchors = dict.fromkeys(known_scale.points, NO_WORDS)
    return Rubric(
        name=f"helm_{name}",
        version=f"prompt unknown, name, scale and criteria sha256 {digest}",
        audience="not known",
        gold="when_needed",
        scale=known_scale,
        criterion=tuple(
            Criterion(name=criterion, question=criterion, anchors=anchors) for criterion in criteria
        ),
        prompt=UNKNOWN,
    )


def scale_of(template: str) -> Scale:
    """Return the scale that a prompt names in one of the usual ways.

    Raises
    ------
    Unusable
        If it names none, or two that differ.
    """
    matches = (
        match for pattern in SCALES for match in re.findall(pattern, template, re.IGNORECASE)
    )
    ends = {(int(low), int(high)) for low, high in matches if 0 < int(high) - int(low) < WIDEST}
    if len(ends) != 1:
        raise Unusable(
            f"its prompt names {'no scale' if not ends else 'more than one scale'}; name its "
            "rubric, with the same prompt and its scale, with --rubric"
        )
    low, high = ends.pop()
    return Scale(min=low, max=high)


def _anchor(template: str, point: int) -> str:
    """Return the words of a point: in brackets after it, or after an equals sign."""
    match = re.search(rf"\b{point}\s*(?:\(([^()\n]+)\)|=\s*([^,;()\n]+))", template)
    return (match[1] or match[2]).strip() if match else UNDESCRIBED


def _question(template: str, criterion: str) -> str:
    """Return the words after a dash or a colon on the criterion's line."""
    word = re.escape(criterion).replace("_", "[ _]")
    match = re.search(rf"^\W*{word}\W*?\s*[:\u2013-]\s*(\w[^\n]+)$", template, re.I | re.M)
    return match[1].strip() if match else f"{criterion}, as the jurors' prompt puts it"


@dataclass(frozen=True, slots=True)
class FilledPrompt:
    """A prompt as it was sent, None if it is not in the run, with the texts filled in.

    `answered` holds the criteria of each verdict.
    """

    prompt: str | None
    question: str
    response: str
    gold: str
    answered: tuple[tuple[str, ...], ...]

    @property
    def parts(self) -> dict[str, str]:
        """Return the texts filled in, by HELM's placeholder."""
        return {"QUESTION": self.question, "RESPONSE": self.response, "GOLD_RESPONSE": self.gold}


@dataclass(frozen=True, slots=True)
class JuryPrompt:
    """The prompt of a run's jurors, as far as the run gives it away.

    Attributes
    ----------
    template
        With HELM's placeholders in single braces; None where the run does not give it away.
    checked
        Sent prompts that the template fills up to.
    """

    name: str
    criteria: tuple[str, ...]
    template: str | None
    checked: int

    def rubric(self, scale: Scale | None = None) -> Rubric:
        """Return the rubric of this prompt.

        Raises
        ------
        Unusable
            If no scale is given and the prompt names none, or it cannot be a rubric.
        """
        if not self.criteria:
            raise Unusable("no juror gave a verdict, and its criteria are not in the run")
        try:
            return self._as_sent(self._rubric(scale))
        except ValidationError as error:
            raise Unusable("its prompt or its criteria cannot be a rubric") from error

    @property
    def ours(self) -> str | None:
        """Return the template with placeholders in our form; braces around HELM's are the prompt's."""
        if self.template is None:
            return None
        return PLACE.sub(lambda match: OURS[match[1]], self.template)

    def _as_sent(self, rubric: Rubric) -> Rubric:
        """Return the rubric with the braces that HELM since 0.5.8 leaves around a text."""
        if self.ours in (None, rubric.prompt):
            return rubric
        return Rubric.model_validate(rubric.model_dump() | {"prompt": self.ours})

    def _rubric(self, scale: Scale | None) -> Rubric:
        name = re.sub(r"[^\w.-]+", "_", self.name)[:58]
        if self.template is None:
            return without_prompt(name, self.criteria, scale)
        if scale is None and SCALE.search(self.template):
            return rubric_of(name, self.template, list(self.criteria), RELEASE)
        return in_own_words(name, self.template, self.criteria, scale or scale_of(self.template))


def prompt_of(name: str, args: Mapping[str, Any], questions: Sequence[FilledPrompt]) -> JuryPrompt:
    """Return the jury's prompt, as far as the run gives it away.

    Parameters
    ----------
    args
        Of the jury's annotator; a configurable benchmark's hold template and criteria.
    """
    sent = [question for question in questions if question.prompt is not None]
    ordered = sorted(sent, key=lambda question: len(question.response), reverse=True)[:TRIED]
    candidates = [filled for question in ordered for filled in _templates(question)]
    fitting = (
        candidate
        for candidate in candidates
        if all(_fill_in(candidate, other) == other.prompt for other in sent)
    )
    template = next(fitting, None)
    if template is None and not sent and isinstance(args.get("prompt_template"), str):
        template = args["prompt_template"].replace("$$", "$")
    criteria = args.get("annotation_criteria")
    names = (
        [str(criterion) for criterion in criteria]
        if isinstance(criteria, dict)
        else _common_criteria(questions)
    )
    return JuryPrompt(name, _in_form_order(names, template), template, len(sent) if template else 0)


def _templates(question: FilledPrompt) -> Iterator[str]:
    """Yield templates: a prompt with its filled-in texts replaced everywhere, or once each."""
    longest = sorted(question.parts.items(), key=lambda part: -len(part[1]))
    for everywhere in (True, False):
        pieces = [question.prompt or ""]
        for name, text in longest:
            if text.strip():
                pieces = _replaced(pieces, text, f"{{{name}}}", everywhere)
        if "{RESPONSE}" in pieces:
            yield "".join(pieces)


def _replaced(pieces: list[str], text: str, mark: str, everywhere: bool) -> list[str]:
    """Return pieces with a text replaced by a mark; later texts are not looked for in marks."""
    replaced: list[str] = []
    for piece in pieces:
        if PLACE.fullmatch(piece) or (mark in replaced and not everywhere):
            replaced.append(piece)
            continue
        first, *others = piece.split(text, -1 if everywhere else 1)
        replaced.append(first)
        for part in others:
            replaced += [mark, part]
    return replaced


def _fill_in(template: str, question: FilledPrompt) -> str:
    parts = question.parts
    return PLACE.sub(lambda match: parts[match[1]], template)


def _common_criteria(questions: Sequence[FilledPrompt]) -> list[str]:
    """Return the criteria that every verdict has; HELM accepts only complete verdicts."""
    verdicts = [verdict for question in questions for verdict in question.answered]
    first = verdicts[0] if verdicts else ()
    return [name for name in first if all(name in verdict for verdict in verdicts)]


def _in_form_order(criteria: list[str], template: str | None) -> tuple[str, ...]:
    """Return criteria in the order in which the form of the answer has them."""
    places = {name: (template or "").find(f'"{name}"') for name in criteria}
    return tuple(sorted(criteria, key=lambda name: places[name]))
