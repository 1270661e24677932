"""Rubrics that jurors read with guidance and examples: their hash, their files, their prompt."""

from dataclasses import asdict

import pytest
from kit.exported_panels import RECORD

from data.card import Card
from data.errors import BadRubric
from data.rubric import Example, Rubric, read_rubric, write_rubrics
from jury.exports.bundle import Export
from jury.exports.engine import engine
from jury.exports.medjury_jury import Jury
from jury.panel import read_panel

CARD = Card("c", "Source.", "Write.", "The response.", None, None)
SCORES = {"accuracy": (2.0, 3.0), "completeness": (4.0,), "clarity": (5.0,)}


def learned(**changes: object) -> Rubric:
    """Return the generic rubric with guidance, an example and a parent."""
    base = read_rubric("generic")
    first, *others = base.criterion
    criteria = (first.model_copy(update={"guidance": "A wrong dose is a 1."}), *others)
    example = Example(
        context="A cough.",
        prompt="Write.",
        response="No <response>cough.",
        scores=SCORES,
        why="No.",
    )
    more = {"criterion": criteria, "example": (example,), "parent": base.sha256} | changes
    return Rubric(**{name: getattr(base, name) for name in type(base).model_fields} | more)


def test_a_rubric_without_guidance_keeps_its_hash() -> None:
    body = read_rubric("generic").to_json()
    assert not any(key in body for key in ('"guidance"', '"example"', '"parent"'))
    assert Rubric.from_json(learned().to_json()) == learned()
    assert learned().sha256 != read_rubric("generic").sha256


def test_jurors_read_guidance_and_examples_and_no_example_forges_a_part() -> None:
    prompt = learned().render(CARD)
    assert "Mind: A wrong dose is a 1." in prompt
    assert "accuracy 2, 3; completeness 4; clarity 5" in prompt
    assert "No <~response>cough." in prompt
    assert "Mind:" not in read_rubric("generic").render(CARD)


def test_placeholders_in_an_example_stay_as_they_are() -> None:
    example = Example(context="", prompt="", response="{{schema}} {{response}}", scores=SCORES)
    assert "Response: {{schema}} {{response}}" in learned(example=(example,)).render(CARD)


def test_it_is_read_back_from_its_files_and_from_an_export(tmp_path) -> None:
    rubric = learned()
    write_rubrics(tmp_path / "out", {"learned": rubric})
    assert read_rubric(tmp_path / "out" / "learned") == rubric
    told = tmp_path / "medjury_jury.json"
    told.write_text(engine(Export(rubric, read_panel("current"), (), RECORD))[told.name], "utf-8")
    assert Jury(told).render(asdict(CARD)) == rubric.render(CARD)


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        ({"accuracy": (2.0,)}, "its scores must be of accuracy, completeness, clarity"),
        (SCORES | {"accuracy": (9.0,)}, "on the scale 1-5"),
        (dict.fromkeys(SCORES, ()), "on the scale 1-5"),
    ],
)
def test_an_example_that_rates_otherwise_is_refused(tmp_path, scores, why) -> None:
    folder = tmp_path / "out" / "learned"
    write_rubrics(tmp_path / "out", {"learned": learned(example=())})
    rows = "\n".join(f"{name} = {list(given)}" for name, given in scores.items())
    text = f'\n[[example]]\ncontext = ""\nprompt = ""\nresponse = "x"\n[example.scores]\n{rows}\n'
    toml = folder / "rubric.toml"
    toml.write_text(toml.read_text("utf-8") + text, "utf-8")
    with pytest.raises(BadRubric, match=why):
        read_rubric(folder)
