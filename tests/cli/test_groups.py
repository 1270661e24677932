"""Columns group:NAME: stored with the response, vouched for, and no door to its author."""

import json
from pathlib import Path

import pytest
from kit.studies import Run
from sqlalchemy import Engine, text

from data.database import open_study
from data.importers.responses import names_author, tells_authors
from data.study.frames import specialties, subgroups
from data.study.verify import verify

HEADER = "instance_id,benchmark,context,prompt,response_id,model,response"


def file_of(folder: Path, groups: dict[str, list[str]], name="r.csv", first=0) -> Path:
    """Write responses of two models in turn, with columns group:NAME."""
    n = len(next(iter(groups.values()), [""] * 4))
    lines = [",".join([HEADER, *(f"group:{one}" for one in groups)])]
    for i in range(n):
        own = [values[i] for values in groups.values()]
        cells = [
            f"i{first + i}",
            "visits",
            "Pain.",
            "Write.",
            f"r{first + i}",
            f"m{i % 2}",
            f"T{i}",
        ]
        lines.append(",".join([*cells, *own]))
    path = folder / name
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def rows(engine: Engine) -> list[tuple[str, str, str]]:
    found = subgroups(engine)
    return sorted((name, *one) for name, own in found.items() for one in own.items())


LANGUAGE = ["de", "de", "en", ""]


def test_a_group_is_stored_with_its_response_and_an_empty_cell_is_in_none(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    code, out, _ = run("study", "import", str(file_of(tmp_path, {"language": LANGUAGE})))

    assert (code, "group language: 3 responses put into it" in out) == (0, True)
    assert "ignored" not in out
    assert rows(engine) == [
        ("language", "r0", "de"),
        ("language", "r1", "de"),
        ("language", "r2", "en"),
    ]
    assert verify(engine).findings == ()
    assert verify(engine).rows["subgroup"] == 3


def test_the_same_file_again_adds_groups_that_are_new_and_changes_none(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    run("study", "import", str(file_of(tmp_path, {"language": LANGUAGE})))
    both = {"language": LANGUAGE, "age": ["old", "young", "old", "old"]}
    code, out, _ = run("study", "import", str(file_of(tmp_path, both)))
    again = run("study", "import", str(file_of(tmp_path, both)))

    assert (code, "group age: 4 responses" in out, "nothing changed" in out) == (0, True, False)
    assert "nothing changed" in again[1]
    assert verify(engine).findings == ()
    changed = file_of(tmp_path, {"language": ["en", "de", "en", ""]})
    code, _, err = run("study", "import", str(changed))
    assert (code, "groups never change" in err) == (2, True)
    assert len(rows(engine)) == 7


def test_a_group_that_is_changed_behind_the_back_is_found(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    run("study", "import", str(file_of(tmp_path, {"language": LANGUAGE})))
    with engine.begin() as session:
        session.execute(text("UPDATE subgroup SET value = 'fr' WHERE response = 1"))

    [found] = verify(engine).findings
    assert found.startswith("subgroup 1, 2, 3: some of them changed since event ")


@pytest.mark.parametrize("name", ["model", "Author", "llm_system", "models", "vendor"])
def test_a_column_that_names_the_author_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    code, _, err = run("study", "import", str(file_of(tmp_path, {name: LANGUAGE})))

    assert code == 2
    assert "would tell who wrote a response" in err
    assert err.count("\n") <= 2


@pytest.mark.parametrize(
    "values", [["a", "b", "a", "b"], ["m0", "m1", "m0", "m0"], ["M1", "x", "y", "z"]]
)
def test_values_that_go_one_to_one_with_authors_or_are_their_names_are_refused(
    run: Run, engine: Engine, tmp_path: Path, values: list[str]
) -> None:
    code, _, err = run("study", "import", str(file_of(tmp_path, {"arm": values})))

    assert (code, "would lift the blind" in err) == (2, True)
    assert rows(engine) == []
    assert not any(value in err.replace("group:arm", "") for value in ("m0", "M1"))


def test_values_that_would_tell_authors_of_all_imports_together_are_refused(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    first = file_of(tmp_path, {"arm": ["a", "a"]})  # one value of two authors tells nothing
    assert run("study", "import", str(first))[0] == 0
    assert not tells_authors([("a", "m0"), ("a", "m1"), ("b", "m1")])
    assert tells_authors([("a", "m0"), ("b", "m1"), ("a", "m0")])
    assert not tells_authors([("a", "m0")])
    assert names_author("the-model")
    assert not names_author("care_setting")


@pytest.mark.parametrize(
    ("header", "cell", "why"),
    [
        ("group:", "x", "takes a name"),
        ("group:two words", "x", "takes a name"),
        ("group:specialty", "x", "the clinicians' own"),
        ("group:note", "x" * 61, "takes a short name"),
    ],
)
def test_a_group_takes_a_short_name_and_short_values(
    run: Run, tmp_path: Path, header: str, cell: str, why: str
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"{HEADER},{header}\ni1,visits,Pain.,Write.,r1,m0,Text,{cell}\n")
    code, _, err = run("study", "import", str(path))

    assert code == 2
    assert why in err
    assert "x" * 61 not in err


def test_groups_come_in_json_lines_too_and_every_row_has_the_firsts_keys(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    row = {"instance_id": "i1", "benchmark": "visits", "context": "Pain.", "prompt": "Write."}
    row |= {"response_id": "r1", "model": "m0", "response": "Text", "group:Language": "de"}
    later = row | {"instance_id": "i2", "response_id": "r2", "group:age": "old"}
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps(later))
    code, _, err = run("study", "import", str(path))
    assert (code, "the first row has no 'group:age'" in err) == (2, True)
    path.write_text(json.dumps(row) + "\n")
    assert run("study", "import", str(path))[0] == 0
    assert rows(engine) == [("language", "r1", "de")]


def test_a_package_carries_groups_and_their_record(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    run("study", "import", str(file_of(tmp_path, {"language": LANGUAGE})))
    package, place = tmp_path / "p.zip", f"sqlite:///{tmp_path / 'restored.db'}"
    assert (
        run("share", "export", "--package", str(package), "--unblind", "--reason", "over")[0] == 0
    )
    assert run("study", "import", str(package), "--db", place)[0] == 0

    restored = open_study(place)
    assert rows(restored) == rows(engine)
    assert verify(restored).findings == ()
    assert verify(restored).rows["subgroup"] == 3


def test_a_clinicians_specialty_is_said_recorded_and_taken_away(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    run("study", "import", str(file_of(tmp_path, {"language": LANGUAGE})))
    (tmp_path / "s.csv").write_text(
        "response_id,rater,kind,criterion,score\nr0,dr-a,clinician,clarity,3\n"
    )
    assert run("rate", "ratings", str(tmp_path / "s.csv"))[0] == 0
    assert (
        "dr-a now has: cardiology"
        in run("rate", "people", "change", "dr-a", "--specialty", "cardiology")[1]
    )
    assert specialties(engine) == {"dr-a": "cardiology"}
    assert "has already" in run("rate", "people", "change", "dr-a", "--specialty", "cardiology")[1]
    assert verify(engine).findings == ()
    assert run("rate", "people", "change", "dr-a", "--specialty", "")[0] == 0
    assert specialties(engine) == {}
    for wrong in (("dr-x", "--specialty", "gp"), ("dr-a", "--specialty", "x" * 61), ("dr-a",)):
        assert run("rate", "people", "change", *wrong)[0] == 2
