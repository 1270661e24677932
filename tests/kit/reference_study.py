"""A study with references, and jurors on the loopback who are asked about them."""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine
from sqlmodel import select

from data.database import reading
from data.schema import Attempt, Purpose
from jury.panel import Panel
from jury.references import check_references
from jury.run_result import RunResult
from kit import jury_runs
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import HASTY, capped
from kit.studies import HEAD, Write, import_file

YES = json.dumps({"absent": True, "facts": ["aspirin 81 mg"]})

NO = json.dumps({"absent": False, "facts": []})


def fill(engine: Engine, write: Write, count: int = 4) -> Engine:
    """Return a study of `count` checkable instances, two responses each, and two that are not."""
    lines = [
        f"i{n},visits,Context {n}.,Write.,Reference {n}.,r{n}{who},{who},Said {n} by {who}."
        for n in range(count)
        for who in ("x", "y")
    ]
    lines += [
        "bare,visits,Context.,Write.,,rb,x,Said.",
        "open,visits,,Write.,Reference.,ro,x,Said.",
    ]
    import_file(engine, write("many.csv", "\n".join([HEAD, *lines])))
    return engine


def panel_at(stub: Stub, *names: str, **settings: Any) -> Panel:
    """Return a panel of three jurors at the stub, or of those named."""
    return jury_runs.panel_at(stub, *(names or ("a", "b", "c")), **settings)


def check(engine: Engine, panel: Panel, **options: Any) -> RunResult:
    result = check_references(engine, panel, **{"patience": HASTY} | capped(options))
    assert result.rated + result.missing == result.responses * result.jurors
    assert sum(result.by_status.values()) == result.rated + result.missing
    return result


def rows(engine: Engine) -> list[Attempt]:
    checks = select(Attempt).where(Attempt.purpose == Purpose.REFERENCE).order_by(Attempt.id)
    with reading(engine) as session:
        found = list(session.exec(checks))
        session.expunge_all()
    return found


def absent_by(**instances: str) -> Callable[[Seen], Do]:
    """Return a script in which the named jurors say "absent" of an instance, all others not."""

    def script(seen: Seen) -> Do:
        for name, jurors in instances.items():
            if f"Reference {name[1:]}." in seen.prompt and seen.model in jurors:
                return Do(YES)
        return Do(NO)

    return script
