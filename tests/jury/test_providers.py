"""Providers by the vendors' own SDK classes, against servers of the loopback: what is asked, with which credentials, and read."""

import asyncio
import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import anthropic
import openai
import pytest
from kit.identity_servers import TokenServer
from kit.jurors import CALL, USAGE_IN, USAGE_OUT, Do, Seen, Stub, answers, juror
from kit.jury_runs import many, panel_at

from data.schema import Status
from jury.api_protocols import unsupported_parameter
from jury.call import Answer, Call, Turn
from jury.panel import Juror, Panel
from jury.probe import probe
from jury.providers.registry import open_provider
from jury.run import run_panel
from jury.session import fatal

SECRET = "MRS-EXAMPLE-HAS-A-FEVER"
FORM = {"type": "object", "properties": {"test": {"type": "object"}}}
SECRET_CALL = Call((Turn("user", SECRET),), FORM)
BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def asked(
    provider: str, *script: Do, form: Any = "json_schema", **settings: Any
) -> tuple[Answer, Stub]:
    """Return the answer of a server that follows a script, and the server."""
    with Stub([*script]) as stub:
        url = stub.openai_url if provider == "openai" else stub.anthropic_url
        call = replace(SECRET_CALL, form=form)
        return answers(juror(provider, url, **settings), call=call, seconds=0.5)[0], stub


@BOTH
def test_an_answer_brings_text_tokens_model_and_request_id(provider):
    got, _ = asked(provider, Do("hello"), temperature=0.0, effort="low")
    assert (got.status, got.text, got.http) == (Status.OK, "hello", 200)
    assert (got.usage.tokens_in, got.usage.tokens_out) == (USAGE_IN, USAGE_OUT)
    assert got.usage.tokens_cached == 10
    assert (got.returned_model, got.request_id) == ("m-returned", "req-1")
    told = (got.sent["temperature"], got.sent["model"], got.sent["schema"])
    assert told == (0.0, "m", "json_schema")
    assert SECRET not in str(got.sent)


def test_a_request_carries_schema_temperature_limit_and_effort():
    settings = {"temperature": 0.0, "max_tokens": 77}
    body = asked("openai", Do("x"), **settings)[1].seen[0].body
    assert body["response_format"]["json_schema"]["schema"] == SECRET_CALL.schema
    assert body["response_format"]["json_schema"]["strict"] is True
    assert (body["temperature"], body["max_tokens"]) == (0.0, 77)
    assert body["messages"] == [{"role": "user", "content": SECRET}]
    body = asked("anthropic", Do("x"), effort="low", **settings)[1].seen[0].body
    assert body["output_config"]["format"] == {"type": "json_schema", "schema": SECRET_CALL.schema}
    assert body["output_config"]["effort"] == "low"
    assert (body["temperature"], body["max_tokens"]) == (0.0, 77)


@BOTH
def test_a_juror_without_temperature_sends_none_and_without_counts_has_none(provider):
    got, stub = asked(provider, Do("x", usage=False), form="text")
    assert "temperature" not in stub.seen[0].body
    assert stub.seen[0].form == "text"
    assert (got.usage.tokens_in, got.usage.tokens_out) == (None, None)


FAILURES = [
    (Do(status=401), Status.AUTH, False),
    (Do(status=403), Status.AUTH, False),
    (Do(status=402), Status.QUOTA, False),
    (Do(status=429), Status.RATE_LIMITED, True),
    (Do(status=429, code="insufficient_quota"), Status.QUOTA, False),
    (Do(status=400), Status.REQUEST_FAILED, False),
    (Do(status=404), Status.REQUEST_FAILED, False),
    (Do(status=500), Status.REQUEST_FAILED, True),
    (Do(status=529, code="overloaded_error"), Status.REQUEST_FAILED, True),
    (Do(status=504), Status.TIMEOUT, True),
    (Do(drop=True), Status.REQUEST_FAILED, True),
    (Do(seconds=2), Status.TIMEOUT, True),
    (Do(body="<html>Sign in to the hospital network</html>"), Status.REQUEST_FAILED, True),
    (Do(body="[]"), Status.REQUEST_FAILED, True),
    (Do(finish="truncated", text='{"a'), Status.TRUNCATED, False),
    (Do(refusal="I would rather not."), Status.REFUSED, False),
]


