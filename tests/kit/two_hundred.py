"""Two hundred responses with odd texts, and the files in which each tool would hold them.

Each writer gives the tool's exact shape, as its own writer makes it (lm_eval 0.4.13, the schema
instance_level_eval_0.2.2 of Every Eval Ever, the JSON export of label_studio_sdk 2.1.2, simple-evals'
HealthBench); the texts are ours.
"""

import gzip
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd

Row = dict[str, str]

MODELS = ("acme/writer-a", "acme/writer-b")

ODD = [
    "=1+1",
    "- no fever",
    "@ward",
    "a, b; c",
    'he said "no"',
    "two\nlines",
    "Grüße 37 °C",
    "日本",
]


def rows() -> list[Row]:
    """Return 100 instances with a response each of two models."""
    return [
        {
            "instance_id": f"case-{number:03d}",
            "benchmark": "triage",
            "context": f"Visit {number}. {ODD[number % len(ODD)]} Patient says it hurts.",
            "reference": f"Gold {number} {ODD[(number + 3) % len(ODD)]}",
            "model": model,
            "response": f"{ODD[(number + place) % len(ODD)]} Plan {number} of writer {place}.",
        }
        for number in range(100)
        for place, model in enumerate(MODELS)
    ]


def csv_text(given: Iterable[Row], delimiter: str = ",") -> str:
    """Return rows as CSV."""
    return pd.DataFrame(list(given)).to_csv(index=False, sep=delimiter, lineterminator="\n")


def lines(given: Iterable[Any]) -> str:
    """Return values as JSON Lines."""
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in given)


def tables(folder: Path) -> dict[str, Path]:
    """Write the rows in every format of tables; return name -> file."""
    given = rows()
    text = csv_text(given)
    found: dict[str, bytes] = {
        "r.csv": text.encode(),
        "mark.csv": b"\xef\xbb\xbf" + text.encode(),
        "utf16.csv": text.encode("utf-16"),
        "semicolons.csv": csv_text(given, ";").encode(),
        "tabs.tsv": csv_text(given, "\t").encode(),
        "r.csv.gz": gzip.compress(text.encode()),
        "r.json": json.dumps(given, indent=1, ensure_ascii=False).encode(),
        "r.jsonl": lines(given).encode(),
        "r.jsonl.gz": gzip.compress(lines(given).encode()),
        "named_wrongly.dat": json.dumps(given).encode(),
        "r.parquet": _parquet(given),
        "r.xlsx": workbook(given),
    }
    for name, body in found.items():
        (folder / name).write_bytes(body)
    return {name: folder / name for name in found}


def _parquet(given: list[Row]) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(given).to_parquet(buffer)
    return buffer.getvalue()


def workbook(given: list[Row], change: Callable[[Any], None] = lambda _: None) -> bytes:
    """Return rows as a workbook; `change` is called with its sheet."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(list(given[0]))
    for number, one in enumerate(given, start=2):
        for place, value in enumerate(one.values(), start=1):
            cell = sheet.cell(number, place)
            cell.value = value
            cell.data_type = "s"  # a text that begins with = is no formula
    change(sheet)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def lm_eval(folder: Path) -> list[Path]:
    """Write a folder for each model, as `lm_eval --log_samples --output_path` does."""
    found = []
    for model in MODELS:
        own = folder / "lm" / model.replace("/", "__")
        own.mkdir(parents=True)
        path = own / "samples_triage_2026-05-31T14-00-00.123456.jsonl"
        samples = [
            {
                "doc_id": one["instance_id"],
                "doc": {"question": one["context"], "tags": ["a", "b"]},
                "target": one["reference"],
                "arguments": {
                    "gen_args_0": {"arg_0": one["context"], "arg_1": {"until": ["\n\n"]}}
                },
                "resps": [[one["response"]]],
                "filtered_resps": [one["response"]],
                "filter": kept,
                "metrics": ["exact_match"],
                "doc_hash": "d" * 64,
                "prompt_hash": "p" * 64,
                "target_hash": "t" * 64,
                "exact_match": float(one["instance_id"] < "case-050"),
            }
            for one in rows()
            if one["model"] == model
            for kept in ("strict-match", "flexible-extract")
        ]
        path.write_text(lines(samples), "utf-8")
        found.append(path)
    return found


def every_eval_ever(folder: Path) -> list[Path]:
    """Write a file of the schema's single evaluations."""
    path = folder / "eee.jsonl"
    samples = [
        {
            "schema_version": "instance_level_eval_0.2.2",
            "evaluation_id": f"triage/{one['model']}/1748700000",
            "model_id": one["model"],
            "evaluation_name": "triage",
            "sample_id": one["instance_id"],
            "interaction_type": "single_turn",
            "input": {"raw": one["context"], "reference": [one["reference"]]},
            "output": {"raw": [one["response"]]},
            "messages": None,
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": one["response"],
                    "extraction_method": "llm_judge",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": 0.5, "is_correct": False},
        }
        for one in rows()
    ]
    path.write_text(lines(samples), "utf-8")
    return [path]


