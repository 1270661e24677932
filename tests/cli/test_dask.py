"""`--on ADDRESS` for measure and juries: the same figures, wherever they are computed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from kit.dask_place import Place, dask_place
from kit.studies import HEAD, Run
from kit.study_place import StudyIn, copy_study
from sqlalchemy import create_engine, text

from calibration.bootstrap import BootstrapPlan, by_lots, draw_counts, replicates
from data.errors import BadInput
from medjury import main
from medjury.cli import dask_workers
from medjury.cli.dask_workers import computing

SECRET = "Xylophone"  # a word of the texts, which no log may hold
RESPONSES = 130
METRICS = (
    "select response, criterion, score, comment from rating join rater on rater.id = rating.rater "
    "where lower(rater.kind) = 'metric' order by 1, 2, 4"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Run a scheduler and two workers for all tests that leave them whole."""
    with dask_place(tmp_path_factory.mktemp("dask")) as place:
        place.worker()
        place.worker()
        yield place


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, study_in: StudyIn) -> str:
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
    for command, rows in (("study import", lines), ("rate ratings", scores)):
        file = folder / f"{command}.csv"
        file.write_text("\n".join(rows))
        with pytest.raises(SystemExit) as ended:
            main(["--db", study_in(folder), *command.split(), str(file)])
        assert not ended.value.code
    return study_in(folder)


@pytest.fixture
def study(run: Run, filled: str, url: str) -> Run:
    """Return what runs a command on a copy of the filled study."""
    copy_study(filled, url)
    return run


def test_lots_of_resamples_are_the_same_whoever_draws_them() -> None:
    how = BootstrapPlan(clusters=70, rows=5000, reps=300, seed=3)
    drawn = list(draw_counts(70, rows=5000, reps=300, seed=3))
    assert len(drawn) > 3
    with ThreadPoolExecutor(2) as pool:
        there = BootstrapPlan(70, 5000, 300, 3, pool)
        elsewhere = list(by_lots(np.copy, there))
        sums = replicates(lambda counts: counts @ np.arange(70.0), there)
    assert all(np.array_equal(*two) for two in zip(drawn, elsewhere, strict=True))
    assert np.array_equal(sums, replicates(lambda counts: counts @ np.arange(70.0), how))


def test_the_json_is_that_of_this_machine_byte_for_byte(
    place: Place, study: Run, filled: str, url: str, tmp_path: Path
) -> None:
    place.ready(2)
    command = ("analyse", "juries", "--reps", "200")
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    assert study(*command, "--json", str(here))[0] == 0
    copy_study(filled, url)  # a command leaves its comparisons in the ledger
    code, out, err = study(*command, "--on", place.address, "--json", str(there))
    assert (code, "scores, no texts, are sent to 2 workers" in out) == (0, True), err
    assert there.read_bytes() == here.read_bytes()


def test_metrics_are_those_of_this_machine(place: Place, study: Run, filled: str, url: str) -> None:
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


def test_what_goes_wrong_at_a_worker_is_told_here_and_shows_no_text_there(
    place: Place, study: Run, tmp_path: Path
) -> None:
    place.ready(2)
    absent = str(tmp_path / "no-model")
    code, _, err = study(
        "analyse", "measure", "bertscore", "--model", absent, "--on", place.address
    )
    assert (code, err.count("\n"), "--on" in err, "no-model" in err) == (2, 1, True, True), err
    with computing(place.address, "texts are") as workers:
        assert workers is not None
        results = workers.map(lambda text: len(text) / 0, [SECRET])
        with pytest.raises(ZeroDivisionError):
            next(results)
    assert SECRET not in place.logs


def test_workers_that_die_are_one_message(
    study: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "SECONDS", 3.0)
    with dask_place(tmp_path) as place:
        worker = place.worker()
        place.ready(1)
        with computing(place.address, "numbers are") as workers:
            assert workers is not None
            results = workers.map(sleep, [0.0, 600.0])
            assert next(results) is None
            worker.kill()
            with pytest.raises(BadInput, match="its workers were lost; run this again"):
                next(results)
