"""The report and the words of its notes: one page that needs nothing, names no author and claims no more; its charts and tables."""

import csv
import io
import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from kit.odd_studies import all_notes, odd_studies
from kit.scores import CRITERIA, DOCTORS, JURORS, note_of, study, without
from kit.studies import content_of, table_rows

from calibration import remarks
from calibration.data_quality import DistributionRow
from calibration.decision import DecisionKind
from calibration.detection import LimitOutcome, Misses
from calibration.headlines import LIMIT_OPEN, MAY, NO_LIMIT, NOT_SHOWN, OTHER_CLINICIANS
from calibration.icc import Interval
from calibration.notes import Words, counted, filled, listed, note, noted, quoted
from calibration.protocol import Critical, Protocol
from calibration.report.charts import chart_intervals, chart_scatter, svg
from calibration.report.content import criterion_rows, paired_means
from calibration.report.page import definitions, first_page, page
from calibration.scope import AgreementRow
from calibration.shared_notes import ALONE_HAS_CRITERION
from calibration.table import agreement_table as figures_of
from calibration.tables.agreement import AGREEMENT
from calibration.tables.jurors import DISTRIBUTIONS
from calibration.tables.numbers import (
    TERMINAL,
    TOO_WIDE,
    chance,
    fixed,
    icc_interval,
    interval,
    marked,
    money,
    whole,
)
from calibration.tables.spec import ICC_WORDS, laid_out, parted, table_notes
from calibration.values import NAN, AnalysisOptions
from calibration.verdict import JuryClaim, decisions
from calibration.writers import agreement_table, html_table, latex, markdown, table_csv

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
    tables = {name: figures_of(scores, criterion=name, reps=60) for name in CRITERIA}
    for row in found:
        table = tables[row.criterion]
        own = table[(table["benchmark"] == row.benchmark) & (table["scorer"] == "jury")].iloc[0]
        for name in ("icc", "f_low", "f_high", "low", "high", "spearman", *COUNTS):
            assert getattr(row, name) == pytest.approx(own[name], abs=1e-12), name
        said = [one for one in own["note"].split("; ") if not one.startswith(("scored", "BCa"))]
        assert sorted(filter(None, note_of(row).split("; "))) == sorted(said)


def test_a_criterion_that_no_clinician_rated_is_undefined_and_the_others_stand():
    scores = study(("aci", "bed"), n=24, criteria={"bed": ("accuracy", "safety")})
    unrated = (scores.ratings["criterion"] == "safety") & (scores.ratings["kind"] == "clinician")
    found = criterion_rows(without(scores, unrated), AnalysisOptions(reps=20))
    [safety] = [row for row in found if row.criterion == "safety"]  # not as combined
    assert safety.benchmark == "bed"
    assert note_of(safety) == "undefined: no clinician has rated this criterion"
    assert np.isnan(safety.icc)
    assert np.isfinite([row.icc for row in found if row.criterion != "safety"]).all()
    assert ("combined", "accuracy") in {(row.benchmark, row.criterion) for row in found}
    assert len(found) == 6
    own = criterion_rows(scores.of("aci"), AnalysisOptions(reps=20))
    assert [row.criterion for row in own] == [*CRITERIA]
    assert criterion_rows(scores, AnalysisOptions(reps=20, criterion="clarity")) == []


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


def test_the_page_has_the_figures_and_fetches_and_runs_nothing(real, shown):
    figures = [f"<td>{row.icc:.3f}</td>" for row in real.rows if row.scorer == "jury"]
    assert figures
    assert all(one in shown for one in figures)
    assert not OUTSIDE.search(shown)
    assert "default-src 'none'" in shown
    assert re.search(r' style="', shown) is None


def test_every_table_has_a_caption_and_scopes_and_every_chart_is_named(shown):
    assert shown.count("<table") == shown.count("<caption>")
    assert not re.search(r"<th(?![^>]*scope=)[ >]", shown)
    assert shown.count("<svg") == shown.count('<svg role="img" aria-label="') == 2
    assert shown.count('lang="en"') == 1


