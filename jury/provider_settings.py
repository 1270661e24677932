"""What a panel says of each provider: how it signs in, which keys apply, and where it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Protocol

ProviderName = Literal[
    "openai", "azure", "anthropic", "bedrock", "vertex", "foundry", "gemini", "simulated"
]
Auth = Literal["key", "iam", "entra", "google"]
KEYS = ("auth", "region", "project", "deployment", "api_version", "profile")
# The library that finds and renews credentials, and the extra of medjury that brings it.
LIBRARIES = {
    "iam": ("boto3", "bedrock"),
    "entra": ("azure.identity", "azure"),
    "google": ("google.auth", "vertex"),
}
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"


@dataclass(frozen=True, slots=True)
class Settings:
    """What applies to one provider.

    Attributes
    ----------
    auth
        The ways to sign in, the usual one first.
    keys, needed
        Keys of the panel that it may have besides those of all, and those it must have.
    """

    auth: tuple[Auth, ...] = ("key",)
    keys: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()


SETTINGS: dict[str, Settings] = {
    "openai": Settings(),
    "anthropic": Settings(),
    "azure": Settings(("key", "entra"), ("auth", "deployment", "api_version")),
    "foundry": Settings(("key", "entra"), ("auth",)),
    "bedrock": Settings(("iam", "key"), ("auth", "region", "profile"), ("region",)),
    "vertex": Settings(("google",), ("auth", "region", "project"), ("region", "project")),
    "gemini": Settings(("key", "google"), ("auth", "region", "project")),
    "simulated": Settings(),
}


class Placed(Protocol):
    """What is looked at of a juror."""

    @property
    def provider(self) -> ProviderName: ...  # noqa: D102 - the panel's own keys
    @property
    def auth(self) -> Auth | None: ...  # noqa: D102
    @property
    def base_url(self) -> str: ...  # noqa: D102
    @property
    def api_key_env(self) -> str: ...  # noqa: D102
    @property
    def aws_profile(self) -> str: ...  # noqa: D102


def auth_of(provider: str, auth: Auth | None) -> Auth:
    """Return how a juror signs in: as its panel says, or in its provider's usual way."""
    return auth or SETTINGS[provider].auth[0]


def with_address(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a juror's settings with the address that its provider and region have, if none is set."""
    known = body.get("base_url") or _address(body)
    return {**body, "base_url": known} if known else dict(body)


def lacking_library(provider: str, auth: Auth | None) -> str:
    """Return which library a juror's way to sign in lacks here, and how to have it."""
    library, extra = LIBRARIES.get(auth_of(provider, auth), ("", ""))
    if not library or _installed(library):
        return ""
    return (
        f'provider "{provider}" with auth = "{auth_of(provider, auth)}" needs {library}, which is '
        f"not installed: `uv sync --extra {extra}`"
    )


def refuse_misplaced(juror: Placed) -> None:
    """Raise ValueError for the first setting that is missing or does not apply to the provider."""
    _refuse_query(juror)
    settings, provider = SETTINGS[juror.provider], juror.provider
    for key in KEYS:
        if _value(juror, key) and key not in settings.keys:
            ours = [name for name, one in SETTINGS.items() if key in one.keys]
            raise ValueError(
                f'{key}: does not apply to provider "{provider}"; it is for {", ".join(ours)}'
            )
    if juror.auth and juror.auth not in settings.auth:
        ways = " or ".join(f'"{one}"' for one in settings.auth)
        raise ValueError(f'auth: provider "{provider}" signs in with {ways}')
    _refuse_lacking(juror)
    _refuse_wrong_way(juror)


def _refuse_query(juror: Placed) -> None:
    """Refuse the whole address of an Azure deployment, as its portal shows it."""
    if "/deployments/" in juror.base_url or "api-version=" in juror.base_url:
        raise ValueError(
            'base_url: for a deployment at Azure write provider = "azure", the resource\'s address '
            "alone, such as https://NAME.openai.azure.com, and deployment and api_version on lines "
            "of their own"
        )


def _refuse_lacking(juror: Placed) -> None:
    """Refuse a juror without what its provider cannot do without."""
    needed = SETTINGS[juror.provider].needed
    if juror.provider == "gemini" and juror.auth == "google":
        needed = ("region", "project")
    for key in needed:
        if not _value(juror, key):
            raise ValueError(f'{key}: provider "{juror.provider}" needs it')
    cloud = len(SETTINGS[juror.provider].keys) > 0
    if cloud and auth_of(juror.provider, juror.auth) == "key" and not juror.api_key_env:
        ways = SETTINGS[juror.provider].auth
        other = "".join(f', or write auth = "{one}"' for one in ways if one != "key")
        raise ValueError(f"api_key_env: name the variable that holds the key{other}")


def _refuse_wrong_way(juror: Placed) -> None:
    """Refuse what belongs to another way to sign in, or to another kind of address."""
    way = auth_of(juror.provider, juror.auth)
    if way != "key" and juror.api_key_env:
        raise ValueError(
            f'api_key_env: does not apply to auth = "{way}", whose credentials are found where '
            "the vendor's own tools find them"
        )
    if juror.aws_profile and way != "iam":
        raise ValueError(f'profile: does not apply to auth = "{way}"')
    if juror.provider == "gemini" and way == "key":
        for key in ("region", "project"):
            if _value(juror, key):
                raise ValueError(f'{key}: applies to auth = "google" only')
    if _value(juror, "api_version") and juror.base_url.rstrip("/").endswith("/openai/v1"):
        raise ValueError(
            "api_version: does not apply to an address that ends in /openai/v1; leave one of the "
            "two out"
        )


def _value(juror: Placed, key: str) -> Any:
    return getattr(juror, "aws_profile" if key == "profile" else key)


def _address(body: Mapping[str, Any]) -> str:
    """Return where a provider is, as far as its region says it."""
    provider, region, project = (body.get(one) for one in ("provider", "region", "project"))
    if provider == "bedrock" and region:
        return f"https://bedrock-runtime.{region}.amazonaws.com"
    if provider == "vertex" and region:
        return _google(region)
    if provider == "gemini":
        path = f"/projects/{project}/locations/{region}/endpoints/openapi"
        return _google(region) + path if body.get("auth") == "google" else GEMINI
    return ""


def _google(region: Any) -> str:
    """Return Vertex AI's address for a region, or for one of its multi-regions."""
    if region in ("us", "eu"):
        return f"https://aiplatform.{region}.rep.googleapis.com/v1"
    prefix = "" if region == "global" else f"{region}-"
    return f"https://{prefix}aiplatform.googleapis.com/v1"


def _installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # the package around it is not there
        return False
