"""A jury of language models, asked as it was validated. It needs Python 3.11 and no package.

    from medjury_jury import Jury
    verdict = Jury().rate({"context": "", "prompt": "...", "response": "...", "reference": None})
    verdict.scores, verdict.composite, verdict.reason

Beside this file lie `medjury_reading.py`, medjury's own reader of answers, and `medjury_jury.json`, written
by `medjury share rubric`: what is asked, the jurors, and what is known of the jury. Jurors are sent what
medjury sends, and an answer is one JSON object of the asked form, or no verdict. Where one juror gives no
verdict, the jury has no scores.
"""

import json
import os
import re
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from jury.reading import Unreadable, read_verdict, storable

Texts = Mapping[str, str | None]  # context, prompt, response, reference, checklist
Turns = list[dict[str, str]]  # as both protocols have them: role and content
SETTINGS = Path(__file__).with_name("medjury_jury.json")
LONGEST_BODY = 2_000_000  # bytes
TRIES, FIRST_WAIT, LONGEST_WAIT, LONGEST_ASKED, TIMEOUT = 6, 0.5, 8.0, 120.0, 300.0  # seconds
LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class Jury:
    """All jurors of an export; `rate` asks them about a response."""

    def __init__(self, settings: Path = SETTINGS, first_wait: float = FIRST_WAIT) -> None:
        told = json.loads(settings.read_text("utf-8"))
        self.origin, self.status, self.rubric = told["origin"], told["status"], told["rubric"]
        self.question, self.form, self.servers = told["question"], told["form"], told["servers"]
        self.jurors = {one["name"]: Juror(one, self, first_wait) for one in told["jurors"]}

    @property
    def ends(self) -> tuple[int, int]:
        """The ends of the composite's scale: 0 and 1 where those of the criteria differ."""
        ends = {(one["min"], one["max"]) for one in self.form["criteria"].values()}
        return ends.pop() if len(ends) == 1 else (0, 1)

    def render(self, texts: Texts, form: str = "pieces") -> str:
        """Return the prompt about a response; what is inserted is never looked at again.

        With "shorter" it asks for no explanations; it is empty where none are asked for anyway.
        """
        missing, pieces = self.question["missing"], list(self.question[form])
        for place, name in enumerate(pieces[1::2]):
            text = texts.get(name)
            pieces[2 * place + 1] = missing.get(name, "") if text is None else self.disarm(text)
        return "".join(pieces)

    def disarm(self, text: str) -> str:
        """Return a text with the prompt's own tags broken, so that it can neither end nor forge a part."""
        tags = self.question["tags"]
        return re.sub(tags, "<~", text) if tags else text

    def rate(self, texts: Texts) -> "Verdict":
        """Return what all jurors say of a response."""
        if not (texts.get("response") or "").strip():
            return self.unasked()
        asked = (self.render(texts), self.render(texts, "shorter"))
        with ThreadPoolExecutor(len(self.jurors)) as pool:
            readings = pool.map(lambda juror: juror.verdict(*asked), self.jurors.values())
            return Verdict(self, dict(zip(self.jurors, readings, strict=True)))

    def unasked(self) -> "Verdict":
        """Return the verdict on a response without text, about which nobody is asked."""
        reading = Reading("empty_response", "the response has no text")
        return Verdict(self, dict.fromkeys(self.jurors, reading))


