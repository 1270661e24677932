"""The owner's rules: which hosts, which key to which of them, which prices count, and who is refused."""

import os
import re
from datetime import UTC, datetime

import pytest
from kit.jurors import Stub
from kit.studies import import_small

from annotate import jury_panels
from annotate.jury_runs import start
from data.errors import BadFile, BadInput, BadPanel
from data.person import OPERATOR
from data.study.runs import RunOrder
from jury.address import kind_of
from jury.admission import addresses_of, api_keys
from jury.batch.run import run_batches
from jury.budget import Budget
from jury.egress import VARIABLE, Egress, allowed, egress_of, priced, read_rules
from jury.panel import Juror, Panel, read_panel, shipped
from jury.probe import probe
from jury.references import check_references
from jury.run import run_panel

DAY = datetime(2026, 11, 20, tzinfo=UTC)
DEFAULT = Egress()
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
OPENAI = "https://api.openai.com/v1"
LOCAL = "http://127.0.0.1:8000/v1"
GATEWAY = "https://llm.ward.example/v1"
FREE = {"usd_per_million_in": 0.0, "usd_per_million_out": 0.0}


@pytest.fixture(autouse=True)
def no_rules_or_proxies_of_this_machine(monkeypatch, tmp_path):
    for name in (VARIABLE, *PROXIES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))


def juror(url, key="", **settings):
    one = {"name": "one", "provider": "openai", "model": "gpt-4o", "family": "f"}
    return Juror.model_validate(one | {"base_url": url, "api_key_env": key} | settings)


def panel(url, key="", **settings):
    return Panel(name="ours", juror=(juror(url, key, **settings),))


def text(url, key="", more=""):
    return (
        'name = "ours"\n[[juror]]\nname = "one"\nprovider = "openai"\nmodel = "gpt-4o"\n'
        f'family = "f"\nbase_url = "{url}"\napi_key_env = "{key}"\n{more}'
    )


def owners(write, rules):
    return Egress(read_rules(write("egress.toml", rules)), by_owner=True)


def refused(one, egress=DEFAULT):
    return str(allowed(one, egress) or "")


@pytest.mark.parametrize(
    ("url", "key"),
    [
        (OPENAI, "OPENAI_API_KEY"),
        (OPENAI, "OPENAI_API_KEY_WARD"),
        ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("https://ours.openai.azure.com/openai/v1", "AZURE_OPENAI_API_KEY"),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", "BEDROCK_API_KEY"),
        *((LOCAL, ""), (LOCAL, "VLLM_API_KEY"), ("http://[::1]:8000/v1", "WARD_KEY")),
        *(("http://localhost:11434/v1", ""), ("http://10.1.2.3:8000/v1", "WARD_TOKEN")),
        *(("http://172.31.0.1/v1", ""), ("https://192.168.1.5/v1", "")),
        ("http://[fd12:3456::1]:8000/v1", ""),
    ],
)
def test_vendors_with_their_own_keys_and_servers_in_the_house_need_no_file(url, key):
    assert allowed(juror(url, key), DEFAULT) is None


@pytest.mark.parametrize("name", shipped())
def test_every_panel_that_ships_may_be_asked_by_default(name):
    assert [allowed(one, DEFAULT) for one in read_panel(name).juror if one] == [None] * 3


NOT_ALLOWED = {
    OPENAI: "AWS_SECRET_ACCESS_KEY ANTHROPIC_API_KEY WARD_API_KEY OPENAI_ADMIN_KEY MEDJURY_DB HOME",
    LOCAL: """OPENAI_API_KEY AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN MEDJURY_DB HOME PGPASSWORD
        DJANGO_SECRET_KEY COOKIE_SECRET DATABASE_URL""",
}


@pytest.mark.parametrize(
    ("url", "key", "why"),
    [
        *((url, key, "key") for url, keys in NOT_ALLOWED.items() for key in keys.split()),
        *((f"https://{host}/v1", "", "host") for host in ("elsewhere.example", "8.8.8.8")),
        ("https://api.openai.com.elsewhere.example/v1", "OPENAI_API_KEY", "host"),
        ("https://evilapi.openai.com/v1", "OPENAI_API_KEY", "host"),
        ("https://bucket.s3.amazonaws.com/v1", "BEDROCK_API_KEY", "host"),
        ("https://box.westus.cloudapp.azure.com/v1", "AZURE_API_KEY", "host"),
        ("https://a.b.openai.azure.com/v1", "AZURE_API_KEY", "host"),
        ("http://api.openai.com/v1", "OPENAI_API_KEY", "http"),
        *(("http://8.8.8.8/v1", "", "http"), ("http://llm/v1", "", "host")),
    ],
)
def test_what_nobody_has_allowed_is_refused(url, key, why):
    assert allowed(juror(url, key), DEFAULT).why == why


