"""What a panel may say of each provider: what applies, what follows from it, what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest
from kit.jurors import juror
from kit.studies import Write

from data.errors import BadPanel
from jury.admission import api_keys
from jury.panel import Juror, Panel, read_panel

URL = "https://ward.example"
WRONG = [
    ({"provider": "openai", "region": "us-east-1"}, 'region: does not apply to provider "openai"'),
    ({"provider": "anthropic", "auth": "key"}, 'auth: does not apply to provider "anthropic"'),
    ({"provider": "bedrock", "base_url": URL}, 'region: provider "bedrock" needs it'),
    ({"provider": "bedrock", "region": "r", "auth": "entra"}, 'signs in with "iam" or "key"'),
    ({"provider": "bedrock", "region": "r", "api_key_env": "K"}, 'not apply to auth = "iam"'),
    (
        {"provider": "bedrock", "region": "r", "auth": "key", "api_key_env": "K", "profile": "p"},
        'profile: does not apply to auth = "key"',
    ),
    ({"provider": "vertex", "region": "us-east5"}, 'project: provider "vertex" needs it'),
    ({"provider": "foundry", "base_url": URL}, 'api_key_env: name the variable .*auth = "entra"'),
    ({"provider": "gemini", "api_key_env": "K", "region": "r"}, 'applies to auth = "google" only'),
    ({"provider": "gemini", "auth": "google"}, 'region: provider "gemini" needs it'),
    ({"provider": "simulated", "deployment": "d"}, "deployment: does not apply"),
    (
        {"provider": "openai", "base_url": f"{URL}/openai/deployments/d/chat?api-version=1"},
        'write provider = "azure", the resource',
    ),
    (
        {
            "provider": "azure",
            "base_url": f"{URL}/openai/v1",
            "api_key_env": "K",
            "api_version": "v",
        },
        "ends in /openai/v1",
    ),
]


def test_shipped_panels_of_clouds_name_their_hosts_and_wait_to_be_filled_in() -> None:
    assert read_panel("bedrock").hosts() == ["bedrock-runtime.us-east-1.amazonaws.com"]
    assert read_panel("vertex").hosts() == [
        "us-east5-aiplatform.googleapis.com",
        "us-central1-aiplatform.googleapis.com",
    ]
    for name in ("azure", "vertex"):
        with pytest.raises(BadPanel, match="is still to be filled in: copy the panel"):
            api_keys(read_panel(name), {})
    with pytest.raises(BadPanel, match="BEDROCK_API_KEY is not set"):
        api_keys(read_panel("bedrock"), {})


@pytest.mark.parametrize(("settings", "said"), WRONG)
def test_what_does_not_apply_to_a_provider_is_refused_with_one_message(
    settings: dict[str, str], said: str, tmp_path: Path
) -> None:
    lines = [f"{name} = {value!r}" for name, value in settings.items()]
    path = tmp_path / "p.toml"
    head = "name = 'p'\n[[juror]]\nname = 'j'\nmodel = 'm'\nfamily = 'f'\n"
    path.write_text(head + "\n".join(lines), "utf-8")
    with pytest.raises(BadPanel, match=said) as caught:
        read_panel(path)
    assert "\n" not in str(caught.value)


def test_the_profile_of_a_juror_names_its_place_only_where_one_is_set() -> None:
    one = juror("azure", URL, api_key_env="K", deployment="ours", api_version="v")
    assert one.profile() == {
        "provider": "azure",
        "model": "m",
        "host": "ward.example",
        "temperature": None,
        "effort": None,
        "schema": "auto",
        "deployment": "ours",
        "api_version": "v",
    }
    profile = juror("bedrock", URL, region="r", profile="ward").profile()
    assert profile["region"] == "r"
    assert "ward" not in profile.values()


def test_addresses_follow_from_regions() -> None:
    def host(**settings: str) -> str:
        body = {"name": "j", "model": "m", "family": "f"} | settings
        return Juror.model_validate(body).base_url

    vertex = {"provider": "vertex", "project": "p"}
    assert host(**vertex, region="global") == "https://aiplatform.googleapis.com/v1"
    assert host(**vertex, region="eu") == "https://aiplatform.eu.rep.googleapis.com/v1"
    gemini = host(provider="gemini", auth="google", region="us-central1", project="p")
    place = "/v1/projects/p/locations/us-central1/endpoints/openapi"
    assert gemini == f"https://us-central1-aiplatform.googleapis.com{place}"
    assert host(provider="gemini", api_key_env="K").startswith("https://generativelanguage.")


def test_a_panel_with_one_juror_of_each_kind_needs_keys_only_where_they_are_used(
    write: Write,
) -> None:
    jurors = (
        juror("azure", URL, api_key_env="A_KEY"),
        juror("bedrock", URL, region="r").model_copy(update={"name": "b"}),
    )
    rule = write("e.toml", 'hosts."ward.example" = { keys = ["A_KEY"], auth = ["iam"] }')
    environment = {"A_KEY": "k", "MEDJURY_EGRESS": str(rule)}
    assert api_keys(Panel(name="p", juror=jurors), environment) == {"j": "k", "b": "none"}


def python(code: str, *options: str) -> str:
    command = [sys.executable, *options, "-c", code]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def test_a_library_that_is_not_installed_is_named_with_the_extra_that_brings_it() -> None:
    code = (
        "from jury.providers.registry import lacking_library as lacks\n"
        "for one in ('bedrock', None), ('azure', 'entra'), ('vertex', None), ('azure', None):\n"
        "    print(lacks(*one))"
    )
    without = python(code, "-S").split("\n")
    assert without[:4] == [
        'provider "bedrock" with auth = "iam" needs boto3, which is not installed: '
        "`uv sync --extra bedrock`",
        'provider "azure" with auth = "entra" needs azure.identity, which is not installed: '
        "`uv sync --extra azure`",
        'provider "vertex" with auth = "google" needs google.auth, which is not installed: '
        "`uv sync --extra vertex`",
        "",
    ]
    assert python(code).split() == []
