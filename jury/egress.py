"""Egress: which hosts jurors may be asked at, with which keys, at which prices, as the owner says.

The owner of the server, not the study, has a file of rules; without one the defaults of
`egress.toml` hold. `allowed` decides for every command, screen and export.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from data.errors import BadFile, BadPanel
from data.toml_file import NotToml, read_toml
from jury.address import NAME, canonical, in_house, kind_of
from jury.cost import rates
from jury.panel import Juror, Panel, Price, shown
from jury.providers.registry import Auth, auth_of

VARIABLE = "MEDJURY_EGRESS"
DEFAULTS = Path(__file__).with_suffix(".toml")
OWN_PLACE = Path("medjury/egress.toml")  # in the owner's folder of settings
WHERE = f"~/.config/{OWN_PLACE}, or the file that {VARIABLE} names"
OTHERS_WRITE = 0o002
PORTS = {"http": 80, "https": 443}
KEYS_END = ("KEY", "TOKEN")
OTHERS = re.compile(  # what a server's environment often holds and no model server is to be sent
    r"(?:AWS_|AZURE_CLIENT_|GOOGLE_|GCP_|PG|GITHUB_|GH_|GITLAB_|CI_|NPM_|SSH_|STREAMLIT_).*"
    r"|.*(?:SECRET|PASSWORD|PASSWD|PRIVATE|COOKIE|SESSION|SIGNING|ENCRYPTION).*"
)
KEPT_SHARE = 1 - 1e-9
Why = Literal["host", "http", "key", "identity"]
Variable = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*\*?$", max_length=64)]
Pair = Annotated[tuple[Price, Price], Field(strict=False)]


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Host(_Rule):
    """What may go to one host.

    Attributes
    ----------
    keys
        Variables whose keys may; a `*` at the end of one stands for anything.
    auth
        Ways in which the server may sign in there as itself.
    http
        Whether it may be asked without TLS, if it is in the house; unset: at an address only.
    prices
        Model, or `*` for all others -> US dollars per million tokens in and out. Where there are
        any, a panel's own price does not count.
    """

    keys: Annotated[tuple[Variable, ...], Field(strict=False)] = ()
    auth: Annotated[tuple[Auth, ...], Field(strict=False)] = ()
    http: bool | None = None
    prices: dict[str, Pair] = {}

    def takes(self, key: str) -> bool:
        """Return whether a variable's key may go there."""
        return any(_fits(one, key) for one in self.keys)


class Rules(_Rule):
    """A file of rules: `vendors` and `private` say whether those two defaults hold besides it."""

    vendors: bool = True
    private: bool = True
    hosts: dict[str, Host] = {}

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, value: dict[str, Host]) -> dict[str, Host]:
        hosts = {_named(name): one for name, one in value.items()}
        for name, one in hosts.items():
            if one.http and kind_of(_without_port(name).strip("[]")) == "public":
                raise ValueError(f"{name}: http = true is for addresses in the house only")
        return hosts


