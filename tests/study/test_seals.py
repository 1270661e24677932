"""No cell of a study can be changed behind the record's back, but for those that docs/record.md argues."""

import json
from functools import partial

import pytest
from kit.changed_cells import TABLES, attacked, change, key_of, others, rows_of
from kit.sealed_study import made, withdraw_some
from kit.study_place import copy_study
from sqlalchemy import UniqueConstraint, delete, func, insert, select, text, update
from sqlmodel import Session

from data.database import open_study
from data.record import CHANGES, HELD, SEALED_PARTS, UNSEALED, columns_of_table
from data.schema import Table as Model
from data.study.access import SESSION_KEY
from data.study.verify import verify, verify_in

__all__ = ["made"]
CELLS = [(table.name, column.name) for table in Model.metadata.sorted_tables for column in table.c]
LEFT_OUT = {(table, column) for table, columns in UNSEALED.items() for column in columns}


@pytest.fixture(scope="module", autouse=True)
def withdrawn(made):
    """Withdraw some of the study, so that every table has rows."""
    withdraw_some(made)


def findings_of(engine, attack):
    with attacked(engine) as session:
        attack(session)
        session.flush()
        return verify_in(session).findings


def test_a_study_that_did_all_that_studies_do_is_whole(made):
    found = verify(made)
    assert found.findings == ()
    with Session(made) as session:
        assert all(rows_of(session, table) for table in Model.metadata.sorted_tables)


def test_every_column_is_sealed_checked_or_left_out_for_a_reason():
    told = {
        (table, column)
        for table in TABLES
        for sealed in [columns_of_table(table)]
        for column in {*sealed.lasting, *sealed.changing, *HELD.get(table, ())}
    }
    assert told.isdisjoint(LEFT_OUT)
    assert told | LEFT_OUT == {*CELLS}
    assert {(table, column) for table, own in CHANGES.items() for column in own} <= {*CELLS}