@dataclass(frozen=True, slots=True)
class Reading:
    """What a juror said: points of every criterion, or an answer in their place; or none and the reason."""

    status: str
    reason: str = ""
    scores: dict[str, float | str] = field(default_factory=dict)
    explanations: dict[str, str] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """Return it as JSON values."""
        if self.status != "ok":
            return {"status": self.status, "reason": storable(self.reason)}
        return {"status": "ok", "scores": self.scores, "explanations": self.explanations}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The readings of all jurors, by name. A juror without a verdict leaves the jury without scores."""

    jury: Jury
    readings: Mapping[str, Reading]

    @property
    def scores(self) -> dict[str, float]:
        """The mean of all jurors on each criterion that all of them scored; never zeros where not rated."""
        given = self.given
        points = {
            name: [one[name] for one in given] for name in self.jury.form["criteria"] if given
        }
        scored = {
            name: [one for one in own if not isinstance(one, str)] for name, own in points.items()
        }
        return {name: sum(own) / len(own) for name, own in scored.items() if len(own) == len(given)}

    @property
    def given(self) -> list[dict[str, float | str]]:
        """What each juror said, or nothing where one of them gave no verdict."""
        given = [one.scores for one in self.readings.values() if one.status == "ok"]
        return given if len(given) == len(self.readings) else []

    @property
    def composite(self) -> float | None:
        """The mean over jurors, of each over the criteria that apply; None where one of them has none.

        Where scales differ, points count as (score - min) / (max - min).
        """
        own = [self.composite_of(scores) for scores in self.given]
        known = [one for one in own if one is not None]
        return sum(known) / len(known) if known and len(known) == len(own) else None

    def composite_of(self, scores: Mapping[str, float | str]) -> float | None:
        """Return a juror's mean over the criteria that apply; None where it cannot tell one, or none does."""
        ends = {name: (one["min"], one["max"]) for name, one in self.jury.form["criteria"].items()}
        is_mixed = len({*ends.values()}) > 1
        if "cannot_tell" in scores.values():
            return None
        points = {name: one for name, one in scores.items() if not isinstance(one, str)}
        if is_mixed:
            points = {
                name: (one - ends[name][0]) / (ends[name][1] - ends[name][0])
                for name, one in points.items()
            }
        return sum(points.values()) / len(points) if points else None

    @property
    def reason(self) -> str:
        """Who said what, or why there are no scores."""
        said, failed = [], []
        for name, one in self.readings.items():
            points = ", ".join(
                f"{key} {score if isinstance(score, str) else f'{score:g}'}"
                for key, score in one.scores.items()
            )
            said.append(f"{name} {points}")
            failed += [] if one.status == "ok" else [f"{name}: {one.reason or one.status}"]
        rated = f"{'; '.join(said)}; jury {self.jury.status} by medjury"
        if failed or self.composite is None:
            return f"NOT RATED: {'; '.join(failed or said)}"
        return rated

    def told(self) -> dict[str, Any]:
        """Return what goes along with the scores, and what `medjury study import` reads."""
        jurors = {
            name: {key: self.jury.jurors[name].own[key] for key in ("family", "profile")}
            | reading.told()
            for name, reading in self.readings.items()
        }
        return {**self.jury.origin, "jury": self.jury.status, "jurors": jurors}


class Answer(NamedTuple):
    """How a request ended; `transient`, if the same one may succeed a little later."""

    status: str
    reason: str = ""
    text: str = ""
    http: int | None = None
    transient: bool = False
    retry_after: float | None = None
    tokens_in: int | None = None


class Question(NamedTuple):
    """A request to a juror, to be made after a wait in seconds."""

    turns: Turns
    form: str
    schema: str
    wait: float = 0.0


