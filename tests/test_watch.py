"""A watch takes each output in once, draws and gives out the sample, and holds a day's budget."""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kit.jurors import Do, Stub
from kit.jury_runs import attempts, panel_at
from kit.studies import HEAD, Run
from kit.study_place import all_rows
from kit.ward import ALARM, events, folder, lines, made, names, times_of
from sqlalchemy import Engine
from sqlmodel import Session, select

from annotate.watching.cycle import Watch, readers_of
from annotate.watching.drops import DONE, REASON, REFUSED
from annotate.watching.feeds import Lines, Query, feed_of
from annotate.watching.lock import watch_lock
from annotate.watching.sample import BLOCK, Sample, given_out
from annotate.watching.settings import WatchSettings, read_settings
from data.errors import BadFile, BadInput, Conflict, MedjuryError
from data.queries.record import verify
from data.queries.watch import Work, drawn_without_reader, intakes, spent_since
from data.schema import Assignment, Intake, Response
from data.store import invite
from data.store.watch import raise_alarm

__all__ = ["folder", "made"]
SECRET = "Mrs Example, born 1931"


def test_a_drop_is_stored_once_whatever_its_name_and_moved(
    made: Callable[..., Watch], folder: Path, engine: Engine
) -> None:
    watch = made()
    (folder / "a.csv").write_text(lines(0, 3))
    watch.look()
    (folder / "b.csv").write_text(lines(0, 3))
    (folder / "a.csv").write_text(lines(2, 2))
    watch.look()
    found = intakes(engine)
    assert (found.drops, found.responses, found.unchanged) == (2, 4, 1)
    assert names(folder) == [DONE, REFUSED]
    assert names(folder / DONE) == ["a-2.csv", "a.csv", "b.csv"]
    assert verify(engine).findings == ()


def test_what_cannot_be_stored_is_refused_whole_with_the_reason_beside_it(
    made: Callable[..., Watch], folder: Path, engine: Engine, tmp_path: Path
) -> None:
    watch = made(source={"most_megabytes": 0.01})
    bad = lines(0, 3).replace("Answer 1.", "")
    (folder / "one_bad_row.csv").write_text(bad)
    (folder / "no_table.csv").write_bytes(b"\x00\xff\x00 not a table")
    (folder / "empty.csv").write_bytes(b"")
    (folder / "huge.csv").write_text(lines(0, 400))
    (folder / "link.csv").symlink_to("/etc/passwd")
    watch.look()
    refused = ["empty.csv", "huge.csv", "link.csv", "no_table.csv", "one_bad_row.csv"]
    assert names(folder / REFUSED) == sorted([*refused, *(f"{name}{REASON}" for name in refused)])
    assert "row 3" in (folder / REFUSED / f"one_bad_row.csv{REASON}").read_text()
    assert Path("/etc/passwd").is_file()
    assert intakes(engine).responses == 0
    assert intakes(engine).refused == 3, "a link and a size are refused unread"
    mended = lines(0, 3)
    (folder / "one_bad_row.csv").write_text(mended)
    watch.look()
    assert intakes(engine).responses == 3


def test_text_that_is_not_utf_8_is_read_as_the_import_reads_it(
    made: Callable[..., Watch], folder: Path, engine: Engine
) -> None:
    (folder / "latin.csv").write_bytes(lines(0, 1, "Fièvre {}").encode("cp1252"))
    made().look()
    with Session(engine) as session:
        assert session.exec(select(Response.text)).one() == "Fièvre 0"


def test_a_file_that_is_still_being_copied_waits_and_is_then_taken_in_whole(
    made: Callable[..., Watch], folder: Path, engine: Engine
) -> None:
    watch = made(source={"settle_seconds": 10})
    whole = lines(0, 4).encode()
    times = times_of(watch)
    for end in range(0, len(whole), 60):
        with (folder / "a.csv").open("ab") as file:
            file.write(whole[end : end + 60])
        watch.look()
        times.seconds += 9
        watch.look()
        assert intakes(engine).drops == 0
    times.seconds += 10
    watch.look()
    assert intakes(engine).responses == 4
    (folder / "b.csv.part").write_bytes(whole)
    times.seconds += 100
    watch.look()
    assert "b.csv.part" in names(folder)


