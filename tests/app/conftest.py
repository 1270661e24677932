"""Screens of the test's study, drawn in the tests' own process."""

import pytest
from kit.browsers import screen_of

from annotate.navigation import study as served


@pytest.fixture
def serve(engine, monkeypatch):
    """Let pages that are drawn be of the test's study; what computes for one computes for the next, too."""
    monkeypatch.setenv("MEDJURY_DB", engine.url.render_as_string(hide_password=False))
    yield engine
    served().dispose()


@pytest.fixture
def screen(serve):
    """Return what opens the screen of a module for somebody, at an address; it is not yet run."""
    return screen_of
