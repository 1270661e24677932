"""Record what HELM's own metrics say of made answers: what the tests of closed-ended metrics compare with.

    uv venv helm-venv && uv pip install --python helm-venv/bin/python crfm-helm==0.5.16
    helm-venv/bin/python benchmarks/helm_closed_ended.py > tests/fixtures/helm_closed_ended.json

Needs HELM and nothing of medjury. The answers are made by a fixed seed, odd ones among them.
"""

import itertools
import json
import random
import sqlite3
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nltk

nltk.download = lambda *_, **__: True  # word lists that these metrics do not read

from helm.benchmark.annotation import ehr_sql_annotator  # noqa: E402
from helm.benchmark.metrics import evaluate_reference_metrics as matching  # noqa: E402
from helm.benchmark.metrics.classification_metrics import ClassificationMetric  # noqa: E402
from helm.benchmark.metrics.ehr_sql_metrics import EhrSqlMetric  # noqa: E402
from helm.benchmark.metrics.medcalc_bench_metrics import MedCalcBenchMetric  # noqa: E402
from helm.benchmark.metrics.medec_metrics import MedecMetric  # noqa: E402
from helm.benchmark.metrics.mimiciv_billing_code_metrics import (  # noqa: E402
    MIMICIVBillingCodeMetric,
)

DRAW = random.Random(20261125)
KEYS = ["B", "yes", "The aorta", "a an the", "2.5", "1,200 mg", "E. coli", "Sjögren's", "", "no"]
ODD = [
    "",
    " ",
    "\n",
    "...",
    "the",
    "ÄÖ ß",
    "½",
    "\u00a0B",
    "B\u2019",
    "-7",
    "yes yes",
    "1.200",
    "12,00.5",
    "*B*",
]
WRAPS = [
    "{}",
    " {} ",
    "{}.",
    "{}, because",
    "the {}",
    "Answer: {}",
    "{}\n{}",
    "({})",
    "**{}**",
    "{}s",
]
SCHEMA = """create table patient (id integer, name text, age real);
insert into patient values (1, 'Ann', 61.5), (2, 'Bo', 40), (3, 'Cy', null), (3, 'Cy', null);
create table empty (id integer);"""


@dataclass
class Text:
    """A text as HELM's outputs have it."""

    text: str
    logprob: float = 0.0


@dataclass
class Reference:
    """A reference with its tags."""

    output: Text
    tags: list[str] = field(default_factory=lambda: ["correct"])


def state(answer: str, keys: list[str], **extra: Any) -> SimpleNamespace:
    """Return a request state, as far as the metrics read one."""
    references = [Reference(Text(key)) for key in keys]
    return SimpleNamespace(
        instance=SimpleNamespace(
            references=references, all_correct_references=references, extra_data=extra or None
        ),
        result=SimpleNamespace(completions=[Text(answer)]),
        reference_index=None,
        request_mode=None,
        output_mapping=None,
        annotations=None,
    )


def figures(metric: Any, given: SimpleNamespace) -> dict[str, float]:
    """Return the figures of one answer by name."""
    return {stat.name.name: stat.sum for stat in metric.evaluate_generation(None, given, None, "")}


def answers_to(key: str, count: int) -> list[str]:
    """Return answers near a key, and some that are odd."""
    others = [DRAW.choice(WRAPS).format(text, text) for text in DRAW.choices([key, *KEYS], k=count)]
    return [*others, *(text.upper() for text in others[:3]), *DRAW.sample(ODD, 4)]


def matches() -> list[dict[str, Any]]:
    """Return pairs with each match."""
    names = {
        "exact-match": matching.exact_match,
        "quasi-exact-match": matching.quasi_exact_match,
        "prefix-exact-match": matching.prefix_exact_match,
        "quasi-prefix-exact-match": matching.quasi_prefix_exact_match,
        "word-f1": matching.f1_score,
        "final-number-match": matching.final_number_exact_match,
    }
    pairs = [(key, answer) for key in KEYS for answer in answers_to(key, 18)]
    return [
        {"key": key, "answer": answer}
        | {name: float(match(key, answer.strip())) for name, match in names.items()}
        for key, answer in pairs
    ]


