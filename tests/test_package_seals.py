"""No cell of a package can be changed, not even by who makes its digests anew."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit.packaged_study import altered, says, swap
from kit.sealed_study import fill_all
from kit.studies import Run
from kit.study_place import StudyIn, all_rows
from sqlalchemy import Engine

from data.database import open_study
from data.errors import BadFile
from data.importers.package import PARTS, Package, columns, part
from data.queries.package import kept_setting
from data.record import UNSEALED
from data.store.package import ACCEPTED, import_package
from data.study.verify import acts, verify
from medjury import main

KINDS = {"without": (), "with": ("--unblind", "--reason", "test")}
LEFT_OUT = {(of, column) for of, columns in UNSEALED.items() for column in columns}
ENUMS = {
    "clinician": "juror",
    "juror": "clinician",
    "done": "open",
    "open": "done",
    "ok": "refused",
}


@dataclass(frozen=True)
class Packages:
    """A study's packages by kind, and an empty study that none of the forged ones may fill."""

    paths: dict[str, Path]
    empty: Engine


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory, study_in: StudyIn) -> Iterator[Packages]:
    folder = tmp_path_factory.mktemp("packed")
    url = study_in(folder)
    engine = open_study(url, create=True)
    fill_all(engine)
    engine.dispose()
    for kind, options in KINDS.items():
        with pytest.raises(SystemExit, match="0"):
            main(
                ["share", "export", "--package", str(folder / f"{kind}.zip"), *options, "--db", url]
            )
    empty = open_study(study_in(folder, "empty.db"), create=True)
    yield Packages({kind: folder / f"{kind}.zip" for kind in KINDS}, empty)
    empty.dispose()


def forged(path: Path, table: str, column: str, line: int) -> Path:
    """Write a package anew with one cell changed and all digests made anew."""
    name = part(table)

    def change(parts: dict[str, bytes]) -> None:
        rows = list(csv.reader(io.StringIO(parts[name].decode(), newline="")))
        place = rows[0].index(column)
        rows[line][place] = other(table, column, rows[line][place])
        written = io.StringIO(newline="")
        csv.writer(written).writerows(rows)
        parts[name] = written.getvalue().encode()

    return altered(path, change, vouch=True)


def other(table: str, column: str, cell: str) -> str:
    """Return another cell that the column's type takes."""
    kind, _ = columns(table)[column]
    if kind is bool:
        return "0" if cell == "1" else "1"
    if kind is int:
        return str(int(cell or 0) + 1)
    if kind is float:
        return repr(float(cell or 0) + 1)
    if kind is dict:
        return json.dumps((json.loads(cell or "{}") or {}) | {"forged": 1})
    if kind is list:
        return json.dumps([*json.loads(cell), "forged"])
    if kind.__name__ == "datetime":
        return "2026-01-01T00:00:00+00:00"
    return ENUMS.get(cell, f"{cell}x")


def refused(packages: Packages, path: Path) -> bool:
    """Tell whether a package is refused, in one line, and leaves nothing behind."""
    try:
        import_package(packages.empty, Package(path), "researcher")
    except BadFile as error:
        said = str(error)
    else:
        return False
    assert len(said.splitlines()) == 1
    return not any(all_rows(packages.empty).values())


