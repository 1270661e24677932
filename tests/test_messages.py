"""The words of notes: one message a code, and each filled by the notes that statistics make."""

from collections import Counter

import pytest
from kit.odd_studies import all_notes, odd_studies, of_decision
from sqlalchemy import Engine

from annotate.calibrations import home
from annotate.results import AgreementQuestion
from calibration import messages
from calibration.codes import CODES, SUBJECTS
from calibration.codes import NoteCode as Code
from calibration.messages import agreement, decisions, details, general, reason, words
from calibration.messages.form import Words, counted, filled, listed, quoted
from calibration.values import AnalysisOptions, Note, note

# Codes of the statistics behind `calibrate` that no small study can make, and why.
NEVER = {
    Code.AFTER_UNBLINDING: "it takes a study that is blind, and its families",
    Code.INDEPENDENT_READINGS: "it takes settled differences, and asking for them",
    Code.LEFT_OUT: "it takes a clinician who is left out on purpose",
    Code.NO_OTHERS: "it takes a criterion that only one clinician rated as critical",
    Code.NOT_RATED_BY_ALL: "the ranking of juries says it",
    Code.WORSE_WITHIN: "it takes a jury that is shown to be worse, and by less than the margin",
    Code.NO_INTERVAL: "it takes a difference that a single instance makes",
    Code.NO_BCA: "it takes more than 2,000 instances",
}
CALIBRATE = [
    code
    for part in (agreement, details, decisions)
    for registry in (part.REASONS, part.MESSAGES)
    for code in registry
]


def test_every_code_has_one_message_and_every_message_a_code():
    told = Counter(
        code for part in messages.PARTS for one in (part.REASONS, part.MESSAGES) for code in one
    )
    assert [code.value for code, times in told.items() if times > 1] == []
    assert [code.value for code in CODES if code not in told] == []
    assert set(told) == CODES
    assert set(messages.GENERAL) <= CODES


def test_no_two_codes_have_the_same_value_whatever_their_subject():
    names = [name for subject in SUBJECTS for name in subject.__members__]
    assert len(CODES) == len(names) == len(set(names))


@pytest.fixture(scope="module")
def made() -> dict[str, set[Note]]:
    """Return the notes on every figure of the odd studies, by study."""
    return {name: set(all_notes(odd)) for name, odd in odd_studies().items()}


def test_every_note_on_a_figure_has_words_with_all_its_figures_in(made: dict[str, set[Note]]):
    for name, notes in made.items():
        for one in notes:
            for said in (words(one), reason(one), general(one)):
                assert said.strip(), (name, one)
                assert not {"{", "}"} & {*said}, (name, said)
                assert not any(odd in said for odd in ("None", "nan", "NoteCode", "  ")), said
                assert not said.endswith((".", ":", ";")), said
                assert said[0].islower() or said[0].isdigit() or said.startswith(STARTS), said


STARTS = ("BCa", "ICC", "AC2", "mts", '"')


def test_all_that_calibrate_can_say_is_said_of_some_study_or_named_with_the_reason_why_not(
    made: dict[str, set[Note]], small_study: Engine
):
    nobody = home(small_study, AgreementQuestion(AnalysisOptions())).decision
    codes = {one.code for notes in made.values() for one in notes}
    codes |= {one.code for one in of_decision(nobody)}
    assert sorted(set(CALIBRATE) - codes) == sorted(NEVER)


def test_a_message_that_lacks_a_figure_is_an_error_and_never_half_a_sentence():
    with pytest.raises(KeyError, match="least"):
        words(note(Code.FEW_INSTANCES))


def test_counts_have_their_nouns_and_names_that_part_a_list_their_quotation_marks():
    assert [counted(n, "pair") for n in (0, 1, 2)] == ["0 pairs", "1 pair", "2 pairs"]
    assert filled("{n:missing score} of {who}", {"n": 1, "who": ("a", "b, c")}) == (
        '1 missing score of a, "b, c"'
    )
    assert filled("{who:scorer}", {"who": "metric:rouge-l"}) == "rouge-l"
    assert filled("{why}; {who}", {"why": Words("a, b"), "who": "a;b"}) == 'a, b; "a;b"'
    assert [quoted(one) for one in ("a", "a b", "a, b", 'a", "b', "a\nb")] == [
        *("a", "a b", '"a, b"', r'"a\", \"b"', "a b")
    ]
    assert listed(["Smith, John", "gpt"]) == '"Smith, John", gpt'
