"""Credentials that renew themselves: Entra's and Google's tokens, AWS's keys.

The vendors' own libraries find them where the vendors' own tools do: in the environment, in files,
in the role of the machine. Each is imported only when a juror signs in that way.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Generic, TypeVar

from jury.call import NO_CREDENTIALS

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


@dataclass(frozen=True, slots=True)
class Credential(Generic[C]):
    """A credential and when it ends, in seconds since 1970."""

    value: C
    ends: float


class Renewed(Generic[C]):
    """A credential that is fetched when it is first needed, and again before it ends.

    `fetch` may block and raises NoCredentials; it is called in a thread, one call at a time.
    """

    def __init__(self, fetch: Callable[[], Credential[C]]) -> None:
        self._fetch = fetch
        self._held: Credential[C] | None = None
        self._turn = asyncio.Lock()
        self.fetched = 0

    async def __call__(self) -> C:
        """Return a credential that holds for a while."""
        async with self._turn:
            if self._held is None or self._held.ends - time.time() < EARLY_SECONDS:
                self._held = await asyncio.to_thread(self._fetch)
                self.fetched += 1
            return self._held.value

    def forget(self, fetched: int) -> None:
        """Discard a credential that a host has refused, unless a new one was fetched since."""
        if self.fetched == fetched:
            self._held = None


def entra_token(scope: str) -> Renewed[str]:
    """Return the tokens that Microsoft Entra gives this machine or its user."""
    from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
    from azure.identity import DefaultAzureCredential

    def fetch() -> Credential[str]:
        try:
            with DefaultAzureCredential() as source:  # a new one each time: the old one remembers
                token = source.get_token(scope)
        except AzureError as error:
            passes = isinstance(error, (ServiceRequestError, ServiceResponseError))
            raise NoCredentials(error, passes) from error
        return Credential(token.token, token.expires_on)

    return Renewed(fetch)


def google_token() -> Renewed[str]:
    """Return the tokens of Google's application default credentials."""
    import google.auth
    from google.auth.exceptions import GoogleAuthError, TransportError
    from google.auth.transport.requests import Request

    def fetch() -> Credential[str]:
        try:
            source: Any = google.auth.default(scopes=[GOOGLE_SCOPE])[0]
            source.refresh(Request())
        except GoogleAuthError as error:
            raise NoCredentials(error, isinstance(error, TransportError)) from error
        ends = source.expiry.replace(tzinfo=UTC).timestamp() if source.expiry else 0.0
        return Credential(str(source.token), ends)

    return Renewed(fetch)


def aws_keys(region: str, profile: str) -> Renewed[Any]:
    """Return the keys of an AWS profile, or of the usual chain: environment, files, role.

    They are asked for anew every few minutes, so that keys which another tool writes into the
    files are taken up as well.
    """
    import boto3
    from botocore.exceptions import BotoCoreError, HTTPClientError, NoCredentialsError

    def fetch() -> Credential[Any]:
        try:
            session = boto3.Session(profile_name=profile or None, region_name=region)
            credentials = session.get_credentials()
            if credentials is None:
                raise NoCredentialsError
            keys = credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise NoCredentials(error, isinstance(error, HTTPClientError)) from error
        return Credential(keys, time.time() + EARLY_SECONDS + AWS_HELD_SECONDS)

    return Renewed(fetch)
