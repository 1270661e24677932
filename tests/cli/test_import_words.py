# ruff: noqa: RUF001
"""What an import reads and says: tables as people and spreadsheets make them, and no patient's text in an error."""

import codecs
import json
from pathlib import Path

import pytest
from kit.studies import RESPONSES

from data.errors import BadFile, BadInput, BadRow, OffScale
from data.importers.columns import map_of, mapped
from data.importers.ratings import RatingFile, expert_rows
from data.importers.responses import ResponseFile
from data.importers.source import Source
from data.importers.table import TableFile
from data.rubric import missing_from_prompt, read_rubric
from medjury.services.importing import rubric_for

SECRET = "Patient Zylberquist, born 1951, has a rash"
HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response\n"


@pytest.mark.parametrize("place", [2, 3, 4])
def test_an_error_about_a_text_names_its_place_and_never_quotes_it(run, write, place):
    run("study", "import", str(write("a.csv", HEAD + "i1,visits,c,p,ref,r1,m,said\n")))
    cells = ["i1", "visits", "c", "p", "ref", "r2", "m", "said"]
    cells[place] = f'"{SECRET}"'
    code, out, err = run("study", "import", str(write("b.csv", HEAD + ",".join(cells) + "\n")))
    assert code == 2
    assert "row 2" in err
    assert "response r2: instance i1" in err
    assert "Zylberquist" not in out + err


def test_a_file_without_a_header_is_refused_without_its_first_row(write):
    row = f'i1,visits,"{SECRET}",p,,r1,m,"{SECRET}"\n'
    for text in (row, f'"{SECRET}",a\n1,2\n'):
        for reader in (ResponseFile, RatingFile):
            with pytest.raises(BadInput) as refused:
                reader(TableFile(write("r.csv", text)))
            assert "Zylberquist" not in str(refused.value)


@pytest.mark.parametrize(
    "row", ["r11,dr,clinician,clarity,{0}", "r11,dr,clinician,{0},3", "r11,dr,{0},clarity,3"]
)
def test_a_text_in_a_column_of_names_or_numbers_is_not_quoted(run, write, row):
    run("study", "import", str(write("responses.csv", RESPONSES)))
    text = "response_id,rater,kind,criterion,score\n" + row.format(SECRET.replace(",", "")) + "\n"
    code, _, err = run("rate", "ratings", str(write("ratings.csv", text)))
    assert code == 2
    assert "row 2" in err
    assert "Zylberquist" not in err


def test_a_column_nearly_called_context_is_asked_about_and_its_absence_said_loudly(run, write):
    text = "instance_id,benchmark,ctx,prompt,model,response,ward\ni1,visits,c,p,m,said,A\n"
    code, out, _ = run("study", "import", str(write("r.csv", text)))
    assert code == 0
    assert "1 response to 1 new instance imported" in out
    assert "columns not taken: ctx (1 value; did you mean context?), ward (1 value)" in out
    assert "WARNING: no row has a context" in out
    assert "WARNING" not in run("study", "import", str(write("s.csv", RESPONSES)))[1]


NAMED = (
    "MTSamples=mtsamples_replicate,MTSamples Procedures=mtsamples_procedures,MIMIC-IV-BHC=mimic_bhc,"
    "PatientInstruct=starr_patient_instructions,NoteExtract=chw_care_plan,MEDIQA=medi_qa,"
    "ACI-Bench=aci_bench,MIMIC-RRS=mimic_rrs,MIMIC-BHC=mimic_bhc,MedDialog=med_dialog,"
    "MedicationQA=medication_qa,MentalHealth=mental_health,DischargeMe=dischargeme,"
    "MedAlign=medalign,ward round=generic"
)


@pytest.mark.parametrize("named", NAMED.split(","))
def test_a_benchmark_finds_its_rubric_by_the_papers_name(named):
    name, _, rubric = named.partition("=")
    assert rubric_for(name) == read_rubric(rubric)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Rate {{response}}", "{{criteria}} is missing, and kindness, use_of_words stand nowhere"),
        ("Rate kindness. JSON. {{response}}", "use_of_words stands nowhere"),
        ("{{response}} {{criteria}}", "{{schema}} is missing"),
        ("{{response}} {{criteria}} {{schema}}", ""),
        ("Rate Kindness and Use of Words of {{response}} in JSON", ""),
    ],
)
def test_a_prompt_that_asks_a_juror_nothing_is_told(prompt, said):
    found = missing_from_prompt(prompt, ("kindness", "use_of_words"))
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize(
    ("end", "doubted"),
    [("caf\u00e9", True), ("x\u0a0a", True), ("a b\n", False), ("a\r\n", False), ('"a"', False)],
)
def test_only_a_last_line_without_an_end_is_doubted(tmp_path, encoding, end, doubted):
    path = tmp_path / "r.csv"
    path.write_bytes(f"id,text\n1,{end}".encode(encoding, "replace"))
    assert bool(TableFile(path).doubts) == doubted
    if encoding == "utf-16":
        path.write_bytes(codecs.BOM_UTF16_BE + f"id,text\n1,{end}".encode("utf-16-be"))
        assert bool(TableFile(path).doubts) == doubted


