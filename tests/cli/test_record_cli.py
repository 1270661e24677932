"""The record at the command line: verify, lock, heads of it as files, unblind, settings and the protocol."""

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kit.commands import command, json_of
from kit.packaged_study import made, restored, whole
from kit.studies import HEAD, Run
from kit.study_place import fill
from sqlalchemy import Engine, text

from calibration.decision import DecisionKind
from calibration.protocol import Critical, Protocol, critical
from calibration.values import AnalysisOptions
from data.errors import BadFile, BadInput, NotAllowed
from data.person import OPERATOR, Person
from data.record import Head, head_given
from data.schema import Role
from data.study.settings import set_setting
from data.study.verify import present_head, verify
from medjury.services.calibrate import check_protocol
from medjury.services.record import fix_protocol, protocol_of

RATINGS = "response_id,rater,kind,accuracy,completeness,clarity\n" + "".join(
    f"{name},{who},clinician,{a},{b},3\n"
    for who in ("dr_a", "dr_b")
    for name, a, b in (("r11", 1, 2), ("r12", 4, 4), ("r21", 2, 5), ("r22", 5, 5))
)


@pytest.fixture
def rated(run, small_study, write) -> Engine:
    assert run("rate", "ratings", str(write("ratings.csv", RATINGS)))[0] == 0
    return small_study


def test_verify_prints_what_is_vouched_for_and_ends_with_one_and_a_line_a_finding(run, rated):
    body = json_of(run, "study", "verify")
    assert body["authors_withheld"] is False
    acts = ("rating", "response", "remark", "span", "submission", "subgroup")
    assert [body["rows"][name] for name in acts] == [24, 4, 0, 0, 0, 0]
    said = run("study", "verify")[1]
    assert f"head {body['head']}" in said
    assert run("study", "verify", "--head", body["head"])[0] == 0
    with rated.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE rating SET score = 5 WHERE id = 1"))
    code, out, _ = run("study", "verify")
    assert code == 1
    assert "FINDING rating 1, 2, 3, 4, 5 and 19 more: some of them changed since event" in out
    assert run("study", "verify", "--head", "0" * 63 + "1")[1].count("FINDING") == 2
    assert run("study", "verify", "--head", "abc")[0] == 2  # a slip of the pen is no finding


def test_a_locked_study_refuses_ratings_until_it_is_reopened_with_a_reason(run, rated, write):
    code, out, _ = run("study", "lock", "--who", "Dr Berg")
    assert code == 0
    head = next(line for line in out.splitlines() if line.startswith("head ")).split()[1]
    more = str(write("more.csv", RATINGS.replace("dr_a", "dr_c")))
    code, _, err = run("rate", "ratings", more)
    assert code == 2
    assert "by Dr Berg" in err
    assert run("study", "lock", "--reopen")[0] == 2
    assert run("study", "lock", "--reopen", "--reason", "late form")[0] == 0
    assert run("rate", "ratings", more)[0] == 0
    assert run("study", "verify")[0] == 0
    code, out, _ = run("study", "verify", "--head", head)
    assert (code, out.count("FINDING")) == (1, 2)
    assert "since the head that was kept: 1 reopened, 1 ratings imported" in out


def test_the_blind_is_lifted_with_a_reason_into_a_new_file_as_every_later_report_says(
    run, rated, tmp_path
):
    out = tmp_path / "authors.csv"
    assert run("study", "unblind", "--out", str(out))[0] == 2
    assert not out.exists()
    assert "unblinded" not in run("analyse", "calibrate", "--reps", "10")[1]
    run("study", "lock")
    run("study", "lock", "--reopen", "--reason", "late form")
    why = ("--reason", "final analysis", "--who", "Dr Berg")
    assert run("study", "unblind", *why)[1].splitlines()[:2] == [
        "response_id,model",
        "r11,model-one",
    ]
    assert run("study", "unblind", *why, "--out", str(out))[0] == 0
    assert out.read_text("utf-8").splitlines()[1] == "r11,model-one"
    assert run("study", "unblind", *why, "--out", str(out))[0] == 2
    said = run("analyse", "calibrate", "--reps", "10")[1]
    assert "by Dr Berg: final analysis" in said
    assert "by coordinator: late form" in said


