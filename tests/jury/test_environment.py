"""Only what a panel says reaches a host: every variable the SDKs read is set, and the bytes looked at."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
from kit.identity_servers import TokenServer
from kit.jurors import Stub

MARK = "from-the-environment"
LITERAL = re.compile(r"""["']([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)["']""")
# Proxies and certificates are the network's, and a hospital often has no other way out.
OF_THE_NETWORK = re.compile(r"(HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)")
HEADERS = ("Authorization", "X-Api-Key", "Api-Key", "X-Added", "OpenAI-Organization")
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


def asked(jurors: list[dict[str, Any]], variables: dict[str, str]) -> tuple[list[str], str]:
    """Return how each juror answered a process of its own, and all that process wrote."""
    command = [sys.executable, "-c", ASK, json.dumps(jurors)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), done.stdout + done.stderr


def test_the_sdks_read_the_variables_that_leaked() -> None:
    found = set(variables())
    assert {
        "OPENAI_CUSTOM_HEADERS",
        "ANTHROPIC_CUSTOM_HEADERS",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "OPENAI_LOG",
        "ANTHROPIC_PROFILE",
        "AZURE_OPENAI_AD_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
    } <= found
    assert len(found) > 60


def jurors(stub: Stub) -> list[dict[str, Any]]:
    """Return a juror of each kind that is asked with a key."""
    one = {"name": "j", "model": "m", "family": "f", "api_key_env": "THE_KEY"}
    return [
        one | {"provider": "openai", "base_url": stub.openai_url},
        one | {"provider": "anthropic", "base_url": stub.anthropic_url},
        one | {"provider": "azure", "base_url": stub.anthropic_url},
        one | {"provider": "azure", "base_url": stub.anthropic_url, "api_version": "1"},
        one | {"provider": "foundry", "base_url": stub.anthropic_url},
        one | {"provider": "gemini", "base_url": stub.openai_url},
        one
        | {"provider": "bedrock", "auth": "key", "region": "eu-central-1"}
        | {"base_url": stub.anthropic_url},
    ]


def test_nothing_of_the_environment_is_in_the_bytes_that_reach_a_host() -> None:
    with Stub() as stub, Stub() as other:
        panel = jurors(stub)
        statuses, written = asked(panel, environment(other))
    assert statuses == ["ok"] * len(panel)
    assert len(stub.raw) == len(panel)
    for raw in stub.raw:
        assert MARK.encode() not in raw
        assert b"the-key" in raw
    assert other.raw == []
    assert "A-TEXT" not in written


def test_the_bytes_are_the_same_with_and_without_these_variables() -> None:
    with Stub() as stub, Stub() as other:
        asked(jurors(stub), environment(other))
        asked(jurors(stub), dict(os.environ))
    half = len(stub.raw) // 2
    assert half
    assert stub.raw[:half] == stub.raw[half:]


def test_a_juror_that_signs_in_sends_its_own_credentials_and_nothing_else_of_the_environment(
    tmp_path: Path,
) -> None:
    profile = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_EC2_METADATA_DISABLED": "true"}
    ours = "aws_access_key_id = AKID\naws_secret_access_key = secret\n"
    (tmp_path / "config").write_text(f"[profile ward]\n{ours}", "utf-8")
    with Stub() as stub, Stub() as other, TokenServer() as tokens:
        panel = [one | {"api_key_env": ""} for one in jurors(stub)[2:5]]
        panel = [one | {"auth": "entra"} for one in panel]
        place = {"region": "eu-central-1", "base_url": stub.anthropic_url}
        panel.append(panel[0] | place | {"provider": "bedrock", "auth": "iam", "profile": "ward"})
        panel.append(
            panel[0] | place | {"provider": "vertex", "auth": "google", "project": "ward-7"}
        )
        identity = tokens.managed_identity() | tokens.service_account(tmp_path)
        statuses, _ = asked(panel, environment(other) | identity | profile)
    assert statuses == ["ok"] * 5
    for raw in stub.raw:
        assert MARK.encode() not in raw
    sent = [seen.headers["authorization"] for seen in stub.seen]
    assert all(one.startswith("Bearer token-") for one in [*sent[:3], sent[4]])
    assert "Credential=AKID/" in sent[3]
    assert "/eu-central-1/bedrock/aws4_request" in sent[3]
    assert other.raw == []
