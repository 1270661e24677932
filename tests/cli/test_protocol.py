"""The protocol: what a study is to show, fixed beforehand, kept by the record, and held to."""

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import HEAD, RESPONSES, Run
from sqlalchemy import Engine, text

from calibration.decision import DecisionKind
from calibration.protocol import Critical, Protocol, critical
from calibration.values import AnalysisOptions
from data.errors import BadInput, MedjuryError, NotAllowed, Unknown
from data.person import OPERATOR, Person
from data.schema import Role
from data.study.verify import verify
from medjury.services.calibrate import check_protocol
from medjury.services.record import fix_protocol, protocol_of

Write = Callable[[str, str], Path]
JURY = ("--jurors", "j,k,l")
CRITERIA = ("accuracy", "completeness", "clarity")
RESEARCHER = Person(7, "Rita", Role.RESEARCHER)


def bring_in(run: Run, write: Write, *protocol: str, n: int = 120, noise: float = 0.5) -> None:
    """Import n responses that two of four clinicians and three jurors rated, after a protocol was set."""
    rng = random.Random(3)  # noqa: S311 # drawn for a test
    texts, scores = [HEAD], io.StringIO()
    table = csv.writer(scores)
    table.writerow(["response_id", "rater", "kind", *CRITERIA])
    for place in range(n):
        texts.append(f"i{place},visits,context,prompt,reference,r{place},m,text {place}")
        quality = rng.gauss(3.3, 1)
        raters = [(f"dr-{one}", "clinician", 0.6) for one in rng.sample("abcd", 2)]
        for name, kind, spread in (*raters, *((one, "juror", noise) for one in ("j", "k", "l"))):
            given = [min(5, max(1, round(quality + rng.gauss(0, spread)))) for _ in CRITERIA]
            table.writerow([f"r{place}", name, kind, *given])
    assert run("study", "import", str(write("r.csv", "\n".join(texts))))[0] == 0
    if protocol:
        assert run("study", "protocol", "set", *protocol)[0] == 0
    assert run("rate", "ratings", str(write("s.csv", scores.getvalue())))[0] == 0


def calibrated(run: Run, *options: str) -> dict:
    code, out, err = run("analyse", "calibrate", "--json", "-", "--reps", "200", *options)
    assert code == 0, err
    body: dict = json.loads(out)
    return body


def test_what_is_fixed_stands_in_the_record_with_the_ratings_that_were_in(
    run: Run, write: Write, engine: Engine
) -> None:
    run("study", "import", str(write("r.csv", RESPONSES)))
    limits = ("--critical", "accuracy<=2", "--miss-at-most", "0.1")
    code, out, _ = run("study", "protocol", "set", "--margin", "0.1", "--responses", "60", *limits)
    assert code == 0
    assert "fixed before any rating was seen" in out
    first = protocol_of(engine)
    assert first is not None
    assert (first.margin, first.responses, first.set_after_ratings) == (0.1, 60, 0)
    assert first.critical == (Critical("accuracy", 2, 0.1),)
    scores = "response_id,rater,kind,accuracy,completeness,clarity\nr11,dr-x,clinician,4,4,5\n"
    run("rate", "ratings", str(write("s.csv", scores)))
    run("study", "protocol", "set", "--margin", "0.2")
    second = protocol_of(engine)
    assert second is not None
    assert (second.margin, second.set_after_ratings, second.replaced) == (0.2, 1, 1)
    assert second.sha256 != first.sha256
    assert verify(engine).findings == ()


def test_a_protocol_that_was_changed_behind_the_records_back_is_found(
    run: Run, write: Write, engine: Engine
) -> None:
    run("study", "import", str(write("r.csv", RESPONSES)))
    run("study", "protocol", "set", "--margin", "0.1")
    with engine.execution_options(writes=True).begin() as connection:
        changed = "UPDATE event SET detail = replace(CAST(detail AS TEXT), '0.1', '0.3')"
        as_json = "::json" if engine.dialect.name == "postgresql" else ""
        changed = changed.replace("'0.3')", f"'0.3'){as_json}")
        connection.execute(text(f"{changed} WHERE action = 'protocol set'"))
    assert any("protocol set" in one for one in verify(engine).findings)


def test_without_a_margin_fixed_beforehand_nothing_is_claimed(run: Run, write: Write) -> None:
    bring_in(run, write)
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


def test_the_verdict_is_about_what_was_fixed_and_nothing_else(run: Run, write: Write) -> None:
    bring_in(run, write, "--margin", "0.2", "--because", "as in our pilot", *JURY)
    body = calibrated(run)
    assert body["decision"]["kind"] == "non_inferior"
    assert (body["decision"]["margin"], body["protocol"]["because"]) == (0.2, "as in our pilot")
    for other in (("--jurors", "j,k"), ("--criterion", "clarity"), ("--method", "published")):
        assert calibrated(run, *other)["decision"]["kind"] == "no_protocol"


def test_a_protocol_that_names_no_jury_explores(run: Run, write: Write) -> None:
    bring_in(run, write, "--margin", "0.2")
    assert calibrated(run)["decision"]["kind"] == "exploratory"
    assert run("study", "protocol", "check", "--reps", "200")[0] == 1


