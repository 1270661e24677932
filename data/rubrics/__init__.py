"""The rubrics that ship with medjury: a folder each, with `rubric.toml` and `prompt.txt`."""

from pathlib import Path

from data.errors import Unknown

FOLDER = Path(__file__).parent
# What the MedHELM paper calls a benchmark, where that is not HELM's own name otherwise spelt.
IN_THE_PAPER = {
    "MTSamples": "mtsamples_replicate",
    "NoteExtract": "chw_care_plan",
    "PatientInstruct": "starr_patient_instructions",
    "MIMIC-IV-BHC": "mimic_bhc",
}


def shipped() -> list[str]:
    """Return the names of the rubrics that ship with medjury."""
    return sorted(path.parent.name for path in FOLDER.glob("*/rubric.toml"))


def known_as() -> dict[str, str]:
    """Return the shipped rubric of each name that a benchmark goes by, HELM's and the paper's."""
    return {name: name for name in shipped()} | IN_THE_PAPER


def folder_of(name_or_folder: str | Path) -> Path:
    """Return the folder that is meant: a shipped name wins over a folder of the same name.

    Raises
    ------
    Unknown
        If there is neither such a folder nor such a name; the message lists the names.
    """
    if str(name_or_folder) in shipped():
        return FOLDER / str(name_or_folder)
    folder = Path(name_or_folder)
    if folder.is_dir():
        return folder
    raise Unknown(
        f"rubric {str(name_or_folder)!r}: neither a folder nor one of " + ", ".join(shipped())
    )
