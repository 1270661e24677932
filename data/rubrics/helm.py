"""HELM's jury prompts as rubrics, read from a HELM wheel, checkout or installation.

HELM's code is read as text and never run. Each benchmark with a jury has a file
`<name>_annotator.py` with a subclass of LLMAsJuryAnnotator. It passes on a prompt template and the
criteria, both literals of that file. The template is kept word for word; only its placeholders take
our form.
"""

import ast
import hashlib
import re
import warnings
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any
from zipfile import Path as ZipPath

from pydantic import ValidationError

from data.errors import BadFile, Unknown
from data.importers.safe import BROKEN
from data.rubric import PLACEHOLDER, Criterion, Gold, Rubric, Scale

# The open-ended benchmarks of MedHELM, by HELM's names; a rubric of ours ships for each.
BENCHMARKS = (
    "aci_bench",
    "chw_care_plan",
    "dischargeme",
    "med_dialog",
    "medalign",
    "medi_qa",
    "medication_qa",
    "mental_health",
    "mimic_bhc",
    "mimic_rrs",
    "mtsamples_procedures",
    "mtsamples_replicate",
    "starr_patient_instructions",
)
OURS = {"QUESTION": "{{context}}", "RESPONSE": "{{response}}", "GOLD_RESPONSE": "{{reference}}"}
# Twice braced up to HELM 0.5.7, once since.
THEIRS = re.compile(
    r"\{\{(QUESTION|RESPONSE|GOLD_RESPONSE)\}\}|\{(QUESTION|RESPONSE|GOLD_RESPONSE)\}"
)
# How a prompt names its scale: HELM's way, else a user's.
SCALES = (
    re.compile(r"scale\s+of\s+(\d{1,4})\s*(?:to|-|\u2013)\s*(\d{1,4})", re.IGNORECASE),
    re.compile(
        r"\b(?:from|between)\s+(\d{1,4})\b[^.\n\d]{0,60}?\b(?:to|and)\s+(\d{1,4})\b", re.IGNORECASE
    ),
)
POINT = re.compile(r"[(,;]\s*(\d{1,4})\s*=\s*([^,;()]+)|\b(\d{1,4})\s+\(([^()\n=]+)\)")
COMPARED = re.compile(r"compared?\b[^.<]*<gold\w*>([^.]*)\.", re.IGNORECASE)
IF_NEEDED = re.compile(r"\b(?:when|where|if)(?:ever)?\s+(?:needed|necessary)\b", re.IGNORECASE)
UNDESCRIBED = (
    "HELM has no words for this point; its prompt, which jurors read verbatim, holds all it says"
)
AUDIENCE = "the readers named in HELM's own prompt"
WIDEST = 100  # points of a scale
ANNOTATORS = ("benchmark", "annotation")
ROOTS = (("helm",), ("src", "helm"), ())  # installed or a wheel; a checkout; the package itself
INSTALLED = re.compile(r"(crfm_helm|medhelm)-(\w[\w.!+]*)\.dist-info")
CHECKOUT = re.compile(
    r'^name\s*=\s*"?crfm-helm\b[^\[]*?^version\s*=\s*"?(\w[\w.!+]*)', re.MULTILINE
)
JURY = "LLMAsJuryAnnotator"
ENDING = "_annotator.py"
BENCHMARK_NAME = re.compile(r"\w[\w.-]{0,48}")
WORDS = ("name", "prompt_template", "annotation_criteria")
ASKED = {"score", "explanation"}
LONGEST = 2_000_000  # bytes of one source file


class Unusable(ValueError):
    """A prompt that cannot be taken, with the reason."""


def rubric_of(name: str, template: str, criteria: list[str], release: str) -> Rubric:
    """Return the rubric that puts HELM's prompt, word for word, to a juror."""
    low, high = _scale_of(template)
    prompt = our_prompt(template)
    anchors = _anchors(template, low, high)
    return Rubric(
        name=f"helm_{name}",
        version=version_of(template, release),
        audience=AUDIENCE,
        gold=gold_of(prompt),
        scale=Scale(min=low, max=high),
        criterion=tuple(
            Criterion(name=criterion, question=_question(template, criterion), anchors=anchors)
            for criterion in criteria
        ),
        prompt=prompt,
    )


def _scale_of(template: str) -> tuple[int, int]:
    """Return the two ends of the one scale that a prompt names."""
    named = (set(scale.findall(template)) for scale in SCALES)
    ends = next((found for found in named if found), set())
    if len(ends) != 1:
        what = "more than one scale" if ends else "no scale"
        raise Unusable(
            f"its prompt names {what}; name its rubric, with the same prompt, with --rubric"
        )
    low, high = map(int, ends.pop())
    return low, high


