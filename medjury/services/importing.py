"""What all ways of bringing files into a study share: the rubric of a benchmark that is new."""

from collections.abc import Callable

from data.importers.readers import Reader
from data.rubric import Rubric, read_rubric
from data.rubrics import known_as

GENERIC = "generic"
OTHER_RUBRIC = (
    "{} already has ratings on another rubric: these are kept apart and do not count "
    "in calibrate, which reads the benchmark's own rubric"
)


def rubrics_of_reader(reader: Reader | None) -> Callable[[str], Rubric]:
    """Return what gives a new benchmark's rubric: the tool's own, or the one of its name."""
    own = reader.rubric if reader else None
    return rubric_for if own is None else lambda _: own


def rubric_for(benchmark: str) -> Rubric:
    """Return the shipped rubric of that benchmark, by HELM's or the paper's name, or the generic one."""
    bare = {_bare(name): rubric for name, rubric in known_as().items()}
    return read_rubric(bare.get(_bare(benchmark), GENERIC))


def _bare(name: str) -> str:
    """Return a name without what people spell differently: case, hyphens, underscores, blanks."""
    return "".join(sign for sign in name.lower() if sign.isalnum())
