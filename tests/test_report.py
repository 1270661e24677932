"""`medjury calibrate --html`: one page that needs nothing, names no author and claims no more."""

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from little_study import CRITERIA, study, without
from report_study import AUTHOR, content_of, rated
from small import Run
from sqlalchemy import Engine

from calibration.report.evidence import criterion_rows, paired_means
from calibration.report.page import in_points, page, verdicts
from calibration.report.sections import sections
from calibration.report.tables import Table
from calibration.scope import Asked
from calibration.scopes import Sitting, scopes
from calibration.secondary import secondary_rows
from calibration.table import agreement_table
from data.queries.ledger import tried

COUNTS = ("n_responses", "n_instances", "n_clinicians", "n_missing")
OUTSIDE = re.compile(r"""(?:src|href|action|data)=["'](?!\#)|url\(|@import|<script|<link|<iframe""")


@pytest.fixture(scope="module")
def real():
    return content_of(study(benchmarks=("aci", "mtsamples"), n=24, per=2))


def test_each_criterions_row_is_the_agreement_tables_own():
    scores = study(benchmarks=("aci", "mtsamples"), n=24, per=2, simulated=("dr0",))
    found = criterion_rows(scores, Sitting(), Asked(reps=60))
    assert len(found) == 3 * 3
    tables = {name: agreement_table(scores, criterion=name, reps=60) for name in CRITERIA}
    for row in found:
        table = tables[row.criterion]
        own = table[(table["benchmark"] == row.benchmark) & (table["scorer"] == "jury")].iloc[0]
        for name in ("icc", "f_low", "f_high", "boot_low", "boot_high", "spearman", *COUNTS):
            assert getattr(row, name) == pytest.approx(own[name], abs=1e-12), name
        said = [one for one in own["note"].split("; ") if not one.startswith(("scored", "BCa"))]
        assert sorted(filter(None, row.note.split("; "))) == sorted(said)


def test_each_criterions_bias_is_that_of_the_details():
    scores = study(n=24, per=2)
    for row in criterion_rows(scores, Sitting(), Asked(reps=60)):
        scope = next(scopes(scores, Sitting(), Asked(reps=60, criterion=row.criterion)))
        own = asdict(secondary_rows(scope, scores)[0])
        for name in ("bias", "bias_low", "bias_high", "limits_low", "limits_high"):
            assert getattr(row, name) == pytest.approx(own[name], abs=1e-12)


def test_a_criterion_that_one_benchmark_has_is_not_shown_as_combined():
    scores = study(("aci", "bed"), n=24, criteria={"bed": ("accuracy", "safety")})
    found = criterion_rows(scores, Sitting(), Asked(reps=20))
    shown = {(row.benchmark, row.criterion) for row in found}
    assert ("bed", "safety") in shown
    assert ("combined", "safety") not in shown
    assert ("combined", "accuracy") in shown


def test_a_report_of_one_benchmark_asks_for_its_criteria_alone():
    scores = study(("aci", "bed"), n=24, criteria={"bed": ("accuracy", "safety")}).of("aci")
    found = criterion_rows(scores, Sitting(), Asked(reps=20))
    assert [row.criterion for row in found] == ["accuracy", "completeness", "clarity"]


def test_a_criterion_that_no_clinician_rated_is_undefined_and_the_others_stand():
    scores = study(("aci", "bed"), n=24, criteria={"bed": ("accuracy", "safety")})
    unrated = (scores.ratings["criterion"] == "safety") & (scores.ratings["kind"] == "clinician")
    found = criterion_rows(without(scores, unrated), Sitting(), Asked(reps=20))
    safety = [row for row in found if row.criterion == "safety"]
    assert [(row.benchmark, row.note) for row in safety] == [
        ("bed", "undefined: no clinician has rated this criterion")
    ]
    assert np.isnan(safety[0].icc)
    assert np.isfinite([row.icc for row in found if row.criterion != "safety"]).all()
    assert len(found) == 6


def test_where_one_criterion_was_asked_for_none_is_repeated():
    assert criterion_rows(study(n=24), Sitting(), Asked(reps=20, criterion="clarity")) == []


def test_paired_means_are_of_the_responses_that_both_scored():
    scores = study(n=24)
    lost = (scores.ratings["rater"] == "gpt") & (scores.ratings["response_id"] == "aci-r3")
    pair = next(paired_means(without(scores, lost), Sitting(), Asked(reps=20)))
    assert len(pair.responses) == len(pair.jury) == 23
    assert "aci-r3" not in pair.responses
    rows = scores.ratings[scores.ratings["response_id"] == "aci-r0"]
    place = pair.responses.index("aci-r0")
    by_rater = rows.groupby(["kind", "rater"])["score"].mean()
    assert np.isclose(pair.jury[place], by_rater["juror"].mean())
    assert np.isclose(pair.clinicians[place], by_rater["clinician"].mean())


def test_the_page_fetches_nothing_and_runs_nothing(real):
    text = page(real)
    assert not OUTSIDE.search(text)
    assert "default-src 'none'" in text
    assert re.search(r' style="', text) is None


def test_the_page_has_its_sections_in_the_readers_order(real):
    headings = re.findall(r'<h[12] id="s(\w+)"', page(real))
    assert headings == ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "A"]


