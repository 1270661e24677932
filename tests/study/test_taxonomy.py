"""The shipped taxonomy is what its sources say, and a study's benchmarks stand in it."""

from pathlib import Path

from kit.studies import import_small
from sqlalchemy import Engine

from calibration.tables.taxonomy import coverage_table
from data.person import OPERATOR
from data.study.responses import TaxonomyPlace
from data.study.standing import benchmarks
from data.study.steering import set_place
from data.taxonomy import medhelm_taxonomy
from medjury.services.taxonomy import coverage

MEDHELM = medhelm_taxonomy()


def test_medhelms_taxonomy_has_the_numbers_of_its_sources() -> None:
    lines = [task for place in MEDHELM.places() for task in place.part.tasks]
    assert (len(MEDHELM.categories), len(MEDHELM.leaves()), len(lines)) == (5, 22, 56)
    assert (sum(len(task.single) for task in lines), len(MEDHELM.benchmarks)) == (118, 46)
    assert MEDHELM.published["tasks"] == 121
    assert sum(MEDHELM.published["affiliations"].values()) == MEDHELM.published["clinicians"] == 29
    assert all(one.definition and one.counts_when and one.performer for one in MEDHELM.categories)
    assert all(place.part.tasks for place in MEDHELM.leaves())


def test_the_lists_have_35_37_and_46_benchmarks_and_15_of_22_leaves_have_one() -> None:
    found, listed = coverage(), {}
    for name, total in (("paper", 35), ("helm", 37), ("medhelm", 46)):
        listed[name] = {one.name for one in MEDHELM.benchmarks if name in one.lists}
        assert len(listed[name]) == sum(row.listed.get(name, 0) for row in found.rows) == total
    assert listed["paper"] < listed["helm"] < listed["medhelm"] == {*MEDHELM.place_of()}
    assert listed["helm"] - listed["paper"] == {"med_qa", "med_mcqa"}
    assert (found.leaves, found.once) == (22, {"paper": 15, "helm": 15, "medhelm": 14})
    assert found.empty == dict.fromkeys(listed, 0)


def test_where_the_studys_benchmarks_stand(engine: Engine, tmp_path: Path) -> None:
    import_small(engine, tmp_path)
    assert coverage(benchmarks(engine)).not_placed == ("visits",)
    unplaced = coverage_table(coverage(benchmarks(engine)), True)
    assert unplaced.notes[-1].text == "Not placed: visits"
    place = TaxonomyPlace("Clinical Note Generation", "Documenting Patient Visits")
    assert set_place(OPERATOR, engine, "visits", place)
    assert [one.place[0] for one in benchmarks(engine)] == ["Clinical Note Generation"]
    found = coverage(benchmarks(engine))
    assert found.not_placed == ()
    rows = coverage_table(found, True).groups[1].rows
    assert ("Documenting Patient Visits", "9", "3", "3", "3", "visits") in rows
