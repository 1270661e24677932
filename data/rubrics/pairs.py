"""Pairs of answers to an invented case: a plainly good one, and the same made plainly dangerous.

They stand beside a rubric, in `pairs.toml`, and show whether a juror tells one from the other. Only
what makes the answer dangerous differs, so neither length nor style gives it away.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from data.card import Card
from data.errors import BadRubric
from data.files import NotToml, read_toml
from data.rubric import Name, Rubric, RubricPart, first_complaint, read_rubric
from data.rubrics import FOLDER, folder_of

FILE = "pairs.toml"
FEWEST = 5  # with fewer, whoever guesses passes too often
MADE_UP = "Made-up case, no real patient. "
Text = Annotated[str, Field(min_length=1)]
Danger = Literal[
    "wrong dose",
    "wrong drug",
    "wrong side",
    "wrong result",
    "wrong instruction",
    "red flag dismissed",
    "invented finding",
]


class AnswerPair(RubricPart):
    """A case with a good answer, and the replacements that make it dangerous.

    `criterion` is the one that the danger is about. All is invented.
    """

    name: Name
    danger: Danger
    criterion: Name
    context: Text
    task: Text
    good: Text
    wrong: tuple[tuple[Text, str], ...] = Field(min_length=1)
    reference: str | None = None

    @model_validator(mode="after")
    def _differs_by_words_that_are_there(self) -> Self:
        text = self.good
        for right, wrong in self.wrong:
            if right not in text:
                raise ValueError(f"wrong: {right[:60]!r} is not in the good answer")
            text = text.replace(right, wrong)
        if text == self.good:
            raise ValueError("wrong: changes nothing")
        return self

    @property
    def dangerous(self) -> str:
        """The good answer with the wrong words in it, wherever the right ones stand."""
        text = self.good
        for right, wrong in self.wrong:
            text = text.replace(right, wrong)
        return text

    def cards(self) -> tuple[Card, Card]:
        """Return the good and the dangerous answer as cards for a rater."""
        shown = MADE_UP + self.context, self.task
        good, dangerous = (
            Card("probe", *shown, response, self.reference)
            for response in (self.good, self.dangerous)
        )
        return good, dangerous


class RubricPairs(RubricPart):
    """A rubric with pairs of answers to rate on it."""

    rubric: Rubric
    pair: Annotated[tuple[AnswerPair, ...], Field(min_length=FEWEST)]

    @model_validator(mode="after")
    def _belong_to_the_rubric(self) -> Self:
        names = [pair.name for pair in self.pair]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two pairs are named {twice}")
        for pair in self.pair:
            if pair.criterion not in self.rubric.criteria:
                criteria = ", ".join(self.rubric.criteria)
                raise ValueError(
                    f"pair {pair.name}: criterion {pair.criterion}: the criteria are {criteria}"
                )
            if self.rubric.gold == "always" and not pair.reference:
                raise ValueError(f"pair {pair.name}: the rubric always shows a reference; give one")
        return self


def read_pairs(name_or_folder: str | Path) -> RubricPairs:
    """Read a rubric and its pairs, by the name of one that ships with medjury or from a folder.

    Raises
    ------
    Unknown
        If there is neither such a folder nor such a name; the message lists the names.
    BadRubric
        If the rubric is wrong, or its `pairs.toml` is missing or wrong.
    """
    rubric, path = read_rubric(name_or_folder), folder_of(name_or_folder) / FILE
    try:
        body: dict[str, Any] = read_toml(path)
        return RubricPairs.model_validate({**body, "rubric": rubric})
    except OSError as error:
        raise BadRubric(
            f"rubric {path.parent}: {FILE} {error.strerror}: without it a juror cannot be tried on "
            "this rubric; write one (docs/jury.md), or name another with --rubric"
        ) from error
    except NotToml as error:
        raise BadRubric(f"{path}: {error}") from error
    except ValidationError as error:
        raise BadRubric(f"{path}: {first_complaint(error.errors())}") from error


def with_pairs() -> list[str]:
    """Return the names of the shipped rubrics that have pairs."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{FILE}"))
