"""What tests are made with: studies, servers, browsers, clinicians, jurors, and texts to mislead them.

A module is named for what it makes. Test modules import from here and never from each other;
fixtures that many of them share are in `conftest.py`, their data in `fixtures/`.
"""

from pkgutil import iter_modules

import pytest

# What a helper asserts is told as what a test asserts is.
pytest.register_assert_rewrite(*(f"{__name__}.{one.name}" for one in iter_modules(__path__)))
