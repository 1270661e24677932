"""The engine in an export: it asks and reads as a run does, in a Python that has nothing else."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from kit.exported_panels import RECORD, ROWS, TRICKY, export, panel
from kit.hostile_answers import HUMAN, KINDS
from kit.hostile_variants import VARIANTS
from kit.jurors import Do, Seen, Stub, verdict
from kit.studies import Write, import_file
from sqlalchemy import Engine
from sqlmodel import select

from data.card import Card
from data.database import reading
from data.rubric import Rubric, read_rubric, shipped
from data.schema import Attempt, Rater, Rating, Response
from jury.api_protocols import (
    FILTER_CODES,
    OVERFLOWS,
    QUOTA_CODES,
    http_failure,
    read_chat,
    read_message,
)
from jury.call import TOO_LONG
from jury.exports.bundle import PAGE, Export, write_folder
from jury.exports.engine import PROGRAM, READER, SETTINGS_FILE
from jury.exports.engine import engine as engine_of
from jury.exports.medjury_jury import Jury
from jury.panel import Panel, read_panel
from jury.parse import form_of, parse
from jury.run import run_panel
from jury.task import Patience
from jury.window import why_cut

HASTY = Patience(first_wait=0.01, longest_wait=0.02, bound=1.0)

READ = """
import json, sys
sys.path.insert(0, sys.argv[1])
from medjury_jury import Answer, Jury
told, jury = json.load(sys.stdin), Jury()
juror, found = next(iter(jury.jurors.values())), []
for at, text in told["answers"]:
    jury.form = told["forms"][at]
    found.append(juror._reading(Answer("ok", "", text), []).told())
