"""A jury of language models, asked as it was validated. It needs Python 3.11 and no package.

    from medjury_jury import Jury
    verdict = Jury().rate({"context": "", "prompt": "...", "response": "...", "reference": None})
    verdict.scores, verdict.composite, verdict.reason

Beside this file lies `medjury_jury.json`, written by `medjury share rubric`: what is asked, in which form
answers come, what servers call their failures, the jurors, and what is known of the jury. Jurors are sent
what medjury sends, and answers are read as medjury reads them: as one JSON object of the asked form, or
not at all. Where one juror gives no verdict, the jury has no scores.
"""

import json
import os
import re
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

Texts = Mapping[str, str | None]  # context, prompt, response, reference, checklist
Turns = list[dict[str, str]]  # as both protocols have them: role and content
SETTINGS = Path(__file__).with_name("medjury_jury.json")
LONGEST, LONGEST_BODY, QUOTED = 200_000, 2_000_000, 40  # characters, bytes, characters
TRIES, FIRST_WAIT, LONGEST_WAIT, LONGEST_ASKED, TIMEOUT = 6, 0.5, 8.0, 120.0, 300.0  # seconds
LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
BREAKS_OFF = "the JSON object breaks off or is not valid"
NO_END = (
    "the answer is reasoning that never ends; give it more max_tokens, or start the server with its "
    "parser for this model's reasoning"
)