@pytest.mark.parametrize("table", TABLES)
def test_one_cell_changed_in_any_column_is_found(made, table):
    def attack(session, name):
        change(session, TABLES[table], name, rows_of(session, TABLES[table])[0])

    columns = [column.name for column in TABLES[table].c]
    unnoticed = {name for name in columns if not findings_of(made, partial(attack, name=name))}
    assert unnoticed == {name for of, name in LEFT_OUT if of == table}


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_every_single_cell_of_every_row_is_found(made, table):
    with Session(made) as session:
        rows = rows_of(session, TABLES[table])
    sealed = [name for of, name in CELLS if of == table and (of, name) not in LEFT_OUT]
    for row in rows[:12] if table == "event" else rows[:: 1 + len(rows) // 25]:
        for column in sealed:
            attack = lambda session, row=row, column=column: change(session, TABLES[table], column, row)  # noqa: E731 # fmt: skip
            assert findings_of(made, attack), (table, column, dict(row))


@pytest.mark.parametrize("table", TABLES)
def test_a_row_taken_out_is_found(made, table):
    with Session(made) as session:
        rows = rows_of(session, TABLES[table])
    key = key_of(TABLES[table])
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        if row.get("key") == SESSION_KEY or (table == "event" and row is rows[-1]):
            continue  # signs everybody out; and the newest event: see below
        gone = delete(TABLES[table]).where(key == row[key.name])
        assert findings_of(made, lambda session, gone=gone: session.execute(gone)), row


def test_the_newest_event_taken_out_is_found_with_what_it_sealed(made):
    last = select(func.max(TABLES["event"].c.id)).scalar_subquery()
    cut = delete(TABLES["event"]).where(TABLES["event"].c.id == last)
    [found] = findings_of(made, lambda session: session.execute(cut) and None)
    assert "setting pause_minutes: " in found


@pytest.mark.parametrize("table", TABLES)
def test_a_row_put_in_is_found(made, table):
    place = TABLES[table]

    def put_in(session):
        row = dict(rows_of(session, place)[0])
        together = [one for one in place.constraints if isinstance(one, UniqueConstraint)]
        held = [one for own in together for one in own.columns if not one.foreign_keys]
        unique = {one.name for one in (*held, *(one for one in place.c if one.unique))}
        for name in {*unique, key_of(place).name}:
            row[name] = next(others(session, place.c[name], row))
        if table == "account":
            row["rater"] = None
        session.execute(insert(place), [row])

    assert findings_of(made, put_in)


@pytest.mark.parametrize("table", TABLES)
def test_two_rows_whose_values_are_swapped_are_found(made, table):
    place, key = TABLES[table], key_of(TABLES[table]).name
    with Session(made) as session:
        rows = rows_of(session, place)
    counted = [name for of, name in CELLS if of == table and (of, name) not in LEFT_OUT]
    if key not in counted:
        pytest.skip("its keys count nowhere")
    last = rows[-1]
    one = next((row for row in rows if any(row[n] != last[n] for n in counted if n != key)), None)
    if one is None or len(rows) < 2:
        pytest.skip("has no two rows that differ")

    def swap(session):
        session.execute(delete(place).where(place.c[key].in_([one[key], last[key]])))
        session.execute(insert(place), [{**one, key: last[key]}, {**last, key: one[key]}])

    assert findings_of(made, swap)


@pytest.mark.parametrize(
    ("part", "counts"),
    [
        *((one, True) for one in ("ended", "rounds", "token", "by", "order")),
        *((one, False) for one in ("draft", "seen", "said")),  # of training
    ],
)
def test_of_settings_that_are_rewritten_what_counts_is_sealed(made, part, counts):
    kinds = (name for name, parts in SEALED_PARTS.items() if part in parts)
    kind = next(kinds) if counts else "training:"
    assert bool(changed_setting(made, kind, part)) is counts


def changed_setting(engine, kind, part):
    setting = TABLES["setting"]

    def forge(session):
        row = next(one for one in rows_of(session, setting) if one["key"].startswith(kind))
        held = json.loads(row["value"])
        assert part in held
        forged = json.dumps(held | {part: "forged"})
        session.execute(update(setting).where(setting.c.key == row["key"]).values(value=forged))

    return findings_of(engine, forge)


@pytest.mark.usefixtures("study_file")
@pytest.mark.parametrize(
    "cell",
    [
        *("rater.profile", "rating.at", "account.ended", "assignment.done_at"),
        *("event.detail", "composition.first_at"),
    ],
)
def test_a_cell_that_cannot_be_read_is_a_finding(made, cell):
    table, column = cell.split(".")
    forge = text(f"UPDATE {table} SET {column} = '2026 or so'")  # noqa: S608 our names
    assert findings_of(made, lambda session: session.execute(forge) and None)


@pytest.mark.slow
def test_what_is_left_out_moves_no_figure(made, run, url, tmp_path):
    made.dispose()
    copy_study(made.url.render_as_string(hide_password=False), url)
    asked = (("analyse", "calibrate", "--reps", "20", "--details"), ("analyse", "juries", "--reps", "20"), ("analyse", "models", "--reps", "20", "--unblind", "--reason", "test"))  # fmt: skip
    before = [figures(run, tmp_path, *one) for one in asked]
    study = open_study(url)
    with study.execution_options(writes=True).begin() as connection:
        session = Session(connection)
        for table, column in LEFT_OUT:
            for row in rows_of(session, TABLES[table]):
                if column not in ("id", "state"):
                    change(session, TABLES[table], column, row)
        session.flush()
    study.dispose()
    assert verify(open_study(url)).findings == ()
    assert [figures(run, tmp_path, *one) for one in asked] == before


def figures(run, folder, *asked):
    """Return what a command's JSON says of the study, without what was tried on it before."""
    code, _, err = run(*asked, "--json", str(folder / "figures.json"))
    assert code == 0, err
    body = json.loads((folder / "figures.json").read_text())
    return {name: body[name] for name in ("rows", "decision", "models", "juries") if name in body}
