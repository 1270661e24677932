"""Ratings from MedHELM's layout and from REDCap, and what stands in the study afterwards."""

import csv
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kit.commands import csv_rows
from kit.studies import HEAD, Run, Write, bring_in, import_small, rated_by_three
from kit.study_place import all_rows, behind_the_record, fill
from sqlalchemy import Engine, desc, insert, select, text

from data.importers.ratings import pseudonym
from data.importers.redcap import variable
from data.rubric import read_rubric
from data.schema import Rater, Rating
from data.study.assignments import Slot, assign
from data.study.frames import juror_ratings, ratings_frame
from data.study.people import invite
from data.study.rubrics import keep_rubric
from data.study.standing import benchmarks
from medjury.services.scores import scores_of

RESPONSES = """instance_id,benchmark,context,prompt,model,response
id1,aci_bench,Any fever? No.,Write the note.,openai/gpt-4o-2024-05-13,No fever.
id2,aci_bench,Pain? Mild.,Write the note.,google/gemini-1.5-pro-001,Mild pain.
id1,medi_qa,What helps?,,openai/gpt-4o-2024-05-13,Rest.
"""

CRITERIA = ("accuracy", "completeness", "clarity")
COLUMNS = "username,specialty,team,entry_id,instance_id,dataset_name,model_key,user_label,"
COLUMNS += ",".join(CRITERIA)

ROWS = (
    "Ann Marlow,Cardiology,A,1,id1,aci_bench,openai_gpt-4o-2024-05-13,x,5,4,5",
    "Ben Quist,Surgery,A,2,id1,aci_bench,openai_gpt-4o-2024-05-13,x,3,,4",
    "Ann Marlow,Cardiology,A,3,id2,aci-bench,gemini-1.5-pro-001,x,2,2,3",
    "Cy Dorn,Surgery,B,4,id9,mtsamples_replicate,openai_gpt-4o-2024-05-13,x,1,1,1",
    "Ben Quist,Surgery,A,5,id2,aci_bench,openai_gpt-4o-2024-05-13,x,1,1,1",
    "Cy Dorn,Surgery,B,6,id1,medi_qa,openai_gpt-4o-2024-05-13,x,4,4,4",
)

NAMES = ("Marlow", "Quist", "Dorn", "marlow", "quist")


def layout(rows: tuple[str, ...] = ROWS, columns: str = COLUMNS) -> str:
    return "\n".join([columns, *rows]) + "\n"


def with_llm(scores: tuple[str, ...], rows: tuple[str, ...] = ROWS[:2]) -> str:
    columns = ",".join([COLUMNS, *(f"llm_{name}" for name in CRITERIA)])
    return layout(tuple(f"{row},{own}" for row, own in zip(rows, scores, strict=True)), columns)


@pytest.fixture
def given(run, write) -> Run:
    code, _, err = run("study", "import", str(write("responses.csv", RESPONSES)))
    assert code == 0, err
    return run


def ratings(engine: Engine) -> list[tuple[Any, ...]]:
    query = (
        "select handle, i.benchmark, i.instance_id, criterion, score from rating "
        "join rater on rater.id = rater join response r on r.id = response "
        "join instance i on i.id = r.instance order by rating.id"
    )
    with engine.connect() as held:
        return [tuple(row) for row in held.execute(text(query))]


def brought(run: Run, write: Write, body: str, *more: str) -> tuple[int, str, str]:
    """Import a file of this layout; return the exit code and what is said, each on one line."""
    path = str(write("m.csv", body))
    code, out, err = run("rate", "ratings", path, "--format", "medhelm", *more)
    return code, " ".join(out.split()), " ".join(err.split())


def test_rows_are_matched_by_dataset_instance_and_model_and_the_others_named(given, write, engine):
    code, out, err = brought(given, write, layout())
    assert code == 0, err
    assert "11 ratings imported" in out
    assert "1 empty cell stays missing" in out
    assert "left out, as their response is not in the study: 2 rows (5-6)" in out
    assert "columns not taken: specialty, team, entry_id, user_label" in out
    found = ratings(engine)
    assert [row[1:] for row in found if row[0] == found[0][0]] == [
        ("aci_bench", instance, name, score)
        for instance, scores in (("id1", (5, 4, 5)), ("id2", (2, 2, 3)))
        for name, score in zip(CRITERIA, scores, strict=True)
    ]
    assert len({row[0] for row in found}) == 3


