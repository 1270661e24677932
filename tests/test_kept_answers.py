"""An answer that a screen keeps is shown for the very state of the study it was computed from, or never."""

import pickle
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from kit.changed_cells import TABLES, attacked, change, key_of, rows_of
from kit.sealed_study import fill_all
from kit.studies import AUTHOR, Run, rated
from kit.study_place import StudyIn, only_reading
from sqlalchemy import Engine, delete, event, func, select, text
from sqlmodel import Session

from annotate import kept, worker
from annotate.calibrations import home
from annotate.results import AgreementQuestion, HomeFigures
from calibration.decision import NOTHING_RATED
from calibration.values import AnalysisOptions
from data.database import open_study
from data.person import OPERATOR
from data.queries.rating_columns import BY_CLINICIANS
from data.queries.record import verify
from data.queries.study_state import state_in, study_state
from data.rubric import read_rubric
from data.schema import Role
from data.schema.kept import ANSWERS
from data.store import add_people
from data.store.kept_answers import MOST, MOST_BYTES, keep_answer
from data.store.steering import keep_version, lock_study, reopen_study
from data.store.study import set_setting
from medjury.services.calibrate import CalibrationQuestion, calibrate

HOME, AGREEMENT = kept.FUNCTIONS
ASKED = AgreementQuestion(AnalysisOptions(reps=20))
NUMBERS = {"estimate": 0.5, "low": 0.4, "high": 0.6, "p": 0.01, "margin": 0.1}  # no NaN
ANSWER = HomeFigures(replace(NOTHING_RATED, **NUMBERS))
JURORS = ("gpt", "llama")
WAIT_SECONDS = 120
# What figures rest on, changed in one cell behind everybody's back.
MOVED = {
    "rating": {"id", "response", "rater", "criterion", "score", "rubric_sha256", "pass_", "replicate"},
    "superseded": {"rating"},
    "rater": {"id", "kind", "handle", "family", "pseudonym", "specialty", "simulated", "profile"},
    "benchmark": {"name", "category", "subcategory", "rubric_sha256"},
    "rubric": {"sha256", "name", "version", "body"},
    "instance": {"id", "benchmark", "instance_id"},
    "response": {"id", "response_id", "instance"},
    "subgroup": {"response", "name", "value"},
    "expert": {"id", "response"},
    "setting": {"key", "value"},
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, study_in: StudyIn) -> Iterator[Engine]:
    """Make a study that has rows in every table; each test rolls back what it does to it."""
    engine = open_study(study_in(tmp_path_factory.mktemp("made")), create=True)
    fill_all(engine)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("table", MOVED)
def test_one_cell_that_figures_rest_on_moves_the_state(made: Engine, table: str) -> None:
    still = set()
    for column in MOVED[table]:
        with attacked(made) as session:
            before = state_in(session)
            row = next(iter(rows_of(session, TABLES[table])))
            change(session, TABLES[table], column, row)
            session.flush()
            still |= {column} if state_in(session) == before else set()
    assert still == set()


@pytest.mark.parametrize("table", ["rating", "superseded", "rater", "benchmark", "expert"])
def test_any_row_taken_out_moves_the_state(made: Engine, table: str) -> None:
    key = key_of(TABLES[table])
    with Session(made) as session:
        rows = rows_of(session, TABLES[table])
        if table == "rating" and made.dialect.name == "postgresql":  # docs/scale.md has the rest
            by_clinicians = {*session.scalars(BY_CLINICIANS)}
            rows = [row for row in rows if row["response"] in by_clinicians]
    assert rows
    for row in rows:
        with attacked(made) as session:
            before = state_in(session)
            session.execute(delete(TABLES[table]).where(key == row[key.name]))
            assert state_in(session) != before, dict(row)


def test_two_scores_that_change_places_move_the_state(made: Engine) -> None:
    rating = TABLES["rating"]
    with attacked(made) as session:
        before = state_in(session)
        rows = rows_of(session, rating)
        one = rows[0]
        other = next(row for row in rows if row["score"] != one["score"])
        for row, score in ((one, other["score"]), (other, one["score"])):
            session.execute(rating.update().where(rating.c.id == row["id"]).values(score=score))
        assert state_in(session) != before


