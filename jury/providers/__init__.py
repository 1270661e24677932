"""The vendors of jurors: what differs between them, in one table.

An SDK is imported only when a juror of its kind is first opened.
"""

from dataclasses import dataclass
from pkgutil import resolve_name

from jury.call import Form, Provider
from jury.panel import Juror

TIMEOUT_SECONDS = 120.0
FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")


@dataclass(frozen=True, slots=True)
class Vendor:
    """One value of a juror's `provider`.

    Attributes
    ----------
    endpoint, batches
        What asks its jurors one by one, and in batches.
    own_host
        The vendor's own; other servers may speak its protocol too.
    forms
        The forms of answer its endpoints may know, the strictest first.
    """

    endpoint: str
    batches: str = ""
    own_host: str = ""
    forms: tuple[Form, ...] = FORMS


VENDORS = {
    "anthropic": Vendor(
        "jury.providers.anthropic_messages:AnthropicMessages",
        "jury.batch.anthropic_messages:AnthropicBatches",
        "api.anthropic.com",
        ("json_schema", "text"),
    ),
    "openai": Vendor(
        "jury.providers.openai_chat:OpenAIChat",
        "jury.batch.openai_files:OpenAIBatches",
        "api.openai.com",
    ),
    "azure": Vendor("jury.providers.openai_chat:AzureChat"),
    "gemini": Vendor("jury.providers.openai_chat:GeminiChat"),
    "bedrock": Vendor(
        "jury.providers.anthropic_messages:BedrockMessages", forms=("json_schema", "text")
    ),
    "vertex": Vendor(
        "jury.providers.anthropic_messages:VertexMessages", forms=("json_schema", "text")
    ),
    "foundry": Vendor(
        "jury.providers.anthropic_messages:FoundryMessages", forms=("json_schema", "text")
    ),
    "simulated": Vendor("jury.providers.simulated:Simulated"),
}


def forms_of(juror: Juror) -> tuple[Form, ...]:
    """Return the forms of answer that a juror's endpoint may be asked for, in their order."""
    return VENDORS[juror.provider].forms if juror.form == "auto" else (juror.form,)


def open_provider(juror: Juror, key: str, timeout: float = TIMEOUT_SECONDS) -> Provider:
    """Return the line to a juror; `timeout` bounds each request from start to end, in seconds."""
    line: Provider = resolve_name(VENDORS[juror.provider].endpoint)(juror, key, timeout)
    return line