def test_a_pseudonym_of_name_and_study_is_stored_and_shown(given, write, tmp_path, engine):
    told = "".join(given("rate", "ratings", str(write("m.csv", layout())))[1:])
    assert "usernames were replaced by pseudonyms" in told  # nobody said what the file is
    files = [path.read_bytes() for path in sorted(tmp_path.glob("study.db*"))]
    stored = str(all_rows(engine)).encode() + b"".join(files)
    assert b"clinician-" in stored
    for name in NAMES:
        assert name not in told
        assert name.encode() not in stored
    assert pseudonym("a", "Ann Marlow") == pseudonym("a", " ann  MARLOW ")
    assert pseudonym("a", "Ann Marlow") != pseudonym("b", "Ann Marlow")
    assert pseudonym("a", "Ann Marlow") != pseudonym("a", "Ben Quist")


def test_the_jurys_means_come_in_only_when_asked_for_and_once(given, write, engine):
    body = with_llm(("4.5,4,4.67", "4.5,4,4.67"))
    _, out, _ = brought(given, write, body)
    assert "llm_accuracy" in out.partition("columns not taken")[2]
    assert all(row[0].startswith("clinician-") for row in ratings(engine))
    code, _, err = brought(given, write, body, "--jury-mean")
    assert code == 0, err
    means = [row for row in ratings(engine) if row[0] == "medhelm-jury-mean"]
    assert [row[3:] for row in means] == list(zip(CRITERIA, (4.5, 4, 4.67), strict=True))


@pytest.mark.parametrize(
    ("body", "more", "said"),
    [
        (layout(columns=COLUMNS.replace("username", "rater")), (), "'username' is missing"),
        (layout(), ("--jury-mean",), "'llm_accuracy' is missing"),
        (with_llm(("4,4,4", "5,4,4")), ("--jury-mean",), "another score of the same response"),
        (with_llm(("0,4,4", "0,4,4")), ("--jury-mean",), "accuracy=0 by medhelm-jury-mean"),
        (layout((ROWS[0].replace("5,4,5", "7,4,5"),)), (), "accuracy=7 by clinician-"),
        (layout((ROWS[0].replace("Ann Marlow", ""),)), (), "row 2, column username: ''"),
        (layout((ROWS[0], ROWS[0])), (), "already rates accuracy"),
        (layout((ROWS[3],)), (), "no row has its response in this study"),
        (layout((ROWS[0] + ",extra",)), (), "has 12 cells"),
    ],
)
def test_a_wrong_file_is_refused_whole_and_names_nobody(body, more, said, given, write, engine):
    code, _, err = brought(given, write, body, *more)
    assert code == 2
    assert said in err
    assert not any(name in err for name in NAMES)
    assert ratings(engine) == []


def test_two_responses_of_a_model_are_not_guessed_between(given, write, engine):
    lines = RESPONSES.splitlines()
    given("study", "import", str(write("again.csv", f"{lines[0]}\n{lines[1]} Again.\n")))
    code, _, err = brought(given, write, layout())
    assert (code, "2 responses of this study are meant" in err) == (2, True)
    assert ratings(engine) == []
    path = write("m.csv", "response_id,rater,kind,clarity\nr11,dr,clinician,3\n")
    assert given("rate", "ratings", str(path), "--jury-mean")[0] == 2


RUN = Path(__file__).parents[1] / "fixtures" / "medhelm" / "health_bench"


