"""Claims: the single statements of one response, each of which a juror judges against its source.

A model that a panel names as splitter makes a list of a response once; people may correct it. The list
becomes a rubric of the response's own, as points of a case do: a criterion a claim, with the answers
`SUPPORTED`, `CONTRADICTED` and `ABSENT` as its scale. So claims are asked, stored and sealed as criteria
are. What a juror's answers come to by a `Formula` is its score on one criterion of the benchmark's rubric.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from data.card import Card
from data.errors import BadInput, BadRubric
from data.rubric import Claimed, Criterion, Rubric, RubricPart, Scale, first_complaint
from data.rubrics.injection import disarm
from data.safe_text import one_line

FOLDER = Path(__file__).with_name("claims_of_response")
CLAIMS = "claims"  # the key of a juror's profile that says what it derives from claims
SUPPORTED, CONTRADICTED, ABSENT = 1, 2, 3
ANSWERS = {
    SUPPORTED: "Supported: the material states it, or it follows without doubt",
    CONTRADICTED: "Contradicted: the material says otherwise",
    ABSENT: "Not in the source: the material neither states nor contradicts it",
}
DECIDED = (SUPPORTED, CONTRADICTED)  # answers for which the words that decide are quoted
NAME = "claim_"
MOST_CLAIMS = 60  # of a response: the form takes 64 entries
LONGEST_CLAIM, LONGEST_QUOTE = 500, 2_000  # characters
REFERENCE_PART = re.compile(r"<reference>\n.*?</reference>\n", re.DOTALL)
WITH_REFERENCE, WITHOUT_REFERENCE = "context, the task or the reference", "context or the task"
WORD = re.compile(r"\w+")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
GAP = re.compile(r"\.\.\.+|\u2026|\[\.\.\.\]")


class Claim(RubricPart):
    """One statement that can be checked, and the words of the response that make it."""

    claim: Annotated[str, Field(min_length=1, max_length=LONGEST_CLAIM)]
    quote: Annotated[str, Field(min_length=1, max_length=LONGEST_QUOTE)]


@dataclass(frozen=True, slots=True)
class Formula:
    """What answers on claims come to, as a score on a scale.

    Attributes
    ----------
    name
        As a panel writes it.
    contradicted, absent
        What a claim so answered loses: shares of a claim, or points of the scale.
    is_share
        Whether the loss is of all claims together, or of the scale's top.
    """

    name: str
    contradicted: float
    absent: float
    is_share: bool

    def score(self, low: int, high: int, answers: Sequence[float]) -> float | None:
        """Return the score of a response on a scale from `low` to `high`.

        Parameters
        ----------
        answers : of one juror, `SUPPORTED`, `CONTRADICTED` or `ABSENT` for each claim

        Returns
        -------
        float or None
            With n claims and a loss L (the sum over claims): high - (high - low) L / n where the loss
            is a share, else high - L, and `low` where that is less. None without claims.
        """
        if not answers:
            return None
        lost = self.contradicted * answers.count(CONTRADICTED) + self.absent * answers.count(ABSENT)
        if self.is_share:
            return high - (high - low) * lost / len(answers)
        return max(float(low), high - lost)


FORMULAS: Mapping[str, Formula] = {
    formula.name: formula
    for formula in (
        Formula("share", contradicted=1.0, absent=1.0, is_share=True),
        Formula("points", contradicted=1.0, absent=0.5, is_share=False),
    )
}


def claims_rubric(
    benchmark: Rubric, criterion: str, formula: str, claims: Sequence[Claim]
) -> Rubric:
    """Return the rubric of one response: a criterion for each of its claims.

    The reference is shown where the benchmark's rubric shows one. Tags of the prompt are broken in
    the claims, which a model wrote with the response before it.

    Raises
    ------
    BadInput
        If the benchmark's rubric has no such criterion, or there are no claims.
    """
    refuse_criterion(benchmark, criterion)
    prompt = _prompt(benchmark)
    body: dict[str, Any] = {
        "name": f"claims_of_{criterion}"[:64],
        "version": "1",
        "audience": benchmark.audience,
        "gold": benchmark.gold,
        "scale": Scale(min=SUPPORTED, max=ABSENT),
        "criterion": [
            Criterion(
                name=f"{NAME}{number}",
                question=disarm(one_line(one.claim, LONGEST_CLAIM), prompt),
                anchors=dict(ANSWERS),
                quote=one.quote,
            )
            for number, one in enumerate(claims, 1)
        ],
        "prompt": prompt,
        "claims": Claimed(
            rubric=benchmark.sha256,
            criterion=criterion,
            formula=formula,
            min=benchmark.scale.min,
            max=benchmark.scale.max,
        ),
    }
    try:
        return Rubric(**body)
    except ValidationError as error:
        raise BadInput(f"claims: {first_complaint(error.errors())}") from error


def refuse_criterion(rubric: Rubric, criterion: str) -> None:
    """Raise BadRubric if no score of a rubric can be derived from claims on this criterion."""
    if rubric.points is not None:
        raise BadRubric(
            f"rubric {rubric.name}: is of points of the case, whose score is not derived from claims"
        )
    if criterion not in rubric.criteria:
        raise BadRubric(
            f"rubric {rubric.name}: has no criterion {criterion!r} to derive from claims; it has "
            + ", ".join(rubric.criteria)
        )


def claims_score(rubric: Rubric, answers: Mapping[str, float]) -> float | None:
    """Return what a juror's answers on a response's claims come to, on the benchmark's scale.

    None where a claim has no answer: nothing is guessed.
    """
    claimed = rubric.claims
    given = [answers[name] for name in rubric.criteria if name in answers]
    if claimed is None or len(given) < len(rubric.criteria):
        return None
    return FORMULAS[claimed.formula].score(claimed.min, claimed.max, given)


def stands_in(quote: str, text: str) -> bool:
    """Tell whether the words of a quote stand in a text, one after another.

    Signs between words, their case and their forms in Unicode are not compared. Where dots leave
    something out, each piece must stand there, in that order.
    """
    words = _words(text)
    at = 0
    pieces = [piece for part in GAP.split(quote) if (piece := _words(part).strip())]
    for piece in pieces:
        found = words.find(f" {piece} ", at)
        if found < 0:
            return False
        at = found + len(piece) + 1
    return bool(pieces)


def fault(claims: Sequence[Claim], response: str) -> str:
    """Return why a list cannot be one of this response, "" if it can; no word of either is in it."""
    if len(claims) > MOST_CLAIMS:
        return f"there are {len(claims)} claims, and a response has at most {MOST_CLAIMS}"
    seen: dict[str, int] = {}
    numbers = set(NUMBER.findall(unicodedata.normalize("NFKC", response)))
    for number, one in enumerate(claims, 1):
        words = _words(one.claim)
        if not words.strip():
            return f"claim {number} says nothing"
        if words in seen:
            return f"claim {number} says the same as claim {seen[words]}"
        seen[words] = number
        if not stands_in(one.quote, response):
            return f"claim {number}: the words it quotes do not stand in the response"
        if not set(NUMBER.findall(unicodedata.normalize("NFKC", one.claim))) <= numbers:
            return f"claim {number}: has a number that does not stand in the response"
    return ""


def coverage(claims: Sequence[Claim], response: str) -> float:
    """Return the share of a response's words, 0 to 1, that stand in what its claims quote."""
    words, told = _words(response), set[int]()
    for one in claims:
        for part in GAP.split(one.quote):
            piece = _words(part).strip()
            at = words.find(f" {piece} ") if piece else -1
            if at >= 0:
                first = words.count(" ", 0, at + 1) - 1
                told.update(range(first, first + piece.count(" ") + 1))
    total = len(words.split())
    return len(told) / total if total else 0.0


def unfounded(
    rubric: Rubric, answers: Mapping[str, float], said: Mapping[str, str], card: Card
) -> str:
    """Return the first claim whose answer quotes no words of the material, "" if all do.

    The material is the source, the task and, where the rubric shows it, the reference.
    """
    material = "\n".join(filter(None, (card.context, card.prompt, card.reference)))
    for name in rubric.criteria:
        if answers.get(name) in DECIDED and not stands_in(said.get(name, ""), material):
            return name
    return ""


def _prompt(benchmark: Rubric) -> str:
    prompt = (FOLDER / "prompt.txt").read_text("utf-8")
    if benchmark.gold == "never":
        return REFERENCE_PART.sub("", prompt).replace(WITH_REFERENCE, WITHOUT_REFERENCE)
    return prompt


def _words(text: str) -> str:
    """Return the words of a text with one blank between, before and after them."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return f" {' '.join(WORD.findall(plain))} "