def options() -> list[dict[str, Any]]:
    """Return answers with the option that HELM's mapping takes them for."""
    mapping = {"A": "aspirin", "B": "beta blocker", "C": "none"}
    patterns = ["", r"answer is \(?([A-C])\)?", r"[A-C](?=\.)"]
    said = [*ODD, "A", "B.", "b", " C ", "the answer is (B)", "answer is C", "A. aspirin", "D"]
    rows = []
    for pattern, answer in itertools.product(patterns, [*said, *answers_to("A", 60)]):
        letter = answer.strip()
        if pattern:
            letter = matching._apply_output_mapping_pattern(pattern, letter)
        rows.append(
            {
                "options": mapping,
                "pattern": pattern,
                "answer": answer,
                "chosen": mapping.get(letter),
            }
        )
    return rows


def calculations() -> list[dict[str, Any]]:
    """Return answers to calculations with HELM's accuracy."""
    cases = [
        ("physical", "5.25", "5.0", "5.5", ["5", "5.5", "5.51", "nan", "inf", "1e1", "5.2 mg", "0x5"]),
        ("dosage conversion", "-2", "-2.1", "-1.9", ["-2", "\u22122", "2", "-1.90", " -2.1 ", "- 2", "-2_0"]),
        ("risk", "3", "3", "3", ["3", "3.0", " 3 ", "03", "three", "3\n"]),
        ("severity", "12", "12", "12", ["12", "12.", "1 2"]),
        ("diagnosis", "0", "0", "0", ["0", "-0", "none"]),
        ("date", "05/31/2024", "05/29/2024", "06/02/2024", ["05/31/2024", "5/31/2024", "05/28/2024"]),
        ("date", "05/31/2024", "05/29/2024", "06/02/2024", ["2024-05-31", "31/05/2024", "05/31/24"]),
        ("date", "('39 weeks', '2 days')", "('39 weeks', '1 days')", "('39 weeks', '3 days')",
         ["('39 weeks', '2 days')", "39 weeks 2 days", "('38 weeks', '8 days')", "('39 weeks', '2 days') or so"]),
    ]  # fmt: skip
    metric, rows = MedCalcBenchMetric(), []
    for category, key, lower, upper, answers in cases:
        drawn = [f"{DRAW.uniform(-6, 6):.2f}" for _ in range(20)]
        for answer in [*answers, *ODD, *drawn]:
            limits = {"category": category, "lower_limit": lower, "upper_limit": upper}
            accuracy = figures(metric, state(answer, [key], **limits))["medcalc_bench_accuracy"]
            rows.append({"key": key, "answer": answer, "accuracy": accuracy} | limits)
    return rows


def corrections() -> list[dict[str, Any]]:
    """Return answers about wrong sentences with HELM's two accuracies."""
    keys = [
        "CORRECT",
        "CORRECT.",
        "5",
        "5 The dose is 5 mg.",
        "12 No fever.",
        "0 Start.",
        "unknown",
    ]
    said = ["CORRECT", "correct", "CORRECT.", "5", "5 The dose is 5 mg.", "5. The dose", "12", " 12 no",
            "Sentence 5", "05 x", "-2", "-1", "0", "\u0665", "5th", "CORRECT 5"]  # fmt: skip
    metric = MedecMetric()
    rows = []
    for key in keys:
        for answer in [*said, *ODD, *(str(DRAW.randint(0, 14)) for _ in range(8))]:
            got = figures(metric, state(answer, [key]))
            rows.append(
                {
                    "key": key,
                    "answer": answer,
                    "flag": got["medec_error_flag_accuracy"],
                    "sentence": got["medec_error_sentence_accuracy"],
                }
            )
    return rows