def test_the_log_and_the_study_s_own_tables_of_a_watch_hold_no_text_and_no_name_of_a_file(
    made: Callable[..., Watch], folder: Path, engine: Engine, tmp_path: Path
) -> None:
    watch = made()
    (folder / f"{SECRET} by gpt-9.csv").write_text(lines(0, 2, SECRET.replace(",", "") + " {}"))
    (folder / "bad gpt-9.csv").write_text(lines(4, 2, SECRET.replace(",", "")).replace("m0", ""))
    watch.look()
    assert intakes(engine).refused == 1
    rows = repr(all_rows(engine)["intake"])
    for told in (rows, (tmp_path / "log.jsonl").read_text()):
        for word in ("Example", "gpt-9", "1931", ".csv", "m1"):
            assert word not in told


def test_a_share_of_each_stratum_is_drawn_and_never_by_author(
    made: Callable[..., Watch], folder: Path, engine: Engine
) -> None:
    invite(engine, ["dr_a", "dr_b", "dr_c"])
    own = {"share": 0.25, "clinicians": ["dr_a", "dr_b", "dr_c"], "per_response": 2}
    watch = made(sample=own)
    for start in range(0, 200, 40):
        (folder / f"{start}.csv").write_text(lines(start, 40))
        watch.look()
    assert intakes(engine).drawn == 50
    assert drawn_without_reader(engine) == []
    with Session(engine) as session:
        given = session.exec(select(Assignment.rater, Assignment.response)).all()
        load = Counter(rater for rater, _ in given)
        drawn = [key for keys in session.exec(select(Intake.drawn)) for key in keys]
    assert len(given) == 100
    assert max(load.values()) - min(load.values()) <= 1
    assert {response for _, response in given} == set(drawn)
    assert 15 <= sum(key % 2 for key in drawn) <= 35, "authors alternate"
    assert verify(engine).findings == ()


@pytest.mark.parametrize("share", [0.0, 0.03, 0.1, 0.5, 1.0])
def test_drops_of_any_size_make_the_same_sample_of_the_share(share: float) -> None:
    sample, arrivals = Sample(share, seed=4), [(n, "s") for n in range(1000)]
    whole = sample.draw({}, arrivals)
    parts: list[int] = []
    for start in range(0, 1000, 37):
        parts += sample.draw({"s": start}, arrivals[start : start + 37])
    assert parts == whole
    assert abs(len(whole) - 1000 * share) <= 1
    for end in range(0, 1000, 7):
        assert abs(sum(key < end for key in whole) - end * share) <= 1 + BLOCK * share


def test_each_place_is_drawn_equally_often_over_seeds() -> None:
    arrivals = [(n, "s") for n in range(60)]
    times = Counter(key for seed in range(3000) for key in Sample(0.1, seed).draw({}, arrivals))
    assert len(times) == 60
    assert max(abs(count - 300) for count in times.values()) < 5 * (3000 * 0.09) ** 0.5


def test_work_goes_to_who_has_least_and_nobody_reads_a_response_twice() -> None:
    staff = ["a", "b", "c", "d"]
    before = Work({"a": 5, "b": 0, "c": 0, "d": 0}, {"a": 9, "b": 0, "c": 0, "d": 0}, {})
    slots = given_out(range(20), staff, 2, before, seed=1)
    load = Counter(slot.rater for slot in slots)
    assert [load[name] + before.load[name] for name in staff] in (
        [11, 11, 11, 12],
        [12, 11, 11, 11],
        [11, 12, 11, 11],
        [11, 11, 12, 11],
    )
    assert max(Counter((slot.rater, slot.response) for slot in slots).values()) == 1
    assert min(slot.position for slot in slots if slot.rater == "a") == 9


def test_a_jury_rates_what_came_and_nothing_is_asked_again(
    made: Callable[..., Watch], folder: Path, engine: Engine
) -> None:
    with Stub() as stub:
        watch = made(panel_at(stub, "a", "b"))
        (folder / "a.csv").write_text(lines(0, 6))
        watch.look()
        watch.look()
        again = made(panel_at(stub, "a", "b"))
        again.look()
    assert len(stub.seen) == 12
    assert len(attempts(engine)) == 12


