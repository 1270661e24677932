"""What a file of responses is, by its bytes: each wrong one gets a line that names it and says what to do."""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from sqlalchemy import Engine

from data.errors import BadFile
from data.importers.responses import names_author, tells_authors
from data.importers.source import kind_of
from data.importers.table import TableFile
from data.study.frames import specialties, subgroups
from data.study.standing import benchmarks
from data.study.verify import verify

HEADER_ROW = "instance_id,benchmark,context,prompt,model,response\n"
ROW = "i1,v,c,p,m,said\n"
STATISTICS = "a file of Stata, SPSS, SAS or R; save it as CSV or Parquet there"
SPSS = b"$FL2@(#) SPSS DATA FILE MS Windows 25.0"


def packed(body: bytes) -> bytes:
    """Pack without a time, so that every worker has tests of the same names."""
    return gzip.compress(body, mtime=0)


@pytest.mark.parametrize(
    ("start", "form"),
    [
        (b"a,b\n1,2\n", "csv"),
        (b"\xef\xbb\xbfa,b\n", "csv"),
        ("a;b\n1;2\n".encode("utf-16"), "csv"),
        (b'{"a": 1}\n{"a": 2}\n', "jsonl"),
        (b'{"a": 1}', "jsonl"),
        (b'{\n "a": 1\n}', "object"),
        (b' [\n {"a": 1}]', "json"),
        (b"[]", "json"),
        (b"PAR1....", "parquet"),
        (b'{"a": "' + b"x" * (1 << 16), "jsonl"),
        (b"[1] a footnote, b\n", "csv"),
    ],
)
def test_what_is_read_is_known_by_its_first_bytes(start, form):
    assert kind_of(start[: 1 << 16])[0] == form


@pytest.mark.parametrize(
    ("members", "form"),
    [
        ({"xl/workbook.xml", "[Content_Types].xml"}, "xlsx"),
        ({"header.json", "samples/1.json"}, "inspect"),
        ({"_journal/start.json"}, "inspect"),
        ({"manifest.json", "ratings.csv"}, "package"),
        ({"word/document.xml"}, None),
        ({"anything"}, None),
        (set(), None),
    ],
)
def test_a_zip_is_known_by_what_is_in_it(members, form):
    assert kind_of(b"PK\x03\x04", members)[0] == form


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<stata_dta><header>", STATISTICS),
        (b"\x72\x02\x01\x00rest", STATISTICS),
        (SPSS, STATISTICS),
        (b"\0" * 12 + b"\xc2\xea\x81\x60\xb3\x14", STATISTICS),
        (b"HEADER RECORD*******LIBRARY HEADER", STATISTICS),
        (b"RDX3\nX\n", STATISTICS),
        (b"\x89HDF\r\n\0", "a binary file of no kind known here; save the rows as CSV"),
        (b"BZh91AY", "packed otherwise than once with gzip or zip; unpack it"),
        (b"\x28\xb5\x2f\xfd$", "packed otherwise than once with gzip or zip; unpack it"),
        (b"%PDF-1.7", "a document (PDF or RTF); save the rows as CSV or JSON Lines"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"<!DOCTYPE html><html>", "a web page or XML"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "with a password"),
        (b"\0\x01\x02\x03binary", "a binary file of no kind known here"),
        (HEADER_ROW.encode("utf-16-le"), "UTF-16 without the mark that says so; save it as UTF-8"),
        (packed(SPSS), STATISTICS),
        (packed(packed(b"a,b")), "packed otherwise than once with gzip"),
        (packed(HEADER_ROW.encode() * 99)[:40], "damaged or cut short"),
        (b"", "the file is empty"),
        (packed(b""), "column 'instance_id' is missing"),
        (b"\xef\xbb\xbf", "column 'instance_id' is missing"),
        (b"[]", "the JSON array is empty"),
        (b'[{"a": 1}, 2]', "row 2 is int, not a JSON object"),
        (b'[{"a": 1', "is not whole JSON"),
        (b'{"data": [{"a": 1}], "n": 2}\n', "its rows may stand under 'data'"),
        (b'{"results": {}, "configs": {}, "versions": {}}', "the responses are in samples_*.jsonl"),
        (b"model,model\n", "stands twice in the header"),
        (b"PAR1rest", "a Parquet file that is damaged"),
        (b"PK\x03\x04rest", "cut short or damaged; copy it again"),
        (HEADER_ROW.encode() + "i1,v,ü,p,m,r\n".encode("utf-16"), "binary"),
    ],
)
@pytest.mark.parametrize("command", ["study import", "rate ratings"])
def test_a_wrong_file_gets_one_line_and_stores_nothing(run, tmp_path, body, said, command):
    study = tmp_path / "study.db"
    path = tmp_path / "theirs.json" if body.startswith((b"[", b"{")) else tmp_path / "theirs.csv"
    path.write_bytes(body)
    code, out, err = run("--db", f"sqlite:///{study}", *command.split(), str(path))
    said = said if command == "study import" else said.replace("instance_id", "response_id")
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1), err
    assert said in err
    assert "Traceback" not in err
    assert not study.exists()


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.xlsx"])
def test_a_bomb_is_refused_at_the_bound(tmp_path, name):
    path = tmp_path / name
    if name.endswith("gz"):
        path.write_bytes(packed(b"a" * (160 << 20)))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/workbook.xml", "<workbook/>")
            archive.writestr("xl/worksheets/sheet1.xml", b" " * (40 << 20))
    with pytest.raises(BadFile, match="it would unpack to more than any"):
        TableFile(path)


