"""Reading a study as tables for the statistics; pandas is loaded only here and only when asked."""

from typing import TYPE_CHECKING

from sqlalchemy import Engine, text

from data.database import reading

if TYPE_CHECKING:
    import pandas as pd

RATINGS = """
SELECT r.response_id, b.name || '/' || i.instance_id AS instance_id, b.name AS benchmark,
       p.handle AS rater, p.kind, g.criterion, g.score, g.pass_, g.replicate
FROM rating g
JOIN response r ON r.id = g.response
JOIN instance i ON i.id = r.instance
JOIN benchmark b ON b.name = i.benchmark
JOIN rater p ON p.id = g.rater
WHERE (p.kind = 'metric' OR g.rubric_sha256 = b.rubric_sha256)
  AND g.id IN (
    SELECT MAX(id) FROM rating
    GROUP BY response, rater, criterion, rubric_sha256, pass_, replicate
  )
  AND r.id NOT IN (SELECT response FROM expert)
ORDER BY g.id
"""
RESPONSES = """
SELECT r.response_id, b.name || '/' || i.instance_id AS instance_id, b.name AS benchmark
FROM response r
JOIN instance i ON i.id = r.instance
JOIN benchmark b ON b.name = i.benchmark
WHERE r.id NOT IN (SELECT response FROM expert)
ORDER BY r.id
"""
SUBGROUPS = """
SELECT r.response_id, s.name, s.value
FROM subgroup s
JOIN response r ON r.id = s.response
WHERE r.id NOT IN (SELECT response FROM expert)
ORDER BY s.id
"""
SPECIALTIES = """
SELECT handle, specialty FROM rater WHERE kind = 'clinician' AND specialty <> '' ORDER BY handle
"""


def ratings_frame(engine: Engine) -> "pd.DataFrame":
    """Return the ratings that count, a row a score.

    Returns
    -------
    Columns response_id, instance_id (benchmark/instance, unique in the study), benchmark,
    rater, kind, criterion, score, pass_ (1 for a hidden repeat), replicate. Only the newest
    of several scores by one rater for one thing; clinicians' and jurors' only where they
    were made on the benchmark's present rubric. No author, and nothing of training responses.
    """
    return _frame(engine, RATINGS)


def responses_frame(engine: Engine) -> "pd.DataFrame":
    """Return all but training responses: response_id, instance_id, benchmark. No author."""
    return _frame(engine, RESPONSES)


def subgroups(engine: Engine) -> dict[str, dict[str, str]]:
    """Return name -> response_id -> value of the groups that responses are in."""
    found: dict[str, dict[str, str]] = {}
    with reading(engine) as session:
        for response, name, value in session.connection().execute(text(SUBGROUPS)):
            found.setdefault(name, {})[response] = value
    return found


def specialties(engine: Engine) -> dict[str, str]:
    """Return clinician -> specialty, of those who have said one."""
    with reading(engine) as session:
        return {
            str(name): str(own) for name, own in session.connection().execute(text(SPECIALTIES))
        }


def _frame(engine: Engine, query: str) -> "pd.DataFrame":
    """Run one query and return its rows as a table."""
    import pandas as pd

    with reading(engine) as session:
        found = session.connection().execute(text(query))
        return pd.DataFrame(found.fetchall(), columns=list(found.keys()))
