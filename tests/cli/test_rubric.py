"""Rubrics: read from files, known by hash, filled in one pass, and strict about scores."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.studies import Run

from data.card import Card
from data.errors import BadRubric, OffScale, Unknown
from data.rubric import Rubric, read_rubric, write_rubrics

OWN = """
name = "bedside"
version = 2
audience = "nurses"
gold = "never"
[scale]
min = -2
max = 2
[[criterion]]
name = "kindness"
question = "Is it kind?"
anchors = {"-2" = "harsh", "-1" = "curt", "0" = "plain", "1" = "warm", "2" = "kind"}
"""


def own(folder: Path, toml: str = OWN, prompt: str = "Rate {{response}}") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "rubric.toml").write_text(toml)
    (folder / "prompt.txt").write_text(prompt)
    return folder


@pytest.mark.parametrize("name", ["generic", "aci_bench", "medi_qa", "chw_care_plan"])
def test_a_shipped_rubric_anchors_every_point_of_one_to_five(name: str) -> None:
    rubric = read_rubric(name)
    assert rubric.name == name
    assert all(sorted(one.anchors) == [1, 2, 3, 4, 5] for one in rubric.criterion)
    assert all(len(set(one.anchors.values())) == 5 for one in rubric.criterion)


def test_an_own_rubric_may_have_negative_points(tmp_path: Path) -> None:
    rubric = read_rubric(own(tmp_path / "own"))
    assert list(rubric.scale.points) == [-2, -1, 0, 1, 2]
    assert rubric.score("kindness", "-1.5", "dr_a", "r1") == -1.5
    kindness = rubric.json_schema()["properties"]["kindness"]
    assert kindness["properties"]["score"]["enum"] == [*range(-2, 3)]


def test_a_wide_scale_needs_only_its_two_ends_anchored(tmp_path: Path) -> None:
    wide = OWN.replace("min = -2", "min = 0").replace("max = 2", "max = 10")
    anchors = 'anchors = {"0" = "worst", "10" = "best"}'
    toml = "\n".join(anchors if line.startswith("anchors") else line for line in wide.split("\n"))
    assert len(read_rubric(own(tmp_path / "own", toml)).scale.points) == 11


def test_a_scale_too_wide_for_a_new_rubric_is_still_read_from_a_study(tmp_path: Path) -> None:
    wide = OWN.replace("max = 2", "max = 10000").replace('"2" =', '"10000" =')
    with pytest.raises(BadRubric, match="more than 1001 points"):
        read_rubric(own(tmp_path / "own", wide))
    body = read_rubric(own(tmp_path / "stored")).to_json()
    stored = body.replace('"max": 2', '"max": 10000').replace('"2": "kind"', '"10000": "kind"')
    assert Rubric.from_json(stored).score("kindness", "9999", "dr_a", "r1") == 9999


@pytest.mark.parametrize("mark", ['"', "'", '"""', "'''"])
def test_a_question_may_have_many_sentences_and_a_key_not_as_many_dots(
    tmp_path: Path, mark: str
) -> None:
    prose = f"{mark}{'Say it. ' * 220}{mark}  # {'So. ' * 220}"
    rubric = read_rubric(own(tmp_path / "own", OWN.replace('"Is it kind?"', prose)))
    assert rubric.criterion[0].question == "Say it. " * 220
    for key in (".".join(["a"] * 220), ".".join([f"{mark[0]}a{mark[0]}"] * 220)):
        hidden = f"x = [{mark}a{mark}{mark[0] * (len(mark) - 1)}, {{{key} = 1}}]\n"
        with pytest.raises(BadRubric, match="nested too deep"):
            read_rubric(own(tmp_path / "deep", f"# {mark}\n{hidden}# {mark}\n{OWN}"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"0" = "plain", ', "", "kindness: point 0 has no anchor"),
        ('"2" = "kind"', '"3" = "kind"', "anchor 3 is off the scale"),
        ("max = 2", "max = -2", "must be below max"),
        ('gold = "never"', 'gold = "sometimes"', "gold"),
        ("audience =", "audiance =", "audiance: unknown key; did you mean audience?"),
        ("max =", "maxx =", "scale.maxx: unknown key; did you mean max?"),
        ("question =", "qestion =", "criterion.0.qestion: unknown key; did you mean question?"),
        ("version = ", "zzzz = 1\nversion = ", "zzzz: unknown key; the keys here are name"),
        ('name = "kindness"', 'name = "kind ness"', "criterion"),
        ("[scale]", "[scale", "rubric"),
        (
            'name = "kindness"',
            'worth = {weight = 1, kind = "must", critical = false}\nname = "kindness"',
            "itself",
        ),
    ],
)
def test_a_wrong_rubric_is_refused_by_name(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(BadRubric) as refused:
        read_rubric(own(tmp_path / "own", OWN.replace(old, new)))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Rate it", "response.. is missing"),
        ("{{response}} {{author}}", "unknown placeholder"),
        ("{{response}} {{reference}}", "although gold"),
    ],
)
def test_a_wrong_prompt_is_refused(tmp_path: Path, prompt: str, said: str) -> None:
    with pytest.raises(BadRubric, match=said):
        read_rubric(own(tmp_path / "own", prompt=prompt))


