"""The engine in an export: it asks and reads as a run does, in a Python that has nothing else."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from kit.exported_panels import RECORD, ROWS, TRICKY, export, panel
from kit.hostile_answers import HUMAN, KINDS, VARIANTS
from kit.jurors import Do, Seen, Stub, verdict
from kit.jury_runs import attempts, ratings, run, stored
from kit.studies import import_file
from sqlmodel import select

from data.card import NOT_APPLICABLE, Card
from data.errors import BadRubric
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import Example, Rubric, read_rubric, write_rubrics
from data.rubrics.pairs import with_pairs
from data.schema import Rater, Response
from data.study.responses import import_responses
from data.study.verify import verify
from jury.api_protocols import (
    FILTER_CODES,
    OVERFLOWS,
    QUOTA_CODES,
    http_failure,
    read_chat,
    read_message,
)
from jury.call import TOO_LONG
from jury.exports.bundle import Export, write_folder
from jury.exports.engine import SETTINGS_FILE
from jury.exports.engine import engine as engine_of
from jury.exports.medjury_jury import Jury
from jury.panel import Panel, read_panel
from jury.parse import form_of, parse
from jury.window import why_cut

SAYS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from medjury_jury import Answer, Jury
jury, told = Jury(first_wait=0.01), json.load(sys.stdin)
def read(at, text):
    jury.form = told["forms"][at]
    return next(iter(jury.jurors.values()))._reading(Answer("ok", "", text), []).told()
print(json.dumps({code}))
"""
ASK = "[jury.rate(one).told()['jurors'] for one in told]"
QUESTION = "[jury.render(one) for one in told]"
READ = "[read(*one) for one in told['answers']]"


