"""What clinicians are told: its file is read in bounds, and its hash is that of every word."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.description import (
    LONGEST_TEXT,
    LONGEST_TITLE,
    MOST_PAGES,
    Description,
    GuidelinePage,
    guideline_page,
    read_description,
)
from data.errors import BadFile, BadInput

Write = Callable[[str, str], Path]
PAGE = GuidelinePage("Scores", "5 is best.")
TOLD = Description("Notes", "Why", "Dr. L", "l@h.example", "I agree.", "Read.", (PAGE,))
WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=60)
TITLES = WORDS.filter(lambda one: bool(one.strip()) and one.isprintable())


def test_every_word_that_is_told_changes_the_hash_and_only_the_consent_text_that_of_consent() -> (
    None
):
    others = [
        replace(TOLD, **{name: "other"})
        for name in ("title", "purpose", "responsible", "contact", "consent", "instructions")
    ]
    others.append(replace(TOLD, guideline=(replace(PAGE, text="1 is worst."),)))
    others.append(replace(TOLD, guideline=(replace(PAGE, title="Points"),)))
    assert len({one.sha256 for one in (TOLD, *others)}) == 9
    assert [one.consent_sha256 for one in others].count(TOLD.consent_sha256) == 7
    assert TOLD.consent_sha256 == hashlib.sha256(b"I agree.").hexdigest()


def test_without_a_consent_text_there_is_no_hash_of_one() -> None:
    assert replace(TOLD, consent="").consent_sha256 == ""
    assert replace(TOLD, consent=" \n ").consent_sha256 == ""


@given(TITLES, WORDS, WORDS, TITLES, WORDS.filter(lambda one: bool(one.strip())))
def test_what_is_stored_is_read_back_the_same(
    title: str, purpose: str, consent: str, page: str, text: str
) -> None:
    told = Description(title, purpose, "", "", consent, "", (GuidelinePage(page, text),))
    assert Description.from_json(told.to_json()) == told
    assert hashlib.sha256(told.to_json().encode()).hexdigest() == told.sha256


@pytest.mark.parametrize(
    "stored",
    [
        *("", "[]", "{", "null", '{"title": "x"}', "[" * 100_000),
        TOLD.to_json().replace('"Why"', "3"),
        TOLD.to_json().replace('"purpose"', '"aim"'),
        TOLD.to_json().replace('"Why"', r'"\ud800"'),
        json.dumps(json.loads(TOLD.to_json()) | {"guideline": {"title": "x"}}),
    ],
)
def test_what_is_no_description_is_refused_in_one_line(stored: str) -> None:
    with pytest.raises(BadInput) as told:
        Description.from_json(stored)
    assert "\n" not in str(told.value)


def test_a_description_is_read_with_the_files_it_names(write: Write, tmp_path: Path) -> None:
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
    assert (told.title, told.purpose, told.consent) == (
        "Notes of visits",
        "Why",
        "I agree.\nTwice.",
    )
    assert told.guideline == (
        GuidelinePage("What **scores** mean", "5 is best."),
        GuidelinePage("unsafe doses", "Above the maximum.\n\n# Later heading"),
    )
    assert told.untold == ("instructions",)


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
        ('title = "x"\nconsent_file = "../outside.md"', "lies outside the folder"),
        ('title = "x"\nconsent_file = "/etc/hostname"', "lies outside the folder"),
        ('title = "x"\nconsent_file = "link.md"', "lies outside the folder"),
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
def test_a_file_that_is_wrong_is_named_with_what_to_do(
    text: str, said: str, write: Write, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    write("outside.md", "secret")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "latin.md").write_bytes(b"ab\xe9")
    for name, content in (
        ("empty.md", ""),
        ("p.md", "x"),
        ("long.md", "x" * (LONGEST_TEXT + 1)),
        ("vast.md", "x" * 1_000_001),
    ):
        write(f"study/{name}", content)
    path = write("study/study.toml", text)
    with pytest.raises(BadFile, match=said) as told:
        read_description(path)
    assert str(told.value).startswith(f"{path}: ")
    assert "\n" not in str(told.value)
    assert "secret" not in str(told.value)


def test_a_description_that_no_browser_should_get_is_refused() -> None:
    pages = tuple(GuidelinePage(str(n), "x" * LONGEST_TEXT) for n in range(9))
    with pytest.raises(BadInput, match="characters in all; at most 400000"):
        replace(TOLD, guideline=pages)


def test_a_page_is_named_by_its_first_line_only_if_that_is_a_heading() -> None:
    assert guideline_page("a.md", b"# One\ntext") == GuidelinePage("One", "text")
    assert guideline_page("b-side.md", b"## Two\ntext") == GuidelinePage("b side", "## Two\ntext")
    with pytest.raises(BadFile, match=r"^c\.md: guideline page One: is empty"):
        guideline_page("c.md", b"# One\n")
