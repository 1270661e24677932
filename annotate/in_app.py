"""Where in the app that is done for which a message names a command of the terminal.

Messages are made once, for whoever reads them; who reads them in the app has no terminal. A command that
has no place in the app stays as it is: whoever runs the server is meant.
"""

import re
from collections.abc import Mapping

# A command without `medjury` -> screen, part and control.
PLACES: Mapping[str, str] = {
    "status": "Study",
    "study import": "Study, Import",
    "study plan": "Study, Plan",
    "study protocol set": "Study, Protocol",
    "study rubric add": "Rubrics, Copy to a new version",
    "study lock --reopen": "Study, Record, Reopen",
    "study lock": "Study, Record, Lock the study",
    "study verify": "Study, Record, Check now",
    "study backup": "Study, Files, Make a backup",
    "study points add": "Study, Points",
    "rate people list": "People",
    "rate people add": "People, Add people",
    "rate people renew": "People, Manage, New personal code",
    "rate assign": "Study, Design",
    "rate flags": "Study, Differences",
    "rate ratings": "Study, Import, Ratings made elsewhere",
    "jury run --estimate": "Jury lab, Estimate",
    "jury run": "Jury lab, Run the jury",
    "jury probe": "Jury lab, Probe the jurors",
    "analyse calibrate --freeze": "Monitoring, Freeze a report",
    "analyse calibrate": "Agreement",
    "analyse juries": "Juries",
    "analyse models": "Models",
    "analyse route": "Agreement, Unsafe responses",
    "analyse monitor": "Monitoring",
    "analyse errors": "Agreement, Errors",
    "analyse predict": "Agreement, Predictions",
    "share export": "Study, Files, Pack the study",
    "share rubric": "Rubrics, Export",
}
COMMAND = re.compile(r"`(?:medjury )?((?:study|rate|jury|analyse|share)\s[^`]*|status)`")


def in_app(text: str) -> str:
    """Return a message in which commands are named by their places in the app."""
    return COMMAND.sub(_named, text)


def _named(found: re.Match[str]) -> str:
    """Return the place of the longest command that the words begin with, else the words."""
    command = " ".join(found[1].split())
    known = (name for name in PLACES if f"{command} ".startswith(f"{name} "))
    name = max(known, key=len, default=None)
    return (
        f"\N{LEFT DOUBLE QUOTATION MARK}{PLACES[name]}\N{RIGHT DOUBLE QUOTATION MARK}"
        if name
        else found[0]
    )
