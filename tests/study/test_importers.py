"""Importing: verbatim, idempotent, all or nothing, and every refusal names its row."""

import json

import pytest
from kit.studies import RESPONSES
from sqlalchemy import text
from sqlmodel import Session

from data.errors import BadFile, BadRow, Conflict, OffScale, Unknown
from data.importers.ratings import RatingFile
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import read_rubric
from data.study.calls import juror_cards
from data.study.frames import ratings_frame, responses_frame
from data.study.ratings import AT_ONCE, import_ratings
from data.study.responses import import_responses
from data.study.standing import benchmarks
from data.study.verify import verify

HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response\n"
LONG = "response_id,rater,kind,criterion,score,comment,rated_at\n"
GENERIC = read_rubric("generic")


def bring(engine, path, benchmark=None):
    return import_responses(engine, ResponseFile(TableFile(path), benchmark), lambda _: GENERIC)


def rate(engine, path):
    return import_ratings(engine, RatingFile(TableFile(path)))


def count(engine, table):
    with engine.connect() as connection:
        return int(connection.scalar(text(f"SELECT COUNT(*) FROM {table}")) or 0)  # noqa: S608


def test_a_file_imported_twice_changes_nothing_and_says_so(engine, write):
    path = write("r.csv", RESPONSES)
    first, events = bring(engine, path), count(engine, "event")
    second = bring(engine, path)
    assert (first.responses, first.instances, first.unchanged) == (4, 2, 0)
    assert (second.responses, second.instances, second.unchanged) == (0, 0, 4)
    assert count(engine, "event") == events > 0
    with pytest.raises(BadRow, match=r"row 2, column response_id: 'r11': .*another text"):
        bring(engine, write("r.csv", RESPONSES.replace("denies fever", "denies pain")))
    frame = responses_frame(engine)
    assert list(frame["instance_id"]) == ["visits/i1"] * 2 + ["visits/i2"] * 2
    assert "model-one" not in frame.to_csv()


def test_texts_are_kept_to_the_last_byte(engine, write):
    odd = ' "quoted"\r\n$5 {{response}}\t<b>é\u202e' + "x" * 200_000
    row = {"instance_id": 7, "benchmark": "b", "context": odd, "model": "m", "response": odd}
    bring(engine, write("r.jsonl", json.dumps(row)))
    card = next(juror_cards(engine, "b", GENERIC)).card
    assert (card.context, card.response, card.reference) == (odd, odd, None)


def test_equal_answers_without_an_id_are_told_apart_and_counted_in_the_next_file(engine, write):
    head, row = "instance_id,context,model,response\n", "i1,c,{},same answer\n"
    both = bring(engine, write("a.csv", head + row.format("m") + row.format("n")), "b")
    assert (both.responses, both.unnamed) == (2, 0)
    again = bring(engine, write("b.csv", head + row.format("m")), "b")
    assert (again.responses, again.unchanged, again.unnamed) == (0, 1, 1)
    named = bring(engine, write("c.csv", HEAD + "i1,b,c,,,r2,m,same answer\n"))
    assert (named.responses, named.twins) == (1, 1)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("i3,visits,c,p,,r31,m,\n", r"row 6, column response: '': an empty response"),
        ("i3,visits,c,p,,r31,,x\n", r"row 6, column model"),
        (",visits,c,p,,r31,m,x\n", r"row 6, column instance_id"),
        ("i3,,c,p,,r31,m,x\n", r"row 6, column benchmark"),
        ("i3,visits,,,,r31,m,x\n", r"row 6, column context"),
        ("i3,visits,c,p,,r11,m,x\n", r"row 6, column response_id: 'r11': already used in row 2"),
        ("i1,visits,other,p,,r31,m,x\n", r"row 6, column context: in response r31: instance i1 of"),
    ],
)
def test_one_bad_row_imports_nothing_and_is_named(engine, write, row, said):
    with pytest.raises(BadRow, match=said):
        bring(engine, write("r.csv", RESPONSES + row))
    assert count(engine, "response") == count(engine, "benchmark") == count(engine, "event") == 0


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("r.csv", "a,b\n1,2\n", "column 'instance_id' is missing"),
        ("r.csv", HEAD, "a header and no rows"),
        ("r.csv", HEAD + "i1,b,c\n", "row 2 has 3 cells, the header 8"),
        ("r.csv", HEAD + 'i1,b,"c\n', "row"),
        ("r.jsonl", "{", "row 1 is not whole JSON"),
        ("r.jsonl", "[1]", "row 1 is list, not a JSON object"),
        ("r.docm", HEAD, "a header and no rows"),
        ("absent.csv", None, r"absent\.csv: No such file"),
        (".", None, "directory"),
    ],
)
def test_a_file_of_the_wrong_kind_gets_one_message(engine, write, tmp_path, name, content, said):
    path = tmp_path / name if content is None else write(name, content)
    with pytest.raises(BadFile, match=said):
        bring(engine, path)


def test_long_and_wide_ratings_give_the_same_table_and_what_is_left_out_is_told(small_study, write):
    wide = "response_id,rater,kind,accuracy,completeness,clarity\n{},dr_a,clinician,5,{},3.5\n"
    rows = [("accuracy", "5"), ("completeness", "4"), ("clarity", "3.5")]
    long = LONG + "".join(f"r11,dr_a,clinician,{name},{score},,\n" for name, score in rows)
    assert rate(small_study, write("wide.csv", wide.format("r11", 4))).added == 3
    again = rate(small_study, write("long.csv", long))
    assert (again.added, again.revised, again.unchanged) == (0, 0, 3)
    assert sorted(ratings_frame(small_study)["score"]) == [3.5, 4, 5]
    gap = RatingFile(TableFile(write("gap.csv", wide.format("r12", ""))))
    assert (import_ratings(small_study, gap).added, gap.missing) == (2, 1)
    fewer = "response_id,rater,kind,accuracy,clarity\nr21,dr_a,clinician,5,4\n"
    assert rate(small_study, write("few.csv", fewer)).lacking == {"visits": ["completeness"]}


