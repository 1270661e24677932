"""Files made to take memory or time: each is refused in one line, and nobody else pays for it."""

import gzip
import io
import itertools
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.measured import COMMAND, MEASURED, run_python

from data.errors import BadFile
from data.importers.log_file import read_log
from data.importers.safe import Unsafe, in_child, read_json
from data.importers.source import Source
from data.importers.table import TableFile

UPLOAD = """
import medjury
from pathlib import Path
from medjury.services.importing import Upload, map_needed, rows_in
from data.errors import BadFile
path = Path(sys.argv[1])
upload = Upload(path.name, path.read_bytes(), "", "")
for read in (map_needed, lambda *given: list(rows_in(*given)[0])):
    try:
        read(upload, "responses")
    except BadFile as error:
        print(error)
"""
PARENT, CHILD = 450, 1_600  # MB, at most: a child may take 1 GiB over what it has at its start
HEAD = ("benchmark", "instance_id", "model", "prompt", "response")


def parquet_bomb():
    """Return a dictionary of one text of 20 MB, for 256 rows."""
    indices, text = pa.array([0] * 256, pa.int32()), pa.array(["a" * (20 << 20)])
    columns = dict.fromkeys(HEAD[:4], ["x"] * 256)
    table = pa.table({**columns, "response": pa.DictionaryArray.from_arrays(indices, text)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", use_dictionary=True)
    return buffer.getvalue()


def lists(megabytes):
    """Return JSON that holds nothing but empty lists, each of which takes 64 bytes of memory."""
    return b'{"x":[' + b"[]," * ((megabytes << 20) // 3) + b"[]]}"


BOMBS: dict[str, Callable[[], bytes]] = {
    "rows.parquet": parquet_bomb,
    "rows.json.gz": lambda: gzip.compress(lists(60), 9),
    "lines.jsonl.gz": lambda: gzip.compress(lists(15), 9),
}


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    return tmp_path_factory.mktemp("bombs")


def bomb(folder, name):
    """Return a bomb, made by the first test that asks for it."""
    if not (folder / name).exists():
        (folder / name).write_bytes(BOMBS[name]())
    return folder / name


@pytest.mark.parametrize(
    "name", [pytest.param("rows.json.gz", marks=pytest.mark.slow), "rows.parquet", "lines.jsonl.gz"]
)
def test_a_bomb_gets_one_line_in_bounded_memory_and_nothing_is_written(bombs, tmp_path, name):
    study = tmp_path / "study.db"
    code, said, peaks = run_python(
        COMMAND, "--db", f"sqlite:///{study}", "study", "import", str(bomb(bombs, name))
    )
    assert (code, len(said.splitlines())) == (2, 1), said
    assert re.search("needs more than 1,024 MB|a row is over 128 MB|over 200,000 brackets", said)
    assert not study.exists()
    assert (peaks[0] < PARENT, peaks[1] < CHILD) == (True, True), peaks


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("rows.json.gz", "lines.jsonl.gz")),
        "rows.parquet",
    ],
)
def test_an_uploaded_bomb_leaves_the_apps_process_small(bombs, name):
    code, said, peaks = run_python(MEASURED + UPLOAD, str(bomb(bombs, name)))
    assert code == 0, said
    assert [name in line for line in said.splitlines()] == [True, True], said
    assert (peaks[0] < PARENT, peaks[1] < CHILD) == (True, True), peaks


def test_a_log_that_is_a_bomb_is_refused_whether_it_unpacks_to_much_or_is_long(tmp_path):
    head = b'{"version":2,"status":"success","eval":{"task":"t","model":"m"},'
    for size, why in ((250, "would unpack to more"), (8, "has over 2,000,000 values")):
        with zipfile.ZipFile(tmp_path / "bomb.eval", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", head + lists(size)[1:])
        with pytest.raises(BadFile, match=why):
            read_log(tmp_path / "bomb.eval")


def declared(declaration, encoding="utf-8"):
    """Return a workbook whose sheet declares something behind a long comment."""
    book, buffer, out = openpyxl.Workbook(), io.BytesIO(), io.BytesIO()
    for line in (HEAD, ["v", "i1", "m", "p", "r1"]):
        book.active.append(line)
    book.save(buffer)
    with zipfile.ZipFile(buffer) as archive, zipfile.ZipFile(out, "w") as other:
        for part in archive.infolist():
            content = archive.read(part)
            if part.filename == "xl/worksheets/sheet1.xml":
                first = f'<?xml version="1.0" encoding="{encoding}"?><!--{"x" * 5000}-->'
                body = content[content.index(b"<worksheet") :].replace(b"r1", b"&x;").decode()
                content = (first + declaration.decode() + body).encode(encoding)
            other.writestr(part.filename, content)
    return out.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "declaration",
    [
        b'<!DOCTYPE worksheet [<!ENTITY x SYSTEM "file:///etc/hostname">]>',
        b'<!DOCTYPE worksheet [<!ENTITY y "aaaa"><!ENTITY x "&y;&y;&y;&y;">]>',
        b'<!DOCTYPE worksheet SYSTEM "http://127.0.0.1:9/x.dtd">',
    ],
)
def test_a_workbook_that_declares_entities_anywhere_is_refused(declaration, encoding):
    with pytest.raises(BadFile, match="declares what no workbook of Excel does"):
        TableFile(Source(Path("rows.xlsx"), declared(declaration, encoding)))