@BOTH
@pytest.mark.parametrize(("do", "status", "transient"), FAILURES)
def test_each_failure_has_its_status_and_tells_nothing_of_the_text(provider, do, status, transient):
    got, stub = asked(provider, do)
    assert (got.status, got.transient) == (status, transient)
    assert len(stub.seen) == 1
    assert got.reason
    assert SECRET not in got.reason


@BOTH
def test_a_redirect_is_not_followed_to_another_host(provider):
    with Stub() as other:
        moved = {"location": other.openai_url + "/chat/completions"}
        got, _ = asked(provider, Do(status=307, headers=moved))
    assert (got.status, got.http) == (Status.REQUEST_FAILED, 307)
    assert other.seen == []


def refusing(*names: str) -> Any:
    """Return a script that refuses these parameters as OpenAI and Azure do."""

    def script(seen: Seen) -> Do:
        known = [name for name in names if name in seen.body]
        return Do(status=400, body=refusal(known[0])) if known else Do()

    return script


def refusal(name: str) -> str:
    said = f"Unsupported parameter: '{name}' is not supported with this model."
    error = {"message": said, "type": "invalid_request_error", "param": name}
    return json.dumps({"error": error | {"code": "unsupported_parameter"}})


LIMITS = ("max_tokens", "max_completion_tokens")


@pytest.mark.parametrize(("provider", "names"), [("openai", LIMITS), ("azure", LIMITS[::-1])])
def test_the_name_of_the_limit_is_learnt_and_remembered(provider, names):
    refused, sent = names
    with Stub(refusing(refused)) as stub:
        found = answers(juror(provider, stub.openai_url, api_key_env="K", max_tokens=77), 3)
    assert [(answer.status, answer.sent[sent]) for answer in found] == [(Status.OK, 77)] * 3
    assert [seen.body.get(sent) for seen in stub.seen] == [None, 77, 77, 77]


def test_a_server_that_knows_no_limit_at_all_is_not_asked_without_one():
    with Stub(refusing(*LIMITS)) as stub:
        found = answers(juror("openai", stub.openai_url), 2)
    assert ([answer.http for answer in found], len(stub.seen)) == ([400, 400], 3)
    assert all({*LIMITS} & seen.body.keys() for seen in stub.seen)


FASTAPI = {"detail": [{"type": "extra_forbidden", "loc": ["body", "store"], "msg": "Extra"}]}
ERRORS = [
    (json.loads(refusal("store")), "store"),
    (FASTAPI, "store"),
    ({"error": {"message": "Unrecognized request argument supplied: max_tokens"}}, "max_tokens"),
    ({"error": {"message": "This model does not support the effort parameter."}}, "effort"),
    ({"error": {"message": "the note says: Unsupported parameter: 'max_tokens'"}}, ""),
    ({"error": {"message": 7, "param": ["max_tokens"], "code": "unsupported_parameter"}}, ""),
    ({"error": {"message": "too large", "param": "max_tokens", "code": "invalid_value"}}, ""),
    ({"error": "max_tokens"}, ""),
    ([], ""),
]


@pytest.mark.parametrize(("body", "name"), ERRORS)
def test_a_name_counts_in_its_field_or_at_the_beginning_of_the_message(body, name):
    answer = Answer(Status.REQUEST_FAILED, "HTTP 400", json.dumps(body), http=400)
    assert unsupported_parameter(answer) == name


@pytest.mark.parametrize(("provider", "name"), [("openai", "reasoning_effort"), ("anthropic", "")])
def test_an_effort_that_is_refused_stops_the_juror_with_what_to_write(provider, name):
    said = {"error": {"message": "This model does not support the effort parameter."}}
    body = refusal(name) if name else json.dumps(said)
    with Stub(lambda _: Do(status=400, body=body)) as stub:
        (answer,) = answers(juror(provider, stub.anthropic_url, effort="low"))
    assert fatal(answer).startswith(f'{answer.reason}: the model refuses effort = "low"; ')


