"""Error analysis: a study counted by hand, what adds up, quotes by rule, the command and the screen."""

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kit.browsers import RITA
from kit.scores import CRITERIA, FIELDS, study
from kit.studies import AUTHOR, HEAD, bring_in
from sqlmodel import Session, select

from calibration.errors import benchmark_errors, places
from calibration.scope import scopes
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions
from data.card import Marked, Reply
from data.schema import Assignment, Kind, Rater, Response, Span
from data.study.assignments import Slot, assign
from data.study.people import invite
from data.study.ratings import submit
from data.study.readings import Reading
from medjury.services.errors import quote

COLUMNS = ("response_id", "rater", "side", "start", "end", "criterion", "error", "severity")

# response -> composites of dr_a, dr_b and the juror; None: no rating. r5 is read by nobody in the room.
BY_HAND = {"r1": (1, 3, 4), "r2": (2, 2, 5), "r3": (5, 1, 3), "r4": (4, 4, None)}
BY_HAND |= {"r5": (5, 5, 5), "r6": (2, 2, 2)}
INSTANCES = {"r1": "i1", "r2": "i1", "r3": "i2", "r4": "i2", "r5": "i3", "r6": "i4"}


def scores_by_hand():
    raters = (("dr_a", "clinician"), ("dr_b", "clinician"), ("gpt", "juror"))
    rows = [
        (name, f"b/{INSTANCES[name]}", "b", *rater, criterion, float(score))
        for name, given_scores in BY_HAND.items()
        for rater, score in zip(raters, given_scores, strict=True)
        if score is not None
        for criterion in CRITERIA
    ]
    rows.append(("r7", "b/i4", "b", "dr_a", "clinician", "accuracy", 1.0))  # two criteria missing
    names = {**INSTANCES, "r7": "i4"}
    responses = [(name, f"b/{instance}", "b") for name, instance in names.items()]
    return Scores(
        pd.DataFrame(rows, columns=FIELDS).assign(pass_=0, replicate=0),
        pd.DataFrame(responses, columns=FIELDS[:3]),
        {"b": RubricShape(CRITERIA, 1, 5)},
        frozenset({"gpt"}),
    )


def marks_by_hand():
    rows = [
        ("r1", "dr_a", "response", 0, 4, "accuracy", "wrong", "critical"),
        ("r1", "dr_a", "response", 6, 9, "accuracy", "wrong", "minor"),
        ("r1", "dr_b", "source", 0, 4, "completeness", "missing", ""),
        ("r3", "dr_b", "response", 0, 4, "accuracy", "wrong", "major"),
        ("r7", "dr_a", "response", 0, 4, "accuracy", "wrong", "minor"),
    ]
    who = dict.fromkeys(("r1", "r2", "r3", "r4", "r6", "r7"), frozenset({"dr_a", "dr_b"}))
    return pd.DataFrame(rows, columns=[*COLUMNS]), who


def errors_of(scores, marks, per_group=3):
    return [
        benchmark_errors(scope, scores, *marks, per_group)
        for scope in scopes(scores, AnalysisOptions(reps=1))
        if scope.name != "combined"
    ]


def ids(picked, reason, error=""):
    return [one.response_id for one in picked if (one.picked_for, one.error) == (reason, error)]


def test_a_known_study_is_counted_by_hand():
    (found,) = errors_of(scores_by_hand(), marks_by_hand())
    assert (found.n_in_study, found.n_rated, found.n_incomplete) == (7, 6, 1)
    assert (found.n_unscored, found.n_outside, found.simulated) == (1, 1, ("gpt",))
    rows = {row.key: row for row in found.rows}
    assert [*rows] == [
        *("marked:", "grave:", "error:wrong", "error:missing", "unmarked:", "unread:")
    ]
    assert [row.n_responses for row in found.rows] == [2, 2, 2, 1, 3, 1]
    assert [row.n_marks for row in found.rows] == [4, 2, 3, 1, 0, 0]
    wrong = rows["error:wrong"]  # r1 and r3: clinicians 2 and 3, jury 4 and 3, spreads 2 and 4
    assert (wrong.n_read, wrong.share, wrong.n_grave) == (5, 0.4, 2)
    assert (wrong.clinicians, wrong.jury, wrong.gap, wrong.spread) == (2.5, 3.5, 1.0, 3.0)
    assert 0 < wrong.low < 0.4 < wrong.high < 1
    # Gaps 2 and 0 of two instances: standard error 1, t with 1 degree of freedom 12.706.
    assert (wrong.gap_low, wrong.gap_high) == pytest.approx((1 - 12.7062, 1 + 12.7062), abs=1e-3)
    unread = rows["unread:"]
    assert (unread.n_responses, math.isnan(unread.share), unread.clinicians) == (1, True, 5.0)


