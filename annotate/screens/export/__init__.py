"""Export: the validated rubric prompt with its evidence, report and checklist, files, and the record."""

from functools import partial

from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.export import files, record, report, rubric
from data.person import Person
from data.study import steering

ABOUT = "What others get of this study, and what shows that it was not changed behind its record."
SIMULATED = "Some raters of this study are simulated: nothing that is handed over is evidence."
PARTS = {
    "Rubric prompt": rubric.show,
    "Report": report.show,
    "Files": files.show,
    "Record": record.show,
}


def show(engine: Engine, person: Person) -> None:
    """Show the parts; each is drawn when it is opened."""
    frame.begin(person, "Export", ABOUT, "study.css")
    frame.say_simulated(steering.standing(person, engine), SIMULATED)
    frame.show_tabs({name: partial(draw, engine, person) for name, draw in PARTS.items()})