class Jury:
    """All jurors of an export; `rate` asks them about a response."""

    def __init__(self, settings: Path = SETTINGS, first_wait: float = FIRST_WAIT) -> None:
        told = json.loads(settings.read_text("utf-8"))
        self.origin, self.status, self.rubric = told["origin"], told["status"], told["rubric"]
        self.question, self.form, self.servers = told["question"], told["form"], told["servers"]
        self.jurors = {one["name"]: Juror(one, self, first_wait) for one in told["jurors"]}

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
    """What a juror said: the points of every criterion, or none and the reason."""

    status: str
    reason: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    explanations: dict[str, str] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """Return it as JSON values."""
        if self.status != "ok":
            return {"status": self.status, "reason": _storable(self.reason)}
        return {"status": "ok", "scores": self.scores, "explanations": self.explanations}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The readings of all jurors, by name. A juror without a verdict leaves the jury without scores."""

    jury: Jury
    readings: Mapping[str, Reading]

    @property
    def scores(self) -> dict[str, float]:
        """The mean of all jurors on each criterion; empty, never zeros, where not rated."""
        given = [one.scores for one in self.readings.values() if one.status == "ok"]
        names = self.jury.form["criteria"] if len(given) == len(self.readings) else ()
        return {name: sum(scores[name] for scores in given) / len(given) for name in names}

    @property
    def composite(self) -> float | None:
        """The mean over all criteria, None where not rated."""
        scores = self.scores
        return sum(scores.values()) / len(scores) if scores else None

    @property
    def reason(self) -> str:
        """Who said what, or why there are no scores."""
        said, failed = [], []
        for name, one in self.readings.items():
            points = ", ".join(f"{key} {score:g}" for key, score in one.scores.items())
            said.append(f"{name} {points}")
            failed += [] if one.status == "ok" else [f"{name}: {one.reason or one.status}"]
        rated = f"{'; '.join(said)}; jury {self.jury.status} by medjury"
        return f"NOT RATED: {'; '.join(failed)}" if failed else rated

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
        self.settings: dict[str, Any] = juror["settings"]
        self.known_form, self.refused = "", set[str]()
        self.lengths = True  # whether explanations are bounded in the schema

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
            if answer.http == 200 and not answer.transient:
                self.known_form = self.known_form or form
                reading = self._reading(answer, turns)
                if reading.status in ("ok", "cut") or is_second:
                    return reading
                if answer.status == "ok":
                    again = self.jury.question["again"].replace("{reason}", reading.reason)
                    quoted = _storable(answer.text).strip() or "(no answer)"
                    turns = [*turns, {"role": "assistant", "content": quoted}]
                    turns = [*turns, {"role": "user", "content": again}]
                elif answer.status == "truncated" and answer.text.strip() and shorter:
                    turns = [{"role": "user", "content": shorter}]
                    schema = "shorter"
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
                return self._reading(answer, turns)

    def _reading(self, answer: Answer, turns: Turns) -> Reading:
        """Return what an answer says; nothing where its host has read a part of the prompt only."""
        if answer.status != "ok":
            return Reading(answer.status, answer.reason)
        words, least = (
            len(re.findall(r"\w+", "\n".join(turn["content"] for turn in turns))),
            self.jury.servers["least_read"],
        )
        read_tokens = answer.tokens_in or 0
        if least["tokens"] <= read_tokens < least["a_word"] * words:
            return Reading("cut", least["reason"].format(read_tokens, words))
        return read(answer.text, self.jury.form)

    def _form_below(self, form: str, answer: Answer, failures: int) -> str:
        """Return the form to try next if the failure may be due to the form, else ""."""
        forms: list[str] = self.own["forms"]
        lower = forms[forms.index(form) + 1 :]
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
        text = json.dumps(self.body(question), ensure_ascii=False, separators=(",", ":"))
        path = "/chat/completions" if self.is_chat else "/v1/messages"
        address = self.own["base_url"].rstrip("/") + path
        body = text.encode("utf-8", "replace")
        answer = self._sent(Request(address, body, headers))  # noqa: S310 - the panel's own address
        return self.complete(question) if self._leave_out(answer) else answer

    def body(self, question: Question) -> dict[str, Any]:
        """Return a request as it travels."""
        form, name = question.form, question.schema
        is_bounded = self.is_chat and self.lengths and "max_completion_tokens" not in self.settings
        name = "bounded" if is_bounded and name == "schema" else name
        schema = {"schema": self.jury.form[name]}
        if self.is_chat:
            named = {"json_schema": {"name": "verdict", "strict": True, **schema}}
            asked = {"type": form, **(named if form == "json_schema" else {})}
            more = {} if form == "text" else {"response_format": asked}
            return {"messages": question.turns, **self.settings, **more}
        output = {"format": {"type": "json_schema", **schema}} if form == "json_schema" else {}
        output |= {} if self.own["effort"] is None else {"effort": self.own["effort"]}
        extra = {"output_config": output or None, "temperature": self.own["temperature"]}
        extra = {name: value for name, value in extra.items() if value is not None}
        return {**self.settings, "messages": question.turns, **extra}

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
        body = _object(text)
        choices = body.get("choices")
        choice = _dict(choices[0] if isinstance(choices, list) and choices else None)
        choice = choice if self.is_chat else body
        message = _dict(choice.get("message")) if self.is_chat else body
        if not message or not (self.is_chat or isinstance(body.get("content"), list)):
            failure = self._failure(http, {}, text)
            if failure.status == "too_long":
                return failure
            reason = "HTTP 200 with a body that is not an answer"
            return Answer("request_failed", reason, text, 200, transient=True)
        name = "finish_reason" if self.is_chat else "stop_reason"
        finish, refusal = _text(choice.get(name)), _text(message.get("refusal"))
        status = "refused" if refusal else self.jury.servers["ends"][name].get(finish, "ok")
        reason, said = "" if status == "ok" else f"{name} {finish}", _text(message.get("content"))
        usage = _dict(body.get("usage"))
        sent, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if self.is_chat and status == "ok" and not said and written == 0:
            status, reason = "truncated", self.jury.servers["nothing_written"]
        return Answer(
            status, reason, said or refusal, 200, tokens_in=sent if self.is_chat else None
        )

    def _failure(self, http: int, headers: Mapping[str, str], text: str) -> Answer:
        """Return the answer for an HTTP error; its reason holds only the error's own code."""
        error, servers = next(iter(_errors(text)), {}), self.jury.servers
        message, by_litellm = _text(error.get("message")), servers["in_litellm"]
        words = [_text(error.get(name)) for name in ("code", "type", "status")]
        words = [by_litellm, *words] if by_litellm in message else words
        code = next((word for word in words if re.fullmatch(r"(?!\d+$)\w{1,59}", word)), "")
        known, reason = servers["codes"].get(code, ""), f"HTTP {http} {code}".strip()
        how = known or servers["statuses"].get(str(http), "request_failed")
        how = "quota" if http == 402 or servers["no_credit"] in text else how
        is_too_large = http in servers["too_large"] and re.match(servers["too_long"], message)
        if known == "too_long" or is_too_large:
            reason = f"{reason}: the prompt is longer than the model takes"
            return Answer("too_long", reason, text, http, False, _seconds(headers))
        passes = known != "quota" and http in servers["passing"]
        return Answer(how, reason, text, http, passes, _seconds(headers))

    def _leave_out(self, answer: Answer) -> bool:
        """Rename or leave out a setting that a server does not know, and tell whether that was done."""
        servers, name = self.jury.servers, ""
        if (
            self.is_chat
            and answer.http in (400, 422)
            and self.lengths
            and "maxLength" in answer.text
        ):
            self.lengths = False
            return True
        for error in _errors(answer.text) if self.is_chat and answer.http in (400, 422) else ():
            words = re.match(servers["unknown"], _text(error.get("message")))
            found = error.get("param") if error.get("code") in servers["unknown_codes"] else ""
            if error.get("type") == "extra_forbidden" and isinstance(error.get("loc"), list):
                found = (error["loc"] or [""])[-1]
            name = name or _text(found) or (words[1] if words else "")
        other = LIMITS.get(name, "")
        if name not in self.settings or name not in (*LIMITS, "store") or other in self.refused:
            return False
        self.refused.add(name)
        kept = {other if key == name else key: value for key, value in self.settings.items()}
        self.settings = {key: value for key, value in kept.items() if key}
        return True