def test_a_place_is_a_run_of_marks_that_overlap():
    rows = [
        *(("r1", "a", "response", 0, 5), ("r1", "b", "response", 4, 9)),  # one place of two
        *(("r1", "a", "response", 9, 12), ("r1", "b", "source", 0, 5)),  # only touch; another side
        ("r2", "b", "response", 0, 5),
    ]
    marks = pd.DataFrame([(*one, "accuracy", "wrong", "") for one in rows], columns=[*COLUMNS])
    assert places(marks.sample(frac=1, random_state=1)) == [2, 1, 1, 1]
    (found,) = errors_of(scores_by_hand(), marks_by_hand())
    assert [(row.n_places, row.n_shared) for row in found.rows][:2] == [(4, 0), (2, 0)]


def test_examples_are_picked_by_the_rule():
    (found,) = errors_of(scores_by_hand(), marks_by_hand(), per_group=4)
    # 2.0 of r1, r2 and r6: then gaps of 2, 3 and 0. r3 has 3.
    for reason, picked in (
        (("lowest",), ["r2", "r1", "r6", "r3"]),
        (("jury_apart",), ["r2", "r1"]),  # the others have a gap of 0, or none
        (("clinicians_apart",), ["r3", "r1"]),
        *((("error", "wrong"), ["r1", "r3"]), (("error", "missing"), ["r1"])),
    ):
        assert ids(found.picked, *reason) == picked
    first = next(one for one in found.picked if one.response_id == "r1")
    assert (first.instance_id, first.errors, first.spread) == ("i1", ("missing", "wrong"), 2.0)
    (fewer,) = errors_of(scores_by_hand(), marks_by_hand(), per_group=1)
    assert ids(fewer.picked, "lowest") == ["r2"]


@pytest.mark.parametrize(("seed", "per_group"), [(0, 4), (1, 1), (2, 2), (3, 3)])
def test_the_groups_of_a_benchmark_add_up_and_no_example_is_left_out_for_a_worse_one(
    seed, per_group
):
    random = np.random.default_rng(seed)
    scores = study(("one", "two"), n=6, per=2, seed=seed)
    names = scores.responses["response_id"]
    who = {name: frozenset({"dr0"}) for name in names if random.random() < 0.7}
    rows = [
        (
            *(name, "dr0", "response", 0, 3, "accuracy"),
            *(random.choice(["wrong", "unsafe"]), random.choice(["critical", "minor", ""])),
        )
        for name in who
        for _ in range(random.integers(0, 3))
    ]
    for found in errors_of(scores, (pd.DataFrame(rows, columns=[*COLUMNS]), who), per_group):
        by_group = {row.group: row for row in found.rows if row.group != "error"}
        parts = [by_group[name] for name in ("marked", "unmarked", "unread")]
        assert sum(row.n_responses for row in parts) == found.n_rated
        errors = [row for row in found.rows if row.group == "error"]
        marked = by_group["marked"]
        for name in ("n_marks", "n_grave"):
            assert sum(getattr(row, name) for row in errors) == getattr(marked, name)
        for row in errors:
            assert row.n_responses <= marked.n_responses
            assert row.low <= row.share <= row.high
            picked = ids(found.picked, "error", row.error)
            assert len(picked) == len(set(picked)) == min(per_group, row.n_responses)
        lowest = [one.clinicians for one in found.picked if one.picked_for == "lowest"]
        assert lowest == pytest.approx(sorted(lowest))


def test_a_quote_is_the_gravest_mark_then_the_comment_on_the_lowest_score():
    minor = mark("clarity", "unclear", "minor", "response", 0, "one")
    major = mark("accuracy", "wrong", "major", "source", 5, "two")
    earlier = mark("accuracy", "wrong", "major", "response", 9, "three", "why")
    low, high = {"accuracy": "low"}, {"clarity": "high"}
    said = quote([said_by([minor], low), said_by([major, earlier])], "")
    assert (said.words, said.note, said.side, said.is_mark) == ("three", "why", "response", True)
    for readings, error, words in (
        ([said_by([minor, major], low)], "", "two"),
        ([said_by([minor, major], low)], "unclear", "one"),
        ([said_by([minor], high, "all of it"), said_by([], low)], "wrong", "low"),
        ([said_by([], high, "all of it")], "", "high"),
        ([said_by([], {}, "all of it")], "", "all of it"),
    ):
        found = quote(readings, error)
        assert found.words == words
    assert quote([said_by([], {"accuracy": "  "})], "") is None


