"""A juror's endpoint through a vendor's SDK: it sends to the named host, and to no other."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import httpx2

from jury.call import Answer, Call
from jury.panel import Juror
from jury.providers.replies import http_failure, silence, unanswered

LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)


class Endpoint(ABC):
    """A juror behind an SDK that neither retries nor follows redirects.

    Attributes
    ----------
    sdk, sdk_client
        The vendor's module, and what makes its client. The default transport is the one over
        aiohttp, for half the processor time of httpx2's own.
    path
        Where one request goes.
    """

    sdk: ClassVar[Any]
    sdk_client: ClassVar[Any]
    path: ClassVar[str]

    def __init__(
        self,
        juror: Juror,
        key: str,
        timeout: float,
        transport: Callable[..., httpx2.AsyncClient] | None = None,
    ) -> None:
        silence()
        self.juror, self.timeout = juror, timeout
        http = client(transport or self.sdk.DefaultAioHttpClient, juror.base_url, timeout)
        self.client = type(self).sdk_client(
            api_key=key,
            base_url=juror.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=http,
        )

    @abstractmethod
    def body(self, call: Call) -> dict[str, Any]:
        """Return a request as it travels."""

    @abstractmethod
    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""

    @abstractmethod
    def read(self, text: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer in a response body."""

    async def complete(self, call: Call) -> Answer:
        """Return how the call ended."""
        return replace(await self._request(self.body(call)), sent=self.sent(call))

    async def close(self) -> None:
        """Let go of connections."""
        await self.client.close()

    async def _request(self, body: dict[str, Any]) -> Answer:
        """Send one request; every way it can end is an answer.

        It goes by the SDK's `post`: `create` would walk through all texts and the schema first,
        and Anthropic's has no parameter for the temperature any more.
        """
        try:
            async with asyncio.timeout(self.timeout):
                raw = await self.client.post(self.path, body=body, cast_to=httpx2.Response)
        except (TimeoutError, self.sdk.APIConnectionError) as error:
            return unanswered(error, self.timeout)
        except self.sdk.APIStatusError as error:
            return http_failure(error.status_code, error.response.headers, error.response.text)
        return self.read(raw.text, raw.headers)


def client(
    make: Callable[..., httpx2.AsyncClient], base_url: str, timeout: float
) -> httpx2.AsyncClient:
    """Return a client that follows no redirect and takes no plain text through a proxy.

    A proxy named by the environment carries https, whose texts it cannot read; hospitals often
    have no other way out. The SDKs' own default clients send plain http through it as well.
    """
    encrypted = base_url.startswith("https://")
    return make(follow_redirects=False, trust_env=encrypted, timeout=timeout, limits=LIMITS)
