"""Long texts reach a page once: what it says that it holds is left out, and of nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest
from kit.rating_study import build, codes_of, message, person_of, row, rubric, session_of
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.testclient import TestClient

from annotate.rating.requests import PATH, routes
from annotate.rating.room import LONG
from data import queries
from data.store.study import set_setting

SOURCE = "The discharge letter. " * (LONG // 20)
RESPONSES = ["Short note.", "Another note.", "A long note. " * (LONG // 10)]


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    """Make a study of three responses to one long source, and sign in who rates it."""
    one_case = {"instance_id": "case", "context": SOURCE}
    rows = [row(n, text, **one_case) for n, text in enumerate(RESPONSES, 1)]
    code = build(engine, rows, ["dr-a"], rubric())["dr-a"]
    headers = {"Cookie": session_of(engine, person_of(engine, code))}
    with TestClient(Starlette(routes=routes(engine)), headers=headers) as client:
        yield client


def texts(answer: Any) -> dict[str, dict[str, str]]:
    """Return the texts that an answer shows, by their names."""
    return {text["name"]: text for text in answer.json()["shown"]["texts"]}


def keys(shown: dict[str, dict[str, str]]) -> list[str]:
    """Return the keys of the texts that a page may hold."""
    return [text["key"] for text in shown.values() if "key" in text]


def test_a_page_that_holds_a_source_is_sent_the_next_response_alone(
    engine: Engine, client: TestClient
) -> None:
    first = client.get(PATH)
    assert SOURCE in texts(first)["source"]["html"]
    (key,) = keys(texts(first))
    mine = codes_of(engine, "dr-a")[0]
    answer = client.post(PATH, json=message(mine, submit=True, holds=[key]))
    source, response = texts(answer)["source"], texts(answer)["response"]
    assert source == {"name": "source", "label": "Source", "key": key}
    assert "Another note." in response["html"]
    assert len(answer.text) < len(SOURCE)
    task = queries.task(engine, 1, mine)
    assert task is not None
    assert task.ended
    assert "holds" not in task.draft


@pytest.mark.parametrize("holds", [None, [], "x", 3, [["x"]], [None, 3], ["no-such-key"], {"a": 1}])
def test_a_page_that_holds_nothing_is_sent_everything(
    engine: Engine, client: TestClient, holds: Any
) -> None:
    mine = codes_of(engine, "dr-a")[0]
    answer = client.post(PATH, json=message(mine, submit=True, holds=holds))
    assert SOURCE in texts(answer)["source"]["html"]


def test_a_response_is_not_sent_again_with_its_reference(
    engine: Engine, client: TestClient
) -> None:
    set_setting(engine, "reference", "after_rating")
    first, second, third = codes_of(engine, "dr-a")
    client.post(PATH, json=message(first, submit=True))
    client.post(PATH, json=message(first, 2, go="next"))
    client.post(PATH, json=message(second, submit=True))
    shown = texts(client.post(PATH, json=message(second, 2, go="next")))
    assert shown["response"]["html"] == f'<div class="mj-text">{RESPONSES[2]}</div>'
    answer = client.post(PATH, json=message(third, submit=True, holds=keys(shown)))
    assert len(answer.text) < LONG


def test_short_texts_have_no_key(engine: Engine, client: TestClient) -> None:
    assert list(texts(client.get(PATH))["response"]) == ["name", "label", "html"]
