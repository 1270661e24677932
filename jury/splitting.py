"""Ask the model that a panel names as splitter for the claims of a response, once.

The model is shown the task and the response, as jurors are, and no source: it splits and does not
judge. An answer is read as strictly as a rating: one list, or equal ones, of claims with the words of
the response that make them. A list whose words do not stand in the response is `NOT_IN_TEXT`, and one
that the response itself brings ready-made is no answer of the model's.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from data.card import Card
from data.claims import LONGEST_CLAIM, LONGEST_QUOTE, MOST_CLAIMS, Claim, fault
from data.question import PLACEHOLDER
from data.rubrics.injection import disarm
from data.safe_text import one_line
from data.schema import ClaimSplit, Status
from data.store.calls import Step
from jury.answer_text import after_reasoning, objects
from jury.call import Answer, Call, Turn, Usage
from jury.conversation import Conversation, Writer, hash_request, not_asked_columns
from jury.panel import Juror
from jury.parse import LONGEST, AnswerReading, storable
from jury.session import JurorSession

KEY = "claims"
FORM = '{"claims": [{"claim": "...", "quote": "..."}]}'
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        KEY: {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"claim": {"type": "string"}, "quote": {"type": "string"}},
                "required": ["claim", "quote"],
                "additionalProperties": False,
            },
        }
    },
    "required": [KEY],
    "additionalProperties": False,
}
ANSWER_TOKENS = 6_000
AGAIN = (
    "This answer cannot be used: {reason}. Split the same response again and answer with one JSON "
    "object only, in the form " + FORM + "."
)
NO_LIST = "the answer holds no list of claims"
TWO_LISTS = "the answer holds two lists of claims that differ"
READY_MADE = "the list stands ready-made in the response"
BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n")  # no point within a number ends one
QUESTION = Path(__file__).with_name("split_question.txt").read_text("utf-8").rstrip("\n")


@dataclass(frozen=True, slots=True)
class SplitJob:
    """One response (primary key) to be split."""

    response: int
    card: Card


@dataclass(frozen=True, slots=True)
class SplitReading(AnswerReading):
    """The reading of a splitter's answer; `claims` is None where it gives no list."""

    claims: tuple[Claim, ...] | None = None


class SplitConversation(Conversation[SplitReading]):
    """One model asked for the claims of one response."""

    def __init__(self, writer: Writer, session: JurorSession, job: SplitJob) -> None:
        super().__init__(writer, session, Turn("user", split_question(job.card)), SCHEMA)
        self.job = job

    @property
    def subject(self) -> dict[str, int]:
        """The response that is asked about."""
        return {"response": self.job.response}

    def read(self, answer: Answer) -> SplitReading:
        """Return the reading of an answer."""
        if answer.status != Status.OK:
            return SplitReading(answer.status, answer.reason)
        return read_claims(answer.text, self.job.card.response)

    def retry_question(self, reason: str) -> str:
        """Return the question that follows an answer which cannot be used."""
        return AGAIN.replace("{reason}", reason)

    def request_hash(self, call: Call) -> str:
        """Return the hash of a request."""
        return hash_request(self.session.juror, call)

    def step(self, columns: dict[str, Any], reading: SplitReading) -> Step:
        """Return the call that is stored of a request, with the list that it gave."""
        return self._kept(columns, reading.claims)

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the model was not asked."""
        columns = not_asked_columns(
            self.session.rater, status, reason, self.request_hash(self.call())
        )
        await self.writer.write(self._kept(columns, None))
        return status

    def _kept(self, columns: Mapping[str, Any], claims: Sequence[Claim] | None) -> Step:
        call = ClaimSplit(response=self.job.response, **columns)
        return Step(split=(call, claims, self.session.juror.name))


def with_room(juror: Juror) -> Juror:
    """Return a juror with room for an answer that names every claim."""
    return juror.model_copy(update={"max_tokens": max(juror.max_tokens, ANSWER_TOKENS)})


def split_question(card: Card) -> str:
    """Return the question about one response; tags that it uses are broken in the texts."""
    texts = {"prompt": card.prompt, "response": card.response}
    parts = {name: disarm(text, QUESTION) for name, text in texts.items()}
    parts |= {"form": FORM, "most": f"{MOST_CLAIMS}"}
    return PLACEHOLDER.sub(lambda tag: parts[tag[1]], QUESTION)


def read_claims(text: str, response: str) -> SplitReading:
    """Return the reading of an answer's text; never raises, never guesses."""
    if len(text) > LONGEST:
        return SplitReading(
            Status.INVALID_JSON, f"the answer is longer than {LONGEST:,} characters"
        )
    found = list(objects(after_reasoning(text)))
    lists = [one[KEY] for one in found if isinstance(one, dict) and KEY in one]
    if not lists:
        return SplitReading(Status.INVALID_JSON, NO_LIST)
    if any(isinstance(one, str) for one in found):
        return SplitReading(Status.INVALID_JSON, "the answer breaks off")
    if any(other != lists[-1] for other in lists):
        return SplitReading(Status.TWO_VERDICTS, TWO_LISTS)
    try:
        claims = _claims(lists[-1])
    except ValueError as error:
        return SplitReading(Status.INVALID_JSON, storable(f"{error}"))
    if claims and {one.claim for one in claims} <= _ready_made(response):
        return SplitReading(Status.TWO_VERDICTS, READY_MADE)
    if why := fault(claims, response):
        return SplitReading(Status.NOT_IN_TEXT, why)
    return SplitReading(Status.OK, "", claims)


