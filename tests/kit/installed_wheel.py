"""The wheel: built from this checkout, unpacked as pip would, and folders that must not be imported."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = ("annotate", "calibration", "data", "jury")


def build(folder: Path) -> Path:
    """Build the wheel into a folder, with the build tool that is installed here."""
    call = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(call, cwd=ROOT, check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpack(wheel: Path, folder: Path) -> Path:
    """Unpack a wheel of Python alone, which is all that installing it does to site-packages."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def hostile_folder(folder: Path) -> Path:
    """Make a folder to work in with packages of our names, each of which ends who imports it."""
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"raise SystemExit('imported {name} of here')")
    return folder


def python(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder that is first on its search path, on what is unpacked in `site`."""
    place = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(site)])}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
