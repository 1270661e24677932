"""Panels: what a file may say of each provider, and of each juror's family, which no juror is told."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import anthropic.types
import pytest
from anthropic.resources.messages.messages import DEPRECATED_MODELS
from kit.jurors import juror as juror_at
from kit.jury_runs import panel_at, written
from kit.studies import RESPONSES
from openai.types import shared

from data.errors import BadPanel
from data.study.authors import evidence, families_of, own_family
from jury.admission import api_keys
from jury.panel import Juror, Panel, read_panel, refuse_ended, shipped

JUROR = {"name": "gpt", "provider": "openai", "model": "gpt-6.1-sol", "family": "gpt"}
JUROR |= {"base_url": "https://api.openai.com/v1"}


def toml(**settings: Any) -> str:
    body = JUROR | settings
    lines = [f"{key} = {value!r}" for key, value in body.items() if value is not None]
    return 'name = "mine"\n[[juror]]\n' + "\n".join(lines)


def juror(**settings: Any) -> Juror:
    return Juror.model_validate(JUROR | settings)


def test_a_panel_is_read_by_its_path_or_a_name_that_ships_and_has_no_two_jurors_of_one_name(write):
    panel = read_panel(write("mine.toml", toml(temperature=0, max_tokens=700, schema="text")))
    one = panel.juror[0]
    assert (panel.name, one.temperature, one.max_tokens, one.form) == ("mine", 0.0, 700, "text")
    with pytest.raises(BadPanel, match="neither a file nor one of azure, bedrock, current, local"):
        read_panel("nobody")
    twice = toml() + toml().removeprefix('name = "mine"')
    with pytest.raises(BadPanel, match="two jurors are named 'gpt'"):
        read_panel(write("mine.toml", twice))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"temprature": 0}, "juror 'gpt', temprature: no such key; the keys are name, provider"),
        ({"temperature": "hot"}, "juror 'gpt', temperature 'hot': "),
        ({"temperature": 3}, "juror 'gpt', temperature 3: .*less than or equal to 2"),
        (
            {"provider": "google"},
            "provider 'google': .*'openai', 'azure', 'anthropic', .* or 'simulated'",
        ),
        ({"schema": "yaml"}, "schema 'yaml': .*'json_object'"),
        ({"effort": "huge"}, "effort 'huge': "),
        ({"max_tokens": 0}, "max_tokens 0: "),
        ({"max_tokens": 25000}, "max_tokens 25000: "),
        ({"context_window": 0}, "juror 'gpt', context_window 0: "),
        ({"context_window": 1500}, "context_window = 1500: leaves no room for a question"),
        ({"concurrency": 0}, "juror 'gpt', concurrency 0: .*greater than or equal to 1"),
        ({"requests_per_minute": 1.5}, "juror 'gpt', requests_per_minute 1.5: "),
        ({"tokens_per_minute": "many"}, "juror 'gpt', tokens_per_minute 'many': "),
        ({"model": None}, "juror 'gpt', model: Field required"),
        ({"family": ""}, "family '': "),
        ({"base_url": None}, "juror 'gpt', base_url: '' is not an address; write the one"),
        ({"base_url": "api.openai.com"}, "base_url: 'api.openai.com' is not an address"),
        ({"base_url": "https://me:secret@host/v1"}, "base_url: holds a key"),
        ({"usd_per_million_in": 1.0}, "give both or neither"),
        ({"usd_per_million_in": -1.0, "usd_per_million_out": 0.0}, "usd_per_million_in -1.0"),
        ({"name": "a b"}, "juror 'a b', name 'a b': "),
    ],
)
def test_a_wrong_panel_is_told_by_file_juror_key_and_what_is_allowed(write, settings, said):
    path = write("mine.toml", toml(**settings))
    with pytest.raises(BadPanel, match=said) as caught:
        read_panel(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "not TOML"),
        ('name = "x"', "juror: Field required"),
        ('name = "x"\njuror = []', "juror"),
        ('name = "x"\njuror = 3', "juror"),
        ('name = "x"\njuror = [3]', "juror 1"),
        ('name = "x"\njury = 3', "no such key; the keys are name, rubric, juror|Field required"),
    ],
)
def test_a_file_that_is_no_panel_is_told(write, text, said):
    with pytest.raises(BadPanel, match=said):
        read_panel(write("mine.toml", text))


KEYS = ["sk-proj-Ab12Cd34Ef56", "SK-ABCDEF", "Ab12Cd34Ef56Gh78Ij90", "AKIAIOSFODNN7EXAMPLE"]


@pytest.mark.parametrize("key", [*KEYS, "0123456789ABCDEF", "A" * 41, "my key"])
def test_a_key_in_the_place_of_its_variables_name_is_refused_and_never_shown(write, key):
    with pytest.raises(BadPanel, match="write the variable's name, not the key") as caught:
        read_panel(write("mine.toml", toml(api_key_env=key)))
    assert key not in str(caught.value)
    for name in ("", "OPENAI_API_KEY", "_KEY2", "OPENAIAPIKEYOFOURWARD"):
        assert juror(api_key_env=name).api_key_env == name


@pytest.mark.parametrize("place", ["model", "base_url", "name", "temperature", "family"])
def test_a_key_in_any_other_place_is_not_shown_either(write, place):
    key = "sk-proj-Ab12Cd34Ef56/+"
    wrong = {place: key if place != "model" else [key], "max_tokens": 0}
    with pytest.raises(BadPanel) as caught:
        read_panel(write("mine.toml", toml(**wrong)))
    assert key not in str(caught.value)


def test_a_retiring_juror_is_announced_and_then_refused_as_the_papers_jury_is():
    with pytest.raises(BadPanel, match=r"gpt-4o-2024-05-13 ended on 2026-10-23.*`current`"):
        refuse_ended(read_panel("medhelm"), date(2026, 11, 21))
    panel = Panel(name="p", juror=(juror(retires="2027-01-14"),))
    assert panel.notices(date(2026, 9, 1)) == []
    assert "ends on 2027-01-14" in panel.notices(date(2026, 11, 21))[0]
    refuse_ended(panel, date(2027, 1, 13))
    with pytest.raises(BadPanel, match="ended on 2027-01-14"):
        refuse_ended(panel, date(2027, 1, 14))


def test_the_profile_holds_what_decides_answers_and_a_place_that_is_set_and_no_key_price_or_port():
    one = juror(api_key_env="MY_KEY", usd_per_million_in=1.0, usd_per_million_out=2.0)
    decides = {"provider": "openai", "model": "gpt-6.1-sol", "host": "api.openai.com"}
    assert one.profile() == decides | {"temperature": None, "effort": None, "schema": "auto"}
    assert one.profile() == juror(max_tokens=9).profile()
    assert one.profile() != juror(temperature=0.0).profile()
    ports = [juror(base_url=f"http://127.0.0.1:{port}/v1").profile() for port in (1, 2)]
    assert ports[0] == ports[1]
    one = juror_at("azure", PLACE, api_key_env="K", deployment="ours", api_version="v")
    plain = {"provider": "azure", "model": "m", "host": "ward.example", "schema": "auto"}
    place = {"deployment": "ours", "api_version": "v", "temperature": None, "effort": None}
    assert one.profile() == plain | place
    profile = juror_at("bedrock", PLACE, region="r", profile="ward").profile()
    assert profile["region"] == "r"
    assert "ward" not in profile.values()


def test_hosts_that_will_receive_texts_are_listed_once_and_clouds_wait_to_be_filled_in():
    assert {len(read_panel(name).juror) for name in shipped()} == {3}
    hosts = ["api.openai.com", "api.anthropic.com", "api.together.xyz"]
    assert read_panel("current").hosts() == hosts
    assert read_panel("local").hosts() == [f"127.0.0.1:{port}" for port in (8001, 8002, 8003)]
    assert read_panel("simulated").hosts() == []
    assert read_panel("bedrock").hosts() == ["bedrock-runtime.us-east-1.amazonaws.com"]
    google = [f"us-{place}-aiplatform.googleapis.com" for place in ("east5", "central1")]
    assert read_panel("vertex").hosts() == google
    for name in ("azure", "vertex"):
        with pytest.raises(BadPanel, match="is still to be filled in: copy the panel"):
            api_keys(read_panel(name), {})
    with pytest.raises(BadPanel, match="BEDROCK_API_KEY is not set"):
        api_keys(read_panel("bedrock"), {})


def test_the_current_panel_names_models_the_sdks_know_and_do_not_end():
    gpt, claude, _ = read_panel("current").juror
    assert gpt.model in str(shared.ChatModel)
    assert claude.model in str(anthropic.types.Model)
    assert claude.model not in DEPRECATED_MODELS


PLACE = "https://ward.example"
WRONG = [
    ({"provider": "openai", "region": "us-east-1"}, 'region: does not apply to provider "openai"'),
    ({"provider": "anthropic", "auth": "key"}, 'auth: does not apply to provider "anthropic"'),
    ({"provider": "bedrock", "base_url": PLACE}, 'region: provider "bedrock" needs it'),
    ({"provider": "bedrock", "region": "r", "auth": "entra"}, 'signs in with "iam" or "key"'),
    ({"provider": "bedrock", "region": "r", "api_key_env": "K"}, 'not apply to auth = "iam"'),
    (
        {"provider": "bedrock", "region": "r", "auth": "key", "api_key_env": "K", "profile": "p"},
        'profile: does not apply to auth = "key"',
    ),
    ({"provider": "vertex", "region": "us-east5"}, 'project: provider "vertex" needs it'),
    ({"provider": "foundry", "base_url": PLACE}, 'api_key_env: name the variable .*auth = "entra"'),
    ({"provider": "gemini", "api_key_env": "K", "region": "r"}, 'applies to auth = "google" only'),
    ({"provider": "gemini", "auth": "google"}, 'region: provider "gemini" needs it'),
    ({"provider": "simulated", "deployment": "d"}, "deployment: does not apply"),
    (
        {"provider": "openai", "base_url": f"{PLACE}/openai/deployments/d/chat?api-version=1"},
        'write provider = "azure", the resource',
    ),
    (
        {"provider": "azure", "base_url": f"{PLACE}/openai/v1", "api_key_env": "K"}
        | {"api_version": "v"},
        "ends in /openai/v1",
    ),
]


@pytest.mark.parametrize(("settings", "said"), WRONG)
def test_what_does_not_apply_to_a_provider_is_refused_with_one_message(write, settings, said):
    bare = {"api_key_env": None, "base_url": None}
    with pytest.raises(BadPanel, match=said) as caught:
        read_panel(write("p.toml", toml(**bare | settings)))
    assert "\n" not in str(caught.value)


def test_addresses_follow_from_regions():
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


def test_a_panel_with_one_juror_of_each_kind_needs_keys_only_where_they_are_used(write):
    jurors = (
        juror_at("azure", PLACE, api_key_env="A_KEY"),
        juror_at("bedrock", PLACE, region="r").model_copy(update={"name": "b"}),
    )
    rule = write("e.toml", 'hosts."ward.example" = { keys = ["A_KEY"], auth = ["iam"] }')
    environment = {"A_KEY": "k", "MEDJURY_EGRESS": str(rule)}
    both = Panel(name="p", juror=jurors)
    assert api_keys(both, environment) == {"j": "k", "b": "none"}
    with pytest.raises(BadPanel, match="juror j: the environment variable A_KEY is not set"):
        api_keys(both, environment | {"A_KEY": ""})


def test_a_library_that_is_not_installed_is_named_with_the_extra_that_brings_it():
    code = (
        "from jury.providers.registry import lacking_library as lacks\n"
        "for one in ('bedrock', None), ('azure', 'entra'), ('vertex', None), ('azure', None):\n"
        "    print(lacks(*one))"
    )
    here = Path(__file__).parents[2]
    bare, whole = (
        subprocess.check_output([sys.executable, *options, "-c", code], cwd=here, text=True)
        for options in (["-S"], [])
    )
    extras = [line.rpartition("--extra ")[2].strip("`") for line in bare.splitlines()]
    assert (extras, whole.split()) == (["bedrock", "azure", "vertex", ""], [])


AUTHORED = RESPONSES.replace("model-one", "openai_gpt-4o-2024-05-13").replace("model-two", "ward-x")


NAMES = {  # with the nine models of the paper
    "claude": ("Claude 3.5 Sonnet (20241022)", "Claude 3.7 Sonnet (20250219)"),
    "deepseek": ("DeepSeek R1",),
    "gemini": ("Gemini 1.5 Pro (001)", "Gemini 2.0 Flash"),
    "gpt": ("GPT-4o (2024-05-13)", "GPT-4o mini (2024-07-18)", "o3-mini (2025-01-31)", "GPT4o"),
    "GPT": ("openai/o1-2024-12-17", "gpt4"),
    "llama": (
        "Llama 3.3 Instruct (70B)",
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
        "llama3.3:70b",
    ),
    "qwen": ("qwen2.5",),
    "deepseek llama": ("DeepSeek-R1-Distill-Llama-70B",),
    "": ("BioGPT-Large", "EleutherAI/gpt-j-6b", "gpt-neox-20b", "model-one", "", "foo3"),
}


@pytest.mark.parametrize("families", NAMES)
def test_a_name_tells_its_families_and_nothing_is_guessed(families):
    for name in NAMES[families]:
        assert families_of(name) == set(families.lower().split()), name


@pytest.fixture
def unblinded(run, write) -> None:
    """Have responses by a model of a known family and by one of none, and the blind lifted."""
    run("study", "import", str(write("responses.csv", AUTHORED)))
    assert run("study", "unblind", "--reason", "a test of families")[0] == 0


def test_nothing_of_own_families_is_told_while_the_study_is_blind(engine, run, write):
    run("study", "import", str(write("responses.csv", AUTHORED)))
    found = own_family(engine, {"a": "GPT", "b": "claude"})
    assert (found.responses, found.unknown, found.own) == (None, None, {})
    assert evidence(engine, {"a": "gpt"}).authors is None
    code, out, err = run("jury", "run", "medhelm", "--estimate", "--json", "-")
    body = json.loads(out)
    assert (code, {*body["own_family"].values()}) == (0, {None})
    assert body["author_family_unknown"] is None
    assert "by a juror's own family is known after unblinding" in err
    assert "of 4" not in err


@pytest.mark.usefixtures("unblinded")
def test_a_family_of_no_list_is_never_looked_for_in_authors_names(engine, run):
    asked = {"a": "ward", "b": "ward-x", "c": "GPT", "d": "claude", "e": "OpenAI"}
    found = own_family(engine, asked)
    assert (found.responses, found.unknown) == (4, 2)
    assert found.own == {"a": 0, "b": 0, "c": 2, "d": 0, "e": 2}
    assert found.unlisted == {"a": "ward", "b": "ward-x"}
    run("study", "lock")
    run("study", "lock", "--reopen", "--reason", "more raters")
    assert own_family(engine, {"a": "gpt"}).is_blind


@pytest.mark.usefixtures("unblinded")
def test_a_study_says_of_which_family_its_own_models_are(engine, run):
    assert run("study", "settings", "families", "ward-x=House, other=llama")[0] == 0
    found = own_family(engine, {"a": "house", "b": "gpt", "c": "ward"})
    assert (found.own, found.unknown) == ({"a": 2, "b": 2, "c": 0}, 0)
    assert found.unlisted == {"c": "ward"}


@pytest.mark.parametrize("value", ["ward-x", "=house", "a=b c", "a=gpt,a=llama", "a=,b=gpt"])
def test_families_that_cannot_be_read_are_refused(run, small_study, value):
    code, _, err = run("study", "settings", "families", value)
    assert (code, "MODEL=FAMILY" in err) == (2, True)
    assert small_study is not None


@pytest.mark.usefixtures("unblinded")
def test_a_run_warns_before_counts_after_and_tells_no_juror(run, write, stub):
    first, second = panel_at(stub, "one", "two", family="gpt").juror
    jurors = (first, second.model_copy(update={"family": "claude"}))
    file = written(write, Panel(name="p", juror=jurors))
    code, out, err = run("jury", "run", file, "--json", "-")
    body = json.loads(out)
    assert (code, body["own_family"]) == (0, {"one": 2, "two": 0})
    assert body["author_family_unknown"] == 2
    warned = "juror one (family gpt) will rate 2 of 4 responses written by its own family"
    counted = "juror one (family gpt) has 2 of 4 responses of its own family in this"
    assert -1 < err.index(warned) < err.index("p: scored 8 of 8") < err.index(counted)
    assert "juror two (family" not in err
    sent = json.dumps([[seen.body, seen.headers] for seen in stub.seen]).casefold()
    assert len(stub.seen) == 8
    for word in ("gpt-4o", "ward-x", "family", "openai_"):
        assert word not in sent