def test_a_page_of_simulated_raters_is_no_evidence():
    content = content_of(study(n=24, simulated=JURORS))
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
    ratings = scores.ratings.replace({"rater": {"gpt": "<img src=x>&"}})
    text = page(content_of(replace(scores, ratings=ratings)))
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;img src=x&gt;&amp;" in text
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in text


def test_benchmarks_on_different_scales_have_their_own_sections_and_a_study_without_jurors_a_page_too():
    content = content_of(study(("aci", "bed"), n=24, scales={"bed": (0, 10)}))
    assert content.shown == ["aci", "bed"]
    assert content.decision.kind is DecisionKind.UNDEFINED
    assert "the benchmarks use different scales" in page(content)
    scores = study(n=24)
    content = content_of(without(scores, scores.ratings["kind"] == "juror"))
    assert [one.code for one in content.decision.reasons] == ["no_juror"]
    assert "No juror has rated a response of this study." in page(content)


def values_of(chart):
    drawn = chart.to_dict()
    if "datasets" in drawn:
        return [row for rows in drawn["datasets"].values() for row in rows]
    return [row for layer in drawn["layer"] for row in layer["data"]["values"]]


def test_an_interval_that_goes_on_below_minus_1_is_marked_as_cut_and_an_undefined_one_is_a_gap():
    ends = (0.4, -0.2, 0.6), (0.1, -409.8, 0.6), (-6.7, -409.0, -3.0), (NAN, NAN, NAN)
    names = ("value", "low", "high")
    rows = [dict(zip(names, one, strict=True)) for one in ends]
    chart = chart_intervals(
        [{"label": f"s{n}", "kind": "juror"} | one for n, one in enumerate(rows)]
    )
    drawn = {row["label"]: row for row in values_of(chart) if "label" in row}
    assert [
        tuple(drawn[f"s{n}"][name] for name in (*names, "is_cut")) for n in range(len(drawn))
    ] == [
        *((0.4, -0.2, 0.6, False), (0.1, -1.0, 0.6, True)),
        *((None, -1.0, -1.0, True), (None, None, None, False)),
    ]
    assert svg(chart).startswith("<svg")


@pytest.mark.parametrize("n", [200, 10_000])
def test_every_response_is_counted_however_many_there_are_and_a_chart_stays_small(n):
    random = np.random.default_rng(0)
    x, y = (np.round(random.normal(3, 0.7, n), 1) for _ in range(2))
    chart = chart_scatter(x, y)
    assert sum(row.get("responses", 0) for row in values_of(chart)) == n
    assert len(svg(chart)) < 300_000


def test_two_charts_on_a_page_share_no_id_and_each_is_one_image():
    chart = chart_scatter(np.array([1.0, 2.0, 2.0]), np.array([1.0, 3.0, 3.0]))
    first, second = (svg(chart, name, "said") for name in ("one", "two"))
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (first, second)]
    assert not ids[0] & ids[1]
    assert first.count("role=") == 1
    assert 'role="img" aria-label="said"' in first


HOW = {"method": "paper", "reps": 60, "seed": 0}


def hostile(name):
    """Return one row of a scorer whose name is made to break a format, in a note too."""
    told = note(*ALONE_HAS_CRITERION, benchmarks=(name,))
    return [AgreementRow(name, f"juror:{name}", n_responses=3, notes=(told,))]


def in_csv(rows):
    return list(csv.DictReader(io.StringIO(table_csv(rows, HOW), newline="")))


def test_the_csv_has_every_row_in_full_precision_and_an_undefined_figure_as_an_empty_cell():
    rows = table_rows(study(benchmarks=("aci", "mtsamples"), n=24))
    for read, row in zip(in_csv(rows), rows, strict=True):
        assert (read["scorer"], read["benchmark"]) == (row.scorer, row.benchmark)
        assert float(read["icc"]) == row.icc
        assert read["note"] == note_of(row)
    row = hostile("x")
    assert in_csv(row)[0]["icc"] == ""
    assert "| x | \N{EN DASH} |" in markdown(agreement_table(row, "how"))
    assert "x & -- &" in latex(agreement_table(row, "how"))


