"""`medjury analyse calibrate` with a place to write a report to: what is written, recorded and refused."""

from pathlib import Path

import pytest
from kit.behind import behind_the_record
from kit.studies import AUTHOR, Run, rated
from kit.study_place import StudyIn, fill
from sqlalchemy import Engine
from sqlmodel import select

from data.database import open_study
from data.schema import Attempt, Purpose, Rater, Status
from data.study.ledger import compositions_tried
from medjury import main


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, study_in: StudyIn) -> Engine:
    """Make the study once that the tests of the command have copies of."""
    folder = tmp_path_factory.mktemp("filled")
    engine = open_study(study_in(folder), create=True)
    url = engine.url.render_as_string(hide_password=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["--db", url, *arguments])
        return int(str(ended.value.code or 0)), "", ""

    rated(call, folder)
    return engine


@pytest.fixture
def copied(engine: Engine, filled: Engine) -> None:
    fill(engine, filled)


@pytest.mark.usefixtures("copied")
def test_all_four_reports_are_written_and_name_no_author_and_no_text(
    run: Run, tmp_path: Path
) -> None:
    endings = {"html": "html", "markdown": "md", "csv": "csv", "latex": "tex"}
    places = {name: tmp_path / f"report.{ending}" for name, ending in endings.items()}
    options = [part for to in places.values() for part in ("--table", str(to))]
    code, out, _ = run("analyse", "calibrate", "--reps", "50", *options)
    assert code == 0
    for name, to in places.items():
        text = to.read_text("utf-8")
        assert f"{name} report: {to}" in out.replace("\n", "")
        assert AUTHOR not in text
        assert "Secret" not in text
        assert "gpt" in text
    assert list(tmp_path.glob("*.part")) == []


@pytest.mark.usefixtures("copied")
def test_a_page_tells_which_jurors_another_model_answered_for(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    with behind_the_record(engine) as session:
        gpt = session.exec(select(Rater).where(Rater.handle == "gpt")).one()
        gpt.profile = {"provider": "openai", "model": "gpt-9"}
        call = {"rater": gpt.id, "response": 1, "purpose": Purpose.VERDICT, "number": 1}
        session.add(
            Attempt(**call, status=Status.OK, returned_model="gpt-9-mini", request_sha256="0")
        )
    assert run("analyse", "calibrate", "--reps", "20", "--html", str(tmp_path / "r.html"))[0] == 0
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "answers as gpt-9-mini, another model than it is asked for" in text


@pytest.mark.usefixtures("copied")
def test_every_criterion_on_the_page_stands_in_the_ledger_and_two_scorers_count_once(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    assert run("analyse", "calibrate", "--reps", "50", "--html", str(tmp_path / "r.html"))[0] == 0
    entries = {one.criterion: one for one in compositions_tried(engine)}
    assert set(entries) == {"", "accuracy", "completeness", "clarity"}
    assert len({one.fingerprint for one in entries.values()}) == 1
    text = (tmp_path / "r.html").read_text()
    assert "Here that makes 2 comparisons." in text  # two jurors: nobody chose among the criteria
    assert entries[""].fingerprint in text
    picked = ("--criterion", "accuracy", "--html", str(tmp_path / "picked.html"))
    assert run("analyse", "calibrate", "--reps", "50", *picked)[0] == 0
    # the same two of scorers: a criterion makes no comparison anew
    assert "Here that makes 2 comparisons." in (tmp_path / "picked.html").read_text()
    assert run("study", "verify")[0] == 0