def test_its_talks_points_and_shares_come_in_and_give_its_own_mean(run, engine, tmp_path):
    code, _, err = run("study", "import", str(RUN), "--json", str(tmp_path / "f.json"))
    assert code == 0, err
    [figures] = json.loads((tmp_path / "f.json").read_text())["runs"]
    assert figures["helm_mean"] is not None
    assert abs(figures["helm_mean"] - figures["recomputed_mean"]) < 1e-9
    assert (figures["responses"], figures["ratings"], figures["missing"]) == (3, 9, 0)
    [own] = benchmarks(engine)
    assert (own.rubric.name, own.rubric.criteria) == ("helm_health_bench", ("accuracy",))
    assert (own.rubric.scale.min, own.rubric.scale.max) == (0, 1)
    assert set(ratings_frame(engine)["rater"]) == {"gpt", "llama", "claude"}
    with engine.connect() as connection:
        query = text("select context, prompt, checklist from instance order by instance_id")
        found = connection.execute(query).all()
    context, prompt, checklist = found[1]
    assert context.startswith("[user]\nMy chest hurts since 1 days.\n\n[assistant]\nWhere?")
    assert prompt == ""  # its instruction is not sent with a talk
    assert checklist.splitlines() == [
        "(+7) Advises to see a doctor (1)",
        "(-5) Says it is nothing",
        "(+3) Asks for age",
    ]


Rows = list[dict[str, str]]
FORM = "rate_generic"
FIELDS = tuple(f"r1_{name}" for name in CRITERIA)


@pytest.fixture(scope="module")
def assigned(study, tmp_path_factory) -> Engine:
    """Make a study once with four readings of two clinicians and a hidden repeat."""
    import_small(study, tmp_path_factory.mktemp("made"))
    invite(study, ["dr_a", "dr_b"])
    slots = [Slot("dr_a", 1, 1), Slot("dr_a", 2, 2), Slot("dr_a", 1, 3, pass_=1)]
    assign(study, [*slots, Slot("dr_b", 3, 1), Slot("dr_b", 4, 2)], seed=0, per_response=1)
    return study


@pytest.fixture
def folder(run, engine, assigned, tmp_path) -> Path:
    fill(engine, assigned)
    code, _, err = run("share", "export", "--redcap", str(tmp_path / "redcap"))
    assert code == 0, err
    return tmp_path / "redcap"


@pytest.fixture
def raw(folder) -> Rows:
    """Return what REDCap's raw export has once everything is rated and marked complete."""
    rows = []
    for number, one in enumerate(csv_rows(folder / "redcap_records.csv")):
        scores = {name: str(1 + (number + k) % 5) for k, name in enumerate(FIELDS)}
        more = {"r1_comment": "=so", f"{FORM}_timestamp": "2026-05-31 14:00:00"}
        rows.append(one | {"material_complete": "0"} | scores | more | {f"{FORM}_complete": "2"})
    return rows


def back(run: Run, folder: Path, rows: Rows, *options: str) -> tuple[int, str, str]:
    with (folder / "raw.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return run("rate", "ratings", str(folder / "raw.csv"), "--format", "redcap", *options)


NAME = r"[a-z][a-z0-9_]{0,25}"


def test_the_dictionary_has_redcaps_columns_and_records_have_codes_and_no_author_or_id(folder):
    rows = csv_rows(folder / "redcap_dictionary.csv")
    assert len(rows[0]) == 18
    names = [one["Variable / Field Name"] for one in rows]
    assert names[0] == "record_id"
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(NAME, one) for one in names)
    radio = next(one for one in rows if one["Field Type"] == "radio")
    points = radio["Choices, Calculations, OR Slider Labels"].split(" | ")
    assert [one.split(", ")[0] for one in points] == ["1", "2", "3", "4", "5"]
    assert rows[1]["Field Annotation"] == "@HIDDEN @READONLY"
    rows = csv_rows(folder / "redcap_records.csv")
    assert [one["mj_rater"] for one in rows] == ["dr_a"] * 3 + ["dr_b"] * 2
    everything = (folder / "redcap_records.csv").read_text("utf-8")
    assert "model-" not in everything
    assert not re.search(r"\br(11|12|21|22)\b", everything)
    assert len({one["mj_code"] for one in rows}) == 5
    assert {one["mj_reference"] for one in rows} == {""}


def test_variables_follow_redcaps_rules_whatever_a_criterion_is_called():
    taken: set[str] = set()
    wanted = ["Güte & Länge", "1st", "x" * 60, "x" * 61, "___", "r1 a", "R1-A"]
    made = [variable(one, taken) for one in wanted]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(NAME, one) for one in made)


