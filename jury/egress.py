"""Egress rules: which hosts jurors may be asked at, with which keys and at which prices.

The owner of the server, not of the study, may write a file of rules; without one the defaults of
`egress.toml` hold. `allowed` decides for every command, screen and export.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from data.errors import BadFile
from data.files import read_user_toml
from jury.address import NAME, canonical, in_house, kind_of
from jury.cost import rates
from jury.panel import PORTS, Juror, Price, shown
from jury.providers.registry import Auth, auth_of

VARIABLE = "MEDJURY_EGRESS"
DEFAULTS = Path(__file__).with_suffix(".toml")
OWN_PLACE = Path("medjury/egress.toml")  # in the owner's folder of settings
WHERE = f"~/.config/{OWN_PLACE}, or the file that {VARIABLE} names"
OTHERS_WRITE = 0o002
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
        return any(
            key.startswith(pattern[:-1]) if pattern.endswith("*") else key == pattern
            for pattern in self.keys
        )


class Rules(_Rule):
    """A file of rules.

    Attributes
    ----------
    vendors
        Whether the vendors' own hosts with their own keys are allowed as well.
    private
        Whether hosts in the house, on this machine or a private network, are allowed as well.
    hosts
        Host, with a port or without, or a pattern with `*` -> what may go there.
    """

    vendors: bool = True
    private: bool = True
    hosts: dict[str, Host] = {}

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, value: dict[str, Host]) -> dict[str, Host]:
        hosts = {_canonical_host(name): host for name, host in value.items()}
        for name, host in hosts.items():
            if host.http and kind_of(_without_port(name).strip("[]")) == "public":
                raise ValueError(f"{name}: http = true is for addresses in the house only")
        return hosts


@dataclass(frozen=True, slots=True)
class Egress:
    """The rules that hold, and whether an owner's file is among them."""

    rules: Rules = field(default_factory=Rules)
    by_owner: bool = False


class Refusal(NamedTuple):
    """Why a juror may not be asked from here; `text` has the line that would allow it, if one does."""

    why: Why
    text: str

    def __str__(self) -> str:
        return self.text


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
    if key and not may_take_key(key, rule, egress, juror.host):
        return _refusal("key", juror, key, rule)
    if juror.signs_in and way not in rule.auth:
        return _refusal("identity", juror, way, rule)
    return None


def priced(juror: Juror, egress: Egress, at: datetime) -> Juror:
    """Return a juror at the price that counts, or without one where only the price list's may count.

    The owner's price counts. A panel's own counts at an address in the house, where it may be 0;
    elsewhere only if it is above 0 and not below the list's, as a panel's author must not be able to
    lift a cap.
    """
    rule = _rule_of(juror, egress)
    if juror.simulated or rule is None:
        return juror
    if rule.prices:
        return _with_price(juror, rule.prices.get(juror.model) or rule.prices.get("*"))
    own = juror.usd_per_million_in, juror.usd_per_million_out
    plain = _scheme(juror) == "http" and _may_be_plain(juror, rule)
    if own == (None, None) or plain or in_house(kind_of(juror.host)):  # certainly in the house
        return juror
    listed = rates(_with_price(juror, None), at)
    lowest = (listed.tokens_in, listed.tokens_out) if listed else (0.0, 0.0)
    counts = all(
        (mine or 0) > 0 and (mine or 0) >= low * KEPT_SHARE
        for mine, low in zip(own, lowest, strict=True)
    )
    return juror if counts else _with_price(juror, None)


def egress_of(environment: Mapping[str, str] = os.environ) -> Egress:
    """Return the rules that hold here: of the file that MEDJURY_EGRESS names, or of the default file.

    Raises
    ------
    BadFile
        If a file is named and not there, cannot be read, is no file of rules, or anybody may
        write into it.
    """
    file_name = environment.get(VARIABLE)
    if file_name is not None:
        if not file_name.strip():
            raise BadFile(f"{VARIABLE} is empty: name a file of rules, or unset it")
        return Egress(read_rules(Path(file_name)), by_owner=True)
    path = _default_place(environment)
    return Egress(read_rules(path), by_owner=True) if path and path.is_file() else Egress()


def read_rules(path: Path) -> Rules:
    """Return the rules in a file; raise BadFile as `egress_of` does."""
    try:
        if path.stat().st_mode & OTHERS_WRITE:
            raise BadFile(f"egress {path}: anybody may write into it; chmod o-w {path}")
    except OSError as error:
        raise BadFile(f"egress {path}: {error.strerror}") from error
    body = read_user_toml(path, f"egress {path}")
    try:
        return Rules.model_validate(body)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(shown(step).strip("'") for step in problem["loc"] if step != "[key]")
        fault = str(problem["msg"]).removeprefix("Value error, ")
        raise BadFile(f"egress {path}, {where}: {fault}") from error


@cache
def vendors() -> Rules:
    """Return the rules for the vendors' own hosts, with the variables of their own keys."""
    return read_rules(DEFAULTS)


def rule_names(juror: Juror) -> tuple[str, str]:
    """Return the names under which rules may list a juror's host: with its port, and without."""
    host, port = canonical(juror.host), _port(juror)
    return f"{host}:{port or PORTS[_scheme(juror)]}", host


