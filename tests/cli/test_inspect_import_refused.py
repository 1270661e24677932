"""What is no whole log of Inspect: refused by name, with nothing written and nothing quoted."""

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.commands import figures
from kit.imported_runs import LOGS, SECRET, as_json, whole
from kit.studies import Run
from kit.study_place import nothing_stored


def changed(**values: Any) -> Callable[[Path], Path]:
    return lambda folder: as_json(folder, whole("note_a.eval") | values)


def sampled(**values: Any) -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        body = whole("note_a.eval")
        body["samples"][0] |= values
        return as_json(folder, body)

    return change


def cut(name: str) -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        path = folder / name
        body = (LOGS / name).read_bytes()
        path.write_bytes(body[: len(body) // 2])
        return path

    return change


def zipped(name: str, body: str = "{}", header: str = "header.json") -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        path = folder / "log.eval"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(header, json.dumps(whole("note_a.eval") | {"samples": None}))
            archive.writestr(name, body)
        return path

    return change


def patched(at: bytes, offset: int, value: bytes) -> Callable[[Path], Path]:
    """Return a change of the list of parts: of the entry that ends with a name."""

    def change(folder: Path) -> Path:
        body = bytearray((LOGS / "note_a.eval").read_bytes())
        place = body.rindex(at) - 46 + offset
        body[place : place + len(value)] = value
        (folder / "log.eval").write_bytes(body)
        return folder / "log.eval"

    return change


def many_bombs(folder: Path) -> Path:
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(whole("note_a.eval") | {"samples": None}))
        for number in range(10):
            archive.writestr(f"samples/{number}.json", "[]")
            archive.infolist()[-1].file_size = 30 << 20  # nothing is read before this is judged
    return path


def damaged(folder: Path) -> Path:
    body = bytearray((LOGS / "note_a.eval").read_bytes())
    body[body.index(b"header.json") + 200] ^= 255
    (folder / "log.eval").write_bytes(body)
    return folder / "log.eval"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (cut("note_a.eval"), "not a whole zip"),
        (cut("note_a.json"), "not whole JSON"),
        (damaged, "damaged or cut short"),
        (patched(b"header.json", 24, b"\x0a\0\0\0"), "another length|damaged"),
        (patched(b"header.json", 24, b"\xff\xff\xff\x7f"), "unpack to more"),
        (patched(b"header.json", 8, b"\x01\0"), "encrypted"),
        (lambda folder: as_json(folder, {"request_states": []}), "a JSON object of no tool"),
        (lambda folder: as_json(folder, [1, 2]), "row 1 is int, not a JSON object"),
        (lambda folder: as_json(folder, "[" * 100), "JSON, and not an array"),
        (changed(version=3), "another version than 2"),
        (changed(status="started"), "has not ended"),
        (changed(invalidated=True), "invalidated"),
        (changed(samples=[]), "nothing to rate in it: no samples"),
        (changed(samples={"a": 1}), "samples are not a list"),
        (changed(samples=[SECRET]), "sample 1"),
        (changed(eval={"task": "notes"}), "eval.model is not as Inspect"),
        (sampled(input={"text": SECRET}), "input"),
        (sampled(id=""), "id is not as Inspect writes it"),
        (sampled(target="\ud800" + SECRET), "half a surrogate pair"),
        (zipped("../../escape.json"), "leads out of it"),
        (zipped("/etc/passwd"), "leads out of it"),
        (zipped("samples/a.json", " " * (40 << 20)), "unpack to more than any such file"),
        (many_bombs, "it would unpack to more than any such file"),
        (zipped("samples/a.json", '{"input": "' + SECRET), "not whole JSON"),
        (zipped("samples/a.json", header="other.json"), "no log of Inspect"),
        (zipped("_journal/start.json", header="other.json"), "did not end"),
        (lambda folder: folder / "absent.eval", "No such file"),
    ],
)
def test_what_is_no_whole_log_is_refused_by_name_and_nothing_is_written(
    make: Callable[[Path], Path], said: str, run: Run, tmp_path: Path, url: str
) -> None:
    path = make(tmp_path)
    code, out, err = run("study", "import", str(path))
    told = " ".join(err.split())
    assert code == 2, out
    assert re.search(said, told), told
    assert "Traceback" not in err
    assert SECRET not in err
    assert nothing_stored(url)


def test_one_bad_log_of_several_leaves_all_of_them_out(run: Run, tmp_path: Path, url: str) -> None:
    code, _, err = run(
        "study", "import", str(LOGS / "note_a.eval"), str(cut("note_a.json")(tmp_path))
    )
    assert code == 2
    assert "nothing was imported" in " ".join(err.split())
    assert nothing_stored(url)


def test_a_sample_with_another_text_under_a_known_id_is_refused(run: Run, tmp_path: Path) -> None:
    figures(run, str(LOGS / "note_a.eval"))
    code, _, err = run("study", "import", str(sampled(input=SECRET + " at all?")(tmp_path)))
    assert (code, "already has another context" in " ".join(err.split())) == (2, True)
    assert SECRET not in err
