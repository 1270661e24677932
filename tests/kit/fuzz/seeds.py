"""What the readers begin with: small files as our own exporters and tests write them; made up."""

import csv
import io
import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from data.database import open_study
from data.importers.ratings import RatingFile
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import rubric_toml
from data.study.package import write_package
from data.study.ratings import import_ratings
from data.study.responses import import_responses
from jury.panel import FOLDER
from kit.fuzz.readers import CANARY, CUT, GENERIC
from kit.imported_runs import run_folder, state

TESTS = Path(__file__).parents[2]
CRASHES = TESTS / "fixtures" / "crashes"
RESPONSES = [
    {
        "instance_id": f"i{n}",
        "benchmark": "visits",
        "context": f"{CANARY} {n}",
        "prompt": f"Write. {CANARY}",
        "reference": f"{CANARY} r" if n == 1 else "",
        "response_id": f"r{n}{m}",
        "model": f"model-{m}",
        "response": f"{CANARY} said {m}",
    }
    for n in (1, 2)
    for m in (1, 2)
]
DESCRIPTION = CUT.join(
    [
        b'title = "Notes"\npurpose = """Why"""\nconsent_file = "consent.md"\nguideline = ["page.md"]\n',
        b"I **agree**, see [the form](https://h.example).\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n",
        b"# Scores\n\n1. ![x](https://h.example/x.png) <b>5</b>\n\n```\ncode\n```\n> said\n",
    ]
)
RATINGS = [
    {
        "response_id": one["response_id"],
        "rater": rater,
        "kind": kind,
        "criterion": criterion,
        "score": 1 + number % 5,
        "comment": CANARY,
        "rated_at": "2026-05-31T14:00:00+02:00",
        "pass": 0,
        "replicate": 0,
    }
    for number, one in enumerate(RESPONSES)
    for rater, kind in (("dr_a", "clinician"), ("j1", "juror"))
    for criterion in GENERIC.criteria
]
WIDE = [
    {"response_id": one["response_id"], "rater": "dr_b", "kind": "clinician"}
    | dict.fromkeys(GENERIC.criteria, 4.5)
    for one in RESPONSES
]
PANEL = """name = "two"
rubric = "generic"
[[juror]]
name = "a"
provider = "openai"
model = "m"
family = "f"
base_url = "http://127.0.0.1:8000/v1"
api_key_env = "A_KEY"
temperature = 0.5
max_tokens = 100
effort = "low"
schema = "auto"
usd_per_million_in = 1.5
usd_per_million_out = 2.0
retires = 2030-01-31
"""
ANNOTATOR = '''from x import LLMAsJuryAnnotator
PROMPT = """Rate on a scale of 1 to 5 (1 = poor, 5 = good).
<question>{QUESTION}</question><response>{RESPONSE}</response>
<gold_response>{GOLD_RESPONSE}</gold_response>
Accuracy (1-5)
- Is it right?
"""
CRITERIA = {"accuracy": {"score", "explanation"}}
class Tiny(LLMAsJuryAnnotator):
    name = "tiny"
    def __init__(self):
        super().__init__(prompt_template=PROMPT, annotation_criteria=CRITERIA)
'''


def table(rows: list[dict[str, object]], delimiter: str = ",") -> bytes:
    to = io.StringIO(newline="")
    writer = csv.DictWriter(to, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return to.getvalue().encode()


def lines(rows: list[dict[str, object]]) -> bytes:
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in rows).encode()


