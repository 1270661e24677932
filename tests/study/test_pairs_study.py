"""Pairs in a study: imported or made, shown on either side, rated, withdrawn, packed and read back."""

import json
from collections import Counter

import pytest
from kit.commands import call
from kit.pair_study import MODELS, bring, prefer_good, rate_all, rows, write
from kit.rating_study import task_of
from kit.studies import import_small
from sqlmodel import Session, select

from annotate.rating.room import shown as shown_now
from data.card import Marked, Reply
from data.errors import BadInput, BadRow, Conflict, NotAllowed
from data.importers.ratings import ExpertRow
from data.importers.responses import PairRow
from data.importers.rows import Origin, ResponseRow
from data.person import OPERATOR, Person
from data.rubric import Rubric, read_rubric
from data.schema import Assignment, Authorship, Pair, Rating, Response, Role, Span
from data.study.adjudication import differences
from data.study.assignments import Slot, assign, assign_adjudication, claim, design_items
from data.study.frames import preferences_frame, ratings_frame, responses_frame
from data.study.masks import MaskedText, mask_responses
from data.study.pairs import import_pairs, make_pairs, pairs_frame
from data.study.people import invite
from data.study.ratings import FormState, save_draft, submit
from data.study.room import Exercise, situation, task
from data.study.settings import unblind
from data.study.standing import benchmarks
from data.study.training import import_experts
from data.study.verify import verify
from data.study.withdrawals import withdraw

PREFERENCE = read_rubric("preference")


def every(engine, table):
    """Return all rows of a table."""
    with Session(engine) as session:
        return session.exec(select(table)).all()


def told(engine, *words, code=0):
    """Return what a command on a study says; it ends with this code."""
    ended, out, err = call(str(engine.url), *words)
    assert ended == code, err
    return out or err


@pytest.fixture
def study(engine, tmp_path):
    """Return a study of six pairs that three clinicians are to judge, each pair by two of them."""
    bring(engine, tmp_path)
    invite(engine, ["dr_a", "dr_b", "dr_c"])
    names = ("dr_a", "dr_b", "dr_c")
    keys = [item.response for item in design_items(engine)]
    slots = [Slot(names[(n + k) % 3], key, n) for n, key in enumerate(keys) for k in range(2)]
    assign(engine, slots, seed=1)
    return engine


def test_pairs_are_subjects_and_their_responses_are_not_rated_by_themselves(study):
    [view] = benchmarks(study)
    assert (view.instances, view.responses, view.rubric.compares) == (6, 6, True)
    assert len(design_items(study)) == 6
    assert responses_frame(study).empty
    assert len(every(study, Response)) == 18
    assert {one.model for one in every(study, Authorship)} == {*MODELS}
    assert [*pairs_frame(study)["first_model"]] == [""] * 6  # blind
    unblind(study, "researcher", "the test asks")
    assert {*pairs_frame(study)["first_model"]} == {*MODELS}
    assert verify(study).findings == ()


def test_the_same_file_again_changes_nothing_and_another_is_refused(study, tmp_path):
    again = bring(study, tmp_path)
    assert (again.pairs, again.unchanged, again.responses.responses) == (0, 6, 0)
    changed = rows()
    changed[2]["second"] = "Another text."
    with pytest.raises(BadRow, match="row 4, column response_id: 'p2b'"):
        bring(study, tmp_path, changed)
    turned = rows()
    for side in ("_id", "_model", ""):
        one, other = f"first{side}", f"second{side}"
        turned[1][one], turned[1][other] = turned[1][other], turned[1][one]
    with pytest.raises(BadRow, match=r"'p1'.*pairs never change"):
        bring(study, tmp_path, turned)
    with pytest.raises(BadRow, match="already used"):
        bring(study, tmp_path, [rows()[0], rows()[0]])
    assert len(pairs_frame(study)) == 6
    assert verify(study).findings == ()