def our_prompt(template: str) -> str:
    """Return a template with HELM's placeholders in our form, or refuse one with others."""
    if PLACEHOLDER.search(THEIRS.sub("", template)):
        raise Unusable("its prompt holds a placeholder that is not HELM's")
    return THEIRS.sub(lambda match: OURS[match[1] or match[2]], template)


def version_of(template: str, release: str) -> str:
    """Return the version of the rubric of a template: the release and the template's digest."""
    return f"{release}, prompt sha256 {hashlib.sha256(template.encode()).hexdigest()}"


def gold_of(prompt: str) -> Gold:
    """Return when a prompt uses the reference: never, always, or when needed."""
    if "{{reference}}" not in prompt:
        return "never"
    compared = COMPARED.search(prompt)
    return "when_needed" if compared is None or IF_NEEDED.search(compared[1]) else "always"


def _anchors(template: str, low: int, high: int) -> dict[int, str]:
    """Return the anchors that a prompt gives; HELM's describe the two ends, for all criteria."""
    if not 0 < high - low < WIDEST:
        raise Unusable(f"its prompt names the scale {low}-{high}")
    words_of = {int(a or b): " ".join((x or y).split()) for a, x, b, y in POINT.findall(template)}
    return {point: words_of.get(point, UNDESCRIBED) for point in range(low, high + 1)}


def _question(template: str, criterion: str) -> str:
    """Return the lines under the criterion's heading, else a pointer to the prompt."""
    word = re.escape(criterion).replace("_", "[ _]")
    heading = rf"^[ \t]*{word}[ \t]*\([^()\n]*\):?[ \t]*\n((?:.*\S.*(?:\n|\Z))+)"
    match = re.search(heading, template, re.IGNORECASE | re.MULTILINE)
    if match is None:
        line = re.search(
            rf"^\W*{word}\W*?\s*[:\u2013-]\s*(\w[^\n]+)$", template, re.IGNORECASE | re.MULTILINE
        )
        return line[1].strip() if line else f"{criterion}, as HELM's prompt puts it"
    lines = (line.strip().removeprefix("-").strip() for line in match[1].splitlines())
    return " ".join(lines)


@dataclass(frozen=True, slots=True)
class HelmRubrics:
    """HELM's rubrics by benchmark, its release, and why other benchmarks have none."""

    release: str
    rubrics: dict[str, Rubric]
    refused: dict[str, str]


def read_helm(path_or_name: str) -> HelmRubrics:
    """Read the jury prompts of a HELM wheel, checkout, package folder or installed distribution.

    Returns
    -------
    HelmRubrics
        At least one rubric. `refused` holds each of the 13 open-ended benchmarks of MedHELM that
        is not there, and each annotator that could not be read, with the reason.

    Raises
    ------
    Unknown
        If there is neither such a path nor such an installed distribution.
    BadFile
        If it is no HELM, or a HELM without a jury.
    """
    try:
        root = _helm_root(path_or_name)
        annotators = _annotators(root)
        release = _release(root)
    except (*BROKEN, Unusable) as error:
        raise BadFile(f"{path_or_name}: cannot be read as a wheel or a folder") from error
    if not annotators:
        raise BadFile(f"{path_or_name}: no HELM: there is no helm/{'/'.join(ANNOTATORS)} in it")
    rubrics, refused = _read_annotators(annotators, release)
    if not rubrics:
        raise BadFile(
            f"{path_or_name}: no jury prompt can be read from it; HELM has them since 0.5.5"
        )
    lacking = dict.fromkeys(sorted(set(BENCHMARKS) - set(rubrics)), "not in this release")
    return HelmRubrics(release, rubrics, lacking | refused)


def is_helm_source(path_or_name: str) -> bool:
    """Tell whether a folder has HELM's annotators in it."""
    path = Path(path_or_name)
    return path.is_dir() and _annotation_folder(path) is not None


def _read_annotators(
    annotators: list[Traversable], release: str
) -> tuple[dict[str, Rubric], dict[str, str]]:
    """Return the rubrics of the annotators that use a jury, and why some have none."""
    rubrics: dict[str, Rubric] = {}
    refused: dict[str, str] = {}
    for file in annotators:
        name = file.name.removesuffix(ENDING)
        try:
            source = _source_text(file)
            if JURY not in source:
                continue
            name, rubric = _annotator_rubric(name, source, release)
        except Unusable as reason:
            refused[name] = str(reason)
            continue
        if name in rubrics:
            refused[file.name] = f"{name} is there already"
        rubrics.setdefault(name, rubric)
    return rubrics, refused