@pytest.mark.parametrize("name", ["=1+1", "+1+1", "-x", "@x", "\tx", "\rx"])
def test_no_cell_of_the_csv_is_a_formula(name):
    [found] = in_csv(hostile(name))
    assert found["benchmark"] == "'" + name
    assert found["scorer"] == f"juror:{name}"
    told = "'" + f"{name} alone has the criterion" if name.isprintable() else f" {name[1:]} alone"
    assert found["note"].startswith(told)


def test_a_table_of_simulated_raters_says_so_in_a_sentence_of_its_own_and_marks_its_rows():
    everybody = (*JURORS, *DOCTORS)
    table = agreement_table(table_rows(study(n=24, simulated=everybody)), "how")
    said = f"Simulated raters: {', '.join(sorted(everybody))}; nothing here is evidence."
    for text, words in ((markdown(table), said), (latex(table), f"how. {said}}}")):
        assert words in text
        assert re.search(r"Jury \\?\(simulated\\?\) [|&]", text)
    assert "ICC(A,1) (simulated)" not in latex(table)


def test_only_the_rows_that_rest_on_simulated_raters_are_called_so_where_others_are_not():
    rows = table_rows(study(n=24, simulated=("claude",)))
    table = laid_out(AGREEMENT, rows, caption="c", grouped=True)
    assert {"claude (simulated)", "gpt"} < {cells[0] for cells in table.groups[0].rows}
    assert table.caption == "c"
    [jury] = [one for one in in_csv(rows) if one["scorer"] == "jury"]
    assert jury["simulated"] == "1"
    clinicians = (note("simulated", "simulated", raters=("dr1",)),)
    metric = AgreementRow("b", "metric:rouge-l", notes=clinicians)
    assert marked("rouge-l", metric) == "rouge-l (simulated clinicians)"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *((fixed(-0.0001), "0.00"), (fixed(-0.5), "\N{MINUS SIGN}0.50"), (interval(None, 1.0), "")),
        *((fixed(one), "\N{EN DASH}") for one in (NAN, None)),
        (interval(-0.1, 0.25), "\N{MINUS SIGN}0.10 to 0.25"),
        *((chance(0.0004), "<0.001"), (chance(0.0125), "0.013")),
        *((chance(p, TERMINAL), "-") for p in (None, NAN)),
        *((chance(p, TERMINAL), "<0.001") for p in (0.00049, 0.0009)),
        *((chance(p, TERMINAL), f"{p:.3f}") for p in (0.001, 0.25)),
        (whole(12345), "12\N{NARROW NO-BREAK SPACE}345"),
        *((money(0.00123), "$0.00123"), (money(12.345), "$12.35"), (money(0), "$0.00")),
    ],
)
def test_numbers_are_written_one_way(written, expected):
    assert written == expected


def test_an_interval_of_an_icc_that_is_wider_than_any_says_so_in_words_but_not_in_csv():
    rows = [AgreementRow("b", "jury", 0.5, low=-526.0, high=0.9)]
    assert icc_interval(-526.0, 0.9) == icc_interval(-2.2, 0.9) == TOO_WIDE
    assert icc_interval(-2.0, 0.9) == "\N{MINUS SIGN}2.00 to 0.90"
    assert TOO_WIDE in markdown(agreement_table(rows, "how"))
    assert float(in_csv(rows)[0]["low"]) == -526.0


def test_one_clinician_leaves_the_verdict_open():
    scores = study(n=24)
    others = scores.ratings["rater"].isin(["dr1", "dr2", "dr3", "dr4"])
    content = content_of(without(scores, others))
    assert content.decision.kind is DecisionKind.UNDEFINED
    assert content.decision.next.code == "do_second_clinician"
    assert "only one clinician rated here" in page(content)


WHY = {"because": "half of our pilot", "set_at": "2026-11-01T08:00:00Z"}
PROTOCOL = Protocol(0.2, jurors=JURORS, critical=(Critical("accuracy", 2, 0.3),), **WHY)


@cache
def content(simulated):
    return content_of(study(n=60, juror_noise=0.1, seed=2, simulated=simulated))


