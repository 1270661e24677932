"""The description of a study that clinicians read, from files of limited size."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from data.errors import BadFile, BadInput
from data.files import MOST_BYTES, read_user_toml
from data.safe_text import short

TEXTS = ("purpose", "responsible", "contact", "instructions", "consent")  # as they are shown
GUIDELINE = "guideline"
LONGEST_TITLE = 200
LONGEST_TEXT = 50_000
MOST_PAGES = 30
LONGEST = 400_000  # characters of it all: every clinician's browser gets it
UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
HEADING = re.compile(r"#[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*(?:\n|\Z)")
# How a study keeps the hash of the text that is asked for consent to, and of what each agreed to.
CONSENT_TEXT = "consent_text"
CONSENT_OF = "consent:"


def consent_key(rater: int) -> str:
    """Return the name of the setting that holds a rater's consent."""
    return f"{CONSENT_OF}{rater}"


@dataclass(frozen=True, slots=True)
class GuidelinePage:
    """A page of the rating guideline: its title, and its text in Markdown."""

    title: str
    text: str

    def __post_init__(self) -> None:
        _check_title(f"{GUIDELINE} page", self.title)
        _check_text(f"{GUIDELINE} page {short(self.title)}", self.text)
        if not self.text.strip():
            raise BadInput(f"{GUIDELINE} page {short(self.title)}: is empty; write it, or leave it")


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a study; all texts but the titles are Markdown.

    Attributes
    ----------
    title
        One line; all else may be empty.
    responsible, contact
        Who answers for the study, and how to reach them.
    consent
        What clinicians agree to before they rate; they are not asked where it is empty.
    guideline
        Pages in the order in which they are offered, no two of the same title.

    Raises
    ------
    BadInput
        If there is no title, or something is too long or cannot be shown.
    """

    title: str
    purpose: str
    responsible: str
    contact: str
    consent: str
    instructions: str = ""
    guideline: tuple[GuidelinePage, ...] = ()

    def __post_init__(self) -> None:
        _check_title("title", self.title)
        for name in TEXTS:
            _check_text(name, getattr(self, name))
        if len(self.guideline) > MOST_PAGES:
            raise BadInput(f"{GUIDELINE}: has {len(self.guideline)} pages; at most {MOST_PAGES}")
        titles = [page.title.casefold() for page in self.guideline]
        for page in self.guideline:
            if titles.count(page.title.casefold()) > 1:
                raise BadInput(f"{GUIDELINE}: two pages have the title {short(page.title)}")
        if (length := len(self.to_json())) > LONGEST:
            raise BadInput(f"has {length} characters in all; at most {LONGEST} can be shown")

    @property
    def sha256(self) -> str:
        """SHA-256 of the whole description: 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def consent_sha256(self) -> str:
        """SHA-256 of the consent text; "" where there is none."""
        text = self.consent.strip()
        return hashlib.sha256(self.consent.encode()).hexdigest() if text else ""

    @property
    def untold(self) -> tuple[str, ...]:
        """Names of the texts that are empty."""
        empty = [name for name in TEXTS if not getattr(self, name).strip()]
        return (*empty, *([] if self.guideline else [GUIDELINE]))

    def to_json(self) -> str:
        """Return the canonical text that the hash is taken of and that a study stores."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    @lru_cache(maxsize=16)
    def from_json(cls, text: str) -> "Description":
        """Read back what `to_json` wrote; the same text is read once.

        Raises
        ------
        BadInput
            If it is something else.
        """
        try:
            body = json.loads(text)
            pages = tuple(GuidelinePage(**page) for page in body.pop(GUIDELINE))
            return cls(**body, guideline=pages)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise BadInput("a description of the study cannot be read: set it again") from error


def read_description(path: Path) -> Description:
    """Read a description from a TOML file and the files it names.

    A text stands in the file itself (`consent = "..."`), or is named by its path from there
    (`consent_file = "consent.md"`); `guideline` lists Markdown files, a page each.

    Raises
    ------
    BadFile
        If it, or a file it names, cannot be read or used; says which and what to do.
    """
    body = read_user_toml(path, f"{path}")
    try:
        return _description(body, path.parent)
    except BadInput as error:
        raise BadFile(f"{path}: {error}; nothing was stored") from error


def guideline_page(name: str, content: bytes) -> GuidelinePage:
    """Return a Markdown file as a page: its first heading, else its name, is the title.

    Raises
    ------
    BadFile
        If it is not text in UTF-8, is empty or too long.
    """
    text = clean(_decoded(name, content))
    heading = HEADING.match(text)
    title = heading[1] if heading else re.sub(r"[_\s-]+", " ", Path(name).stem)
    try:
        return GuidelinePage(_one_line(title), text[heading.end() :].strip() if heading else text)
    except BadInput as error:
        raise BadFile(f"{short(name)}: {error}") from error


def clean(text: str) -> str:
    """Return a text with line ends of one kind and no blanks around it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _description(body: Mapping[str, Any], folder: Path) -> Description:
    """Return the description that a table of TOML holds."""
    keys = ["title", *TEXTS, *(f"{name}_file" for name in TEXTS), GUIDELINE]
    if unknown := [key for key in body if key not in keys]:
        raise BadInput(f"{short(unknown[0])}: is no key of it; the keys are {', '.join(keys)}")
    if "title" not in body:
        raise BadInput('title: is missing; write title = "..."')
    texts = {}
    for name in TEXTS:
        file = f"{name}_file"
        if name in body and file in body:
            raise BadInput(f"{name}: is there twice, also as {file}; leave one of them")
        text = _string(name, body.get(name, ""))
        if file in body:
            path = _string(file, body[file])
            text = _decoded(path, _bytes(path, folder))
        texts[name] = clean(text)
    names = body.get(GUIDELINE, [])
    if not isinstance(names, list):
        raise BadInput(f'{GUIDELINE}: must be a list of files, such as ["scores.md"]')
    if len(names) > MOST_PAGES:
        raise BadInput(f"{GUIDELINE}: has {len(names)} pages; at most {MOST_PAGES}")
    files = [_string(GUIDELINE, given) for given in names]
    pages = [guideline_page(Path(name).name, _bytes(name, folder)) for name in files]
    return Description(_one_line(_string("title", body["title"])), **texts, guideline=tuple(pages))