def test_settings_are_shown_set_and_checked(run, rated):
    assert "on_request" in run("study", "settings")[1]
    assert run("study", "settings", "reference", "hidden")[0] == 0
    assert json_of(run, "study", "settings")["reference"] == "hidden"
    for wrong in (["reference", "always"], ["colour", "red"], ["reference"]):
        assert run("study", "settings", *wrong)[0] == 2


__all__ = ["made", "whole"]
ME, SPACE = "me@hospital.example", "medjury"


@pytest.fixture
def head(run, whole, tmp_path) -> Path:
    """Lock the study and return the file of its head."""
    to = tmp_path / "kept.head"
    code, out, err = run("study", "lock", "--head", str(to))
    assert code == 0, err
    assert f"medjury study verify --head {to}" in " ".join(out.split())
    return to


def test_a_head_holds_study_number_and_hash_is_read_back_and_never_written_over(head, whole, run):
    kept = head_given(str(head))
    assert kept == present_head(whole)
    assert head.read_text() == kept.to_text()
    assert kept.events is not None
    before = head.read_bytes()
    run("study", "lock", "--reopen", "--reason", "r")
    code, _, err = run("study", "lock", "--head", str(head))
    assert (code, "is there already" in err) == (2, True)
    assert head.read_bytes() == before
    assert "locked" not in run("study", "verify")[1]


def test_a_study_that_went_on_after_its_lock_is_told_apart_from_one_that_did_not(run, whole, head):
    assert run("study", "lock", "--reopen", "--reason", "one more")[0] == 0
    set_setting(whole, "reference", "hidden")
    code, out, err = run("study", "verify", "--head", str(head))
    assert (code, "(setting changed): came after the head" in out) == (1, True), (out, err)
    assert "since the head that was kept: 1 reopened, 1 setting changed" in out
    assert verify(whole).findings == ()


def test_a_record_cut_before_its_head_is_found(run, whole, head):
    with whole.execution_options(writes=True).begin() as connection:
        connection.execute(text("DELETE FROM event WHERE id = (SELECT MAX(id) FROM event)"))
        connection.execute(text("DELETE FROM setting WHERE key = 'locked'"))
    assert run("study", "verify")[0] == 0
    code, out, _ = run("study", "verify", "--head", str(head))
    assert code == 1
    assert "FINDING the record was cut: it has " in out


def test_a_record_that_is_of_another_study_or_written_anew_is_found(run, whole, head, tmp_path):
    kept = head_given(str(head))
    assert kept.events is not None
    others = {
        "of another study": Head(kept.sha256, kept.events, "0" * 64),
        "it was rewritten": Head("1" * 64, kept.events - 1, kept.study),
    }
    for said, forged in others.items():
        (tmp_path / "other.head").write_text(forged.to_text())
        code, out, _ = run("study", "verify", "--head", str(tmp_path / "other.head"))
        assert (code, said in out) == (1, True)


@pytest.mark.parametrize("body", ["", "medjury head 2\n", "\x00\xff", "medjury head 1\nhead x\n"])
def test_a_file_that_is_no_head_is_refused_in_one_line(run, whole, tmp_path, body):
    (tmp_path / "no.head").write_text(body, "latin-1")
    with pytest.raises(BadFile):
        head_given(str(tmp_path / "no.head"))
    code, out, err = run("study", "verify", "--head", str(tmp_path / "no.head"))
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)


@pytest.mark.usefixtures("study_file")
def test_a_study_that_is_a_file_has_its_head_beside_it(run, whole, tmp_path):
    assert run("study", "lock")[0] == 0
    [to] = tmp_path.glob("*.head")
    assert head_given(str(to)) == present_head(whole)