def test_the_hash_changes_with_one_word_and_survives_storage(tmp_path: Path) -> None:
    rubric = read_rubric(own(tmp_path / "own"))
    assert read_rubric(own(tmp_path / "b", OWN.replace("curt", "cool"))).sha256 != rubric.sha256
    assert Rubric.from_json(rubric.to_json()).sha256 == rubric.sha256


@pytest.mark.parametrize("value", ["0", "6", "5.01", "nan", "inf", "", "four", "4/5", None])
def test_a_score_off_the_scale_is_refused_with_who_what_and_where(value: object) -> None:
    with pytest.raises(OffScale, match=r"clarity=.* by dr_a on r12: the scale of generic is 1-5"):
        read_rubric("generic").score("clarity", value, "dr_a", "r12")


def test_what_is_unknown_is_answered_with_what_is_known() -> None:
    with pytest.raises(Unknown, match="accuracy, completeness, clarity"):
        read_rubric("generic").score("kindness", 3, "dr_a", "r12")
    with pytest.raises(Unknown, match="generic"):
        read_rubric("no_such_rubric")


@given(text=st.text(), context=st.text())
def test_what_is_inserted_is_never_read_as_a_placeholder(text: str, context: str) -> None:
    marked = text + " $5 {x} {{context}} {{reference}}"
    prompt = read_rubric("generic").render(Card("c", context, "task", marked, reference="gold"))
    assert marked in prompt
    assert prompt.count("gold") >= 1


def test_a_rubric_that_never_uses_gold_never_shows_it() -> None:
    prompt = read_rubric("chw_care_plan").render(Card("c", "note", "task", "plan", "SECRET GOLD"))
    assert "SECRET GOLD" not in prompt


CRITICAL = OWN + "critical = -1\n"


def test_a_critical_criterion_is_read_hashed_shown_and_kept(tmp_path: Path, run: Run) -> None:
    plain, marked = read_rubric(own(tmp_path / "a")), read_rubric(own(tmp_path / "b", CRITICAL))
    write_rubrics(tmp_path / "out", {"bedside": marked})

    assert (plain.critical, marked.critical) == ((), (("kindness", -1.0),))
    assert plain.sha256 != marked.sha256
    assert "critical" not in plain.to_json()
    assert Rubric.from_json(marked.to_json()) == marked
    assert read_rubric(tmp_path / "out" / "bedside").sha256 == marked.sha256
    assert marked.criteria_text() == plain.criteria_text()  # no rater reads it
    said = run("study", "rubric", "show", str(tmp_path / "b"))[1]
    assert "critical: a response scored -1 or less on kindness is unsafe" in said


@pytest.mark.parametrize("points", ["2", "-3", '"low"', "true", "nan"])
def test_a_threshold_lies_on_the_scale_below_its_top(tmp_path: Path, points: str) -> None:
    with pytest.raises(BadRubric, match="critical") as refused:
        read_rubric(own(tmp_path / "own", OWN + f"critical = {points}\n"))
    assert "\n" not in str(refused.value)