def test_a_changed_score_is_added_and_the_newest_counts(small_study, write):
    rate(small_study, write("one.csv", LONG + "r11,dr_a,clinician,clarity,2,,\n"))
    second = rate(small_study, write("two.csv", LONG + "r11,dr_a,clinician,clarity,4,,\n"))
    assert second.revised == 1
    assert count(small_study, "rating") == 2
    assert list(ratings_frame(small_study)["score"]) == [4]
    with Session(small_study) as session:  # as who reads the database with SQL of their own
        older = session.execute(text("SELECT score FROM rating JOIN superseded ON rating = id"))
        assert older.scalars().all() == [2]


FIRST = "r12,dr_a,clinician,clarity,3,,\n"


@pytest.mark.parametrize(
    ("row", "error", "said"),
    [
        ("r11,dr_a,clinician,clarity,6,,", OffScale, r"row 3: clarity=6 by dr_a on r11.*1-5"),
        ("r11,dr_a,clinician,clarity,x,,", OffScale, r"row 3: clarity=x"),
        ('r11,dr_a,clinician,clarity,"4,5",,', OffScale, "write 4.5 with a point"),
        ("r11,dr_a,clinician,clarity,n/a,,", OffScale, "leave a missing score empty"),
        ("r11,dr_a,clinician,charm,3,,", Unknown, r"row 3: 'charm'.*accuracy, completeness"),
        ("r99,dr_a,clinician,clarity,3,,\n" + FIRST, BadRow, r"row 3, column response_id: 'r99'"),
        ("r11,dr_a,doctor,clarity,3,,", BadRow, r"row 3, column kind: 'doctor'"),
        ("r11,,clinician,clarity,3,,", BadRow, r"row 3, column rater"),
        (FIRST + "r99,dr_a,clinician,clarity,3,,", BadRow, "already rates clarity of r12 in row 2"),
        ("r11,dr_a,juror,clarity,3,,", BadRow, r"row 3, column kind: 'juror': dr_a is a clinician"),
        ("r11,dr_a,clinician,clarity,3,,yesterday", BadRow, r"column rated_at: 'yesterday'"),
        ("r11,rouge,metric,f,nan,,", BadRow, r"a finite number"),
    ],
)
def test_one_bad_rating_imports_nothing_and_is_named(small_study, write, row, error, said):
    with pytest.raises(error, match=said):
        rate(small_study, write("r.csv", LONG + FIRST + row + "\n"))
    assert count(small_study, "rating") == count(small_study, "rater") == 0


def test_a_rating_given_twice_is_named_by_both_rows_however_far_apart(small_study, write):
    many = "".join(f"r11,m{n},metric,f,{n},,\n" for n in range(AT_ONCE + 100))
    twice = LONG + FIRST + many + "r12,dr_a,clinician,clarity,4,,\n"
    for stored in (0, 1):  # though the study says it already
        said = rf"row {AT_ONCE + 103}.* clarity of r12 in row 2; nothing"
        with pytest.raises(BadRow, match=said):
            rate(small_study, write("r.csv", twice))
        assert count(small_study, "rating") == count(small_study, "rater") == stored
        rate(small_study, write("one.csv", LONG + FIRST))


def test_one_import_may_add_revise_and_repeat_over_several_lookups_and_verifies(small_study, write):
    row = "r12,dr_a,clinician,clarity,3,a comment,2026-05-31T14:00:00+02:00\n"
    first = "".join(f"r11,m{n},metric,f,{n},,\n" for n in range(AT_ONCE + 100))
    rate(small_study, write("one.csv", LONG + row + first))
    other = first.replace("metric,f,7,", "metric,f,70,") + "r12,new,metric,f,1,,\n"
    second = rate(small_study, write("two.csv", LONG + row + other))
    assert (second.added, second.revised, second.unchanged) == (1, 1, AT_ONCE + 100)
    assert not verify(small_study).findings


def test_ratings_made_on_another_rubric_move_an_unrated_benchmark(small_study, write):
    path = write("r.csv", LONG + "r11,dr_a,clinician,structure,3,,\n")
    import_ratings(small_study, RatingFile(TableFile(path)), read_rubric("chw_care_plan"))
    assert benchmarks(small_study)[0].rubric.name == "chw_care_plan"
    other = write("o.csv", LONG + "r11,dr_b,clinician,completeness,3,,\n")
    result = import_ratings(small_study, RatingFile(TableFile(other)), GENERIC)
    assert result.other_rubric == {"visits"}
    assert list(ratings_frame(small_study)["rater"]) == ["dr_a"]


def test_a_rated_benchmark_cannot_be_imported_onto_another_rubric(small_study, write):
    rate(small_study, write("r.csv", LONG + FIRST))
    rows = ResponseFile(TableFile(write("r2.csv", RESPONSES)))
    with pytest.raises(Conflict, match="ratings on another rubric"):
        import_responses(small_study, rows, lambda _: GENERIC, read_rubric("medi_qa"))