def test_every_table_has_a_caption_and_scopes_and_every_chart_is_named(real):
    text = page(real)
    assert text.count("<table") == text.count("<caption>")
    assert not re.search(r"<th(?![^>]*scope=)[ >]", text)
    assert text.count("<svg") == text.count('<svg role="img" aria-label="') >= 5
    assert text.count('lang="en"') == 1


def test_ids_are_there_once(real):
    ids = re.findall(r' id="([^"]+)"', page(real))
    assert len(ids) == len(set(ids))


def test_the_page_shows_the_tables_figures(real):
    text = page(real)
    for row in real.rows:
        if row["scorer"] == "jury":
            assert f"<td>{row['icc']:.3f}</td>" in text


def test_bias_in_points_is_in_the_verdict(real):
    row = next(r for r in real.of("other_measures", "combined") if r["scorer"] == "jury")
    words = in_points(real, "combined")
    assert f"{abs(row['bias']):.2f} points" in words
    assert words in page(real).replace("&#39;", "'")


def test_a_page_of_simulated_raters_is_no_evidence():
    content = content_of(study(n=24, simulated=("claude", "gpt", "llama")))
    assert {one.kind for one in verdicts(content)} == {"simulated"}
    text = page(content)
    assert "Simulated: nothing here is evidence." in text
    assert "as well as a clinician does.</h1>" not in text
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    assert len(captions) == 5
    assert all(one.startswith("Simulated.") for one in captions[1:])
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
    assert verdicts(content)[-1].kind == "undefined"
    assert "the benchmarks use different scales" in page(content)


def test_a_study_without_jurors_has_a_page_too():
    scores = study(n=24)
    content = content_of(without(scores, scores.ratings["kind"] == "juror"))
    assert "There is no jury to judge." in page(content)


def test_one_clinician_leaves_the_verdict_open():
    scores = study(n=24)
    others = scores.ratings["rater"].isin(["dr1", "dr2", "dr3", "dr4"])
    content = content_of(without(scores, others))
    assert verdicts(content)[-1].kind == "undefined"
    assert "only clinician" in page(content)


def test_all_four_reports_are_written_and_name_no_author_and_no_text(
    run: Run, tmp_path: Path
) -> None:
    rated(run, tmp_path)
    places = {name: tmp_path / f"report.{name}" for name in ("html", "markdown", "csv", "latex")}
    options = [part for name, to in places.items() for part in (f"--{name}", str(to))]
    code, out, _ = run("calibrate", "--reps", "50", *options)
    assert code == 0
    for name, to in places.items():
        text = to.read_text("utf-8")
        assert f"{name} report: {to}" in out.replace("\n", "")
        assert AUTHOR not in text
        assert "Secret" not in text
        assert "gpt" in text
    assert list(tmp_path.glob("*.part")) == []


def test_every_criterion_on_the_page_stands_in_the_ledger_before_p_is_corrected(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    rated(run, tmp_path)
    assert run("calibrate", "--reps", "50", "--html", str(tmp_path / "r.html"))[0] == 0
    entries = {one.criterion: one for one in tried(engine)}
    assert set(entries) == {"", "accuracy", "completeness", "clarity"}
    assert len({one.fingerprint for one in entries.values()}) == 1
    text = (tmp_path / "r.html").read_text()
    assert "corrected for 5 comparisons" in text  # two jurors here, three criteria
    assert entries[""].fingerprint in text
    assert run("verify")[0] == 0


def test_a_report_tells_when_the_blind_was_lifted(run: Run, tmp_path: Path) -> None:
    rated(run, tmp_path)
    assert run("unblind", "--reason", "to <see>")[0] == 0
    assert run("calibrate", "--reps", "20", "--html", str(tmp_path / "r.html"))[0] == 0
    assert "to &lt;see&gt;" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--html", "nowhere/r.html"], "--html nowhere/r.html: not a file in a folder that exists"),
        (["--csv", "-"], "--csv -: not a file"),
        (["--csv", "{here}/a", "--latex", "{here}/a"], "--csv is to be written there"),
        (["--json", "{here}/a", "--html", "{here}/a"], "--json is to be written there"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_refused_before_any_work(
    run: Run, engine: Engine, tmp_path: Path, options: list[str], words: str
) -> None:
    rated(run, tmp_path)
    before = len(tried(engine))
    code, _, told = run("calibrate", *(one.format(here=tmp_path) for one in options))
    assert code == 2
    assert words in told
    assert len(tried(engine)) == before
    assert not (tmp_path / "a").exists()


def test_a_bias_that_no_figure_tells_of_is_one_sentence_and_no_table_of_dashes(real):
    found = {one.title: one for one in sections(real)}["The jurors one by one"]
    captions = [block.caption for block in found.blocks if isinstance(block, Table)]
    assert not any(one.startswith(("Self-preference", "Length")) for one in captions)
    told = dict(next(block for block in found.blocks if isinstance(block, list)))
    assert told["Self-preference"].startswith("Bias towards single models is not tested, because")
    assert "families are not given" in told["Self-preference"]
    assert "Bias towards single models is not tested" in page(real)