@pytest.mark.parametrize(
    ("changed", "late"),
    [
        (("--margin", "0.2", "--jurors", "j,k,l"), []),
        (("--margin", "0.2", "--jurors", "j,k,l", "--because", "told later"), []),
        (("--margin", "0.9", "--jurors", "j,k,l"), ["margin"]),
        (("--margin", "0.2", "--jurors", "j,k"), ["jurors"]),
        (("--margin", "0.2", "--jurors", "j,k,l", "--criterion", "clarity"), ["criterion"]),
        (("--margin", "0.2", "--jurors", "j,k,l", "--responses", "50"), ["responses"]),
        (("--margin", "0.2", "--jurors", "j,k,l", "--floor", "0.1"), ["floor"]),
        (("--margin", "0.2", "--jurors", "j,k,l", "--critical", "accuracy<=2"), ["critical"]),
    ],
)
def test_whatever_decides_and_was_changed_after_the_first_rating_explores(
    run: Run, write: Write, changed: tuple[str, ...], late: list[str]
) -> None:
    bring_in(run, write, "--margin", "0.2", *JURY)
    assert run("study", "protocol", "set", *changed)[0] == 0
    code, out, _ = run("study", "protocol", "check", "--json", "-", "--reps", "200")
    body = json.loads(out)
    assert body["protocol"]["late"] == late
    assert (body["decision"]["kind"] == "exploratory", code) == (bool(late), int(bool(late)))
    run("study", "protocol", "set", "--margin", "0.2", *JURY)
    assert run("study", "protocol", "check", "--reps", "200")[0] == 0


def test_a_protocol_of_a_panel_and_a_criterion_judges_no_other(run: Run, write: Write) -> None:
    juror = '[[juror]]\nname = "{}"\nprovider = "openai"\nmodel = "m"\nfamily = "f"\n'
    juror += 'base_url = "http://127.0.0.1:9/v1"\n'
    panel = 'name = "two"\n' + "".join(map(juror.format, "jk"))
    fixed = ("--criterion", "clarity", "--panel", str(write("two.toml", panel)))
    bring_in(run, write, "--margin", "0.2", *fixed)
    assert calibrated(run)["decision"]["kind"] == "no_protocol"
    assert calibrated(run, "--jurors", "k,j")["decision"]["kind"] == "no_protocol"
    as_fixed = calibrated(run, "--jurors", "k,j", "--criterion", "clarity")
    assert as_fixed["decision"]["kind"] == "non_inferior"
    code, out, _ = run("study", "protocol", "check", "--reps", "200")
    assert (code, "no worse than a clinician does" in out) == (0, True), out


def test_check_ends_with_1_unless_what_was_to_be_shown_is_shown(run: Run, write: Write) -> None:
    bring_in(run, write, "--margin", "0.2", "--responses", "120", *JURY)
    code, out, _ = run("study", "protocol", "check", "--json", "-", "--reps", "200")
    assert (code, json.loads(out)["met"]) == (0, True)


def test_check_ends_with_1_before_as_many_are_rated_as_were_planned(run: Run, write: Write) -> None:
    bring_in(run, write, "--margin", "0.2", "--responses", "121", *JURY)
    code, out, _ = run("study", "protocol", "check", "--json", "-", "--reps", "200")
    assert (code, json.loads(out)["decision"]["kind"]) == (1, "too_few")


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
def test_what_cannot_be_fixed_is_refused_in_one_message_and_nothing_is_stored(
    run: Run, write: Write, engine: Engine, options: tuple[str, ...], told: str
) -> None:
    run("study", "import", str(write("r.csv", RESPONSES)))
    code, _, err = run("study", "protocol", "set", *options)
    assert (code, told in err) == (2, True), err
    assert protocol_of(engine) is None


def test_only_a_coordinator_fixes_it_and_not_in_a_locked_study(
    run: Run, write: Write, engine: Engine
) -> None:
    run("study", "import", str(write("r.csv", RESPONSES)))
    with pytest.raises(NotAllowed):
        fix_protocol(RESEARCHER, engine, Protocol(0.1))
    assert run("study", "lock")[0] == 0
    with pytest.raises(NotAllowed):
        fix_protocol(OPERATOR, engine, Protocol(0.1))
    assert protocol_of(engine) is None


def test_a_study_that_nobody_rated_is_undefined_and_says_what_is_lacking(
    run: Run, write: Write, engine: Engine
) -> None:
    run("study", "import", str(write("r.csv", RESPONSES)))
    found = check_protocol(engine).decision
    assert (found.kind, found.reasons[0].code) == (DecisionKind.UNDEFINED, "no_clinician_rating")


def test_the_analysis_that_was_fixed_is_of_all_responses_by_its_method() -> None:
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


def test_a_critical_criterion_is_read_from_its_short_form() -> None:
    assert critical("risk of harm <= 2.5", 0.1) == Critical("risk of harm", 2.5, 0.1)
    for wrong in ("safety", "<=2", "safety=2", "safety<=two"):
        with pytest.raises(BadInput):
            critical(wrong)


def test_a_criterion_that_no_rubric_has_is_an_error_of_the_projects(engine: Engine) -> None:
    assert issubclass(Unknown, MedjuryError)
    with pytest.raises(Unknown, match="it has no responses yet"):
        fix_protocol(OPERATOR, engine, Protocol(0.1, criterion="safety"))
