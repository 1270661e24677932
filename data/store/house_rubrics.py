"""A house's own wording of a rubric, stored from the app; each act asks for the role."""

from sqlalchemy import Engine

from data.errors import BadInput
from data.person import Person, only
from data.queries.rubric_evidence import study_rubrics
from data.rubric import Rubric
from data.schema import Role
from data.store.rubrics import add_rubric


@only(Role.COORDINATOR)
def keep_version(by: Person, engine: Engine, rubric: Rubric) -> str:
    """Store a rubric as `medjury rubric add` does; return its SHA-256.

    Raises
    ------
    BadInput
        If the study has exactly this rubric, or other words under the same name and version:
        nobody could tell the two apart by name.
    NotAllowed
        If the study is locked.
    """
    for one in study_rubrics(by, engine):
        if one.rubric.sha256 == rubric.sha256:
            raise BadInput("nothing is changed: the study has a rubric of exactly these words")
        if (one.rubric.name, one.rubric.version) == (rubric.name, rubric.version):
            raise BadInput(
                f"version {rubric.version}: the study has other words under this version of "
                f"{rubric.name}; give another version"
            )
    return add_rubric(engine, rubric)
