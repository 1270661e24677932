"""A real LiteLLM proxy, a server that nobody of us wrote, answers from its own mocks."""

import json
from collections import Counter
from pathlib import Path

import pytest
from kit.litellm_proxy import KEY, proxy
from kit.litellm_proxy import litellm as litellm
from kit.litellm_proxy import url_of_proxy as url_of_proxy
from kit.studies import Run, Write
from sqlalchemy import Engine
from sqlmodel import select

from data.database import reading
from data.schema import Attempt, Status
from jury.panel import Panel
from jury.probe import probe
from jury.run import run_panel
from jury.task import Patience

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
HASTY = Patience(tries=2, first_wait=0.01, longest_wait=0.02, in_a_row=2)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_KEY", KEY)


def panel(url: str, *models: str) -> Panel:
    one = {"provider": "openai", "family": "canned", "base_url": url, "api_key_env": "LITELLM_KEY"}
    jurors = [one | {"name": model, "model": model} for model in models]
    return Panel.model_validate({"name": "proxied", "juror": jurors})


def reasons(engine: Engine) -> set[tuple[Status, str]]:
    with reading(engine) as session:
        return {(row.status, row.reason) for row in session.exec(select(Attempt)) if row.number}


def test_three_jurors_behind_the_proxy_rate_everything(
    run: Run, small_study: Engine, url_of_proxy: str, write: Write
) -> None:
    jurors = "".join(
        f'[[juror]]\nname = "{name}"\nprovider = "openai"\nmodel = "{name}"\nfamily = "canned"\n'
        f'base_url = "{url_of_proxy}"\napi_key_env = "LITELLM_KEY"\n'
        for name in ("one", "two", "three")
    )
    path = write("proxied.toml", f'name = "proxied"\n{jurors}')
    code, out, said = run("jury", "run", str(path), "--json", "-")
    assert code == 0, said
    body = json.loads(out)
    assert (body["rated"], body["missing"], body["calls"]) == (12, 0, 12)
    with reading(small_study) as session:
        rows = session.exec(select(Attempt)).all()
        assert Counter(row.returned_model for row in rows) == {"one": 4, "two": 4, "three": 4}
        assert all(row.tokens_in and row.tokens_out for row in rows)


def test_an_answer_in_prose_is_invalid_json_and_no_rating(
    small_study: Engine, url_of_proxy: str
) -> None:
    result = run_panel(small_study, panel(url_of_proxy, "prose"), patience=HASTY)
    assert (result.rated, dict(result.by_status)) == (0, {"invalid_json": 4})
    assert result.calls == 8


def test_a_wrong_key_stops_the_juror_as_auth(
    small_study: Engine, url_of_proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_KEY", "sk-wrong")
    result = run_panel(small_study, panel(url_of_proxy, "one"), concurrency=1)
    assert (dict(result.by_status), result.calls) == ({"auth": 4}, 1)
    assert result.stopped["one"] == "HTTP 401 auth_error: the key was refused"


def test_a_rate_limit_of_the_model_behind_comes_through_as_one(
    small_study: Engine, url_of_proxy: str
) -> None:
    result = run_panel(small_study, panel(url_of_proxy, "limited"), patience=HASTY)
    assert (result.rated, dict(result.by_status)) == (0, {"rate_limited": 4})


def test_a_probe_tells_what_the_proxy_supports(url_of_proxy: str) -> None:
    (row,) = probe(panel(url_of_proxy, "one"))
    # The proxy's fixed answer rates other criteria than the probe asks for, and the probe says so.
    unasked = Status.INVALID_JSON
    assert (row.status, row.schema, row.returned_model) == (unasked, "json_schema", "one")


def test_a_proxy_without_a_database_answers_a_wrong_key_with_400_and_nothing_is_rated(
    small_study: Engine, litellm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(litellm, tmp_path, {"master_key": KEY}) as url:
        right = run_panel(small_study, panel(url, "one"), patience=HASTY)
        monkeypatch.setenv("LITELLM_KEY", "sk-wrong")
        wrong = run_panel(small_study, panel(url, "two"), patience=HASTY)
    assert (right.rated, wrong.rated) == (4, 0)
    assert (Status.REQUEST_FAILED, "HTTP 400 no_db_connection") in reasons(small_study)
