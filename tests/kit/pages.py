"""Pages drawn in the tests' own process."""

import re
from textwrap import indent

from streamlit.testing.v1 import AppTest

from annotate import compute
from data.person import Person
from data.schema import Role

CARLA, RITA = Person(7, "Carla", Role.COORDINATOR), Person(8, "Rita", Role.RESEARCHER)
CLINICIAN = Person(9, "dr-a", Role.CLINICIAN, 1)


def drawn_page(script: str, seconds: float = 120) -> AppTest:
    """Return a page that a script draws; processes that compute for it pass the script by."""
    guarded = 'if __name__ == "__main__":\n' + indent(script, "    ")
    return AppTest.from_string(guarded, default_timeout=seconds)


SCREEN = """
from annotate.navigation import study
from annotate.screens.{place} import show
from data.person import Person
show(study(), Person({who.id}, {who.name!r}, {role!r}, {who.rater}))
"""


def screen_of(place: str, who: Person = CARLA, **address: str) -> AppTest:
    """Return the screen of a module of `annotate.screens` for somebody, not yet run."""
    page = drawn_page(SCREEN.format(place=place, who=who, role=who.role.value))
    for name, value in address.items():
        page.query_params[name] = value
    return page


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


def said(page: AppTest) -> str:
    """Run a page, which must draw without an error, and return all that it says."""
    page.run()
    assert not page.exception, [error.value for error in page.exception]
    return read(page)


def end_computing() -> None:
    """End the processes that computed for the pages; the next page starts others."""
    for lane in compute._lanes.values():
        lane.end()
