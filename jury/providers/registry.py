"""The registry of providers: for each, how it is asked, signed in to and set in a panel.

A new provider is one row of `PROVIDERS`, its name in `ProviderName`, and the class that asks it. An
SDK is imported only when a juror of its kind is first opened.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from jury.call import Form, Provider

if TYPE_CHECKING:
    from jury.panel import Juror

ProviderName = Literal[
    "openai", "azure", "anthropic", "bedrock", "vertex", "foundry", "gemini", "simulated"
]
Auth = Literal["key", "iam", "entra", "google"]
PANEL_KEYS = ("auth", "region", "project", "deployment", "api_version", "profile")
# The library that finds and renews credentials, and the extra of medjury that brings it.
LIBRARIES = {
    "iam": ("boto3", "bedrock"),
    "entra": ("azure.identity", "azure"),
    "google": ("google.auth", "vertex"),
}


FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")
CLAUDE_FORMS: tuple[Form, ...] = ("json_schema", "text")


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """What is known of one provider.

    Attributes
    ----------
    client
        The class that asks its jurors one by one, a `Provider`: module, colon, name.
    batches
        The class that asks them in batches, empty where there are none.
    own_host
        The vendor's own host; other servers may speak its protocol too.
    forms
        The forms of answer that its endpoints may know, the strictest first.
    probabilities
        Whether it may serve the log-probabilities of tokens.
    auth
        The ways to sign in, the usual one first.
    keys, needed
        Keys of the panel that it may have besides those of all providers, and those it must have.
    needed_with
        Keys that it must have with one way to sign in, and may not have with the others.
    address
        What makes `base_url` of a panel's keys where it has none; empty if they do not say it.
    exported
        Whether files for other tools can say how its jurors are asked.
    """

    client: str
    batches: str = ""
    own_host: str = ""
    forms: tuple[Form, ...] = FORMS
    probabilities: bool = True
    auth: tuple[Auth, ...] = ("key",)
    keys: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    needed_with: Mapping[Auth, tuple[str, ...]] = field(default_factory=dict)
    address: Callable[[Mapping[str, Any]], str] = lambda body: ""
    exported: bool = False


def _vertex_address(body: Mapping[str, Any]) -> str:
    region = body.get("region")
    if region in ("us", "eu"):
        return f"https://aiplatform.{region}.rep.googleapis.com/v1"
    prefix = "" if region == "global" else f"{region}-"
    return f"https://{prefix}aiplatform.googleapis.com/v1"


def _gemini_address(body: Mapping[str, Any]) -> str:
    if body.get("auth") != "google":
        return "https://generativelanguage.googleapis.com/v1beta/openai"
    place = f"/projects/{body.get('project')}/locations/{body.get('region')}/endpoints/openapi"
    return _vertex_address(body) + place


PROVIDERS = {
    "openai": ProviderSpec(
        "jury.providers.openai_chat:OpenAIChat",
        batches="jury.batch.client:OpenAIBatches",
        own_host="api.openai.com",
        exported=True,
    ),
    "anthropic": ProviderSpec(
        "jury.providers.anthropic_messages:AnthropicMessages",
        batches="jury.batch.client:AnthropicBatches",
        own_host="api.anthropic.com",
        exported=True,
        forms=CLAUDE_FORMS,
        probabilities=False,
    ),
    "azure": ProviderSpec(
        "jury.providers.openai_chat:AzureChat",
        auth=("key", "entra"),
        keys=("auth", "deployment", "api_version"),
    ),
    "foundry": ProviderSpec(
        "jury.providers.anthropic_messages:FoundryMessages",
        forms=CLAUDE_FORMS,
        probabilities=False,
        auth=("key", "entra"),
        keys=("auth",),
    ),
    "bedrock": ProviderSpec(
        "jury.providers.anthropic_messages:BedrockMessages",
        forms=CLAUDE_FORMS,
        probabilities=False,
        auth=("iam", "key"),
        keys=("auth", "region", "profile"),
        needed=("region",),
        address=lambda body: f"https://bedrock-runtime.{body.get('region')}.amazonaws.com",
    ),
    "vertex": ProviderSpec(
        "jury.providers.anthropic_messages:VertexMessages",
        forms=CLAUDE_FORMS,
        probabilities=False,
        auth=("google",),
        keys=("auth", "region", "project"),
        needed=("region", "project"),
        address=_vertex_address,
    ),
    "gemini": ProviderSpec(
        "jury.providers.openai_chat:GeminiChat",
        auth=("key", "google"),
        keys=("auth", "region", "project"),
        needed_with={"google": ("region", "project")},
        address=_gemini_address,
    ),
    "simulated": ProviderSpec(
        "jury.providers.simulated:Simulated", exported=True, probabilities=False
    ),
}


def forms_of(juror: "Juror") -> tuple[Form, ...]:
    """Return the forms of answer that a juror's endpoint may be asked for, in their order."""
    return PROVIDERS[juror.provider].forms if juror.form == "auto" else (juror.form,)


