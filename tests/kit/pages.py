"""Pages drawn in the tests' own process."""

import re
from textwrap import indent

from streamlit.testing.v1 import AppTest

from annotate import compute


def drawn_page(script: str, seconds: float = 120) -> AppTest:
    """Return a page that a script draws; processes that compute for it pass the script by."""
    guarded = 'if __name__ == "__main__":\n' + indent(script, "    ")
    return AppTest.from_string(guarded, default_timeout=seconds)


def read(page: AppTest) -> str:
    """Return all that a page says, as somebody reads it: texts, alerts, and tables line by line."""
    lines = []
    for part in page.main:
        match part.type:
            case "dataframe":
                lines.append(part.value.to_csv(index=False, sep="|"))
            case "html":
                lines.append(part.proto.body)
            case "markdown" | "caption" | "header" | "success" | "info" | "warning" | "error":
                lines.append(re.sub(r"\\([^\w\s])", r"\1", part.value))
            case _:
                lines.append(str(part.proto))
    return "\n".join(lines)


def end_computing() -> None:
    """End the processes that computed for the pages; the next page starts others."""
    for lane in compute._lanes.values():
        lane.end()
