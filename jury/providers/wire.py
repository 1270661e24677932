"""The HTTP client under both SDKs: it sends to the named host, and to no other."""

from collections.abc import Callable

import httpx2

LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)


def client(
    make: Callable[..., httpx2.AsyncClient], base_url: str, timeout: float
) -> httpx2.AsyncClient:
    """Return a client that follows no redirect and takes no plain text through a proxy.

    A proxy named by the environment carries https, whose texts it cannot read; hospitals often
    have no other way out. The SDKs' own default clients send plain http through it as well.

    Parameters
    ----------
    make
        An SDK's `DefaultAioHttpClient`: the same client over aiohttp, for half the processor time.
    """
    encrypted = base_url.startswith("https://")
    return make(follow_redirects=False, trust_env=encrypted, timeout=timeout, limits=LIMITS)
