"""What an import says: no patient's text in an error, and what may be wrong with a file that is taken."""

import codecs
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import RESPONSES, Run

from data.errors import BadInput
from data.importers.ratings import RatingFile, expert_rows
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import missing_from_prompt, read_rubric
from medjury.services.importing import rubric_for

Write = Callable[[str, str], Path]
SECRET = "Patient Zylberquist, born 1951, has a rash"
HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response\n"


@pytest.mark.parametrize("place", [2, 3, 4])
def test_an_error_about_a_text_names_its_place_and_never_quotes_it(
    run: Run, write: Write, place: int
) -> None:
    run("study", "import", str(write("a.csv", HEAD + "i1,visits,c,p,ref,r1,m,said\n")))
    cells = ["i1", "visits", "c", "p", "ref", "r2", "m", "said"]
    cells[place] = f'"{SECRET}"'
    code, out, err = run("study", "import", str(write("b.csv", HEAD + ",".join(cells) + "\n")))
    assert code == 2
    assert "row 2" in err
    assert "response r2: instance i1" in err
    assert "Zylberquist" not in out + err


def test_a_file_without_a_header_is_refused_without_its_first_row(write: Write) -> None:
    row = f'i1,visits,"{SECRET}",p,,r1,m,"{SECRET}"\n'
    for text in (row, f'"{SECRET}",a\n1,2\n'):
        for reader in (ResponseFile, RatingFile):
            with pytest.raises(BadInput) as refused:
                reader(TableFile(write("r.csv", text)))
            assert "Zylberquist" not in str(refused.value)


@pytest.mark.parametrize(
    "row", ["r11,dr,clinician,clarity,{0}", "r11,dr,clinician,{0},3", "r11,dr,{0},clarity,3"]
)
def test_a_text_in_a_column_of_names_or_numbers_is_not_quoted(
    run: Run, write: Write, row: str
) -> None:
    run("study", "import", str(write("responses.csv", RESPONSES)))
    text = "response_id,rater,kind,criterion,score\n" + row.format(SECRET.replace(",", "")) + "\n"
    code, _, err = run("rate", "ratings", str(write("ratings.csv", text)))
    assert code == 2
    assert "row 2" in err
    assert "Zylberquist" not in err


def test_a_column_nearly_called_context_is_asked_about_and_its_absence_said_loudly(
    run: Run, write: Write
) -> None:
    text = "instance_id,benchmark,ctx,prompt,model,response,ward\ni1,visits,c,p,m,said,A\n"
    code, out, _ = run("study", "import", str(write("r.csv", text)))
    assert code == 0
    assert "1 response to 1 new instance imported" in out
    assert "columns not taken: ctx (1 value; did you mean context?), ward (1 value)" in out
    assert "WARNING: no row has a context" in out
    assert "WARNING" not in run("study", "import", str(write("s.csv", RESPONSES)))[1]


@pytest.mark.parametrize(
    ("name", "rubric"),
    [
        ("MTSamples", "mtsamples_replicate"),
        ("MTSamples Procedures", "mtsamples_procedures"),
        ("PatientInstruct", "starr_patient_instructions"),
        ("NoteExtract", "chw_care_plan"),
        ("MEDIQA", "medi_qa"),
        ("ACI-Bench", "aci_bench"),
        ("MIMIC-RRS", "mimic_rrs"),
        ("MIMIC-BHC", "mimic_bhc"),
        ("MIMIC-IV-BHC", "mimic_bhc"),
        ("MedDialog", "med_dialog"),
        ("MedicationQA", "medication_qa"),
        ("MentalHealth", "mental_health"),
        ("DischargeMe", "dischargeme"),
        ("MedAlign", "medalign"),
        ("ward round", "generic"),
    ],
)
def test_a_benchmark_finds_its_rubric_by_the_papers_name(name: str, rubric: str) -> None:
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
def test_a_prompt_that_asks_a_juror_nothing_is_told(prompt: str, said: str) -> None:
    found = missing_from_prompt(prompt, ("kindness", "use_of_words"))
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize(
    ("end", "doubted"),
    [("caf\u00e9", True), ("x\u0a0a", True), ("a b\n", False), ("a\r\n", False), ('"a"', False)],
)
def test_only_a_last_line_without_an_end_is_doubted(
    tmp_path: Path, encoding: str, end: str, doubted: bool
) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(f"id,text\n1,{end}".encode(encoding, "replace"))
    assert bool(TableFile(path).doubts) == doubted
    if encoding == "utf-16":
        path.write_bytes(codecs.BOM_UTF16_BE + f"id,text\n1,{end}".encode("utf-16-be"))
        assert bool(TableFile(path).doubts) == doubted


def test_a_criterion_that_first_stands_in_a_later_row_is_never_dropped(
    run: Run, write: Write
) -> None:
    run("study", "import", str(write("a.csv", RESPONSES)))
    first = {"response_id": "r11", "rater": "dr", "kind": "clinician", "clarity": 3}
    later = first | {"response_id": "r12", "accuracy": 2, "comment": "late"}
    path = write("r.jsonl", f"{json.dumps(first)}\n{json.dumps(later)}\n")
    code, _, err = run("rate", "ratings", str(path))
    assert (code, "r.jsonl row 2, column accuracy: the first row has no such key" in err) == (
        2,
        True,
    )
    path.write_text(f"{json.dumps(first | {'accuracy': None})}\n{json.dumps(later)}\n")
    assert "3 ratings imported" in run("rate", "ratings", str(path))[1]
    experts = write(
        "e.jsonl", '{"response_id": "r11", "clarity": 3}\n{"response_id": "r12", "x": 1}'
    )
    with pytest.raises(BadInput, match="row 2, column x: the first row"):
        list(expert_rows(TableFile(experts)))


def test_keys_without_meaning_are_named_whatever_row_they_stand_in(run: Run, write: Write) -> None:
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
