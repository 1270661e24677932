"""Files of other tools with any value replaced: rows, or one message, and never a traceback."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from kit import two_hundred

from data.errors import BadInput
from data.importers.columns import map_of
from data.importers.ratings import RatingFile
from data.importers.responses import ResponseFile
from data.importers.source import Source
from data.importers.tools import reader_of, rows_of

ODD: tuple[Any, ...] = (None, 3, "x", "", True, [], {}, [1], [[]], [None], {"a": 1}, [{"a": []}])
DEEPEST = 6
ASKED = {"prompt": [{"role": "user", "content": "My chest hurts."}], "prompt_id": "q1"}
META = ASKED | {"completion": "Go now.", "rubric": "Says go", "category": "cluster:emergency"}
META |= {"binary_labels": [True, False], "anonymized_physician_ids": ["p1", "p2"]}
META |= {"completion_id": "c1"}
IDEAL = {"ideal_completion": "Go now.", "ideal_completions_group": "Group 2"}
IDEAL |= {"ideal_completions_ref_completions": ["Go.", "Wait."]}
SET = ASKED | {"rubrics": [{"criterion": "Says go", "points": 5, "tags": []}], "example_tags": []}
SET |= {"ideal_completions_data": IDEAL}


def whole(name, folder):
    """Return the first row, or the object, of a tool's file."""
    if name == "lm_eval":
        path = two_hundred.lm_eval(folder)[0]
        return json.loads(path.read_text("utf-8").splitlines()[0])
    if name == "label_studio":
        [task] = json.loads(two_hundred.label_studio(folder)[0].read_text("utf-8"))[:1]
        [one, _] = task["annotations"]  # alike, and so are its ratings
        return [task | {"annotations": [one | {"result": one["result"][-2:]}]}]
    if name == "results":
        body = json.loads(two_hundred.healthbench_results(folder)[0].read_text("utf-8"))
        body["metadata"]["example_level_metadata"] = body["metadata"]["example_level_metadata"][:1]
        return body
    return {"meta": META, "set": SET}[name]


def changed(value, depth=0):
    """Yield a value with each of its parts replaced, one at a time, by each odd value."""
    places = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(places):
        copies = list(ODD)
        if isinstance(part, dict | list) and depth < DEEPEST:
            copies += list(changed(part, depth + 1))
        for one in copies:
            if isinstance(value, dict):
                yield {**value, key: one}
            else:
                yield [*value[:key], one, *value[key + 1 :]]


def read(body):
    """Return how many rows a file gives, of responses and of ratings; refused ones have a line."""
    found, said = 0, list[str]()
    for what in ("responses", "ratings"):
        source = Source(Path("samples_t_2026-05-31T14-00-00.json"), json.dumps(body).encode())
        try:
            table, _ = rows_of([source], what, None, None, "t")  # type: ignore[arg-type]
            rows = ResponseFile(table, "t") if what == "responses" else RatingFile(table)
            found += len(list(rows))
        except BadInput as error:
            said.append(str(error))
    assert not any("\n" in line for line in said)
    return found


NAMES = ("lm_eval", "label_studio", "results", "meta", "set")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_any_value_of_a_tools_file_may_be_another(name, every, tmp_path):
    body = whole(name, tmp_path)
    tried = [read(one) for one in islice(changed(body), 0, None, every)]
    assert len(tried) > 50 / every


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        *(("lm_eval", "lm-eval"), ("label_studio", "label-studio")),
        *(("results", "healthbench-results"), ("meta", "healthbench-meta"), ("set", "healthbench")),
    ],
)
def test_each_tools_file_is_known_under_any_name(name, reader, tmp_path):
    source = Source(Path("upload.bin"), json.dumps(whole(name, tmp_path)).encode())
    assert reader_of(source).name == reader


def given(body, name="samples_t_2024-05-31T14-00-00.json"):
    """Return the table and the ratings that a tool's file gives."""
    source = Source(Path(name), json.dumps(body).encode())
    constant = map_of({"constant": {"model": "m"}}, "ratings", "--map")
    table, _ = rows_of([source], "ratings", None, constant, "t")
    return table, list(RatingFile(table))


def test_samples_of_an_lm_eval_that_lists_no_metrics_have_those_beside_the_answer():
    sample = {"doc_id": 0, "doc": {"q": "Why?"}, "target": "a", "arguments": [["Why?", {}]]}
    sample |= {"resps": ["So."], "filtered_resps": "So.", "doc_hash": "x", "exact_match": 1.0}
    _, rated = given([sample])
    assert [(row.rater, row.score) for row in rated] == [("lm-eval.exact_match", "1.0")]


def annotated(*made):
    """Return what an annotated task gives: of annotations by whom, on which day, with which score."""
    data = {"instance_id": "i1", "context": "c", "response": "r", "response_id": "r1"}
    scored = {"type": "rating", "from_name": "accuracy"}
    annotations = [
        {
            "completed_by": user,
            "result": [scored | {"value": {"rating": score}}] if score else [],
            "created_at": f"2026-05-{day:02}T10:00:00Z",
        }
        for user, day, score in made
    ]
    return given([{"id": 1, "data": data, "annotations": annotations}])


def test_of_annotations_without_a_score_and_older_ones_of_an_annotator_the_number_is_told():
    table, rated = annotated((1, 9, 2), (1, 8, 4), (2, 9, 0))
    assert [(row.rater, row.score) for row in rated] == [("label-studio.1", "2")]
    left = ("older annotations of the same annotator", "annotations without a score")
    assert table.left_out == dict.fromkeys(left, 1)


def test_annotations_of_nobody_are_never_taken_for_one_annotators():
    _, rated = annotated((None, 9, 2), (None, 8, 4))
    assert [row.score for row in rated] == ["4", "2"]


@pytest.mark.parametrize("beside", ["[" * 100_000, "{", '{"model_name": 3}'])
def test_a_summary_beside_the_samples_that_names_no_model_leaves_it_to_their_folder(
    tmp_path, beside
):
    path = two_hundred.lm_eval(tmp_path)[0]
    path.with_name("results_2026-05-31T14-00-00.123456.json").write_text(beside, "utf-8")
    table, _ = rows_of([Source(path)], "responses", None, None, "t")
    found = next(iter(ResponseFile(table)))
    assert found.model == path.parent.name.replace("__", "/")
