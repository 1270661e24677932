"""The vendors' own SDK classes for each cloud, against servers of the loopback with their addresses."""

import asyncio
import hashlib
import hmac
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

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


def set_all(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_azures_v1_address_is_asked_with_the_deployment_as_the_model() -> None:
    with Stub() as stub:
        one = juror("azure", stub.anthropic_url, api_key_env="K", deployment="ours")
        (answer,) = answers(one)
    seen = stub.seen[0]
    assert (answer.status, seen.path) == (Status.OK, "/openai/v1/chat/completions")
    assert (seen.model, seen.headers["authorization"]) == ("ours", "Bearer the-key")
    assert seen.body["max_completion_tokens"] == one.max_tokens
    assert "max_tokens" not in seen.body


def test_a_deployment_at_azure_is_asked_with_its_api_version_and_key() -> None:
    with Stub() as stub:
        version = "2025-04-01-preview"
        one = juror(
            "azure", stub.anthropic_url, api_key_env="K", deployment="ours", api_version=version
        )
        (answer,) = answers(one)
    seen = stub.seen[0]
    assert answer.status == Status.OK
    assert seen.path == f"/openai/deployments/ours/chat/completions?api-version={version}"
    assert seen.headers["api-key"] == "the-key"
    assert "authorization" not in seen.headers


ENTRA = [
    ("azure", {}, "https://cognitiveservices.azure.com"),
    ("azure", {"api_version": "2025-04-01-preview"}, "https://cognitiveservices.azure.com"),
    ("foundry", {}, "https://ai.azure.com"),
]


@pytest.mark.parametrize(("provider", "settings", "resource"), ENTRA)
def test_entra_gives_the_token_of_the_machines_own_identity(
    provider: str,
    settings: dict[str, str],
    resource: str,
    tokens: TokenServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_all(monkeypatch, tokens.managed_identity())
    with Stub() as stub:
        one = juror(provider, stub.anthropic_url, auth="entra", **settings)
        found = answers(one, 2, "none")
    assert [answer.status for answer in found] == [Status.OK] * 2
    assert [seen.headers["authorization"] for seen in stub.seen] == ["Bearer token-1"] * 2
    assert not {"api-key", "x-api-key"} & stub.seen[0].headers.keys()
    assert [
        resource in path.replace("%3A", ":").replace("%2F", "/") for path, _ in tokens.asked
    ] == [True]


def test_claude_on_foundry_is_asked_with_a_key_header_of_its_own() -> None:
    with Stub() as stub:
        (answer,) = answers(juror("foundry", f"{stub.anthropic_url}/anthropic", api_key_env="K"))
    seen = stub.seen[0]
    assert (answer.status, seen.path) == (Status.OK, "/anthropic/v1/messages")
    assert seen.headers["x-api-key"] == "the-key"
    assert seen.headers["anthropic-version"]
    assert "authorization" not in seen.headers


def test_claude_on_vertex_is_asked_at_its_project_and_region_with_googles_token(
    tokens: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_all(monkeypatch, tokens.service_account(tmp_path))
    with Stub() as stub:
        url = f"{stub.anthropic_url}/v1"
        one = juror("vertex", url, region="europe-west1", project="ward-7", model="claude-x")
        found = answers(one, 2, "none")
    seen = stub.seen[0]
    assert [answer.status for answer in found] == [Status.OK] * 2
    assert seen.path == (
        "/v1/projects/ward-7/locations/europe-west1/publishers/anthropic/models/claude-x:rawPredict"
    )
    assert seen.headers["authorization"] == "Bearer token-1"
    assert seen.body["anthropic_version"]
    assert "model" not in seen.body
    assert tokens.given == 1


def test_gemini_is_asked_with_a_key_or_with_googles_token(
    tokens: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_all(monkeypatch, tokens.service_account(tmp_path))
    with Stub() as stub:
        answers(juror("gemini", f"{stub.anthropic_url}/v1beta/openai", api_key_env="K"))
        place = {"region": "europe-west1", "project": "ward-7"}
        answers(juror("gemini", stub.openai_url, auth="google", **place), key="none")
    first, second = stub.seen
    assert (first.path, first.headers["authorization"]) == (
        "/v1beta/openai/chat/completions",
        "Bearer the-key",
    )
    assert second.headers["authorization"] == "Bearer token-1"


def bedrock(stub: Stub, **settings: Any) -> Juror:
    return juror("bedrock", stub.anthropic_url, region="eu-central-1", **settings)


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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_all(monkeypatch, {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"})
    with Stub() as stub:
        (answer,) = answers(bedrock(stub, model="us.anthropic.claude-x-v1:0"), key="none")
    seen = stub.seen[0]
    assert answer.status == Status.OK
    assert seen.path == "/model/us.anthropic.claude-x-v1:0/invoke"
    assert seen.body["anthropic_version"]
    credential = signature(stub.raw[0], "secret")
    assert credential.startswith("AKID/")
    assert credential.endswith("/eu-central-1/bedrock/aws4_request")


def test_claude_on_bedrock_is_asked_with_a_key_of_bedrocks() -> None:
    with Stub() as stub:
        (answer,) = answers(bedrock(stub, auth="key", api_key_env="K"))
    assert answer.status == Status.OK
    assert stub.seen[0].headers["authorization"] == "Bearer the-key"


def aws_profile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a profile `ward` whose keys a program gives, and return the file it counts in."""
    count = folder / "count"
    program = folder / "keys.py"
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
    config = folder / "config"
    config.write_text(f"[profile ward]\ncredential_process = {sys.executable} {program}\n", "utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    return count


def test_a_named_profile_gives_the_keys_whatever_the_environment_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_all(monkeypatch, {"AWS_ACCESS_KEY_ID": "OTHER", "AWS_SECRET_ACCESS_KEY": "other"})
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "other")
    count = aws_profile(tmp_path, monkeypatch)
    with Stub() as stub:
        found = answers(bedrock(stub, profile="ward"), 3, "none")
    assert [answer.status for answer in found] == [Status.OK] * 3
    assert signature(stub.raw[0], "secret").startswith("AKID1/")
    assert stub.seen[0].headers["x-amz-security-token"] == "session"
    assert count.read_text() == "x"


def test_keys_that_aws_calls_expired_are_fetched_anew_and_the_request_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aws_profile(tmp_path, monkeypatch)
    expired = {"x-amzn-errortype": "ExpiredTokenException:http://internal.amazon.com/"}
    with Stub() as stub:
        one = bedrock(stub, profile="ward")

        def script(seen: Seen) -> Do:
            old = "AKID1/" in seen.headers["authorization"] and seen.number > 0
            error = Do(status=403, headers=expired, body='{"message": "expired"}')
            return error if old else Do()

        stub.script = script
        found = answers(one, 3, "none")
    assert [answer.status for answer in found] == [Status.OK] * 3
    assert len(stub.seen) == 4


def test_a_juror_outlives_tokens_that_run_out(
    tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_all(monkeypatch, tokens.managed_identity())
    tokens.seconds = 60  # less than the time before its end at which a token is renewed
    with Stub() as stub:
        found = answers(juror("azure", stub.anthropic_url, auth="entra"), 3, "none")
    assert [answer.status for answer in found] == [Status.OK] * 3
    sent = [seen.headers["authorization"] for seen in stub.seen]
    assert sent == [f"Bearer token-{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize("provider", ["azure", "foundry", "vertex", "gemini"])
def test_a_token_that_a_host_refuses_early_is_fetched_anew(
    provider: str, tokens: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_all(monkeypatch, tokens.managed_identity() | tokens.service_account(tmp_path))
    google = provider in ("vertex", "gemini")
    place = {"region": "us-east5", "project": "p"} if google else {}
    auth = "google" if google else "entra"

    def script(seen: Seen) -> Do:
        old = seen.headers["authorization"] == "Bearer token-1" and seen.number > 0
        return Do(status=401, body="{}") if old else Do()

    with Stub(script) as stub:
        found = answers(juror(provider, stub.anthropic_url, auth=auth, **place), 3, "none")
    assert [answer.status for answer in found] == [Status.OK] * 3
    assert (len(stub.seen), tokens.given) == (4, 2)


WITHOUT = [
    ("azure", {"auth": "entra"}),
    ("bedrock", {"region": "us-east-1"}),
    ("bedrock", {"region": "us-east-1", "profile": "nobody"}),
    ("vertex", {"region": "us-east5", "project": "p"}),
]


@pytest.mark.parametrize(("provider", "settings"), WITHOUT)
def test_a_machine_without_credentials_sends_nothing_and_says_so(
    provider: str,
    settings: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/account.json")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    with Stub() as stub:
        (answer,) = answers(juror(provider, stub.anthropic_url, **settings), key="none")
    assert stub.raw == []
    assert (answer.status, answer.unsent) == (Status.AUTH, True)
    assert answer.reason.startswith("no credentials: ")
    assert caplog.text == ""


def test_many_calls_at_once_fetch_one_token(
    tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_all(monkeypatch, tokens.managed_identity())

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


def test_tokens_that_cannot_be_reached_just_now_are_asked_for_again_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with TokenServer() as gone:
        set_all(monkeypatch, gone.service_account(tmp_path))
    with Stub() as stub:
        place = {"region": "us-east5", "project": "p"}
        (answer,) = answers(juror("vertex", stub.anthropic_url, **place), key="none")
    assert (answer.status, answer.transient, answer.unsent) == (Status.REQUEST_FAILED, True, True)
    assert stub.raw == []


def test_a_run_outlives_tokens_that_a_host_takes_for_a_while_only(
    engine: Engine,
    write: Write,
    tokens: TokenServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_all(monkeypatch, tokens.managed_identity())
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
        monkeypatch.setenv("MEDJURY_EGRESS", str(rules))
        result = run_panel(engine, Panel(name="p", juror=(one,)))
    body = result.to_json()
    assert (body["rated"], body["missing"]) == (130, 0)
    assert tokens.given == 4
    assert sum(taken.values()) == 130