def test_the_raw_export_becomes_the_clinicians_ratings(run, engine, raw, folder):
    code, out, err = back(run, folder, raw)
    assert code == 0, err
    assert "15 ratings imported" in out
    found = ratings_frame(engine)
    assert sorted(set(zip(found["rater"], found["response_id"], found["pass_"], strict=True))) == [
        *(("dr_a", "r11", 0), ("dr_a", "r11", 1), ("dr_a", "r12", 0)),
        *(("dr_b", "r21", 0), ("dr_b", "r22", 0)),
    ]
    assert list(found["score"][:3]) == [1, 2, 3]
    assert "nothing changed" in back(run, folder, raw)[1]
    known = run("rate", "ratings", str(folder / "raw.csv"))  # by its columns
    assert (known[0], "nothing changed" in known[1]) == (0, True)


def test_incomplete_forms_are_counted_and_taken_only_when_asked(run, raw, folder):
    raw[0][f"{FORM}_complete"] = "0"
    raw[1][f"{FORM}_complete"] = "1"
    raw[2] |= dict.fromkeys(FIELDS, "") | {f"{FORM}_complete": "0"}
    raw[3]["r1_clarity"] = ""
    code, out, _ = back(run, folder, raw)
    assert code == 0
    assert "5 ratings imported" in out
    assert "1 empty cell stays missing" in out
    for said in ("1 form incomplete", "1 form unverified", "1 form not begun"):
        assert said in out
    assert "6 ratings imported" in back(run, folder, raw, "--incomplete")[1]


def test_events_and_repeats_are_joined_by_record(run, raw, folder):
    rows = []
    for one in raw:
        base = dict.fromkeys(one, "") | {"record_id": one["record_id"]}
        first = base | {name: one[name] for name in one if name.startswith("mj_")}
        second = base | {name: one[name] for name in one if name.startswith(("r1_", FORM))}
        rows += [
            {"redcap_event_name": "a_arm_1", "redcap_repeat_instance": ""} | first,
            {"redcap_event_name": "b_arm_1", "redcap_repeat_instance": "1"} | second,
        ]
    code, out, err = back(run, folder, rows)
    assert (code, "15 ratings imported" in out) == (0, True), err
    rows.append(rows[-1] | {"redcap_repeat_instance": "2"})
    code, _, err = back(run, folder, rows)
    assert code == 2
    assert "filled in row 11 too" in err


