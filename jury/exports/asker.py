"""The exported jury at work: asks every juror over HTTP as a run does, with the standard library.

Pure: this module travels with the exports. What is sent and how answers are read are the modules
that a run uses itself; this one makes the requests.
"""

import json
import os
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from email.message import Message as Headers
from http.client import HTTPException
from pathlib import Path
from typing import Any

from data.calls import Status
from data.card import Card
from data.question import json_schema, render
from jury import chat_completions, messages_api
from jury.asking import (
    NO_TEXT,
    FormFallback,
    Patience,
    Turns,
    first_question,
    retry_question,
    with_retry,
)
from jury.call import NO_CONNECTION, Answer, Call
from jury.exports.settings import ExportedJuror, ExportedRubric, JurySettings, read_settings
from jury.exports.verdicts import JuryVerdict
from jury.http_answers import http_failure
from jury.parse import ParsedAnswer, read_answer

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
        name = chat_completions.learnt(answer, sent) if self._speaks_chat else ""
        if not name:
            return answer
        self.unsupported = (*self.unsupported, name)
        if set(chat_completions.LIMITS) <= set(self.unsupported):
            return answer
        return self._request(self.body(call))

    def body(self, call: Call) -> dict[str, Any]:
        """Return a request as it travels."""
        if not self._speaks_chat:
            return messages_api.body(self.juror, call)
        own = self.juror.own and "store" not in self.unsupported
        limit = chat_completions.limit_name(newest=self.juror.own, unsupported=self.unsupported)
        named = chat_completions.settings(
            self.juror, model=self.juror.model, limit=limit, store=not own
        )
        return chat_completions.body(call, named)

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
        path = chat_completions.PATH if self._speaks_chat else messages_api.PATH
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
        return own | {"x-api-key": key, "anthropic-version": messages_api.VERSION}

    def _read(self, text: str, headers: Headers) -> Answer:
        read = chat_completions.read if self._speaks_chat else messages_api.read
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
        self.lines = {one.name: JurorLine(one, patience) for one in settings.jurors}

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
            found = pool.map(lambda line: line.verdict(rubric, prompt), self.lines.values())
            readings = dict(zip(self.lines, found, strict=True))
        return JuryVerdict(self.settings, readings)

    def unasked(self, status: Status, reason: str) -> JuryVerdict:
        """Return the verdict of a jury that was not asked at all."""
        return JuryVerdict(self.settings, dict.fromkeys(self.lines, ParsedAnswer(status, reason)))