def claimed(protocol=None, outcome=None, simulated=()):
    found = content(simulated)
    low, high = {"met": (0.1, 0.2), "open": (0.1, 0.6), "failed": (0.5, 0.9)}.get(outcome, (0, 0))
    name, end = found.benchmarks[-1], LimitOutcome(outcome or "open")
    misses = {name: [Misses(name, "accuracy", 2, 0.3, 40, 9, 0.2, low, high, end)]}
    claim = JuryClaim(protocol, misses=misses if outcome else None)
    return replace(found, decisions=decisions(found.rows, claim), protocol=protocol)


def facts(*arguments, **options):
    every = {}
    for name, what in first_page(claimed(*arguments, **options)):
        every.setdefault(name, []).append(what)
    return every


def test_without_a_protocol_nothing_is_claimed_and_nothing_may_be_passed_unread():
    told = facts()
    assert told["Protocol"] == ["No protocol was fixed: nothing is claimed about the jury."]
    assert told["May be used for"] == [MAY["no_protocol"]]
    assert told["May not be used for"][:2] == [NOT_SHOWN, NO_LIMIT]


@pytest.mark.parametrize(
    ("outcome", "kind", "denied"),
    [("met", "non_inferior", None), ("open", "inconclusive", LIMIT_OPEN), ("failed", "inferior", LIMIT_OPEN)],
)  # fmt: skip
def test_what_it_may_be_used_for_follows_from_the_verdict_and_the_misses(outcome, kind, denied):
    told = facts(PROTOCOL, outcome)
    assert told["May be used for"] == [MAY[kind]]
    assert "fixed before any rating was seen (2026-11-01T08:00:00Z)" in told["Protocol"][0]
    assert "half of our pilot" in told["Protocol"][0]
    assert told["Unsafe responses missed"][0].startswith("Of 40 responses that clinicians scored 2")
    assert (denied in told["May not be used for"]) == (denied is not None)
    assert NO_LIMIT not in told["May not be used for"]
    assert (NOT_SHOWN in told["May not be used for"]) == (kind != "non_inferior")


def test_the_definitions_give_the_margin_that_was_fixed_and_none_where_none_was():
    fixed, none = (dict(definitions(claimed(protocol)))["Margin"] for protocol in (PROTOCOL, None))
    assert fixed.startswith("0.2 in ICC, fixed in the protocol")
    assert fixed.endswith("above -0.2.")
    assert none.startswith("None was fixed")


def test_where_the_interval_for_other_clinicians_is_not_known_or_reaches_the_margin_that_is_said():
    shown = claimed(PROTOCOL, "met")
    unknowable = {"population_low": NAN, "population_high": NAN}
    others = {row.scorer: unknowable if row.scorer == "like_for_like" else {} for row in shown.rows}
    rows = [replace(row, **others[row.scorer]) for row in shown.rows]
    unknown = replace(shown, rows=rows, decisions=decisions(rows, JuryClaim(PROTOCOL)))
    assert ("May not be used for", OTHER_CLINICIANS) in [*first_page(unknown)]


def test_simulated_raters_leave_no_use_at_all():
    told = facts(PROTOCOL, "met", simulated=("gpt",))
    assert told["May be used for"] == [MAY["simulated"]]
    assert "May not be used for" not in told


def test_the_page_says_it_before_any_table_and_escapes_what_comes_from_the_study():
    found = claimed(PROTOCOL, "met")
    rubric = SimpleNamespace(**vars(found.study.rubrics[0].rubric) | {"name": "<b>house</b>"})
    rubrics = [SimpleNamespace(name="aci", rubric=rubric)]
    text = page(replace(found, study=replace(found.study, rubrics=rubrics)))
    first = text[: text.index("<nav")]
    for said in ("Intended use", "SHA-256 abababababab", "&lt;b&gt;house"):
        assert said in first
    assert "<b>house" not in text


# Without these, half the time shows 120 of the 140 kinds of notes.
LONG = (
    *("a criterion that nobody rated", "a jury that guesses", "scales that differ"),
    *("a criterion that one lacks", "resamples without a difference", "few instances"),
)


