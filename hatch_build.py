"""Write the commit into what is built, so that `medjury --version` can say it; hatchling runs this."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DESCRIBE = ("describe", "--always", "--exclude=*", "--abbrev=10", "--dirty=.dirty")


class CommitHook(BuildHookInterface):
    """Adds `medjury/commit.txt`, which `medjury/version.py` reads; a source distribution has it."""

    folder = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the file for the builder, but for a checkout, which asks git itself."""
        if version == "editable" or not Path(self.root, ".git").exists():
            return
        call = ["git", "-C", self.root, *DESCRIBE]
        commit = subprocess.run(call, capture_output=True, text=True, check=False).stdout.strip()
        if commit:
            self.folder = tempfile.mkdtemp()
            written = Path(self.folder, "commit.txt")
            written.write_text(commit, "utf-8")
            build_data["force_include"][str(written)] = f"medjury/{written.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take the file away."""
        if self.folder:
            shutil.rmtree(self.folder)
