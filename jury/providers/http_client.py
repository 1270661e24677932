"""A juror's endpoint through a vendor's SDK, which sends to the panel's host and to no other.

Also its credentials, renewed before they end, and what both SDKs' replies have in common: HTTP
failures, unreadable bodies, silent loggers.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC
from typing import Any, ClassVar, Generic, TypeVar

import aiohttp
import httpx2

from data.calls import Status
from jury.api_protocols import AUTH, http_failure
from jury.call import NO_CONNECTION, NO_CREDENTIALS, Answer, Call
from jury.panel import Juror

EARLY_SECONDS = 120.0  # renewed before it ends, so that it cannot end on its way
AWS_HELD_SECONDS = 240.0
GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
AZURE_OPENAI_SCOPE = "https://cognitiveservices.azure.com/.default"
FOUNDRY_SCOPE = "https://ai.azure.com/.default"
C = TypeVar("C")


class NoCredentials(Exception):
    """No credential could be fetched; `passes` says whether it may be possible a little later."""

    def __init__(self, error: BaseException, passes: bool = False) -> None:
        super().__init__(f"{NO_CREDENTIALS}: {type(error).__name__}")
        self.passes = passes


class Renewed(Generic[C]):
    """A credential that is fetched when it is first needed, and again before it ends.

    `fetch` returns it with when it ends, in seconds since 1970. It may block and raises NoCredentials;
    it is called in a thread, one call at a time.
    """

    def __init__(self, fetch: Callable[[], tuple[C, float]]) -> None:
        self._fetch = fetch
        self._held: tuple[C, float] | None = None
        self._turn = asyncio.Lock()
        self.fetched = 0

    async def __call__(self) -> C:
        """Return a credential that holds for a while."""
        async with self._turn:
            if self._held is None or self._held[1] - time.time() < EARLY_SECONDS:
                self._held = await asyncio.to_thread(self._fetch)
                self.fetched += 1
            return self._held[0]

    def forget(self, fetched: int) -> None:
        """Discard a credential that a host has refused, unless a new one was fetched since."""
        if self.fetched == fetched:
            self._held = None


def entra_token(scope: str) -> Renewed[str]:
    """Return the tokens that Microsoft Entra gives this machine or its user."""
    from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
    from azure.identity import DefaultAzureCredential

    def fetch() -> tuple[str, float]:
        try:
            with DefaultAzureCredential() as source:  # a new one each time: the old one remembers
                token = source.get_token(scope)
        except AzureError as error:
            passes = isinstance(error, (ServiceRequestError, ServiceResponseError))
            raise NoCredentials(error, passes) from error
        return token.token, token.expires_on

    return Renewed(fetch)


def google_token() -> Renewed[str]:
    """Return the tokens of Google's application default credentials."""
    import google.auth
    from google.auth.exceptions import GoogleAuthError, TransportError
    from google.auth.transport.requests import Request

    def fetch() -> tuple[str, float]:
        try:
            source: Any = google.auth.default(scopes=[GOOGLE_SCOPE])[0]
            source.refresh(Request())
        except GoogleAuthError as error:
            raise NoCredentials(error, isinstance(error, TransportError)) from error
        ends = source.expiry.replace(tzinfo=UTC).timestamp() if source.expiry else 0.0
        return str(source.token), ends

    return Renewed(fetch)


def aws_keys(region: str, profile: str) -> Renewed[Any]:
    """Return the keys of an AWS profile, or of the usual chain: environment, files, role.

    They are asked for anew every few minutes, so that keys which another tool writes into the
    files are taken up as well.
    """
    import boto3
    from botocore.exceptions import BotoCoreError, HTTPClientError, NoCredentialsError

    def fetch() -> tuple[Any, float]:
        try:
            session = boto3.Session(profile_name=profile or None, region_name=region)
            credentials = session.get_credentials()
            if credentials is None:
                raise NoCredentialsError
            keys = credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise NoCredentials(error, isinstance(error, HTTPClientError)) from error
        return keys, time.time() + EARLY_SECONDS + AWS_HELD_SECONDS

    return Renewed(fetch)


LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
FROM_ENVIRONMENT = ("organization", "project", "admin_api_key", "webhook_secret", "webhook_key")


SLOTS_SECONDS = 5.0
MOST_SLOTS = 256
LARGEST_REPLY = 2_000_000  # bytes; an answer with its reasoning has thousands
BYTES_OF_TOKEN = 4_000  # of one token with 20 alternatives and their probabilities
COMPRESSED = 20  # times less of a compressed reply, which may hold a thousand times as much


class TooLarge(Exception):
    """A reply does not end."""


NO_SLOTS = (
    *(httpx2.HTTPError, aiohttp.ClientError, OSError, TooLarge),
    *(ValueError, LookupError, TypeError, OverflowError, RecursionError),
)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, limit: float) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._limit:
                raise TooLarge
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def bound(http: httpx2.AsyncClient, limit: float) -> None:
    """Let a client read no more than so many bytes of a reply, and less of one that is compressed."""

    async def bounded(response: httpx2.Response) -> None:
        share = (
            COMPRESSED if response.headers.get("content-encoding", "identity") != "identity" else 1
        )
        response.stream = _Bounded(response.stream, limit / share)

    http.event_hooks = {"response": [bounded]}


class Endpoint(ABC):
    """A juror behind an SDK that neither retries nor follows redirects.

    Attributes
    ----------
    sdk
        The vendor's module. The default transport is the one over aiohttp, for half the processor
        time of httpx2's own.
    path
        Where one request goes.
    unsupported
        Names of parameters that the server has refused in this run, and that are sent otherwise
        or not at all since.
    """

    sdk: ClassVar[Any]
    path: ClassVar[str]
    unsupported: tuple[str, ...] = ()

    def __init__(
        self,
        juror: Juror,
        key: str,
        timeout: float,
        transport: Callable[..., httpx2.AsyncClient] | None = None,
    ) -> None:
        silence()
        self.juror, self.timeout = juror, timeout
        self.credential: Renewed[Any] | None = None
        http = client(transport or self.sdk.DefaultAioHttpClient, juror.base_url, timeout)
        bound(http, LARGEST_REPLY + juror.max_tokens * BYTES_OF_TOKEN * juror.expected)
        opened = self.open(key, {"max_retries": 0, "timeout": timeout, "http_client": http})
        self.http, self.client = http, without_environment(opened)
        # As the client has them; what is left out is copied for each request, which takes as long
        # as to build it.
        self.options = {"headers": {}, "max_retries": 0, "timeout": timeout}

    @abstractmethod
    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client; `common` is what all of them are opened with."""

    @abstractmethod
    def body(self, call: Call) -> dict[str, Any]:
        """Return the body of a request."""

    @abstractmethod
    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""

    def failure(self, status: int, headers: Mapping[str, str], text: str) -> Answer:
        """Return the answer for an HTTP error."""
        return http_failure(status, headers, text)

    @abstractmethod
    def read(self, text: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer in a response body."""

    async def signed_in(self) -> None:  # noqa: B027 - most SDKs ask for a credential themselves
        """Put a valid credential into the client, where the SDK does not ask for one itself."""

    def learns(self, answer: Answer, body: Mapping[str, Any]) -> bool:
        """Return whether a refused request can be sent with other parameters, and remember which."""
        return False

    def without(self, name: str) -> None:
        """Remember a parameter that the server does not know, unless another call already has."""
        if name not in self.unsupported:
            self.unsupported = (*self.unsupported, name)

    async def complete(self, call: Call) -> Answer:
        """Return how the call ended.

        A request that was refused for a credential that has run out, or for the name of a
        parameter, has cost nothing and is made once more; for each such name once.
        """
        fetched = self.credential.fetched if self.credential else 0
        body = self.body(call)
        answer = await self._request(body)
        if self.credential and answer.http in AUTH:
            self.credential.forget(fetched)
            answer = await self._request(body)
        while self.learns(answer, body):
            body = self.body(call)
            answer = await self._request(body)
        return replace(answer, sent=self.sent(call))

    async def slots(self) -> int:
        """Return the slots that llama.cpp's server tells of itself, 1 for any other server."""
        place = self.juror.base_url.rstrip("/").removesuffix("/v1")
        try:
            async with asyncio.timeout(SLOTS_SECONDS):
                reply = await self.http.get(f"{place}/props", headers=self.client.auth_headers)
            return min(max(int(reply.json()["total_slots"]), 1), MOST_SLOTS)
        except NO_SLOTS:
            return 1

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()

    async def _request(self, body: dict[str, Any]) -> Answer:
        """Send one request; every way it can end is an answer.

        It goes by the SDK's `post`: `create` would walk through all texts and the schema first,
        and Anthropic's has no parameter for the temperature any more.
        """
        try:
            async with asyncio.timeout(self.timeout):
                await self.signed_in()
                raw = await self.client.post(
                    self.path, body=body, cast_to=httpx2.Response, options=self.options
                )
        except NoCredentials as error:
            status = Status.REQUEST_FAILED if error.passes else Status.AUTH  # nothing was sent
            return Answer(status, str(error), transient=error.passes, unsent=True)
        except TooLarge:
            return Answer(Status.REQUEST_FAILED, "the reply does not end within 2 MB")
        except (TimeoutError, self.sdk.APIConnectionError) as error:
            return unanswered(error, self.timeout)
        except self.sdk.APIStatusError as error:
            return self.failure(error.status_code, error.response.headers, error.response.text)
        return self.read(raw.text, raw.headers)


