"""One browser for the journeys of a process; each person in it has a context of their own."""

import pytest
from kit.browsers import chromium


@pytest.fixture(scope="package")
def browser():
    with chromium() as browser:
        yield browser