def _object(text: str) -> dict[str, Any]:
    try:
        return _dict(json.loads(text, parse_int=float))  # Python reads no int of 5,000 digits
    except (ValueError, RecursionError):
        return {}


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value <= 10_000_000 else None


def _text(value: object) -> str:
    """Return a text, also one that comes in parts; what is no text, such as thoughts, is left out."""
    if isinstance(value, list):
        parts = map(_dict, value)
        return "".join(_text(part.get("text")) for part in parts if part.get("type") == "text")
    return value if isinstance(value, str) else ""


def _errors(text: str) -> list[dict[str, Any]]:
    """Return the errors in a body, as OpenAI, FastAPI, Amazon and Google write them."""
    body = _object(text.strip().removeprefix("[").removesuffix("]"))
    detail = body.get("detail")
    errors = [body.get("error", body), *(detail if isinstance(detail, list) else [])]
    return [error for error in errors if isinstance(error, dict)]


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an endpoint asks to wait, None where it names no time to wait."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return seconds if 0 <= seconds < 366 * 86_400 else None
    return None


class Unreadable(ValueError):
    """An answer that is not what was asked for, with the status that says so."""

    def __init__(self, reason: str, status: str = "invalid_json") -> None:
        super().__init__(reason)
        self.status = status


def read(text: str, form: Mapping[str, Any]) -> Reading:
    """Return the verdict in an answer of the settings' form; never raises, never guesses."""
    word, criteria = form["word"], form["criteria"]
    try:
        verdict = _one_object(text, form)
        if (unasked := next((name for name in verdict if name not in criteria), None)) is not None:
            raise Unreadable(f"{_quote(unasked)} is not asked for")
        scores = {name: _score(verdict.get(name), name, form) for name in criteria}
    except Unreadable as error:
        return Reading(error.status, str(error))
    words = {name: _storable(verdict[name].get(word) or "") for name in criteria}
    return Reading("ok", "", scores, words)


def _one_object(text: str, form: Mapping[str, Any]) -> dict[str, Any]:
    if len(text) > LONGEST:
        raise Unreadable(f"the answer is longer than {LONGEST:,} characters")
    at, end = _answer(text, form)
    if text[at : at + 1] == "[" and text[end - 1] == "]":  # a list of the one object
        at, end = _skip(text, at + 1), end - 1
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_once, parse_float=_decimal)
    values: list[dict[str, Any]] = []
    while at < end and text[at] == "{":
        try:
            value, after = decoder.raw_decode(text[:end], at)
        except Unreadable:
            raise
        except (ValueError, RecursionError):
            raise Unreadable(BREAKS_OFF) from None
        values.append(value)
        at = _skip(text, after)
    if any(value != values[0] for value in values):
        raise Unreadable("the answer holds two verdicts that differ", "two_verdicts")
    if at < end and "{" in text:
        raise Unreadable("something else stands beside the JSON object")
    if at < end or not values:
        raise Unreadable("the answer holds no JSON object")
    return values[0]


def _answer(text: str, form: Mapping[str, Any]) -> tuple[int, int]:
    """Return from where to where an answer stands, without reasoning and one fence or tag around it."""
    at = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    while ends := [b for a, b in form["reasoning"] if re.compile(a).match(text, at)]:
        if not (match := re.compile(ends[0]).search(text, at)):
            raise Unreadable(NO_END)
        at = match.end()
    for leftover in form["leftovers"]:
        if at == 0 and (match := re.match(leftover, text)):
            at = match.end()
    match = re.compile(form["turn_end"]).search(text, at)
    end = match.start() if match else len(text)
    for around in form["around"]:
        if match := re.compile(around).fullmatch(text, at, end):
            at, end = match.span("inner")
    at = _skip(text, at)
    return at, at + len(text[at:end].rstrip(" \t\r\n"))


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(members := dict(pairs)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Unreadable(f"{_quote(twice)} is given twice")
    return members


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def _score(entry: object, name: str, form: Mapping[str, Any]) -> float:
    value, word = _dict(entry).get("score"), form["word"]
    if not isinstance(entry, dict) or value is None:
        raise Unreadable(f"{name}: no score is given", "missing_criterion")
    if (unasked := next((key for key in entry if key not in ("score", word)), None)) is not None:
        raise Unreadable(f"{name}: {_quote(unasked)} is not asked for")
    if not isinstance(entry.get(word, ""), str | None):
        raise Unreadable(f"{name}: its {word} is no text")
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    for point in range(form["min"], form["max"] + 1):
        if value == (point if is_number else str(point)):
            return float(point)
    allowed = f"is not a whole number on the scale {form['scale']}"
    raise Unreadable(f"{name}: score {_quote(value)} {allowed}", "out_of_range")


def _quote(value: object) -> str:
    try:
        shown = str(value) if isinstance(value, Decimal) else json.dumps(value, default=str)
    except (ValueError, RecursionError):
        shown = type(value).__name__
    return shown if len(shown) <= QUOTED else shown[:QUOTED] + "..."


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
