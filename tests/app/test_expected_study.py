"""Jurors that differ in nothing but their order or their scores: compared, calibrated, exported."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.exported_panels import RECORD, ROWS
from kit.jurors import Stub, criteria_of, served
from kit.studies import HEAD, bring_in

from annotate.screens.agreement.response import distribution_lines, prompt_of
from calibration.values import AnalysisOptions
from data.errors import BadInput
from data.person import OPERATOR
from data.rubric import read_rubric
from data.study.compare import opened_response
from jury.exports import bundle, helm, scorers
from jury.exports.bundle import Export
from jury.panel import Panel
from medjury.services.calibrate import calibrate
from medjury.services.calibration import CalibrationQuestion

Write = Callable[[str, str], Path]
N = 24
ONE = """
[[juror]]
name = "{name}"
provider = "openai"
model = "one"
family = "stub"
base_url = "{url}"
schema = "json_schema"
{more}
"""
SETTINGS = {
    "plain": "",
    "after": 'explanation = "after"',
    "bare": 'explanation = "none"',
    "mean": 'scores = "expected"',
}


def quality(text, *more):
    """Return a number from 1 to 5 that a text and some names always have."""
    digest = hashlib.sha256("/".join([text, *more]).encode()).hexdigest()
    return 1 + 4 * int(digest[:8], 16) / 0xFFFFFFFF


def judged(seen):
    """Return what a juror with a doubt of its own says: the nearest point, and how near others are."""
    text = seen.prompt.split("<response>\n")[1].split("\n</response>")[0]
    order = "".join(next(iter(criteria_of(seen).values())))
    felt = 0.8 * quality(text) + 0.2 * quality(text, order)
    weights = {point: 2.0 ** -(3 * (point - felt) ** 2) for point in range(1, 6)}
    shares = {str(point): one / sum(weights.values()) for point, one in weights.items()}
    return served(seen, shares=shares, score=max(weights, key=lambda point: weights[point]))


@pytest.fixture
def stub():
    with Stub(judged) as running:
        yield running


@pytest.fixture
def rated(run, write, stub, tmp_path):
    """Return what runs a command on a study that two clinicians and four jurors have rated."""
    lines, scores = [HEAD], ["response_id,rater,kind,accuracy,completeness,clarity"]
    for i in range(N):
        lines.append(f"i{i},visits,c {i},Write.,,r{i},m,said {i}")
        for rater in ("dr_a", "dr_b"):
            own = (0.7 * quality(f"said {i}") + 0.3 * quality(rater, str(i), c) for c in "abc")
            scores.append(",".join([f"r{i},{rater},clinician", *(f"{one:.0f}" for one in own)]))
    bring_in(run, tmp_path, lines, scores)
    code, _, said = run("jury", "run", str(panel_file(write, stub, *SETTINGS)))
    assert code == 0, said
    return run


def panel_file(write, stub, *names):
    jurors = [ONE.format(name=one, url=stub.openai_url, more=SETTINGS[one]) for one in names]
    return write("panel.toml", 'name = "orders"\n' + "".join(jurors))


def test_juries_rank_and_compare_jurors_that_differ_in_order_or_scores_alone(rated):
    written = ("--reps", "200", "--json", "-")
    rows = json.loads(rated("analyse", "juries", "--sizes", "1-2", *written)[1])["rows"]
    iccs = {row["jurors"][0]: row["icc"] for row in rows if row["size"] == 1}
    assert (len(rows), iccs.keys(), len({*iccs.values()})) == (4 + 6, SETTINGS.keys(), 4)
    two = ("--compare", "mean", "--compare", "plain")
    told = json.loads(rated("analyse", "juries", *two, *written)[1])
    both = [told["icc_first"], told["icc_second"]]
    assert both == pytest.approx([iccs["mean"], iccs["plain"]])


def test_every_figure_takes_expected_scores_or_says_how_it_does_not(rated, engine):
    found = calibrated(engine, "mean", "plain")
    by = {row.scorer: row for row in found.rows}
    assert by["juror:mean"].n_responses == N
    assert 0 < by["juror:mean"].icc < 1
    means = [row for row in found.details["chance_corrected"] if row.raters == "juror:mean"]
    assert len(means) == 3
    for row in means:
        assert (math.isnan(row.kappa_quadratic), math.isfinite(row.alpha_ordinal)) == (True, True)
        assert row.told("off_points")
    spread = [row for row in found.details["distributions"] if row.rater == "juror:mean"]
    assert {sum(row.counts.values()) for row in spread} == {N}
    assert all(row.counts["between"] > N / 2 for row in spread)


def test_replicates_of_means_are_the_same_again_only_where_they_are_equal(
    rated, engine, write, stub
):
    panel = panel_file(write, stub, "mean", "plain")
    assert rated("jury", "run", str(panel), "--replicates", "2")[0] == 0
    mean, plain = calibrated(engine, "mean", "plain").details["test_retest"]
    assert mean.exact_agreement == plain.exact_agreement == 1.0  # the stub has no noise


def calibrated(engine, *jurors):
    options = AnalysisOptions(jurors, reps=200)
    return calibrate(engine, CalibrationQuestion(options, details=True))


def test_the_screen_shows_prompt_and_distribution_of_every_such_call(rated, engine):
    response = opened_response(OPERATOR, engine, 1)
    assert len(response.calls) == 4
    for call in response.calls:
        assert prompt_of(call, ()).exact, call.juror
        lines = list(distribution_lines(call.attempt.answer or {}))
        assert len(lines) == (3 if call.juror == "mean" else 0)
        assert all("stated" in line and "1.000 of the probability" in line for line in lines)


def seated(*names):
    def one(name: str) -> dict[str, Any]:
        settings = dict([SETTINGS[name].replace('"', "").split(" = ")]) if SETTINGS[name] else {}
        own = {"name": name, "provider": "openai", "model": "m", "family": "f"}
        return own | {"base_url": "https://api.openai.com/v1", "api_key_env": "K"} | settings

    return Panel.model_validate({"name": "p", "juror": [one(name) for name in names]})


@pytest.mark.parametrize(
    "write", [helm.write, scorers.write_inspect, scorers.write_mlflow, scorers.write_promptfoo]
)
@pytest.mark.parametrize("name", ["after", "bare", "mean"])
def test_no_other_tool_is_told_of_a_jury_it_would_ask_otherwise(write, name):
    with pytest.raises(BadInput, match=f"{name} rates with .* is not written for other tools"):
        write(Export(read_rubric("generic"), seated("plain", name), ROWS, RECORD))
    assert write(Export(read_rubric("generic"), seated("plain"), ROWS, RECORD))


def test_the_bundle_holds_what_each_juror_is_asked_with():
    generic = read_rubric("generic")
    files = bundle.write(Export(generic, seated("plain", "after", "mean"), ROWS, RECORD))
    body = json.loads(files["bundle.json"])
    assert [*body["orders"]] == ["after"]
    after = body["orders"]["after"]
    assert (after["form"], after["schema"]) == (
        *(generic.schema_text("after"), generic.json_schema("after")),
    )
    assert "first give the score, then" in after["prompt"]
    seats = [(one.get("explanation"), one.get("scores")) for one in body["panel"]["jurors"]]
    assert seats == [(None, None), ("after", None), (None, "expected")]
    for words in (
        "explanation after\n- name mean",
        "scores expected",
        "## Prompt, explanation after",
    ):
        assert words in files["bundle.md"]
    plain = json.loads(bundle.write(Export(generic, seated("plain"), ROWS, RECORD))["bundle.json"])
    assert "orders" not in plain
