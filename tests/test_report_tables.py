"""The agreement table in Markdown, CSV and LaTeX: the same figures, nothing run, nothing hidden."""

import csv
import io

import pytest
from calibration.report.agreement_tables import AGREEMENT
from calibration.report.table_formats import CSV_COLUMNS, latex, markdown, table_csv
from calibration.report.tables import Said, told
from little_study import study
from report_study import table_rows

from calibration.tables.numbers import chance, fixed, interval, marked, money, whole

HOW = {"method": "paper", "reps": 60, "seed": 0}
NAN = float("nan")


@pytest.fixture(scope="module")
def rows():
    return table_rows(study(benchmarks=("aci", "mtsamples"), n=24))


def hostile(name):
    """Return one row of a scorer whose name is made to break a format."""
    figures = dict.fromkeys(CSV_COLUMNS[3:14]) | {"n_responses": 3, "n_missing": 0}
    return [{**figures, "benchmark": name, "scorer": f"juror:{name}", "note": name}]


def test_the_csv_has_every_row_in_full_precision(rows):
    found = list(csv.DictReader(io.StringIO(table_csv(rows, HOW))))
    assert len(found) == len(rows)
    for read, row in zip(found, rows, strict=True):
        assert (read["scorer"], read["benchmark"]) == (row["scorer"], row["benchmark"])
        assert (float(read["icc"]) if read["icc"] else None) == row["icc"]
        assert read["note"] == row["note"]


def test_an_undefined_figure_is_an_empty_cell_in_csv_and_a_dash_elsewhere():
    row = hostile("x")
    assert next(csv.DictReader(io.StringIO(table_csv(row, HOW))))["icc"] == ""
    assert "| x | \N{EN DASH} |" in markdown(row, "how")
    assert "x & -- &" in latex(row, "how")


def test_a_note_names_scorers_without_their_kind():
    [row] = hostile("x")
    note = "only the responses of both: jury has 45, metric:bertscore-8 30; my-juror:x"
    said = markdown([row | {"note": note}], "how").replace("\\", "")
    assert "jury has 45, bertscore-8 30" in said
    assert "my-juror:x" in said


@pytest.mark.parametrize("name", ["=1+1", "+1+1", "-x", "@x", "\tx", "\rx"])
def test_no_cell_of_the_csv_is_a_formula(name):
    text = table_csv(hostile(name), HOW)
    found = next(csv.DictReader(io.StringIO(text, newline="")))
    assert found["benchmark"] == "'" + name
    assert found["note"] == "'" + name


def test_markdown_shows_a_hostile_name_literally():
    text = markdown(hostile("a|b <script> *x* [l](u)\nnew"), "how")
    assert "<script>" not in text
    assert r"a\|b \<script\> \*x\* \[l\]\(u\) new" in text


def test_latex_shows_a_hostile_name_literally():
    text = latex(hostile(r"\input{x} 5% $a_b^c$ #&~<>"), "how")
    body = "\n".join(line for line in text.split("\n") if not line.startswith("%"))
    assert (
        r"\textbackslash{}input\{x\} 5\% \$a\_b\textasciicircum{}c\$ "
        r"\#\&\textasciitilde{}\textless{}\textgreater{}"
    ) in body
    assert r"\input{" not in body


def test_a_note_cannot_leave_its_comment_in_latex():
    comments = latex(hostile("a\n\\input{x}"), "how").split("\n")
    assert [line for line in comments if "input{x}" in line and not line.startswith("%")] == []


def test_every_table_says_what_is_simulated():
    simulated = table_rows(study(n=24, simulated=("claude", "gpt", "llama", "dr0")))
    for text in (markdown(simulated, "how"), latex(simulated, "how")):
        assert "simulated" in text
    found = list(csv.DictReader(io.StringIO(table_csv(simulated, HOW))))
    assert {one["simulated"] for one in found if one["scorer"] == "jury"} == {"1"}