class _NoRedirect(HTTPRedirectHandler):
    """Texts and keys go to the juror's own address only."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENERS = {
    "https": build_opener(_NoRedirect),  # a proxy cannot read what it carries
    "http": build_opener(_NoRedirect, ProxyHandler({})),
}


class Juror:
    """One juror, and what was learnt of its endpoint: which form of answer and settings it knows."""

    def __init__(self, juror: Mapping[str, Any], jury: Jury, first_wait: float) -> None:
        self.own, self.jury, self.first_wait = juror, jury, first_wait
        self.is_chat = juror["provider"] != "anthropic"
        self.known_form, self.renamed = "", dict[str, str]()
        self.is_bounded = True  # whether the schema may bound the length of explanations

    @property
    def key(self) -> str:
        """The key, out of the environment; "" if it is not there."""
        variable = self.own["api_key_env"]
        return os.environ.get(variable, "") if variable else "none"

    def verdict(self, prompt: str, shorter: str = "") -> Reading:
        """Return what the juror says to a prompt."""
        talk = self.talk(prompt, shorter)
        try:
            question = next(talk)
            while True:
                time.sleep(question.wait)
                question = talk.send(self.complete(question))
        except StopIteration as end:
            reading: Reading = end.value
            return reading

    def talk(self, prompt: str, shorter: str = "") -> Generator[Question, Answer, Reading]:
        """Yield each request, take its answer, and return what the juror says.

        Other forms are tried where one is refused, failures that may pass are borne for a while, and
        an unusable answer is asked for once more: one that was cut off with the `shorter` prompt.
        """
        turns: Turns = [{"role": "user", "content": prompt}]
        schema, is_second = "schema", False
        form, wait, failures, in_this_form = self.known_form or self.own["forms"][0], 0.0, 0, 0
        while True:
            answer = yield Question(turns, form, schema, wait)
            reading = self._reading(answer, turns)
            if answer.http == 200 and not answer.transient:
                self.known_form = self.known_form or form
                if reading.status in ("ok", "cut") or is_second:
                    return reading
                if answer.status == "ok":
                    again = self.jury.question["again"].replace("{reason}", reading.reason)
                    quoted = storable(answer.text).strip() or "(no answer)"
                    turns = [*turns, {"role": "assistant", "content": quoted}]
                    turns = [*turns, {"role": "user", "content": again}]
                elif answer.status == "truncated" and answer.text.strip() and shorter:
                    turns, schema = [{"role": "user", "content": shorter}], "shorter"
                else:
                    return reading
                is_second, wait = True, 0.0
                continue
            failures, in_this_form = failures + 1, in_this_form + 1
            if lower := self._form_below(form, answer, in_this_form):
                form, wait, in_this_form = lower, 0.0, 0
                continue
            doubled = min(LONGEST_WAIT, self.first_wait * 2 ** (failures - 1))
            wait = doubled if answer.retry_after is None else answer.retry_after
            if not answer.transient or failures >= TRIES or wait > LONGEST_ASKED:
                return reading

    def _reading(self, answer: Answer, turns: Turns) -> Reading:
        """Return what an answer says; nothing where its host has read a part of the prompt only."""
        if answer.status != "ok":
            return Reading(answer.status, answer.reason)
        words = len(re.findall(r"\w+", "\n".join(turn["content"] for turn in turns)))
        least, tokens = self.jury.servers["least_read"], answer.tokens_in or 0
        if least["tokens"] <= tokens < least["a_word"] * words:
            return Reading("cut", least["reason"].format(tokens, words))
        try:
            return Reading("ok", "", *read_verdict(answer.text, self.jury.form))
        except Unreadable as error:
            return Reading(error.status, str(error))

    def _form_below(self, form: str, answer: Answer, failures: int) -> str:
        """Return the form to try next if the failure may be due to the form, else ""."""
        lower = self.own["forms"][self.own["forms"].index(form) + 1 :]
        if self.known_form:  # by another verdict, while this one was asked in a stricter form
            lower = [self.known_form] if self.known_form in lower else []
        at_fault = answer.http in self.jury.servers["refused_form"]
        at_fault = at_fault or (answer.http == 500 and bool(failures > 1 or self.known_form))
        return lower[0] if lower and at_fault and answer.status == "request_failed" else ""

    def complete(self, question: Question) -> Answer:
        """Return how a request ended; every way it can end is an answer."""
        if not self.key:
            return Answer("auth", f"the environment variable {self.own['api_key_env']} is not set")
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        if not self.is_chat:
            headers["anthropic-version"], headers["x-api-key"] = "2023-06-01", self.key
            del headers["Authorization"]
        body = self.body(question)
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        path = "/chat/completions" if self.is_chat else "/v1/messages"
        address = self.own["base_url"].rstrip("/") + path
        answer = self._sent(Request(address, text.encode("utf-8", "replace"), headers))  # noqa: S310 - the panel's own address
        return self.complete(question) if self._leaves_out(answer, body) else answer

    def body(self, question: Question) -> dict[str, Any]:
        """Return a request as it travels."""
        bodies = self.own["bodies"][question.form]
        is_unbounded = question.schema == "schema" and not self.is_bounded
        body = bodies["unbounded" if is_unbounded else question.schema]
        body = {self.renamed.get(name, name): value for name, value in body.items()}
        return {name: value for name, value in body.items() if name} | {"messages": question.turns}

    def _sent(self, request: Request) -> Answer:
        try:
            try:
                reply = OPENERS[request.type].open(request, timeout=TIMEOUT)
            except HTTPError as error:
                reply = error
            with reply:
                text = reply.read(LONGEST_BODY).decode("utf-8", "replace")
        except TimeoutError:
            return Answer("timeout", f"no answer within {TIMEOUT:g} s", transient=True)
        except (OSError, HTTPException) as error:
            reason = f"no connection: {type(error).__name__}"
            return Answer("request_failed", reason, transient=True)
        except ValueError:  # its words would tell the key
            return Answer("auth", f"what {self.own['api_key_env']} holds is no key")
        return self.answer(reply.status, reply.headers, text)

    def answer(self, http: int, headers: Mapping[str, str], text: str) -> Answer:
        """Return what an HTTP reply comes to; servers that speak the protocols loosely are many."""
        if http >= 300:
            return self._failure(http, headers, text)
        body, ends = _object(text), self.jury.servers["ends"]
        if self.is_chat:
            choices = body.get("choices")
            choice = _dict(choices[0] if isinstance(choices, list) and choices else None)
            message, name = _dict(choice.get("message")), "finish_reason"
        else:
            choice = message = body if isinstance(body.get("content"), list) else {}
            name = "stop_reason"
        if not message:
            if (failure := self._failure(http, {}, text)).status == "too_long":
                return failure
            reason = "HTTP 200 with a body that is not an answer"
            return Answer("request_failed", reason, text, 200, transient=True)
        finish, refusal = _text(choice.get(name)), _text(message.get("refusal"))
        status = "refused" if refusal else ends[name].get(finish, "ok")
        reason, words = "" if status == "ok" else f"{name} {finish}", _text(message.get("content"))
        usage = _dict(body.get("usage"))
        if self.is_chat and status == "ok" and not words and usage.get("completion_tokens") == 0:
            status, reason = "truncated", self.jury.servers["nothing_written"]
        sent = usage.get("prompt_tokens")
        tokens = int(sent) if isinstance(sent, float) and 0 <= sent < 1e7 else None
        return Answer(status, reason, words or refusal, 200, tokens_in=tokens)

    def _failure(self, http: int, headers: Mapping[str, str], text: str) -> Answer:
        """Return the answer for an HTTP error; its reason holds only the error's own code."""
        error, servers = _errors(text)[0], self.jury.servers
        words = [_text(error.get(name)) for name in ("code", "type", "status")]
        code = next((word for word in words if re.fullmatch(r"(?!\d+$)\w{1,59}", word)), "")
        known, reason = servers["codes"].get(code, ""), f"HTTP {http} {code}".strip()
        by_http = servers["statuses"].get(str(http), "request_failed")
        status = known if known and (http != 402 or known == "too_long") else by_http
        passes = known not in ("quota", "too_long") and http in servers["passing"]
        return Answer(status, reason, text, http, passes, _seconds(headers))

    def _leaves_out(self, answer: Answer, body: Mapping[str, Any]) -> bool:
        """Rename or leave out a setting that a server does not know, and tell whether that was done."""
        if not self.is_chat or answer.http not in (400, 422):
            return False
        if self.is_bounded and "maxLength" in answer.text:
            self.is_bounded = False
            return True
        name = ""
        for error in _errors(answer.text):
            words = re.match(self.jury.servers["unknown"], _text(error.get("message")))
            known = error.get("code") in self.jury.servers["unknown_codes"]
            found = _text(error.get("param")) if known else ""
            if error.get("type") == "extra_forbidden" and isinstance(error.get("loc"), list):
                found = _text((error["loc"] or [""])[-1])
            name = name or found or (words[1] if words else "")
        other = LIMITS.get(name, "")
        if name not in body or name not in (*LIMITS, "store") or other in self.renamed:
            return False
        self.renamed[name] = other
        self.is_bounded = self.is_bounded and other != "max_completion_tokens"
        return True


def _object(text: str) -> dict[str, Any]:
    try:
        return _dict(json.loads(text, parse_int=float))  # Python reads no int of 5,000 digits
    except (ValueError, RecursionError):
        return {}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """Return a text, also one that comes in parts; what is no text, such as thoughts, is left out."""
    if isinstance(value, list):
        parts = map(_dict, value)
        return "".join(_text(part.get("text")) for part in parts if part.get("type") == "text")
    return value if isinstance(value, str) else ""


def _errors(text: str) -> list[dict[str, Any]]:
    """Return the errors in a body, at least one, as OpenAI, FastAPI, Amazon and Google write them."""
    body = _object(text.strip().removeprefix("[").removesuffix("]"))
    detail = body.get("detail")
    return [_dict(body.get("error", body)), *map(_dict, detail if isinstance(detail, list) else [])]


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an endpoint asks to wait, None where it names no time to wait."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return seconds if 0 <= seconds < 366 * 86_400 else None
    return None
