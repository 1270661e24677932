"""The shipped taxonomy is what its sources say, and a study's benchmarks stand in it."""

from pathlib import Path

from kit.studies import import_small
from sqlalchemy import Engine

from calibration.tables.taxonomy import coverage_table
from data.person import OPERATOR
from data.study.responses import TaxonomyPlace
from data.study.standing import PlacedBenchmark, categories, placed_benchmarks
from data.study.steering import set_place
from data.taxonomy import medhelm_taxonomy
from medjury.services.taxonomy import counts, coverage, to_json

MEDHELM = medhelm_taxonomy()


def test_medhelms_taxonomy_has_the_numbers_of_its_sources() -> None:
    assert counts() == {
        "categories": 5,
        "leaves": 22,
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
    found = coverage()
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
    found = coverage(own)
    assert [row.label for row in found.rows if row.study] == ["Documenting Patient Visits"]
    assert found.not_placed == ("ours",)
    table = coverage_table(found, True)
    assert ("Documenting Patient Visits", "9", "3", "3", "3", "aci_bench") in table.groups[1].rows
    assert table.notes[-1].text == "Not placed: ours"


def test_where_the_studys_benchmarks_stand(engine: Engine, tmp_path: Path) -> None:
    import_small(engine, tmp_path)
    body = to_json(placed_benchmarks(engine))
    assert (body["counts"]["leaves"], len(body["benchmarks"])) == (22, 46)
    assert body["coverage"]["not_placed"] == ("visits",)
    place = TaxonomyPlace("Clinical Note Generation", "Documenting Patient Visits")
    assert set_place(OPERATOR, engine, "visits", place)
    assert categories(engine) == {"visits": "Clinical Note Generation"}
    assert to_json(placed_benchmarks(engine))["coverage"]["not_placed"] == ()