@dataclass(frozen=True, slots=True)
class Egress:
    """The rules that hold, and whether an owner's file is among them."""

    rules: Rules = field(default_factory=Rules)
    by_owner: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a juror may not be asked from here.

    Attributes
    ----------
    asked
        What it asks for: a host, a variable, a way to sign in.
    line
        What the owner would write under `[hosts]`; empty where nothing allows it.
    """

    why: Why
    juror: str
    place: str
    asked: str
    line: str = ""

    def __str__(self) -> str:
        return f"juror {self.juror}: {_WORDS[self.why].format(self)}{_to_do(self.line)}"


_WORDS: dict[Why, str] = {
    "host": "texts may not go to {0.place}",
    "http": "texts may not go to {0.place} over plain http, which anybody on the way can read; "
    "write https",
    "key": "api_key_env {0.asked}: that key may not go to {0.place}",
    "identity": 'auth = "{0.asked}": the server may not sign in as itself at {0.place}',
}


def _to_do(line: str) -> str:
    if not line:
        return ""
    return f"; who owns this server allows it in {WHERE}, under [hosts]: {line}"


def allowed(juror: Juror, egress: Egress) -> Refusal | None:
    """Return why a juror may not be asked, None if it may."""
    if juror.simulated:
        return None
    rule = _rule_of(juror, egress)
    if rule is None:
        return _refusal("host", juror, juror.host)
    if _scheme(juror) == "http" and not _may_be_plain(juror, rule):
        return _refusal("http", juror, "http", rule)
    key, way = juror.api_key_env, auth_of(juror.provider, juror.auth)
    if key and not rule.takes(key) and not _local_key(juror, egress):
        return _refusal("key", juror, key, rule)
    if juror.signs_in and way not in rule.auth:
        return _refusal("identity", juror, way, rule)
    return None


def priced(juror: Juror, egress: Egress, at: datetime) -> Juror:
    """Return a juror with the price that counts; without one, the list's counts, or none is known.

    The owner's does. A panel's does on an address in the house, where it may be 0; elsewhere only
    if it is above 0 and not below the list's: who writes a panel may not write a cap away.
    """
    rule = _rule_of(juror, egress)
    if juror.simulated or rule is None:
        return juror
    if rule.prices:
        return _with_price(juror, rule.prices.get(juror.model) or rule.prices.get("*"))
    own = juror.usd_per_million_in, juror.usd_per_million_out
    if own == (None, None) or _free_there(juror, rule):
        return juror
    listed = rates(_with_price(juror, None), at)
    least = (listed.tokens_in, listed.tokens_out) if listed else (0.0, 0.0)
    counts = all(
        (mine or 0) > 0 and (mine or 0) >= one * KEPT_SHARE
        for mine, one in zip(own, least, strict=True)
    )
    return juror if counts else _with_price(juror, None)


def admitted(panel: Panel, egress: Egress, at: datetime) -> Panel:
    """Return a panel that may be asked, at the prices that count.

    Raises
    ------
    BadPanel
        Names the first juror that may not be asked, and what its owner would allow it with.
    """
    for one in panel.juror:
        if why := allowed(one, egress):
            raise BadPanel(f"panel {panel.name}, {why}")
    return with_prices(panel, egress, at)


def with_prices(panel: Panel, egress: Egress, at: datetime) -> Panel:
    """Return a panel at the prices that count; it may be one that may not be asked."""
    return panel.model_copy(update={"juror": tuple(priced(one, egress, at) for one in panel.juror)})


def uncounted(panel: Panel, egress: Egress, at: datetime) -> Iterator[str]:
    """Yield a sentence for each juror whose panel gives a price that does not count."""
    for one in panel.juror:
        counts = priced(one, egress, at)
        if one.usd_per_million_in is not None and counts != one:
            told = (counts.usd_per_million_in, counts.usd_per_million_out)
            what = "the price list's does" if told[0] is None else f"{told[0]:g}, {told[1]:g} does"
            line = _line(one, _rule_of(one, egress), priced=True)
            yield (
                f"juror {one.name}: the panel's price {one.usd_per_million_in:g}, "
                f"{one.usd_per_million_out:g} does not count at {one.place}: {what}{_to_do(line)}"
            )


def egress_of(environment: Mapping[str, str] = os.environ) -> Egress:
    """Return the rules that hold here: of the file that MEDJURY_EGRESS names, or of its own place.

    Raises
    ------
    BadFile
        If a file is named and not there, cannot be read, is no file of rules, or anybody may
        write into it.
    """
    named = environment.get(VARIABLE)
    if named is not None:
        if not named.strip():
            raise BadFile(f"{VARIABLE} is empty: name a file of rules, or unset it")
        return Egress(read_rules(Path(named)), by_owner=True)
    place = _own_place(environment)
    return Egress(read_rules(place), by_owner=True) if place and place.is_file() else Egress()


def read_rules(path: Path) -> Rules:
    """Return the rules in a file; see `egress_of`."""
    try:
        if path.stat().st_mode & OTHERS_WRITE:
            raise BadFile(f"egress {path}: anybody may write into it; chmod o-w {path}")
        body = read_toml(path)
    except OSError as error:
        raise BadFile(f"egress {path}: {error.strerror}") from error
    except NotToml as error:
        raise BadFile(f"egress {path}: not TOML: {error}") from error
    try:
        return Rules.model_validate(body)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(shown(one).strip("'") for one in problem["loc"] if one != "[key]")
        said = str(problem["msg"]).removeprefix("Value error, ")
        raise BadFile(f"egress {path}, {where}: {said}") from error


@cache
def vendors() -> Rules:
    """Return the vendors' own hosts with their own variables."""
    return read_rules(DEFAULTS)


def rule_names(juror: Juror) -> tuple[str, str]:
    """Return the names under which a juror's host may stand: with its port, and without."""
    host, port = canonical(juror.host), _port(juror)
    return f"{host}:{port or PORTS[_scheme(juror)]}", host


def named_by_owner(juror: Juror, egress: Egress) -> bool:
    """Return whether the owner's file has a juror's host by its very name."""
    return not juror.simulated and any(one in egress.rules.hosts for one in rule_names(juror))


def _rule_of(juror: Juror, egress: Egress) -> Host | None:
    """Return what may go to a juror's host, None if nothing may: the closest name counts."""
    if juror.simulated:
        return None
    known = [egress.rules.hosts] + ([vendors().hosts] if egress.rules.vendors else [])
    for hosts in known:
        for name in rule_names(juror):
            if name in hosts:
                return hosts[name]
        for pattern, one in hosts.items():
            if any(_matches(pattern, name) for name in rule_names(juror)):
                return one
    private = egress.rules.private and in_house(kind_of(juror.host))
    return Host() if private else None


def _may_be_plain(juror: Juror, rule: Host) -> bool:
    """Return whether a juror may be asked without TLS; a name is looked up before it is asked."""
    kind = kind_of(juror.host)
    if in_house(kind):
        return rule.http is not False
    return kind == "name" and rule.http is True


