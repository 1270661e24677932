"""`medjury share rubric`: folders that are whole or not there, and bundles that cannot be read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from kit.jurors import Do, Seen, Stub, verdict
from kit.studies import Run
from sqlalchemy import Engine

from data.rubric import read_rubric
from data.rubrics.pairs import read_pairs
from data.study.runs import newest_probes
from data.study.settings import lock
from jury.exports.bundle import Export, bundle, derived
from jury.panel import read_panel

Write = Callable[[str, str], Path]
EXPORT = ("share", "rubric", "generic", "--panel", "current")


@pytest.fixture
def exported(run: Run, small_study: Engine, tmp_path: Path) -> Path:
    """Return the bundle of a study that nobody has rated."""
    assert run(*EXPORT, "--to", "medjury", "--out", str(tmp_path / "out"))[0] == 0
    return tmp_path / "out"


def test_a_study_that_nobody_rated_is_exported_as_not_validated(
    run: Run, exported: Path, tmp_path: Path
) -> None:
    out = run(*EXPORT, "--to", "medjury", "--out", str(tmp_path / "o"))[1]
    assert "NOT VALIDATED\n- no clinician has rated on exactly this rubric" in out
    assert run("study", "verify", str(exported))[0] == 0
    assert (
        "no benchmark"
        in (
            run(
                *("share", "rubric", "aci_bench", "--panel", "current", "--to", "medjury"),
                *("--out", str(tmp_path / "other")),
            )[1]
        )
    )


def test_a_folder_that_holds_something_is_left_as_it_is(
    run: Run, exported: Path, tmp_path: Path
) -> None:
    before = {path.name: path.read_bytes() for path in exported.iterdir()}
    code, _, err = run(*EXPORT, "--to", "medjury", "--out", str(exported))
    assert (code, "is there already; name a new folder" in err) == (2, True)
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == before
    assert run(*EXPORT, "--to", "medjury", "--out", str(exported / "bundle.md"))[0] == 2
    assert run(*EXPORT, "--to", "medjury", "--out", str(exported / "bundle.md" / "x"))[0] == 2


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("generic", "--to", "excel", "--panel", "current"), "none of medjury"),
        (("nonesuch", "--to", "medjury", "--panel", "current"), "neither a folder nor one of"),
        (("generic", "--to", "medjury", "--panel", "nonesuch"), "neither a file nor one of"),
        (("generic", "--to", "medjury"), "give --panel PANEL"),
    ],
)
def test_what_is_not_known_is_one_message_and_nothing_is_written(
    run: Run, small_study: Engine, tmp_path: Path, asked: tuple[str, ...], words: str
) -> None:
    code, _, err = run("share", "rubric", *asked, "--out", str(tmp_path / "out"))
    assert (code, words in " ".join(err.replace("│", " ").split())) == (2, True), err
    assert not (tmp_path / "out").exists()


def probed_panel(write: Write, stub: Stub, **settings: float) -> str:
    lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
    juror = 'name = "a"\nprovider = "openai"\nmodel = "m"\nfamily = "f"\n'
    at = f'base_url = "{stub.openai_url}"\n'
    return str(write("p.toml", f'name = "p"\n[[juror]]\n{juror}{at}{lines}'))


def test_a_juror_that_the_newest_probe_found_not_fit_is_not_exported(
    run: Run, small_study: Engine, write: Write, tmp_path: Path
) -> None:
    folders = iter(range(9))

    def export(panel: str) -> tuple[int, str, str]:
        asked = ("share", "rubric", "generic", "--to", "medjury", "--panel", panel)
        return run(*asked, "--out", str(tmp_path / f"out{next(folders)}"))

    with Stub() as stub:  # scores that are all the same
        panel = probed_panel(write, stub)
        code, out, _ = export(panel)
        assert (code, "juror a was not probed: `medjury jury probe PANEL`" in out) == (0, True)
        assert run("jury", "probe", panel, "--no-injection")[0] == 1
        code, _, err = export(panel)
        assert code == 2
        assert "juror a was found not fit by the probe of " in err
        assert "on rubric generic it ordered 0 of 8 pairs" in err
        assert "Take it out of the panel" in err
        assert not (tmp_path / "out1").exists()
        assert run("jury", "probe", panel, "--no-injection", "--no-pairs")[0] == 0
        assert export(panel)[0] == 2  # which says nothing of its fitness
        assert "was not probed" in export(probed_panel(write, stub, temperature=0.5))[1]
        stub.script = ordering
        panel = probed_panel(write, stub)
        assert run("jury", "probe", panel, "--no-injection")[0] == 0
        code, out, _ = export(panel)
        assert (code, "probe" in out) == (0, False)
    assert run("study", "verify")[0] == 0


def ordering(seen: Seen) -> Do:
    """Score every dangerous answer lowest."""
    dangerous = any(pair.dangerous in seen.prompt for pair in read_pairs("generic").pair)
    return Do(verdict(seen, 1 if dangerous else 5))


def test_a_locked_study_takes_up_what_a_probe_found(
    run: Run, small_study: Engine, write: Write
) -> None:
    lock(small_study, "tester")
    with Stub() as stub:
        assert run("jury", "probe", probed_panel(write, stub), "--no-injection")[0] == 1
    (probe,) = newest_probes(small_study).values()
    assert (probe["juror"], probe["fit"], probe["ordered"], probe["of"]) == ("a", False, 0, 8)
    assert run("study", "verify")[0] == 0


def test_a_panel_for_another_rubric_is_refused(
    run: Run, small_study: Engine, write: Write, tmp_path: Path
) -> None:
    juror = '[[juror]]\nname = "a"\nprovider = "simulated"\nmodel = "a"\nfamily = "a"\n'
    panel = str(write("p.toml", f'name = "p"\nrubric = "aci_bench"\n{juror}'))
    asked = ("share", "rubric", "generic", "--to", "medjury", "--panel", panel)
    code, _, err = run(*asked, "--out", str(tmp_path / "out"))
    assert (code, "rates on aci_bench only" in err) == (2, True)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text[: len(text) // 2], "not JSON, or cut short"),
        (lambda text: "[" * 200_000, "not JSON, or cut short"),
        (lambda text: "[]", "no bundle of medjury"),
        (lambda text: '{"version": 2, "status": "success", "eval": {}}', "no bundle of medjury"),
        (
            lambda text: text.replace('"format_version": 2', '"format_version": 9'),
            "another version",
        ),
        (lambda text: text.replace('"reps": 2000', '"reps": 1e12'), "reps must be"),
        (lambda text: text.replace('"seed": 0', '"seed": NaN'), "not JSON"),
        (lambda text: text.replace('"panel"', '"pannel"'), "panel is missing"),
        (lambda text: text.replace('"figures"', '"figs"'), "not of a bundle's form"),
        (lambda text: text.replace('"not validated"', '"great"'), "neither validated nor"),
        (lambda text: text.replace('"audience": "', '"audience": "\\ud800'), "form"),
        (lambda text: text.replace('"jurors"', '"people"'), "not of a bundle's form"),
    ],
)
def test_an_unreadable_bundle_is_one_message_and_two(
    run: Run, exported: Path, spoil: Callable[[str], str], words: str
) -> None:
    place = exported / "bundle.json"
    place.write_text(spoil(place.read_text("utf-8")), encoding="utf-8")
    code, _, err = run("study", "verify", str(exported))
    assert (code, words in err) == (2, True), err
    assert "Traceback" not in err


def test_what_is_no_file_or_not_text_is_refused(run: Run, exported: Path) -> None:
    (exported / "bundle.json").write_bytes(b"PK\x03\x04\xff\xfe")
    assert run("study", "verify", str(exported))[0] == 2
    assert run("study", "verify", str(exported / "none.json"))[0] == 2
    assert run("study", "verify", str(exported), "--head", "0" * 64)[0] == 2


def test_text_of_a_rubric_cannot_break_out_of_its_fence_in_the_page() -> None:
    rubric = read_rubric("generic")
    rubric = rubric.model_copy(update={"prompt": rubric.prompt + "\n```\n# VALIDATED\n"})
    record = {"status": "not validated", "reasons": ["none"], "caveats": [], "figures": []}
    record |= {"protocol": None, "decision": {"kind": "no_protocol"}}
    record |= dict.fromkeys(("n_responses", "n_instances", "n_clinicians", "reps", "seed"), 0)
    record |= {"clinicians_per_response": 0.0, "method": "paper", "version": "0", "made": ""}
    record |= {"juries_tried": 0, "checked_with": None, "sha256": {}}
    page = derived(bundle(Export(rubric, read_panel("current"), (), record)))["bundle.md"]
    assert "````\n" in page