def test_ids_that_a_file_lacks_are_the_same_each_time(engine, tmp_path):
    named = ("pair_id", "first_id", "second_id")
    bare = [{name: row[name] for name in row if name not in named} for row in rows(3)]
    assert bring(engine, tmp_path, bare).pairs == 3
    assert bring(engine, tmp_path, bare).unchanged == 3
    names = [one.response_id for one in every(engine, Response)]
    assert not any(model in name for name in names for model in MODELS)


def test_only_a_rubric_that_compares_is_for_pairs_and_it_for_nothing_else(engine, tmp_path):
    import_small(engine, tmp_path)
    with pytest.raises(Conflict, match="rated by themselves"):
        bring(engine, tmp_path, [row | {"benchmark": "visits"} for row in rows()])
    with pytest.raises(BadInput, match="compare"):
        make_pairs(engine, "visits", "new", read_rubric("generic"))
    path = str(tmp_path / "responses.csv")
    said = told(engine, "study", "import", path, "--rubric", "preference", code=2)
    assert 'mode = "compare"' in said


def test_each_pair_is_shown_either_way_and_each_clinician_has_half_either_way(study):
    by_pair, by_rater = Counter[int](), Counter[int]()
    for one in every(study, Assignment):
        sign = {"first": 1, "second": -1}[one.shown_first]
        by_pair[one.response] += sign
        by_rater[one.rater] += sign
    assert set(by_pair.values()) == {0}
    assert max(map(abs, by_rater.values())) <= 1


def test_a_preference_is_stored_as_of_the_stored_order_whichever_side_was_shown(study):
    for rater in (1, 2, 3):
        rate_all(study, rater)
    found = {one.response: one.score for one in every(study, Rating)}
    texts = {one.id: one.text for one in every(study, Response)}
    assert {one.shown_first for one in every(study, Rating)} == {"first", "second"}
    for pair in every(study, Pair):
        good_first = texts[pair.first].startswith("Sound")
        assert found[pair.response] == (2 if good_first else -2)
    assert len(preferences_frame(study)) == 12
    assert ratings_frame(study).empty
    assert verify(study).findings == ()


def _of_side(engine, side):
    """Return the first clinician with a pair whose other response is shown first, and its code."""
    given = every(engine, Assignment)
    return next((one.rater, one.code) for one in given if one.shown_first == side)


@pytest.mark.parametrize("side", ["first", "second"])
def test_marks_are_of_the_stored_response_and_a_draft_stays_as_it_was_entered(study, side):
    rater, code = _of_side(study, side)
    shown = task_of(study, rater, code)
    assert shown.card.second is not None
    assert task(study, rater % 3 + 1, code) is None  # it is another's
    span = {"criterion": "overall", "start": 0, "end": 5, "error": "wrong", "side": "second"}
    draft = {"scores": {"overall": 1}, "by": "page", "seq": 1, "spans": [span]}
    assert save_draft(study, rater, code, FormState(draft, 3)) == 1
    again = task_of(study, rater, code)
    assert again.draft["scores"] == {"overall": 1}
    reply = Reply({"overall": 1}, spans=(Marked("overall", 0, 5, "wrong", side="second"),))
    assert submit(study, rater, code, reply, 5)
    assert not submit(study, rater, code, reply, 5)  # the same again is no revision
    [stored], [mark] = every(study, Rating), every(study, Span)
    assert stored.score == (1 if side == "first" else -1)
    assert mark.side == ("second" if side == "first" else "response")
    assert mark.text == shown.card.second[:5]


def test_a_place_that_becomes_free_has_a_side_too(study):
    given = {one.id for one in every(study, Assignment)}
    taken = assign(study, [], seed=0, per_response=3)
    assert (taken, claim(study, 1)) == (0, True)
    [new] = [one for one in every(study, Assignment) if one.id not in given]
    assert new.shown_first in ("first", "second")


