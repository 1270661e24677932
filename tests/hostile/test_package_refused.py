"""A stranger's package does no harm: one message, and nothing written."""

import secrets
import sqlite3
import stat
import zipfile
from contextlib import closing

import pytest
from kit.measured import COMMAND, run_python
from kit.packaged_study import Parts, altered, does, made, packed, restored, says, tables_of, whole
from kit.study_place import nothing_stored

from medjury import main

__all__ = ["made", "whole"]


def put(name, body):
    def change(parts: Parts) -> None:
        parts.pop(name, None)
        if body is not None:
            parts[name] = body

    return change


def other_encoding(parts):
    """Write the database anew with texts that are not UTF-8."""
    does("UPDATE response SET text = CAST(x'ff41' AS TEXT) WHERE id = 1")(parts)


def looped(parts):
    """Let a table's tree come back to itself, so that it has no end."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(parts["study.db"])
        [root] = database.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name='event'"
        ).fetchone()
        [size] = database.execute("PRAGMA page_size").fetchone()
    body = bytearray(parts["study.db"])
    start = (root - 1) * size
    # An inner page of one child, itself, and no cell.
    body[start : start + 12] = bytes([5, 0, 0, 0, 0, 0, 0, 0]) + root.to_bytes(4)
    parts["study.db"] = bytes(body)


def damaged(parts):
    body = bytearray(parts["study.db"])
    body[len(body) // 2 : len(body) // 2 + 9_000] = bytes(9_000)
    parts["study.db"] = bytes(body)


BOMB = b"SQLite format 3\0" + bytes(20 << 20)
RECURSIVE = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
OTHER = "holds other tables than this medjury writes"
REFUSED = {
    "a changed rating": (does("UPDATE rating SET criterion = 'clarity'"), False, "SHA-256"),
    "a missing database": (put("study.db", None), False, "does not hold the files"),
    "a missing file": (put("ratings.csv", None), False, "does not hold the files"),
    "a file too many": (put("run.sh", b"rm"), False, "a file that no package has"),
    "a path out of it": (put("../../evil", b"x"), False, "a file that no package has"),
    "an absolute path": (put("/etc/evil", b"x"), False, "a file that no package has"),
    "no manifest": (put("manifest.json", None), False, "no medjury package"),
    "a broken manifest": (put("manifest.json", b"{"), False, "not that of a medjury package"),
    "another manifest": (put("manifest.json", b"[]"), False, "not that of a medjury package"),
    "a deep manifest": (put("manifest.json", b"[" * 99_999), False, "not that of a medjury package"),
    "another version": (says(version=3, medjury="9.9"), False, "medjury 9.9 in form 3/study_6, here 2/study_6; import"),
    "other tables": (says(tables="0001"), False, "in form 2/0001, here 2/study_6"),
    "an unknown kind": (says(authors="all"), False, "not that of a medjury package (authors)"),
    "odd files": (says(files=[]), False, "not that of a medjury package (files)"),
    "other numbers of rows": (says(rows={}), False, "says otherwise"),
    "another head": (says(head="0" * 64), False, "does not end as its manifest.json says"),
    "a bomb": (put("study.db", BOMB), False, "unpack to more than any package has"),
    "a manifest too long": (put("manifest.json", b"[" * (2 << 20)), False, "unpack to more"),
    "no database": (put("study.db", b"id,score\n1,2\n" * 99), True, "cannot be read as a SQLite database"),
    "an empty database": (put("study.db", b""), True, OTHER),
    "a damaged database": (damaged, True, "study.db"),
    "a tree without end": (looped, True, "study.db is damaged"),
    "a table too many": (does("CREATE TABLE evil (a)", holds=False), True, OTHER),
    "a table too few": (does("DROP TABLE span", holds=False), True, OTHER),
    "a view": (does(f"CREATE VIEW evil AS {RECURSIVE}", holds=False), True, OTHER),
    "a view for a table": (does("DROP TABLE span", f"CREATE VIEW span AS {RECURSIVE}", holds=False), True, OTHER),
    "a trigger": (does("CREATE TRIGGER evil AFTER INSERT ON rating BEGIN DELETE FROM event; END", holds=False), True, OTHER),
    "an index": (does("CREATE INDEX evil ON rating (abs(score))", holds=False), True, OTHER),
    "a column too many": (does("ALTER TABLE rating ADD COLUMN evil", holds=False), True, OTHER),
    "a computed column": (does("ALTER TABLE rating ADD COLUMN evil AS (zeroblob(1000000000))", holds=False), True, OTHER),
    "a constraint": (does("DROP TABLE span", "CREATE TABLE span (id INTEGER CHECK (randomblob(1000000000)))", holds=False), True, OTHER),
    "a score off the scale": (does("UPDATE rating SET score = 9 WHERE id = 1"), True, "the scale of"),
    "a score that is text": (does("UPDATE rating SET score = 'Mrs Doe' WHERE id = 1"), True, "rating row 1, column score: Input should be a valid number"),
    "a score that is infinite": (does("UPDATE rating SET score = 9e999 WHERE id = 1"), True, "column score: Input should be a finite number"),
    "a score that is missing": (does("UPDATE rating SET score = NULL WHERE id = 1"), True, "a rating has a score, or an answer in its place"),
    "an answer beside a score": (does("UPDATE rating SET answer = 'cannot_tell' WHERE id = 1"), True, "a rating has a score, or an answer in its place"),
    "a text that is none": (does("UPDATE response SET text = x'00' WHERE id = 1"), True, "response row 1, column text"),
    "a text of another encoding": (other_encoding, True, "response, after row"),
    "U+0000 in a response": (does("UPDATE response SET text = 'Mrs' || char(0) || 'Doe' WHERE id = 1"), True, "U+0000"),
    "a time that is none": (does("UPDATE rating SET at = 'Mrs Doe' WHERE id = 1"), True, "rating, after row 0: a cell cannot be read"),
    "JSON that is none": (does("UPDATE event SET detail = '[' WHERE id = 1"), True, "event, after row 0"),
    "JSON without end": (does(f"UPDATE event SET detail = '{'[' * 99_999}' WHERE id = 1"), True, "event, after row 0"),  # noqa: S608
    "JSON of another kind": (does("UPDATE event SET detail = '[]' WHERE id = 1"), True, "event row 1, column detail"),
    "a kind of rater that there is not": (does("UPDATE rater SET kind = 'god' WHERE id = 1"), True, "rater row 1, column kind"),
    "a rating of nothing": (does("UPDATE rating SET response = 4711 WHERE id = 1"), True, "do not fit together"),
    "a row twice": (does("UPDATE rating SET id = 2 WHERE id = 1"), True, "do not fit together"),
    "a row without a key": (does("UPDATE rating SET id = NULL WHERE id = 1"), True, "rating row 1, column id"),
    "a mark on no side": (does("UPDATE span SET side = 'margin' WHERE id = 1"), True, "side or severity"),
    "another rubric": (does("UPDATE rubric SET body = replace(body, 'scale', 'scales')"), True, "rubric"),
    "a changed event": (does("UPDATE event SET action = 'nothing' WHERE action = 'responses imported'"), True, "its content was changed"),
    "an event taken out": (does("DELETE FROM event WHERE id = 2"), True, "an event before it was deleted"),
    "a secret": (does("UPDATE setting SET key = 'signing_key' WHERE key = 'per_response'"), True, "no package brings"),
    "authors smuggled in": (does("INSERT INTO authorship VALUES (1, 'model-9', '')"), True, "authorship has rows"),
    "masks smuggled in": (does("INSERT INTO mask (id, text) VALUES (1, 'GPT')"), True, "mask has rows"),
    "a whole text smuggled in": (does("UPDATE response SET text = 'by GPT-4o' WHERE shown IS NOT NULL"), True, "the whole of a masked text"),
    "a salt smuggled in": (does("UPDATE response SET salt = 'ab' WHERE shown IS NOT NULL"), True, "the whole of a masked text"),
}  # fmt: skip


@pytest.fixture(scope="module")
def package(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "study.zip"
    with pytest.raises(SystemExit, match="0"):
        main(["share", "export", "--package", str(path), "--db", made])
    return path


@pytest.mark.parametrize("what", REFUSED)
def test_a_strangers_package_is_refused_with_one_message(run, package, tmp_path, what):
    change, vouch, said = REFUSED[what]
    path = altered(package, change, vouch=vouch)
    there = restored(tmp_path)
    code, out, err = run("study", "import", str(path), *there)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("medjury: ")
    assert len(err.strip().splitlines()) == 1
    assert "Mrs" not in err
    assert nothing_stored(there[1]) or not any(tables_of(there[1]).values())


def test_a_package_that_is_damaged_or_is_none_is_refused(run, whole, tmp_path):
    path = packed(run, tmp_path)
    body = path.read_bytes()
    for number, wrong in enumerate((b"", b"PK\x03\x04", b"hello")):
        broken = tmp_path / f"broken{number}.zip"
        broken.write_bytes(wrong)
        code, _, err = run("study", "import", str(broken), *restored(tmp_path))
        assert (code, len(err.strip().splitlines())) == (2, 1)
        assert "cannot be read as a package" in err or (wrong == b"" and "is empty" in err)
    with zipfile.ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda one: one.compress_size)
    flipped = bytearray(body)  # in a part, not in the zip's own headers, which hold no value
    flipped[largest.header_offset + largest.compress_size // 2] ^= 0xFF
    path.write_bytes(flipped)
    assert run("study", "import", str(path), *restored(tmp_path))[0] == 2
    assert nothing_stored(restored(tmp_path)[1])


@pytest.mark.slow
def test_long_cells_are_read_one_after_the_other(run, whole, tmp_path):
    block = "".join(f"{secrets.token_hex(16)}{'a' * 300}" for _ in range(100))
    long = block * ((20 << 20) // len(block))  # of each of 12 responses; it packs 15 to 1
    change = does(f"UPDATE response SET text = '{long}'")  # noqa: S608 hexadecimal digits
    path, there = altered(packed(run, tmp_path), change, vouch=True), restored(tmp_path)
    code, said, (peak, _) = run_python(COMMAND, *there, "study", "import", str(path))
    assert (code, len(said.splitlines())) == (2, 1), said
    assert not any(tables_of(there[1]).values())
    assert peak < 250  # MB; all cells have 240


@pytest.mark.slow
def test_json_that_would_take_gigabytes_costs_the_process_that_reads_it_alone(run, whole, tmp_path):
    few = f"{secrets.randbits(100_000):b}".replace("0", "[],").replace("1", "{},")
    detail = f'{{"a": [{few * 200}0]}}'  # of 60 MB: 20 million lists and tables
    change = does(f"UPDATE event SET detail = '{detail}' WHERE id = 1")  # noqa: S608 no quotes
    path, there = altered(packed(run, tmp_path), change, vouch=True), restored(tmp_path)
    code, said, (peak, _) = run_python(COMMAND, *there, "study", "import", str(path))
    assert (code, len(said.splitlines())) == (2, 1), said
    assert "needs more than 1,024 MB to read; ask for the package again; nothing was" in said
    assert nothing_stored(there[1]) or not any(tables_of(there[1]).values())
    assert peak < 250  # MB


def test_a_link_in_a_package_is_refused(run, whole, tmp_path):
    path = packed(run, tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("tables/link.csv")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    code, _, err = run("study", "import", str(path), *restored(tmp_path))
    assert code == 2
    assert "a file that no package has" in err