def _free_there(juror: Juror, rule: Host) -> bool:
    """Return whether a juror's host is in the house for certain, where a price may be 0."""
    plain = _scheme(juror) == "http" and _may_be_plain(juror, rule)
    return in_house(kind_of(juror.host)) or plain


def _local_key(juror: Juror, egress: Egress) -> bool:
    """Return whether a key may go to a server in the house though no file says so.

    Without a file, one that is named as a key is and is nobody else's may. Who has a file has said
    all that may.
    """
    key = juror.api_key_env
    if egress.by_owner or not in_house(kind_of(juror.host)) or not key.endswith(KEYS_END):
        return False
    return not OTHERS.fullmatch(key) and not any(one.takes(key) for one in vendors().hosts.values())


def _with_price(juror: Juror, price: tuple[float, float] | None) -> Juror:
    given, taken = price or (None, None)
    return juror.model_copy(update={"usd_per_million_in": given, "usd_per_million_out": taken})


def _refusal(why: Why, juror: Juror, asked: str, rule: Host | None = None) -> Refusal:
    plain = _scheme(juror) == "http"
    kind = kind_of(juror.host)
    vendors_own = kind == "name" and _rule_of(juror, Egress()) is not None
    hopeless = plain and (kind == "public" or vendors_own)
    line = "" if hopeless else _line(juror, rule)
    why = "http" if hopeless else why
    return Refusal(why, juror.name, juror.place, asked, line)


def _line(juror: Juror, rule: Host | None, priced: bool = False) -> str:
    """Return the line that would allow a juror all it asks for, with all that its host has already."""
    rule = rule or Host()
    keys, ways = [*rule.keys], [*rule.auth]
    if juror.api_key_env and not rule.takes(juror.api_key_env):
        keys.append(juror.api_key_env)
    if juror.signs_in and (way := auth_of(juror.provider, juror.auth)) not in ways:
        ways.append(way)
    plain = _scheme(juror) == "http" and not _may_be_plain(juror, rule)
    prices = {model: [*pair] for model, pair in rule.prices.items()}
    if priced:
        own = (juror.usd_per_million_in, juror.usd_per_million_out)
        prices[juror.model] = [one or 0.0 for one in own]
    told = [f"keys = {json.dumps(keys)}"] if keys else []
    told += [f"auth = {json.dumps(ways)}"] if ways else []
    told += ["http = true"] if plain or rule.http else []
    told += [f"prices = {{ {_inline(prices)} }}"] if prices else []
    return f"{json.dumps(_place(juror))} = {{ {', '.join(told)} }}".replace("{  }", "{}")


def _inline(prices: Mapping[str, object]) -> str:
    return ", ".join(
        f"{json.dumps(model, ensure_ascii=False)} = {json.dumps(pair)}"
        for model, pair in prices.items()
    )


def _place(juror: Juror) -> str:
    """Return a juror's host as a rule names it: with its port where that is not the scheme's own."""
    with_port, host = rule_names(juror)
    return host if _port(juror) in (None, PORTS[_scheme(juror)]) else with_port


def _scheme(juror: Juror) -> str:
    return urlsplit(juror.base_url).scheme


def _port(juror: Juror) -> int | None:
    return urlsplit(juror.base_url).port


def _fits(pattern: str, key: str) -> bool:
    return key.startswith(pattern[:-1]) if pattern.endswith("*") else key == pattern


def _matches(pattern: str, name: str) -> bool:
    """Return whether a name is one of a pattern's, where * stands for a label or a part of one."""
    if "*" not in pattern:
        return False
    signs = re.escape(pattern).replace(r"\*", r"[a-z0-9_-]+")
    return re.fullmatch(signs, name) is not None


def _named(name: str) -> str:
    """Return a host of a rule as it is compared; raise ValueError for what is none."""
    host, port = _without_port(name), name[len(_without_port(name)) :]
    labels = host.split(".")
    kind = kind_of(host.strip("[]"))
    if kind == "never":
        raise ValueError(
            f"{name}: no file allows link-local addresses, clouds' own services and the like"
        )
    if kind == "name" and not NAME.fullmatch(host.lower().replace("*", "x")):
        raise ValueError(f"{shown(name)}: write a host, such as llm.ward.example or 10.0.0.5:8000")
    if any("*" in one for one in labels[-2:]):
        raise ValueError(f"{name}: a * may not stand in the last two parts of a name")
    return canonical(host) + port


def _without_port(name: str) -> str:
    return re.sub(r":\d{1,5}$", "", name) if name.count(":") == 1 or "]:" in name else name


def _own_place(environment: Mapping[str, str]) -> Path | None:
    """Return where an owner's file is unless it is said; None for a user without a home."""
    if folder := environment.get("XDG_CONFIG_HOME"):
        return Path(folder) / OWN_PLACE
    try:
        return Path.home() / ".config" / OWN_PLACE
    except RuntimeError:
        return None