def outside(code: str, folder: Path, given: Any, **more: str) -> Any:
    """Return what a Python without any package says; `more` is added to its environment."""
    program = SAYS.replace("{code}", code)
    asked = [sys.executable, "-I", "-S", "-c", program, str(folder)]
    options = {"env": os.environ | more, "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run(asked, input=json.dumps(given), **options)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def rated_by(panel: Panel, folder: Path, cards: list[dict[str, str]], **more: str) -> list[Any]:
    """Export a panel, and return what its engine says of responses."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    write_folder(out, engine_of(export(panel)))
    return outside(ASK, out, cards, **more)


@pytest.fixture
def folder(tmp_path) -> Path:
    write_folder(tmp_path / "out", engine_of(export(read_panel("current"))))
    return tmp_path / "out"


def test_hostile_answers_are_read_as_a_run_reads_them(folder):
    rubrics = list({id(one.rubric): one.rubric for one in VARIANTS}.values())
    makers = [one.make for one in KINDS] + list(HUMAN.values())
    answers = [(rubrics.index(one.rubric), make(one)) for make in makers for one in VARIANTS]
    assert len(answers) > 2500
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


@pytest.mark.parametrize("name", with_pairs())
def test_the_question_is_the_runs_own_to_the_last_character(name, tmp_path):
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


LINES = "".join(
    json.dumps({"instance_id": f"i{at}", "benchmark": "visits", "model": "m", **one}) + "\n"
    for at, one in enumerate(CARDS)
)


def stubborn(seen: Seen) -> Do:
    """Rate amber at the second ask, birch never, coral in an answer that is cut off, delta at once."""
    first = len(seen.body["messages"]) == 1
    if "coral" in seen.prompt:
        return Do(finish="truncated")
    if "birch" in seen.prompt or (first and "amber" in seen.prompt):
        both = verdict(seen, 3) + "\n" + verdict(seen, 4)
        return Do(text=both if seen.model == "m-one" else "  I'd say \u201cseven\u201d\x00 of 5.\n")
    return Do(text=verdict(seen, 4))


def test_first_and_second_asks_are_those_of_a_run_to_the_last_byte(engine, write, tmp_path):
    import_file(engine, write("notes.jsonl", LINES))
    with Stub(stubborn) as stub:
        run(engine, panel(stub))
        ours, stub.raw = sorted(stub.raw), []
        found = rated_by(panel(stub), tmp_path, CARDS)
        theirs = sorted(stub.raw)
    bodies, told = [], {}
    for sent in (ours, theirs):
        parts = [one.partition(b"\r\n\r\n") for one in sent]
        bodies.append(sorted((head.split()[1], body) for head, _, body in parts))
    assert sum(b'"assistant"' in body for _, body in bodies[0]) == 4
    assert bodies[1] == bodies[0]
    names = {one.id: one.handle for one in stored(engine, select(Rater))}
    notes = {one.id: one.text.split()[1] for one in stored(engine, select(Response))}
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for one in ratings(engine):
        key = (notes[one.response], names[one.rater])
        scores.setdefault(key, {})[one.criterion] = one.score
    for row in attempts(engine):  # the last one stays
        key = (notes[row.response], names[row.rater])
        told[key] = (str(row.status), row.reason, scores.get(key))
    assert told == {
        (word, name): (one["status"], one.get("reason", ""), one.get("scores"))
        for word, jury in zip(NOTES, found, strict=True)
        for name, one in jury.items()
    }


def test_a_host_that_read_a_part_of_the_prompt_gives_no_verdict_as_in_a_run(tmp_path):
    long = CARDS[0] | {"context": "A visit of many words. " * 300}
    with Stub(lambda seen: Do(tokens=(600, 20)) if seen.model == "m-one" else Do()) as stub:
        (found,) = rated_by(panel(stub), tmp_path, [long])
    assert (found["one"]["status"], found["two"]["status"]) == ("cut", "ok")
    assert found["one"]["reason"] == why_cut(read_rubric("generic").render(Card("", **long)), 600)


def test_a_key_that_is_not_there_is_named_not_told_and_nothing_sent(tmp_path, stub):
    told = panel(stub).model_dump(by_alias=True)
    told["juror"][0]["api_key_env"] = "ODD_KEY"
    for given, reason in (
        ({}, "the environment variable ODD_KEY is not set"),
        ({"ODD_KEY": "a\nsecret"}, "what ODD_KEY holds is no key"),
    ):
        (found,) = rated_by(Panel.model_validate(told), tmp_path, CARDS[:1], **given)
        assert (found["one"]["status"], found["one"]["reason"]) == ("auth", reason)
    assert {one.model for one in stub.seen} == {"m-two"}


def test_plain_text_goes_through_no_proxy_and_to_no_other_address(tmp_path):
    with Stub() as proxy, Stub() as elsewhere:
        moved = {"location": f"{elsewhere.openai_url}/chat/completions"}
        with Stub(lambda _: Do(status=307, headers=moved)) as stub:
            named = dict.fromkeys(("http_proxy", "HTTP_PROXY"), f"http://127.0.0.1:{proxy.port}")
            (found,) = rated_by(panel(stub), tmp_path, CARDS[:1], **named, no_proxy="")
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


CODES = (200, 307, 400, 401, 402, 403, 408, 413, 422, 429, 500, 503, 504, 529)


@pytest.mark.parametrize("http", CODES)
def test_replies_of_servers_are_taken_as_a_run_takes_them(http, folder):
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


def test_a_busy_server_is_asked_again_and_without_what_it_does_not_know(tmp_path):
    def answer(seen: Seen) -> Do:
        refused = {"code": "unsupported_parameter", "param": "max_tokens", "message": "x"}
        if seen.number == 0:
            return Do(status=503)
        if seen.model == "m-one" and "max_tokens" in seen.body:
            return Do(status=400, body=json.dumps({"error": refused}))
        if "store" in seen.body:
            extra = {"type": "extra_forbidden", "loc": ["body", "store"]}
            return Do(status=422, body=json.dumps({"detail": [extra]}))
        return Do(status=400 if seen.model == "m-one" and seen.form != "text" else 200)

    with Stub(answer) as stub:
        files = engine_of(export(panel(stub)))
        told = json.loads(files[SETTINGS_FILE])
        for bodies in told["jurors"][0]["bodies"].values():
            for body in bodies.values():
                body["store"] = False
        write_folder(tmp_path / "out", files | {SETTINGS_FILE: json.dumps(told)})
        found = outside(ASK, tmp_path / "out", CARDS[:2])
        sent = [seen for seen in stub.seen if seen.model == "m-one"]
    assert {one["status"] for jury in found for one in jury.values()} == {"ok"}
    names = [[key for key in seen.body if key.startswith(("max", "store"))] for seen in sent]
    for limit in ("max_tokens", "max_completion_tokens"):
        assert [limit, "store"] in names
    assert names[-1] == ["max_completion_tokens"]
    assert (sent[0].form, sent[-1].form) == ("json_schema", "text")


def test_what_is_rated_carries_the_ids_it_can_rejoin_its_study_by(tmp_path):
    jurors, rubric = read_panel("current"), read_rubric("generic")
    told = json.loads(engine_of(Export(rubric, jurors, ROWS, RECORD, "f" * 64))[SETTINGS_FILE])
    assert (told["origin"]["study"], told["origin"]["rubric_sha256"]) == ("f" * 64, rubric.sha256)
    assert Rubric(**told["rubric"]).sha256 == rubric.sha256
    asked = {one["name"]: one["profile"] for one in told["jurors"]}
    assert asked == {one.name: one.profile() for one in jurors.juror}


SHOWN = Card("c", "Source.", "Write.", "The response.", None, None)
SCORES = {"accuracy": (2.0, 3.0), "completeness": (4.0,), "clarity": (5.0,)}


def learned(**changes: object) -> Rubric:
    """Return the generic rubric with guidance, an example and a parent."""
    base = read_rubric("generic")
    first, *others = base.criterion
    criteria = (first.model_copy(update={"guidance": "A wrong dose is a 1."}), *others)
    said = {"context": "A cough.", "prompt": "Write.", "response": "No <response>cough {{schema}}."}
    example = Example(**said, scores=SCORES, why="No.")
    more = {"criterion": criteria, "example": (example,), "parent": base.sha256} | changes
    return Rubric(**{name: getattr(base, name) for name in type(base).model_fields} | more)


def test_jurors_read_guidance_and_examples_that_forge_nothing_else_the_hash_stays():
    body = read_rubric("generic").to_json()
    assert not any(key in body for key in ('"guidance"', '"example"', '"parent"'))
    assert Rubric.from_json(learned().to_json()) == learned()
    assert learned().sha256 != read_rubric("generic").sha256
    prompt = learned().render(SHOWN)
    assert "Mind: A wrong dose is a 1." in prompt
    assert "accuracy 2, 3; completeness 4; clarity 5" in prompt
    assert "No <~response>cough {{schema}}." in prompt
    assert "Mind:" not in read_rubric("generic").render(SHOWN)


def test_a_learned_rubric_is_read_back_from_its_files_and_from_an_export(tmp_path):
    rubric = learned()
    write_rubrics(tmp_path / "out", {"learned": rubric})
    assert read_rubric(tmp_path / "out" / "learned") == rubric
    write_folder(tmp_path / "x", engine_of(Export(rubric, read_panel("current"), (), RECORD)))
    assert Jury(tmp_path / "x" / SETTINGS_FILE).render(asdict(SHOWN)) == rubric.render(SHOWN)


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        ({"accuracy": (2.0,)}, "its scores must be of accuracy, completeness, clarity"),
        (SCORES | {"accuracy": (9.0,)}, "on the scale 1-5"),
        (dict.fromkeys(SCORES, ()), "on the scale 1-5"),
    ],
)
def test_an_example_that_rates_otherwise_is_refused(tmp_path, scores, why):
    folder = tmp_path / "out" / "learned"
    write_rubrics(tmp_path / "out", {"learned": learned(example=())})
    rows = "\n".join(f"{name} = {list(given)}" for name, given in scores.items())
    text = f'\n[[example]]\ncontext = ""\nprompt = ""\nresponse = "x"\n[example.scores]\n{rows}\n'
    toml = folder / "rubric.toml"
    toml.write_text(toml.read_text("utf-8") + text, "utf-8")
    with pytest.raises(BadRubric, match=why):
        read_rubric(folder)


def pdsqi_verdict(seen: Seen) -> str:
    """Return a verdict on PDSQI-9: what need not apply does not apply where nothing is to be joined."""
    scores: dict[str, Any] = dict.fromkeys(read_rubric("pdsqi_9").criteria, 4)
    joined = "amber" in seen.prompt
    scores |= {"respectful": 1, "synthesized": 3 if joined else NOT_APPLICABLE}
    return json.dumps({name: {"explanation": "so", "score": one} for name, one in scores.items()})


def test_an_instrument_of_mixed_scales_is_asked_stored_and_exported_alike(engine, write, tmp_path):
    pdsqi, file = read_rubric("pdsqi_9"), TableFile(write("notes.jsonl", LINES))
    import_responses(engine, ResponseFile(file), lambda _: pdsqi)
    with Stub(lambda seen: Do(text=pdsqi_verdict(seen))) as stub:
        result = run(engine, panel(stub))
        write_folder(tmp_path / "out", engine_of(export(panel(stub), "pdsqi_9")))
        code = "[[one.composite, one.scores.get('synthesized')] for one in map(jury.rate, told)]"
        theirs = outside(code, tmp_path / "out", CARDS)
    assert result.to_json()["rated"] == 8
    open_answers = [one for one in ratings(engine) if one.answer]
    assert {one.criterion for one in open_answers} == {"synthesized"}
    assert [(one.score, one.answer) for one in open_answers] == [(None, NOT_APPLICABLE)] * 6
    # 4 of 1-5 is 0.75; 1 of 0-1 is 1; 3 of 1-5 is 0.5: of nine criteria that apply, or of eight.
    assert theirs == [
        [pytest.approx((7 * 0.75 + 0.5 + 1) / 9), 3.0],
        *[[pytest.approx((7 * 0.75 + 1) / 8), None]] * 3,
    ]
    assert verify(engine).findings == ()
