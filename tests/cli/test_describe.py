"""What clinicians are told of a study and agree to: its file, its hash, and what they flag and are answered."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.commands import csv_rows, json_of
from kit.rating_study import FULL, build, codes_of, row, rubric
from kit.study_place import all_rows
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.card import Reply
from data.description import (
    LONGEST_TEXT,
    LONGEST_TITLE,
    MOST_PAGES,
    Description,
    GuidelinePage,
    guideline_page,
    read_description,
)
from data.errors import BadFile, BadInput, Conflict, NotAllowed, Unknown
from data.person import OPERATOR, Person
from data.schema import Remark, Role, Submission
from data.study.assignments import (
    Slot,
    answer_flag,
    answer_seen,
    answers_for,
    assign,
    flags,
    recuse,
)
from data.study.export import reading_rows
from data.study.people import add_people, end_access, invite, people, workloads
from data.study.ratings import submit
from data.study.room import next_task, situation
from data.study.settings import describe, description, give_consent, lock
from data.study.standing import settings
from data.study.steering import describe_study, study_consents, study_descriptions
from data.study.verify import acts, verify
from medjury.services.adjudication import answer

TOLD = Description("Notes", "Why", "Dr. L", "l@h.example", "I agree.", "Read.")
PAGE = GuidelinePage("Scores", "5 is best.")
GUIDED = replace(TOLD, guideline=(PAGE,))
ASKED = replace(GUIDED, consent="I agree, and may stop.")


@pytest.fixture
def ward(engine) -> Engine:
    build(engine, [row(n, f"Note {n}.") for n in range(3)], ["dr-a", "dr-b"], rubric())
    return engine


def test_each_submission_names_the_description_that_it_was_made_under(ward):
    for code, text in zip(codes_of(ward, "dr-a"), (None, TOLD, GUIDED), strict=True):
        assert text is None or describe(ward, text, "coordinator")
        submit(ward, 1, code, Reply(dict(FULL)), 5)
    with Session(ward) as session:
        under = session.exec(select(Submission.study_text).order_by(Submission.id)).all()  # type: ignore[arg-type]
    assert [*under] == [None, TOLD.sha256, GUIDED.sha256]
    first, second = study_descriptions(OPERATOR, ward)
    assert (first.description, first.ratings, first.submissions) == (TOLD, 1, 1)
    assert (second.description, second.ratings, second.submissions) == (GUIDED, 2, 1)
    assert (first.is_present, second.is_present) == (False, True)
    assert description(ward) == GUIDED
    assert verify(ward).findings == ()


def test_going_back_to_an_earlier_description_is_a_version_of_its_own(ward):
    for one in (TOLD, GUIDED, TOLD):
        assert describe(ward, one, "coordinator")
    told = [one.detail["sha256"] for one in acts(ward, "study described")]
    assert told == [TOLD.sha256, GUIDED.sha256, TOLD.sha256]
    assert description(ward) == TOLD
    assert len(all_rows(ward)["study_text"]) == 2
    assert verify(ward).findings == ()


def test_consent_is_asked_once_for_each_text_and_not_for_a_changed_guideline(ward):
    assert situation(ward, 1).consents
    describe(ward, TOLD, "coordinator")
    assert not situation(ward, 1).consents
    assert give_consent(ward, 1, TOLD.consent_sha256)
    assert not give_consent(ward, 1, TOLD.consent_sha256)
    assert [situation(ward, one).consents for one in (1, 2)] == [True, False]
    describe(ward, GUIDED, "coordinator")
    assert situation(ward, 1).consents
    describe(ward, ASKED, "coordinator")
    assert not situation(ward, 1).consents
    describe(ward, replace(ASKED, consent=""), "coordinator")
    assert situation(ward, 2).consents
    [given] = acts(ward, "consent given")
    assert given.actor == "rater 1"
    wanted = {"rater": 1, "sha256": TOLD.consent_sha256, "study_text": TOLD.sha256}
    assert {name: given.detail[name] for name in wanted} == wanted
    assert verify(ward).findings == ()


def test_consent_is_refused_to_any_text_but_the_present_one(ward):
    for sha256 in ("", TOLD.consent_sha256):
        with pytest.raises(Conflict, match="changed meanwhile"):
            give_consent(ward, 1, sha256)
    describe(ward, TOLD, "coordinator")
    describe(ward, ASKED, "coordinator")
    for sha256 in ("", TOLD.consent_sha256, ASKED.sha256):
        with pytest.raises(Conflict, match="changed meanwhile"):
            give_consent(ward, 1, sha256)
    with pytest.raises(NotAllowed, match="only clinicians"):
        give_consent(ward, 99, ASKED.consent_sha256)
    assert acts(ward, "consent given") == []
    assert give_consent(ward, 1, ASKED.consent_sha256)


def test_only_a_coordinator_describes_no_clinician_reads_consents_a_lock_takes_neither(ward):
    clinician, reader = (Person(8, "x", role, 1) for role in (Role.CLINICIAN, Role.RESEARCHER))
    for person in (clinician, reader):
        with pytest.raises(NotAllowed):
            describe_study(person, ward, TOLD, person.actor)
    for reads in (study_descriptions, study_consents):
        assert reads(reader, ward) == []
        with pytest.raises(NotAllowed):
            reads(clinician, ward)
    boss = Person(7, "Boss", Role.COORDINATOR)
    assert describe_study(boss, ward, TOLD, boss.actor)
    assert study_descriptions(reader, ward)[0].actor == "account 7"
    describe(ward, TOLD, "coordinator")
    lock(ward, "coordinator")
    with pytest.raises(NotAllowed, match="locked since"):
        describe(ward, GUIDED, "coordinator")
    with pytest.raises(NotAllowed, match="locked since"):
        give_consent(ward, 1, TOLD.consent_sha256)
    assert description(ward) == TOLD


def test_who_gave_consent_and_who_did_not_stands_with_the_people(ward, run):
    add_people(OPERATOR, ward, ["boss"], Role.COORDINATOR)
    assert {one.consent for one in people(OPERATOR, ward)} == {None}
    assert "consent" not in run("rate", "people", "list")[1]
    describe(ward, TOLD, "coordinator")
    give_consent(ward, 1, TOLD.consent_sha256)
    end_access(OPERATOR, ward, "dr-b")
    [told] = study_consents(OPERATOR, ward)
    assert (told.handle, told.state) == ("dr-a", "given")
    found = {one.name: one.consent for one in people(OPERATOR, ward)}
    assert (found["boss"], found["dr-b"]) == (None, None)
    assert found["dr-a"] is not None
    assert found["dr-a"].at == acts(ward, "consent given")[0].at
    describe(ward, ASKED, "coordinator")
    assert "to an earlier text" in run("rate", "people", "list")[1]


def test_the_command_sets_shows_and_writes_what_clinicians_are_told(ward, run, write):
    assert "clinicians are told nothing of this study" in run("study", "describe")[1]
    assert json_of(run, "study", "describe")["description"] is None
    write("consent.md", "I agree.")
    file = write("study.toml", 'title = "Notes"\ncontact = "l@h"\nconsent_file = "consent.md"\n')
    code, out, _ = run("study", "describe", str(file), "--who", "Dr. L")
    assert code == 0
    assert "nothing is said of: purpose, responsible, instructions, guideline" in out
    assert "consent given by 0 of 2 clinicians; not yet: dr-a, dr-b" in out
    assert "nothing changed" in run("study", "describe", str(file))[1]
    told = json_of(run, "study", "describe")
    present = description(ward)
    assert told["description"]["sha256"] == present.sha256
    assert told["description"]["consent"] == "I agree."
    assert [(one["actor"], one["present"]) for one in told["versions"]] == [("Dr. L", True)]
    assert [one["consent"] for one in told["consents"]] == ["not yet", "not yet"]
    lock(ward, "coordinator")
    code, _, err = run("study", "describe", str(write("other.toml", 'title = "Other"')))
    assert (code, "locked since" in err) == (2, True)


def test_a_wrong_file_ends_with_one_line_and_changes_nothing(ward, run, write):
    before = all_rows(ward)
    for file in (write("study.toml", "titel = 'x'"), Path("nowhere.toml"), Path("/")):
        code, _, err = run("study", "describe", str(file))
        assert code == 2
        assert len(err.strip().splitlines()) == 1
        assert err.startswith(f"medjury: {file}: ")
    assert all_rows(ward) == before


def test_the_export_tells_what_was_described_when_and_who_agreed(ward, run, tmp_path):
    describe(ward, replace(TOLD, title="=1+1"), "coordinator")
    give_consent(ward, 1, TOLD.consent_sha256)
    describe(ward, ASKED, "coordinator")
    give_consent(ward, 2, ASKED.consent_sha256)
    assert run("share", "export", str(tmp_path / "out"))[0] == 0
    told = csv_rows(tmp_path / "out" / "descriptions.csv")
    assert [(one["title"], one["present"]) for one in told] == [("'=1+1", "0"), ("Notes", "1")]
    given = csv_rows(tmp_path / "out" / "consents.csv")
    assert [(one["rater"], one["holds"]) for one in given] == [("dr-a", "0"), ("dr-b", "1")]
    assert given[1]["study_text"] == ASKED.sha256
    texts = {one["sha256"] for one in csv_rows(tmp_path / "out" / "tables" / "study_text.csv")}
    assert {one["sha256"] for one in told} == texts


def test_the_language_of_the_room_is_chosen_with_the_description(run, engine):
    assert run("study", "describe", "--language", "de")[0] == 0
    assert settings(engine).language == "de"
    code, _, said = run("study", "describe", "--language", "xx")
    assert code == 2
    assert "language 'xx': must be en or de" in " ".join(said.split())
    assert settings(engine).language == "de"


SCORES = {"accuracy": 4, "completeness": 3, "clarity": 5}
ODD = Reply(SCORES, comment="cut off?", flags=("flag",))


@pytest.fixture
def flagged(small_study) -> Engine:
    """Make a study in which dr_a flagged the first response and gave the second back."""
    invite(small_study, ["dr_a", "dr_b"])
    assign(small_study, [Slot("dr_a", n, n) for n in (1, 2)] + [Slot("dr_b", 3, 0)], seed=0)
    submit(small_study, 1, code(small_study), ODD, 5)
    recuse(small_study, 1, code(small_study), "known to me")
    return small_study


def code(engine: Engine, rater: int = 1) -> str:
    shown = next_task(engine, rater).task
    return shown.card.code


def test_the_clinician_gets_the_answer_and_the_coordinator_learns_that_it_was_seen(flagged):
    [flag] = flags(OPERATOR, flagged)
    assert (flag.response_id, flag.rater, flag.flag) == ("r11", "dr_a", "flag")
    assert (flag.text, flag.answers, flag.seen) == ("cut off?", (), False)
    with pytest.raises(Unknown, match="flag 2"):
        answer(OPERATOR, flagged, 2, "thank you")
    made = answer(OPERATOR, flagged, flag.id, "  It was cut in the source too.  ")
    [given] = answers_for(flagged, 1)
    assert (given.flag, given.text) == ("flag", "cut off?")
    assert (given.answer, given.seen) == ("It was cut in the source too.", None)
    assert given.answer_id == made
    assert answers_for(flagged, 2) == ()
    with pytest.raises(NotAllowed):
        answer_seen(flagged, 2, made)
    with pytest.raises(NotAllowed):
        answer_seen(flagged, 1, flag.id)
    assert answer_seen(flagged, 1, made)
    assert not answer_seen(flagged, 1, made)
    [given] = answers_for(flagged, 1)
    assert given.seen is not None
    [flag] = flags(OPERATOR, flagged)
    assert (flag.answers, flag.seen) == (("It was cut in the source too.",), True)
    answer(OPERATOR, flagged, flag.id, "two")
    assert [one.answer for one in answers_for(flagged, 1)] == [*flag.answers, "two"]
    [flag] = flags(OPERATOR, flagged)
    assert (flag.answers[1:], flag.seen) == (("two",), False)


def test_an_answer_that_names_a_model_has_no_words_or_too_many_is_refused(flagged):
    [flag] = flags(OPERATOR, flagged)
    for text in (
        "It is model-one's habit.",
        "Model One does so.",
        "ChatGPT likes that",
        "by Gemini",
    ):
        with pytest.raises(BadInput, match="who reads it rates blind"):
            answer(OPERATOR, flagged, flag.id, text)
    for text in ("", "   ", "x" * 2001):
        with pytest.raises(BadInput, match="1 to 2,000"):
            answer_flag(flagged, "coordinator", flag.id, text)
    assert answers_for(flagged, 1) == ()


def test_only_a_coordinator_answers_and_no_clinician_lists_flags(flagged):
    [flag] = flags(OPERATOR, flagged)
    researcher = Person(7, "r", Role.RESEARCHER)
    [seen] = flags(researcher, flagged)
    assert seen.rater == "clinician 1"
    for person in (researcher, Person(8, "dr_a", Role.CLINICIAN, 1)):
        with pytest.raises(NotAllowed):
            answer(person, flagged, flag.id, "thank you")
    with pytest.raises(NotAllowed):
        flags(Person(8, "dr_a", Role.CLINICIAN, 1), flagged)


def test_an_answer_is_in_the_record_and_changes_nothing_of_what_was_said(flagged):
    [flag] = flags(OPERATOR, flagged)
    before = list(reading_rows(flagged)), workloads(OPERATOR, flagged)
    answer_seen(flagged, 1, answer(OPERATOR, flagged, flag.id, "thank you"))
    assert (list(reading_rows(flagged)), workloads(OPERATOR, flagged)) == before
    given = answers_for(flagged, 1)[0].code
    assert not submit(flagged, 1, given, ODD, 9)  # the same again is no revision
    assert verify(flagged).findings == ()
    with Session(flagged) as session:
        one = session.exec(select(Remark).where(Remark.kind == "answer")).one()
        one.text = "no thanks"
        session.add(one)
        session.commit()
    [found] = verify(flagged).findings
    assert found.startswith("remark 3: changed since event ")


def test_the_command_lists_flags_and_answers_them(flagged, run, tmp_path):
    code, said, _ = run("rate", "flags")
    assert code == 0
    assert all(word in said for word in ("r11", "dr_a", "cut off?"))
    [flag] = flags(OPERATOR, flagged)
    assert run("rate", "flags", "--answer", str(flag.id), "--text", "It is whole.")[0] == 0
    to = tmp_path / "flags.json"
    assert run("rate", "flags", "--json", str(to))[0] == 0
    [found] = json.loads(to.read_text("utf-8"))["flags"]
    assert (found["id"], found["answers"], found["seen"]) == (flag.id, ["It is whole."], False)
    code, _, told = run("rate", "flags", "--answer", str(flag.id), "--text", "ask model-two")
    assert code == 2
    assert "names what may be a model" in told
    assert run("rate", "flags", "--answer", str(flag.id))[0] == 2


WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=60)
TITLES = WORDS.filter(lambda one: bool(one.strip()) and one.isprintable())


def test_every_word_that_is_told_changes_the_hash_and_only_the_consent_text_that_of_consent():
    names = ("title", "purpose", "responsible", "contact", "consent", "instructions")
    others = [replace(GUIDED, **{name: "other"}) for name in names]
    others.append(replace(GUIDED, guideline=(replace(PAGE, text="1 is worst."),)))
    others.append(replace(GUIDED, guideline=(replace(PAGE, title="Points"),)))
    assert len({one.sha256 for one in (GUIDED, *others)}) == 9
    assert [one.consent_sha256 for one in others].count(GUIDED.consent_sha256) == 7
    assert GUIDED.consent_sha256 == hashlib.sha256(b"I agree.").hexdigest()
    assert replace(GUIDED, consent="").consent_sha256 == ""
    assert replace(GUIDED, consent=" \n ").consent_sha256 == ""


@given(TITLES, WORDS, WORDS, TITLES, WORDS.filter(lambda one: bool(one.strip())))
def test_what_is_stored_is_read_back_the_same(title, purpose, consent, page, text):
    told = Description(title, purpose, "", "", consent, "", (GuidelinePage(page, text),))
    assert Description.from_json(told.to_json()) == told
    assert hashlib.sha256(told.to_json().encode()).hexdigest() == told.sha256


@pytest.mark.parametrize(
    "stored",
    [
        *("", "[]", "{", "null", '{"title": "x"}', "[" * 100_000),
        GUIDED.to_json().replace('"Why"', "3"),
        GUIDED.to_json().replace('"purpose"', '"aim"'),
        GUIDED.to_json().replace('"Why"', r'"\ud800"'),
        json.dumps(json.loads(GUIDED.to_json()) | {"guideline": {"title": "x"}}),
    ],
)
def test_what_is_no_description_is_refused_in_one_line(stored):
    with pytest.raises(BadInput) as told:
        Description.from_json(stored)
    assert "\n" not in str(told.value)


def test_a_description_is_read_with_the_files_it_names(write, tmp_path):
    (tmp_path / "guide").mkdir()
    write("consent.md", "\ufeffI agree.\r\nTwice.\r\n")
    write("guide/scores.md", "# What **scores** mean #\n\n5 is best.\n")
    write("guide/unsafe_doses.md", "Above the maximum.\n\n# Later heading\n")
    path = write(
        "study.toml",
        'title = "  Notes\\n of visits "\npurpose = """\nWhy\n"""\nresponsible = "Dr. L"\n'
        'contact = "l@h.example"\nconsent_file = "consent.md"\n'
        'guideline = ["guide/scores.md", "guide/unsafe_doses.md"]\n',
    )
    told = read_description(path)
    texts = ("Notes of visits", "Why", "I agree.\nTwice.")
    assert (told.title, told.purpose, told.consent) == texts
    assert told.guideline == (
        GuidelinePage("What **scores** mean", "5 is best."),
        GuidelinePage("unsafe doses", "Above the maximum.\n\n# Later heading"),
    )
    assert told.untold == ("instructions",)


OUTSIDE = ("../outside.md", "/etc/hostname", "link.md")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('purpose = "Why"', "title: is missing"),
        ('title = ""', "title: has no title"),
        ("title = 3", "title: must be a text in quotes"),
        (f'title = "{"x" * (LONGEST_TITLE + 1)}"', "has 201 characters; at most 200"),
        ('title = "x"\naim = "y"', "aim: is no key of it; the keys are title, purpose"),
        ('title = "x"\nconsent = "y"\nconsent_file = "c.md"', "consent: is there twice"),
        ('title = "x"\nconsent_file = "none.md"', "none.md: there is no such file"),
        *((f'title = "x"\nconsent_file = "{to}"', "lies outside the folder") for to in OUTSIDE),
        ('title = "x"\nconsent_file = "a\\u0000b"', "there is no such file"),
        ('title = "x"\nconsent_file = "."', "there is no such file"),
        ('title = "x"\nconsent_file = "latin.md"', "not text in UTF-8 at byte 3"),
        ('title = "x"\npurpose = "a\\n\\u001b[31mb"', r"purpose: line 2 has a sign .* \(U\+001B\)"),
        ('title = "x"\nguideline = "a.md"', "guideline: must be a list of files"),
        ('title = "x"\nguideline = ["empty.md"]', "guideline page empty: is empty"),
        ('title = "x"\nguideline = ["p.md", "p.md"]', "two pages have the title p"),
        (f'title = "x"\nguideline = {["p.md"] * (MOST_PAGES + 1)}', "has 31 pages; at most 30"),
        ('title = "x"\npurpose_file = "long.md"', f"at most {LONGEST_TEXT}"),
        ('title = "x"\npurpose_file = "vast.md"', "has over 1000000 bytes"),
        ("title = ", "not TOML"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_what_to_do(text, said, write, tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    write("outside.md", "secret")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "latin.md").write_bytes(b"ab\xe9")
    for name, length in (("empty", 0), ("p", 1), ("long", LONGEST_TEXT + 1), ("vast", 1_000_001)):
        write(f"study/{name}.md", "x" * length)
    path = write("study/study.toml", text)
    with pytest.raises(BadFile, match=said) as told:
        read_description(path)
    assert str(told.value).startswith(f"{path}: ")
    assert "\n" not in str(told.value)
    assert "secret" not in str(told.value)


def test_a_page_is_named_by_a_heading_and_more_than_a_browser_takes_is_refused():
    assert guideline_page("a.md", b"# One\ntext") == GuidelinePage("One", "text")
    assert guideline_page("b-side.md", b"## Two\ntext") == GuidelinePage("b side", "## Two\ntext")
    with pytest.raises(BadFile, match=r"^c\.md: guideline page One: is empty"):
        guideline_page("c.md", b"# One\n")
    pages = tuple(GuidelinePage(str(n), "x" * LONGEST_TEXT) for n in range(9))
    with pytest.raises(BadInput, match="characters in all; at most 400000"):
        replace(GUIDED, guideline=pages)
