"""The words of notes: one message a code, and each filled by the notes that statistics make."""

from collections import Counter

import pytest
from kit.odd_studies import all_notes, odd_studies

from calibration import messages
from calibration.codes import CODES
from calibration.codes import NoteCode as Code
from calibration.messages import general, reason, words
from calibration.messages.form import Words, counted, filled, listed, quoted
from calibration.values import Note, note


def test_every_code_has_one_message_and_every_message_a_code():
    told = Counter(
        code for part in messages.PARTS for one in (part.REASONS, part.MESSAGES) for code in one
    )
    assert [code.value for code, times in told.items() if times > 1] == []
    assert [code.value for code in CODES if code not in told] == []
    assert set(told) == CODES
    assert set(messages.GENERAL) <= CODES


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
