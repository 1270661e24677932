"""The vendors' own SDK classes for each cloud, against servers of the loopback with their addresses."""

import asyncio
import hashlib
import hmac
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from kit.identity_servers import TokenServer
from kit.jurors import CALL, Do, Seen, Stub, answers, juror
from kit.jury_runs import many
from kit.studies import Write
from sqlalchemy import Engine

from data.schema import Status
from jury.call import Answer
from jury.panel import Juror, Panel
from jury.providers.registry import open_provider
from jury.run import run_panel

VENDORS_OWN = ("AWS_", "AZURE_", "GOOGLE_", "IDENTITY_", "MSI_", "CLOUDSDK_")


@pytest.fixture
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
def set_all(monkeypatch: pytest.MonkeyPatch) -> SetAll:
    def put(variables: dict[str, str]) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return put


AWS, GOOGLE = {"region": "eu-central-1"}, {"region": "us-east5", "project": "p"}


@pytest.mark.parametrize(
    ("provider", "settings", "path", "headers"),
    [
        (
            "azure",
            {"deployment": "ours"},
            "/openai/v1/chat/completions",
            {"authorization": "Bearer the-key"},
        ),
        (
            "azure",
            {"deployment": "ours", "api_version": "2025-04-01-preview"},
            "/openai/deployments/ours/chat/completions?api-version=2025-04-01-preview",
            {"api-key": "the-key"},
        ),
        ("foundry", {}, "/v1/messages", {"x-api-key": "the-key"}),
        (
            "bedrock",
            AWS | {"auth": "key", "model": "claude-x"},
            "/model/claude-x/invoke",
            {"authorization": "Bearer the-key"},
        ),
        ("gemini", {}, "/chat/completions", {"authorization": "Bearer the-key"}),
    ],
)
def test_each_cloud_is_asked_at_its_address_with_a_key_in_its_own_header(
    provider: str, settings: dict[str, str], path: str, headers: dict[str, str], stub: Stub
) -> None:
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
        ("azure", {"api_version": "2025-04-01-preview"}, "https://cognitiveservices.azure.com"),
        ("foundry", {}, "https://ai.azure.com"),
    ],
)
def test_entra_gives_the_token_of_the_machines_own_identity_and_a_juror_outlives_it(
    provider: str,
    settings: dict[str, str],
    resource: str,
    tokens: TokenServer,
    set_all: SetAll,
    stub: Stub,
) -> None:
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


def test_google_is_asked_at_a_project_and_region_with_its_own_token(
    tokens: TokenServer, set_all: SetAll, tmp_path: Path, stub: Stub
) -> None:
    set_all(tokens.service_account(tmp_path))
    place = {"region": "europe-west1", "project": "ward-7"}
    found = answers(juror("vertex", stub.openai_url, model="claude-x", **place), 2, "none")
    assert tokens.given == 1
    found += answers(juror("gemini", stub.openai_url, auth="google", **place), key="none")
    seen, _, gemini = stub.seen
    assert [answer.status for answer in found] == [Status.OK] * 3
    assert seen.path == (
        "/v1/projects/ward-7/locations/europe-west1/publishers/anthropic/models/claude-x:rawPredict"
    )
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
    fields = dict(
        part.split("=", 1) for part in headers["authorization"].split(" ", 1)[1].split(", ")
    )
    signed = fields["SignedHeaders"].split(";")
    quoted = quote(path, safe="/~")
    told = [f"{name}:{' '.join(headers[name].split())}\n" for name in signed]
    digest = hashlib.sha256(body).hexdigest()
    canonical = "\n".join([method, quoted, "", "".join(told), ";".join(signed), digest])
    _, day, region, service, end = fields["Credential"].split("/")
    scope = "/".join([day, region, service, end])
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashed])
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, end, text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    assert key.hex() == fields["Signature"]
    return fields["Credential"]


def test_claude_on_bedrock_is_asked_with_a_signature_for_its_region(
    set_all: SetAll, stub: Stub
) -> None:
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
    monkeypatch: pytest.MonkeyPatch, set_all: SetAll, tmp_path: Path, stub: Stub
) -> None:
    set_all({"AWS_ACCESS_KEY_ID": "OTHER", "AWS_SECRET_ACCESS_KEY": "other"})
    set_all({"AWS_BEARER_TOKEN_BEDROCK": "other"})
    count = aws_profile(tmp_path, monkeypatch)
    one = juror("bedrock", stub.anthropic_url, profile="ward", **AWS)
    assert [answer.status for answer in answers(one, 3, "none")] == [Status.OK] * 3
    assert signature(stub.raw[0], "secret").startswith("AKID1/")
    assert stub.seen[0].headers["x-amz-security-token"] == "session"
    assert count.read_text() == "x"
    expired = {"x-amzn-errortype": "ExpiredTokenException:http://internal.amazon.com/"}

    def script(seen: Seen) -> Do:
        old = "AKID2/" in seen.headers["authorization"] and seen.number > 3
        return Do(status=403, headers=expired, body='{"message": "expired"}') if old else Do()

    stub.script = script
    assert [answer.status for answer in answers(one, 3, "none")] == [Status.OK] * 3
    assert len(stub.seen) == 3 + 4