NO_ADDRESSES = """
http://169.254.169.254/latest http://[fe80::1]/v1 http://[::ffff:169.254.169.254]/v1
http://[::ffff:a9fe:a9fe]/v1 http://[64:ff9b::a9fe:a9fe]/v1 http://[2002:a9fe:a9fe::1]/v1
http://[fd00:ec2::254]/v1 http://100.100.100.200/v1 http://168.63.129.16/v1 http://0.0.0.0:8000/v1
http://[::]:8000/v1 http://255.255.255.255/v1 http://224.0.0.1/v1 http://127.1:8000/v1
http://0x7f.0.0.1/v1 http://2130706433/v1 http://0177.0.0.1/v1 http://169.254.169.254./v1
https://api.openai.com/v1#x https://api.openai.com/v1# https://api.openai.com/v1?
https://me:secret@api.openai.com/v1 https://@api.openai.com/v1 https://api.openai.com/v1/../admin
https://api.openai.com/./v1 https://api.openai.com/%2e%2e/v1 https://api.openai.com/v1;x
https://api.openai.com./v1 http://[fe80::1%25eth0]/v1 ftp://api.openai.com/v1
"""
ODD_ADDRESSES = (
    "https://api.openai.com\\@elsewhere.example/v1",
    "https://api.openai.com/v 1",
    "https://api.op\nenai.com/v1",
)
ODD_ADDRESSES += (
    "https://api.openai.com\t/v1",
    "https://api.openai\u3002com/v1",
    "https://\u0430pi.openai.com/v1",
)


@pytest.mark.parametrize("url", [*NO_ADDRESSES.split(), *ODD_ADDRESSES])
def test_an_address_that_no_model_server_has_is_refused_when_a_panel_is_read(url):
    with pytest.raises(ValueError, match="base_url: "):
        juror(url)


def test_addresses_are_told_apart_as_they_are_connected_to():
    for kind, hosts in {
        "loopback": "127.9.9.9 ::ffff:127.0.0.1",
        "private": "::ffff:10.0.0.1 fd00::1 fc00::1",
        "public": "172.32.0.1 1.1.1.1 ::ffff:8.8.8.8 100.64.0.1",
        "name": "gpu01",
    }.items():
        assert {kind_of(host) for host in hosts.split()} == {kind}


@pytest.mark.parametrize(
    ("url", "key", "line"),
    [
        (GATEWAY, "WARD_KEY", '"llm.ward.example" = { keys = ["WARD_KEY"] }'),
        ("http://gpu01:8000/v1", "", '"gpu01:8000" = { http = true }'),
        (LOCAL, "OPENAI_API_KEY", '"127.0.0.1:8000" = { keys = ["OPENAI_API_KEY"] }'),
        ("http://[fd00::1]:8000/v1", "AWS_X_KEY", '"[fd00::1]:8000" = { keys = ["AWS_X_KEY"] }'),
        (
            OPENAI,
            "WARD_KEY",
            '"api.openai.com" = { keys = ["OPENAI_API_KEY", "OPENAI_API_KEY_*", "WARD_KEY"] }',
        ),
    ],
)
def test_a_refusal_ends_with_the_very_line_that_allows_it(write, url, key, line):
    one = juror(url, key)
    said = refused(one)
    where = f"~/.config/medjury/egress.toml, or the file that {VARIABLE} names, under [hosts]"
    assert said.startswith("juror one: ")
    assert said.endswith(f"; who owns this server allows it in {where}: {line}")
    assert refused(one, owners(write, f"[hosts]\n{line}\n")) == ""