def test_a_criterion_that_first_stands_in_a_later_row_is_never_dropped(run, write):
    run("study", "import", str(write("a.csv", RESPONSES)))
    first = {"response_id": "r11", "rater": "dr", "kind": "clinician", "clarity": 3}
    later = first | {"response_id": "r12", "accuracy": 2, "comment": "late"}
    path = write("r.jsonl", f"{json.dumps(first)}\n{json.dumps(later)}\n")
    code, _, err = run("rate", "ratings", str(path))
    assert code == 2
    assert "r.jsonl row 2, column accuracy: the first row has no such key" in err
    path.write_text(f"{json.dumps(first | {'accuracy': None})}\n{json.dumps(later)}\n")
    assert "3 ratings imported" in run("rate", "ratings", str(path))[1]
    lines = '{"response_id": "r11", "clarity": 3}\n{"response_id": "r12", "x": 1}'
    experts = write("e.jsonl", lines)
    with pytest.raises(BadInput, match="row 2, column x: the first row"):
        list(expert_rows(TableFile(experts)))


def test_keys_without_meaning_are_named_whatever_row_they_stand_in(run, write):
    rows = [
        dict(zip(HEAD.strip().split(","), f"i{n},v,c,p,,r{n},m,said".split(","), strict=True))
        for n in (1, 2)
    ]
    del rows[0]["reference"], rows[1]["reference"]
    rows[1] |= {"refrence": "gold", SECRET: "x"}
    path = write("a.jsonl", "".join(json.dumps(one) + "\n" for one in rows))
    code, out, err = run("study", "import", str(path))
    assert (code, "refrence (1 value; did you mean reference?)" in out) == (0, True), err
    assert "Zylberquist" not in out + err


NAMES = "instance_id{0}benchmark{0}context{0}response"


def table(tmp_path: Path, text: str | bytes, encoding: str = "") -> TableFile:
    path = tmp_path / "r.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return TableFile(Source(path, encoding=encoding))


def rows(tmp_path: Path, text: str | bytes, encoding: str = "") -> list[list[str]]:
    return [[*cells.values()] for _, cells in table(tmp_path, text, encoding)]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_what_separates_cells_is_found_outside_quotes(tmp_path, separator):
    head = NAMES.format(separator).replace("context", '"context; the whole, of it, | as, it\tis"')
    row = separator.join(["1", "b", '"a, b; c | d, e, f, g"', '"two\nlines, and\tmore"'])
    cells = ["1", "b", "a, b; c | d, e, f, g", "two\nlines, and\tmore"]
    assert rows(tmp_path, f"{head}\n{row}\n{row}\n") == [cells] * 2
    named = f"sep={separator}\r\n{NAMES.format(separator)}\r\n{separator.join('1bcr')}\r\n"
    assert rows(tmp_path, named) == [[*"1bcr"]]  # as Excel names it


def test_columns_without_a_name_and_missing_last_cells_are_empty(tmp_path):
    read = rows(tmp_path, f"{NAMES.format(',')},,\n1,b,c,r,,\n2,b,c\n")
    assert read == [["1", "b", "c", "r"], ["2", "b", "c", ""]]
    for row, why in (("1,b,c,r,,x", "row 2 has 6 cells"), ("1", "row 2 has 1 cells")):
        with pytest.raises(BadFile, match=why):
            rows(tmp_path, f"{NAMES.format(',')},,\n{row}\n")


NUL = r"row 1, column response: holds the sign U\+0000"
LINE, TWO = NAMES.format(","), b"2,b,c,op\xc3\xa9\n"


@pytest.mark.parametrize(
    ("body", "encoding", "error", "said"),
    [
        *(
            (f"{LINE}\n1,b,c,{one}\n", "", BadFile, "row 2, column response: is an error of Excel")
            for one in ("#NAME?", "#N/A", "#DIV/0!")
        ),
        (f"{LINE}\n1,b,c,op\xe9\n".encode("cp1252") + TWO, "", BadFile, "cannot be told"),
        ("a,b\n1,2\n", "klingon", BadFile, "no encoding that is known"),
        (b"a,b\n\xe9,2\n", "utf-8", BadFile, "is not in utf-8"),
        ('[{"response": "a\\u0000b"}]', "", BadRow, NUL),
    ],
)
def test_what_cannot_be_a_text_is_refused_by_its_place(tmp_path, body, encoding, error, said):
    with pytest.raises(error, match=said):
        rows(tmp_path, body, encoding)