def _string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{name}: must be a text in quotes")
    return value


def _bytes(name: str, folder: Path) -> bytes:
    """Return a file's content; only from the folder of the description, or below it."""
    root = Path(os.path.realpath(folder))
    path = Path(os.path.realpath(root / name)) if name.isprintable() else root
    if not path.is_relative_to(root):
        raise BadInput(f"{short(name)}: lies outside the folder of this file; put it there")
    try:  # a name may be too long to be asked for
        if not path.is_file():
            raise BadInput(f"{short(name)}: there is no such file beside this one")
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"{short(name)}: has over {MOST_BYTES} bytes; shorten it")
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{short(name)}: {error.strerror}") from error


def _decoded(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"not text in UTF-8 at byte {error.start + 1}; save it as UTF-8"
        raise BadFile(f"{short(name)}: {why}") from error


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _check_title(name: str, title: object) -> None:
    if not isinstance(title, str) or not title.strip():
        raise BadInput(f"{name}: has no title; give one")
    if len(title) > LONGEST_TITLE:
        raise BadInput(f"{name}: its title has {len(title)} characters; at most {LONGEST_TITLE}")
    if not title.isprintable():
        raise BadInput(f"{name}: its title must be one line of visible characters")


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise BadInput(f"{name}: must be a text")
    if len(text) > LONGEST_TEXT:
        raise BadInput(f"{name}: has {len(text)} characters; at most {LONGEST_TEXT}")
    if unfit := UNFIT.search(text):
        line = text.count("\n", 0, unfit.start()) + 1
        raise BadInput(
            f"{name}: line {line} has a sign that cannot be shown (U+{ord(unfit[0]):04X}); delete it"
        )
