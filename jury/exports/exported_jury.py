"""The exported jury at work: its settings, how every juror is asked over HTTP, and its verdicts.

Pure: this module travels with the exports and needs the standard library only. What is sent and how
answers are read are the modules that a run uses itself; this one makes the requests.
"""

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import Message as Headers
from http.client import HTTPException
from pathlib import Path
from typing import Any

from data.calls import Status
from data.card import Card
from data.question import Word, json_schema, render, scale_text
from jury.api_protocols import (
    CHAT_PATH,
    LIMIT_NAMES,
    MESSAGES_PATH,
    MESSAGES_VERSION,
    chat_body,
    chat_settings,
    limit_name,
    messages_body,
    read_chat,
    read_message,
    refused_parameter,
)
from jury.asking import (
    NO_TEXT,
    FormFallback,
    Patience,
    Turns,
    first_question,
    retry_question,
    with_retry,
)
from jury.call import NO_CONNECTION, Answer, Call, Form
from jury.http_answers import http_failure
from jury.parse import ParsedAnswer, read_answer, storable

FORMAT, FORMAT_VERSION = "medjury-jury", 1


@dataclass(frozen=True, slots=True)
class ExportedScale:
    """Whole-number points from min to max, both included."""

    min: int
    max: int

    @property
    def points(self) -> range:
        """All points of the scale."""
        return range(self.min, self.max + 1)

    def __str__(self) -> str:
        return scale_text(self.min, self.max)


@dataclass(frozen=True, slots=True)
class ExportedCriterion:
    """One thing to rate."""

    name: str
    question: str
    anchors: Mapping[int, str]
    guidance: str = ""


@dataclass(frozen=True, slots=True)
class ExportedExample:
    """A response that clinicians have rated, which jurors are shown."""

    context: str
    prompt: str
    response: str
    scores: Mapping[str, Sequence[float]]
    why: str = ""


@dataclass(frozen=True, slots=True)
class ExportedRubric:
    """A rubric as far as a juror is asked with it; `body` is all of it, `sha256` its hash."""

    name: str
    prompt: str
    scale: ExportedScale
    criterion: tuple[ExportedCriterion, ...]
    body: Mapping[str, Any]
    sha256: str
    example: tuple[ExportedExample, ...] = ()

    @property
    def criteria(self) -> tuple[str, ...]:
        """Names of the criteria, in the order they are rated."""
        return tuple(criterion.name for criterion in self.criterion)

    @property
    def word(self) -> Word:
        """What a juror writes beside a score."""
        return "explanation"


@dataclass(frozen=True, slots=True)
class ExportedJuror:
    """How a juror is asked; the name of its key's variable, never the key.

    Attributes
    ----------
    forms
        The forms of answer its endpoint may know, in the order in which they are tried.
    own
        Whether the host is OpenAI's own, which is told to keep no text.
    profile
        What the study knows the juror by.
    """

    name: str
    family: str
    provider: str
    model: str
    base_url: str
    api_key_env: str
    temperature: float | None
    max_tokens: int
    effort: str | None
    forms: tuple[Form, ...]
    own: bool
    profile: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JurySettings:
    """A jury with its rubric; `study` is the hash of the record's first event, "" if there is none."""

    rubric: ExportedRubric
    jurors: tuple[ExportedJuror, ...]
    status: str
    study: str

    def origin(self) -> dict[str, Any]:
        """Return the ids that travel with every verdict, so that it can rejoin its study."""
        rubric = {"rubric": self.rubric.name, "rubric_sha256": self.rubric.sha256}
        return {"format": FORMAT, "format_version": FORMAT_VERSION, "study": self.study, **rubric}


def read_settings(path: Path) -> JurySettings:
    """Read the file that an export wrote."""
    body = json.loads(path.read_text("utf-8"))
    jurors = tuple(
        ExportedJuror(**juror | {"forms": tuple(juror["forms"])}) for juror in body["jurors"]
    )
    rubric = rubric_of(body["rubric"], body["rubric_sha256"])
    return JurySettings(rubric, jurors, body["status"], body["study"])


def rubric_of(body: Mapping[str, Any], sha256: str) -> ExportedRubric:
    """Return a rubric out of its canonical JSON."""
    criteria = tuple(
        ExportedCriterion(
            criterion["name"],
            criterion["question"],
            {int(point): words for point, words in criterion["anchors"].items()},
            criterion.get("guidance", ""),
        )
        for criterion in body["criterion"]
    )
    scale = ExportedScale(body["scale"]["min"], body["scale"]["max"])
    examples = tuple(ExportedExample(**example) for example in body.get("example", ()))
    return ExportedRubric(body["name"], body["prompt"], scale, criteria, body, sha256, examples)