def open_provider(juror: "Juror", key: str, timeout: float | None = None) -> Provider:
    """Return the connection to a juror; `timeout`, or the juror's own, bounds each request in seconds."""
    client = resolve_name(PROVIDERS[juror.provider].client)
    opened: Provider = client(juror, key, timeout or juror.seconds)
    return opened


def auth_of(provider: str, auth: Auth | None) -> Auth:
    """Return how a juror signs in: as its panel says, or in its provider's usual way."""
    return auth or PROVIDERS[provider].auth[0]


def with_address(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a juror's settings with the address that its provider and region have, if none is set."""
    spec = PROVIDERS.get(str(body.get("provider")))
    address = body.get("base_url") or (spec.address(body) if spec else "")
    return {**body, "base_url": address} if address else dict(body)


def lacking_library(provider: str, auth: Auth | None) -> str:
    """Return which library a juror's way to sign in lacks here, and how to have it."""
    library, extra = LIBRARIES.get(auth_of(provider, auth), ("", ""))
    try:
        is_lacking = bool(library) and find_spec(library) is None
    except ModuleNotFoundError:  # the package around it is not there
        is_lacking = True
    return (
        f'provider "{provider}" with auth = "{auth_of(provider, auth)}" needs {library}, which is '
        f"not installed: `uv sync --extra {extra}`"
        if is_lacking
        else ""
    )


def refuse_misplaced(juror: "Juror") -> None:
    """Raise ValueError for the first setting that is missing or does not apply to the provider."""
    for complaint in (*_misplaced(juror), *_lacking(juror), *_of_another_way(juror)):
        raise ValueError(complaint)


def _misplaced(juror: "Juror") -> Iterator[str]:
    spec, provider = PROVIDERS[juror.provider], juror.provider
    if "/deployments/" in juror.base_url or "api-version=" in juror.base_url:  # as Azure shows it
        yield (
            'base_url: for a deployment at Azure write provider = "azure", the resource\'s address '
            "alone, such as https://NAME.openai.azure.com, and deployment and api_version on lines "
            "of their own"
        )
    for key in PANEL_KEYS:
        if _value(juror, key) and key not in spec.keys:
            takers = [name for name, other in PROVIDERS.items() if key in other.keys]
            yield f'{key}: does not apply to provider "{provider}"; it is for {", ".join(takers)}'
    if juror.auth and juror.auth not in spec.auth:
        choices = " or ".join(f'"{way}"' for way in spec.auth)
        yield f'auth: provider "{provider}" signs in with {choices}'


def _lacking(juror: "Juror") -> Iterator[str]:
    spec, way = PROVIDERS[juror.provider], auth_of(juror.provider, juror.auth)
    for key in (*spec.needed, *spec.needed_with.get(way, ())):
        if not _value(juror, key):
            yield f'{key}: provider "{juror.provider}" needs it'
    if spec.keys and way == "key" and not juror.api_key_env:
        others = "".join(f', or write auth = "{other}"' for other in spec.auth if other != "key")
        yield f"api_key_env: name the variable that holds the key{others}"


def _of_another_way(juror: "Juror") -> Iterator[str]:
    """Yield what belongs to another way to sign in, or to another kind of address."""
    way = auth_of(juror.provider, juror.auth)
    if way != "key" and juror.api_key_env:
        yield (
            f'api_key_env: does not apply to auth = "{way}", whose credentials are found where '
            "the vendor's own tools find them"
        )
    if juror.aws_profile and way != "iam":
        yield f'profile: does not apply to auth = "{way}"'
    for other, keys in PROVIDERS[juror.provider].needed_with.items():
        for key in keys:
            if way != other and _value(juror, key):
                yield f'{key}: applies to auth = "{other}" only'
    if _value(juror, "api_version") and juror.base_url.rstrip("/").endswith("/openai/v1"):
        yield (
            "api_version: does not apply to an address that ends in /openai/v1; leave one of the "
            "two out"
        )


def _value(juror: "Juror", key: str) -> Any:
    return getattr(juror, "aws_profile" if key == "profile" else key)