def test_a_package_has_its_head_beside_it_and_its_study_goes_through_it(run, whole, tmp_path):
    package, there = tmp_path / "study.zip", restored(tmp_path)
    assert run("share", "export", "--package", str(package))[0] == 0
    assert run("study", "import", str(package), *there)[0] == 0
    code, out, _ = run("study", "verify", "--head", str(tmp_path / "study.head"), *there)
    assert (code, "whole" in out) == (0, True)
    package.unlink()
    assert run("share", "export", "--package", str(package))[0] == 2
    assert not package.exists()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
def test_the_docs_commands_sign_a_head_and_find_a_changed_one(head, tmp_path):
    key = tmp_path / "key"
    keygen("-q", "-t", "ed25519", "-N", "", "-C", ME, "-f", str(key))
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    (tmp_path / "signers").write_text(f"{ME} {public}\n")
    assert keygen("-Y", "sign", "-f", str(key), "-n", SPACE, str(head)) == 0
    verify = ("-Y", "verify", "-f", str(tmp_path / "signers"), "-I", ME, "-n", SPACE)
    signed = (*verify, "-s", f"{head}.sig")
    assert keygen(*signed, given=head) == 0
    head.write_text(head.read_text().replace("events 1", "events 2"))
    assert keygen(*signed, given=head) != 0


def keygen(*arguments: str, given: Path | None = None) -> int:
    body = given.read_bytes() if given else b""
    command = ["ssh-keygen", *arguments]
    return subprocess.run(command, input=body, capture_output=True, check=False).returncode


JURY = ("--jurors", "j,k,l")
RESEARCHER = Person(7, "Rita", Role.RESEARCHER)


def bring_in(run: Run, folder: Path, *protocol: str) -> None:
    """Import 120 responses that two of four clinicians and three jurors rated, after a protocol was set."""
    rng = random.Random(3)  # noqa: S311 # drawn for a test
    texts, scores = [HEAD], ["response_id,rater,kind,accuracy,completeness,clarity"]
    for place in range(120):
        texts.append(f"i{place},visits,context,prompt,reference,r{place},m,text {place}")
        quality = rng.gauss(3.3, 1)
        raters = [(f"dr-{one}", "clinician", 0.6) for one in rng.sample("abcd", 2)]
        for name, kind, spread in (*raters, *((one, "juror", 0.5) for one in "jkl")):
            own = [min(5, max(1, round(quality + rng.gauss(0, spread)))) for _ in range(3)]
            scores.append(f"r{place},{name},{kind},{own[0]},{own[1]},{own[2]}")
    (folder / "r.csv").write_text("\n".join(texts), "utf-8")
    (folder / "s.csv").write_text("\n".join(scores), "utf-8")
    assert run("study", "import", str(folder / "r.csv"))[0] == 0
    if protocol:
        assert run("study", "protocol", "set", *protocol)[0] == 0
    assert run("rate", "ratings", str(folder / "s.csv"))[0] == 0


@pytest.fixture(scope="module")
def fixed_first(study, tmp_path_factory) -> Engine:
    """Make a study once whose margin and jury were fixed before it was rated."""
    bring_in(command(study), tmp_path_factory.mktemp("planned"), "--margin", "0.2", *JURY)
    return study


def calibrated(run: Run, *options: str) -> dict[str, Any]:
    code, out, err = run("analyse", "calibrate", "--json", "-", "--reps", "200", *options)
    assert code == 0, err
    return json.loads(out)


def checked(run: Run) -> tuple[int, dict[str, Any]]:
    """Return the exit code of `study protocol check`, and its JSON."""
    code, out, _ = run("study", "protocol", "check", "--json", "-", "--reps", "200")
    return code, json.loads(out)


