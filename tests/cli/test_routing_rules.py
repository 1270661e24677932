"""A routing rule that is kept: it decides later as it did when it was certified, and nobody changes it."""

import csv
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kit.routed_study import fill
from kit.studies import HEAD, Run, bring_in
from sqlalchemy import Engine, text

from calibration.routes import route_by
from calibration.routing import Harm, RoutedBenchmark, RouteQuestion, RoutingRule
from data.errors import BadInput, NotAllowed
from data.person import OPERATOR, Person
from data.schema import Role
from data.study.verify import verify
from medjury.services.routing import (
    keep,
    kept_rule,
    route,
    route_study,
    rule_from_json,
)

KEEP = ("analyse", "route", "--at-most", "2", "--bound", "0.2", "--keep", "ward")
RULE = RoutingRule(
    harm=Harm("low", 2.0),
    bound=0.1,
    confidence=0.9,
    threshold=-3.0,
    jury=("a", "b"),
    needed=2,
    jurors={"a": "1", "b": "2"},
    benchmarks=(RoutedBenchmark("visits", "r" * 64, ("x", "y")),),
    fingerprint="f" * 64,
    n_train=40,
    n_certify=60,
    passed=50,
    harmful=1,
    p=0.03,
)


def decided(jury: float, benchmark: str = "visits", rubric: str = "r" * 64) -> tuple[str, str]:
    """Return what the rule decides on one response."""
    table = pd.DataFrame({"response_id": ["r1"], "benchmark": [benchmark], "risk": [-jury]})
    found = route_by(RULE, table, {benchmark: rubric}).iloc[0]
    return found["decision"], found["why"]


def test_what_the_rule_was_not_certified_for_is_read() -> None:
    assert decided(3.0) == ("pass", "under_threshold")
    assert decided(2.75) == ("read", "over_threshold")
    assert decided(np.nan) == ("read", "not_scored")
    assert decided(5.0, benchmark="z") == ("read", "other_benchmark")
    assert decided(5.0, rubric="") == ("read", "other_rubric")


def test_a_rule_that_is_written_and_read_is_the_same() -> None:
    written = json.loads(json.dumps(asdict(RULE)))
    assert rule_from_json(written) == RULE
    assert rule_from_json(written | {"later": 1}) == RULE


@pytest.fixture
def study(run: Run, engine: Engine, tmp_path: Path) -> Engine:
    fill(run, tmp_path)
    return engine


@pytest.mark.parametrize(
    "harm", [Harm("low", 2.0), Harm("low", 2.0, "clarity"), Harm("error", 1.5)]
)
def test_a_kept_rule_decides_on_the_study_as_it_did_when_it_was_kept(
    study: Engine, harm: Harm
) -> None:
    found = route(study, RouteQuestion(harm, 0.3))
    assert found.found.certified
    kept = keep(OPERATOR, study, "ward", found)
    by_rule = route_study(study, kept.rule)
    assert by_rule["decision"].tolist() == found.table["decision"].tolist()
    assert by_rule.set_index("response_id").loc["r7", "why"] == "not_scored"


def test_later_responses_are_routed_and_the_rule_stays(
    run: Run, study: Engine, tmp_path: Path
) -> None:
    code, out, _ = run(*KEEP)
    assert code == 0
    assert "kept as ward, sha256 " in out
    before = kept_rule(study, "ward")
    rows, scores = [HEAD], ["response_id,rater,kind,accuracy,completeness,clarity"]
    for n, points in ((900, 5), (901, 1)):
        rows.append(f"i{n},visits,Pain.,Write.,,r{n},secret-9,Word {n}")
        scores += [f"r{n},{juror},juror,{points},{points},{points}" for juror in ("gpt", "llama")]
    bring_in(run, tmp_path, rows, scores)

    to = tmp_path / "later.csv"
    code, out, _ = run("analyse", "route", "--by", "ward", "--csv", str(to), "--json", "-")

    told = json.loads(out)
    assert (code, told["changed"], told["by"]["sha256"]) == (0, [], before.sha256)
    later = {row["response_id"]: row for row in csv.DictReader(to.read_text().splitlines())}
    assert (later["r900"]["decision"], later["r901"]["decision"]) == ("pass", "read")
    assert told["passed"] + told["read"] == 202 == len(later)
    assert "secret" not in out + to.read_text()
    assert kept_rule(study, "ward") == before
    assert {*route_study(study, before.rule)["response_id"]} == {*later}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("analyse", "route", "--by", "nothing"),
            "no routing rule nothing in this study: it has ward",
        ),
        (("analyse", "route", "--by", "ward", "--bound", "0.1"), "leave out --bound"),
        (("analyse", "route", "--by", "ward", "--at-most", "2"), "leave out --at-most"),
        (KEEP, "a routing rule ward is kept already"),
        ((*KEEP[:-1], ""), "1 to 60 printable signs"),
        (
            ("analyse", "route", "--off-by", "0.3", "--bound", "0.01", "--keep", "x"),
            "there is none to keep",
        ),
    ],
)
def test_bad_input_keeps_nothing(
    run: Run, study: Engine, arguments: tuple[str, ...], told: str
) -> None:
    assert run(*KEEP)[0] == 0
    before = verify(study).events
    code, _, err = run(*arguments)
    assert (code, verify(study).events) == (2, before)
    assert told in err


def test_a_changed_rule_is_refused_and_found_by_a_check(run: Run, study: Engine) -> None:
    assert run(*KEEP)[0] == 0
    assert verify(study).findings == ()
    with study.begin() as connection:
        connection.execute(
            text(
                "UPDATE event SET detail = REPLACE(CAST(detail AS TEXT), '\"bound\": 0.2', '\"bound\": 0.1') "
                "WHERE action = 'routing rule kept'"
            )
        )
    with pytest.raises(BadInput, match="is not as it was kept"):
        kept_rule(study, "ward")
    assert verify(study).findings


def test_a_rule_says_what_is_no_longer_as_it_was(run: Run, study: Engine) -> None:
    assert run(*KEEP)[0] == 0
    with study.begin() as connection:
        connection.execute(
            text("UPDATE rater SET profile = '{\"model\": \"x\"}' WHERE handle = 'gpt'")
        )
    out = run("analyse", "route", "--by", "ward")[1]
    assert "not as it was certified: gpt" in out


def test_a_researcher_keeps_none(study: Engine) -> None:
    found = route(study, RouteQuestion(Harm("low", 2.0), 0.2))
    with pytest.raises(NotAllowed):
        keep(Person(7, "Rita", Role.RESEARCHER), study, "ward", found)
