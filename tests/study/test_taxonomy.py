"""The shipped taxonomy is what its sources say, and a study's benchmarks stand in it."""

from kit.studies import import_small

from calibration.tables.taxonomy import coverage_table
from data.files import read_toml
from data.person import OPERATOR
from data.study.standing import benchmarks
from data.study.steering import set_place
from data.taxonomy import BENCHMARKS, SHIPPED, known_places, medhelm_places, subcategories
from medjury.services.taxonomy import coverage

PLACES = medhelm_places()


def test_medhelms_taxonomy_has_the_numbers_of_its_sources():
    body = read_toml(SHIPPED)
    parts = [part for category in body["category"] for part in category["subcategory"]]
    assert (len(subcategories()), len(parts)) == (5, 22)
    assert [at.subcategory for at in PLACES if at.is_leaf] == [part["name"] for part in parts]
    assert sum(len(part["tasks"]) for part in parts) == 56
    assert sum(at.tasks for at in PLACES) == 118
    assert body["published"]["tasks"] == 121
    affiliations = body["published"]["affiliations"]
    assert sum(affiliations.values()) == body["published"]["clinicians"] == 29
    said = ("definition", "counts_when", "performer")
    assert all(category[name] for category in body["category"] for name in said)
    assert all(at.tasks for at in PLACES if at.is_leaf)


def test_the_lists_have_35_37_and_46_benchmarks_and_15_of_22_leaves_have_one():
    found, listed = coverage(), {}
    for name, total in (("paper", 35), ("helm", 37), ("medhelm", 46)):
        every = (one for at in PLACES for one in at.benchmarks.items())
        listed[name] = {one for one, lists in every if name in lists}
        assert len(listed[name]) == sum(row.listed.get(name, 0) for row in found.rows) == total
    named = {one["name"] for one in read_toml(BENCHMARKS)["benchmark"]}
    assert listed["paper"] < listed["helm"] < listed["medhelm"] == {*known_places()} == named
    assert listed["helm"] - listed["paper"] == {"med_qa", "med_mcqa"}
    assert (found.leaves, found.once) == (22, {"paper": 15, "helm": 15, "medhelm": 14})
    assert found.empty == dict.fromkeys(listed, 0)


def test_where_the_studys_benchmarks_stand(engine, tmp_path):
    import_small(engine, tmp_path)
    assert coverage(benchmarks(engine)).not_placed == ("visits",)
    unplaced = coverage_table(coverage(benchmarks(engine)), True)
    assert unplaced.notes[-1].text == "Not placed: visits"
    place = ("Clinical Note Generation", "Documenting Patient Visits")
    assert set_place(OPERATOR, engine, "visits", *place)
    assert [one.place[0] for one in benchmarks(engine)] == ["Clinical Note Generation"]
    found = coverage(benchmarks(engine))
    assert found.not_placed == ()
    rows = coverage_table(found, True).groups[1].rows
    assert ("Documenting Patient Visits", "9", "3", "3", "3", "visits") in rows
