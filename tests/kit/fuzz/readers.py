"""What reads a file that a user gives, as functions of bytes, and what holds of each: a clean result, or one message.

Each reads all of it, and stores nothing.
A format of several files stands in one text, its files parted by a line of `CUT`.
"""

import hashlib
import json
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from annotate.description import as_page
from data.database import HEAD
from data.description import Description, read_description
from data.errors import MedjuryError
from data.importers.helm import finished, read_runs
from data.importers.inspect_logs import finished as finished_log
from data.importers.inspect_logs import read_inspect
from data.importers.ratings import RatingFile, expert_rows, medhelm_rows
from data.importers.redcap import FormReading, forms, redcap_rows
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import Rubric, read_rubric
from data.rubrics.helm import Unusable, read_helm
from data.study.copies import PACKED
from data.study.package import (
    DATABASE,
    MANIFEST,
    VERSION,
    Manifest,
    read_parts,
)
from jury.panel import read_panel
from jury.parse import parse
from medjury.cli.assignments import names
from medjury.services.bundle_check import read_bundle
from medjury.services.models import read_costs

CUT = b"\n==8<==\n"
GENERIC = read_rubric("generic")
KNOWN = [(f"r{n}{m}", "visits", f"i{n}", f"model-{m}") for n in (1, 2) for m in (1, 2)]
READINGS = {f"code{n}": FormReading(f"r1{n}", f"dr_{n}", 0) for n in (1, 2)}
Read = Callable[[Path, bytes], object]


def put(folder: Path, name: str, body: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def several(folder: Path, names_: Iterable[str], body: bytes) -> list[Path]:
    """Write the parts of a body as the files of those names; those without a part stay away."""
    parts = body.split(CUT)
    return [put(folder, name, part) for name, part in zip(names_, parts, strict=False)]


def responses(name: str) -> Read:
    return lambda folder, body: list(ResponseFile(TableFile(put(folder, name, body)), None))


def ratings(name: str) -> Read:
    def read(folder: Path, body: bytes) -> None:
        for row in RatingFile(TableFile(put(folder, name, body))):
            if row.kind != "metric":
                GENERIC.score(row.criterion, row.score, row.rater, str(row.origin))

    return read


def experts(folder: Path, body: bytes) -> object:
    return list(expert_rows(TableFile(put(folder, "experts.csv", body))))


def medhelm(folder: Path, body: bytes) -> object:
    table = TableFile(put(folder, "medhelm.csv", body), "csv")
    return list(RatingFile(medhelm_rows(table, KNOWN, "key", jury_mean=b"llm_" in body)[0]))


def redcap(folder: Path, body: bytes) -> object:
    table = TableFile(put(folder, "redcap.csv", body), "csv")
    return list(RatingFile(redcap_rows(table, forms([GENERIC]), READINGS)[0]))


def helm(folder: Path, body: bytes) -> None:
    files = ("run_spec.json", "scenario_state.json", "per_instance_stats.json", "stats.json")
    several(folder / "run", files, body)
    runs, _ = read_runs(folder / "run")
    for run in runs:
        try:
            finished(run, run.rubric())
        except Unusable:
            finished(run, GENERIC)


def inspect(name: str) -> Read:
    return lambda folder, body: finished_log(read_inspect(put(folder, name, body)), GENERIC)


def package(folder: Path, body: bytes) -> None:
    with TemporaryDirectory() as parts:
        list(read_parts(put(folder, "study.zip", body), Path(parts)))


def database_of_package(folder: Path, body: bytes) -> None:
    """Read a database as it would stand in a package that vouches for it."""
    rows = {}
    with suppress(sqlite3.Error, MemoryError), closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(body)
        for table in PACKED:
            [rows[table.name]] = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()  # noqa: S608
    manifest = Manifest(
        version=VERSION,
        medjury="1",
        tables=HEAD,
        authors="with",
        head="0" * 64,
        rows=rows,
        files={DATABASE: hashlib.sha256(body).hexdigest()},
    )
    with zipfile.ZipFile(folder / "made.zip", "w") as archive:
        archive.writestr(DATABASE, body)
        archive.writestr(MANIFEST, manifest.model_dump_json())
    package(folder, (folder / "made.zip").read_bytes())


def rubric(folder: Path, body: bytes) -> None:
    several(folder / "rubric", ("rubric.toml", "prompt.txt"), body)
    (folder / "rubric").mkdir(exist_ok=True)
    found = read_rubric(folder / "rubric")
    assert Rubric.from_json(found.to_json()) == found
    json.dumps(found.json_schema())


def helm_rubrics(folder: Path, body: bytes) -> object:
    place = "helm/benchmark/annotation/tiny_annotator.py"
    put(folder, place, body)
    return read_helm(str(folder))


def wheel(folder: Path, body: bytes) -> object:
    return read_helm(str(put(folder, "helm.whl", body)))


def panel(folder: Path, body: bytes) -> object:
    found = read_panel(put(folder, "panel.toml", body))
    return found.hosts(), [(one.address, one.profile()) for one in found.juror]


def description(folder: Path, body: bytes) -> None:
    """Read a study's description with the files it names, and show all of it as a page."""
    paths = several(folder, ("study.toml", "consent.md", "page.md"), body)
    found = read_description(paths[0])
    assert Description.from_json(found.to_json()) == found
    as_page(found)


def answer(folder: Path, body: bytes) -> None:
    parsed = parse(body.decode("utf-8", "surrogateescape"), GENERIC)
    if parsed.reply is not None:
        assert tuple(parsed.reply.scores) == GENERIC.criteria
        for score in parsed.reply.scores.values():
            assert score in GENERIC.scale.points
            assert str(int(score)).encode() in body


READERS: dict[str, Read] = {
    "responses.csv": responses("responses.csv"),
    "responses.jsonl": responses("responses.jsonl"),
    "ratings.csv": ratings("ratings.csv"),
    "ratings.jsonl": ratings("ratings.jsonl"),
    "experts": experts,
    "medhelm": medhelm,
    "redcap": redcap,
    "helm": helm,
    "inspect.json": inspect("log.json"),
    "inspect.eval": inspect("log.eval"),
    "package": package,
    "database_of_package": database_of_package,
    "rubric": rubric,
    "helm_rubrics": helm_rubrics,
    "wheel": wheel,
    "panel": panel,
    "description": description,
    "answer": answer,
    "costs.csv": lambda folder, body: read_costs(put(folder, "costs.csv", body)),
    "costs.toml": lambda folder, body: read_costs(put(folder, "costs.toml", body)),
    "raters": lambda folder, body: names(str(put(folder, "raters.txt", body))),
    "bundle": lambda folder, body: read_bundle(put(folder, "bundle.json", body)),
}


CANARY = "MrsCanaryQuillOfWardSevenCoughsSinceTuesdayAndWheezes"  # stands for a patient's text
LONGEST = 600


def hold(reader: str, body: bytes) -> str:
    """Read bytes as a file of that kind; return the message they are refused with, else ""."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        READERS[reader](folder, body)
    except MedjuryError as error:
        return _fit(str(error), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""


def _fit(message: str, folder: Path) -> str:
    bare = message.replace(str(folder), "")
    assert message.strip()
    assert len(bare) < LONGEST, f"{len(bare)} characters: {bare[:200]}..."
    assert "\n" not in bare, repr(bare)
    assert CANARY not in bare, bare
    assert "." in bare or bare != message, f"names no file: {bare}"
    bare.encode()
    return bare
