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
            "response": f"{ODD[(number + writer) % len(ODD)]} Plan {number} of writer {writer}.",
        }
        for number in range(100)
        for writer, model in enumerate(MODELS)
    ]


def csv_text(table: Iterable[Row], delimiter: str = ",") -> str:
    return pd.DataFrame(list(table)).to_csv(index=False, sep=delimiter, lineterminator="\n")


def lines(values: Iterable[Any]) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def tables(folder: Path) -> dict[str, Path]:
    """Write the rows in every format of tables; return name -> file."""
    table = rows()
    text = csv_text(table)
    files: dict[str, bytes] = {
        "r.csv": text.encode(),
        "mark.csv": b"\xef\xbb\xbf" + text.encode(),
        "utf16.csv": text.encode("utf-16"),
        "semicolons.csv": csv_text(table, ";").encode(),
        "tabs.tsv": csv_text(table, "\t").encode(),
        "r.csv.gz": gzip.compress(text.encode()),
        "r.json": json.dumps(table, indent=1, ensure_ascii=False).encode(),
        "r.jsonl": lines(table).encode(),
        "r.jsonl.gz": gzip.compress(lines(table).encode()),
        "named_wrongly.dat": json.dumps(table).encode(),
        "r.parquet": pd.DataFrame(table).to_parquet(),
        "r.xlsx": workbook(table),
    }
    for name, body in files.items():
        (folder / name).write_bytes(body)
    return {name: folder / name for name in files}


def workbook(table: list[Row], change: Callable[[Any], None] = lambda _: None) -> bytes:
    """Return rows as a workbook; `change` is called with its sheet."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(list(table[0]))
    for number, row in enumerate(table, start=2):
        for column, value in enumerate(row.values(), start=1):
            cell = sheet.cell(number, column)
            cell.value = value
            cell.data_type = "s"  # a text that begins with = is no formula
    change(sheet)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def lm_eval(folder: Path) -> list[Path]:
    """Write a folder for each model, as `lm_eval --log_samples --output_path` does."""
    paths = []
    for model in MODELS:
        own = folder / "lm" / model.replace("/", "__")
        own.mkdir(parents=True)
        path = own / "samples_triage_2026-05-31T14-00-00.123456.jsonl"
        paths.append(path)
        samples = [
            {
                "doc_id": row["instance_id"],
                "doc": {"question": row["context"], "tags": ["a", "b"]},
                "target": row["reference"],
                "arguments": {
                    "gen_args_0": {"arg_0": row["context"], "arg_1": {"until": ["\n\n"]}}
                },
                "resps": [[row["response"]]],
                "filtered_resps": [row["response"]],
                "filter": filter_name,
                "metrics": ["exact_match"],
                **{f"{name}_hash": name[0] * 64 for name in ("doc", "prompt", "target")},
                "exact_match": float(row["instance_id"] < "case-050"),
            }
            for row in rows()
            if row["model"] == model
            for filter_name in ("strict-match", "flexible-extract")
        ]
        path.write_text(lines(samples), "utf-8")
    return paths


def label_studio(folder: Path) -> list[Path]:
    """Write an export of tasks, one a response, each annotated twice."""
    path = folder / "label_studio.json"
    ours = ("instance_id", "benchmark", "context", "reference", "model", "response")
    theirs = ("case_id", "dataset", "source", "gold", "llm", "answer")
    tasks = [
        {
            "id": number,
            "annotations": [_annotation(number, who) for who in (3, 4)],
            "predictions": [],
            "data": {name: row[own] for name, own in zip(theirs, ours, strict=True)},
            "project": 1,
        }
        for number, row in enumerate(rows(), start=1)
    ]
    path.write_text(json.dumps(tasks, indent=2, ensure_ascii=False), "utf-8")
    return [path]


def _annotation(task: int, annotator: int) -> dict[str, Any]:
    def result(key: str, name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
        own = {"id": f"{key}{task}{annotator}", "from_name": name, "to_name": "answer"}
        return own | {"type": kind, "origin": "manual", "value": value}

    email = "dr.secret@hospital.example"
    scores = [
        result("x", name, "rating", {"rating": 1 + (task + annotator + column) % 5})
        for column, name in enumerate(("accuracy", "completeness", "clarity"))
    ]
    return {
        "id": 1000 + 10 * task + annotator,
        "completed_by": {"id": annotator, "email": email, "first_name": "Sec"},
        "result": [*scores, result("t", "why", "textarea", {"text": ["seen"]})],
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2026-05-31T14:00:00.000000Z",
        "lead_time": 12.5,
    }


def healthbench_results(folder: Path) -> list[Path]:
    """Write what simple-evals writes for each model."""
    graded = {"criterion": "Says when to come back", "points": 5, "tags": ["level:example"]}
    graded |= {"criteria_met": True, "explanation": "It does."}
    paths = []
    for writer, model in enumerate(MODELS):
        paths.append(folder / f"healthbench_{writer}_allresults.json")
        examples = [
            {
                "score": 0.25,
                "usage": {"input_tokens": None},
                "rubric_items": [graded],
                "prompt": [{"role": "user", "content": row["context"]}],
                "completion": [{"content": row["response"], "role": "assistant"}],
                "prompt_id": row["instance_id"],
                "completion_id": "c",
            }
            for row in rows()
            if row["model"] == model
        ]
        body = {"score": 0.25, "metrics": {}, "htmls": [], "convos": []}
        metadata = {"example_level_metadata": examples}
        paths[-1].write_text(json.dumps(body | {"metadata": metadata}, indent=2), "utf-8")
    return paths