def labels() -> list[dict[str, Any]]:
    """Return benchmarks of labels with HELM's F1, one label an answer and several."""
    rows = []
    for number in range(220):
        known = DRAW.sample(["Yes", "No", "Maybe", "The A", "grade 2", "c."], DRAW.randint(2, 5))
        several = bool(number % 2)
        given = known if number % 3 else None
        size = DRAW.randint(3, 25)
        keys = [DRAW.sample(known, DRAW.randint(1, 2) if several else 1) for _ in range(size)]
        said = [
            ",".join(DRAW.sample([*known, "other", "", " yes. "], 2 if several else 1))
            for _ in keys
        ]
        delimiter = "," if several else None
        metric = ClassificationMetric(
            scores=["f1", "precision", "recall"], labels=given, delimiter=delimiter
        )
        states = [state(answer, key) for key, answer in zip(keys, said, strict=True)]
        got = {stat.name.name: stat.sum for stat in metric.evaluate_instances(states, "")}
        answers = [answer.split(",") if several else [answer] for answer in said]
        rows.append({"keys": keys, "answers": answers, "labels": given} | got)
    return rows


def codes() -> list[dict[str, Any]]:
    """Return answers that name billing codes with HELM's three figures."""
    known = ["J18.9", "J45.909", "I10", "E11.65", "Z00", "A1"]
    metric, rows = MIMICIVBillingCodeMetric(), []
    for _ in range(220):
        keys = [
            ", ".join(DRAW.sample(known, DRAW.randint(1, 3))) for _ in range(DRAW.randint(1, 2))
        ]
        words = ["**J18.9**", "j45", "J18.9.", "I10,", "X", "E11.65.", "none", *ODD, *known]
        answer = " ".join(DRAW.choices(words, k=DRAW.randint(1, 6)))
        got = figures(metric, state(answer, keys))
        ours = {name.rpartition("_")[2]: value for name, value in got.items()}
        rows.append({"keys": keys, "answer": answer} | ours)
    return rows


def queries() -> list[dict[str, Any]]:
    """Return queries on a small database with what HELM's annotator and metric say."""
    keys = ["select name from patient", "select count(*) from patient", "select * from empty", "",
            "select age from patient where id = 1", "select nothing"]  # fmt: skip
    said = ["select name from patient order by name desc", "select distinct name from patient",
            "```sql\nselect count(*) from patient\n```", "<sql>select count(*) from patient</sql>",
            "< SQL >select name from patient<SQL>", "sql\nselect 4", "select 4.0", "", " ", "selec",
            "select age from patient where id = 1;", "select 61.5", "select 1; select 2", "-- nothing",
            "The answer is 4", "select * from empty", "select id, name from patient", "select null",
            "select name from patient where age is null", "explain select 1", "values (4)",
            "with x as (select 4 as n) select n from x", "<sql></sql>", "select 'Ann'"]  # fmt: skip
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "scenarios", "ehr_sql")
        place.mkdir(parents=True)
        ehr_sql_annotator.get_benchmark_output_path = lambda: folder
        with sqlite3.connect(place / "eicu.sqlite") as database:
            database.executescript(SCHEMA)
        for key, answer, impossible in itertools.product(keys, said, [False, True]):
            given = state(answer, [key], is_impossible=impossible)
            given.annotations = {"ehr_sql": ehr_sql_annotator.EhrSqlAnnotator().annotate(given)}
            got = {
                name.removeprefix("ehr_sql_"): value
                for name, value in figures(EhrSqlMetric(), given).items()
            }
            rows.append({"key": key, "answer": answer, "can_be_answered": not impossible} | got)
    return rows


def main() -> None:
    """Print all that was recorded, as JSON."""
    parts = (matches, options, calculations, corrections, labels, codes, queries)
    recorded = {part.__name__: part() for part in parts}
    body = {"helm": version("crfm-helm"), "schema": SCHEMA, **recorded}
    json.dump(body, sys.stdout, ensure_ascii=False, separators=(",", ":"))
    print({name: len(rows) for name, rows in recorded.items()}, file=sys.stderr)


if __name__ == "__main__":
    main()