@cache
def whole_package() -> bytes:
    """Return a small study as `medjury share export --package` writes it, its authors included."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine = open_study(f"sqlite:///{folder / 'study.db'}", create=True)
        (folder / "responses.csv").write_bytes(table(RESPONSES))
        (folder / "ratings.csv").write_bytes(table(RATINGS))
        import_responses(
            engine, ResponseFile(TableFile(folder / "responses.csv")), lambda _: GENERIC
        )
        import_ratings(engine, RatingFile(TableFile(folder / "ratings.csv")))
        write_package(engine, folder / "study.zip", "with", [])
        engine.dispose()
        return (folder / "study.zip").read_bytes()


def database_of_the_package() -> bytes:
    with zipfile.ZipFile(io.BytesIO(whole_package())) as archive:
        return archive.read("study.db")


def helm_run() -> bytes:
    with tempfile.TemporaryDirectory() as name:
        said = {"gpt": {c: {"score": 4, "explanation": CANARY} for c in ("accuracy", "clarity")}}
        folder = run_folder(Path(name), [state(1, response=CANARY), state(2, said)])
        files = ("run_spec.json", "scenario_state.json", "per_instance_stats.json", "stats.json")
        return CUT.join((folder / one).read_bytes() for one in files)


def verdict(score: object) -> bytes:
    found = {name: {"explanation": CANARY, "score": score} for name in GENERIC.criteria}
    return json.dumps(found).encode()


def helm_wheel() -> bytes:
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("helm/benchmark/annotation/tiny_annotator.py", ANNOTATOR)
        archive.writestr("crfm_helm-0.5.9.dist-info/METADATA", "Name: crfm-helm")
    return to.getvalue()


def redcap_export() -> bytes:
    form = [f"r1_{one}" for one in GENERIC.criteria]
    head = {"record_id": "1", "mj_code": "code1", "mj_rater": "dr", "mj_rubric": "x"}
    rows = [
        head | {"record_id": n, "mj_code": f"code{n}"} | dict.fromkeys(form, 3)
        | {"r1_comment": CANARY, "rate_generic_timestamp": "2026-05-31 14:00:00"}
        | {"rate_generic_complete": 2}
        for n in (1, 2)
    ]  # fmt: skip
    return table(rows)


def seeds() -> dict[str, list[bytes]]:
    """Return reader -> files to begin with, and those that once broke it."""
    return {name: own + crashes(name) for name, own in made().items()}


def made() -> dict[str, list[bytes]]:
    """Return reader -> whole files of its kind."""
    named = {
        "username": "dr",
        "instance_id": "i1",
        "dataset_name": "visits",
        "model_key": "model-1",
    }
    medhelm = [named | dict.fromkeys(GENERIC.criteria, 4) | {"llm_accuracy": 3.5, "llm_completeness": 3, "llm_clarity": 3}]  # fmt: skip
    logs = TESTS / "fixtures" / "inspect"
    expert = [{"response_id": "r11", "why": CANARY} | dict.fromkeys(GENERIC.criteria, 3)]
    both = rubric_toml(GENERIC).encode() + CUT + GENERIC.prompt.encode()
    return {
        "responses.csv": [table(RESPONSES), table(RESPONSES, ";").decode().encode("utf-16")],
        "responses.jsonl": [lines(RESPONSES)],
        "ratings.csv": [table(RATINGS), table(WIDE, "\t")],
        "ratings.jsonl": [lines(RATINGS), lines(WIDE)],
        "experts": [table(expert)],
        "medhelm": [table(medhelm)],
        "redcap": [redcap_export()],
        "helm": [helm_run()],
        "inspect.json": [(logs / "note_a.json").read_bytes()],
        "inspect.eval": [(logs / one).read_bytes() for one in ("note_a.eval", "jury.eval")],
        "package": [whole_package()],
        "database_of_package": [database_of_the_package()],
        "rubric": [both],
        "helm_rubrics": [ANNOTATOR.encode()],
        "wheel": [helm_wheel()],
        "panel": [PANEL.encode(), (FOLDER / "current.toml").read_bytes()],
        "description": [DESCRIPTION],
        "answer": [verdict(4), b"```json\n" + verdict("5") + b"\n```", verdict(4.5)],
        "costs.csv": [b"model,usd\nmodel-1,2.5\n"],
        "costs.toml": [b'model-1 = 2.5\n"a/b" = 3\n'],
        "raters": [b"dr_a\ndr_b\n"],
        "bundle": [b'{"format": "medjury-bundle", "format_version": 1, "rubric": {}}'],
    }


def crashes(reader: str) -> list[bytes]:
    """Return the inputs that once broke a reader."""
    return [path.read_bytes() for path in sorted((CRASHES / reader).glob("*"))]