def _helm_root(path_or_name: str) -> Traversable:
    """Return the folder or wheel of a path or an installed distribution."""
    path = Path(path_or_name)
    if path.is_dir():
        return path.resolve()
    if path.is_file():
        return ZipPath(path)
    try:
        return Path(str(distribution(path_or_name).locate_file("")))
    except (PackageNotFoundError, ValueError) as error:
        raise Unknown(
            f"{path_or_name!r}: neither a wheel, a folder nor an installed package; get a wheel "
            "with `pip download crfm-helm --no-deps`"
        ) from error


def _annotation_folder(root: Traversable) -> Traversable | None:
    """Return the folder of the annotators, of an installation, a checkout or the package itself."""
    folders = (root.joinpath(*inner, *ANNOTATORS) for inner in ROOTS)
    return next((folder for folder in folders if folder.is_dir()), None)


def _annotators(root: Traversable) -> list[Traversable]:
    """Return the annotators' files in order of their names; none where it is no HELM."""
    folder = _annotation_folder(root)
    files = folder.iterdir() if folder else ()
    return sorted(
        (file for file in files if file.name.endswith(ENDING)), key=lambda file: file.name
    )


def _release(root: Traversable) -> str:
    """Return the distribution's name and version, as far as the files beside the code say."""
    around = [root]
    if isinstance(root, Path) and root.joinpath(*ANNOTATORS).is_dir():
        around += root.parents[:2]  # the package itself was named
    for folder in around:
        for entry in folder.iterdir():
            if match := INSTALLED.fullmatch(entry.name):
                return f"{match[1].replace('_', '-')} {match[2]}"
        for name in ("pyproject.toml", "setup.cfg"):
            file = folder.joinpath(name)
            if file.is_file() and (match := CHECKOUT.search(_source_text(file))):
                return f"crfm-helm {match[1]}"
    return "HELM of unknown version"


def _source_text(file: Traversable) -> str:
    try:
        with file.open("rb") as stream:
            raw = stream.read(LONGEST + 1)
        text = raw.decode("utf-8") if len(raw) <= LONGEST else None
    except BROKEN as error:
        raise Unusable("the file cannot be read as text") from error
    if text is None:
        raise Unusable(f"longer than {LONGEST} bytes")
    return text


def _annotator_rubric(name: str, source: str, release: str) -> tuple[str, Rubric]:
    """Return the benchmark's name and its rubric."""
    arguments = _jury_arguments(source)
    name = arguments.get("name", name)
    template, criteria = arguments.get("prompt_template"), arguments.get("annotation_criteria")
    if not isinstance(name, str) or not BENCHMARK_NAME.fullmatch(name):
        raise Unusable("its name is no plain word")
    if not isinstance(template, str):
        raise Unusable("its prompt template is no literal text")
    if not isinstance(criteria, dict) or not criteria:
        raise Unusable("its criteria are no literal")
    if any(not isinstance(keys, set) or keys != ASKED for keys in criteria.values()):
        raise Unusable("it asks for something else than a score and an explanation")
    try:
        return name, rubric_of(name, template, [str(criterion) for criterion in criteria], release)
    except (ValidationError, UnicodeEncodeError) as error:
        raise Unusable("its prompt or its criteria cannot be a rubric") from error


def _jury_arguments(source: str) -> dict[str, Any]:
    """Return the literals that the jury's subclass passes to it, by keyword."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unusable("not Python source") from error
    classes = (statement for statement in tree.body if isinstance(statement, ast.ClassDef))
    jury = next((class_ for class_ in classes if JURY in map(ast.unparse, class_.bases)), None)
    if jury is None:
        raise Unusable(f"no class in it is a {JURY}")
    constants = _literals(tree.body)
    calls = (node for node in ast.walk(jury) if isinstance(node, ast.Call))
    arguments = {
        word.arg: word.value for call in calls for word in call.keywords if word.arg in WORDS
    }
    read = {
        str(word): constants.get(value.id) if isinstance(value, ast.Name) else _literal(value)
        for word, value in arguments.items()
    }
    return {key: value for key, value in _literals(jury.body).items() if key in WORDS} | read


def _literals(body: list[ast.stmt]) -> dict[str, Any]:
    """Return the literals that statements assign, by name."""
    literals: dict[str, Any] = {}
    for statement in body:
        if isinstance(statement, ast.Assign):
            literals |= {ast.unparse(name): _literal(statement.value) for name in statement.targets}
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            literals[ast.unparse(statement.target)] = _literal(statement.value)
    return literals


def _literal(value: ast.expr) -> Any:
    """Return the value of a literal, None for any other expression."""
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