def test_a_juror_that_is_down_is_tried_again_with_longer_pauses_and_the_others_go_on(
    made: Callable[..., Watch], folder: Path, engine: Engine
) -> None:
    down = [True]
    with Stub(lambda seen: Do(status=503) if seen.model == "b" and down else Do()) as stub:
        watch = made(panel_at(stub, "a", "b"))
        times = times_of(watch)
        (folder / "a.csv").write_text(lines(0, 30))
        watch.look()
        first = Counter(seen.model for seen in stub.seen)
        assert first["a"] == 30
        for minute in range(60):
            times.seconds += 60
            if minute == 30:
                (folder / "b.csv").write_text(lines(30, 5))
            watch.look()
        assert Counter(seen.model for seen in stub.seen)["a"] == 35
        assert Counter(seen.model for seen in stub.seen)["b"] - first["b"] < 100
        down.clear()
        times.seconds += 30 * 60
        watch.look()
        watch.look()
        answered = Counter(
            (one.rater, one.response) for one in attempts(engine) if one.status == "ok"
        )
    assert watch.asking
    assert watch.asking.down == {}
    assert len(answered) == 70
    assert set(answered.values()) == {1}


def test_an_answer_that_is_never_of_use_is_paid_for_a_few_times_only(
    made: Callable[..., Watch], folder: Path, engine: Engine
) -> None:
    with Stub(lambda _: Do(text="no JSON")) as stub:
        watch = made(panel_at(stub), jury={"most_answers": 2})
        (folder / "a.csv").write_text(lines(0, 1))
        for _ in range(10):
            watch.look()
    assert len(stub.seen) <= 4


def test_a_days_budget_holds_says_so_and_goes_on_the_next_day_however_the_clock_is_set(
    made: Callable[..., Watch], folder: Path, engine: Engine, tmp_path: Path
) -> None:
    prices = {"usd_per_million_in": 1000.0, "usd_per_million_out": 1000.0, "max_tokens": 100}
    with Stub() as stub:
        watch = made(panel_at(stub, **prices), jury={"daily_usd": 12.0, "concurrency": 1})
        (folder / "a.csv").write_text(lines(0, 30))
        watch.clock = datetime_now = _Moving()
        assert watch.asking
        watch.asking.clock = datetime_now
        for _ in range(6):
            watch.look()
        midnight = datetime_now().replace(hour=0, minute=0, second=0, microsecond=0)
        first = len(stub.seen)
        assert 0 < spent_since(engine, midnight) <= 12.0
        assert 5 <= first < 30
        assert sum(line["event"] == "budget_used_up" for line in events(tmp_path)) == 1
        datetime_now.shift -= timedelta(hours=2)
        for _ in range(3):
            watch.look()
        datetime_now.shift -= timedelta(days=1)
        for _ in range(3):
            watch.look()
        assert len(stub.seen) == first, "a clock that goes back opens no new budget"
        datetime_now.shift = timedelta(days=1)
        for _ in range(6):
            watch.look()
        assert first < len(stub.seen) <= 2 * first + 1


class _Moving:
    """The real clock, shifted."""

    def __init__(self) -> None:
        self.shift = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.shift


def test_two_watches_on_one_study_exclude_each_other(engine: Engine) -> None:
    with watch_lock(engine) as is_held:
        assert is_held()
        with pytest.raises(Conflict, match="another watch is on"), watch_lock(engine):
            pass
    with watch_lock(engine):
        pass


def test_lines_of_a_stream_are_drops_and_one_bad_line_refuses_itself(
    made: Callable[..., Watch], folder: Path, engine: Engine
) -> None:
    read, write = os.pipe()
    rows = [
        {
            "instance_id": f"i{n}",
            "benchmark": "v",
            "context": "c",
            "prompt": "p",
            "response_id": f"r{n}",
            "model": "m",
            "response": f"answer {n}",
        }
        for n in range(20)
    ]
    rows[7] |= {"response": ""}
    body = "".join(json.dumps(row) + "\n" for row in rows)
    os.write(write, (body + json.dumps(rows[0]) + "\n").encode())
    os.close(write)
    watch = made()
    with os.fdopen(read, "rb") as stream:
        watch.feed = Lines(stream)
        for _ in range(12):
            watch.look()
    assert watch.feed.has_ended
    assert watch.feed.taken == 21
    assert intakes(engine).responses == 19
    assert len(names(folder / REFUSED)) == 2
    assert names(folder) == [DONE, REFUSED]


