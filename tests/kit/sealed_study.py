"""A study with rows in every table, made by the store's own acts, as one that is lived in has them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.card import Marked, Reply
from data.database import open_study
from data.description import Description
from data.importers.ratings import ExpertRow, PointRow
from data.importers.responses import PairRow
from data.importers.rows import JurorRecord, Origin, RatingRow, ResponseRow
from data.person import OPERATOR
from data.points import Point, points_rubric
from data.rubric import read_rubric
from data.schema import (
    Assignment,
    Attempt,
    BatchState,
    Intent,
    JuryBatch,
    Kind,
    Purpose,
    Rater,
    Remark,
    Response,
    Role,
    Setting,
    State,
    Status,
)
from data.study import assignments, people
from data.study.access import PSEUDONYM_KEY, SESSION_KEY, Way, enter, study_key
from data.study.calls import BatchRequest, Step, add_jurors, carry_over, prepare, record_steps
from data.study.improving import begin_improvement, end_improvement, keep_learned, open_test
from data.study.ledger import Evaluation, freeze, record_evaluations
from data.study.masks import MaskedText, mask_responses
from data.study.pairs import import_pairs
from data.study.points import add_points
from data.study.ratings import FormState, import_ratings, save_draft, submit
from data.study.responses import import_responses
from data.study.reviews import change_tags, keep_note
from data.study.room import Exercise, next_task, situation
from data.study.rubrics import add_rubric
from data.study.runs import RunOrder, begin_run, forget_panel, keep_panel
from data.study.settings import describe, give_consent, lock, reopen, set_protocol, set_setting
from data.study.steering import set_place
from data.study.training import answer_drill, import_experts, let_through
from data.study.withdrawals import withdraw
from kit.study_place import StudyIn

RUBRIC = read_rubric("generic")
FIRST = RUBRIC.criteria[0]
CLINICIANS = ("dr_a", "dr_b", "dr_c")
JURORS = ("j1", "j2")
N = 10
FROM = Origin("made up", 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, study_in: StudyIn) -> Iterator[Engine]:
    """Make a study that has rows in every table; each test rolls back what it does to it."""
    engine = open_study(study_in(tmp_path_factory.mktemp("made")), create=True)
    fill_all(engine)
    yield engine
    engine.dispose()


def fill_all(engine: Engine) -> None:
    """Put rows into every table of an empty study but that of withdrawals."""
    _material(engine)
    keys = _people(engine)
    _readings(engine, keys)
    _jury(engine)
    _settled(engine, keys)
    _looked_at(engine)


def _rows(name: str, numbers: range) -> Iterator[ResponseRow]:
    for n in numbers:
        said = f"As GPT-4o I say {n}" if n == 3 else f"answer {n} of it"
        asked = (f"{name}-i{n // 2}", name, f"context {n // 2}", "Write.", f"reference {n // 2}")
        row = ResponseRow(FROM, *asked, f"{name}-r{n}", f"model-{n % 3}", said)
        yield replace(row, groups=(("language", "de" if n % 2 else "en"),))


def _material(engine: Engine) -> None:
    import_responses(engine, _rows("visits", range(N)), lambda _: RUBRIC)
    import_responses(engine, _rows("practice", range(1)), lambda _: RUBRIC)
    mask_responses(engine, [MaskedText(4, "As [author masked] I say 3", [(3, 9, "GPT-4o")])], N + 1)
    experts = [ExpertRow(FROM, "practice-r0", name, "3", "so") for name in RUBRIC.criteria]
    import_experts(engine, experts)
    same = {"instance_id": "one", "context": "context", "reference": "one"}
    rows = enumerate(_rows("pairs", range(4)))
    notes = [replace(row, **same, response=f"Note {n}.", groups=()) for n, row in rows]
    pairs = [PairRow(FROM, f"pair-{n}", (notes[n], notes[n + 2])) for n in range(2)]
    import_pairs(engine, pairs, read_rubric("preference"), lambda _: None)
    add_rubric(engine, read_rubric("medi_qa"))
    import_responses(engine, _rows("cases", range(1)), lambda _: RUBRIC)
    for weight in (2, 3):
        points = (("Says it", "must"), ("Says it wrongly", "must_not"))
        rows = [
            PointRow(FROM, "cases-i0", Point(point=text, weight=weight, kind=kind))
            for text, kind in points
        ]
        add_points(engine, "cases", rows, points_rubric(), "operator")
    set_place(OPERATOR, engine, "visits", "Clinical Note Generation")
    fixed = {"margin": 0.1, "criterion": "", "panel": "", "jurors": [*JURORS], "responses": N}
    low = {"criterion": "accuracy", "threshold": 2.0, "miss_at_most": 0.2}
    fixed |= {"method": "paper", "critical": [low], "floor": 0.0, "because": "as in a pilot"}
    set_protocol(engine, "coordinator", fixed)
    told = Description("A study", "To see.", "Dr A", "a@b.example", consent="I agree.")
    describe(engine, told, "coordinator")


def _people(engine: Engine) -> dict[str, int]:
    codes = {one.handle: one.code for one in people.invite(engine, CLINICIANS)}
    boss = ("boss@hospital.example", Way(days=9))
    people.add_people(OPERATOR, engine, ["boss"], Role.COORDINATOR, *boss)
    people.add_people(OPERATOR, engine, ["gone"], Role.RESEARCHER, way=Way(once=True))
    people.end_access(OPERATOR, engine, "gone")
    people.renew_access(OPERATOR, engine, "dr_c")
    people.set_email(OPERATOR, engine, "dr_b", "b@hospital.example")
    people.set_specialty(OPERATOR, engine, "dr_a", "cardiology")
    study_key(engine, SESSION_KEY)
    study_key(engine, PSEUDONYM_KEY)
    person = people.check_code(engine, codes["dr_a"]).person
    assert person is not None
    enter(engine, person)
    with Session(engine) as session:
        return {name: key or 0 for name, key in session.exec(select(Rater.handle, Rater.id))}


def _readings(engine: Engine, keys: dict[str, int]) -> None:
    with Session(engine) as session:
        asked = session.get_one(Setting, "consent_text").value
    for name in CLINICIANS:
        give_consent(engine, keys[name], asked)
    slots = [
        assignments.Slot(who, n, n)
        for k, who in enumerate(CLINICIANS)
        for n in range(1, N + 1)
        if n % 3 != k
    ]
    assignments.assign(engine, slots, seed=0, per_response=2)
    assignments.assign(engine, [], seed=0, dropped=[("dr_c", N, 0)])
    now_at = situation(engine, keys["dr_a"]).stage
    assert isinstance(now_at, Exercise)
    answer = Reply(dict.fromkeys(RUBRIC.criteria, 3))
    answer_drill(engine, keys["dr_a"], now_at.task.card.code, answer, {})
    let_through(engine, "dr_b", "knows the form")
    for who in CLINICIANS:
        _rate_all(engine, keys[who])
    assert assignments.claim(engine, keys["dr_b"])


def _rate_all(engine: Engine, rater: int) -> None:
    """Rate most of it; give one back, and leave a draft of the last one."""
    number = 0
    while (task := next_task(engine, rater).task) is not None:
        code, number = task.card.code, number + 1
        assignments.opened(engine, rater, code, reference=number == 2)
        entered = FormState({"by": "page", "seq": 1, "scores": {}}, 7)
        if number == 5 and rater % 2:
            save_draft(engine, rater, code, entered)
            assignments.recuse(engine, rater, code, "I know the patient")
        elif number == 6:
            save_draft(engine, rater, code, entered)
            return
        else:
            _rate(engine, rater, code, number)


def _rate(engine: Engine, rater: int, code: str, number: int) -> None:
    scores = {name: 1 + (number * (k + 2) + rater) % 5 for k, name in enumerate(RUBRIC.criteria)}
    spans = (
        Marked(FIRST, 0, 4, "wrong", "note", linked=1),
        Marked(FIRST, 0, 3, "wrong", side="source", linked=0),
    )
    reply = Reply(scores, {FIRST: "why"}, "all of it", spans, ("flag",))
    submit(engine, rater, code, reply, number + 0.5)
    if number == 1:
        submit(engine, rater, code, Reply({**scores, FIRST: 5}), number + 1.5)


def _jury(engine: Engine) -> None:
    profile = {"provider": "openai", "model": "x", "temperature": 0.0}
    jurors = add_jurors(engine, [JurorRecord(one, profile, "family") for one in JURORS])
    for name, key in jurors.items():
        called = [
            Intent(key=f"{name}-{n}", rater=key, response=n, usd_most=0.1) for n in range(1, N + 1)
        ]
        record_steps(engine, [Step(intent=one) for one in called])
        record_steps(engine, [_verdict(name, key, n) for n in range(1, N)])
        check = Attempt(
            purpose=Purpose.REFERENCE, instance=1, rater=key, status=Status.OK,
            answer={"absent": True, "facts": ["fever"]}, request_sha256="1" * 64, usd=0.01,
        )  # fmt: skip
        record_steps(engine, [Step(attempt=(check, None, None))])
    _learned(engine, jurors["j1"])
    carry_over(engine)
    metric = [
        RatingRow(FROM, f"visits-r{n}", "rouge", Kind.METRIC, "rouge-l", f"{(n * 7 % 10) / 10}")
        for n in range(N)
    ]
    import_ratings(engine, metric)
    _batch(engine, jurors["j1"])


def _learned(engine: Engine, juror: int) -> None:
    for seed in (0, 1):
        split = {"train": [1, 2], "choose": [3], "test": [4, 5]}
        key = begin_improvement(engine, RUBRIC, {"panel": "mine", "seed": seed}, split)
        better = RUBRIC.model_copy(update={"version": f"1+{key}.1", "parent": RUBRIC.sha256})
        for status, made in ((Status.INVALID_JSON, None), (Status.OK, better)):
            proposal = Attempt(
                purpose=Purpose.RUBRIC, improvement=key, rater=juror, round=1, status=status,
                answer={"rubric": made.sha256} if made else None, request_sha256="3" * 64,
                usd=0.02, sent={"model": "x"}, raw="{}",
            )  # fmt: skip
            entry = (proposal, RUBRIC, None)
            record_steps(engine, [Step(attempt=entry, rubrics=(made,) if made else ())])
        keep_learned(engine, key, better)
        open_test(engine, key)
        end_improvement(engine, key, {"outcome": "better", "gain": 0.1 * (1 + seed)})


def _verdict(name: str, juror: int, number: int) -> Step:
    made = Attempt(
        rater=juror, response=number, rubric_sha256=RUBRIC.sha256, request_sha256="0" * 64,
        status=Status.OK if number > 1 else Status.REFUSED, raw="{}", usd=0.01, tokens_in=5,
    )  # fmt: skip
    scores = {one: 1 + (number + k * juror) % 5 for k, one in enumerate(RUBRIC.criteria)}
    return Step(attempt=(made, RUBRIC, Reply(scores, {})), settles=f"{name}-{number}")


def _batch(engine: Engine, juror: int) -> None:
    batch = JuryBatch(
        marker="m" * 16, rater=juror, host="vendor.example", state=BatchState.PREPARED,
        requests=2, sent={"model": "x"},
    )  # fmt: skip
    prepare(engine, batch, [BatchRequest(f"m-{n}", n, 0, RUBRIC, "2" * 64, 0.5) for n in (10, 9)])


def _settled(engine: Engine, keys: dict[str, int]) -> None:
    """Answer a flag, and settle a difference that dr_c knows nothing of."""
    with Session(engine) as session:
        flag = session.exec(
            select(Remark).where(Remark.kind == "flag").order_by(col(Remark.id))
        ).first()
        assert flag is not None
        rater = session.get_one(Assignment, flag.assignment).rater
        still_open = select(Assignment.response).where(Assignment.state == State.OPEN)
        known = select(Assignment.response).where(Assignment.rater == keys["dr_c"])
        free = select(func.min(Assignment.response)).where(
            col(Assignment.response).not_in(still_open), col(Assignment.response).not_in(known)
        )
        response = session.exec(free).one()
    answer = assignments.answer_flag(engine, "coordinator", flag.id or 0, "thank you")
    assignments.answer_seen(engine, rater, answer)
    assignments.assign_adjudication(engine, "coordinator", "third", {response: "dr_c"})
    with Session(engine) as session:
        code = session.exec(select(Assignment.code).where(Assignment.pass_ == 100)).one()
    submit(engine, keys["dr_c"], code, Reply(dict.fromkeys(RUBRIC.criteria, 4)), 9.0)


def _looked_at(engine: Engine) -> None:
    set_setting(engine, "reference", "on_request")
    change_tags(OPERATOR, engine, 1, put_on=["too short", "unsafe"])
    change_tags(OPERATOR, engine, 1, taken_off=["unsafe"])
    keep_note(OPERATOR, engine, 1, "ask the clinicians")
    for name in ("mine", "other"):
        keep_panel(OPERATOR, engine, name, f'name = "{name}"')
    forget_panel(OPERATOR, engine, "other")
    begin_run(OPERATOR, engine, RunOrder("mine", 'name = "mine"'), "token")
    jury = Evaluation(JURORS, "combined", "paper", "0" * 64, N, 0.5, compared=("clinicians",))
    for _ in (1, 2):
        record_evaluations(engine, [jury])
    freeze(engine, "0" * 64, {"rows": []})
    lock(engine, "coordinator")
    reopen(engine, "coordinator", "one more")
    set_setting(engine, "pause_minutes", "20")


def withdraw_some(engine: Engine) -> None:
    """Withdraw two responses and a rater: rows in the one table that `fill_all` leaves empty."""
    with Session(engine) as session:
        first, second = session.exec(select(Response.response_id).limit(2)).all()
    withdraw(OPERATOR, engine, response=first, reason="names the patient")
    withdraw(OPERATOR, engine, response=second, reason="a duplicate")
    withdraw(OPERATOR, engine, rater="dr_b", reason="took back consent")
    set_setting(engine, "pause_minutes", "25")
