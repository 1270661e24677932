"""`--on tls://`: the same figures and verdicts, and one message where certificates do not fit."""

import signal
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from kit.dask_place import Place, Variables, certified, dask_reads
from kit.jurors import Do, Seen, Stub
from kit.studies import HEAD, RESPONSES, Run
from sqlalchemy import Engine

from medjury.cli.dask_connect import CA, CERT, ENCRYPTION, KEY
from medjury.cli.jury_words import WORKERS


class TlsPlace(Place):
    """A scheduler that speaks TLS, and what has been started for it."""

    def __init__(self, folder: Path) -> None:
        self.variables = certified(folder, "ward")
        super().__init__(folder)

    def _start(
        self, command: tuple[str, ...], environment: Mapping[str, str] = {}
    ) -> "subprocess.Popen[bytes]":
        tls = ("--protocol", "tls") if "scheduler" in command else ()
        return super()._start((*command, *tls), {**self.variables, **environment})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsPlace]:
    place = TlsPlace(tmp_path_factory.mktemp("tls"))
    place.worker()
    try:
        yield place
    finally:
        place.end()


@pytest.fixture
def let_in(place: TlsPlace, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show the scheduler's CA one of its certificates."""
    with dask_reads(monkeypatch, place.variables):
        place.ready(1)
        yield


def rated(run: Run, folder: Path) -> None:
    """Import 24 responses that two clinicians and a juror have rated."""
    random = np.random.default_rng(0)
    texts = [HEAD]
    scores = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for n in range(24):
        texts.append(f"i{n},visits,c {n},Write.,,r{n},m,pain {n}")
        for rater, kind in (("dr_a", "clinician"), ("dr_b", "clinician"), ("alpha", "juror")):
            own = np.clip(np.rint(1 + n / 8 + random.normal(0, 0.7, 3)), 1, 5).astype(int)
            scores.append(f"r{n},{rater},{kind},{own[0]},{own[1]},{own[2]}")
    for command, lines in (("study import", texts), ("rate ratings", scores)):
        file = folder / f"{command}.csv"
        file.write_text("\n".join([*lines, ""]))
        assert run(*command.split(), str(file))[0] == 0


@pytest.mark.usefixtures("let_in")
def test_the_json_is_that_of_this_machine_byte_for_byte(
    place: TlsPlace, run: Run, study_file: Path, tmp_path: Path
) -> None:
    rated(run, tmp_path)
    here, there, before = (tmp_path / name for name in ("here.json", "there.json", "before.db"))
    with sqlite3.connect(study_file) as study, sqlite3.connect(before) as copy:
        study.backup(copy)
    command = ("analyse", "juries", "--reps", "100", "--json")
    assert run(*command, str(here))[0] == 0
    code, out, err = run("--db", f"sqlite:///{before}", *command, str(there), "--on", place.address)
    assert (code, place.address[:6], "sent to 1 worker" in out) == (0, "tls://", True), err
    assert "not encrypted" not in out
    assert there.read_bytes() == here.read_bytes()


@pytest.mark.usefixtures("let_in")
def test_calls_whose_workers_are_all_lost_are_made_by_those_started_as_advised(
    place: TlsPlace, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "responses.csv").write_text(RESPONSES)
    run("study", "import", str(tmp_path / "responses.csv"))
    worker = place.processes[-1]

    def script(seen: Seen) -> Do:
        if worker.poll() is None:
            worker.send_signal(signal.SIGKILL)
            return Do(seconds=1.0)
        return Do()

    with Stub(script) as stub:
        panel = tmp_path / "panel.toml"
        one = f'name = "a"\nmodel = "a"\nprovider = "openai"\nbase_url = "{stub.openai_url}"\n'
        panel.write_text(f'name = "p"\n[[juror]]\nfamily = "x"\n{one}')
        command = ("jury", "run", str(panel), "--on", place.address)
        code, out, err = run(*command)
        lost = " ".join(out.split())
        assert (code, "scored 0 of 4" in out) == (1, True), out + err
        assert f"the last: no worker is left at {place.address}" in lost
        assert (WORKERS in lost, "base_url" in lost) == (True, False), out
        place.worker()
        place.ready(1)
        code, out, err = run(*command)
        assert (code, "scored 4 of 4" in out) == (0, True), out + err


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Variables:
    """Return the variables of another CA."""
    return certified(tmp_path_factory.mktemp("other"), "other")


def test_certificates_that_do_not_fit_are_one_message_at_once(
    place: TlsPlace,
    other: Variables,
    run: Run,
    small_study: Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, tls = place.variables, place.address
    tcp = tls.replace("tls://", "tcp://")
    cases: list[tuple[Variables, str, str]] = [
        ({}, tls, f"tls:// needs certificates: set {CA} and {CERT}"),
        (ours | {CERT: ""}, tls, f"tls:// needs certificates: set {CERT} "),
        (other, tls, "the scheduler's certificate is not accepted (self-signed certificate"),
        (other | {CA: ours[CA]}, tls, "the scheduler hung up at this machine's certificate"),
        (ours | {KEY: f"{tls}/none"}, tls, f"{KEY}={tls}/none: no such file"),
        (ours | {KEY: other[KEY]}, tls, "a certificate and its key in PEM form (KEY_VALUES_MIS"),
        ({}, tcp, "the scheduler speaks TLS; give tls://HOST:PORT"),
        ({ENCRYPTION: "True"}, tcp, f"{ENCRYPTION} is set here: give tls://HOST:PORT"),
        ({ENCRYPTION: "True"}, "local:1", f"{ENCRYPTION} is set here: give tls://HOST:PORT"),
    ]
    for named, on, says in cases:
        with dask_reads(monkeypatch, named):
            code, out, err = run("analyse", "measure", "--on", on)
            assert (code, out, says in err, err.count("\n")) == (2, "", True, 1), err