def test_the_probe_tells_what_to_write_and_what_was_learnt():
    with Stub(refusing("reasoning_effort", "max_tokens")) as stub:
        (row,) = probe(panel_at(stub, effort="low"))
    assert (row.status, row.effort, row.temperature) == (Status.OK, "refused", "not set")
    assert row.reason.startswith('refuses effort = "low"')
    assert row.to_json()["unsupported"] == ["max_tokens"]


MARK = "from-the-environment"
LITERAL = re.compile(r"""["']([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)["']""")
# Proxies and certificates are the network's, and a hospital often has no other way out.
OF_THE_NETWORK = re.compile(r"(HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)")
HEADERS = ("Authorization", "X-Api-Key", "Api-Key", "X-Added", "OpenAI-Organization")
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
OF_OPENAI = ("openai", "gemini")
ASK = """
import asyncio, json, sys
from jury.call import Call, Turn
from jury.panel import Juror
from jury.providers.registry import open_provider

async def ask(settings):
    line = open_provider(Juror.model_validate(settings), "the-key", 5.0)
    try:
        return str((await line.complete(Call((Turn("user", "A-TEXT"),), {}))).status)
    finally:
        await line.close()

print(json.dumps([asyncio.run(ask(one)) for one in json.loads(sys.argv[1])]))
"""


def variables() -> Iterator[str]:
    """Yield what may be a variable's name in any module of the SDKs that looks at the environment."""
    for sdk in (openai, anthropic):
        for path in Path(str(sdk.__file__)).parent.rglob("*.py"):
            text = path.read_text("utf-8")
            if "environ" in text or "getenv" in text or "ENV_" in text:
                yield from LITERAL.findall(text)


def environment(other: Stub) -> dict[str, str]:
    """Return the environment with each of these variables set to something that can be recognised."""
    found = {name: f"{MARK}-{name}" for name in variables() if not OF_THE_NETWORK.fullmatch(name)}
    headers = "\n".join(f"{name}: {MARK}" for name in HEADERS)
    for name in found:
        if name.endswith("CUSTOM_HEADERS"):
            found[name] = headers
        elif name.endswith(("_URL", "_ENDPOINT")):
            found[name] = f"{other.anthropic_url}/{MARK}"
        elif name.endswith("_LOG"):
            found[name] = "debug"
    return dict(os.environ) | found | {"DEFER_PYDANTIC_BUILD": "true"}


def with_keys(stub: Stub) -> list[dict[str, Any]]:
    """Return a juror of each kind that is asked with a key."""
    one = {"name": "j", "model": "m", "family": "f", "api_key_env": "THE_KEY"}
    one |= {"base_url": stub.anthropic_url}
    of_openai = [one | {"provider": name, "base_url": stub.openai_url} for name in OF_OPENAI]
    azure = [one | {"provider": "azure"} | more for more in ({}, {"api_version": "1"})]
    claude = [one | {"provider": name} for name in ("foundry", "anthropic")]
    bedrock = one | {"provider": "bedrock", "auth": "key", "region": "eu-central-1"}
    return [*azure, *claude, bedrock, *of_openai]


