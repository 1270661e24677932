"""Write the commit into what is built, so that `medjury --version` can say it; hatchling runs this."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "commit.txt"  # medjury/version.py reads it


class CommitHook(BuildHookInterface):
    """Adds `medjury/commit.txt`: git's short hash, or what a source distribution brought along."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the file for the builder; without git and without the file there is none."""
        if version == "editable":
            return  # a checkout asks git
        self.folder = Path(tempfile.mkdtemp())
        brought = Path(self.root, "medjury", NAME)
        commit = brought.read_text("utf-8") if brought.is_file() else self.commit()
        if commit:
            written = self.folder / NAME
            written.write_text(commit, "utf-8")
            build_data["force_include"][str(written)] = f"medjury/{NAME}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take the file away."""
        if version != "editable":
            shutil.rmtree(self.folder)

    def commit(self) -> str:
        """Return git's short hash of the checkout, with ".dirty" where files differ; "" without git."""
        if not Path(self.root, ".git").exists():
            return ""
        call = [
            "git",
            "-C",
            self.root,
            "describe",
            "--always",
            "--exclude=*",
            "--abbrev=10",
            "--dirty=.dirty",
        ]
        try:
            return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""
