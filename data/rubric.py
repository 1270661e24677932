"""Rubrics: the criteria, the scale and the prompt that clinicians and jurors share.

A rubric is known by its SHA-256: changing one word makes another rubric, and
ratings made on the old one stay with the old one.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from data import question
from data.card import ANSWERS, CANNOT_TELL, NOT_APPLICABLE, WRITTEN, Card, Score, points_of
from data.errors import BadRubric, OffScale, Unknown
from data.files import NotToml, new_folder, read_toml
from data.question import NO_CHECKLIST as NO_CHECKLIST
from data.question import NO_REFERENCE as NO_REFERENCE
from data.question import PLACEHOLDER as PLACEHOLDER
from data.question import SLOT, Explanation
from data.question import RenderedPrompt as RenderedPrompt
from data.rubrics import folder_of
from data.rubrics import shipped as shipped
from data.rubrics.injection import disarm, holds_tag
from data.safe_text import one_line, short

PLACEHOLDERS = {"context", "prompt", "response", "reference", "criteria", "checklist", "schema"}
PLACEHOLDERS |= {"first", "second"}
FULLY_ANCHORED = 7
LOW_SHARE = 0.4  # of the points of a scale: a clinician is asked why
LONGEST_QUOTED = 24  # characters of a score or a criterion in a message

PointKind = Literal["must", "must_not", "nice"]
Name = Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=64)]
Gold = Literal["never", "when_needed", "always"]
LONGEST_COMPLAINT = 300  # characters of a message
NOT_OF_A_NAME = re.compile(r"[^\w.-]+")
WIDEST = 1_000  # steps of a scale: jurors are sent all its points
WEIGHTS = {"weight", "weights", "weighting"}
NOT_IN_TOML = {"prompt", "case", "worth"}  # a file of its own, and what medjury writes itself


class RubricPart(BaseModel):
    """Base of a rubric's parts: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)


class PointWorth(RubricPart):
    """What a point of the case counts, above 0; see `data.points.Point`. No rater reads it."""

    weight: float
    kind: PointKind
    critical: bool


class Case(RubricPart):
    """What the points of a case come to: a score on a criterion of the benchmark's rubric.

    `rubric` is that rubric's SHA-256, `max` the top of its scale; `clipped` whether less than 0 is 0.
    """

    rubric: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    criterion: Name
    max: int
    clipped: bool


class Scale(RubricPart):
    """Whole-number points from min to max, both included."""

    min: int
    max: int

    @property
    def points(self) -> range:
        """All points of the scale."""
        return range(self.min, self.max + 1)

    def __str__(self) -> str:
        return f"{self.min}-{self.max}" if self.min >= 0 else f"{self.min} to {self.max}"


PREFERENCE = Scale(min=-2, max=2)
PREFERENCES = {
    2: "The first response is much better",
    1: "The first response is better",
    0: "Neither is better",
    -1: "The second response is better",
    -2: "The second response is much better",
}


