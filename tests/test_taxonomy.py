"""The shipped taxonomy is what its sources say, users' own are checked, and a study can use one."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import Run, import_small
from sqlalchemy import Engine

from calibration.report.chart_taxonomy import chart_coverage
from calibration.tables.taxonomy import catalogue_table, coverage_table, tasks_table
from data.errors import BadFile, Conflict, NotAllowed
from data.person import OPERATOR, Person
from data.queries.record import verify
from data.queries.taxonomy import PlacedBenchmark, categories, known_places, study_taxonomy
from data.schema import Role
from data.store.responses import TaxonomyPlace
from data.store.steering import set_place
from data.store.taxonomy import choose_taxonomy, use_taxonomy
from data.taxonomy import Taxonomy, read_taxonomy, shipped_taxonomy, taxonomy_of
from medjury.services.taxonomy import counts, coverage, picture_rows, study_coverage

Write = Callable[[str, str], Path]
MEDHELM = shipped_taxonomy()
WARD = """
name = "Ward tasks"

[[category]]
name = "Notes"
benchmarks = ["letters"]

[[category.subcategory]]
name = "Discharge"
tasks = ["write a letter", { line = "reconcile drugs, list follow-up", single = ["reconcile drugs", "list follow-up"] }]

[[category.subcategory.subcategory]]
name = "Surgery"
benchmarks = ["visits"]

