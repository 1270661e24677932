"""`medjury analyse calibrate --html`: one page that needs nothing, names no author and claims no more."""

import re

import numpy as np
import pytest
from kit.scores import CRITERIA, note_of, study, without
from kit.studies import content_of

from calibration.decision import DecisionKind
from calibration.other_measures import secondary_rows
from calibration.report.content import criterion_rows, paired_means
from calibration.report.page import page
from calibration.scope import scopes
from calibration.table import agreement_table
from calibration.values import AnalysisOptions

COUNTS = ("n_responses", "n_instances", "n_clinicians", "n_missing")
OUTSIDE = re.compile(r"""(?:src|href|action|data)=["'](?!\#)|url\(|@import|<script|<link|<iframe""")


@pytest.fixture(scope="module")
def real():
    return content_of(study(benchmarks=("aci", "mtsamples"), n=24, per=2))


@pytest.fixture(scope="module")
def shown(real):
    return page(real)


def test_each_criterions_row_is_the_agreement_tables_own():
    scores = study(benchmarks=("aci", "mtsamples"), n=24, per=2, simulated=("dr0",))
    found = criterion_rows(scores, AnalysisOptions(reps=60))
    assert len(found) == 3 * 3
    tables = {name: agreement_table(scores, criterion=name, reps=60) for name in CRITERIA}
    for row in found:
        table = tables[row.criterion]
        own = table[(table["benchmark"] == row.benchmark) & (table["scorer"] == "jury")].iloc[0]
        for name in ("icc", "f_low", "f_high", "low", "high", "spearman", *COUNTS):
            assert getattr(row, name) == pytest.approx(own[name], abs=1e-12), name
        said = [one for one in own["note"].split("; ") if not one.startswith(("scored", "BCa"))]
        assert sorted(filter(None, note_of(row).split("; "))) == sorted(said)


def test_each_criterions_bias_is_that_of_the_details():
    scores = study(n=24, per=2)
    for row in criterion_rows(scores, AnalysisOptions(reps=60)):
        scope = next(scopes(scores, AnalysisOptions(reps=60, criterion=row.criterion)))
        own = secondary_rows(scope, scores)[0]
        for name in ("bias", "bias_low", "bias_high", "limits_low", "limits_high"):
            assert getattr(row, name) == pytest.approx(getattr(own, name), abs=1e-12)


def test_a_criterion_that_one_benchmark_has_is_not_shown_as_combined():
    scores = study(("aci", "bed"), n=24, criteria={"bed": ("accuracy", "safety")})
    found = criterion_rows(scores, AnalysisOptions(reps=20))
    shown = {(row.benchmark, row.criterion) for row in found}
    assert ("bed", "safety") in shown
    assert ("combined", "safety") not in shown
    assert ("combined", "accuracy") in shown


def test_a_report_of_one_benchmark_asks_for_its_criteria_alone():
    scores = study(("aci", "bed"), n=24, criteria={"bed": ("accuracy", "safety")}).of("aci")
    found = criterion_rows(scores, AnalysisOptions(reps=20))
    assert [row.criterion for row in found] == ["accuracy", "completeness", "clarity"]


def test_a_criterion_that_no_clinician_rated_is_undefined_and_the_others_stand():
    scores = study(("aci", "bed"), n=24, criteria={"bed": ("accuracy", "safety")})
    unrated = (scores.ratings["criterion"] == "safety") & (scores.ratings["kind"] == "clinician")
    found = criterion_rows(without(scores, unrated), AnalysisOptions(reps=20))
    safety = [row for row in found if row.criterion == "safety"]
    assert [(row.benchmark, note_of(row)) for row in safety] == [
        ("bed", "undefined: no clinician has rated this criterion")
    ]
    assert np.isnan(safety[0].icc)
    assert np.isfinite([row.icc for row in found if row.criterion != "safety"]).all()
    assert len(found) == 6


def test_where_one_criterion_was_asked_for_none_is_repeated():
    assert criterion_rows(study(n=24), AnalysisOptions(reps=20, criterion="clarity")) == []


def test_paired_means_are_of_the_responses_that_both_scored():
    scores = study(n=24)
    lost = (scores.ratings["rater"] == "gpt") & (scores.ratings["response_id"] == "aci-r3")
    [pair] = paired_means(without(scores, lost), AnalysisOptions(reps=20)).values()
    assert len(pair) == 23
    assert "aci-r3" not in pair.index
    rows = scores.ratings[scores.ratings["response_id"] == "aci-r0"]
    by_rater = rows.groupby(["kind", "rater"])["score"].mean()
    assert np.isclose(pair.loc["aci-r0", "jury"], by_rater["juror"].mean())
    assert np.isclose(pair.loc["aci-r0", "clinicians"], by_rater["clinician"].mean())


def test_the_page_fetches_nothing_and_runs_nothing(shown):
    assert not OUTSIDE.search(shown)
    assert "default-src 'none'" in shown
    assert re.search(r' style="', shown) is None


def test_every_table_has_a_caption_and_scopes_and_every_chart_is_named(shown):
    assert shown.count("<table") == shown.count("<caption>")
    assert not re.search(r"<th(?![^>]*scope=)[ >]", shown)
    assert shown.count("<svg") == shown.count('<svg role="img" aria-label="') == 2
    assert shown.count('lang="en"') == 1


def test_the_page_shows_the_tables_figures(real, shown):
    for row in real.rows:
        if row.scorer == "jury":
            assert f"<td>{row.icc:.3f}</td>" in shown


def test_a_page_of_simulated_raters_is_no_evidence():
    content = content_of(study(n=24, simulated=("claude", "gpt", "llama")))
    assert {one.kind for one in content.decisions.values()} == {DecisionKind.SIMULATED}
    text = page(content)
    assert "Simulated: nothing here is evidence." in text
    assert "as well as a clinician does.</h1>" not in text
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    assert len(captions) == 2
    assert all(one.startswith("Simulated.") for one in captions)
    assert "Jury (simulated)" in text


def test_hostile_names_are_shown_and_never_run():
    name = "<script>alert('x')</script>"
    scores = study(benchmarks=(name,), n=24)
    ratings = scores.ratings.assign(rater=scores.ratings["rater"].replace("gpt", "<img src=x>&"))
    text = page(content_of(type(scores)(ratings, scores.responses, scores.rubrics)))
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;img src=x&gt;&amp;" in text
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in text


def test_benchmarks_on_different_scales_each_have_their_own_sections():
    content = content_of(study(("aci", "bed"), n=24, scales={"bed": (0, 10)}))
    assert content.shown == ["aci", "bed"]
    assert content.decision.kind is DecisionKind.UNDEFINED
    assert "the benchmarks use different scales" in page(content)


def test_a_study_without_jurors_has_a_page_too():
    scores = study(n=24)
    content = content_of(without(scores, scores.ratings["kind"] == "juror"))
    assert [one.code for one in content.decision.reasons] == ["no_juror"]
    assert "No juror has rated a response of this study." in page(content)


def test_one_clinician_leaves_the_verdict_open():
    scores = study(n=24)
    others = scores.ratings["rater"].isin(["dr1", "dr2", "dr3", "dr4"])
    content = content_of(without(scores, others))
    assert content.decision.kind is DecisionKind.UNDEFINED
    assert content.decision.next.code == "do_second_clinician"
    assert "only one clinician rated here" in page(content)
