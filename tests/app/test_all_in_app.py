"""What a researcher needs stands in the app: each command has its control there."""

import io
import re
import zipfile
from dataclasses import replace
from functools import cache
from urllib.parse import parse_qsl

import pytest
from kit.browsers import RITA, drawn_page, screen_of
from kit.commands import command
from kit.studies import AUTHOR, fill, rated

from annotate.navigation import study as served
from annotate.screens.agreement import routing
from annotate.screens.export import files
from annotate.screens.setup.notes import measured
from calibration.routing import NONE_TO_KEEP, Harm, RouteQuestion
from data.errors import BadInput, Conflict, NotAllowed
from data.person import OPERATOR
from data.schema import Role
from data.study import steering
from data.study.package import package_bytes
from data.study.people import add_people
from data.study.runs import keep_panel
from jury.panel import Panel, panel_toml
from medjury.services import importing
from medjury.services.importing import Upload
from medjury.services.routing import RuleToKeep, keep_shown, kept_rules, route

SEATED = {"provider": "openai", "family": "stub", "base_url": "http://127.0.0.1:9/v1"}
LABELS = re.compile(r'^ *(?:label|options|content): "((?:[^"\\]|\\.)*)"', re.MULTILINE)
MANAGED = "people: Manage"
MANAGE = """
from annotate.navigation import study
from annotate.screens.home.people import manage_person
from data.study import people
from data.person import OPERATOR
member = next(one for one in people.people(OPERATOR, study()) if one.role == "clinician")
manage_person(study(), OPERATOR, member, 1)
"""

# Command -> the address of a screen that computes no figures, and a control that is drawn there.
DRAWN = {
    "study import": ("setup?part=Notes", "File"),
    "study pairs": ("setup?part=Notes", "Make the pairs"),
    "study describe": ("setup?part=Description", "Title"),
    "study plan": ("setup?part=Goal", "Make the plan"),
    "study protocol set": ("setup?part=Goal", "Commit to this protocol"),
    "study rubric show": ("setup?part=Rubric", "Prompt of the jurors, word for word"),
    "study rubric add": ("setup?part=Rubric", "Add the new version"),
    "study settings": ("setup?part=Settings", "Save the settings"),
    "study blind": ("setup?part=Blinding", "Blinding: done"),
    "study unblind": ("export?view=Record", "Lift the blind"),
    "rate flags": ("home", "To do"),
    "study lock": ("export?view=Record", "Lock the study"),
    "study verify": ("export?view=Record", "Check now"),
    "study backup": ("export?view=Files", "Make a backup"),
    "study points": ("setup?part=Rubric", "File of points"),
    "rate people list": ("home?view=People", "Add people"),
    "rate people add": ("home?view=People", "Add people"),
    "rate people end": (MANAGED, "Shut out"),
    "rate people change": (MANAGED, "Hospital e-mail"),
    "rate withdraw": (MANAGED, "Withdraw all ratings"),
    "rate assign": ("setup?part=Clinicians", "Show the plan"),
    "rate training": ("setup?part=Training", "File of experts' scores"),
    "rate ratings": ("setup?part=Notes", "Ratings made elsewhere"),
    "jury panels": ("jury", "Edit a copy"),
    "jury run": ("jury", "Run the jury"),
    "jury probe": ("jury", "Probe the jurors"),
    "jury missing": ("jury", "Estimate"),
    "analyse measure": ("setup?part=Notes", "Compute"),
    "share export": ("export?view=Files", "Pack the study"),
    "share rubric": ("export", "Make the files"),
}