def with_notes(book: Any) -> None:
    notes = book.create_sheet("Notes")
    notes.append(["a"])
    notes.append(["b"])


def sheet_of(change: Callable[[Any], None], tmp_path: Path) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for line in (HEADER_ROW, ROW):
        sheet.append(line.strip().split(","))
    change(book)
    path = tmp_path / "r.xlsx"
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda book: book.active.merge_cells("A2:A3"), "cells A2:A3 are merged; unmerge them"),
        (lambda book: book.active.cell(2, 6, "=1+1"), "a formula that Excel has not computed yet"),
        (lambda book: book.active.cell(2, 6, "#REF!"), "an error of Excel in column 6"),
        (lambda book: book.active.cell(2, 9, "x"), "a value beyond the header's columns"),
        (lambda book: book.active.cell(1, 6, "model"), "column 'model' stands twice"),
        (lambda book: book.active.insert_rows(1), "is no header: it is empty"),
        (with_notes, "several sheets with rows: Sheet, Notes; say sheet"),
    ],
)
def test_a_workbook_that_is_no_plain_table_is_refused(tmp_path, change, said):
    with pytest.raises(BadFile, match=said):
        list(TableFile(sheet_of(change, tmp_path)))


def test_a_sheet_of_several_is_named_by_a_map(run, engine, tmp_path):
    path = sheet_of(with_notes, tmp_path)
    (tmp_path / "map.toml").write_text('sheet = "Sheet"\n')
    code, _, err = run("study", "import", str(path), "--map", str(tmp_path / "map.toml"))
    assert code == 0, err
    assert [one.name for one in benchmarks(engine)] == ["v"]


def test_numbers_and_times_of_excel_and_parquet_are_as_they_were_typed(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.5, None], "when": pd.to_datetime(["2026-05-31"] * 3)})
    frame.to_excel(tmp_path / "r.xlsx", index=False)
    frame.to_parquet(tmp_path / "r.parquet")
    for name in ("r.xlsx", "r.parquet"):
        found = [dict(cells) for _, cells in TableFile(tmp_path / name)]
        assert [one["a"] for one in found] == ["1", "2.5", ""]
        assert {one["when"] for one in found} == {"2026-05-31T00:00:00"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[columns]\na = 'b'\n", "'b' is no column of responses"),
        ("[colums]\na = 'b'\n", "unknown key 'colums'"),
        ("[columns]\na = 'model'\nb = 'model'\n", "two columns are mapped to model"),
        ("[columns]\nzz = 'model'\n", "the map's column 'zz' is not in the file"),
        ("[columns\n", "--map"),
        ("[columns]\na.b = 'model'\n", "quote names with dots"),
    ],
)
def test_a_wrong_map_is_refused_in_one_line(run, tmp_path, text, said):
    (tmp_path / "r.csv").write_text(HEADER_ROW + ROW)
    (tmp_path / "map.toml").write_text(text)
    by = ("--map", str(tmp_path / "map.toml"))
    code, _, err = run("study", "import", str(tmp_path / "r.csv"), *by)
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert said in err


def test_nested_json_is_taken_by_dotted_names(run, engine, tmp_path):
    rows = [{"k": "i1", "in": {"text": "c"}, "who": "m", "out": ["said", "more"], "ok": True}]
    (tmp_path / "r.json").write_text(json.dumps(rows))
    (tmp_path / "map.toml").write_text(
        '[columns]\nk = "instance_id"\n"in.text" = "context"\nwho = "model"\n'
        '"out.0" = "response"\n[constant]\nbenchmark = "v"\n'
    )
    by = ("--map", str(tmp_path / "map.toml"))
    code, out, err = run("study", "import", str(tmp_path / "r.json"), *by)
    assert code == 0, err
    assert "not taken: values of the column ok: 1" in out


COLUMNS = "instance_id,benchmark,context,prompt,response_id,model,response"


