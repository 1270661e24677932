"""Rows in batches, so that a file of any length takes the memory of one batch."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
BATCH = 400


def batches(rows: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Yield lists of at most `size` rows, in order."""
    rest = iter(rows)
    while batch := list(islice(rest, size)):
        yield batch