def answered(jurors: list[dict[str, Any]], variables: dict[str, str]) -> str:
    """Return what a process of its own wrote, in which each juror has answered."""
    command = [sys.executable, "-c", ASK, json.dumps(jurors)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["ok"] * len(jurors)
    return done.stdout + done.stderr


def test_the_environment_cannot_redirect_a_juror():
    """The bytes are the same with every variable that an SDK reads, and nothing is logged."""
    with Stub() as stub, Stub() as other:
        found = environment(other)
        assert {"OPENAI_CUSTOM_HEADERS", "ANTHROPIC_PROFILE", "AZURE_OPENAI_AD_TOKEN"} <= {*found}
        written = answered(with_keys(stub), found | dict.fromkeys(PROXIES, other.anthropic_url))
        answered(with_keys(stub), dict(os.environ))
    half = len(stub.raw) // 2
    assert half == len(with_keys(stub))
    assert stub.raw[:half] == stub.raw[half:]
    for raw in stub.raw:
        assert MARK.encode() not in raw
        assert b"the-key" in raw
    assert other.raw == []
    assert "A-TEXT" not in written


def test_a_juror_that_signs_in_sends_its_own_credentials_and_no_more(tmp_path):
    profile = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_EC2_METADATA_DISABLED": "true"}
    ours = "aws_access_key_id = AKID\naws_secret_access_key = secret\n"
    (tmp_path / "config").write_text(f"[profile ward]\n{ours}", "utf-8")
    with Stub() as stub, Stub() as other, TokenServer() as tokens:
        panel = [one | {"api_key_env": "", "auth": "entra"} for one in with_keys(stub)[:3]]
        place = {"region": "eu-central-1", "base_url": stub.anthropic_url}
        aws = {"provider": "bedrock", "auth": "iam", "profile": "ward"}
        google = {"provider": "vertex", "auth": "google", "project": "ward-7"}
        panel += [panel[0] | place | aws, panel[0] | place | google]
        identity = tokens.managed_identity() | tokens.service_account(tmp_path)
        answered(panel, environment(other) | identity | profile)
    for raw in stub.raw:
        assert MARK.encode() not in raw
    sent = [seen.headers["authorization"] for seen in stub.seen]
    assert all(one.startswith("Bearer token-") for one in [*sent[:3], sent[4]])
    assert "Credential=AKID/" in sent[3]
    assert "/eu-central-1/bedrock/aws4_request" in sent[3]
    assert other.raw == []


VENDORS_OWN = ("AWS_", "AZURE_", "GOOGLE_", "IDENTITY_", "MSI_", "CLOUDSDK_")


@pytest.fixture
def _bare(monkeypatch, tmp_path) -> None:
    """Leave a machine without any credential."""
    for name in os.environ:
        if name.startswith(VENDORS_OWN):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("PATH", "")


pytestmark = pytest.mark.usefixtures("_bare")


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    with TokenServer() as server:
        yield server


SetAll = Callable[[dict[str, str]], None]


@pytest.fixture
def set_all(monkeypatch) -> SetAll:
    def put(variables: dict[str, str]) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return put


AWS, GOOGLE = {"region": "eu-central-1"}, {"region": "us-east5", "project": "p"}
VERSION = {"api_version": "2025-04-01-preview"}
BY_VERSION = "/openai/deployments/ours/chat/completions?api-version=2025-04-01-preview"
BEARER, OURS = {"authorization": "Bearer the-key"}, {"deployment": "ours"}


@pytest.mark.parametrize(
    ("provider", "settings", "path", "headers"),
    [
        ("azure", OURS, "/openai/v1/chat/completions", BEARER),
        ("azure", OURS | VERSION, BY_VERSION, {"api-key": "the-key"}),
        ("foundry", {}, "/v1/messages", {"x-api-key": "the-key"}),
        ("bedrock", AWS | {"auth": "key", "model": "claude-x"}, "/model/claude-x/invoke", BEARER),
        ("gemini", {}, "/chat/completions", BEARER),
    ],
)
def test_each_cloud_is_asked_with_a_key_in_its_own_header(provider, settings, path, headers, stub):
    one = juror(provider, stub.anthropic_url, api_key_env="K", **settings)
    (answer,) = answers(one)
    (seen,) = stub.seen
    assert (answer.status, seen.path) == (Status.OK, path)
    assert seen.headers.items() >= headers.items()
    assert ("authorization" in seen.headers) is ("authorization" in headers)
    if provider == "azure":
        assert seen.model == "ours"
        assert seen.body["max_completion_tokens"] == one.max_tokens
        assert "max_tokens" not in seen.body


@pytest.mark.parametrize(
    ("provider", "settings", "resource"),
    [
        ("azure", {}, "https://cognitiveservices.azure.com"),
        ("azure", VERSION, "https://cognitiveservices.azure.com"),
        ("foundry", {}, "https://ai.azure.com"),
    ],
)
def test_entra_gives_the_token_of_the_machines_own_identity_and_a_juror_outlives_it(
    provider, settings, resource, tokens, set_all, stub
):
    set_all(tokens.managed_identity())
    one = juror(provider, stub.anthropic_url, auth="entra", **settings)
    found = answers(one, 2, "none")
    assert len(tokens.asked) == 1
    tokens.seconds = 60  # less than the time before its end at which a token is renewed
    found += answers(one, 3, "none")
    assert [answer.status for answer in found] == [Status.OK] * 5
    sent = [seen.headers["authorization"] for seen in stub.seen]
    assert sent == [f"Bearer token-{number}" for number in (1, 1, 2, 3, 4)]
    assert not {"api-key", "x-api-key"} & stub.seen[0].headers.keys()
    assert all(resource in unquote(path) for path, _ in tokens.asked)


def test_google_is_asked_at_project_and_region_with_its_own_token(tokens, set_all, tmp_path, stub):
    set_all(tokens.service_account(tmp_path))
    place = {"region": "europe-west1", "project": "ward-7"}
    found = answers(juror("vertex", stub.openai_url, model="claude-x", **place), 2, "none")
    assert tokens.given == 1
    found += answers(juror("gemini", stub.openai_url, auth="google", **place), key="none")
    seen, _, gemini = stub.seen
    assert [answer.status for answer in found] == [Status.OK] * 3
    place = "/v1/projects/ward-7/locations/europe-west1/publishers/anthropic"
    assert seen.path == f"{place}/models/claude-x:rawPredict"
    assert seen.headers["authorization"] == "Bearer token-1"
    assert seen.body["anthropic_version"]
    assert "model" not in seen.body
    assert gemini.headers["authorization"] == "Bearer token-2"


def signature(raw: bytes, secret: str) -> str:
    """Return AWS's signature (version 4) of a request as it came in, computed by its published rules."""
    head, body = raw.split(b"\r\n\r\n", 1)
    first, *lines = head.decode().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    parts = headers["authorization"].split(" ", 1)[1].split(", ")
    fields = dict(part.split("=", 1) for part in parts)
    signed = fields["SignedHeaders"].split(";")
    told = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed)
    request = [method, quote(path, safe="/~"), "", told, ";".join(signed)]
    canonical = "\n".join([*request, hashlib.sha256(body).hexdigest()])
    _, day, region, service, end = fields["Credential"].split("/")
    scope = "/".join([day, region, service, end])
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashed])
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, end, text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    assert key.hex() == fields["Signature"]
    return fields["Credential"]


