"""`medjury jury`: the group's commands, each of its own file."""

from medjury.cli import jury_references
from medjury.cli.jury import jury

jury.command("references")(jury_references.check)
