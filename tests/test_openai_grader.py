"""OpenAI's graders: the form of the SDK's types, and nothing claimed that was not validated."""

import json

import pytest
from kit.exported_panels import RECORD, ROWS
from openai.types.graders import MultiGrader, ScoreModelGrader

from data.errors import BadInput
from data.rubric import NO_REFERENCE, read_rubric, shipped
from jury.exports.export import Export
from jury.exports.openai_grader import write
from jury.panel import Panel, read_panel

GENERIC = read_rubric("generic")


def files(rubric: str = "generic") -> dict[str, str]:
    return write(Export(read_rubric(rubric), read_panel("current"), ROWS, RECORD))


@pytest.mark.parametrize("name", shipped())
def test_each_criterion_is_a_grader_of_the_sdks_type(name: str) -> None:
    found, rubric = files(name), read_rubric(name)
    for criterion in rubric.criteria:
        one = ScoreModelGrader.model_validate_json(found[f"gpt/{criterion}.json"], strict=True)
        assert one.range == [rubric.scale.min, rubric.scale.max]
        assert not one.model_extra
        assert not (one.sampling_params and one.sampling_params.model_extra)
        content = one.input[0].content
        assert isinstance(content, str)
        assert f"{criterion}: " in content
        assert "{{sample.output_text}}" in content
        assert "{{response}}" not in content
        assert "{{criteria}}" not in content
        assert "one whole number on the scale 1-5" in content


def test_the_multi_grader_is_the_mean_of_the_criteria() -> None:
    body = json.loads(files()["gpt/multi.json"])
    assert body["calculate_output"] == "(c1_accuracy + c2_completeness + c3_clarity) / 3"
    assert list(body["graders"]) == ["c1_accuracy", "c2_completeness", "c3_clarity"]
    for one in body["graders"].values():  # the SDK's type knows one grader, the service several
        found = MultiGrader.model_validate(body | {"graders": one}, strict=True)
        assert isinstance(found.graders, ScoreModelGrader)
        assert not found.model_extra


def test_items_hold_each_instance_once_and_say_where_no_reference_is() -> None:
    items = [json.loads(line)["item"] for line in files()["items.jsonl"].splitlines()]
    assert [one["instance_id"] for one in items] == ["visits/i1", "visits/i2"]
    assert [one["reference"] for one in items] == ["Angina.", NO_REFERENCE]
    assert "response" not in items[0]


def test_every_file_says_that_the_graders_are_not_what_was_validated() -> None:
    told = write(Export(GENERIC, read_panel("current"), ROWS, RECORD | {"status": "validated"}))
    assert "NOT VALIDATED" in told["README.md"]
    assert "The jurors claude, llama are left out." in told["README.md"]
    for name, text in told.items():
        if name.startswith("gpt/"):
            assert json.loads(text)["name"].endswith("not validated")


def test_a_panel_without_a_model_of_openai_is_refused() -> None:
    others = [one for one in read_panel("current").juror if one.name != "gpt"]
    panel = Panel.model_validate(
        {"name": "p", "juror": [one.model_dump(by_alias=True) for one in others]}
    )
    with pytest.raises(BadInput, match="no juror at api"):
        write(Export(GENERIC, panel, ROWS, RECORD))


def test_a_rubric_that_openai_would_read_as_a_template_is_refused() -> None:
    odd = GENERIC.model_copy(update={"prompt": GENERIC.prompt + "{{ item.response }}"})
    with pytest.raises(BadInput, match="reads as a template"):
        write(Export(odd, read_panel("current"), ROWS, RECORD))