def named_by_owner(juror: Juror, egress: Egress) -> bool:
    """Return whether the owner's file lists a juror's host by its own name, not by a pattern."""
    return not juror.simulated and any(name in egress.rules.hosts for name in rule_names(juror))


def _rule_of(juror: Juror, egress: Egress) -> Host | None:
    """Return what may go to a juror's host, None if nothing may; the most specific name counts."""
    if juror.simulated:
        return None
    names = rule_names(juror)
    for hosts in (egress.rules.hosts, vendors().hosts if egress.rules.vendors else {}):
        for name in names:
            if name in hosts:
                return hosts[name]
        for pattern, rule in hosts.items():
            if any(_matches(pattern, name) for name in names):
                return rule
    return Host() if egress.rules.private and in_house(kind_of(juror.host)) else None


def _may_be_plain(juror: Juror, rule: Host) -> bool:
    """Return whether a juror may be asked without TLS; where a name leads is checked before a run."""
    kind = kind_of(juror.host)
    if in_house(kind):
        return rule.http is not False
    return kind == "name" and rule.http is True


def _with_price(juror: Juror, price: tuple[float, float] | None) -> Juror:
    usd_in, usd_out = price or (None, None)
    return juror.model_copy(update={"usd_per_million_in": usd_in, "usd_per_million_out": usd_out})


def _refusal(why: Why, juror: Juror, requested: str, rule: Host | None = None) -> Refusal:
    kind = kind_of(juror.host)
    vendors_own = kind == "name" and _rule_of(juror, Egress()) is not None
    hopeless = _scheme(juror) == "http" and (kind == "public" or vendors_own)
    why = "http" if hopeless else why
    words = {
        "host": f"texts may not go to {juror.place}",
        "http": f"texts may not go to {juror.place} over plain http, which anybody on the way can "
        "read; write https",
        "key": f"api_key_env {requested}: that key may not go to {juror.place}",
        "identity": f'auth = "{requested}": the server may not sign in as itself at {juror.place}',
    }[why]
    allowing = f"; who owns this server allows it in {WHERE}, under [hosts]: {_line(juror, rule)}"
    return Refusal(why, f"juror {juror.name}: {words}{'' if hopeless else allowing}")


def _line(juror: Juror, rule: Host | None) -> str:
    """Return the rule that would allow all that a juror needs, with what its host is allowed already."""
    rule = rule or Host()
    keys, ways = [*rule.keys], [*rule.auth]
    if juror.api_key_env and not rule.takes(juror.api_key_env):
        keys.append(juror.api_key_env)
    if juror.signs_in and (way := auth_of(juror.provider, juror.auth)) not in ways:
        ways.append(way)
    plain = _scheme(juror) == "http" and not _may_be_plain(juror, rule)
    prices = {model: [*pair] for model, pair in rule.prices.items()}
    settings = [f"keys = {json.dumps(keys)}"] if keys else []
    settings += [f"auth = {json.dumps(ways)}"] if ways else []
    settings += ["http = true"] if plain or rule.http else []
    pairs = (f"{json.dumps(m, ensure_ascii=False)} = {json.dumps(p)}" for m, p in prices.items())
    settings += [f"prices = {{ {', '.join(pairs)} }}"] if prices else []
    with_port, host = rule_names(juror)
    place = host if _port(juror) in (None, PORTS[_scheme(juror)]) else with_port
    return f"{json.dumps(place)} = {{ {', '.join(settings)} }}".replace("{  }", "{}")


def _scheme(juror: Juror) -> str:
    return urlsplit(juror.base_url).scheme


def _port(juror: Juror) -> int | None:
    return urlsplit(juror.base_url).port


def may_take_key(key: str, rule: Host, egress: Egress, host: str) -> bool:
    """Return whether a variable's key may go to a host; in the house also without an owner's rule."""
    if rule.takes(key):
        return True
    if egress.by_owner or not in_house(kind_of(host)) or not key.endswith(KEYS_END):
        return False
    return not OTHERS.fullmatch(key) and not any(one.takes(key) for one in vendors().hosts.values())


def _matches(pattern: str, name: str) -> bool:
    if "*" not in pattern:
        return False
    signs = re.escape(pattern).replace(r"\*", r"[a-z0-9_-]+")
    return re.fullmatch(signs, name) is not None


def _canonical_host(name: str) -> str:
    """Return a host of a rule in the form that is compared; raise ValueError if it is not a host."""
    host, port = _without_port(name), name[len(_without_port(name)) :]
    labels = host.split(".")
    kind = kind_of(host.strip("[]"))
    if kind == "never":
        raise ValueError(
            f"{name}: no file allows link-local addresses, clouds' own services and the like"
        )
    if kind == "name" and not NAME.fullmatch(host.lower().replace("*", "x")):
        raise ValueError(f"{shown(name)}: write a host, such as llm.ward.example or 10.0.0.5:8000")
    if any("*" in label for label in labels[-2:]):
        raise ValueError(f"{name}: a * may not stand in the last two parts of a name")
    return canonical(host) + port


def _without_port(name: str) -> str:
    return re.sub(r":\d{1,5}$", "", name) if name.count(":") == 1 or "]:" in name else name


def _default_place(environment: Mapping[str, str]) -> Path | None:
    if folder := environment.get("XDG_CONFIG_HOME"):
        return Path(folder) / OWN_PLACE
    try:
        return Path.home() / ".config" / OWN_PLACE
    except RuntimeError:
        return None