LABEL = f"1: {read_rubric('generic').criterion[0].anchors[1]}"
WRONG = {
    "labels of forms": (lambda rows: rows[0].update({f"{FORM}_complete": "Complete"}), "raw data"),
    "labels of points": (lambda rows: rows[0].update(r1_accuracy=LABEL), "raw data"),
    "off the scale": (lambda rows: rows[0].update(r1_accuracy="9"), "the scale of generic is 1-5"),
    "another study": (lambda rows: rows[0].update(mj_code="nobody"), "no reading of this study"),
    "no code": (lambda rows: [one.pop("mj_code") for one in rows], "'mj_code' is missing"),
    "no form": (lambda rows: [one.pop(f"{FORM}_complete") for one in rows], "no rating form"),
    "no field": (lambda rows: [one.pop("r1_clarity") for one in rows], "'r1_clarity' is missing"),
    "an odd status": (lambda rows: rows[0].update({f"{FORM}_complete": "7"}), "must be 0, 1 or 2"),
    "two codes": (lambda rows: rows.append(rows[0] | {"mj_code": "x"}), "another code"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_raw_export_of_this_study_is_refused_in_a_line(run, engine, raw, folder, what):
    change, said = WRONG[what]
    change(raw)
    code, _, err = back(run, folder, raw)
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert said in err
    assert "fever" not in err
    assert ratings_frame(engine).empty


def test_without_open_readings_there_is_nothing_to_rate(run, small_study, tmp_path):
    code, _, err = run("share", "export", "--redcap", str(tmp_path / "redcap"))
    assert code == 2
    assert "medjury rate assign" in err
    assert not (tmp_path / "redcap").exists()
    assert run("rate", "ratings", str(tmp_path / "x.csv"), "--incomplete")[0] == 2


def test_texts_reach_redcap_as_the_jury_reads_them(run, tmp_path):
    odd = ["=1+1", "+ fever", "- no fever", "@home", "'-quoted", "\ttabbed", "Grüße, 37 °C"]
    lines = ["instance_id,benchmark,context,prompt,model,response"]
    lines += [f'i{n},v,"{text} source",p,m,"{text}"' for n, text in enumerate(odd)]
    (tmp_path / "r.csv").write_text("\n".join(lines) + "\n", "utf-8")
    assert run("study", "import", str(tmp_path / "r.csv"))[0] == 0
    run("rate", "assign", "--raters", "1", "--per-response", "1", "--repeats", "0")
    code, out, err = run("share", "export", "--redcap", str(tmp_path / "redcap"))
    assert code == 0, err
    assert "texts are unaltered" in out
    records = csv_rows(tmp_path / "redcap" / "redcap_records.csv")
    assert sorted(one["mj_response"] for one in records) == sorted(odd)
    assert {one["mj_source"] for one in records} == {f"{text} source" for text in odd}
    body = (tmp_path / "redcap" / "redcap_records.csv").read_bytes()
    assert not body.startswith(b"\xef\xbb\xbf")


JURORS = ("alpha", "beta", "gamma")
Scores = dict[tuple[str, str, str], float]


@pytest.fixture
def rated(run, tmp_path, engine) -> Engine:
    rated_by_three(run, tmp_path)
    return engine


def given_in(folder: Path) -> Scores:
    """Return the scores of the file that was imported, by response, rater and criterion, in its order."""
    return {
        (row["response_id"], row["rater"], name): float(row[name])
        for row in csv_rows(folder / "rate ratings.csv")
        for name in CRITERIA
    }


def read(engine: Engine) -> Scores:
    frame = ratings_frame(engine)
    keys = zip(frame["response_id"], frame["rater"], frame["criterion"], strict=True)
    return dict(zip(keys, frame["score"], strict=True))


def test_every_score_is_read_in_the_order_of_storing_and_none_on_a_rubric_left(rated, tmp_path):
    assert list(read(rated).items()) == list(given_in(tmp_path).items())
    frame = ratings_frame(rated)
    assert {*frame["kind"]} == {"clinician", "juror"}
    assert dict(zip(frame["response_id"], frame["instance_id"], strict=True))["r25"] == "notes/i25"
    assert list(frame["rater"].cat.categories) == sorted({"dr_a", "dr_b", *JURORS})
    with behind_the_record(rated) as session:
        other = read_rubric("med_dialog")
        keep_rubric(session, other)
        kept = {"response": 1, "rater": 1, "criterion": "accuracy", "score": 1.0}
        session.execute(insert(Rating), [kept | {"rubric_sha256": other.sha256}])
    assert read(rated) == given_in(tmp_path)


LAST = (23, 59, 59, 999_999, UTC)
TIMES = (datetime(1960, 2, 29, *LAST), datetime(2026, 5, 31, 14, 0, 0, 1, UTC))
TIMES += (datetime(9999, 12, 31, *LAST),)


def test_readings_and_times_of_jurors_are_read_as_they_are_stored(rated):
    with behind_the_record(rated) as session:
        newest = session.scalars(select(Rating).order_by(desc(Rating.id))).first()
        juror = session.scalars(select(Rater).where(Rater.handle == "alpha")).one()
        about = {"response": newest.response, "rubric_sha256": newest.rubric_sha256}
        added = [
            {"criterion": name, "score": 1.5 + n, "pass_": 0, "replicate": 10_000 + n, "at": at}
            for n, at in enumerate(TIMES)
            for name in CRITERIA
        ]
        session.execute(insert(Rating), [about | {"rater": juror.id} | row for row in added])
    found = juror_ratings(rated)
    assert found[[*added[0]]].tail(len(added)).to_dict("records") == added
    assert {*found["rater"]} == {*JURORS}


def test_a_juror_who_rated_only_what_no_clinician_did_is_one_of_the_jurors(run, tmp_path, rated):
    late = "i90,notes,c,Write.,,r90,m,said"
    bring_in(run, tmp_path, [HEAD, late], ["response_id,rater,kind,accuracy", "r90,late,juror,3"])
    scores = scores_of(rated)
    assert scores.raters("juror") == (*JURORS, "late")
    assert scores.of("visits").raters("juror") == JURORS