def test_a_server_signs_in_as_itself_at_its_own_clouds_only(write):
    google = {"provider": "vertex", "region": "us-east5", "project": "p"}
    entra = {"provider": "azure", "auth": "entra"}
    assert allowed(juror("https://ours.openai.azure.com", **entra), DEFAULT) is None
    assert "may not sign in as itself" in refused(
        juror("https://us-aiplatform.googleapis.com", **entra)
    )
    for host in ("googleapis.com.elsewhere.example", "notgoogleapis.com"):
        assert "texts may not go to" in refused(juror(f"https://{host}/v1", **google))
    elsewhere = juror("https://elsewhere.example", **google)
    line = refused(elsewhere).split("[hosts]: ")[1]
    assert line == '"elsewhere.example" = { auth = ["google"] }'
    assert allowed(elsewhere, owners(write, f"[hosts]\n{line}")) is None


def test_plain_http_to_a_public_address_is_refused_and_no_line_allows_it(write):
    for url in ("http://8.8.8.8/v1", "http://api.openai.com/v1"):
        assert refused(juror(url)).endswith("; write https")
    with pytest.raises(BadFile, match="in the house only"):
        owners(write, 'hosts."8.8.8.8" = { http = true }')


def test_who_has_a_file_has_said_all_that_may(write):
    mine = owners(write, 'vendors = false\n[hosts]\n"10.0.0.5:8000" = { keys = ["WARD_KEY"] }\n')
    other = "http://10.0.0.5:8001/v1"
    for asked in ((OPENAI, "OPENAI_API_KEY"), (other, "WARD_KEY"), (LOCAL, "VLLM_API_KEY")):
        assert refused(juror(*asked), mine)
    for asked in (("http://10.0.0.5:8000/v1", "WARD_KEY"), (other,)):
        assert refused(juror(*asked), mine) == ""
    strict = owners(write, 'private = false\n[hosts]\n"127.0.0.1:9" = { http = false }\n')
    assert [bool(refused(juror(one), strict)) for one in (LOCAL, "http://127.0.0.1:9/v1")] == [
        True
    ] * 2
    assert refused(juror(OPENAI, "OPENAI_API_KEY"), strict) == ""


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("host = 3", "host: Extra inputs"),
        ('hosts."a.example" = { key = ["A_KEY"] }', "hosts.a.example.key: Extra inputs"),
        ('hosts."a.example" = { keys = ["sk-abc"] }', "String should match pattern"),
        ('hosts."169.254.169.254" = {}', "no file allows link-local"),
        ('hosts."*" = {}', "may not stand in the last two parts"),
        ('hosts."*.com" = {}', "may not stand in the last two parts"),
        ('hosts."https://a.example/v1" = {}', "write a host, such as"),
        ('hosts."a.example" = { prices = { m = [1.0] } }', "hosts.a.example.prices.m"),
        ('hosts."a.example" = { prices = { m = [-1.0, 1.0] } }', "greater than or equal to 0"),
        ("hosts = [", "not TOML"),
    ],
)
def test_a_wrong_file_of_rules_is_told_in_one_line(write, rules, said):
    with pytest.raises(BadFile) as caught:
        owners(write, rules)
    told = str(caught.value)
    assert (said in told, "egress.toml" in told, "\n" in told) == (True, True, False)


def test_the_file_is_the_one_that_is_named_or_the_owners_own(write, tmp_path):
    own = tmp_path / "settings" / "medjury" / "egress.toml"
    own.parent.mkdir(parents=True)
    own.write_text("vendors = false")
    settings = {"XDG_CONFIG_HOME": str(tmp_path / "settings")}
    assert not egress_of(settings).rules.vendors
    named = write("named.toml", "private = false")
    assert egress_of(settings | {VARIABLE: str(named)}).rules.vendors
    assert egress_of({"XDG_CONFIG_HOME": str(tmp_path)}) == DEFAULT
    for place, said in ((str(tmp_path / "nowhere.toml"), "No such file"), ("", "is empty")):
        with pytest.raises(BadFile, match=said):
            egress_of({VARIABLE: place})


def test_a_file_that_anybody_may_write_into_is_refused(write):
    path = write("egress.toml", "vendors = true")
    path.chmod(0o666)
    with pytest.raises(BadFile, match="anybody may write into it; chmod o-w"):
        read_rules(path)


@pytest.mark.parametrize(
    ("own", "counts"),
    [
        ((0.0, 0.0), None),
        ((0.0, 100.0), None),
        ((1e-9, 1e-9), None),
        ((1.0, 10.0), None),  # below the list's 2.5 in
        ((2.5, 10.0), (2.5, 10.0)),
        ((3.0, 12.0), (3.0, 12.0)),
    ],
)
def test_a_panels_price_below_the_vendors_does_not_count_there(own, counts):
    prices = {"usd_per_million_in": own[0], "usd_per_million_out": own[1]}
    found = priced(juror(OPENAI, **prices), DEFAULT, DAY)
    assert (found.usd_per_million_in, found.usd_per_million_out) == (counts or (None, None))
    at_home = priced(juror(LOCAL, **prices), DEFAULT, DAY)
    assert (at_home.usd_per_million_in, at_home.usd_per_million_out) == own