def scored(folder: Path, kind: str, rater: str, response: str) -> str:
    """Write a file of one rating and return its path."""
    path = folder / "one.csv"
    scores = (
        f"response_id,rater,kind,accuracy,completeness,clarity\n{response},{rater},{kind},1,1,1"
    )
    path.write_text(scores)
    return str(path)


Write = Callable[[Engine, Run, Path], object]
WRITES: dict[str, Write] = {
    "a clinician rates": lambda _, run, here: run("ratings", scored(here, "clinician", "dr-a", "r1")),
    "a new clinician rates": lambda _, run, here: run("ratings", scored(here, "clinician", "dr-n", "r1")),
    "a juror rates": lambda _, run, here: run("ratings", scored(here, "juror", "gpt", "r1")),
    "more responses": lambda _, run, here: rated(run, here, JURORS, n=2, first=90),
    "another benchmark": lambda _, run, here: rated(run, here, JURORS, "notes", n=2, first=80),
    "a metric": lambda _, run, __: run("measure", "rouge-l"),
    "a protocol": lambda _, run, __: run("study", "protocol", "set", "--margin", "0.1"),
    "a setting": lambda study, _, __: set_setting(study, "pause_minutes", "30"),
    "a lock": lambda study, _, __: lock_study(OPERATOR, study),
    "a rubric": lambda study, _, __: keep_version(
        OPERATOR, study, replace_version(read_rubric("generic"))
    ),
    "people": lambda study, _, __: add_people(OPERATOR, study, ["Rita"], Role.RESEARCHER),
    "a frozen report": lambda _, run, __: run("calibrate", "--reps", "20", "--freeze"),
    "an assignment": lambda _, run, __: run("assign", "--raters", "2"),
}  # fmt: skip


def replace_version(rubric):  # type: ignore[no-untyped-def]  # of pydantic's own
    return rubric.model_copy(update={"version": "2"})


@pytest.fixture
def study(engine: Engine, run: Run, tmp_path: Path) -> Engine:
    """Return a study that clinicians and jurors rated."""
    rated(run, tmp_path, JURORS, n=8)
    return engine


def found(study: Engine, question: object = ASKED, function: str = HOME) -> kept.Found:
    """Return what is found for a question."""
    now = kept.find(study, function, question)
    assert now is not None
    return now


@pytest.mark.parametrize("write", WRITES)
def test_after_any_write_nothing_that_was_kept_is_found_on_this_server_or_another(
    study: Engine, run: Run, tmp_path: Path, write: str
) -> None:
    other = open_study(study.url)  # of another server on the same study
    kept.keep(study, found(study), ANSWER)
    assert found(other).answer == ANSWER

    WRITES[write](study, run, tmp_path)

    assert (found(study).at, found(other).at) == (None, None)
    other.dispose()


def test_what_is_computed_while_somebody_writes_is_not_kept(study: Engine) -> None:
    before = found(study)
    set_setting(study, "pause_minutes", "30")
    kept.keep(study, before, ANSWER)
    set_setting(study, "pause_minutes", "0")
    assert found(study).at is None
    with study.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(ANSWERS)) == 0


def test_a_lock_that_is_taken_back_brings_back_no_answer(study: Engine) -> None:
    kept.keep(study, found(study), ANSWER)
    lock_study(OPERATOR, study)
    reopen_study(OPERATOR, study, "a mistake")
    assert found(study).at is None


def test_looking_at_figures_is_no_write(study: Engine, run: Run) -> None:
    kept.keep(study, found(study), ANSWER)
    assert run("calibrate", "--reps", "20")[0] == 0
    assert found(study).answer == ANSWER