@pytest.mark.parametrize("provider", ["azure", "foundry", "vertex", "gemini"])
def test_a_token_that_a_host_refuses_early_is_fetched_anew(
    provider: str, tokens: TokenServer, set_all: SetAll, tmp_path: Path
) -> None:
    set_all(tokens.managed_identity() | tokens.service_account(tmp_path))
    google = provider in ("vertex", "gemini")
    settings = {"auth": "google"} | GOOGLE if google else {"auth": "entra"}

    def script(seen: Seen) -> Do:
        old = seen.headers["authorization"] == "Bearer token-1" and seen.number > 0
        return Do(status=401, body="{}") if old else Do()

    with Stub(script) as stub:
        found = answers(juror(provider, stub.anthropic_url, **settings), 3, "none")
    assert [answer.status for answer in found] == [Status.OK] * 3
    assert (len(stub.seen), tokens.given) == (4, 2)


@pytest.mark.parametrize(
    ("provider", "settings"),
    [
        ("azure", {"auth": "entra"}),
        ("bedrock", AWS),
        ("bedrock", AWS | {"profile": "nobody"}),
        ("vertex", GOOGLE),
    ],
)
def test_a_machine_without_credentials_sends_nothing_and_says_so(
    provider: str,
    settings: dict[str, str],
    set_all: SetAll,
    stub: Stub,
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_all({"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/account.json"})
    set_all({"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential"})
    (answer,) = answers(juror(provider, stub.anthropic_url, **settings), key="none")
    assert (answer.status, answer.unsent, stub.raw) == (Status.AUTH, True, [])
    assert answer.reason.startswith("no credentials: ")
    assert caplog.text == ""


def test_tokens_that_cannot_be_reached_just_now_are_asked_for_again_later(
    set_all: SetAll, tmp_path: Path, stub: Stub
) -> None:
    with TokenServer() as gone:
        set_all(gone.service_account(tmp_path))
    (answer,) = answers(juror("vertex", stub.anthropic_url, **GOOGLE), key="none")
    assert (answer.status, answer.transient, answer.unsent) == (Status.REQUEST_FAILED, True, True)
    assert stub.raw == []


def test_a_run_outlives_tokens_that_a_host_takes_for_a_while_only(
    engine: Engine, write: Write, tokens: TokenServer, set_all: SetAll
) -> None:
    set_all(tokens.managed_identity())
    many(engine, write, 130)
    taken: Counter[str] = Counter()

    def script(seen: Seen) -> Do:
        token = seen.headers["authorization"]
        if taken[token] == 40:
            return Do(status=401, body="{}")
        taken[token] += 1
        return Do()

    with Stub(script) as stub:
        free = {"usd_per_million_in": 0.0, "usd_per_million_out": 0.0}
        one = juror("azure", stub.anthropic_url, auth="entra", schema="json_schema", **free)
        rules = write("egress.toml", f'hosts."{one.place}" = {{ auth = ["entra"] }}')
        set_all({"MEDJURY_EGRESS": str(rules)})
        result = run_panel(engine, Panel(name="p", juror=(one,)))
    assert (result.rated, result.missing) == (130, 0)
    assert tokens.given == 4
    assert sum(taken.values()) == 130


def test_many_calls_at_once_fetch_one_token(tokens: TokenServer, set_all: SetAll) -> None:
    set_all(tokens.managed_identity())

    async def ask(one: Juror) -> list[Answer]:
        line = open_provider(one, "none", 10.0)
        try:
            return list(await asyncio.gather(*(line.complete(CALL) for _ in range(20))))
        finally:
            await line.close()

    with Stub(lambda _: Do(seconds=0.1)) as stub:
        found = asyncio.run(ask(juror("azure", stub.anthropic_url, auth="entra")))
    assert [answer.status for answer in found] == [Status.OK] * 20
    assert (stub.peak, tokens.given) == (20, 1)