def test_the_owners_price_counts_whatever_a_panel_says(write):
    mine = owners(write, 'hosts."llm.ward.example".prices = { "gpt-4o" = [0, 0], "*" = [1, 2.5] }')
    for own in ({}, FREE, {"usd_per_million_in": 9.0, "usd_per_million_out": 9.0}):
        one = priced(juror(GATEWAY, **own), mine, DAY)
        other = priced(juror(GATEWAY, model="m", **own), mine, DAY)
        assert (one.usd_per_million_in, one.usd_per_million_out) == (0, 0)
        assert (other.usd_per_million_in, other.usd_per_million_out) == (1, 2.5)


def test_a_free_juror_at_a_vendors_needs_a_cap_in_the_app(engine, tmp_path):
    import_small(engine, tmp_path)
    free = text(OPENAI, "OPENAI_API_KEY", "usd_per_million_in = 0.0\nusd_per_million_out = 0.0\n")
    assert jury_panels.costs_money(jury_panels.usable(free))
    with pytest.raises(BadInput, match="set a cap in US dollars"):
        start(OPERATOR, engine, RunOrder("ours", free))


def test_a_free_juror_is_refused_under_a_cap_where_no_list_knows_its_price(
    engine, tmp_path, monkeypatch, write
):
    import_small(engine, tmp_path)
    monkeypatch.setenv("WARD_KEY", "k")
    monkeypatch.setenv(
        VARIABLE, str(write("e.toml", 'hosts."llm.ward.example".keys = ["WARD_KEY"]'))
    )
    free = panel(GATEWAY, "WARD_KEY", model="nobody-made-this", **FREE)
    with pytest.raises(BadPanel, match="no price is known for nobody-made-this at llm"):
        run_panel(engine, free, budget=Budget(1.0))


def test_an_estimate_counts_the_lists_price_and_says_that_the_panels_does_not(
    run, tmp_path, engine, write
):
    import_small(engine, tmp_path)
    prices = "usd_per_million_in = 0.0\nusd_per_million_out = 0.0\n"
    path = write("ours.toml", text(OPENAI, "OPENAI_API_KEY", prices))
    out = run("jury", "run", str(path), "--estimate")[1]
    assert "the panel's price 0, 0 does not count at api.openai.com" in " ".join(out.split())
    assert re.search(r"one\W+4\W+\d+\W+0\.0\d*[1-9]", out)


def test_no_way_to_ask_a_juror_leads_past_the_rules(engine, tmp_path, run, write, monkeypatch):
    import_small(engine, tmp_path)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    with Stub() as stub:
        stolen = panel(stub.openai_url, "AWS_SECRET_ACCESS_KEY", **FREE)
        for ask in (
            lambda: run_panel(engine, stolen),
            lambda: run_batches(engine, stolen),
            lambda: check_references(engine, stolen),
            lambda: probe(stolen),
            lambda: api_keys(stolen),
        ):
            with pytest.raises(BadPanel, match="AWS_SECRET_ACCESS_KEY: that key may not go to"):
                ask()
        path = str(write("ours.toml", text(stub.openai_url, "AWS_SECRET_ACCESS_KEY")))
        rubric = ("share", "rubric", "generic", "--panel", path, "--out", str(tmp_path / "out"))
        for words in (
            ("jury", "run", path),
            ("jury", "run", path, "--batch"),
            ("jury", "references", path),
            ("jury", "probe", path),
            *((*rubric, "--to", tool) for tool in ("helm", "inspect", "promptfoo", "mlflow")),
        ):
            code, _, err = run(*words)
            assert (code, err.count("\n")) == (2, 1), (words, err)
            assert "AWS_SECRET_ACCESS_KEY: that key may not go to" in err
            assert "hush" not in err
        with pytest.raises(BadPanel, match="that key may not go to"):
            start(
                OPERATOR, engine, RunOrder("ours", text(stub.openai_url, "AWS_SECRET_ACCESS_KEY"))
            )
        assert not stub.seen
    assert not (tmp_path / "out").exists()


