"""`medjury rubric`: the group's commands, each of its own file."""

from medjury.cli import rubric_export
from medjury.cli.rubrics import rubric

rubric.command("export")(rubric_export.export)