print(json.dumps(found))
"""
ASK = """
import json, sys
sys.path.insert(0, sys.argv[1])
from medjury_jury import Jury
jury = Jury(first_wait=0.01)
print(json.dumps([jury.rate(one).told()["jurors"] for one in json.load(sys.stdin)]))
"""
QUESTION = """
import json, sys
sys.path.insert(0, sys.argv[1])
from medjury_jury import Jury
jury = Jury()
print(json.dumps([jury.render(one) for one in json.load(sys.stdin)]))
"""


def outside(code: str, folder: Path, given: Any, **more: str) -> Any:
    """Return what a Python without any package says; `more` is added to its environment."""
    asked = [sys.executable, "-I", "-S", "-c", code, str(folder)]
    done = subprocess.run(
        asked,
        input=json.dumps(given),
        env=os.environ | more,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "out", engine_of(export(read_panel("current"))))
    return tmp_path / "out"


def test_the_engine_is_two_files_as_they_stand_here_and_its_settings(folder: Path) -> None:
    own = (files("jury.exports") / PROGRAM).read_text("utf-8")
    inside = "from jury.reading import"
    assert (folder / PROGRAM).read_text("utf-8") == own.replace(
        inside, "from medjury_reading import"
    )
    assert (folder / READER).read_text("utf-8") == (files("jury") / "reading.py").read_text("utf-8")
    assert {path.name for path in folder.iterdir()} == {PROGRAM, READER, SETTINGS_FILE, PAGE}


def test_hostile_answers_are_read_as_a_run_reads_them(folder: Path) -> None:
    rubrics = list({id(one.rubric): one.rubric for one in VARIANTS}.values())
    makers = [one.make for one in KINDS] + list(HUMAN.values())
    answers = [
        (rubrics.index(variant.rubric), make(variant)) for make in makers for variant in VARIANTS
    ]
    assert len(answers) > 5000
    forms = [form_of(one) for one in rubrics]
    found = outside(READ, folder, {"forms": forms, "answers": answers})
    for (at, text), told in zip(answers, found, strict=True):
        own = parse(text, rubrics[at])
        assert told["status"] == own.status.value, text
        if own.reply is None:
            assert told["reason"] == own.reason
        else:
            assert told["scores"] == dict(own.reply.scores)
            assert told["explanations"] == dict(own.reply.comments)


@pytest.mark.parametrize("name", shipped())
def test_the_question_is_the_runs_own_to_the_last_character(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "out", engine_of(export(read_panel("current"), name)))
    texts = {"context": TRICKY, "prompt": "{{response}}", "response": TRICKY}
    more = [{}, {"reference": "Angina </REFERENCE >", "checklist": "- Pain? <checklist>"}]
    cards = [texts | one for one in more]
    own = [read_rubric(name).render(Card("", **one)) for one in cards]
    assert outside(QUESTION, tmp_path / "out", cards) == own


NOTES = ("amber", "birch", "coral", "delta")
CARDS = [
    {"context": TRICKY, "prompt": "Write.", "response": f"The {word} note \u00e9. </response>"}
    for word in NOTES
]


def stubborn(seen: Seen) -> Do:
    """Rate amber at the second ask, birch never, coral in an answer that is cut off, delta at once."""
    first = len(seen.body["messages"]) == 1
    if "coral" in seen.prompt:
        return Do(finish="truncated")
    if "birch" in seen.prompt or (first and "amber" in seen.prompt):
        both = verdict(seen, 3) + "\n" + verdict(seen, 4)
        return Do(text=both if seen.model == "m-one" else "  I'd say \u201cseven\u201d\x00 of 5.\n")
    return Do(text=verdict(seen, 4))


def requests(stub: Stub) -> list[str]:
    """Return all requests that a stub was sent, each with its path and body as they came in."""
    bodies = [raw.partition(b"\r\n\r\n")[2].decode() for raw in stub.raw]
    return sorted(f"{seen.path} {one}" for seen, one in zip(stub.seen, bodies, strict=True))


@pytest.fixture
def rated(engine: Engine, write: Write) -> Engine:
    """Return a study of the four notes."""
    rows = [
        {"instance_id": f"i{at}", "benchmark": "visits", "model": "m", **one}
        for at, one in enumerate(CARDS)
    ]
    path = write("notes.jsonl", "".join(json.dumps(one) + "\n" for one in rows))
    import_file(engine, path)
    return engine


def test_first_and_second_asks_are_those_of_a_run_to_the_last_byte(
    rated: Engine, tmp_path: Path
) -> None:
    with Stub(stubborn) as stub:
        jurors = panel(stub)
        run_panel(rated, jurors, patience=HASTY)
        ours, stored = requests(stub), attempts(rated)
        stub.seen.clear()
        stub.raw.clear()
        write_folder(tmp_path / "out", engine_of(export(jurors)))
        found = outside(ASK, tmp_path / "out", CARDS)
        theirs = requests(stub)
    assert sum('"assistant"' in one for one in ours) == 4
    assert theirs == ours
    told = [
        (word, name, one["status"], one.get("reason", ""), one.get("scores"))
        for word, jury in zip(NOTES, found, strict=True)
        for name, one in jury.items()
    ]
    assert told == stored


def attempts(engine: Engine) -> list[tuple[str, str, str, str, dict[str, float] | None]]:
    """Return what the study has of the last call to each juror about each note."""
    query = (
        select(Response.text, Rater.handle, Attempt).select_from(Attempt).join(Response).join(Rater)
    )
    with reading(engine) as session:
        rows = list(session.exec(query.order_by(Response.text, Rater.handle, Attempt.number)))
        scores = {}
        given = (
            select(Response.text, Rater.handle, Rating)
            .select_from(Rating)
            .join(Response)
            .join(Rater)
        )
        for text, name, rating in session.exec(given):
            scores.setdefault((text, name), {})[rating.criterion] = rating.score
    last = {(text, name): one for text, name, one in rows}
    return [
        (text.split()[1], name, str(one.status), one.reason, scores.get((text, name)))
        for (text, name), one in last.items()
    ]


def test_a_busy_server_is_asked_again_and_a_form_it_does_not_know_is_given_up(
    tmp_path: Path,
) -> None:
    def answer(seen: Seen) -> Do:
        if seen.form != "text" and seen.model == "m-one":
            return Do(status=400)
        return Do(status=503) if seen.number in (1, 2) else Do()

    with Stub(answer) as stub:
        write_folder(tmp_path / "out", engine_of(export(panel(stub))))
        (found,) = outside(ASK, tmp_path / "out", CARDS[:1])
        forms = [one.form for one in stub.seen if one.model == "m-one"]
    assert {one["status"] for one in found.values()} == {"ok"}
    assert forms[0] == "json_schema"
    assert forms[-1] == "text"


def test_a_host_that_read_a_part_of_the_prompt_gives_no_verdict_as_in_a_run(
    rated: Engine, tmp_path: Path
) -> None:
    long = [one | {"context": "A visit of many words. " * 300} for one in CARDS[:1]]

    def answer(seen: Seen) -> Do:
        return Do(tokens=(600, 20)) if seen.model == "m-one" else Do()

    with Stub(answer) as stub:
        write_folder(tmp_path / "out", engine_of(export(panel(stub))))
        (found,) = outside(ASK, tmp_path / "out", long)
        prompt = read_rubric("generic").render(Card("", **long[0]))
    assert (found["one"]["status"], found["two"]["status"]) == ("cut", "ok")
    assert found["one"]["reason"] == why_cut(prompt, 600)


def test_a_key_that_is_not_there_is_named_and_nothing_is_sent(tmp_path: Path) -> None:
    with Stub() as stub:
        told = panel(stub).model_dump(by_alias=True)
        told["juror"][0]["api_key_env"] = "NO_SUCH_KEY"
        write_folder(tmp_path / "out", engine_of(export(Panel.model_validate(told))))
        (found,) = outside(ASK, tmp_path / "out", CARDS[:1])
        assert {one.model for one in stub.seen} == {"m-two"}
    assert found["one"]["reason"] == "the environment variable NO_SUCH_KEY is not set"


def test_plain_text_goes_through_no_proxy_and_to_no_other_address(tmp_path: Path) -> None:
    with Stub() as proxy, Stub() as elsewhere:
        moved = {"location": f"{elsewhere.openai_url}/chat/completions"}
        with Stub(lambda _: Do(status=307, headers=moved)) as stub:
            write_folder(tmp_path / "out", engine_of(export(panel(stub))))
            named = dict.fromkeys(("http_proxy", "HTTP_PROXY"), f"http://127.0.0.1:{proxy.port}")
            (found,) = outside(ASK, tmp_path / "out", CARDS[:1], **named, no_proxy="")
            asked = len(stub.seen)
        assert (asked, len(proxy.seen), len(elsewhere.seen)) == (2, 0, 0)
    assert {one["reason"] for one in found.values()} == {"HTTP 307 some_error"}


def chat(**message: Any) -> str:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})


def error(**told: Any) -> str:
    return json.dumps({"error": told})


BODIES = (
    *("", "not JSON", "[" * 100_000, '{"error": 7}', '{"choices": [{"message": 7}]}', "9" * 9_000),
    *(error(code=code) for code in (*QUOTA_CODES, *FILTER_CODES, *OVERFLOWS, "429", "two words")),
    error(type="invalid_request_error", message="x: 9 > 8"),
    "[" + error(status="INVALID_ARGUMENT", message="x") + "]",
    *(chat(content=text) for text in ("Four.", "", None)),
    chat(content=None, refusal="I will not."),
    json.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}),
    json.dumps({"content": [{"type": "text", "text": "x"}], "stop_reason": "max_tokens"}),
    json.dumps({"content": [{"type": "thinking", "thinking": "h"}, {"type": "text", "text": "x"}]}),
)


@pytest.mark.parametrize(
    "http", [200, 307, 400, 401, 402, 403, 408, 413, 422, 429, 500, 503, 504, 529]
)
def test_replies_of_servers_are_taken_as_a_run_takes_them(http: int, folder: Path) -> None:
    heads = ({}, {"retry-after": "3"}, {"retry-after-ms": "1500"}, {"retry-after": "-1"})
    jurors = {juror.is_chat: juror for juror in Jury(folder / SETTINGS_FILE).jurors.values()}
    for is_chat, read in ((True, read_chat), (False, read_message)):
        for body, headers in product(BODIES, heads):
            ours = read(body, headers) if http == 200 else http_failure(http, headers, body)
            theirs = jurors[is_chat].answer(http, headers, body)
            assert (theirs.status, theirs.transient) == (ours.status, ours.transient), body
            reason = ours.reason.removesuffix(f": {TOO_LONG}").strip()
            assert (theirs.reason.strip(), theirs.retry_after) == (reason, ours.retry_after)
            assert ours.status != "ok" or theirs.text == ours.text


def test_a_setting_that_a_server_does_not_know_is_renamed_or_left_out(tmp_path: Path) -> None:
    def answer(seen: Seen) -> Do:
        refused = {"code": "unsupported_parameter", "param": "max_tokens", "message": "x"}
        if seen.model == "m-one" and "max_tokens" in seen.body:
            return Do(status=400, body=json.dumps({"error": refused}))
        if "store" in seen.body:
            extra = {"type": "extra_forbidden", "loc": ["body", "store"]}
            return Do(status=422, body=json.dumps({"detail": [extra]}))
        return Do()

    with Stub(answer) as stub:
        files = engine_of(export(panel(stub)))
        told = json.loads(files[SETTINGS_FILE])
        for bodies in told["jurors"][0]["bodies"].values():
            for body in bodies.values():
                body["store"] = False
        write_folder(tmp_path / "out", files | {SETTINGS_FILE: json.dumps(told)})
        found = outside(ASK, tmp_path / "out", CARDS[:2])
        sent = [seen.body for seen in stub.seen if seen.model == "m-one"]
    assert {one["status"] for jury in found for one in jury.values()} == {"ok"}
    names = [[key for key in body if key.startswith(("max", "store"))] for body in sent]
    both = ["max_completion_tokens", "store"]
    assert names == [["max_tokens", "store"], both, both[:1], both[:1]]


def test_a_key_that_no_header_takes_is_named_and_not_told(tmp_path: Path) -> None:
    with Stub() as stub:
        told = panel(stub).model_dump(by_alias=True)
        told["juror"][0]["api_key_env"] = "ODD_KEY"
        write_folder(tmp_path / "out", engine_of(export(Panel.model_validate(told))))
        (found,) = outside(ASK, tmp_path / "out", CARDS[:1], ODD_KEY="a\nsecret")
    status, reason = found["one"]["status"], found["one"]["reason"]
    assert (status, reason) == ("auth", "what ODD_KEY holds is no key")


def test_what_is_rated_carries_the_ids_it_can_rejoin_its_study_by(tmp_path: Path) -> None:
    jurors, rubric = read_panel("current"), read_rubric("generic")
    told = json.loads(
        engine_of(Export(rubric, jurors, ROWS, RECORD, "f" * 64))["medjury_jury.json"]
    )
    assert (told["origin"]["study"], told["origin"]["rubric_sha256"]) == ("f" * 64, rubric.sha256)
    assert Rubric(**told["rubric"]).sha256 == rubric.sha256
    assert {one["name"]: one["profile"] for one in told["jurors"]} == {
        one.name: one.profile() for one in jurors.juror
    }
