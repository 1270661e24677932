"""Which medjury this is: its version and the commit it was made of."""

import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

BUILT = Path(__file__).with_name("commit.txt")  # hatch_build.py writes it into what is built
CHECKOUT = Path(__file__).parents[1]
DESCRIBE = ("describe", "--always", "--exclude=*", "--abbrev=10", "--dirty=.dirty")
SECONDS = 5


def version() -> str:
    """Return the version and, after "+g", the commit, such as "0.1.0+g90f9e59abc".

    It ends in ".dirty" where files of the checkout differ from the commit. Where there is neither
    a note of the build nor git, it is the version alone.
    """
    commit = BUILT.read_text("utf-8").strip() if BUILT.is_file() else _commit_of_checkout()
    return f"{_number()}+g{commit}" if commit else _number()


def _number() -> str:
    try:
        return installed_version("medjury")
    except PackageNotFoundError:  # run from a checkout that was not installed
        project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
        return str(project["version"])


def _commit_of_checkout() -> str:
    """Return what git says of the folder that holds us, "" where it is no checkout of its own."""
    if not (CHECKOUT / ".git").exists():  # of a folder further up, such as one with a .venv in it
        return ""
    call = ["git", "-C", str(CHECKOUT), *DESCRIBE]
    try:
        described = subprocess.run(  # noqa: S603 our own words
            call, capture_output=True, text=True, check=True, timeout=SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return described.stdout.strip()
