"""REDCap: a dictionary by its rules, records that betray nobody, and the raw export read back."""

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kit.studies import Run, import_small
from kit.study_place import fill
from sqlalchemy import Engine

from data.importers.redcap import forms, variable
from data.rubric import read_rubric
from data.study.assignments import Slot, assign
from data.study.frames import ratings_frame
from data.study.people import invite

Rows = list[dict[str, str]]
FORM = "rate_generic"
FIELDS = ("r1_accuracy", "r1_completeness", "r1_clarity")


def table(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def assigned(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Make a study once with four readings of two clinicians and a hidden repeat."""
    import_small(study, tmp_path_factory.mktemp("made"))
    invite(study, ["dr_a", "dr_b"])
    slots = [Slot("dr_a", 1, 1), Slot("dr_a", 2, 2), Slot("dr_a", 1, 3, pass_=1)]
    assign(study, [*slots, Slot("dr_b", 3, 1), Slot("dr_b", 4, 2)], seed=0, per_response=1)
    return study


@pytest.fixture
def folder(run: Run, engine: Engine, assigned: Engine, tmp_path: Path) -> Path:
    """Export a copy of it for REDCap."""
    fill(engine, assigned)
    code, _, err = run("share", "export", "--redcap", str(tmp_path / "redcap"))
    assert code == 0, err
    return tmp_path / "redcap"


@pytest.fixture
def raw(folder: Path) -> Rows:
    """Return what REDCap's raw export has once everything is rated and marked complete."""
    rows = []
    for number, one in enumerate(table(folder / "redcap_records.csv")):
        scores = {name: str(1 + (number + k) % 5) for k, name in enumerate(FIELDS)}
        more = {"r1_comment": "=so", f"{FORM}_timestamp": "2026-05-31 14:00:00"}
        rows.append(one | {"material_complete": "0"} | scores | more | {f"{FORM}_complete": "2"})
    return rows


@pytest.fixture
def exported(tmp_path: Path) -> Iterator[Callable[[Rows], str]]:
    def put(rows: Rows) -> str:
        path = tmp_path / "raw.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return str(path)

    return put


def back(run: Run, path: str, *options: str) -> tuple[int, str, str]:
    return run("rate", "ratings", path, "--format", "redcap", *options)


def test_the_dictionary_has_redcaps_columns_and_names(folder: Path) -> None:
    rows = table(folder / "redcap_dictionary.csv")
    assert len(rows[0]) == 18
    names = [one["Variable / Field Name"] for one in rows]
    assert names[0] == "record_id"
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{0,25}", one) for one in names)
    radio = next(one for one in rows if one["Field Type"] == "radio")
    rubric = read_rubric("generic")
    points = radio["Choices, Calculations, OR Slider Labels"].split(" | ")
    assert [one.split(", ")[0] for one in points] == [str(one) for one in rubric.scale.points]
    assert rows[1]["Field Annotation"] == "@HIDDEN @READONLY"


def test_variables_follow_redcaps_rules_whatever_a_criterion_is_called() -> None:
    taken: set[str] = set()
    wanted = ["Güte & Länge", "1st", "x" * 60, "x" * 61, "___", "r1 a", "R1-A"]
    made = [variable(one, taken) for one in wanted]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{0,25}", one) for one in made)


def test_no_form_status_collides_with_a_criterion_called_complete() -> None:
    generic = read_rubric("generic")
    odd = generic.model_copy(
        update={"criterion": (generic.criterion[0].model_copy(update={"name": "comment"}),)}
    )
    form = forms([odd])[0]
    assert {form.variables["comment"], form.comment, form.complete} == {
        *("r1_comment_2", "r1_comment", "rate_generic_complete")
    }


def test_records_carry_random_codes_and_no_author_or_id(folder: Path) -> None:
    rows = table(folder / "redcap_records.csv")
    assert [one["mj_rater"] for one in rows] == ["dr_a"] * 3 + ["dr_b"] * 2
    everything = (folder / "redcap_records.csv").read_text("utf-8")
    assert "model-" not in everything
    assert not re.search(r"\br(11|12|21|22)\b", everything)
    assert len({one["mj_code"] for one in rows}) == 5
    assert {one["mj_reference"] for one in rows} == {""}


def test_the_raw_export_becomes_the_clinicians_ratings(
    run: Run, engine: Engine, raw: Rows, exported: Callable[[Rows], str]
) -> None:
    code, out, err = back(run, exported(raw))
    assert code == 0, err
    assert "15 ratings imported" in out
    found = ratings_frame(engine)
    assert sorted(set(zip(found["rater"], found["response_id"], found["pass_"], strict=True))) == [
        *(("dr_a", "r11", 0), ("dr_a", "r11", 1), ("dr_a", "r12", 0)),
        *(("dr_b", "r21", 0), ("dr_b", "r22", 0)),
    ]
    assert list(found["score"][:3]) == [1, 2, 3]
    assert "nothing changed" in back(run, exported(raw))[1]


def test_incomplete_forms_are_counted_and_taken_only_when_asked(
    run: Run, raw: Rows, exported: Callable[[Rows], str]
) -> None:
    raw[0][f"{FORM}_complete"] = "0"
    raw[1][f"{FORM}_complete"] = "1"
    raw[2] |= dict.fromkeys(FIELDS, "") | {f"{FORM}_complete": "0"}
    raw[3]["r1_clarity"] = ""
    code, out, _ = back(run, exported(raw))
    assert code == 0
    assert "5 ratings imported" in out
    assert "1 empty cell stays missing" in out
    for said in ("1 form incomplete", "1 form unverified", "1 form not begun"):
        assert said in out
    assert "6 ratings imported" in back(run, exported(raw), "--incomplete")[1]


def test_events_and_repeats_are_joined_by_record(
    run: Run, raw: Rows, exported: Callable[[Rows], str]
) -> None:
    rows = []
    for one in raw:
        base = dict.fromkeys(one, "") | {"record_id": one["record_id"]}
        first = base | {name: one[name] for name in one if name.startswith("mj_")}
        second = base | {name: one[name] for name in one if name.startswith(("r1_", FORM))}
        rows += [
            {"redcap_event_name": "a_arm_1", "redcap_repeat_instance": ""} | first,
            {"redcap_event_name": "b_arm_1", "redcap_repeat_instance": "1"} | second,
        ]
    code, out, err = back(run, exported(rows))
    assert (code, "15 ratings imported" in out) == (0, True), err
    rows.append(rows[-1] | {"redcap_repeat_instance": "2"})
    code, _, err = back(run, exported(rows))
    assert code == 2
    assert "filled in row 11 too" in err


WRONG = {
    "labels of forms": (lambda rows: rows[0].update({f"{FORM}_complete": "Complete"}), "raw data"),
    "labels of points": (
        lambda rows: rows[0].update(
            r1_accuracy=f"1: {read_rubric('generic').criterion[0].anchors[1]}"
        ),
        "raw data",
    ),
    "off the scale": (lambda rows: rows[0].update(r1_accuracy="9"), "the scale of generic is 1-5"),
    "another study": (lambda rows: rows[0].update(mj_code="nobody"), "no reading of this study"),
    "no code": (lambda rows: [one.pop("mj_code") for one in rows], "'mj_code' is missing"),
    "no form": (lambda rows: [one.pop(f"{FORM}_complete") for one in rows], "no rating form"),
    "no field": (lambda rows: [one.pop("r1_clarity") for one in rows], "'r1_clarity' is missing"),
    "an odd status": (lambda rows: rows[0].update({f"{FORM}_complete": "7"}), "must be 0, 1 or 2"),
    "two codes": (
        lambda rows: rows.append(rows[0] | {"mj_code": rows[1]["mj_code"]}),
        "another code",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_raw_export_of_this_study_is_refused_with_one_message(
    run: Run, engine: Engine, raw: Rows, exported: Callable[[Rows], str], what: str
) -> None:
    change, said = WRONG[what]
    change(raw)
    code, _, err = back(run, exported(raw))
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert said in err
    assert "fever" not in err
    assert ratings_frame(engine).empty


def test_without_open_readings_there_is_nothing_to_rate(
    run: Run, small_study: Engine, tmp_path: Path
) -> None:
    code, _, err = run("share", "export", "--redcap", str(tmp_path / "redcap"))
    assert code == 2
    assert "medjury rate assign" in err
    assert not (tmp_path / "redcap").exists()
    assert run("rate", "ratings", str(tmp_path / "x.csv"), "--incomplete")[0] == 2


def test_texts_reach_redcap_as_the_jury_reads_them(run: Run, tmp_path: Path) -> None:
    odd = ["=1+1", "+ fever", "- no fever", "@home", "'-quoted", "\ttabbed", "Grüße, 37 °C"]
    lines = ["instance_id,benchmark,context,prompt,model,response"]
    lines += [f'i{n},v,"{text} source",p,m,"{text}"' for n, text in enumerate(odd)]
    (tmp_path / "r.csv").write_text("\n".join(lines) + "\n", "utf-8")
    assert run("study", "import", str(tmp_path / "r.csv"))[0] == 0
    run("rate", "assign", "--raters", "1", "--per-response", "1", "--repeats", "0")
    code, out, err = run("share", "export", "--redcap", str(tmp_path / "redcap"))
    assert code == 0, err
    assert "texts are unaltered" in out
    records = table(tmp_path / "redcap" / "redcap_records.csv")
    assert sorted(one["mj_response"] for one in records) == sorted(odd)
    assert {one["mj_source"] for one in records} == {f"{text} source" for text in odd}
    body = (tmp_path / "redcap" / "redcap_records.csv").read_bytes()
    assert not body.startswith(b"\xef\xbb\xbf")
