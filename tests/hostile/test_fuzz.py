"""Any bytes as any file: a clean result or one message; what once crashed a reader never does again.

The coverage-guided run of all readers, from seeds made anew, is in the slow tier; `kit/fuzz/target.py`
runs one reader longer.
"""

import io
import json
import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.fuzz.readers import CUT, READERS, hold
from kit.fuzz.seeds import CRASHES, PANEL, RESPONSES, lines, made, table

from data.errors import BadInput
from medjury.cli.assignments import names

TARGET = Path(__file__).parents[1] / "kit" / "fuzz" / "target.py"
SECONDS = 20
GIVEN = made()
JUNK = st.one_of(
    st.binary(max_size=6),
    st.sampled_from([b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b'"', b"'", b",", b"\n", b"{"]),
    st.sampled_from([b"[", b"]]", b"NaN", b"Infinity", b"-1e999", b"9" * 5000, b"\\ud800", CUT]),
    st.sampled_from([b"\xed\xa0\x80", b"[" * 2000, b"=1+1", b"9999-12-31T23:59:59-23:59"]),
    st.sampled_from(["\u0664".encode(), b"null", b"true"]),
)
SCALE = b'name="a"\nversion="1"\naudience="n"\ngold="never"\n[scale]\nmin=0\nmax=%s\n' + (
    b'[[criterion]]\nname="c"\nquestion="q"\nanchors={"0"="a"}\n' + CUT + b"{{response}}"
)


def zipped(**parts):
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in parts.items():
            archive.writestr(name.replace("__", "/") + ".json", body)
    return to.getvalue()


BOMBS = {
    "a list nested without end": ("responses.jsonl", b"[" * 200_000),
    "a number without end": ("responses.jsonl", b'{"a": ' + b"1" * 200_000 + b"}"),
    "a quarter of a million columns": ("responses.csv", b"," * 250_000),
    "a line of ten megabytes": ("responses.csv", b"x" * 10_000_000),
    "a cell of ten megabytes": ("ratings.csv", table([{"a": "x" * 10_000_000}])),
    "an open quotation mark": ("responses.csv", table(RESPONSES) + b'"' + b"x\n" * 100_000),
    "a scale without end": ("rubric", SCALE % b"999999999999999999999"),
    "a scale that fills the memory": ("rubric", SCALE % b"99999999"),
    "a TOML list nested without end": ("panel", b"a = " + b"[" * 100_000),
    "a TOML table nested without end": ("panel", b".".join([b"a"] * 100_000) + b" = 1"),
    "a TOML number without end": ("rubric", b"a = " + b"1" * 100_000),
    "a zip of zeros as a log": ("inspect.eval", zipped(header=b"0" * (40 << 20))),
    "a zip of zeros as a package": ("package", zipped(manifest=b"0" * (40 << 20))),
    "a deep log": ("inspect.json", b'{"version": 2, "eval": ' + b"[" * 200_000),
    "a deep run of HELM": ("helm", b"{" * 200_000 + CUT + b"[" * 200_000),
    "Python nested without end": ("helm_rubrics", b"LLMAsJuryAnnotator = " + b"(" * 100_000),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_whole_file_of_each_kind_is_read(reader):
    for body in GIVEN[reader]:
        said = hold(reader, body)
        assert not said or reader == "bundle", said


@pytest.mark.parametrize("what", BOMBS)
def test_what_would_take_all_memory_or_time_is_refused(what):
    reader, body = BOMBS[what]
    assert hold(reader, body)


@pytest.mark.parametrize(
    "path", sorted(CRASHES.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_what_once_crashed_a_reader_is_read_or_refused(path):
    hold(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("examples", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_a_damaged_file_is_read_or_refused_in_one_message(examples):
    every = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    every(given(st.sampled_from(sorted(READERS)), st.data())(read_damaged))()


def read_damaged(reader, data):
    body = data.draw(st.sampled_from(GIVEN[reader]))
    for at, junk in data.draw(st.lists(st.tuples(st.integers(0, 9_999), JUNK), max_size=4)):
        at = at % (len(body) + 1)
        body = body[:at] + junk + body[at + len(junk) % 5 :]
    hold(reader, body)


def test_a_key_that_stands_twice_in_a_row_is_refused():
    twice = lines(RESPONSES)[:-1] + b', "response": "another"}'
    assert "twice" in hold("responses.jsonl", twice)


def test_a_number_of_clinicians_that_no_study_has_is_refused():
    for number in ("9" * 5, "9" * 5000):
        with pytest.raises(BadInput, match="at most 9999"):
            names(number)
    assert len(names("3")) == 3


def test_a_panels_address_that_is_none_is_refused_when_it_is_read():
    for port in ("99999", "sk-secret", "0"):
        said = hold("panel", PANEL.replace(":8000", f":{port}").encode())
        assert "is not an address" in said or "may hold a key" in said


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("atheris"), reason="atheris has no wheel for this platform")
def test_inputs_that_coverage_guides_keep_the_contract(tmp_path):
    order, corpus = sorted(READERS), tmp_path / "corpus"
    corpus.mkdir()
    for name, bodies in GIVEN.items():
        for number, body in enumerate(bodies):
            (corpus / f"{name}-{number}").write_bytes(bytes([order.index(name)]) + body)
    options = [f"-max_total_time={SECONDS}", "-seed=95", "-timeout=60", "-max_len=40000"]
    call = [sys.executable, str(TARGET), "all", *options, f"-artifact_prefix={tmp_path}/"]
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}
    ran = subprocess.run(
        [*call, str(corpus)], capture_output=True, text=True, timeout=240, env=quiet, check=False
    )
    kept = [path.name for path in tmp_path.iterdir() if path.is_file()]
    assert ran.returncode == 0, json.dumps({"kept": kept, "said": ran.stderr[-3000:]})
    assert "Done" in ran.stderr