def test_openpyxl_reads_all_xml_through_defusedxml_in_the_child():
    code = "from openpyxl.xml import functions as f; print(f.fromstring.__module__, f.iterparse.__module__)"
    env = os.environ | {"OPENPYXL_LXML": "False"}
    call = [sys.executable, "-c", code]
    out = subprocess.run(call, env=env, capture_output=True, text=True, check=True).stdout
    assert out.split() == ["defusedxml.common", "defusedxml.common"]


def plain(folder, name, start, hole=0):
    """Write a file that begins as rows do and then has a long hole, which takes no place on disk."""
    path = folder / name
    row = f'{{"a": "{"y" * 40}"}}\n' if name.endswith("jsonl") else "y,z\n"
    with path.open("w") as file:
        file.write(("" if name.endswith("jsonl") else "a,b\n") + row * 20_000 + start)
        file.flush()
        file.truncate(file.tell() + hole)
    return path


HOLES = (
    ("one.csv", "x", 1 << 30, "a row is over 16,777,216 characters"),
    ("two.csv", '"x', 1 << 30, "a row is over 16,777,216 characters"),
    ("three.csv", '"x\n' + "y\n" * (9 << 20), 0, "a row is over 16,777,216 characters"),
    ("one.jsonl", '{"a": "', 1 << 30, "a row is over 16,777,216 characters"),
    ("two.jsonl", '{"a": ' + "[" * 100_000, 0, "is nested too deep"),
    ("three.jsonl", '{"a": [' + "[]," * 5_000_000 + "[]]}", 0, "over 200,000 brackets"),
    ("four.jsonl", '{"a": ' + "9" * 5_000 + "}", 0, "a number that is too long"),
    ("four.csv", "," * (15 << 20) + "x", 0, "row 20002 has 15728641 cells, the header 2"),
)


def test_plain_rows_are_read_here_in_bounded_memory_whatever_is_in_them(tmp_path):
    code = MEASURED + (
        "import medjury; from pathlib import Path; from data.errors import BadFile\n"
        "from data.importers.table import TableFile\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        print(sum(1 for _ in TableFile(Path(name))))\n"
        "    except BadFile as error:\n        print(error)"
    )
    paths = [str(plain(tmp_path, *hole)) for *hole, _ in HOLES]
    _, out, peaks = run_python(code, *paths)
    for line, (name, *_, said) in zip(out.splitlines(), HOLES, strict=True):
        assert (name in line, said in line) == (True, True), line
    assert peaks[0] < PARENT


@pytest.mark.parametrize(
    "body", ["[" * 100_000, '[{"a":' * 50_000, '[{"a": ' + "[" * 150 + "]" * 150 + "}]"]
)
def test_an_array_that_is_nested_deep_is_refused(body):
    with pytest.raises(BadFile, match=r"nested too deep|is not whole JSON"):
        TableFile(Source(Path("rows.json"), body.encode()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *(('{"a": 1, "a": 2}', "a value twice"), ('{"a": {"b": 1, "b": 2}}', "a value twice")),
        *(('{"a": "\\ud83d"}', "half a surrogate pair"), ('{"a": ', "is not whole JSON")),
        *(("[" * 101 + "]" * 101, "nested too deep"), ("9" * 5_000, "a number that is too long")),
    ],
)
def test_json_is_read_in_one_way(text, said):
    with pytest.raises(Unsafe, match=said):
        read_json(text)


def test_json_that_is_in_order_is_as_json_has_it():
    assert read_json('{"a": [1, NaN, "\\ud83d\\ude00"]}')["a"][::2] == [1, "\U0001f600"]
    assert read_json("[" * 99 + "]" * 99)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (itertools.permutations, (range(1 << 40),), "x.csv: needs more than 64 MB to read"),
        (re.finditer, ("(a+)+$", "a" * 40 + "b"), "x.csv: took longer than 1 seconds to read"),
        (iter, (5,), "x.csv: damaged, or of a form that cannot be read"),
        (map, (re.compile, ["a"]), "x.csv: damaged, or of a form that cannot be read"),
    ],
)
def test_what_a_child_dies_of_is_told(function, arguments, said):
    with pytest.raises(BadFile, match=said):
        list(in_child(function, *arguments, name="x.csv", size=0, memory=64 << 20, seconds=1))


def test_a_child_ends_when_its_rows_are_wanted_no_more():
    rows = in_child(itertools.count, 0, name="x.csv", size=0)
    assert list(itertools.islice(rows, 3)) == [0, 1, 2]
    rows.close()
    assert not [one for one in commands_of_children() if "importers.safe" in one]


def commands_of_children():
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [Path(f"/proc/{child}/cmdline").read_text() for child in children]