def test_what_is_fixed_stands_in_the_record_with_the_ratings_that_were_in(run, write, small_study):
    limits = ("--critical", "accuracy<=2", "--miss-at-most", "0.1")
    code, out, _ = run("study", "protocol", "set", "--margin", "0.1", "--responses", "60", *limits)
    assert code == 0
    assert "fixed before any rating was seen" in out
    first = protocol_of(small_study)
    assert (first.margin, first.responses, first.set_after_ratings) == (0.1, 60, 0)
    assert first.critical == (Critical("accuracy", 2, 0.1),)
    scores = "response_id,rater,kind,accuracy,completeness,clarity\nr11,dr-x,clinician,4,4,5\n"
    run("rate", "ratings", str(write("s.csv", scores)))
    run("study", "protocol", "set", "--margin", "0.2")
    second = protocol_of(small_study)
    assert (second.margin, second.set_after_ratings, second.replaced) == (0.2, 1, 1)
    assert second.sha256 != first.sha256
    assert verify(small_study).findings == ()


def test_without_a_margin_fixed_beforehand_nothing_is_claimed(run, tmp_path):
    bring_in(run, tmp_path)
    body = calibrated(run)
    assert (body["decision"]["kind"], body["protocol"]) == ("no_protocol", None)
    assert body["decision"]["estimate"] is not None
    assert run("study", "protocol", "set", "--margin", "0.2", *JURY)[0] == 0
    body = calibrated(run)
    assert body["decision"]["kind"] == "exploratory"
    assert (body["protocol"]["margin"], body["protocol"]["set_after_ratings"]) == (0.2, 240)
    assert body["protocol"]["late"] == ["margin", "jurors"]
    code, out, _ = run("study", "protocol", "check", "--reps", "200")
    assert (code, "240 ratings" in out) == (1, True)


def test_the_verdict_is_about_what_was_fixed_and_nothing_else(run, tmp_path):
    bring_in(run, tmp_path, "--margin", "0.2", "--because", "as in our pilot", *JURY)
    body = calibrated(run)
    assert body["decision"]["kind"] == "non_inferior"
    assert (body["decision"]["margin"], body["protocol"]["because"]) == (0.2, "as in our pilot")
    for other in (("--jurors", "j,k"), ("--criterion", "clarity"), ("--method", "published")):
        assert calibrated(run, *other)["decision"]["kind"] == "no_protocol"


@pytest.mark.parametrize(
    ("changed", "late"),
    [
        ((), []),
        (("--because", "told later"), []),
        (("--margin", "0.9"), ["margin"]),
        (("--jurors", "j,k"), ["jurors"]),
        (("--criterion", "clarity"), ["criterion"]),
        (("--responses", "50"), ["responses"]),
        (("--floor", "0.1"), ["floor"]),
        (("--critical", "accuracy<=2"), ["critical"]),
    ],
)
def test_what_was_changed_after_the_first_rating_explores(run, engine, fixed_first, changed, late):
    fill(engine, fixed_first)
    assert run("study", "protocol", "set", "--margin", "0.2", *JURY, *changed)[0] == 0
    code, body = checked(run)
    assert body["protocol"]["late"] == late
    assert (body["decision"]["kind"] == "exploratory", code) == (bool(late), int(bool(late)))
    run("study", "protocol", "set", "--margin", "0.2", *JURY)
    assert checked(run)[0] == 0


def test_a_protocol_of_a_panel_and_a_criterion_judges_no_other(run, write, tmp_path):
    juror = '[[juror]]\nname = "{}"\nprovider = "openai"\nmodel = "m"\nfamily = "f"\n'
    juror += 'base_url = "http://127.0.0.1:9/v1"\n'
    panel = 'name = "two"\n' + "".join(map(juror.format, "jk"))
    fixed = ("--criterion", "clarity", "--panel", str(write("two.toml", panel)))
    bring_in(run, tmp_path, "--margin", "0.2", *fixed)
    assert calibrated(run)["decision"]["kind"] == "no_protocol"
    assert calibrated(run, "--jurors", "k,j")["decision"]["kind"] == "no_protocol"
    as_fixed = calibrated(run, "--jurors", "k,j", "--criterion", "clarity")
    assert as_fixed["decision"]["kind"] == "non_inferior"
    code, out, _ = run("study", "protocol", "check", "--reps", "200")
    assert (code, "no worse than a clinician does" in out) == (0, True), out