def label_studio(folder: Path) -> list[Path]:
    """Write an export of tasks, one a response, each annotated twice."""
    path = folder / "label_studio.json"
    tasks = [
        {
            "id": number,
            "annotations": [_annotation(number, who) for who in (3, 4)],
            "predictions": [],
            "data": {
                "case_id": one["instance_id"],
                "dataset": one["benchmark"],
                "source": one["context"],
                "gold": one["reference"],
                "llm": one["model"],
                "answer": one["response"],
            },
            "project": 1,
        }
        for number, one in enumerate(rows(), start=1)
    ]
    path.write_text(json.dumps(tasks, indent=2, ensure_ascii=False), "utf-8")
    return [path]


def _annotation(task: int, who: int) -> dict[str, Any]:
    found = [
        {
            "id": f"x{task}{who}",
            "from_name": name,
            "to_name": "answer",
            "type": "rating",
            "origin": "manual",
            "value": {"rating": 1 + (task + who + place) % 5},
        }
        for place, name in enumerate(("accuracy", "completeness", "clarity"))
    ]
    note = {
        "id": f"t{task}{who}",
        "from_name": "why",
        "to_name": "answer",
        "type": "textarea",
        "origin": "manual",
        "value": {"text": ["seen"]},
    }
    return {
        "id": 1000 + 10 * task + who,
        "completed_by": {"id": who, "email": "dr.secret@hospital.example", "first_name": "Sec"},
        "result": [*found, note],
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2026-05-31T14:00:00.000000Z",
        "lead_time": 12.5,
    }


def healthbench_results(folder: Path) -> list[Path]:
    """Write what simple-evals writes for each model."""
    found = []
    for place, model in enumerate(MODELS):
        path = folder / f"healthbench_{place}_allresults.json"
        examples = [
            {
                "score": 0.25,
                "usage": {"input_tokens": None},
                "rubric_items": [
                    {
                        "criterion": "Says when to come back",
                        "points": 5,
                        "tags": ["level:example"],
                        "criteria_met": True,
                        "explanation": "It does.",
                    }
                ],
                "prompt": [{"role": "user", "content": one["context"]}],
                "completion": [{"content": one["response"], "role": "assistant"}],
                "prompt_id": one["instance_id"],
                "completion_id": "c",
            }
            for one in rows()
            if one["model"] == model
        ]
        body = {"score": 0.25, "metrics": {}, "htmls": [], "convos": []}
        metadata = {"example_level_metadata": examples}
        path.write_text(json.dumps(body | {"metadata": metadata}, indent=2), "utf-8")
        found.append(path)
    return found


def potato(folder: Path, ids: Iterable[str]) -> Path:
    """Write the folder that Potato keeps of two annotators; `ids` are those in its data file."""
    known = list(ids)
    for who in ("dr_a", "dr_b"):
        own = folder / "annotation_output" / who
        own.mkdir(parents=True)
        labels = {
            key: [
                *(
                    [{"schema": name, "name": str(point)}, str(point)]
                    for name, point in points(key)
                ),
                [{"schema": "why", "name": "text_box"}, "seen"],
            ]
            for key in known
        }
        state = {"user_id": who, "instance_id_ordering": known, "current_instance_index": 0}
        body = state | {"instance_id_to_label_to_value": labels}
        (own / "user_state.json").write_text(json.dumps(body, indent=2), "utf-8")
    return folder / "annotation_output"


def points(key: str) -> list[tuple[str, int]]:
    """Return the scores that an annotator gives a response."""
    names = ("accuracy", "completeness", "clarity")
    return [(name, 1 + (sum(key.encode()) + place) % 5) for place, name in enumerate(names)]
