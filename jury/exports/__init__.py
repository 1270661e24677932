"""A jury taken to other tools: one format a file, values in and the text of files out.

Knows no study: what was validated, and how well, is handed over as values. `GRADER` is the file with
which tools that can run Python put a response to the whole jury; it needs nothing of medjury.
"""

GRADER = r'''"""Rates a response with the jury of medjury_jury.json. Written by medjury; Python 3.11, no package."""

import json
import os
import re
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SETTINGS = json.loads(Path(__file__).with_name("medjury_jury.json").read_text("utf-8"))
FORMS = ("json_schema", "json_object", "text")
WAITS = (2, 8, 20)  # seconds before a busy server is asked again


class NotRated(Exception):
    """A juror gave no usable verdict, so that the jury has no score; never a zero."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # texts and keys go to the juror's own address only


OPENER = urllib.request.build_opener(NoRedirect)


def rate(texts):
    """Return scores (mean of all jurors a criterion), composite and reason; or raise NotRated."""
    question, jurors = render(texts), SETTINGS["jurors"]
    if not str(texts.get("response") or "").strip():
        raise NotRated("the response has no text")
    with ThreadPoolExecutor(len(jurors)) as pool:
        verdicts = list(pool.map(lambda juror: verdict(juror, question), jurors))
    scores = {c: sum(one[c] for one in verdicts) / len(verdicts) for c in SETTINGS["criteria"]}
    told = "; ".join(f"{j['name']} {v}" for j, v in zip(jurors, verdicts))
    composite = sum(scores.values()) / len(scores)
    reason = f"{told}; jury {SETTINGS['status']} by medjury"
    return {"scores": scores, "composite": composite, "reason": reason}


def render(texts):
    """Return the prompt, filled in one pass, with the prompt's own tags broken in what goes in."""
    found = dict(SETTINGS["absent"], context="", prompt="", **SETTINGS["fixed"])
    for name in ("context", "prompt", "response", "reference", "checklist"):
        if texts.get(name) is not None:
            text = str(texts[name])
            tags = SETTINGS["tags"]
            found[name] = re.sub(tags, SETTINGS["break"], text, flags=re.I) if tags else text
    return re.sub(r"\{\{(\w+)\}\}", lambda place: found[place[1]], SETTINGS["prompt"])


def verdict(juror, question):
    """Return one juror's points by criterion; an unusable answer is asked for once more."""
    turns = [{"role": "user", "content": question}]
    for last in (False, True):
        answer = ask(juror, turns)
        try:
            return read(answer)
        except NotRated as error:
            if last:
                raise NotRated(f"{juror['name']}: {error}") from None
            again = SETTINGS["again"].replace("{reason}", str(error))
            turns += [{"role": "assistant", "content": answer or "(empty)"}]
            turns += [{"role": "user", "content": again}]


def ask(juror, turns):
    """Return a juror's answer; with the schema "auto" forms are tried in their order."""
    wanted = juror["schema"]
    forms = FORMS if wanted == "auto" else (wanted,)
    for form in forms:
        status, body = post(juror, request(juror, turns, form))
        if status == 200:
            return answer_of(juror, body)
        if status not in (400, 422):
            break
    raise NotRated(f"{juror['name']}: HTTP {status}" if status else f"{juror['name']}: unreachable")


def request(juror, turns, form):
    body = {"model": juror["model"], "messages": turns, "temperature": juror["temperature"]}
    if juror["provider"] == "anthropic":
        output = {"effort": juror["effort"]}
        if form == "json_schema":
            output["format"] = {"type": form, "schema": SETTINGS["schema"]}
        output = {name: value for name, value in output.items() if value is not None}
        body.update(max_tokens=juror["max_tokens"], output_config=output or None)
    else:
        body["max_completion_tokens" if juror["own"] else "max_tokens"] = juror["max_tokens"]
        body.update(reasoning_effort=juror["effort"], store=False if juror["own"] else None)
        schema = {"name": "verdict", "strict": True, "schema": SETTINGS["schema"]}
        if form != "text":
            body["response_format"] = {"type": form}
        if form == "json_schema":
            body["response_format"]["json_schema"] = schema
    return {name: value for name, value in body.items() if value is not None}


def post(juror, body):
    """Return HTTP status and body; 0 where no answer came."""
    key = os.environ.get(juror["api_key_env"], "") if juror["api_key_env"] else "none"
    if not key:
        raise NotRated(f"{juror['name']}: the environment variable {juror['api_key_env']} is not set")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    path = "/chat/completions"
    if juror["provider"] == "anthropic":
        path = "/v1/messages"
        headers = {"Content-Type": "application/json", "x-api-key": key}
        headers["anthropic-version"] = "2023-06-01"
    url = juror["base_url"].rstrip("/") + path
    for wait in (*WAITS, None):
        asked = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with OPENER.open(asked, timeout=300) as reply:
                return reply.status, reply.read().decode("utf-8", "replace")
        except urllib.error.HTTPError as error:
            status = error.code
        except OSError:
            status = 0
        if wait is None or 0 < status < 500 and status != 429:
            return status, ""
        time.sleep(wait)


def answer_of(juror, body):
    """Return the text of an answer that came whole."""
    try:
        found = json.loads(body)
        if juror["provider"] == "anthropic":
            whole = found["stop_reason"] in ("end_turn", "stop_sequence")
            text = "".join(one["text"] for one in found["content"] if one["type"] == "text")
        else:
            choice = found["choices"][0]
            text, whole = choice["message"]["content"] or "", choice["finish_reason"] == "stop"
    except (ValueError, KeyError, TypeError, IndexError):
        raise NotRated(f"{juror['name']}: an answer of another form than the protocol's") from None
    if not whole:
        raise NotRated(f"{juror['name']}: the answer was cut short or refused")
    return text


def read(text):
    """Return points by criterion from the last object that names one; nothing is rounded or guessed."""
    found = None
    for one in objects(text):
        if one is None or any(name in one for name in SETTINGS["criteria"]):
            found = one
    if found is None:
        raise NotRated("no whole JSON object with the criteria")
    return {name: points(found.get(name), name) for name in SETTINGS["criteria"]}


def objects(text):
    """Yield the outermost objects; None for one that names a criterion first and breaks off."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=pairs)
    at = text.find("{")
    while at >= 0:
        end = at + 1
        try:
            one, end = decoder.raw_decode(text, at)
            yield one
        except RecursionError:
            return
        except ValueError:
            key = re.match(r'\{\s*"([^"\\]{1,64})"', text[at : at + 80])
            if key and key[1] in SETTINGS["criteria"]:
                yield None
        at = text.find("{", end)


def pairs(items):
    """Return an object; a key that is given twice, differently, has no value."""
    found = {}
    for key, value in items:
        found[key] = value if key not in found or repr(found[key]) == repr(value) else None
    return found


def points(one, name):
    value = one.get("score") if isinstance(one, dict) else None
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,6}", value.strip()):
        value = int(value)
    whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    if not whole or not SETTINGS["min"] <= value <= SETTINGS["max"] or value != int(value):
        raise NotRated(f"{name}: the score is missing or no whole number on the scale")
    return float(value)
'''
