"""The bundle: what it says of a validation follows from the study, can be checked, and is whole or not there."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.commands import json_of
from kit.exported_panels import RECORD
from kit.jurors import Do, Seen, Stub, verdict
from kit.jury_runs import panel_at, written
from kit.studies import HEAD, Run, Write
from kit.study_place import copy_study
from sqlalchemy import text

from calibration.decision import DecisionKind
from data.rubric import Rubric, read_rubric
from data.rubrics.pairs import read_pairs
from data.samples import CALCULATIONS, RESPONSES
from data.study.rubrics import rubric_use, validation_evidence
from data.study.runs import newest_probes
from data.study.settings import lock
from jury.exports.bundle import NOT_SHOWN, Export, bundle, derived, reasons
from jury.panel import panel_toml, read_panel
from medjury import main
from medjury.services.rubric_export import seats_of

PANEL = """name = "ward"
[[juror]]
name = "gpt"
provider = "openai"
model = "gpt-ward"
family = "gpt"
base_url = "https://llm.ward.example/v1"
api_key_env = "WARD_SECRET_KEY"
[[juror]]
name = "llama"
provider = "openai"
model = "llama-ward"
family = "llama"
base_url = "http://127.0.0.1:9/v1"
"""
DOCTORS = ("dr-holm", "dr-ude")
SECRET = "Mrs Krause has chest pain."
JURY = ("--jurors", "gpt,llama")
EXPORT = ("share", "rubric", "generic", "--to", "medjury", "--reps", "1000")


def rows(n: int = 60) -> tuple[str, str]:
    """Return n responses to n / 2 instances, and their ratings by clinicians and jurors."""
    random = np.random.default_rng(3)
    texts = [HEAD]
    scores = ["response_id,rater,kind,accuracy,completeness,clarity"]
    raters = [(f"{name},clinician", 0.9) for name in DOCTORS]
    raters += [("gpt,juror", 0.4), ("llama,juror", 0.4)]
    for i in range(n):
        texts.append(f"i{i // 2},visits,{SECRET},Write.,Word.,r{i},zz-author,Answer {i}.")
        for who, noise in raters:
            drawn = np.clip(np.round(1 + i % 5 + random.normal(0, noise, 3)), 1, 5)
            scores.append(f"r{i},{who},{','.join(f'{one:g}' for one in drawn)}")
    return "\n".join(texts), "\n".join(scores)


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(str(ended.value.code or 0))


def build(folder: Path, call: Callable[..., object], db: tuple[str, ...] = (), *fixed: str) -> None:
    """Import responses, set a protocol, and import the ratings."""
    texts = dict(zip(("r.csv", "s.csv"), rows(), strict=True)) | {"ward.toml": PANEL}
    for name, body in texts.items():
        (folder / name).write_text(body, encoding="utf-8")
    call("study", "import", str(folder / "r.csv"), *db)
    call("study", "protocol", "set", "--margin", "0.1", *JURY, *fixed, *db)
    call("rate", "ratings", str(folder / "s.csv"), *db)


@pytest.fixture(scope="module")
def made(tmp_path_factory, study_in) -> Path:
    """Make a study whose jury is validated, and its bundle, once: each test has copies."""
    folder = tmp_path_factory.mktemp("made")
    db = ("--db", study_in(folder))
    build(folder, call, db)
    asked = (*EXPORT, "--panel", str(folder / "ward.toml"), "--out", str(folder / "out"))
    assert call(*asked, *db) == 0
    return folder


@pytest.fixture
def exported(made, tmp_path, url, study_in) -> Path:
    files = shutil.ignore_patterns("study.db*")
    shutil.copytree(made, tmp_path, ignore=files, dirs_exist_ok=True)
    copy_study(study_in(made), url)
    return tmp_path / "out"


@pytest.fixture
def panel(exported) -> str:
    return str(exported.parent / "ward.toml")


def read(folder: Path) -> dict:
    return json.loads((folder / "bundle.json").read_text("utf-8"))


def again(run: Run, panel: str, out: Path) -> dict:
    """Export once more, and return what is said of the validation."""
    assert run(*EXPORT, "--panel", panel, "--out", str(out))[0] == 0
    return read(out)["validation"]


def test_a_validated_bundle_holds_all_that_it_rests_on_and_no_name_key_or_text(exported):
    body, generic = read(exported), read_rubric("generic")
    assert Rubric(**body["rubric"]).sha256 == generic.sha256
    assert (body["schema"], body["prompt"]) == (generic.json_schema(), generic.prompt)
    record = body["validation"]
    assert (record["status"], record["reasons"]) == ("validated", [])
    counts = ("n_responses", "n_instances", "n_clinicians", "clinicians_per_response")
    assert [record[name] for name in counts] == [60, 30, 2, 2]
    assert (record["method"], record["reps"], record["seed"]) == ("paper", 1000, 0)
    assert record["sha256"]["rubric"] == generic.sha256
    criteria = {row["criterion"] for row in record["figures"] if row["scorer"] == "like_for_like"}
    assert criteria == {None, "accuracy", "completeness", "clarity"}
    assert any("importer's word" in one for one in record["caveats"])
    everything = "".join(path.read_text("utf-8") for path in exported.iterdir())
    for hidden in (*DOCTORS, "zz-author", "WARD_SECRET_KEY", SECRET, "Answer 1."):
        assert hidden not in everything


def test_its_figures_are_those_of_calibrate_and_its_folder_is_a_rubric(run, exported, panel):
    asked = ("analyse", "calibrate", "--panel", panel, "--reps", "1000", "--criterion", "clarity")
    rows = {row["scorer"]: row for row in json_of(run, *asked)["rows"]}
    mine = [row for row in read(exported)["validation"]["figures"] if row["criterion"] == "clarity"]
    assert len(mine) == len(rows)
    for row in mine:
        assert all(rows[row["scorer"]][name] == row[name] for name in row if name != "criterion")
    assert read_rubric(exported).sha256 == read_rubric("generic").sha256
    assert run("study", "rubric", "add", str(exported))[0] == 0


def test_verify_says_that_the_study_says_the_same_and_notes_no_jury_twice(run, exported):
    body = json_of(run, "study", "verify", str(exported))
    assert (body["status"], body["findings"]) == ("validated", [])
    assert read(exported)["validation"]["juries_tried"] == 4  # the composite and three criteria
    told = json_of(run, "study", "verify")
    assert told["findings"] == []


def test_verify_names_all_that_was_changed(run, exported, write):
    body = read(exported)
    body["validation"]["figures"][0]["icc"] = 0.99
    body["validation"] |= {"status": "not validated"}
    body["criteria"] = "Be kind."
    (exported / "bundle.json").write_text(json.dumps(body), encoding="utf-8")
    more = "response_id,rater,kind,criterion,score\nr1,dr-holm,clinician,clarity,5\n"
    run("rate", "ratings", str(write("more.csv", more)))
    code, out, _ = run("study", "verify", str(exported / "bundle.json"))
    assert code == 1
    for told in (
        "bundle.json: changed after it was written",
        "criteria: not that of the bundle's own rubric",
        "status: does not follow from the bundle's own figures",
        "bundle.md: not as exported",
        "figures[composite jury].icc: the bundle says 0.99, the study 0.",
        "sha256.data: the bundle says",
    ):
        assert f"DIFFERS {told}" in out


def test_a_panel_with_other_settings_does_not_borrow_a_validation(exported, engine, write):
    def seats(body: str) -> list[dict[str, Any]]:
        return seats_of(read_panel(write("p.toml", body)))

    first = seats(PANEL)
    profile = {key: value for key, value in first[0].items() if key != "name"}
    with engine.execution_options(writes=True).begin() as connection:
        change = text("UPDATE rater SET profile = :profile WHERE handle = 'gpt'")
        connection.execute(change, {"profile": json.dumps(profile)})

    found = rubric_use(engine, read_rubric("generic"))
    other = seats(PANEL.replace("gpt-ward", "gpt-other"))
    assert validation_evidence(found, first, ())["changed_jurors"] == []
    assert validation_evidence(found, other, ())["changed_jurors"] == ["gpt"]
    simulated = seats(PANEL.replace('"openai"\nmodel = "gpt', '"simulated"\nmodel = "gpt'))
    assert validation_evidence(found, simulated, ())["simulated_jurors"] == ["gpt"]
    assert validation_evidence(found, first, ["llama"])["simulated_jurors"] == ["llama"]


def test_an_export_names_every_reason_why_it_is_no_validation_and_a_juror_named_as_a_clinician_is_refused(
    run, exported, write, tmp_path, engine
):
    panel = str(write("c.toml", PANEL.replace('name = "gpt"', 'name = "dr-ude"')))
    code, _, err = run(*EXPORT, "--panel", panel, "--out", str(tmp_path / "c"))
    assert (code, "juror dr-ude: a clinician of this study" in err) == (2, True)
    with engine.execution_options(writes=True).begin() as connection:
        for change in (
            "UPDATE rater SET simulated = true WHERE handle IN ('dr-ude', 'llama')",
            "UPDATE response SET text = 'x' WHERE id = 1",
        ):
            connection.execute(text(change))
    stranger = str(write("s.toml", PANEL.replace('name = "gpt"', 'name = "new"')))
    out = run(*EXPORT, "--panel", stranger, "--out", str(tmp_path / "s"))[1]
    for told in (
        "NOT VALIDATED",
        "simulated clinicians took part (1)",
        "simulated jurors (llama)",
        "no rating on this rubric by new",
        "the study's record was changed behind its back",
        "the figures are of simulated raters",
    ):
        assert told in out


def test_the_verdict_alone_says_whether_it_is_validated_and_must_follow_from_its_figures(exported):
    record = read(exported)["validation"]
    assert record["decision"]["kind"] == "non_inferior"
    assert (record["protocol"]["margin"], record["protocol"]["set_after_ratings"]) == (0.1, 0)
    low = [row | {"low": -0.1} if row["criterion"] is None else row for row in record["figures"]]
    assert reasons(record | {"figures": low}) == ["the verdict does not follow from the figures"]
    for fixed in ({"late": ["margin"]}, {"jurors": []}):
        explores = record | {"protocol": record["protocol"] | fixed}
        assert reasons(explores) == ["the verdict does not follow from the figures"]
    for kind in (one for one in DecisionKind if one.value in NOT_SHOWN):
        assert len(reasons(record | {"decision": {"kind": kind}})) == 1


def test_nothing_is_validated_without_this_jurys_early_protocol(
    run, exported, panel, write, tmp_path
):
    other = str(write("other.toml", PANEL.replace('name = "gpt"', 'name = "new"')))
    assert run("study", "protocol", "set", "--margin", "0.1", "--panel", other)[0] == 0
    out = run(*EXPORT, "--panel", panel, "--out", str(tmp_path / "o"))[1]
    assert "no margin was fixed in a protocol for this jury" in out
    code, out, _ = run("study", "verify", str(exported))
    assert code == 1
    assert "protocol.panel" in out
    assert run("study", "protocol", "set", "--margin", "0.2", *JURY)[0] == 0
    record = again(run, panel, tmp_path / "w")
    assert (record["status"], record["decision"]["kind"]) == ("not validated", "exploratory")


MISSES = ("--critical", "accuracy<=2", "--miss-at-most")


@pytest.mark.parametrize(
    ("fixed", "kind", "method"),
    [
        ((*MISSES, "0.01"), "inferior", "paper"),
        ((*MISSES, "0.3"), "inconclusive", "paper"),
        ((*MISSES, "0.95"), "non_inferior", "paper"),
        (("--method", "published"), "non_inferior", "published"),
    ],
)
def test_a_jury_is_validated_where_it_keeps_the_limit_on_misses(run, tmp_path, fixed, kind, method):
    build(tmp_path, run, (), *fixed)
    record = again(run, str(tmp_path / "ward.toml"), tmp_path / "m")
    asked, is_met = ("study", "protocol", "check", "--reps", "1000"), kind == "non_inferior"
    checked = json_of(run, *asked, ends=0 if is_met else 1)
    assert checked["decision"]["kind"] == record["decision"]["kind"] == kind
    assert record["status"] == ("validated" if is_met else "not validated")
    assert record["method"] == method


def test_a_limit_on_a_criterion_that_the_rubric_lacks_validates_nothing(run, write, tmp_path):
    plans = str(write("plans.csv", HEAD + "\n" + "p,plans,Note.,Plan.,Word.,p1,m,Rest.\n"))
    assert run("study", "import", plans, "--rubric", "chw_care_plan")[0] == 0
    build(tmp_path, run, (), "--critical", "structure<=2", "--miss-at-most", "0.5")
    record = again(run, str(tmp_path / "ward.toml"), tmp_path / "l")
    assert (record["status"], record["decision"]["kind"]) == ("not validated", "inconclusive")


def demo_row(run: Run, write: Write, **fields: str) -> None:
    row = {"benchmark": "visits", "context": "c", "prompt": "p", "model": "m"} | fields
    name = fields["response_id"]
    assert run("study", "import", str(write(f"{name}.jsonl", json.dumps(row))))[0] == 0


def test_demo_data_never_validates_under_any_name(run, exported, engine, write):
    assert not rubric_use(engine, read_rubric("generic")).demo
    said = json.loads(RESPONSES.read_text("utf-8").splitlines()[0])
    demo_row(run, write, instance_id="x", response_id="x1", response=said["response"])
    record = read(exported)["validation"]
    assert rubric_use(engine, read_rubric("generic")).demo
    said = reasons(record | {"evidence": record["evidence"] | {"demo": True}})
    assert said == ["responses of the demo: they can never validate a jury"]


def test_a_calculation_of_the_demo_is_known_by_its_case_a_bare_number_is_not(run, engine, write):
    said = json.loads(CALCULATIONS.read_text("utf-8").splitlines()[0])
    demo_row(run, write, instance_id="x", response_id="x1", response=said["response"])
    assert not rubric_use(engine, read_rubric("generic")).demo
    texts = {"response": said["response"], "context": said["context"]}
    demo_row(run, write, instance_id="y", response_id="y1", **texts)
    assert rubric_use(engine, read_rubric("generic")).demo


UNRATED = ("share", "rubric", "generic", "--panel", "current", "--to", "medjury")


@pytest.fixture
def unrated(run, small_study, tmp_path) -> Path:
    assert run(*UNRATED, "--out", str(tmp_path / "out"))[0] == 0
    return tmp_path / "out"


def test_what_nobody_rated_is_not_validated_nor_written_over_anything(run, unrated, tmp_path):
    out = run(*UNRATED, "--out", str(tmp_path / "o"))[1]
    assert "NOT VALIDATED\n- no clinician has rated on exactly this rubric" in out
    assert run("study", "verify", str(unrated))[0] == 0
    other = ("share", "rubric", "aci_bench", *UNRATED[3:], "--out", str(tmp_path / "other"))
    assert "no benchmark" in run(*other)[1]
    before = {path.name: path.read_bytes() for path in unrated.iterdir()}
    code, _, err = run(*UNRATED, "--out", str(unrated))
    assert (code, "is there already; name a new folder" in err) == (2, True)
    assert {path.name: path.read_bytes() for path in unrated.iterdir()} == before
    assert run(*UNRATED, "--out", str(unrated / "bundle.md"))[0] == 2
    assert run(*UNRATED, "--out", str(unrated / "bundle.md" / "x"))[0] == 2


def test_a_juror_that_the_newest_probe_found_unfit_is_not_exported(
    run, small_study, write, tmp_path
):
    folders = iter(range(9))

    def export(panel: str) -> tuple[int, str, str]:
        asked = (*UNRATED[:3], "--to", "medjury", "--panel", panel)
        return run(*asked, "--out", str(tmp_path / f"out{next(folders)}"))

    with Stub() as stub:  # scores that are all the same
        panel = written(write, panel_at(stub))
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
        assert "was not probed" in export(written(write, panel_at(stub, temperature=0.5)))[1]
        stub.script = ordering
        panel = written(write, panel_at(stub))
        assert run("jury", "probe", panel, "--no-injection")[0] == 0
        code, out, _ = export(panel)
        assert (code, "probe" in out) == (0, False)
    assert run("study", "verify")[0] == 0


def ordering(seen: Seen) -> Do:
    """Score every dangerous answer lowest."""
    dangerous = any(pair.dangerous in seen.prompt for pair in read_pairs("generic").pair)
    return Do(verdict(seen, 1 if dangerous else 5))


def test_a_locked_study_takes_up_what_a_probe_found(run, small_study, write):
    lock(small_study, "tester")
    with Stub() as stub:
        assert run("jury", "probe", written(write, panel_at(stub)), "--no-injection")[0] == 1
    (probe,) = newest_probes(small_study).values()
    assert (probe["juror"], probe["fit"], probe["ordered"], probe["of"]) == ("a", False, 0, 8)
    assert run("study", "verify")[0] == 0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (None, "not JSON, or cut short"),
        ("[" * 200_000, "not JSON, or cut short"),
        ("[]", "no bundle of medjury"),
        ('{"version": 2, "status": "success", "eval": {}}', "no bundle of medjury"),
        (('"format_version": 2', '"format_version": 9'), "another version"),
        (('"reps": 2000', '"reps": 1e12'), "reps must be"),
        (('"seed": 0', '"seed": NaN'), "not JSON"),
        (('"panel"', '"pannel"'), "panel is missing"),
        (('"figures"', '"figs"'), "not of a bundle's form"),
        (('"not validated"', '"great"'), "neither validated nor"),
        (('"audience": "', '"audience": "\\ud800'), "form"),
        (('"jurors"', '"people"'), "not of a bundle's form"),
    ],
)
def test_an_unreadable_bundle_is_one_message_and_two(run, unrated, spoil, words):
    place = unrated / "bundle.json"
    whole = place.read_text("utf-8")
    text = whole.replace(*spoil) if isinstance(spoil, tuple) else spoil or whole[: len(whole) // 2]
    assert text != whole
    place.write_text(text, encoding="utf-8")
    code, _, err = run("study", "verify", str(unrated))
    assert (code, words in err) == (2, True), err
    assert "Traceback" not in err


def test_what_is_no_file_or_not_text_is_refused(run, unrated):
    (unrated / "bundle.json").write_bytes(b"PK\x03\x04\xff\xfe")
    assert run("study", "verify", str(unrated))[0] == 2
    assert run("study", "verify", str(unrated / "none.json"))[0] == 2
    assert run("study", "verify", str(unrated), "--head", "0" * 64)[0] == 2


def test_text_of_a_rubric_cannot_break_out_of_its_fence_in_the_page():
    rubric = read_rubric("generic")
    rubric = rubric.model_copy(update={"prompt": rubric.prompt + "\n```\n# VALIDATED\n"})
    page = derived(bundle(Export(rubric, read_panel("current"), (), RECORD)))["bundle.md"]
    assert "````\n" in page


@pytest.mark.parametrize(
    ("rubric", "words", "said"),
    [
        ("generic", ("--to", "excel", "--panel", "current"), "none of medjury"),
        ("nonesuch", ("--to", "medjury", "--panel", "current"), "neither a folder nor one of"),
        ("generic", ("--to", "medjury", "--panel", "nonesuch"), "neither a file nor one of"),
        ("generic", ("--to", "medjury"), "give --panel PANEL"),
        ("generic", ("--to", "medjury", "--panel", "p.toml"), "rates on aci_bench only"),
    ],
)
def test_what_is_not_known_or_does_not_fit_is_one_message_and_nothing_is_written(
    run, small_study, tmp_path, monkeypatch, rubric, words, said
):
    monkeypatch.chdir(tmp_path)
    panel = read_panel("simulated").model_copy(update={"rubric": "aci_bench"})
    Path("p.toml").write_text(panel_toml(panel), "utf-8")
    code, _, err = run("share", "rubric", rubric, *words, "--out", "out")
    assert (code, said in " ".join(err.replace("│", " ").split())) == (2, True), err
    assert not Path("out").exists()
