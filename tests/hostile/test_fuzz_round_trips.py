"""What is exported comes back equal, whatever signs stand in its texts and names."""

import csv
import json
from pathlib import Path

from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st
from kit.commands import told_by
from kit.studies import COLUMNS
from kit.study_place import all_rows, study_in

from data.database import open_study
from data.importers.file_rows import GARBLED
from data.importers.inspect_logs import read_inspect
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import Criterion, Rubric, Scale, read_rubric, write_rubrics

SIGNS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
ODD = st.text(
    st.one_of(SIGNS, st.sampled_from("=+-@'\"\t\r\n,;{}$<>\\|\ufeff\u202e\u0301\U0001f600"))
).filter(lambda text: not GARBLED.search(text))  # what looks garbled is refused
TEXT = ODD.filter(lambda text: text.strip() != "")
NAME = ODD.filter(lambda text: text.strip() == text != "" and text.isprintable())
WORD = st.text("aZ09é漢_.-", min_size=1, max_size=20)
FEW = settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=set(Phase) - {Phase.explain},  # it follows every line of a command
)
MORE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
KEPT = ("rubric", "benchmark", "instance", "response", "authorship", "rater", "rating")


def put(folder, name, columns, rows):
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return str(folder / name)


def study(folder, name, texts, names):
    """Return a study with those texts as its responses, rated by two of those names."""
    url = study_in(folder, name)
    rows = [
        ("i1", "b", texts[0], "p", texts[-1], f"r{n}", "m", text) for n, text in enumerate(texts)
    ]
    assert told_by(url, "study", "import", put(folder, "r.csv", COLUMNS, rows))[0] == 0
    rated = [
        (f"r{n}", who, "clinician", criterion, 1 + n % 5, text)
        for n, text in enumerate(texts)
        for who in dict.fromkeys(names)
        for criterion in ("accuracy", "completeness", "clarity")
    ]
    columns = ("response_id", "rater", "kind", "criterion", "score", "comment")
    code, said = told_by(url, "rate", "ratings", put(folder, "s.csv", columns, rated))
    assert code == 0, said
    return open_study(url)


@FEW
@given(texts=st.lists(TEXT, min_size=1, max_size=4), names=st.tuples(NAME, NAME))
@example(texts=["=", "'=", "''-1"], names=("0", "0"))
def test_a_package_comes_back_row_by_row_and_exported_ratings_add_nothing(
    tmp_path_factory, texts, names
):
    folder = tmp_path_factory.mktemp("trip")
    engine = study(folder, "here.db", texts, names)
    package, there = folder / "study.zip", study_in(folder, "there.db")
    told = ("--unblind", "--reason", "archive")
    assert told_by(str(engine.url), "share", "export", "--package", str(package), *told)[0] == 0
    code, said = told_by(there, "study", "import", str(package))
    assert code == 0, said
    other = open_study(there)
    here, back = all_rows(engine), all_rows(other)
    assert {name: here[name] for name in here if name in KEPT} == {
        name: back[name] for name in back if name in KEPT
    }
    assert here["response"]
    assert here["rating"]
    assert told_by(str(engine.url), "share", "export", str(folder / "out"))[0] == 0
    code, said = told_by(there, "rate", "ratings", str(folder / "out" / "ratings.csv"))
    assert code == 0, said
    assert all_rows(other)["rating"] == back["rating"]
    for one in (engine, other):
        one.dispose()


@MORE
@given(st.lists(st.tuples(NAME, NAME, TEXT, ODD, TEXT), min_size=1, max_size=4))
def test_responses_read_alike_from_csv_and_json_lines(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("trip")
    rows = [(i, b, context, "", ref, f"r{n}", "m", said) for n, (i, b, context, ref, said) in enumerate(cells)]  # fmt: skip
    (folder / "r.jsonl").write_text(
        "\n".join(json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in rows),
        encoding="utf-8",
    )
    one = ResponseFile(TableFile(Path(put(folder, "r.csv", COLUMNS, rows))))
    two = ResponseFile(TableFile(folder / "r.jsonl"))
    for left, right, row in zip(one, two, rows, strict=True):
        assert (left.context, left.response) == (right.context, right.response) == (row[2], row[7])
        assert (left.instance_id, left.benchmark) == (right.instance_id, right.benchmark) == row[:2]
        assert left.reference == right.reference == (row[4] if row[4].strip() else None)


@MORE
@given(st.lists(st.tuples(WORD, TEXT), min_size=1, max_size=4, unique_by=lambda one: one[0]),
       st.tuples(WORD, ODD, ODD), st.tuples(st.integers(-5, 5), st.integers(1, 9)),
       ODD, st.lists(TEXT, min_size=20, max_size=20))  # fmt: skip
def test_a_rubric_written_as_a_folder_is_the_same_rubric(
    tmp_path_factory, asked, head, scale, prompt, anchors
):
    points = range(scale[0], scale[0] + scale[1] + 1)
    criteria = [
        Criterion(name=name, question=question, anchors=dict(zip(points, anchors, strict=False)))
        for name, question in asked
    ]
    assume("{{" not in prompt)
    prompt = prompt.replace("\r", " ") + "{{response}}"
    rubric = Rubric(
        name=head[0], version=head[1], audience=head[2], gold="never",
        scale=Scale(min=points[0], max=points[-1]), criterion=tuple(criteria), prompt=prompt,
    )  # fmt: skip
    out = tmp_path_factory.mktemp("trip") / "out"
    write_rubrics(out, {"one": rubric})
    back = read_rubric(out / "one")
    assert back == rubric
    assert back.sha256 == rubric.sha256
    assert Rubric.from_json(rubric.to_json()) == rubric


@FEW  # a log is read in a process of its own
@given(st.lists(st.tuples(NAME, TEXT, TEXT, TEXT), min_size=9, unique_by=lambda one: one[0]))
def test_a_log_of_inspect_brings_its_texts_to_the_last_sign(tmp_path_factory, told):
    assume(not any(text.startswith("attachment://") for _, *texts in told for text in texts))
    path = tmp_path_factory.mktemp("trip") / "log.json"
    samples = [
        {
            "id": name,
            "input": "?",
            "output": {"completion": said},
            "metadata": {"medjury": {"context": text, "prompt": "Write.", "reference": reference}},
        }
        for name, text, said, reference in told
    ]
    body = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    path.write_text(json.dumps(body | {"samples": samples}), encoding="utf-8")
    rows = [one.row for one in read_inspect(path).scored]
    found = [(row.instance_id, row.context, row.response, row.reference) for row in rows]
    assert found == told