def cells(kind: str) -> list[tuple[str, str]]:
    every = [(table, column) for table in PARTS[kind] for column in columns(table)]
    return [one for one in every if one not in LEFT_OUT]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "cell",
    [
        *(("rater", one) for one in ("kind", "handle", "simulated", "profile")),
        *(("response", one) for one in ("text", "masked", "commitment")),
        *(("rating", "score"), ("assignment", "state"), ("attempt", "usd"), ("setting", "value")),
        *(("benchmark", "rubric_sha256"), ("composition", "times"), ("span", "severity")),
    ],
    ids=".".join,
)
def test_a_cell_changed_with_all_digests_made_anew_is_refused(
    packages: Packages, kind: str, cell: tuple[str, str]
) -> None:
    assert refused(packages, forged(packages.paths[kind], *cell, 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", PARTS["with"])
def test_every_column_of_every_table_of_a_package_is_held_to_the_record(
    packages: Packages, kind: str, table: str
) -> None:
    taken = [
        column
        for of, column in cells(kind)
        if of == table and not refused(packages, forged(packages.paths[kind], of, column, 1))
    ]
    assert taken == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["gone", "twice", "swapped"])
@pytest.mark.parametrize("table", ["rater", "rating", "assignment", "attempt", "submission"])
def test_rows_taken_out_put_in_or_swapped_are_refused(
    packages: Packages, kind: str, what: str, table: str
) -> None:
    name = part(table)

    def change(parts: dict[str, bytes]) -> None:
        head, *rows = list(csv.reader(io.StringIO(parts[name].decode(), newline="")))
        if what == "gone":
            rows.pop()
        elif what == "twice":
            rows.append([str(len(rows) + 900), *rows[-1][1:]])
        else:
            rows[0], rows[-1] = [rows[0][0], *rows[-1][1:]], [rows[-1][0], *rows[0][1:]]
        written = io.StringIO(newline="")
        csv.writer(written).writerows([head, *rows])
        parts[name] = written.getvalue().encode()
        manifest = json.loads(parts["manifest.json"])
        manifest["files"][name]["rows"] = len(rows)
        parts["manifest.json"] = json.dumps(manifest).encode()

    assert refused(packages, altered(packages.paths[kind], change, vouch=True))


@pytest.mark.parametrize("kind", KINDS)
def test_another_number_of_rows_than_the_manifest_says_is_refused(
    packages: Packages, kind: str
) -> None:
    with zipfile.ZipFile(packages.paths[kind]) as archive:
        files = json.loads(archive.read("manifest.json"))["files"]
    files[part("rating")]["rows"] += 1
    with pytest.raises(BadFile, match=r"tables/rating\.csv has \d+ rows"):
        Package(altered(packages.paths[kind], says(files=files)))


def test_an_untouched_package_without_authors_verifies_clean(
    packages: Packages, run: Run, engine: Engine
) -> None:
    code, out, _ = run("study", "import", str(packages.paths["without"]))
    assert (code, "the record is whole" in out) == (0, True)
    found = verify(engine)
    assert (found.findings, found.authors_withheld) == ((), True)
    assert run("study", "verify")[0] == 0
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT key FROM setting").scalars().all()
    assert all(kept_setting(key) or key == "training_key" for key in rows)


def test_findings_that_are_accepted_are_stored_and_recorded(
    packages: Packages, run: Run, engine: Engine
) -> None:
    path = altered(
        packages.paths["without"],
        swap("tables/rater.csv", "juror,j1", "clinician,j1"),
        vouch=True,
    )
    code, out, err = run("study", "import", str(path))
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)
    assert "rater " in err
    assert "changed since event" in err
    assert not any(all_rows(engine).values())
    code, out, err = run("study", "import", str(path), "--accept-findings")
    assert (code, "stored with 1 finding" in out) == (0, True), err
    [kept] = acts(engine, ACCEPTED)
    assert kept.detail["findings"] == list(verify(engine).findings)
    assert run("study", "verify")[0] == 1


def test_accepting_findings_belongs_to_a_package(run: Run, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "responses.csv").write_text("a\n1\n")
    code, _, err = run("study", "import", str(tmp_path / "responses.csv"), "--accept-findings")
    assert (code, "belongs to a package" in err) == (2, True)


def test_no_digest_of_a_package_without_authors_tells_one_to_who_guesses(
    packages: Packages,
) -> None:
    """A masked name and an author stand in the package only under salts that stay behind."""
    with zipfile.ZipFile(packages.paths["without"]) as archive:
        body = {name: archive.read(name).decode() for name in archive.namelist()}
    rows = list(csv.DictReader(io.StringIO(body["tables/response.csv"], newline="")))
    assert [one["response_id"] for one in rows if one["masked"] == "1"] == ["visits-r3"]
    assert [bool(one["salt"]) for one in rows] == [one["masked"] == "0" for one in rows]
    assert not [name for name, text in body.items() if "GPT-4o" in text or "model-1" in text]