def test_claude_on_bedrock_is_asked_with_a_signature_for_its_region(set_all, stub):
    set_all({"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"})
    one = juror("bedrock", stub.anthropic_url, model="us.anthropic.claude-x-v1:0", **AWS)
    (answer,) = answers(one, key="none")
    seen = stub.seen[0]
    assert (answer.status, seen.path) == (Status.OK, "/model/us.anthropic.claude-x-v1:0/invoke")
    assert seen.body["anthropic_version"]
    credential = signature(stub.raw[0], "secret")
    assert credential.startswith("AKID/")
    assert credential.endswith("/eu-central-1/bedrock/aws4_request")


def aws_profile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a profile `ward` whose keys a program gives, and return the file it counts in."""
    count, program, config = folder / "count", folder / "keys.py", folder / "config"
    program.write_text(
        "import json, pathlib\n"
        f"file = pathlib.Path({str(count)!r})\n"
        "number = len(file.read_text()) + 1 if file.exists() else 1\n"
        "file.write_text('x' * number)\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': f'AKID{number}',"
        " 'SecretAccessKey': 'secret', 'SessionToken': 'session',"
        " 'Expiration': '2099-01-01T00:00:00Z'}))\n",
        "utf-8",
    )
    config.write_text(f"[profile ward]\ncredential_process = {sys.executable} {program}\n", "utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    return count


def test_a_named_profile_gives_the_keys_whatever_the_environment_holds_and_anew_once_expired(
    monkeypatch, set_all, tmp_path, stub
):
    set_all({"AWS_ACCESS_KEY_ID": "OTHER", "AWS_SECRET_ACCESS_KEY": "other"})
    set_all({"AWS_BEARER_TOKEN_BEDROCK": "other"})
    count = aws_profile(tmp_path, monkeypatch)
    one = juror("bedrock", stub.anthropic_url, profile="ward", **AWS)
    assert [answer.status for answer in answers(one, 3, "none")] == [Status.OK] * 3
    assert signature(stub.raw[0], "secret").startswith("AKID1/")
    assert stub.seen[0].headers["x-amz-security-token"] == "session"
    assert count.read_text() == "x"
    error = {"x-amzn-errortype": "ExpiredTokenException:http://internal.amazon.com/"}
    expired = Do(status=403, headers=error, body='{"message": "expired"}')
    stub.script = lambda seen: (
        expired if "AKID2/" in seen.headers["authorization"] and seen.number > 3 else Do()
    )
    assert [answer.status for answer in answers(one, 3, "none")] == [Status.OK] * 3
    assert len(stub.seen) == 3 + 4


@pytest.mark.parametrize("provider", ["azure", "foundry", "vertex", "gemini"])
def test_a_token_that_a_host_refuses_early_is_fetched_anew(provider, tokens, set_all, tmp_path):
    set_all(tokens.managed_identity() | tokens.service_account(tmp_path))
    google = provider in ("vertex", "gemini")
    settings = {"auth": "google"} | GOOGLE if google else {"auth": "entra"}

    with Stub() as stub:
        old = Do(status=401, body="{}")
        stub.script = lambda seen: (
            old if seen.number and seen.headers["authorization"] == "Bearer token-1" else Do()
        )
        found = answers(juror(provider, stub.anthropic_url, **settings), 3, "none")
    assert [answer.status for answer in found] == [Status.OK] * 3
    assert (len(stub.seen), tokens.given) == (4, 2)


UNSIGNED = [("azure", {"auth": "entra"}), ("bedrock", AWS), ("vertex", GOOGLE)]


@pytest.mark.parametrize(
    ("provider", "settings"), [*UNSIGNED, ("bedrock", AWS | {"profile": "nobody"})]
)
def test_without_credentials_nothing_is_sent_and_it_is_said(
    provider, settings, set_all, stub, caplog
):
    set_all({"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/account.json"})
    set_all({"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential"})
    (answer,) = answers(juror(provider, stub.anthropic_url, **settings), key="none")
    assert (answer.status, answer.unsent, stub.raw) == (Status.AUTH, True, [])
    assert answer.reason.startswith("no credentials: ")
    assert caplog.text == ""


def test_tokens_that_cannot_be_reached_just_now_are_asked_for_again_later(set_all, tmp_path, stub):
    with TokenServer() as gone:
        set_all(gone.service_account(tmp_path))
    (answer,) = answers(juror("vertex", stub.anthropic_url, **GOOGLE), key="none")
    assert (answer.status, answer.transient, answer.unsent) == (Status.REQUEST_FAILED, True, True)
    assert stub.raw == []


def test_a_run_outlives_tokens_that_a_host_takes_for_a_while_only(engine, write, tokens, set_all):
    set_all(tokens.managed_identity())
    many(engine, write, 130)
    taken: Counter[str] = Counter()

    def script(seen: Seen) -> Do:
        token = seen.headers["authorization"]
        is_taken = taken[token] < 40
        taken[token] += is_taken
        return Do() if is_taken else Do(status=401, body="{}")

    with Stub(script) as stub:
        free = {"usd_per_million_in": 0.0, "usd_per_million_out": 0.0}
        one = juror("azure", stub.anthropic_url, auth="entra", schema="json_schema", **free)
        rules = write("egress.toml", f'hosts."{one.place}" = {{ auth = ["entra"] }}')
        set_all({"MEDJURY_EGRESS": str(rules)})
        result = run_panel(engine, Panel(name="p", juror=(one,)))
    assert (result.rated, result.missing) == (130, 0)
    assert tokens.given == 4
    assert sum(taken.values()) == 130


def test_many_calls_at_once_fetch_one_token(tokens, set_all):
    set_all(tokens.managed_identity())

    async def ask(one: Juror) -> list[Answer]:
        line = open_provider(one, "none", 10.0)
        try:
            return list(await asyncio.gather(*(line.complete(CALL) for _ in range(20))))
        finally:
            await line.close()

    with Stub(lambda _: Do(seconds=1.0)) as stub:
        found = asyncio.run(ask(juror("azure", stub.anthropic_url, auth="entra")))
    assert [answer.status for answer in found] == [Status.OK] * 20
    assert (stub.peak, tokens.given) == (20, 1)
