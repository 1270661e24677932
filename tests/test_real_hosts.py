"""What real hosts send is read, or refused with the reason that they give."""

import json
from collections.abc import Callable
from pathlib import Path

from kit.jurors import Do, Stub
from kit.jury_runs import attempts, fill, many, panel_at, run
from kit.real_hosts import HOSTS, said
from sqlalchemy import Engine
from sqlmodel import select

from data.database import reading
from data.schema import Attempt, Rater

Write = Callable[[str, str], Path]


def test_some_thirty_real_hosts_in_one_panel_end_as_they_should(
    engine: Engine, write: Write
) -> None:
    fill(engine, write, ("i1", "The patient walked. " * 2000))
    with Stub(lambda seen: HOSTS[seen.model].answer(seen)) as stub:
        run(engine, panel_at(stub, *HOSTS))
    with reading(engine) as session:
        names = {rater.id: rater.handle for rater in session.exec(select(Rater))}
    last: dict[str, Attempt] = {names[row.rater]: row for row in attempts(engine)}
    for name, host in HOSTS.items():
        row = last[name]
        assert (name, row.status, row.number) == (name, host.status, host.calls)
        assert host.reason in row.reason, name


def test_a_refusal_keeps_what_the_host_said(engine: Engine, write: Write) -> None:
    many(engine, write, 1)
    filtered = {"self_harm": {"filtered": True, "severity": "high"}}
    body = {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}
    body["choices"][0]["content_filter_results"] = filtered
    scripts = {
        "words": said("Sorry.", refusal="I cannot help with that."),
        "azure": lambda _: Do(body=json.dumps(body)),
    }
    with Stub(lambda seen: scripts[seen.model](seen)) as stub:
        run(engine, panel_at(stub, *scripts))
    azure, words = sorted(attempts(engine), key=lambda row: str(row.status))
    assert "I cannot help with that." in words.raw
    assert "self_harm" in azure.raw