@dataclass(frozen=True, slots=True)
class JuryVerdict:
    """The readings of all jurors, by name. A juror without a reply leaves the jury without scores."""

    settings: JurySettings
    readings: Mapping[str, ParsedAnswer]

    @property
    def rated(self) -> bool:
        """Whether every juror gave a whole verdict."""
        return all(reading.reply is not None for reading in self.readings.values())

    @property
    def scores(self) -> dict[str, float]:
        """Return the mean of all jurors on each criterion; empty, never zeros, where not rated."""
        replies = [
            reading.reply.scores for reading in self.readings.values() if reading.reply is not None
        ]
        if not self.rated:
            return {}
        criteria = self.settings.rubric.criteria
        return {name: sum(reply[name] for reply in replies) / len(replies) for name in criteria}

    @property
    def composite(self) -> float | None:
        """Return the mean over all criteria, None where not rated."""
        scores = self.scores
        return sum(scores.values()) / len(scores) if scores else None

    @property
    def reason(self) -> str:
        """Return who said what, or why there are no scores."""
        if not self.rated:
            failed = [
                f"{name}: {reading.reason or reading.status}"
                for name, reading in self.readings.items()
                if reading.reply is None
            ]
            return f"NOT RATED: {'; '.join(failed)}"
        scores = [
            f"{name} "
            + ", ".join(f"{key} {score:g}" for key, score in reading.reply.scores.items())
            for name, reading in self.readings.items()
            if reading.reply is not None
        ]
        return f"{'; '.join(scores)}; jury {self.settings.status} by medjury"

    def told(self) -> dict[str, Any]:
        """Return what goes along with the scores and what `medjury study import` reads: JSON values."""
        profiles = {juror.name: juror for juror in self.settings.jurors}
        jurors = {
            name: {"family": profiles[name].family, "profile": dict(profiles[name].profile)}
            | said(reading)
            for name, reading in self.readings.items()
        }
        return self.settings.origin() | {"jury": self.settings.status, "jurors": jurors}


def said(reading: ParsedAnswer) -> dict[str, Any]:
    """Return a reading as JSON values."""
    body: dict[str, Any] = {"status": Status(reading.status).value}
    if reading.reply is None:
        return body | {"reason": storable(reading.reason)}
    return body | {
        "scores": dict(reading.reply.scores),
        "explanations": dict(reading.reply.comments),
    }


TIMEOUT_SECONDS = 300.0
PATIENCE = Patience()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Texts and keys go to the juror's own address only."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENERS = {
    "https": urllib.request.build_opener(_NoRedirect),  # a proxy cannot read what it carries
    "http": urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({})),
}


