"""The agreement table in Markdown, CSV and LaTeX: the same figures, nothing run, nothing hidden."""

import csv
import io

import pytest
from kit.scores import note_of, study
from kit.studies import table_rows

from calibration.notes import note
from calibration.scope import AgreementRow
from calibration.shared_notes import ALONE_HAS_CRITERION
from calibration.tables.agreement import AGREEMENT
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
from calibration.tables.spec import laid_out, table_notes
from calibration.writers import agreement_table, latex, markdown, table_csv

HOW = {"method": "paper", "reps": 60, "seed": 0}
NAN = float("nan")


@pytest.fixture(scope="module")
def rows():
    return table_rows(study(benchmarks=("aci", "mtsamples"), n=24))


FEW = note("few_instances", "few_instances", least=20)
OWN = note("one_instance", "one_instance")
FEW_WORDS, OWN_WORDS = str(FEW), str(OWN)


def hostile(name):
    """Return one row of a scorer whose name is made to break a format, in a note too."""
    told = note(*ALONE_HAS_CRITERION, benchmarks=(name,))
    return [AgreementRow(name, f"juror:{name}", n_responses=3, notes=(told,))]


def told(remarks):
    """Return the words of the notes below a table."""
    return [one.text for one in table_notes(remarks)]


def test_the_csv_has_every_row_in_full_precision(rows):
    found = list(csv.DictReader(io.StringIO(table_csv(rows, HOW))))
    assert len(found) == len(rows)
    for read, row in zip(found, rows, strict=True):
        assert (read["scorer"], read["benchmark"]) == (row.scorer, row.benchmark)
        assert float(read["icc"]) == row.icc
        assert read["note"] == note_of(row)


def test_an_undefined_figure_is_an_empty_cell_in_csv_and_a_dash_elsewhere():
    row = hostile("x")
    assert next(csv.DictReader(io.StringIO(table_csv(row, HOW))))["icc"] == ""
    assert "| x | \N{EN DASH} |" in markdown(agreement_table(row, "how"))
    assert "x & -- &" in latex(agreement_table(row, "how"))


@pytest.mark.parametrize("name", ["=1+1", "+1+1", "-x", "@x", "\tx", "\rx"])
def test_no_cell_of_the_csv_is_a_formula(name):
    text = table_csv(hostile(name), HOW)
    found = next(csv.DictReader(io.StringIO(text, newline="")))
    assert found["benchmark"] == "'" + name
    assert found["scorer"] == f"juror:{name}"
    told = "'" + f"{name} alone has the criterion" if name.isprintable() else f" {name[1:]} alone"
    assert found["note"].startswith(told)


def test_markdown_shows_a_hostile_name_literally():
    text = markdown(agreement_table(hostile("a|b <script> *x* [l](u)\nnew"), "how"))
    assert "<script>" not in text
    assert r"a\|b \<script\> \*x\* \[l\]\(u\) new" in text


def test_latex_shows_a_hostile_name_literally():
    text = latex(agreement_table(hostile(r"\input{x} 5% $a_b^c$ #&~<>"), "how"))
    body = "\n".join(line for line in text.split("\n") if not line.startswith("%"))
    assert (
        r"\textbackslash{}input\{x\} 5\% \$a\_b\textasciicircum{}c\$ "
        r"\#\&\textasciitilde{}\textless{}\textgreater{}"
    ) in body
    assert r"\input{" not in body


def test_a_note_cannot_leave_its_comment_in_latex():
    comments = latex(agreement_table(hostile("a\n\\input{x}"), "how")).split("\n")
    assert [line for line in comments if "input{x}" in line and not line.startswith("%")] == []


def test_every_table_says_what_is_simulated():
    simulated = table_rows(study(n=24, simulated=("claude", "gpt", "llama", "dr0")))
    for text in (
        markdown(agreement_table(simulated, "how")),
        latex(agreement_table(simulated, "how")),
    ):
        assert "simulated" in text
    found = list(csv.DictReader(io.StringIO(table_csv(simulated, HOW))))
    assert {one["simulated"] for one in found if one["scorer"] == "jury"} == {"1"}


def test_a_table_of_simulated_raters_says_so_in_a_sentence_of_its_own_and_marks_its_rows():
    everybody = ("claude", "gpt", "llama", *(f"dr{i}" for i in range(5)))
    rows = table_rows(study(n=24, simulated=everybody))
    said = f"Simulated raters: {', '.join(sorted(everybody))}; nothing here is evidence."
    assert said in markdown(agreement_table(rows, "how"))
    assert f"how. {said}}}" in latex(agreement_table(rows, "how"))
    assert r"| Jury \(simulated\) |" in markdown(agreement_table(rows, "how"))
    assert "Jury (simulated) &" in latex(agreement_table(rows, "how"))
    assert "ICC(A,1) (simulated)" not in latex(agreement_table(rows, "how"))


def test_only_the_rows_that_rest_on_simulated_raters_are_called_so_where_others_are_not():
    rows = table_rows(study(n=24, simulated=("claude",)))
    table = laid_out(AGREEMENT, rows, caption="c", grouped=True)
    names = [cells[0] for cells in table.groups[0].rows]
    assert "claude (simulated)" in names
    assert "gpt" in names
    assert table.caption == "c"


def test_a_note_of_one_benchmark_never_speaks_for_another():
    rows = [("aci", "Jury", (FEW,)), ("all", "Jury", ())]
    assert told(rows) == [f"aci, Jury: {FEW_WORDS}"]


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
    made_up = (note("simulated", "simulated", raters=("dr1",)),)
    metric = AgreementRow("b", "metric:rouge-l", notes=made_up)
    assert marked("rouge-l", metric) == "rouge-l (simulated clinicians)"
    assert marked("Jury", AgreementRow("b", "jury", notes=made_up)) == "Jury (simulated)"
    assert marked("rouge-l", AgreementRow("b", "metric:rouge-l")) == "rouge-l"


def test_an_interval_of_an_icc_that_is_wider_than_any_says_so_in_words_but_not_in_csv():
    rows = [AgreementRow("b", "jury", 0.5, low=-526.0, high=0.9)]
    assert icc_interval(-526.0, 0.9) == icc_interval(-2.2, 0.9) == TOO_WIDE
    assert icc_interval(-2.0, 0.9) == "\N{MINUS SIGN}2.00 to 0.90"
    assert laid_out(AGREEMENT, rows, TERMINAL).groups[0].rows[0][2] == TOO_WIDE
    assert TOO_WIDE in markdown(agreement_table(rows, "how"))
    [read] = csv.DictReader(io.StringIO(table_csv(rows, HOW)))
    assert float(read["low"]) == -526.0
