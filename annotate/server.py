"""Serving the application: `medjury serve`."""

import gc
import importlib.resources
import os
import socket
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import streamlit as st
import uvicorn
from sqlalchemy import Engine
from starlette.middleware import Middleware
from streamlit import config
from streamlit.web.bootstrap import load_config_options

from annotate import compute, oidc, signin
from annotate.middleware import Doors, SecurityHeaders
from annotate.navigation import SCREENS, serve_study
from annotate.rating import requests
from data.database import close_studies
from data.errors import BadInput, MedjuryError
from data.person import OPERATOR
from data.study.people import has_coordinator
from data.study.rubrics import jurors_with_ratings

HERE = Path(__file__).parent
SECRETS = Path(".streamlit/secrets.toml")
LONGEST_HEAD = 64 * 1024  # bytes of a request's line and headers; nginx passes on half of it
LARGEST_MESSAGE = 4_000_000  # bytes over a WebSocket: rubrics, descriptions, panels
MOST_CONNECTIONS = 800  # of all browsers: a process has 1,024 files by default
SECONDS_BETWEEN_PINGS = 30
MADE_BETWEEN = 1_000  # objects, before garbage is looked for; fewer than in a command's process
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
    print(f"medjury: rating page at http://{host}:{port}  (stop with Ctrl+C)", flush=True)  # noqa: T201 for whoever started it
    if not has_coordinator(engine):
        print(NO_COORDINATOR, flush=True)  # noqa: T201 for whoever started it
    # Of all processes beside it: this folder may hold any module.
    os.environ["PYTHONSAFEPATH"] = "1"
    load_config_options(settings() | {"server.address": host, "server.port": port})
    uvicorn.run(
        application(engine, accounts),
        host=host,
        port=port,
        http="h11",  # the parser that bounds a request's head
        h11_max_incomplete_event_size=LONGEST_HEAD,
        limit_concurrency=MOST_CONNECTIONS,
        ws_max_size=LARGEST_MESSAGE,
        ws_per_message_deflate=False,  # what is compressed is small as it comes, not as it lies here
        ws_ping_interval=SECONDS_BETWEEN_PINGS,
        ws_ping_timeout=SECONDS_BETWEEN_PINGS,
        ssl_certfile=config.get_option("server.sslCertFile"),
        ssl_keyfile=config.get_option("server.sslKeyFile"),
        use_colors=False,
        access_log=False,
        log_level="warning",  # or each WebSocket, refused ones too, puts its address into the log
    )


def application(engine: Engine, secrets: Mapping[str, Any] | None = None) -> st.App:
    """Return the ASGI application of a study; hospital accounts if `secrets` has them."""
    hospital = oidc.Hospital(engine, secrets["auth"]) if secrets else None
    return st.App(
        str(HERE / "app.py"),
        routes=[
            *signin.routes(engine, hospital),
            *requests.routes(engine),
        ],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(Doors, engine=engine, pages=[screen.path for screen in SCREENS]),
        ],
        lifespan=partial(_warm, engine),
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
async def _warm(engine: Engine, _: st.App) -> AsyncIterator[dict[str, Any]]:
    """Import the rating page, and compute the first figures, before anybody waits for them."""
    import annotate.screens.rate  # noqa: F401 for its effect on sys.modules

    gc.freeze()  # no rater waits while the imported is looked through
    gc.set_threshold(MADE_BETWEEN)  # a closed session's garbage is soon found
    Thread(target=_compute_ahead, args=(engine,), daemon=True).start()
    yield {}
    compute.close()
    close_studies()  # a SIGTERM ends the process right after this, without its exit handlers


def _compute_ahead(engine: Engine) -> None:
    """Compute the first figures of a study that a jury has rated; a study out of reach has none."""
    with suppress(MedjuryError):
        if jurors_with_ratings(OPERATOR, engine):
            compute.prepare(engine)


def _refuse_taken(host: str, port: int) -> None:
    """Raise BadInput if nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BadInput(f"--port {port} on {host}: {error.strerror}; choose another") from error