@pytest.mark.parametrize(
    "left_out",
    [LONG, pytest.param((), marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
    ids=["some", "all"],
)
def test_every_note_on_a_figure_of_the_odd_studies_has_words_with_all_its_figures_in(left_out):
    studies = odd_studies()
    for name in studies.keys() - left_out:
        for one in set(all_notes(studies[name])):
            for said in (str(one), one.text, one.general or one.text):
                assert said.strip(), (name, one)
                assert not {"{", "}"} & {*said}, (name, said)
                assert not any(odd in said for odd in ("None", "nan", "NoteCode", "  ")), said


def test_counts_have_their_nouns_and_names_that_part_a_list_their_quotation_marks():
    assert [counted(n, "pair") for n in (0, 1, 2)] == ["0 pairs", "1 pair", "2 pairs"]
    said = filled("{n:missing score} of {who}", {"n": 1, "who": ("a", "b, c")})
    assert said == '1 missing score of a, "b, c"'
    assert filled("{who:scorer}", {"who": "metric:rouge-l"}) == "rouge-l"
    assert filled("{why}; {who}", {"why": Words("a, b"), "who": "a;b"}) == 'a, b; "a;b"'
    assert [quoted(one) for one in ("a", "a b", "a, b", 'a", "b', "a\nb")] == [
        *("a", "a b", '"a, b"', r'"a\", \"b"', "a b")
    ]
    assert listed(["Smith, John", "gpt"]) == '"Smith, John", gpt'
    with pytest.raises(KeyError, match="least"):  # never half a sentence
        note("few_instances", "fewer than {least} instances")


LOUD = noted(
    remarks.few_instances(5),
    remarks.negative(-0.2, 0.1, 0.0),
    remarks.negative(-0.2, -0.1, -0.3),
    remarks.no_variance(["dr_a"]),
    remarks.undefined_resamples(np.array([np.nan] * 10 + [0.5] * 90)),
    note("fragile_pairs", "fragile_pairs", fragile=5, pairs=5, least=10),
    note("no_variance", "no_variance", raters=("compared, each on 7 responses or more",)),
)
QUIET = noted(
    remarks.corrected(5, 0.99, Interval(0.1, 0.6)),
    remarks.undefined_resamples(np.array([np.nan] + [0.5] * 99)),
    note("held_on", "held_on", clinicians=4, least=7),
    note("held_iccs", "held_iccs", jury=0.495, clinician=0.394),
    note("own_means", "own_means", icc=0.7),
)


@pytest.mark.parametrize("groups", [[""], ["aci", "mts"]])
def test_what_only_adds_figures_is_folded_and_what_warns_is_not(groups: list[str]) -> None:
    every = table_notes([(one, "Jury", (*QUIET, *LOUD)) for one in groups])
    loud, quiet = parted(every)
    assert [one.code for one in loud] == [one.code for one in LOUD]
    assert [one.code for one in quiet] == [one.code for one in QUIET]


def test_a_heading_in_the_app_tells_its_meaning_and_in_a_report_it_is_plain() -> None:
    page, handed_on = (html_table(laid_out(AGREEMENT, []), on_screen=one) for one in (True, False))
    assert f'tabindex="0" aria-description="{ICC_WORDS}">ICC(C,2)</span>' in page
    assert ">Scorer</th>" in page
    assert "mj-term" not in handed_on


@pytest.mark.parametrize("name", ["Smith, John", "dr_c; simulated raters: nobody"])
def test_a_name_that_parts_a_list_stands_in_quotation_marks_in_a_note(name: str) -> None:
    few = note("few_instances", "few_instances", least=20)
    row = DistributionRow("b", name, "accuracy", 9, 3.0, 1.0, {"3": 9}, 0.0, notes=(few,))
    table = laid_out(DISTRIBUTIONS, [row, replace(row, rater="dr-b", notes=())])
    assert table.groups[0].rows[0][0] == name
    assert [one.text for one in table.notes] == [f'accuracy, "{name}": {few!s}']
    left_out = note("no_variance", "left out, no variance: {raters}", raters=(name, "dr-b"))
    assert str(left_out) == f'left out, no variance: "{name}", dr-b'
    assert laid_out(AGREEMENT, []).notes == ()