def test_preferences_made_elsewhere_are_ratings_of_the_pair(study, tmp_path):
    def given(*lines, code=0):
        head, path = "pair_id,rater,kind,preference,shown_first,comment", tmp_path / "given.csv"
        path.write_text("\n".join([head, *lines]) + "\n", "utf-8")
        return told(study, "rate", "ratings", str(path), code=code)

    clinician = [f"{one},," for one in ("p1,dr_x,clinician,-2", "p2,dr_x,clinician,tie")]
    clinician += ["p0,dr_x,clinician,first,first,sound"]
    given(*clinician, "p0,judge,juror,1,first,", "p0,judge,juror,-1,second,")
    found = every(study, Rating)
    assert sorted((one.score, one.shown_first) for one in found) == [
        *((-2, ""), (-1, "second"), (0, ""), (1, "first"), (1, "first"))
    ]
    assert {one.replicate for one in found} == {0, 1}
    assert "the scale of preference is -2 to 2" in given("p0,dr_y,clinician,3,first,", code=2)
    refused = given("p0,dr_y,clinician,1,left,", code=2)
    assert "column shown_first: 'left': must be first" in refused


def test_exported_preferences_come_back_the_same(study, tmp_path):
    rate_all(study, 1)
    told(study, "share", "export", str(tmp_path / "out"))
    said = told(study, "rate", "ratings", str(tmp_path / "out" / "ratings.csv"))
    assert "0 ratings imported" in said


@pytest.mark.parametrize("authors", [True, False])
def test_a_package_brings_the_pairs_whole(study, tmp_path, authors):
    rate_all(study, 2)
    with_them = ("--unblind", "--reason", "the test asks") if authors else ()
    told(study, "share", "export", "--package", str(tmp_path / "study.zip"), *with_them)
    url = f"sqlite:///{tmp_path}/other.db"
    code, out, said = call(url, "study", "import", str(tmp_path / "study.zip"))
    assert (code, "the record is whole" in out) == (0, True), said
    assert call(url, "study", "verify")[0] == 0
    assert json.loads(call(url, "status", "--json", "-")[1])


def test_a_withdrawn_response_takes_its_pairs_with_it(engine, tmp_path):
    import_small(engine, tmp_path)
    made = make_pairs(engine, "visits", "visits-pairs", PREFERENCE)
    assert (made.pairs, made.responses.instances) == (2, 2)
    withdraw(OPERATOR, engine, response="r11", reason="names the patient")
    assert len(pairs_frame(engine)) == 1
    assert len([one for one in design_items(engine) if one.benchmark == "visits"]) == 3
    assert verify(engine).findings == ()


def test_what_is_masked_in_a_response_is_masked_in_its_pair_until_somebody_saw_it(study):
    pair = every(study, Pair)[0]
    text = next(one.text for one in every(study, Response) if one.id == pair.first)
    masked = MaskedText(pair.first, text.replace("note", "[x]"), [(6, 10, "note")])
    assert mask_responses(study, [masked]) == (1, 0)
    given = every(study, Assignment)
    rater, code = next((one.rater, one.code) for one in given if one.response == pair.response)
    shown = task_of(study, rater, code)
    assert any("[x]" in text for text in shown.card.rated)
    assert submit(study, rater, code, prefer_good(shown), 5)
    later = MaskedText(pair.second, "[x]", [(0, 4, "Poor")])
    assert mask_responses(study, [later]) == (0, 1)


def test_pairs_are_made_without_looking_at_authors_while_the_study_is_blind(engine, tmp_path):
    import_small(engine, tmp_path)
    with pytest.raises(NotAllowed, match="blind"):
        make_pairs(engine, "visits", "chosen", PREFERENCE, models=["model-one", "model-two"])
    with pytest.raises(BadInput, match="there are 2 pairs"):
        make_pairs(engine, "visits", "many", PREFERENCE, number=3)
    assert make_pairs(engine, "visits", "one", PREFERENCE, number=1).pairs == 1
    with pytest.raises(Conflict, match="'one' already"):
        make_pairs(engine, "visits", "one", PREFERENCE)
    unblind(engine, "researcher", "the test asks")
    made = make_pairs(engine, "visits", "two", PREFERENCE, models=["model-one", "model-two"])
    assert made.pairs == 2
    assert len(design_items(engine)) == 4 + 1 + 2
    said = told(engine, "study", "pairs", "visits", "--into", "three")
    assert "three: 2 pairs on 2 instances" in said


