"""One line of JSON as a row: its keys once each, its texts such as a database can hold."""

import json
from typing import Any


class NotARow(ValueError):
    """A line that is no row, with the reason; none of its text is quoted."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object as it stands: a key may be there twice, with two values."""


def pairs_of(line: str) -> Pairs:
    """Return the keys and values of a JSON object in their order.

    Raises
    ------
    NotARow
        If it is no object, gives a key twice, or holds what no database can.
    """
    try:
        found = json.loads(line, strict=False, object_pairs_hook=Pairs)
        if "\\u" in line:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise NotARow(f"is not JSON ({error.msg} at {error.colno})") from error
    except UnicodeEncodeError as error:
        raise NotARow("holds half a surrogate pair, which is no text") from error
    except RecursionError as error:
        raise NotARow("is nested too deep") from error
    except ValueError as error:  # of int(), which takes no number of any length
        raise NotARow("has a number that is too long") from error
    if not isinstance(found, Pairs):
        raise NotARow(f"is {type(found).__name__}, not a JSON object")
    if len(found) > len({key for key, _ in found}):
        raise NotARow("gives a value twice, under the same key")
    return found