@pytest.fixture(scope="module")
def labels(study, tmp_path_factory):
    """Return what draws a screen of a rated study for a coordinator, once, and tells its controls."""
    rated(command(study), tmp_path_factory.mktemp("files"), n=3)
    jurors = [SEATED | {"name": name, "model": name} for name in ("gpt", "llama")]
    heard = Panel.model_validate({"name": "heard", "juror": jurors})
    keep_panel(OPERATOR, study, heard.name, panel_toml(heard))
    add_people(OPERATOR, study, ["dr-new"], Role.CLINICIAN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDJURY_DB", study.url.render_as_string(hide_password=False))
        yield cache(_labels)
        served().dispose()


def _labels(address):
    """Draw a screen and return the labels of its controls and of what they let one choose."""
    screen, _, parameter = address.partition("?")
    page = (
        drawn_page(MANAGE)
        if address == MANAGED
        else screen_of(screen, **dict(parse_qsl(parameter)))
    )
    page.run()
    assert not page.exception, [error.value for error in page.exception]
    roots = page._tree.children.values()  # a dialog stands beside the main part
    drawn = "\n".join(str(part.proto) for root in roots for part in root)
    tabs = [tab.label for tab in page.tabs]
    return {label.replace("\\'", "'") for label in LABELS.findall(drawn)} | {*tabs}


@pytest.mark.parametrize("name", DRAWN)
def test_a_command_has_a_control_on_the_screen_that_is_drawn(name, labels):
    address, control = DRAWN[name]
    assert control in labels(address), sorted(labels(address))


def test_metrics_are_measured_in_the_app_and_none_that_is_unknown(run, engine, tmp_path):
    rated(run, tmp_path, n=12)
    [scored] = measured(OPERATOR, engine, ("rouge-l",)).result(120)
    assert (scored.name, len(scored.rows), scored.total) == ("rouge-l", 12, 12)
    with pytest.raises(BadInput, match="choose from rouge-l and bertscore"):
        measured(OPERATOR, engine, ("bleu",)).result(120)


def test_a_rule_is_kept_in_the_app_as_it_was_shown_or_not_at_all(run, engine, tmp_path):
    fill(run, tmp_path, rated=80)
    question = RouteQuestion(Harm("low", 2.0), 0.3, 0.9)
    rule = RuleToKeep(question, route(engine, question).fingerprint, "ward", "account 7")
    assert keep_shown(engine, rule) == kept_rules(engine)[0].sha256
    tight = replace(question, bound=0.001)
    late = replace(rule, name="late", fingerprint="of others")
    for refused, error, words in (
        *((rule, Conflict, "kept already"), (late, Conflict, "route again, then keep it")),
        (replace(rule, name="tight", question=tight), BadInput, NONE_TO_KEEP),
    ):
        with pytest.raises(error, match=words):
            keep_shown(engine, refused)
    with pytest.raises(NotAllowed):
        routing.kept(RITA, engine, rule)
    assert [one.name for one in kept_rules(engine)] == ["ward"]


def test_a_package_from_the_app_is_the_command_s_and_names_no_author(run, engine, tmp_path):
    rated(run, tmp_path, n=3)
    place = tmp_path / "package.zip"
    assert run("share", "export", "--package", str(place))[0] == 0
    ours = zipfile.ZipFile(io.BytesIO(package_bytes(engine, "without")))
    theirs = zipfile.ZipFile(place)
    assert ours.namelist() == theirs.namelist()
    for name in ours.namelist():
        assert ours.read(name) == theirs.read(name)
        assert AUTHOR.encode() not in ours.read(name)


def test_a_list_of_responses_names_no_author(small_study):
    text = files.listed(steering.response_names(RITA, small_study)).decode("utf-8-sig")
    expected = [f"r{i}{n},visits,i{i}" for i in (1, 2) for n in (1, 2)]
    assert text.splitlines() == ["response_id,benchmark,instance_id", *expected]


def test_the_templates_are_read_by_an_import_as_they_are(engine):
    kinds = (files.RESPONSES, files.RATINGS)
    responses, ratings = (Upload("rows.csv", files.template(one), "", "") for one in kinds)
    assert importing.bring_response_file(engine, OPERATOR, responses) == (1, 0)
    assert importing.bring_rating_file(engine, OPERATOR, ratings).added == 1
