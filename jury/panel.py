"""Panels: which jurors sit on the jury, read from TOML files."""

import json
import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from data.errors import BadPanel
from data.files import NotToml, read_toml
from data.question import Explanation
from data.rubric import Rubric
from jury.address import fault, in_house, kind_of
from jury.providers.registry import (
    PROVIDERS,
    Auth,
    ProviderName,
    auth_of,
    refuse_misplaced,
    with_address,
)

Name = Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=64)]


class Part(BaseModel):
    """A piece of a panel: immutable, with no key that we do not know and no value bent to fit."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


FOLDER = Path(__file__).parent / "panels"
NOTICE_DAYS = 90
VENDOR_SECONDS, HOUSE_SECONDS = 120.0, 600.0  # 1,500 tokens on a processor alone take 300 and more
PORTS = {"http": 80, "https": 443}
NO_PROBABILITIES = (
    'scores: provider "{}" serves no log-probabilities, which "expected" is computed from; leave '
    "scores out and take the mean of several verdicts, as `medjury jury run --replicates 5` does"
)

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Limit = Annotated[int, Field(ge=1)]
Place = Annotated[str, Field(pattern=r"^[\w.:-]*$", max_length=128)]
NOT_A_NAME = (
    "write the variable's name, not the key: capital letters, digits and underscores, such as "
    'OPENAI_API_KEY ("" where the server needs no key)'
)
NAME_SIGNS = "letters, digits, underscores, dots and hyphens only, at least one, and no spaces"
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
LONGEST_NAME = 40
LONGEST_SHOWN = 120
LONGEST_WORD = 15  # longer ones without an underscore and with digits are keys, as AWS's are
KEY_START = ("sk-", "sk_", "gsk_", "hf_", "xai-", "tgp_", "AIza", "Bearer ")


@cache
def _host_in(base_url: str) -> str:
    return urlsplit(base_url).hostname or ""


class Juror(Part):
    """One language model with the settings it is asked with.

    `form` is the panel file's `schema`: how the endpoint is asked to keep to the form of the
    answer. "auto" tries json_schema, then json_object, then the prompt's words only. `region`,
    `project`, `deployment`, `api_version`, `aws_profile` (the file's `profile`) and `auth` apply to
    the providers that `jury/providers/registry.py` names.
    `explanation` is where it is to explain each score, or that it is not to; unset leaves that to the
    rubric's own prompt. `reads` is the SHA-256 of the rubric that it reads instead of the clinicians',
    made from theirs by `medjury jury improve`. `scores` = "expected" takes the mean of each score's distribution for the
    score (`jury/expected_score.py`). `context_window` is how many tokens question and answer may have
    together; unset, the price list says (`jury/window.py`).
    `timeout` is how many seconds an answer may take: 120, and 600 from an address in the house, where it
    is unset. `retires` is an end the vendor has announced, `ended` one that has come. `concurrency` and the
    two limits a minute are the host's (`jury/session.py`).
    """

    name: Name
    provider: ProviderName
    model: str = Field(min_length=1)
    family: str = Field(min_length=1)
    base_url: str = ""
    api_key_env: str = ""
    auth: Auth | None = None
    region: Place = ""
    project: Place = ""
    deployment: Place = ""
    api_version: Place = ""
    aws_profile: str = Field("", alias="profile", max_length=64)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int = Field(default=1500, ge=1, le=20_000)
    context_window: Limit | None = None
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    form: Literal["auto", "json_schema", "json_object", "text"] = Field("auto", alias="schema")
    explanation: Explanation | None = None
    scores: Literal["verdict", "expected"] = "verdict"
    reads: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    usd_per_million_in: Price | None = None
    usd_per_million_out: Price | None = None
    timeout: Annotated[float, Field(gt=0, le=7200)] | None = None
    concurrency: Limit | None = None
    requests_per_minute: Limit | None = None
    tokens_per_minute: Limit | None = None
    retires: date | None = Field(default=None, strict=False)
    ended: date | None = Field(default=None, strict=False)

    @model_validator(mode="before")
    @classmethod
    def _has_an_address(cls, body: Any) -> Any:
        return with_address(body) if isinstance(body, dict) else body

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, value: str) -> str:
        return variable_name(value)

    @model_validator(mode="after")
    def _can_be_called(self) -> Self:
        refuse_misplaced(self)
        if self.expected and not PROVIDERS[self.provider].probabilities:
            raise ValueError(NO_PROBABILITIES.format(self.provider))
        if not self.simulated:
            _check_address(self.base_url)
        if self.deployment in (".", "..") or self.project in (".", ".."):
            raise ValueError("deployment, project: a step in a path is no name")
        if (self.usd_per_million_in is None) != (self.usd_per_million_out is None):
            raise ValueError("usd_per_million_in and usd_per_million_out: give both or neither")
        if self.context_window is not None and self.context_window <= self.max_tokens:
            raise ValueError(
                f"context_window = {self.context_window}: leaves no room for a question, as the answer "
                f"may take max_tokens = {self.max_tokens} of it"
            )
        return self

    @property
    def simulated(self) -> bool:
        """Whether no model is asked at all."""
        return self.provider == "simulated"

    @property
    def expected(self) -> bool:
        """Whether its scores are the means of their distributions."""
        return self.scores == "expected"

    @property
    def signs_in(self) -> bool:
        """Whether it is asked with the identity of this machine or its user, not with a key."""
        return auth_of(self.provider, self.auth) in ("iam", "entra", "google")

    @property
    def host(self) -> str:
        """Host that receives the texts; empty for a simulated juror."""
        return _host_in(self.base_url)

    @property
    def address(self) -> str:
        """Host and port: jurors with one address share its limits."""
        return urlsplit(self.base_url).netloc.lower()

    @property
    def place(self) -> str:
        """Host as it is told to people: with its port where that is not the scheme's own."""
        parts = urlsplit(self.base_url)
        own = PORTS.get(parts.scheme)
        return self.host if parts.port in (None, own) else f"{self.host}:{parts.port}"

    @property
    def in_house(self) -> bool:
        """Whether it is on this machine or a private network; plain http goes nowhere else."""
        plain = self.base_url.startswith("http:")
        return not self.simulated and (plain or in_house(kind_of(self.host)))

    @property
    def seconds(self) -> float:
        """Seconds within which a request must be answered."""
        return self.timeout or (HOUSE_SECONDS if self.in_house else VENDOR_SECONDS)

    def profile(self) -> dict[str, Any]:
        """Return what decides the scores of this juror; never its key, price, limits or port.

        `max_tokens` is left out: it decides whether an answer comes whole, not what it says.
        Places, and how it answers other than the plain way, are in it only where they are set.
        """
        settings = ("provider", "model", "host", "temperature", "effort")
        places = ("region", "project", "deployment", "api_version")
        set_places = {name: getattr(self, name) for name in places if getattr(self, name)}
        answer_settings: dict[str, Any] = (
            {"explanation": self.explanation} if self.explanation else {}
        )
        answer_settings |= {"scores": self.scores} if self.expected else {}
        answer_settings |= {"reads": self.reads} if self.reads else {}
        plain = {name: getattr(self, name) for name in settings}
        return plain | {"schema": self.form} | set_places | answer_settings

    def end(self) -> date | None:
        """Return the day from which the model cannot be asked, where one is known."""
        return self.ended or self.retires


class Panel(Part):
    """The jurors who sit together; `rubric` is set where they may rate on that one only.

    `proposer` is the model that `medjury jury improve` asks for better rubrics; it is no juror.
    """

    name: Name
    rubric: Name | None = None
    proposer: Juror | None = None
    juror: Annotated[tuple[Juror, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [juror.name for juror in self.juror]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"juror: two jurors are named {name!r}; names must differ")
        return self

    @property
    def jury(self) -> tuple[str, ...]:
        """The names of its jurors."""
        return tuple(juror.name for juror in self.juror)

    def hosts(self) -> list[str]:
        """Return the hosts that will receive texts, each once, in the jurors' order.

        With the port, where it is not the one that the scheme has anyway.
        """
        return list(dict.fromkeys(one.place for one in self.juror if not one.simulated))

    def notices(self, today: date) -> list[str]:
        """Return a sentence for every juror whose end is near."""
        return [
            f"juror {juror.name} ({juror.model}) ends on {juror.retires}: "
            "validate its successor while both can be asked"
            for juror in self.juror
            if juror.retires and 0 <= (juror.retires - today).days <= NOTICE_DAYS
        ]


def read_panel(name_or_path: str | Path) -> Panel:
    """Read a panel by the name of one that ships with medjury, or from a TOML file.

    Raises
    ------
    BadPanel
        Names the file, the juror, the key, the value, and what is allowed.
    """
    path = _path(name_or_path)
    try:
        body = read_toml(path)
    except OSError as error:
        raise BadPanel(f"panel {path}: {error.strerror}") from error
    except NotToml as error:
        raise BadPanel(f"panel {path}: not TOML: {error}") from error
    try:
        return Panel.model_validate(body)
    except ValidationError as error:
        raise BadPanel(f"panel {path}: {first_fault(error, body)}") from error


def panel_toml(panel: Panel) -> str:
    """Return a panel as the text of a file that `read_panel` reads; scalars are in TOML as in JSON."""
    head = {"name": panel.name} | ({"rubric": panel.rubric} if panel.rubric else {})
    proposer = [_table("[proposer]", panel.proposer)] if panel.proposer else []
    tables = [*proposer, *(_table("[[juror]]", juror) for juror in panel.juror)]
    return "\n".join([*_lines(head), *tables])


def juror_toml(juror: Juror) -> str:
    """Return a juror as a table of a panel's file."""
    return _table("[[juror]]", juror)


def _table(head: str, juror: Juror) -> str:
    settings = juror.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
    return "\n".join(["", head, *_lines(settings), ""])


def _lines(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]


def shipped() -> list[str]:
    """Return the names of the panels that ship with medjury."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def ended(panel: Panel, today: date) -> list[str]:
    """Return a sentence for every juror whose model has ended: a run would refuse the panel."""
    return [
        f"juror {juror.name}: {juror.model} ended on {end} and cannot be asked any more; a run refuses "
        "this panel"
        for juror in panel.juror
        if (end := juror.end()) is not None and end <= today
    ]


def refuse_ended(panel: Panel, today: date) -> None:
    """Raise BadPanel if the vendor of any juror has ended its model."""
    for juror in panel.juror:
        end = juror.end()
        if end is not None and end <= today:
            raise BadPanel(
                f"panel {panel.name}, juror {juror.name}: {juror.model} ended on {end} and cannot be "
                "asked any more; import scores it gave earlier (`medjury rate ratings FILE`; in the app: Set up, Notes), or "
                "run the panel `current` and calibrate it anew. Still served to you elsewhere? "
                "Copy the panel, set that base_url and leave out `ended` and `retires`"
            )


def refuse_form(panel: Panel, rubric: Rubric) -> None:
    """Raise BadPanel if a juror is to answer in an order or by a mean that a rubric has no use for."""
    for juror in panel.juror:
        if juror.expected and rubric.points is not None:
            raise BadPanel(
                f'panel {panel.name}, juror {juror.name}: scores = "expected" is no use on the rubric '
                f"{rubric.name}: the answers to a point have no mean; delete that line"
            )
        if juror.explanation and not rubric.shows_form:
            raise BadPanel(
                f'panel {panel.name}, juror {juror.name}: explanation = "{juror.explanation}" cannot be '
                f"asked for on the rubric {rubric.name}, whose prompt has no {{{{schema}}}} and writes "
                "the form of the answer out; delete that line, or take a rubric whose prompt has it"
            )


def _path(name_or_path: str | Path) -> Path:
    if str(name_or_path) in shipped():
        return FOLDER / f"{name_or_path}.toml"
    path = Path(name_or_path)
    if path.is_file():
        return path
    raise BadPanel(f"panel {str(name_or_path)!r}: neither a file nor one of {', '.join(shipped())}")


def _check_address(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that is none; Python would quote it
        is_address = False
    if not is_address:
        raise ValueError(
            f"base_url: {shown(base_url)} is not an address; write the one the texts may go to, "
            "such as https://api.openai.com/v1 or http://127.0.0.1:8000/v1"
        )
    if parts.username is not None or parts.password is not None or "?" in base_url:
        raise ValueError("base_url: holds a key or a query; name a variable in api_key_env instead")
    if why := fault(base_url):
        raise ValueError(f"base_url: {why}")


def variable_name(value: str) -> str:
    """Return the name of an environment variable; raise ValueError for what may be a key."""
    one_word = "_" not in value and len(value) > LONGEST_WORD and not value.isalpha()
    named = VARIABLE.fullmatch(value) and len(value) <= LONGEST_NAME and not one_word
    if value and (not named or value.lower().startswith("sk-")):
        raise ValueError(NOT_A_NAME)
    return value


def shown(value: object) -> str:
    """Return a value as a message may hold it: not if it looks like a key."""
    text = value if isinstance(value, str) else repr(value)
    word = re.search(rf"[^\s/:.@'\"]{{{LONGEST_NAME + 1},}}", text)
    hidden = word or "@" in text or any(start in text for start in KEY_START)
    if hidden:
        return "(not shown: it may hold a key)"
    return repr(value) if len(text) <= LONGEST_SHOWN else f"({len(text)} characters)"


def first_fault(error: ValidationError, body: Mapping[str, Any]) -> str:
    """Return the first complaint in one line: juror, key, value, what is allowed."""
    problem = error.errors()[0]
    steps = list(problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ")
    prefix, part = "", Panel.model_fields
    if len(steps) > 1 and steps[0] in ("juror", "proposer"):
        is_juror, part = steps[0] == "juror", Juror.model_fields
        prefix = f"juror {_called(body, steps[1])}, " if is_juror else "proposer, "
        steps = steps[1 + is_juror :]
    if not steps:
        return f"{prefix}{message}"
    if problem["type"] == "extra_forbidden":
        named = shown(steps[0]).strip("'")
        keys = [field.alias or name for name, field in part.items()]
        return f"{prefix}{named}: no such key; the keys are {', '.join(keys)}"
    if problem["type"] == "string_pattern_mismatch":
        message = NAME_SIGNS
    if steps[0] == "api_key_env":
        return f"{prefix}api_key_env: {NOT_A_NAME}"
    value = "" if problem["type"] == "missing" else f" {shown(problem['input'])}"
    return f"{prefix}{'.'.join(map(str, steps))}{value}: {message}"


def _called(body: Mapping[str, Any], index: Any) -> str:
    juror = body["juror"][index]
    name = juror.get("name") if isinstance(juror, dict) else None
    return shown(name) if isinstance(name, str) else str(index + 1)