def file_of(folder: Path, groups: dict[str, list[str]]) -> str:
    """Write responses of two models in turn, with columns group:NAME; return the file's path."""
    lines = [",".join([COLUMNS, *(f"group:{one}" for one in groups)])]
    for i, own in enumerate(zip(*groups.values(), strict=True)):
        cells = (f"i{i}", "visits", "Pain.", "Write.", f"r{i}", f"m{i % 2}", f"T{i}", *own)
        lines.append(",".join(cells))
    (folder / "r.csv").write_text("\n".join([*lines, ""]), "utf-8")
    return str(folder / "r.csv")


def rows(engine: Engine) -> list[tuple[str, str, str]]:
    found = subgroups(engine)
    return sorted((name, *one) for name, own in found.items() for one in own.items())


LANGUAGE = ["de", "de", "en", ""]


def test_a_group_is_stored_with_its_response_and_none_changes_later(run, engine, tmp_path):
    code, out, _ = run("study", "import", file_of(tmp_path, {"language": LANGUAGE}))
    assert (code, "group language: 3 responses put into it" in out) == (0, True)
    assert "ignored" not in out
    own = zip(["r0", "r1", "r2"], LANGUAGE[:3], strict=True)
    assert rows(engine) == [("language", *one) for one in own]
    assert verify(engine).findings == ()
    assert verify(engine).rows["subgroup"] == 3
    run("study", "import", file_of(tmp_path, {"language": LANGUAGE}))
    both = {"language": LANGUAGE, "age": ["old", "young", "old", "old"]}
    code, out, _ = run("study", "import", file_of(tmp_path, both))
    again = run("study", "import", file_of(tmp_path, both))
    assert (code, "group age: 4 responses" in out, "nothing changed" in out) == (0, True, False)
    assert "nothing changed" in again[1]
    assert verify(engine).findings == ()
    changed = file_of(tmp_path, {"language": ["en", "de", "en", ""]})
    code, _, err = run("study", "import", changed)
    assert (code, "groups never change" in err) == (2, True)
    assert len(rows(engine)) == 7


@pytest.mark.parametrize("name", ["model", "Author", "llm_system", "models", "vendor"])
def test_a_column_that_names_the_author_is_refused(run, tmp_path, name):
    code, _, err = run("study", "import", file_of(tmp_path, {name: LANGUAGE}))
    assert code == 2
    assert "would tell who wrote a response" in err
    assert err.count("\n") <= 2


@pytest.mark.parametrize("values", ["a b a b", "m0 m1 m0 m0", "M1 x y z"])
def test_values_that_are_names_or_one_to_one_with_authors_are_refused(
    run, engine, tmp_path, values
):
    code, _, err = run("study", "import", file_of(tmp_path, {"arm": values.split()}))
    assert (code, "would lift the blind" in err) == (2, True)
    assert rows(engine) == []
    assert not any(value in err.replace("group:arm", "") for value in ("m0", "M1"))


def test_values_that_would_tell_authors_of_all_imports_together_are_refused(run, engine, tmp_path):
    first = file_of(tmp_path, {"arm": ["a", "a"]})  # one value of two authors tells nothing
    assert run("study", "import", first)[0] == 0
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
def test_a_group_takes_a_short_name_and_short_values(run, tmp_path, header, cell, why):
    path = tmp_path / "r.csv"
    path.write_text(f"{COLUMNS},{header}\ni1,visits,Pain.,Write.,r1,m0,Text,{cell}\n")
    code, _, err = run("study", "import", str(path))
    assert code == 2
    assert why in err
    assert "x" * 61 not in err


def test_groups_come_in_json_lines_too_and_every_row_has_the_firsts_keys(run, engine, tmp_path):
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


def test_a_clinicians_specialty_is_said_recorded_and_taken_away(run, engine, tmp_path):
    run("study", "import", file_of(tmp_path, {"language": LANGUAGE}))
    scores = "response_id,rater,kind,criterion,score\nr0,dr-a,clinician,clarity,3\n"
    (tmp_path / "s.csv").write_text(scores)
    assert run("rate", "ratings", str(tmp_path / "s.csv"))[0] == 0
    change = ("rate", "people", "change", "dr-a", "--specialty")
    assert "dr-a now has: cardiology" in run(*change, "cardiology")[1]
    assert specialties(engine) == {"dr-a": "cardiology"}
    assert "has already" in run(*change, "cardiology")[1]
    assert verify(engine).findings == ()
    assert run("rate", "people", "change", "dr-a", "--specialty", "")[0] == 0
    assert specialties(engine) == {}
    for wrong in (("dr-x", "--specialty", "gp"), ("dr-a", "--specialty", "x" * 61)):
        assert run("rate", "people", "change", *wrong)[0] == 2