def test_a_key_goes_where_the_owner_says_and_a_run_started_in_the_app_heeds_it(
    engine, tmp_path, write, monkeypatch
):
    import_small(engine, tmp_path)
    monkeypatch.setenv("PLAIN", "k-plain")
    with Stub() as stub:
        asked = panel(stub.openai_url, "PLAIN", **FREE)
        with pytest.raises(BadPanel) as caught:
            run_panel(engine, asked)
        line = str(caught.value).split("[hosts]: ")[1]
        monkeypatch.setenv(VARIABLE, str(write("egress.toml", f"[hosts]\n{line}\n")))
        assert run_panel(engine, asked).missing == 0
        assert {seen.headers["authorization"] for seen in stub.seen} == {"Bearer k-plain"}


@pytest.mark.parametrize("led", ["127.0.0.1", "169.254.169.254", "::1", "fe80::1%2", "224.0.0.1"])
def test_a_vendors_name_that_leads_to_this_machine_or_link_local_is_sent_nothing(led):
    ours, environment = panel(OPENAI, "OPENAI_API_KEY"), {"OPENAI_API_KEY": "k"}
    with pytest.raises(BadPanel, match=f"name api.openai.com leads to {re.escape(led)}"):
        api_keys(ours, environment, lambda *_: ["1.2.3.4", led])
    assert api_keys(ours, environment, lambda *_: ["1.2.3.4", "10.0.0.1"]) == {"one": "k"}
    assert api_keys(ours, environment, lambda *_: []) == {"one": "k"}


def test_a_name_asked_without_tls_has_to_lead_into_the_house(write):
    rules = {VARIABLE: str(write("egress.toml", 'hosts."gpu01" = { http = true }'))}
    ours = panel("http://gpu01:8000/v1")
    assert api_keys(ours, rules, lambda *_: ["10.0.0.9"]) == {"one": "none"}
    for led in ("8.8.8.8", "169.254.169.254"):
        with pytest.raises(BadPanel, match=f"leads to {led}, which is not in the house"):
            api_keys(ours, rules, lambda *_, led=led: [led])


def test_names_are_looked_up_as_connections_look_them_up():
    assert "127.0.0.1" in addresses_of("localhost", 80)
    assert addresses_of("no-such-name.invalid", 80) == []


def test_serve_refuses_a_wrong_file_before_it_listens(run, write, monkeypatch):
    monkeypatch.setenv(VARIABLE, os.devnull)  # put back at the end: serve sets it
    code, _, err = run("serve", "--egress", str(write("e.toml", "hosts = 3")), "--create")
    assert (code, err.count("\n")) == (2, 1)
    assert "e.toml, hosts: " in err


def test_what_a_researcher_may_not_have_names_no_place_of_the_server(write, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(write("rules.toml", "private = true")))
    for url, key in ((GATEWAY, "WARD_KEY"), (LOCAL, "MEDJURY_DB"), (OPENAI, "PGPASSWORD")):
        with pytest.raises(BadPanel, match=r"^panel ours, juror one: ") as caught:
            jury_panels.usable(text(url, key))
        assert str(tmp_path) not in str(caught.value)
    write("rules.toml", "private = 3")
    with pytest.raises(BadPanel, match="cannot be read: ask who owns this server") as caught:
        jury_panels.usable(text(LOCAL))
    assert "rules.toml" not in str(caught.value)


def test_a_proxy_that_carries_https_looks_names_up_itself(monkeypatch):
    ours, environment = panel(OPENAI, "OPENAI_API_KEY"), {"OPENAI_API_KEY": "k"}
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert api_keys(ours, environment, lambda *_: ["127.0.0.1"]) == {"one": "k"}
    monkeypatch.setenv("NO_PROXY", "api.openai.com")
    with pytest.raises(BadPanel, match=r"leads to 127\.0\.0\.1, which is this machine"):
        api_keys(ours, environment, lambda *_: ["127.0.0.1"])


def test_a_host_that_the_owner_has_named_may_be_this_machine(write):
    rules = {VARIABLE: str(write("egress.toml", 'hosts."llm.ward.example" = {}'))}
    assert api_keys(panel(GATEWAY), rules, lambda *_: ["127.0.0.1"]) == {"one": "none"}
    with pytest.raises(BadPanel, match="no place of a model server"):
        api_keys(panel(GATEWAY), rules, lambda *_: ["169.254.169.254"])