@pytest.mark.parametrize("number", [4, 7, 12])
def test_a_design_of_so_many_pairs_is_balanced_and_connects_all_models(engine, tmp_path, number):
    head = "instance_id,benchmark,context,prompt,response_id,model,response"
    path = tmp_path / "a.csv"
    made = ((i, m) for i in range(6) for m in "abcde")
    lines = [f"i{i},b,case {i},write,r{i}{m},model-{m},text {i} {m}" for i, m in made]
    path.write_text("\n".join([head, *lines]) + "\n", "utf-8")
    told(engine, "study", "import", str(path))
    unblind(engine, "researcher", "the test asks")
    assert make_pairs(engine, "b", "pairs", PREFERENCE, number=number, seed=3).pairs == number
    frame = pairs_frame(engine)
    pairs = zip(frame["first_model"], frame["second_model"], strict=True)
    met = Counter(tuple(sorted(two)) for two in pairs)
    assert max(met.values()) - min(met.values()) <= 1
    joined = {frame["first_model"][0]}
    for _ in range(5):
        joined |= {name for two in met if joined & {*two} for name in two}
    assert len(joined) == 5
    with pytest.raises(BadInput, match="connected by 4"):
        make_pairs(engine, "b", "few", PREFERENCE, number=3)


def test_a_compare_rubric_says_what_it_cannot_have(tmp_path):
    body = PREFERENCE.model_dump()
    assert Rubric.from_json(PREFERENCE.to_json()) == PREFERENCE
    for change, word in (
        ({"scale": {"min": 1, "max": 5}}, "scale"),
        ({"prompt": "Rate {{response}}"}, "response"),
        ({"prompt": "{{first}} {{criteria}} {{schema}}"}, "second"),
        ({"points": "clipped"}, "points"),
    ):
        with pytest.raises(ValueError, match=word):
            Rubric(**{**body, **change})
    (tmp_path / "rubric.toml").write_text(
        'name = "own"\nversion = "1"\naudience = "a nurse"\ngold = "never"\nmode = "compare"\n'
        '[[criterion]]\nname = "safer"\nquestion = "Which is safer?"\n'
    )
    (tmp_path / "prompt.txt").write_text("{{first}}\n{{second}}\n{{criteria}}\n{{schema}}")
    own = read_rubric(tmp_path)
    assert own.criterion[0].anchors[2] == "The first response is much better"
    assert (own.scale.min, own.scale.max, own.orders) == (-2, 2, 2)


def test_a_file_with_a_wrong_column_says_what_a_file_of_pairs_has(engine, tmp_path):
    path = write(tmp_path / "bad.csv", [{"instance_id": "i", "first": "a", "second": "b"}])
    whole = write(tmp_path / "pairs.csv", rows(1))
    assert "give --pairs" in told(engine, "study", "import", str(whole), code=2)
    said = told(engine, "study", "import", str(path), "--pairs", code=2)
    assert "column 'first_model' is missing (a file of pairs has pair_id" in said


