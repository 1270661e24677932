"""Vendors' lines. Each SDK is imported only when a juror of its kind is first opened."""

from jury.call import Provider
from jury.panel import Juror

TIMEOUT_SECONDS = 120.0


def open_provider(juror: Juror, key: str, timeout: float = TIMEOUT_SECONDS) -> Provider:
    """Return the line to a juror; `timeout` bounds each request from start to end, in seconds."""
    if juror.provider == "simulated":
        from jury.providers.simulated import Simulated

        return Simulated(juror)
    if juror.provider == "anthropic":
        from jury.providers.anthropic_messages import AnthropicMessages

        return AnthropicMessages(juror, key, timeout)
    from jury.providers.openai_chat import OpenAIChat

    return OpenAIChat(juror, key, timeout)