def mark(criterion, error, severity, side, at, text, note=""):
    kind = {"criterion": criterion, "error": error, "severity": severity, "side": side}
    return Span(assignment=1, start=at, end=at + 3, text=text, note=note, **kind)


def said_by(spans, comments=None, comment=""):
    """Return a reading that scores accuracy 1 and clarity 5."""
    scores = {"accuracy": 1.0, "clarity": 5.0}
    who = (1, 1, "dr_a", Kind.CLINICIAN, False, 0, 0, "sha")
    return Reading(*who, scores, dict(comments or {}), {}, comment, [], list(spans))


TEXT = "Give insulin 10 units at night and call again."
PEOPLE = ("dr_a", "dr_b")


@pytest.fixture
def marked(run, engine, tmp_path):
    """Make a study of eight responses in the room: r0 and r4 have a wrong dose, marked by both."""
    texts = [HEAD]
    texts += [f"i{n},visits,Pain.,Write.,,r{n},{AUTHOR},{TEXT}" for n in range(8)]
    scores = ["response_id,rater,kind,accuracy,completeness,clarity"]
    scores += [f"r{n},gpt,juror,{1 + n % 5},3,{2 + n % 3}" for n in range(7)]
    bring_in(run, tmp_path, texts, scores)
    invite(engine, PEOPLE)
    assign(
        engine, [Slot(name, n + 1, n) for n in range(8) for name in PEOPLE], seed=0, per_response=2
    )
    with Session(engine) as session:
        query = select(Assignment.rater, Assignment.code, Response.response_id, Rater.handle)
        showings = session.exec(query.join(Response).join(Rater)).all()
    for rater, code, name, who in showings:
        place = int(name[1:])
        accuracy = 1 if place % 4 == 0 else 3 + (place + (who == "dr_b")) % 3
        spans = (Marked("accuracy", 13, 21, "wrong", "Ten \x1b[31mfold.", severity="critical"),)
        reply = Reply(
            {"accuracy": accuracy, "completeness": 3, "clarity": 4},
            {"accuracy": "<b>Too much.</b>"} if place == 1 else {},
            spans=spans if place % 4 == 0 else (),
        )
        submit(engine, rater, code, reply, 5.0)
    return engine


def test_the_command_shows_counts_and_quotes_and_writes_the_same_as_files(
    run, marked, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "100")
    table, page, body = (str(tmp_path / name) for name in ("e.csv", "e.html", "e.json"))
    call = "analyse", "errors", "--csv", table, "--html", page, "--json", body
    code, out, err = run(*call)
    assert code == 0, err
    assert re.search(r"wrong +2 +0\.25 +0\.\d\d to 0\.\d\d", out)
    assert 'marked in the response (accuracy, wrong, critical): "10 units" Note: Ten' in out
    assert "\x1b" not in out
    assert "8 of 8 responses rated by clinicians on all criteria, 1 of them not scored" in out
    assert max(map(len, out.split("Share: ")[0].splitlines())) <= 100
    values = json.loads(Path(body).read_text("utf-8"))
    (visits,) = values["benchmarks"]
    assert [one["n_responses"] for one in visits["groups"]] == [2, 2, 2, 6, 0]
    assert visits["examples"][0]["quote"]["words"] == "10 units"
    lines = Path(table).read_text("utf-8").splitlines()
    assert len([line for line in lines if line.startswith("visits,")]) == len(visits["examples"])
    text = Path(page).read_text("utf-8")
    HTMLParser().feed(text)
    assert "<blockquote>10 units</blockquote>" in text
    assert "<b>Too much.</b>" not in text
    written = "".join((out, text, Path(body).read_text("utf-8"), *lines))
    assert [one for one in (AUTHOR, *PEOPLE) if one in written] == []  # a quote names no clinician
    assert run(*call)[0] == 2  # the file is there already
    for option, value, words in (
        ("--per-group", "0", "--per-group 0: give 1 to 50 examples"),
        ("--criterion", "nonsense", "nonsense"),
        ("--jurors", "nobody", "no ratings by a juror nobody"),
    ):
        code, out, err = run("analyse", "errors", option, value)
        assert (code, out, words in err) == (2, "", True), err


@pytest.mark.usefixtures("marked")
def test_the_screen_shows_errors_with_a_link_to_the_response(screen):
    page = screen("agreement", RITA, view="Errors").run()
    assert not page.exception, [error.value for error in page.exception]
    told = "\n".join(str(part.proto) for part in page.main)
    words = ("visits: Errors that clinicians marked", "<blockquote>10 units</blockquote>")
    for one in (*words, "/agreement?view=Responses&amp;response=r0"):
        assert one in told
    assert AUTHOR not in told