def test_rows_of_a_query_are_taken_in_once(
    made: Callable[..., Watch], engine: Engine, tmp_path: Path
) -> None:
    place = f"sqlite:///{tmp_path / 'ward.db'}"
    watch = made()
    with pytest.raises(BadInput, match="a database needs a query"):
        feed_of(place, "", None)  # type: ignore[arg-type]
    feed = feed_of(place, "SELECT * FROM notes", None)  # type: ignore[arg-type]
    assert isinstance(feed, Query)
    watch.feed = feed
    watch.look()
    source = sqlite3.connect(tmp_path / "ward.db")
    source.execute(f"CREATE TABLE notes ({HEAD})")
    for n in range(4):
        values = (f"i{n}", "v", "c", "p", None, f"r{n}", "m", f"answer {n}")
        source.execute("INSERT INTO notes VALUES (?,?,?,?,?,?,?,?)", values)
        source.commit()
        watch.look()
        watch.look()
    source.close()
    assert (intakes(engine).responses, intakes(engine).unchanged) == (4, 0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[sample]\nshare = 2", "sample.share"),
        ("[sample]\nshares = 0.1", "sample.shares"),
        ('[alarm]\nemail = "a@b"', "owner"),
        ("[agreement]\nbaseline = 3\ntarget = 0.5", "one of baseline"),
        ("[jury", "not TOML"),
    ],
)
def test_a_wrong_setting_is_told_by_its_name(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "watch.toml"
    path.write_text(text)
    with pytest.raises(BadFile, match=told):
        read_settings(path)


def test_clinicians_have_to_be_known_and_as_many_as_the_design_gives(
    engine: Engine, made: Callable[..., Watch]
) -> None:
    for own, told in (
        ({"clinicians": ["nobody"]}, "is no clinician"),
        ({"clinicians": ["dr_a"], "per_response": 2}, "1 named"),
        ({"clinicians": ["dr_a", "dr_a"]}, "twice"),
    ):
        invite(engine, ["dr_a"])
        with pytest.raises(MedjuryError, match=told):
            readers_of(engine, WatchSettings.model_validate({"sample": own}))


def test_the_command_handles_what_is_there_shows_its_settings_and_refuses_in_one_line(
    run: Run, tmp_path: Path, folder: Path, engine: Engine
) -> None:
    (folder / "a.csv").write_text(lines(0, 4))
    own = tmp_path / "watch.toml"
    own.write_text(
        '[source]\nsettle_seconds = 0\n[jury]\npanel = "simulated"\n[sample]\nshare = 0.5\n'
    )
    call = ("watch", str(folder), "--settings", str(own))
    code, out, _ = run(*call, "--show")
    assert code == 0
    assert "jury.panel                 simulated" in out
    metrics, log = tmp_path / "m.prom", tmp_path / "log.jsonl"
    code, out, _ = run(
        *call, "--once", "--json", "-", "--log", str(log), "--openmetrics", str(metrics)
    )
    figures = json.loads(out)
    assert code == 0
    assert (figures["drops"], figures["responses"]) == (1, 4)
    assert set(figures["verdicts_waiting"].values()) == {0}
    assert 'medjury_watch_responses{watch="1"} 4.0' in metrics.read_text()
    assert metrics.read_text().endswith("# EOF\n")
    raise_alarm(engine, ALARM)
    assert run(*call, "--once", "--log", str(log))[0] == 1
    for wrong in (
        ("watch", str(tmp_path / "nowhere")),
        ("watch", "sqlite:///ward.db"),
        (*call, "--json", "-"),
    ):
        code, _, err = run(*wrong)
        assert (code, "Traceback" in err) == (2, False)
