"""Serving the application: `medjury serve`."""

import asyncio
import ctypes
import gc
import importlib.resources
import socket
import sys
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from sqlalchemy import Engine
from starlette.middleware import Middleware
from streamlit.web.bootstrap import load_config_options

from annotate import meanings, oidc, protocols, signin
from annotate.middleware import Downloads, Gate, Outgoing, Roles, SecurityHeaders
from annotate.navigation import serve_study
from annotate.protocols import WebSockets
from annotate.rating import requests
from data.database import close_studies
from data.errors import BadInput
from data.queries import has_coordinator

HERE = Path(__file__).parent
SECRETS = Path(".streamlit/secrets.toml")
SECONDS_BETWEEN_TRIMS = 30
M_ARENA_MAX = -8  # of glibc's malloc.h
NO_COORDINATOR = (
    "medjury: nobody can steer this study here yet: "
    "`medjury rate people add NAME --role coordinator` prints a code"
)


def serve(db_url: str, port: int = 8501, host: str = "127.0.0.1", secrets: Path = SECRETS) -> None:
    """Serve a study's pages until interrupted; hospital accounts, if `secrets` has [auth].

    Raises
    ------
    NoStudy
        If there is no study at `db_url`.
    BadInput
        If the port is taken, or [auth] in `secrets` cannot be used.
    """
    accounts = oidc.read_secrets(secrets)
    engine = serve_study(db_url)
    _refuse_taken(host, port)
    _share_one_heap()
    print(f"medjury: rating page at http://{host}:{port}  (stop with Ctrl+C)", flush=True)  # noqa: T201 for whoever started it
    if not has_coordinator(engine):
        print(NO_COORDINATOR, flush=True)  # noqa: T201 for whoever started it
    load_config_options(settings() | {"server.address": host, "server.port": port})
    protocols.run(application(engine, accounts), host, port)


def application(engine: Engine, secrets: Mapping[str, Any] | None = None) -> st.App:
    """Return the ASGI application of a study; hospital accounts if `secrets` has them."""
    hospital = oidc.Hospital(engine, secrets["auth"]) if secrets else None
    return st.App(
        str(HERE / "app.py"),
        routes=[
            *signin.routes(engine, hospital),
            *requests.routes(engine),
            *meanings.routes(),
        ],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(Gate, engine=engine),
            Middleware(WebSockets, engine=engine),
            Middleware(Roles, engine=engine),
            Middleware(Downloads, engine=engine),
            Middleware(Outgoing, engine=engine),
        ],
        lifespan=_warm,
    )


def settings() -> dict[str, Any]:
    """Return the Streamlit settings that travel with this package, by dotted name."""
    text = (importlib.resources.files("annotate") / "streamlit.toml").read_text("utf-8")
    return _dotted(tomllib.loads(text))


def _dotted(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return a table of tables as one, its names joined by dots."""
    options: dict[str, Any] = {}
    for name, value in table.items():
        inner = isinstance(value, Mapping)
        options |= _dotted(value, f"{before}{name}.") if inner else {before + name: value}
    return options


@asynccontextmanager
async def _warm(_: st.App) -> AsyncIterator[dict[str, Any]]:
    """Import the rating page before the first rater waits for it; close the study at the end.

    What is loaded by then stays to the end: the garbage collector is told to leave it alone,
    or every full collection looks through it and holds all raters up for 30 ms.
    """
    import annotate.screens.rate  # noqa: F401 for its effect on sys.modules

    gc.collect()
    gc.freeze()
    giving_back = asyncio.create_task(_give_back_memory())
    yield {}
    giving_back.cancel()
    close_studies()  # a SIGTERM ends the process right after this, without its exit handlers


async def _give_back_memory() -> None:
    """Have malloc give the system what is free, every half minute; glibc keeps it for itself."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_TRIMS)
            await asyncio.to_thread(trim, 0)


def _share_one_heap() -> None:
    """Have all threads allocate from one heap, where glibc would give them eight a processor.

    Pages are drawn in ever new threads: each heap grows to the largest page that came its way
    and keeps that, nearly all of it free. Threads of Python seldom allocate at once.
    """
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        mallopt(M_ARENA_MAX, 1)  # another C library than glibc has no such function


def _refuse_taken(host: str, port: int) -> None:
    """Raise BadInput if nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BadInput(f"--port {port} on {host}: {error.strerror}; choose another") from error
