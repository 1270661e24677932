"""Statistics of agreement between clinicians, juries and metrics.

It is handed values and returns values: it knows neither web, nor network, nor database.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibration.table import agreement as agreement


def __getattr__(name: str) -> Any:
    """Return what a notebook calls; pandas is imported only then."""
    if name == "agreement":
        from calibration.table import agreement

        return agreement
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