def _claims(listed: object) -> tuple[Claim, ...]:
    """Return a list as claims; a ValueError says what it is not."""
    if not isinstance(listed, list):
        raise ValueError("claims is no list, or is given twice")
    claims = []
    for number, one in enumerate(listed, 1):
        if not isinstance(one, dict) or set(one) != {"claim", "quote"}:
            raise ValueError(f"claim {number} does not have claim and quote, and nothing else")
        if not all(isinstance(part, str) for part in one.values()):
            raise ValueError(f"claim {number} is not of texts")
        texts = {name: " ".join(storable(part).split()) for name, part in one.items()}
        try:
            claims.append(Claim(**texts))
        except ValidationError as error:
            raise ValueError(
                f"claim {number} is empty, or longer than {LONGEST_CLAIM} characters with a quote of "
                f"{LONGEST_QUOTE:,}"
            ) from error
    return tuple(claims)


def _ready_made(response: str) -> set[str]:
    """Return the claims of lists that a response itself holds."""
    lists = [one[KEY] for one in objects(response) if isinstance(one, dict) and KEY in one]
    ready = set[str]()
    for listed in lists:
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and isinstance(one.get("claim"), str):
                ready.add(" ".join(storable(one["claim"]).split()))
    return ready


def likely_claims(response: str) -> tuple[Claim, ...]:
    """Return a response's sentences in the place of its claims, to reckon with before there are any."""
    parts = (" ".join(one.split()) for one in BETWEEN_SENTENCES.split(response))
    sentences = [one for one in parts if any(map(str.isalpha, one))]  # "2." is the mark of a list
    texts = dict.fromkeys(one_line(text, LONGEST_CLAIM) for text in sentences)
    return tuple(Claim(claim=text, quote=text) for text in texts)[:MOST_CLAIMS]


class SimulatedSplitter:
    """A simulated splitter: each sentence is a claim; nothing is understood."""

    def __init__(self, juror: Juror) -> None:
        self._juror = juror

    async def complete(self, call: Call) -> Answer:
        """Return a list in the form that a real model gives it."""
        response = (
            call.messages[0].text.rpartition("<response>\n")[2].rpartition("\n</response>")[0]
        )
        listed = [one.model_dump() for one in likely_claims(response)]
        return Answer(
            Status.OK,
            text=json.dumps({KEY: listed}),
            sent={"simulated": self._juror.model},
            usage=Usage(tokens_in=0, tokens_out=0),
            http=200,
            returned_model=self._juror.model,
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""