class JurorLine:
    """One juror's endpoint, and what was learnt of it."""

    def __init__(self, juror: ExportedJuror, patience: Patience = PATIENCE) -> None:
        self.juror, self.patience = juror, patience
        self.fallback = FormFallback(juror.forms)
        self.unsupported: tuple[str, ...] = ()

    def verdict(self, rubric: ExportedRubric, prompt: str) -> ParsedAnswer:
        """Return what the juror says to a prompt; an unusable answer is asked for once more."""
        talk = _Talk(self, json_schema(rubric))
        turns = first_question(prompt)
        answer = talk.answer(turns)
        reading = read_answer(answer, rubric)
        if answer.status != Status.OK or reading.status == Status.OK:
            return reading
        turns = with_retry(turns, answer.text, retry_question(reading.reason, rubric.scale))
        return read_answer(talk.answer(turns), rubric)

    def complete(self, call: Call) -> Answer:
        """Return how one request ended; one refused for a parameter's name is made once more."""
        sent = self.body(call)
        answer = self._request(sent)
        name = refused_parameter(answer, sent) if self._speaks_chat else ""
        if not name:
            return answer
        self.unsupported = (*self.unsupported, name)
        if set(LIMIT_NAMES) <= set(self.unsupported):
            return answer
        return self._request(self.body(call))

    def body(self, call: Call) -> dict[str, Any]:
        """Return a request as it travels."""
        if not self._speaks_chat:
            return messages_body(self.juror, call)
        own = self.juror.own and "store" not in self.unsupported
        limit = limit_name(newest=self.juror.own, unsupported=self.unsupported)
        named = chat_settings(self.juror, model=self.juror.model, limit=limit, store=not own)
        return chat_body(call, named)

    @property
    def _speaks_chat(self) -> bool:
        return self.juror.provider != "anthropic"

    def _request(self, body: dict[str, Any]) -> Answer:
        """Send one request; every way it can end is an answer."""
        variable = self.juror.api_key_env
        key = os.environ.get(variable, "") if variable else "none"
        if not key:
            reason = f"the environment variable {variable} is not set"
            return Answer(Status.AUTH, reason, unsent=True)
        path = CHAT_PATH if self._speaks_chat else MESSAGES_PATH
        url = self.juror.base_url.rstrip("/") + path
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        request = urllib.request.Request(  # noqa: S310 - the panel's own address
            url, text.encode("utf-8", "replace"), self._headers(key)
        )
        try:
            opener = _OPENERS[request.type]
            with opener.open(request, timeout=TIMEOUT_SECONDS) as reply:
                return self._read(reply.read().decode("utf-8", "replace"), reply.headers)
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8", "replace")
            return http_failure(error.code, _lower(error.headers), text)
        except TimeoutError:
            reason = f"no answer within {TIMEOUT_SECONDS:g} s"
            return Answer(Status.TIMEOUT, reason, transient=True)
        except (OSError, HTTPException) as error:
            reason = f"{NO_CONNECTION}: {type(error).__name__}"
            return Answer(Status.REQUEST_FAILED, reason, transient=True)

    def _headers(self, key: str) -> dict[str, str]:
        own = {"Content-Type": "application/json"}
        if self._speaks_chat:
            return own | {"Authorization": f"Bearer {key}"}
        return own | {"x-api-key": key, "anthropic-version": MESSAGES_VERSION}

    def _read(self, text: str, headers: Headers) -> Answer:
        read = read_chat if self._speaks_chat else read_message
        return read(text, _lower(headers))


def _lower(headers: Headers) -> dict[str, str]:
    """Return headers by their names in small letters, as they are looked up."""
    return {name.lower(): value for name, value in headers.items()}


class _Talk:
    """One conversation with a juror, and how far its patience has been used."""

    def __init__(self, line: JurorLine, schema: dict[str, Any]) -> None:
        self.line, self.schema = line, schema
        self.tries = self.failures_here = 0
        self.form = line.fallback.form

    def answer(self, turns: Turns) -> Answer:
        """Return the answer to what was said last; failures that may pass are borne for a while."""
        while True:
            answer = self.line.complete(Call(turns, self.schema, self.form))
            if answer.http == 200 and not answer.transient:
                self.line.fallback.works(self.form)
                return answer
            seconds = self._wait(answer)
            if seconds is None:
                return answer
            time.sleep(seconds)

    def _wait(self, answer: Answer) -> float | None:
        """Return the seconds until the request is made again, None to give up."""
        self.tries += 1
        self.failures_here += 1
        if lower := self.line.fallback.below(self.form, answer, self.failures_here):
            self.form, self.failures_here = lower, 0
            return 0.0
        patience = self.line.patience
        seconds = patience.wait(self.tries, answer.retry_after)
        over = self.tries >= patience.tries or seconds > patience.bound
        return None if over or not answer.transient else seconds


class Jury:
    """All jurors of an export; `rate` asks them about a response."""

    def __init__(self, settings: JurySettings, patience: Patience = PATIENCE) -> None:
        self.settings = settings
        self.lines = {juror.name: JurorLine(juror, patience) for juror in settings.jurors}

    @classmethod
    def beside(cls, program: str) -> "Jury":
        """Return the jury whose settings lie beside a program."""
        return cls(read_settings(Path(program).with_name("medjury_jury.json")))

    def question(self, card: Card) -> str:
        """Return the prompt about a response, as a run sends it."""
        return render(self.settings.rubric, card)

    def rate(self, card: Card) -> JuryVerdict:
        """Return what all jurors say of a response."""
        if not card.response.strip():
            return self.unasked(Status.EMPTY_RESPONSE, NO_TEXT)
        rubric, prompt = self.settings.rubric, self.question(card)
        with ThreadPoolExecutor(len(self.lines)) as pool:
            answers = pool.map(lambda line: line.verdict(rubric, prompt), self.lines.values())
            readings = dict(zip(self.lines, answers, strict=True))
        return JuryVerdict(self.settings, readings)

    def unasked(self, status: Status, reason: str) -> JuryVerdict:
        """Return the verdict of a jury that was not asked at all."""
        return JuryVerdict(self.settings, dict.fromkeys(self.lines, ParsedAnswer(status, reason)))