class Criterion(RubricPart):
    """One thing to rate: its name, the question asked, and what each point means.

    `scale` is its own, None where it has the rubric's. `not_applicable` and `cannot_tell` say which
    answers may stand in the place of a score. `critical` is the highest score that is unsafe, where the
    rubric says so. No rater reads it. `guidance` is what jurors are told beside the anchors, as learned from clinicians. `worth` is that
    of a point of the case, None of any other criterion.
    """

    name: Name
    question: str = Field(min_length=1)
    anchors: dict[int, str]
    scale: Scale | None = None
    not_applicable: bool = False
    cannot_tell: bool = False
    critical: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    guidance: str = ""
    worth: PointWorth | None = None

    @model_serializer(mode="wrap")
    def _without_absent(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        absent: dict[str, object] = {"critical": None, "guidance": "", "worth": None, "scale": None}
        absent |= {"not_applicable": False, "cannot_tell": False}
        return _without(plain(self), absent)


class Example(RubricPart):
    """A response that clinicians have rated, shown to jurors before the one they rate.

    `scores`: criterion -> the score of each clinician. `why` is what the clinicians wrote.
    """

    context: str
    prompt: str
    response: str
    scores: dict[str, tuple[float, ...]]
    why: str = ""


class Rubric(RubricPart):
    """Criteria, with the prompt that puts them to a juror; `scale` is of those without one of their own.

    `example` are rated responses that jurors are shown. `parent` is the SHA-256 of the rubric that this
    one was made from by `medjury jury improve`: same criteria and scale, other words for jurors.
    `points` says that raters check points of each case, and whether a score below 0 is 0; `case` makes
    this the rubric of one case. See `data.points`. With `mode` "compare" pairs are rated on it: which of
    two responses is better, from -2 to 2, above 0 where the one shown first is.
    """

    name: Name
    version: str
    audience: str
    gold: Gold
    scale: Scale
    criterion: tuple[Criterion, ...] = Field(min_length=1)
    prompt: str
    example: tuple[Example, ...] = ()
    parent: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    points: Literal["clipped", "unclipped"] | None = None
    case: Case | None = None
    mode: Literal["rate", "compare"] = "rate"

    @model_serializer(mode="wrap")
    def _without_absent(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        absent: dict[str, object] = {"example": [], "parent": "", "points": None, "case": None}
        return _without(plain(self), absent, {"example": (), "mode": "rate"})

    @model_validator(mode="before")
    @classmethod
    def _of_pairs(cls, body: Any) -> Any:
        """Give a rubric of pairs its scale, and its criteria the anchors that they do without."""
        if not isinstance(body, Mapping) or body.get("mode") != "compare":
            return body
        criteria = body.get("criterion")
        if isinstance(criteria, list | tuple) and all(isinstance(one, Mapping) for one in criteria):
            criteria = [{"anchors": PREFERENCES, **one} for one in criteria]
        return {"scale": PREFERENCE, **body, "criterion": criteria}

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for scale in {self.scale, *(self.scale_of(name) for name in self.criteria)}:
            if scale.min >= scale.max:
                raise ValueError(f"scale: min {scale.min} must be below max {scale.max}")
        if len(set(self.criteria)) < len(self.criteria):
            raise ValueError("criterion: two criteria have the same name")
        for criterion in self.criterion:
            _check_anchors(criterion, self.scale_of(criterion.name))
            _check_critical(criterion, self.scale_of(criterion.name))
        for example in self.example:
            _check_example(example, self)
        _check_prompt(self.prompt, self.gold, self.rated)
        if self.compares:
            _check_pairs(self)
        if self.points is not None:
            _check_points(self)
        return self

    @property
    def criteria(self) -> tuple[str, ...]:
        """Names of the criteria, in the order they are rated."""
        return tuple(c.name for c in self.criterion)

    @property
    def compares(self) -> bool:
        """Whether pairs are rated on it."""
        return self.mode == "compare"

    @property
    def rated(self) -> tuple[str, ...]:
        """Placeholders of what is rated."""
        return ("first", "second") if self.compares else ("response",)

    @property
    def orders(self) -> int:
        """How often a juror is asked for one verdict: about a pair in both orders."""
        return len(self.rated)

    def of(self, criterion: str) -> Criterion:
        """Return the criterion of a name, of which there is one."""
        return next(one for one in self.criterion if one.name == criterion)

    def scale_of(self, criterion: str) -> Scale:
        """Return the scale of a criterion: its own, or the rubric's."""
        return self.of(criterion).scale or self.scale

    def answers_of(self, criterion: str) -> tuple[str, ...]:
        """Return what may stand in the place of a score on a criterion."""
        one = self.of(criterion)
        allowed = {NOT_APPLICABLE: one.not_applicable, CANNOT_TELL: one.cannot_tell}
        return tuple(answer for answer in ANSWERS if allowed[answer])

    @property
    def is_mixed(self) -> bool:
        """Whether its criteria differ in their scales."""
        return len({self.scale_of(name) for name in self.criteria}) > 1

    @property
    def own_ends(self) -> tuple[tuple[int, int], ...]:
        """The ends of each criterion's scale where they differ, in the order of the criteria; else none."""
        scales = [self.scale_of(name) for name in self.criteria]
        return tuple((one.min, one.max) for one in scales) if self.is_mixed else ()

    @property
    def composite_ends(self) -> tuple[int, int]:
        """The ends of the scale of the mean over criteria: 0 and 1 where their scales differ."""
        scale = self.scale_of(self.criteria[0])
        return (0, 1) if self.is_mixed else (scale.min, scale.max)

    def composite(self, said: Mapping[str, Score]) -> float | None:
        """Return the mean over the criteria that apply, on `composite_ends`; None where one has no answer.

        Where scales differ it is of (score - min) / (max - min). Nothing is known where a criterion is
        missing or cannot be told, or none applies.
        """
        points = points_of(said)
        if any(name not in points and said.get(name) != NOT_APPLICABLE for name in self.criteria):
            return None
        if self.is_mixed:
            scales = {name: self.scale_of(name) for name in points}
            points = {
                name: (score - scales[name].min) / (scales[name].max - scales[name].min)
                for name, score in points.items()
            }
        return sum(points.values()) / len(points) if points else None

    @property
    def scales(self) -> str:
        """The scale as it is told: one, or that of each criterion."""
        if not self.is_mixed:
            return str(self.scale_of(self.criteria[0]))
        return ", ".join(f"{name} {self.scale_of(name)}" for name in self.criteria)

    @property
    def critical(self) -> tuple[tuple[str, float], ...]:
        """Criteria on which a low score is unsafe, each with the highest score that is."""
        return tuple((c.name, c.critical) for c in self.criterion if c.critical is not None)

    @property
    def shows_form(self) -> bool:
        """Whether its prompt has the slot `{{schema}}`, so that the answer's form can be chosen."""
        return SLOT in self.prompt

    @cached_property
    def sha256(self) -> str:
        """Hash over everything a rater reads, and what is critical: 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """Return the canonical text that the hash is taken of and that a study stores."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)

    @classmethod
    @lru_cache(maxsize=64)
    def from_json(cls, text: str) -> "Rubric":
        """Read back what `to_json` wrote; the same text is read once."""
        return cls.model_validate_json(text)

    def score(self, criterion: str, value: object, rater: str, where: str) -> Score:
        """Return `value` as a score on the criterion's scale, or as an answer that may stand in its place.

        Fractions inside the scale are allowed.

        Raises
        ------
        Unknown
            If the rubric has no such criterion.
        OffScale
            If the value is not a number inside the scale. Nothing is clamped.
        """
        if criterion not in self.criteria:
            raise Unknown(
                f"{short(repr(criterion), LONGEST_QUOTED)} by {short(rater)} on {short(where)}: the criteria of {self.name} are "
                + ", ".join(self.criteria)
            )
        allowed, answer = self.answers_of(criterion), WRITTEN.get(str(value).strip().lower())
        if answer in allowed:
            return answer
        try:
            number = float(str(value))
        except ValueError:
            number = float("nan")
        scale = self.scale_of(criterion)
        if not scale.min <= number <= scale.max:
            of = f"{criterion} of {self.name}" if self.is_mixed else self.name
            told = "".join(f" or {answer}" for answer in allowed)
            raise OffScale(
                f"{criterion}={short(str(value), LONGEST_QUOTED)} by {short(rater)} on {short(where)}: "
                f"the scale of {of} is {scale}{told}" + OffScale.hint(str(value))
            )
        return number

    @property
    def word(self) -> question.Word:
        """What a juror writes beside a score."""
        return "evidence" if self.case else "explanation"

    def render(self, card: Card, explanation: Explanation | None = None) -> str:
        """Return the prompt for one card; see `parts`."""
        return self.parts(card, explanation).text

    def parts(self, card: Card, explanation: Explanation | None = None) -> RenderedPrompt:
        """Return the prompt for one card, every placeholder filled in a single pass.

        It is cut where the response begins: what stands before it is the same for all responses
        of an instance. `explanation` is where a juror is to give it; None leaves that to the
        rubric's own words.

        What is inserted is never looked at again: a `{{response}}`, a `$` or a brace
        inside a patient's text stays as it is. Only a tag that the prompt itself uses is
        broken in it, so that no text can end its part or pose as another; see `forged`.
        """
        inserted = {
            name: disarm(text, self.prompt) for name, text in question.card_texts(card).items()
        }
        filled = {
            "reference": NO_REFERENCE,
            "checklist": NO_CHECKLIST,
            "criteria": self.criteria_text(),
            "schema": self.schema_text(explanation),
        } | inserted
        prompt = question.prompt_in_order(self.prompt, explanation)
        begins = min(prompt.index(f"{{{{{name}}}}}") for name in self.rated)
        shared, own = (
            PLACEHOLDER.sub(lambda match: filled[match[1]], piece)
            for piece in (prompt[:begins], prompt[begins:])
        )
        return RenderedPrompt(shared, own)

    def forged(self, card: Card) -> tuple[str, ...]:
        """Return the names of a card's texts that hold a tag of this prompt; `render` breaks the tag.

        Such a text may be innocent, or may try to end its part and to speak to the juror.
        """
        shown = set(PLACEHOLDER.findall(self.prompt))
        texts = question.card_texts(card).items()
        return tuple(name for name, text in texts if name in shown and holds_tag(text, self.prompt))

    def criteria_text(self) -> str:
        """Return the criteria as a juror reads them: name, question, a line for each anchor, guidance.

        Then the examples, in texts whose tags are broken as those of what is rated.
        """
        blocks = []
        for c in self.criterion:
            lines = [f"{point}: {c.anchors[point]}" for point in sorted(c.anchors)]
            lines += [
                f'"{answer}": {question.MEANINGS[answer]}' for answer in self.answers_of(c.name)
            ]
            lines += [f"Mind: {c.guidance}"] if c.guidance else []
            blocks.append("\n".join([f"{c.name}: {c.question}", *lines]))
        for number, example in enumerate(self.example, 1):
            blocks.append(disarm(question.example_text(number, example), self.prompt))
        return "\n\n".join(blocks)

    def schema_text(self, explanation: Explanation | None = None) -> str:
        """Return the form of the answer for a prompt; None keeps the rubric's own order."""
        form = ", ".join(
            question.PARTS[key] for key in question.answer_keys(explanation, self.word)
        )
        rows = ",\n".join(f'  "{name}": {{{form}}}' for name in self.criteria)
        text = f"{{\n{rows}\n}}\n{question.form_text(self)}"
        if explanation is None or question.ORDER_SENTENCES["before"] in self.prompt:
            return text
        return f"{text}\n{question.OVERRIDING_SENTENCES[explanation]}"

    def json_schema(self, explanation: Explanation | None = None) -> dict[str, Any]:
        """Return the answer as a closed JSON Schema, scores as an enumeration of the points."""
        keys = question.answer_keys(explanation, self.word)

        def verdict(name: str) -> dict[str, Any]:
            score: dict[str, Any] = {"type": "integer", "enum": list(self.scale_of(name).points)}
            if allowed := self.answers_of(name):
                score = {"anyOf": [score, {"type": "string", "enum": list(allowed)}]}
            kinds = {self.word: {"type": "string"}, "score": score}
            return {
                "type": "object",
                "properties": {key: kinds[key] for key in keys},
                "required": list(keys),
                "additionalProperties": False,
            }

        return {
            "type": "object",
            "properties": {name: verdict(name) for name in self.criteria},
            "required": list(self.criteria),
            "additionalProperties": False,
        }


def _check_anchors(criterion: Criterion, scale: Scale) -> None:
    """Refuse anchors off the scale, and points without the anchor they need."""
    off = sorted(point for point in criterion.anchors if point not in scale.points)
    if off:
        raise ValueError(f"criterion {criterion.name}: anchor {off[0]} is off the scale {scale}")
    ends = {scale.min, scale.max}
    needed = set(scale.points) if scale.max - scale.min < FULLY_ANCHORED else ends
    bare = sorted(needed - set(criterion.anchors))
    if bare:
        raise ValueError(f"criterion {criterion.name}: point {bare[0]} has no anchor")


def _without(body: dict[str, Any], *empty: Mapping[str, object]) -> dict[str, Any]:
    """Leave out what says nothing: most rubrics have none of it."""
    for absent in empty:
        body = {key: value for key, value in body.items() if value != absent.get(key, ...)}
    return body


def _check_example(example: Example, rubric: Rubric) -> None:
    """Refuse an example that rates other criteria, or off their scales."""
    if set(example.scores) != set(rubric.criteria):
        raise ValueError(f"example: its scores must be of {', '.join(rubric.criteria)}")
    for name, given in example.scores.items():
        scale = rubric.scale_of(name)
        if not given or not all(scale.min <= score <= scale.max for score in given):
            raise ValueError(f"example: its scores must be on the scale {scale}")


def _check_critical(criterion: Criterion, scale: Scale) -> None:
    """Refuse a threshold at which no response, or every response, would be unsafe."""
    points = criterion.critical
    if points is not None and not scale.min <= points < scale.max:
        raise ValueError(
            f"criterion {criterion.name}: critical {points:g} is not on the scale {scale} below its "
            "top; a response scored at it or less is unsafe"
        )


def _check_prompt(prompt: str, gold: Gold, rated: Sequence[str]) -> None:
    """Refuse unknown placeholders, a prompt without what is rated, and gold it must not show."""
    used = set(PLACEHOLDER.findall(prompt))
    others = {"response", "first", "second"} - {*rated}
    unknown = sorted(used - (PLACEHOLDERS - others))
    if unknown:
        raise ValueError(f"prompt: unknown placeholder {{{{{unknown[0]}}}}}")
    if missing := [name for name in rated if name not in used]:
        raise ValueError(f"prompt: {{{{{missing[0]}}}}} is missing")
    if gold == "never" and "reference" in used:
        raise ValueError('prompt: {{reference}} is used although gold = "never"')


def _check_pairs(rubric: Rubric) -> None:
    """Refuse a rubric of pairs with what only single responses have."""
    if rubric.points is not None or rubric.example or rubric.critical:
        raise ValueError('mode: a rubric with "compare" has no points, examples or critical scores')
    if rubric.scale != PREFERENCE or any(one.scale for one in rubric.criterion):
        raise ValueError(f'mode: the scale of "compare" is {PREFERENCE}, 0 where neither is better')
    if any(rubric.answers_of(name) for name in rubric.criteria):
        raise ValueError("mode: on a pair nothing stands in the place of a preference; a tie is 0")


def _check_points(rubric: Rubric) -> None:
    """Refuse a rubric of points that no points of a case could be scored on."""
    if len(rubric.criterion) > 1 or rubric.example or rubric.critical:
        raise ValueError("points: the rubric has one criterion, for the score, and no examples")
    if rubric.scale.max <= 0 or (rubric.scale.min != 0) == (rubric.points == "clipped"):
        raise ValueError(
            "points: a clipped score is on a scale from 0, an unclipped one from below 0"
        )
    if not {"criteria", "schema"} <= set(PLACEHOLDER.findall(rubric.prompt)):
        raise ValueError("prompt: a rubric of points has {{criteria}} and {{schema}}")


def read_rubric(name_or_folder: str | Path) -> Rubric:
    """Read a rubric by the name of one that ships with medjury, or from a folder.

    Raises
    ------
    Unknown
        If there is neither such a folder nor such a name; the message lists the names.
    BadRubric
        If `rubric.toml` or `prompt.txt` is missing or wrong.
    """
    folder = folder_of(name_or_folder)
    try:
        body = read_toml(folder / "rubric.toml")
        if "prompt" in body:
            raise NotToml("prompt: is a file of its own, prompt.txt")
        rubric = Rubric(**body, prompt=(folder / "prompt.txt").read_text("utf-8"))
        for scale in map(rubric.scale_of, rubric.criteria):
            if wide := too_wide(scale.min, scale.max):
                raise NotToml(wide)
        if rubric.case is not None or any(one.worth is not None for one in rubric.criterion):
            raise NotToml("case and worth: medjury writes them itself, from the points of a case")
        return rubric
    except OSError as error:
        why = "is missing" if isinstance(error, FileNotFoundError) else error.strerror
        raise BadRubric(f"rubric {folder}: {Path(str(error.filename)).name} {why}") from error
    except (NotToml, UnicodeDecodeError) as error:
        raise BadRubric(f"rubric {folder}: {error}") from error
    except ValidationError as error:
        raise BadRubric(f"rubric {folder}: {first_complaint(error.errors())}") from error


def low_points(rubric: Rubric) -> tuple[int, ...]:
    """Return the lowest 40 % of the first criterion's points, rounded down, but at least the lowest."""
    points = rubric.scale_of(rubric.criteria[0]).points
    if rubric.case or rubric.compares:  # the answers to a point are no degrees, and no side is low
        return ()
    return tuple(points[: max(1, int(LOW_SHARE * len(points) + 1e-9))])


def first_complaint(problems: Iterable[Mapping[str, Any]]) -> str:
    """Return pydantic's first error as one line; unknown keys come first.

    A misspelt key is both unknown and missing, and only the first says what to change.
    """
    return one_line(_describe_first(problems), LONGEST_COMPLAINT)


def _describe_first(problems: Iterable[Mapping[str, Any]]) -> str:
    ordered = sorted(problems, key=lambda entry: entry["type"] != "extra_forbidden")
    problem = ordered[0]
    key = ".".join(one_line(str(step), 80) for step in problem["loc"])
    if problem["type"] == "extra_forbidden" and key.rpartition(".")[2] in WEIGHTS:
        return (
            f"{key}: every criterion weighs the same in the composite: an agreement published for the "
            "instrument holds for no other weights; for one criterion alone ask with --criterion"
        )
    if problem["type"] == "extra_forbidden":
        return f"{key}: unknown key{_suggested_key(problem['loc'])}"
    if problem["type"] == "string_pattern_mismatch":
        suggestion = (
            NOT_OF_A_NAME.sub("_", str(problem.get("input", "")).strip()).strip("_").lower()
        )
        shown = one_line(str(problem.get("input", "")), 40)
        instead = f"; write {one_line(suggestion, 64)}" if suggestion else ""
        return f"{key}: {shown!r}: a name has letters, digits, _ . - and no blanks{instead}"
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{key}: {message}" if key else message


def missing_from_prompt(prompt: str, criteria: Iterable[str]) -> str:
    """Return which criteria or form a prompt fails to state, or "".

    Prompts of HELM have the criteria and the form of the answer in their own words: a criterion
    counts as named where its name stands in the prompt, a form where the prompt speaks of JSON.
    """
    words = _words_of(prompt)
    lacking = [name for name in criteria if _words_of(name) not in words]
    if "{{criteria}}" not in prompt and lacking:
        return (
            f"prompt: {{{{criteria}}}} is missing, and {', '.join(lacking)} "
            f"{'stands' if len(lacking) == 1 else 'stand'} nowhere in it: "
            "a juror would not know what to rate"
        )
    if "{{schema}}" not in prompt and "json" not in words:
        return (
            "prompt: {{schema}} is missing, and JSON is not spoken of: "
            "a juror would not know how to answer"
        )
    return ""


def too_wide(low: int, high: int) -> str:
    """Return why the scale of a new rubric is too wide, or ""; a stored rubric may be wider."""
    return f"scale: has more than {WIDEST + 1} points" if high - low > WIDEST else ""


def _words_of(text: str) -> str:
    return " ".join(text.lower().replace("_", " ").split())


def _suggested_key(keys: tuple[Any, ...]) -> str:
    """Return a hint with the closest allowed key, or with all of them."""
    tables: dict[str, type[RubricPart]]
    tables = {"scale": Scale, "criterion": Criterion, "example": Example}
    form = tables.get(str(keys[0])) if len(keys) > 1 else Rubric
    names = form.model_fields if form else ()
    allowed = [name for name in names if form is Example or name not in NOT_IN_TOML]
    close = get_close_matches(str(keys[-1]).lower(), allowed, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; the keys here are {', '.join(allowed)}" if allowed else ""


def write_rubrics(out: Path, rubrics: Mapping[str, Rubric]) -> None:
    """Write each rubric as a folder that `read_rubric` reads back the same: all of them, or none.

    Raises
    ------
    BadFile
        If `out` holds something already or cannot be written.
    """
    with new_folder(out, str(out)) as folder:
        for name, rubric in rubrics.items():
            own = folder / name
            own.mkdir()
            for file, text in (("rubric.toml", rubric_toml(rubric)), ("prompt.txt", rubric.prompt)):
                (own / file).write_text(text, encoding="utf-8", newline="\n")


def rubric_toml(rubric: Rubric) -> str:
    """Return a rubric as TOML, without its prompt."""
    names = [*("name", "version", "audience", "gold")]
    names += [name for name in ("parent", "points") if getattr(rubric, name)]
    names += ["mode"] if rubric.compares else []
    head = {name: getattr(rubric, name) for name in names}
    lines = [f"{key} = {_toml_string(value)}" for key, value in head.items()]
    lines += ["", "[scale]", f"min = {rubric.scale.min}", f"max = {rubric.scale.max}"]
    for criterion in rubric.criterion:
        lines += ["", "[[criterion]]", f"name = {_toml_string(criterion.name)}"]
        lines += [f"question = {_toml_string(criterion.question)}"]
        if criterion.scale:
            lines += [f"scale = {{ min = {criterion.scale.min}, max = {criterion.scale.max} }}"]
        lines += [f"{answer} = true" for answer in ANSWERS if getattr(criterion, answer)]
        lines += [] if criterion.critical is None else [f"critical = {criterion.critical!r}"]
        lines += [f"guidance = {_toml_string(criterion.guidance)}"] if criterion.guidance else []
        lines += ["", "[criterion.anchors]"]
        lines += [
            f"{point} = {_toml_string(criterion.anchors[point])}"
            for point in sorted(criterion.anchors)
        ]
    for example in rubric.example:
        lines += ["", "[[example]]", *_example_toml(example)]
    return "\n".join(lines) + "\n"


def _example_toml(example: Example) -> list[str]:
    texts = {name: getattr(example, name) for name in ("context", "prompt", "response", "why")}
    scores = (f"{_toml_string(name)} = {list(given)}" for name, given in example.scores.items())
    lines = [f"{key} = {_toml_string(text)}" for key, text in texts.items()]
    return [*lines, "", "[example.scores]", *scores]


def _toml_string(text: str) -> str:
    """Return a TOML string: JSON's, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