def test_another_question_screen_or_medjury_finds_nothing(
    study: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keep(study, found(study), ANSWER)
    other = replace(ASKED, options=AnalysisOptions(reps=21))
    assert found(study, other).at is None
    assert found(study, function=AGREEMENT).at is None
    monkeypatch.setattr(kept, "SOFTWARE", ())  # as another set of libraries has it
    kept.running.cache_clear()
    assert found(study).at is None
    kept.running.cache_clear()


def test_code_that_was_replaced_on_the_disk_since_keeps_nothing(
    study: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = found(study)
    monkeypatch.setattr(kept, "SOFTWARE", ())
    kept.keep(study, before, ANSWER)
    monkeypatch.undo()
    assert found(study).at is None


def test_an_answer_comes_back_as_it_was_computed_without_the_process(study: Engine) -> None:
    for function in kept.FUNCTIONS:
        first = worker.ask(OPERATOR, study, function, ASKED)
        computed = first.result(WAIT_SECONDS)
        worker._keeping.submit(int).result(WAIT_SECONDS)
        worker.end()
        worker._answers.clear()  # as in a server that has just started

        again = worker.ask(OPERATOR, study, function, ASKED)

        assert repr(again.result(WAIT_SECONDS)) == repr(computed)
        assert pickle.dumps(again.result()) == pickle.dumps(kept.unpacked(kept.packed(computed)))
        assert not worker._worker.runs
        assert again is not first
        at, before = worker.computed_at(again), worker.computed_at(first)
        assert at is not None
        assert before is not None
        assert abs((at - before).total_seconds()) < WAIT_SECONDS


def test_what_the_process_knows_of_a_state_it_does_not_say_of_another(study: Engine) -> None:
    before = home(study, ASKED)
    with study.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE rating SET score = 6 - score WHERE rater = 4"))
    assert home(study, ASKED) != before


def test_no_text_and_no_author_is_kept(study: Engine, run: Run) -> None:
    assert run("study", "unblind", "--reason", "test")[0] in (0, 2)
    for function in kept.FUNCTIONS:
        worker.ask(OPERATOR, study, function, ASKED).result(WAIT_SECONDS)
    worker._keeping.submit(int).result(WAIT_SECONDS)
    with study.connect() as connection:
        bodies = [zlib.decompress(body) for body in connection.scalars(select(ANSWERS.c.body))]
    assert len(bodies) == len(kept.FUNCTIONS)
    for body in bodies:
        assert not [word for word in (AUTHOR, "Secret", "Write.", "Word.") if word.encode() in body]


def test_the_table_stays_small(study: Engine) -> None:
    for reps in range(MOST + 9):
        question = replace(ASKED, options=AnalysisOptions(reps=reps + 20))
        kept.keep(study, found(study, question), ANSWER)
    assert not keep_answer(study, "q", study_state(study), bytes(MOST_BYTES + 1), kept.now())
    with study.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(ANSWERS)) == MOST
    assert found(study, question).answer == ANSWER
    set_setting(study, "pause_minutes", "30")
    kept.keep(study, found(study), ANSWER)
    with study.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(ANSWERS)) == 1


def test_two_servers_that_keep_at_once_disturb_nobody(study: Engine) -> None:
    before, others = found(study), [open_study(study.url) for _ in range(4)]
    with ThreadPoolExecutor(4) as servers:
        list(servers.map(lambda other: kept.keep(other, before, ANSWER), others))
    assert found(study).answer == ANSWER
    for other in others:
        other.dispose()


def test_a_study_that_can_only_be_read_is_answered_and_keeps_nothing(study: Engine) -> None:
    study.dispose()
    event.listen(study, "connect", only_reading)
    kept.keep(study, found(study), ANSWER)
    assert found(study).at is None
    event.remove(study, "connect", only_reading)
    study.dispose()


def test_the_record_and_its_check_know_nothing_of_it(study: Engine) -> None:
    before = verify(study)
    kept.keep(study, found(study), ANSWER)
    after = verify(study)
    assert (after.findings, after.head, after.rows) == (before.findings, before.head, before.rows)
    assert ANSWERS.name not in TABLES


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no zlib",
        zlib.compress(b"no pickle"),
        zlib.compress(pickle.dumps(ANSWER))[:-6],
        zlib.compress(pickle.dumps(print)),
        zlib.compress(pickle.dumps(Path("/"))),
        zlib.compress(pickle.dumps(home)),
        zlib.compress(pickle.dumps(CalibrationQuestion())),
        zlib.compress(b"ccalibration.table\nnp.os.system\n(S'true'\ntR."),
        zlib.compress(b"cos\nsystem\n(S'true'\ntR."),
    ],
)
def test_what_somebody_else_put_there_is_not_run_and_not_shown(study: Engine, body: bytes) -> None:
    before = found(study)
    keep_answer(study, before.question, before.state, body, kept.now())
    assert found(study).at is None


def test_figures_of_the_page_are_those_of_the_command(study: Engine) -> None:
    figures = worker.ask(OPERATOR, study, HOME, ASKED).result(WAIT_SECONDS)
    command = calibrate(study, CalibrationQuestion(ASKED.options))
    assert repr(figures.decision) == repr(command.decision)