def test_a_table_of_simulated_raters_says_so_in_a_sentence_of_its_own_and_marks_its_rows():
    everybody = ("claude", "gpt", "llama", *(f"dr{i}" for i in range(5)))
    rows = table_rows(study(n=24, simulated=everybody))
    said = f"Simulated raters: {', '.join(sorted(everybody))}; nothing here is evidence."
    assert f"**{said}**" in markdown(rows, "how")
    assert f"how. {said}}}" in latex(rows, "how")
    assert r"| Jury \(simulated\) |" in markdown(rows, "how")
    assert "Jury (simulated) &" in latex(rows, "how")
    assert "ICC(A,1) (simulated)" not in latex(rows, "how")


def test_a_table_of_some_simulated_raters_calls_only_their_rows_no_evidence():
    text = latex(table_rows(study(n=24, simulated=("claude",))), "how")
    assert "Simulated raters: claude; no row marked simulated is evidence." in text
    assert "gpt &" in text
    assert "Simulated" not in latex(table_rows(study(n=24)), "how")


def test_a_mean_over_pairs_of_few_responses_is_called_fragile():
    rows = [{**one, "scorer": "clinicians"} for one in hostile("x")]
    rows[0]["note"] = "fragile: 3 of 4 pairs share fewer than 10 responses"
    text = latex(rows, "how")
    assert "Clinicians, by pairs, fragile &" in text
    assert "by pairs, fragile: 3 of 4 pairs share fewer than 10 responses" in text
    assert "fragile: fragile" not in text


def test_only_the_rows_that_rest_on_simulated_raters_are_called_so_where_others_are_not():
    rows = table_rows(study(n=24, simulated=("claude",)))
    table = AGREEMENT.table("c", rows, grouped=True)
    names = [cells[0] for cells in table.groups[0].rows]
    assert "claude (simulated)" in names
    assert "gpt" in names
    assert table.caption == "c"


def test_a_note_is_told_once_with_the_rows_it_holds_for():
    rows = [
        Said("aci", "Jury", ("few", "own")),
        Said("aci", "gpt", ("few",)),
        Said("all", "Jury", ()),
        Said("all", "gpt", ()),
    ]
    assert list(told(rows)) == ["aci: few", "aci, Jury: own"]
    assert list(told(rows[:2])) == ["few", "aci, Jury: own"]


def test_a_note_of_one_benchmark_never_speaks_for_another():
    rows = [Said("aci", "Jury", ("few",)), Said("all", "Jury", ())]
    assert list(told(rows)) == ["aci, Jury: few"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (fixed(-0.0001), "0.00"),
        (fixed(-0.5), "\N{MINUS SIGN}0.50"),
        (fixed(NAN), "\N{EN DASH}"),
        (fixed(None), "\N{EN DASH}"),
        (interval(None, 1.0), ""),
        (interval(-0.1, 0.25), "\N{MINUS SIGN}0.10 to 0.25"),
        (chance(0.0004), "<0.001"),
        (chance(0.0125), "0.013"),
        (whole(12345), "12\N{NARROW NO-BREAK SPACE}345"),
        (money(0.00123), "$0.00123"),
        (money(12.345), "$12.35"),
        (money(0), "$0.00"),
    ],
)
def test_numbers_are_written_one_way(written, expected):
    assert written == expected


def test_no_metric_is_called_simulated_but_the_clinicians_that_it_is_held_against_are():
    row = {"note": "simulated raters: dr1"}
    assert marked("rouge-l", row | {"scorer": "metric:rouge-l"}) == (
        "rouge-l (simulated clinicians)"
    )
    assert marked("Jury", row | {"scorer": "jury"}) == "Jury (simulated)"
    assert marked("rouge-l", {"note": "", "scorer": "metric:rouge-l"}) == "rouge-l"


def test_a_note_of_the_same_rows_in_every_group_names_them_once():
    names = ("Jury", "gpt", "rouge-l")
    rows = [
        Said(group, name, () if name == "rouge-l" else ("few",))
        for group in ("aci", "bec")
        for name in names
    ]
    assert list(told(rows)) == ["Jury, gpt, everywhere: few"]
    assert list(told([*rows, Said("all", "Jury", ())])) == ["aci, Jury, gpt; bec, Jury, gpt: few"]