def client(
    make: Callable[..., httpx2.AsyncClient], base_url: str, timeout: float
) -> httpx2.AsyncClient:
    """Return a client that follows no redirect and takes no plain text through a proxy.

    A proxy named by the environment carries https, whose texts it cannot read; hospitals often
    have no other way out. The SDKs' own default clients send plain http through it as well.
    """
    encrypted = base_url.startswith("https://")
    return make(
        follow_redirects=False,
        trust_env=encrypted,
        verify=encrypted,  # certificates are read for each client, and plain text has none
        timeout=timeout,
        limits=LIMITS,
    )


def without_environment(sdk_client: Any) -> Any:
    """Return an SDK's client without what it took from the environment.

    The SDKs read headers and names of an account there, give no option to leave them out, and
    would send them to whatever host a panel names. They are in these attributes by the time a
    client is made; what has an option (keys, addresses, traces) is always given.
    """
    sdk_client._custom_headers = {}
    for name in FROM_ENVIRONMENT:
        if hasattr(sdk_client, name):
            setattr(sdk_client, name, None)
    return sdk_client


def silence() -> None:
    """Keep the SDKs from logging: at debug level anthropic's prints whole prompts.

    Their loggers are switched off rather than turned down, so that neither ANTHROPIC_LOG nor a
    level set later brings the texts back.
    """
    for name in ("anthropic", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
        logging.getLogger(f"{name}._base_client").disabled = True
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("azure", "google", "botocore"):  # a lack of credentials is an answer's reason
        logging.getLogger(name).setLevel(logging.ERROR)


def unanswered(error: BaseException, seconds: float) -> Answer:
    """Return the answer for a timeout or a broken connection; its reason names only the error's class."""
    causes = list(_causes(error))
    cause = causes[-1]
    unsent = any(isinstance(cause, aiohttp.ClientConnectorError) for cause in causes)
    if not unsent and isinstance(cause, (TimeoutError, httpx2.TimeoutException)):
        return Answer(Status.TIMEOUT, f"no answer within {seconds:g} s", transient=True)
    reason = f"{NO_CONNECTION}: {type(cause).__name__}"
    return Answer(Status.REQUEST_FAILED, reason, transient=True, unsent=unsent)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, down to the first timeout.

    The SDKs' own words say too little: over aiohttp a line that breaks after the request was sent
    is a `ConnectTimeout` as well. Only aiohttp's error in the chain says that nothing was sent.
    """
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = None if isinstance(cause, TimeoutError) else cause.__cause__
