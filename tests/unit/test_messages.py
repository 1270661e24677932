"""Notes: each has words with its figures in, and what is asked for by its code is made somewhere."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.odd_studies import all_notes, odd_studies

from calibration.notes import Note, Words, counted, filled, listed, note, quoted

PRODUCT = [
    ast.parse(path.read_text("utf-8"))
    for package in ("calibration", "medjury", "annotate")
    for path in Path(package).rglob("*.py")
]


def test_every_code_that_something_reads_is_made_somewhere():
    made = {code for tree in PRODUCT for code in _made(tree)}
    read = {code for tree in PRODUCT for code in _read(tree)}
    assert len(made) > 300
    assert len(read) > 15
    assert sorted(read - made) == []


def _made(tree: ast.Module) -> Iterator[str]:
    """Yield the codes of notes, and of the pairs of code and words that notes are made of."""
    for node in ast.walk(tree):
        firsts: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            firsts = node.args[:1] if node.func.id in ("note", "undefined") else []
        elif isinstance(node, ast.Assign | ast.Dict):
            values = node.values if isinstance(node, ast.Dict) else [node.value]
            pairs = (one for one in values if isinstance(one, ast.Tuple) and len(one.elts) == 2)
            firsts = [pair.elts[0] for pair in pairs]
        for first in firsts:
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _read(tree: ast.Module) -> Iterator[str]:
    """Yield the codes that are asked for: `row.told("x")`, `note.code == "x"`, `note.code in (...)`."""
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = node.args if node.func.attr == "told" else []
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute):
            asked = node.comparators if node.left.attr == "code" else []
        for one in asked:
            for part in ast.walk(one):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


@pytest.fixture(scope="module")
def made() -> dict[str, set[Note]]:
    """Return the notes on every figure of the odd studies, by study."""
    return {name: set(all_notes(odd)) for name, odd in odd_studies().items()}


def test_every_note_on_a_figure_has_words_with_all_its_figures_in(made: dict[str, set[Note]]):
    for name, notes in made.items():
        for one in notes:
            for said in (str(one), one.text, one.general or one.text):
                assert said.strip(), (name, one)
                assert not {"{", "}"} & {*said}, (name, said)
                assert not any(odd in said for odd in ("None", "nan", "NoteCode", "  ")), said
                assert not said.endswith((".", ":", ";")), said
                assert said[0].islower() or said[0].isdigit() or said.startswith(STARTS), said


STARTS = ("BCa", "ICC", "AC2", "mts", '"')


def test_a_message_that_lacks_a_figure_is_an_error_and_never_half_a_sentence():
    with pytest.raises(KeyError, match="least"):
        note("few_instances", "fewer than {least} instances")


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