@pytest.mark.parametrize(
    ("fixed", "kind"),
    [
        ((*JURY, "--responses", "120"), "non_inferior"),
        ((*JURY, "--responses", "121"), "too_few"),
        ((), "exploratory"),  # it names no jury
    ],
)
def test_check_ends_with_1_before_as_many_are_rated_as_were_planned(run, tmp_path, fixed, kind):
    bring_in(run, tmp_path, "--margin", "0.2", *fixed)
    code, body = checked(run)
    met = kind == "non_inferior"
    assert (code, body["met"], body["decision"]["kind"]) == (int(not met), met, kind)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--margin", "0"), "margin 0: must be above 0"),
        (("--margin", "1"), "margin 1: must be above 0 and below 1"),
        (("--margin", "nan"), "nan is not a number"),
        (("--margin", "0.1", "--criterion", "safety"), "criterion safety: no rubric"),
        (("--margin", "0.1", "--critical", "safety<2"), "write it as safety<=2"),
        (("--margin", "0.1", "--critical", "accuracy<=5"), "the scale of generic is 1-5"),
        (("--margin", "0.1", "--critical", "accuracy<=0"), "the scale of generic is 1-5"),
        (("--margin", "0.1", "--critical", "accuracy<=2", "--miss-at-most", "0"), "above 0"),
        (("--margin", "0.1", "--miss-at-most", "0.1"), "needs --critical"),
        (("--margin", "0.1", "--panel", "nowhere.toml"), "nowhere.toml"),
        ((), "Missing option"),
    ],
)
def test_what_cannot_be_fixed_is_one_message_and_nothing_is_stored(run, small_study, options, told):
    code, _, err = run("study", "protocol", "set", *options)
    assert (code, told in err) == (2, True), err
    assert protocol_of(small_study) is None


def test_only_a_coordinator_fixes_it_while_open_and_unrated_is_undefined(small_study, run):
    found = check_protocol(small_study).decision
    assert (found.kind, found.reasons[0].code) == (DecisionKind.UNDEFINED, "no_clinician_rating")
    with pytest.raises(NotAllowed):
        fix_protocol(RESEARCHER, small_study, Protocol(0.1))
    assert run("study", "lock")[0] == 0
    with pytest.raises(NotAllowed):
        fix_protocol(OPERATOR, small_study, Protocol(0.1))
    assert protocol_of(small_study) is None


def test_the_analysis_that_was_fixed_is_of_all_and_a_critical_criterion_has_a_short_form():
    fixed = Protocol(0.1, criterion="clarity", jurors=("a", "b"))
    same = AnalysisOptions(criterion="clarity", reps=10, seed=4, jurors=("b", "a"), min_shared=9)
    assert fixed.is_about(("b", "a"), same)
    for changed in (
        {"benchmark": "visits"},
        {"criterion": None},
        {"method": "published"},
        {"min_jurors": 1},
        {"references": "sound"},
    ):
        other = AnalysisOptions(**{"criterion": "clarity"} | changed)
        assert not fixed.is_about(("a", "b"), other)
    assert not fixed.is_about(("a",), same)
    assert Protocol(0.1).is_about(("a",), AnalysisOptions())
    assert critical("risk of harm <= 2.5", 0.1) == Critical("risk of harm", 2.5, 0.1)
    for wrong in ("safety", "<=2", "safety=2", "safety<=two"):
        with pytest.raises(BadInput):
            critical(wrong)