def test_who_settles_a_difference_reads_the_others_as_of_the_sides_that_are_shown(study):
    pair, places = every(study, Pair)[0], every(study, Assignment)
    given = [(one.rater, one.code) for one in places if one.response == pair.response]
    for (rater, code), points in zip(given, (2, -1), strict=True):
        shown = task_of(study, rater, code)
        submit(study, rater, code, prefer_good(shown, points), 5)
    for rater in (1, 2, 3):
        rate_all(study, rater)
    [found] = differences(OPERATOR, study, 2)
    assert (found.response, found.points) == (pair.response, 3)
    handle = {1: "dr_a", 2: "dr_b", 3: "dr_c"}[given[0][0]]
    assign_adjudication(study, "coordinator", "consensus", {pair.response: handle})
    person = Person(1, handle, Role.CLINICIAN, given[0][0])
    now = shown_now(study, person)
    good_first = "Sound" in next(one["html"] for one in now["texts"] if one["name"] == "response")
    assert now["pair"]
    assert [other["scores"]["overall"] for other in now["others"]] == [-1 if good_first else 1]
    settling = task_of(study, given[0][0])
    submit(study, given[0][0], settling.card.code, prefer_good(settling, 1), 5)
    assert verify(study).findings == ()
    assert len(preferences_frame(study)) == 12  # what settles is no reading of its own


def test_training_on_a_pair_is_of_its_stored_order(study):
    [first, *_] = rows()
    origin = Origin("made up", 1)
    practice = {name: cell.replace("notes", "practice") for name, cell in first.items()}
    case = ("t", "practice", practice["context"], "Write.", None)
    sides = zip("ab", MODELS, (first["first"], first["second"]), strict=True)
    one, other = (ResponseRow(origin, *case, f"t{side}", *said) for side, *said in sides)
    pair = PairRow(origin, "t", (one, other))
    import_pairs(study, [pair], PREFERENCE, lambda _: None)
    import_experts(study, [ExpertRow(origin, "t", "overall", "2", "sound")])
    now = situation(study, 1).stage
    assert isinstance(now, Exercise)
    assert now.task.card.rated == (first["first"], first["second"])
    assert len(design_items(study)) == 6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("share", "export", "--redcap"), "judged in the rating room"),
        (("jury", "improve", "simulated", "--estimate"), "not pairs"),
        *((("analyse", one), "what its pairs (notes) say") for one in ("monitor", "predict")),
    ],
)
def test_what_pairs_have_not_is_said_in_one_message(study, tmp_path, words, said):
    rate_all(study, 1)
    more = (str(tmp_path / "redcap"),) if words[-1] == "--redcap" else ()
    refused = told(study, *words, *more, code=2)
    assert (said in refused, "Traceback" in refused) == (True, False)


def test_pairs_stand_beside_scores_where_all_is_asked_about(engine, tmp_path):
    import_small(engine, tmp_path)
    bring(engine, tmp_path)
    scores = [
        f"{name},{rater},{kind},{criterion},{1 + (n + len(rater)) % 5}"
        for n, name in enumerate(("r11", "r12", "r21", "r22"))
        for rater, kind in (("dr_a", "clinician"), ("dr_bb", "clinician"), ("gpt", "juror"))
        for criterion in ("accuracy", "completeness", "clarity")
    ]
    said = ("dr_a,clinician,1", "dr_c,clinician,2", "judge,juror,1")
    given = [f"p{n},{who}" for n in range(6) for who in said]
    for head, lines in (
        ("response_id,rater,kind,criterion,score", scores),
        ("pair_id,rater,kind,preference", given),
    ):
        (tmp_path / "given.csv").write_text("\n".join([head, *lines]) + "\n", "utf-8")
        told(engine, "rate", "ratings", str(tmp_path / "given.csv"))

    def found(*words):
        asked = ("analyse", "calibrate", "--reps", "20", "--json", "-", *words)
        body = json.loads(told(engine, *asked))
        of_pairs = {row["scorer"] for row in body.get("pairs", ())}
        return {row["benchmark"] for row in body["rows"]}, of_pairs

    both = {"jury", "juror:judge", "clinicians", "like_for_like"}
    assert found() == ({"visits"}, both)
    assert found("--without", "dr_bb") == ({"visits"}, both)
    assert found("--benchmark", "visits") == ({"visits"}, set())
    assert found("--benchmark", "notes") == (set(), both)
    assert found("--criterion", "overall") == (set(), both)
    assert found("--jurors", "gpt") == ({"visits"}, set())