def test_cells_that_excel_has_cut_and_ids_that_it_has_changed_are_told(tmp_path):
    read = table(tmp_path, f"{LINE}\n9.91E+15,b,c,{'x' * 32_767}\nMar-04,b,c,r\n")
    assert len([*read]) == 2
    cut, changed = read.doubts
    assert "1 cells of r.csv have exactly 32,767 characters" in cut
    assert changed.startswith("9.91E+15 in r.csv looks like an id that Excel has changed")
    body = {"columns": {"id": "response_id", "who": "rater", "acc": "criterion:accuracy"}}
    given = table(tmp_path, f"id,who,acc,why\nr1,dr,4,{'x' * 32_767}\nr2,dr,4,#NAME?\n")
    renamed = mapped(given, map_of(body, "ratings", "--map"), "ratings")
    with pytest.raises(BadFile, match=r"r\.csv row 3, column why: is an error of Excel"):
        list(renamed)
    assert "1 cells of r.csv" in " ".join(renamed.doubts)


WESTERN = (
    "Le patient a été opéré ; fièvre, œdème résolu, 38,5 °C, l’état général « bon »",
    "Der Patient wurde für die Röntgenaufnahme aufgeklärt; Größe 1,80 m – übergeben",
    "El niño presentó vómitos; ¿alergia? ½ comprimido, 10 µg ± 2, según señala",
    "Patienten får två mått på överkänslighet; åtgärd pågår",
)


@pytest.mark.parametrize("text", WESTERN)
def test_windows_1252_is_read_where_its_words_are_western(tmp_path, text):
    body = f'{NAMES.format(",")}\n1,b,c,"{text}"\n'
    read = table(tmp_path, body.encode("cp1252"))
    assert ([cells["response"] for _, cells in read], read.encoding) == ([text], "cp1252")


OTHERS = {
    "cp1251": "Пациент жалуется на боль",
    "cp1250": "Pacjent miał gorączkę, źle się czuł",
    "gbk": "患者有发热",
    "cp1253": "Ο ασθενής έχει πυρετό",
    "mac_roman": "Le patient a été opéré",
    "cp850": "Le patient a été opéré",
    "cp1254": "Hastanın ağrısı başladı",
    "iso8859_2": "Pacient měl bolest, řekl že",
}


@pytest.mark.parametrize("encoding", OTHERS)
def test_another_encoding_is_refused_until_it_is_named(tmp_path, encoding):
    text = OTHERS[encoding]
    body = f'{NAMES.format(",")}\n1,b,c,"{text}"\n'.encode(encoding)
    with pytest.raises(BadFile, match="--encoding"):
        table(tmp_path, body)
    assert rows(tmp_path, body, encoding)[0][-1] == text


@pytest.mark.parametrize("text", ["opÃ©rÃ© hier", "donâ€™t stop", "38 Â°C", "FiebermaÃŸnahme"])
def test_text_that_was_garbled_before_is_refused(tmp_path, text):
    body = f"{NAMES.format(',')}\n1,b,c,{text}\n"
    with pytest.raises(BadFile, match="looks garbled"):
        table(tmp_path, body)
    assert rows(tmp_path, body, "utf-8")[0][-1] == text


def test_a_map_says_what_stands_for_no_score_and_what_labels_mean(tmp_path):
    body = {
        "missing": [99, "k. A."],
        "columns": {"id": "response_id", "who": "rater", "acc": "criterion:accuracy"},
        "constant": {"kind": "clinician"},
        "scale": {"4 - Good": 4},
    }
    path = tmp_path / "g.csv"
    path.write_text("id;who;acc\nr1;dr;4 - Good\nr2;dr;99\nr3;dr;k. A.\nr4;dr;2,0\n", "utf-8")
    given = RatingFile(mapped(TableFile(path), map_of(body, "ratings", "--map"), "ratings"))
    assert [(row.response_id, row.score) for row in given] == [("r1", "4"), ("r4", "2")]
    assert given.missing == 2
    with pytest.raises(BadFile, match="missing takes a list"):
        map_of({"missing": 99}, "ratings", "--map")


@pytest.mark.parametrize(
    ("value", "to_do"),
    [("99", 'missing = ["99"]'), ("4 - Good", "under [scale]"), ("n/a", "missing score empty")],
)
def test_a_score_that_is_none_is_met_with_what_to_do(value, to_do):
    assert to_do in OffScale.hint(value)