[[category]]
name = "Messages"
"""


def test_medhelms_taxonomy_has_the_numbers_of_its_sources() -> None:
    assert counts(MEDHELM) == {
        "categories": 5,
        "leaves": 22,
        "depth": 2,
        "task_lines": 56,
        "single_tasks": 118,
        "benchmarks": 46,
    }
    assert MEDHELM.published["tasks"] == 121
    assert sum(MEDHELM.published["affiliations"].values()) == MEDHELM.published["clinicians"] == 29
    for category in MEDHELM.categories:
        assert category.definition
        assert category.counts_when
        assert category.performer
    assert all(place.part.tasks for place in MEDHELM.leaves())


def test_the_lists_have_35_37_and_46_benchmarks_one_within_the_other() -> None:
    listed = {
        name: {one.name for one in MEDHELM.benchmarks if name in one.lists}
        for name in ("paper", "helm", "medhelm")
    }
    assert {name: len(own) for name, own in listed.items()} == {
        "paper": 35,
        "helm": 37,
        "medhelm": 46,
    }
    assert listed["paper"] < listed["helm"] < listed["medhelm"]
    assert listed["helm"] - listed["paper"] == {"med_qa", "med_mcqa"}
    assert {one.name for one in MEDHELM.benchmarks} == {*MEDHELM.place_of()}


def test_15_of_22_subcategories_have_one_benchmark() -> None:
    found = coverage(MEDHELM)
    assert (found.leaves, found.once, found.empty) == (
        22,
        {"paper": 15, "helm": 15, "medhelm": 14},
        {"paper": 0, "helm": 0, "medhelm": 0},
    )
    for name, total in (("paper", 35), ("helm", 37), ("medhelm", 46)):
        assert sum(row.listed.get(name, 0) for row in found.rows) == total


def test_a_studys_benchmarks_stand_in_the_coverage_and_those_without_a_place_are_named() -> None:
    own = [
        PlacedBenchmark("aci_bench", "Clinical Note Generation", "Documenting Patient Visits", 3),
        PlacedBenchmark("ours", "", "", 2),
    ]
    found = coverage(MEDHELM, own)
    assert [row.label for row in found.rows if row.study] == ["Documenting Patient Visits"]
    assert found.not_placed == ("ours",)
    table = coverage_table(found, True)
    assert ("Documenting Patient Visits", "9", "3", "3", "3", "aci_bench") in table.groups[1].rows
    assert table.notes[-1].text == "Not placed: ours"


def test_the_picture_has_a_bar_for_each_part_and_a_mark_for_the_studys_own() -> None:
    name, rows = picture_rows(
        coverage(MEDHELM, [PlacedBenchmark("x", "Administration and Workflow", "", 1)])
    )
    assert name == "medhelm"
    assert sum(int(row["listed"]) for row in rows) == 46
    assert sum(int(row["own"]) for row in rows) == 1
    spec = chart_coverage(rows).to_dict()
    assert len(spec["vconcat"]) == 5


def test_a_taxonomy_of_another_shape_is_read_stored_and_covered(write: Write) -> None:
    own = read_taxonomy(write("ward.toml", WARD))
    assert own.depth() == 3
    assert [place.path for place in own.leaves()] == [
        ("Notes", "Discharge", "Surgery"),
        ("Messages",),
    ]
    assert Taxonomy.from_json(own.to_json()) == own
    assert known_places(own) == {
        "letters": ("Notes", ""),
        "visits": ("Notes", "Discharge / Surgery"),
    }
    found = coverage(own)
    assert [(row.category, row.subcategory, row.listed) for row in found.rows] == [
        ("Notes", "", {"named": 1}),
        ("Notes", "Discharge / Surgery", {"named": 1}),
        ("Messages", "", {}),
    ]
    assert tasks_table(own).groups[0].rows[1] == (
        "reconcile drugs, list follow-up",
        "reconcile drugs; list follow-up",
    )
    assert catalogue_table(own.benchmarks, own.place_of()).groups == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file: name must be one line"),
        ('name = "x"', r"has no \[\[category\]\]"),
        ('name = "x"\ncategory = 3', r"has no \[\[category\]\]"),
        ('name = "x"\n[[category]]\nname = ""', "category 1: name must be one line"),
        ('name = "x"\n[[category]]\nname = "a / b"', "category 1: name must be"),
        (
            'name = "x"\n[[category]]\nname = "a"\ncolour = 1',
            "a: no key colour; there are benchmarks",
        ),
        ('name = "x"\n[[category]]\nname = "a"\n[[category]]\nname = "A"', "2 parts are named a"),
        (
            'name = "x"\n[[category]]\nname = "a"\nbenchmarks = ["v"]\n[[category]]\nname = "b"\nbenchmarks = ["v"]',
            "benchmark v: stands in 2 places",
        ),
        ('name = "x"\n[[category]]\nname = "a"\nbenchmarks = "v"', "a: benchmarks must be a list"),
        ('name = "x"\n[[category]]\nname = "a"\ntasks = [1]', "a: task 1 must be a text"),
        ('name = "x"\n[[category]]\nname = "a"\ntasks = "t"', "a: tasks must be a list"),
        (
            'name = "x"\n[[category]]\nname = "a"\ntasks = ["t", "T"]',
            "the task t stands there 2 times",
        ),
        ('name = "x"\n[[category]]\nname = "a"\ndefinition = 1', "a: definition must be a text"),
        (
            'name = "x"\n[[category]]\nname = "a"\nsubcategory = ["b"]',
            "a: subcategory must be tables",
        ),
        (
            'name = "x"\n[[category]]\nname = "a"\n[[benchmark]]\nname = "b"\naccess = "open"',
            "benchmark b: access must be public, gated or private",
        ),
        ('name = "x"\n[[category]\n', "not TOML"),
        ("name = 'x\\u202ey'\n[[category]]\nname = \"a\\u202e\"", "category 1: name must be"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_with_where_and_what(
    write: Write, text: str, told: str
) -> None:
    with pytest.raises(BadFile, match=told):
        read_taxonomy(write("own.toml", text))


def test_a_tree_that_is_too_deep_or_too_large_is_refused() -> None:
    deep: dict[str, object] = {"name": "end"}
    for n in range(8):
        deep = {"name": f"n{n}", "subcategory": [deep]}
    with pytest.raises(BadFile, match="at most 6"):
        taxonomy_of({"name": "x", "category": [deep]}, "own")
    many = [{"name": f"c{n}"} for n in range(1001)]
    with pytest.raises(BadFile, match="at most 1000"):
        taxonomy_of({"name": "x", "category": many}, "own")


def test_many_problems_are_told_in_one_message() -> None:
    parts = [{"name": f"c{n}", "odd": 1} for n in range(9)]
    with pytest.raises(BadFile, match=r"c0: no key odd.*and 4 more"):
        taxonomy_of({"name": "x", "category": parts}, "own")


def test_a_study_uses_its_own_and_medhelms_again_and_the_record_is_whole(
    engine: Engine, tmp_path: Path, write: Write
) -> None:
    import_small(engine, tmp_path)
    own = read_taxonomy(write("ward.toml", WARD))
    assert categories(engine) == {"visits": ""}
    assert use_taxonomy(engine, own, "coordinator")
    assert not use_taxonomy(engine, own, "coordinator")
    assert categories(engine) == {"visits": "Notes"}
    assert study_taxonomy(engine) == own
    assert set_place(OPERATOR, engine, "visits", TaxonomyPlace("Notes", "Discharge / Surgery"))
    with pytest.raises(Conflict, match="visits: was placed in Notes / Discharge / Surgery"):
        use_taxonomy(engine, None, "coordinator")
    assert set_place(OPERATOR, engine, "visits", TaxonomyPlace())
    assert use_taxonomy(engine, None, "coordinator")
    assert study_taxonomy(engine) == MEDHELM
    assert not verify(engine).findings


def test_only_a_coordinator_chooses_and_clinicians_see_none(engine: Engine) -> None:
    for role in (Role.RESEARCHER, Role.CLINICIAN):
        with pytest.raises(NotAllowed):
            choose_taxonomy(Person(7, "Rita", role), engine, None, "account 7")


def test_the_commands_show_check_and_use(
    run: Run, engine: Engine, tmp_path: Path, write: Write
) -> None:
    import_small(engine, tmp_path)
    code, out, _ = run("study", "taxonomy", "show", "--json", "-")
    body = json.loads(out)
    assert (code, body["counts"]["leaves"], len(body["benchmarks"])) == (0, 22, 46)
    assert body["coverage"]["not_placed"] == ["visits"]
    own = write("ward.toml", WARD)
    assert run("study", "taxonomy", "check", str(own))[1].startswith(
        "ward.toml: sound. Ward tasks: 2 categories, 1 subcategory, 2 lines of tasks that name 3"
    )
    code, _, told = run("study", "taxonomy", "check", str(write("bad.toml", "name = 1")))
    assert code == 2
    assert "bad.toml" in told
    assert "Traceback" not in told
    assert run("study", "taxonomy", "use", str(own))[0] == 0
    code, out, _ = run("study", "taxonomy", "show", "--tasks", "--benchmarks")
    assert code == 0
    assert "visits" in out
    assert "MedHELM" not in out
    assert run("study", "taxonomy", "use")[0] == 2
    assert run("study", "taxonomy", "use", "--shipped")[0] == 0
    assert study_coverage(engine).taxonomy == MEDHELM


def test_a_picture_is_written(run: Run, engine: Engine, tmp_path: Path) -> None:
    to = tmp_path / "coverage.svg"
    assert run("study", "taxonomy", "show", "--svg", str(to))[0] == 0
    assert to.read_text("utf-8").startswith("<svg")
    assert "Planning Treatments" in to.read_text("utf-8")
