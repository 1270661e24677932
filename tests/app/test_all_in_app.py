"""What a researcher needs stands in the app: each command has its place there, or a reason why not."""

import codecs
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from kit.browsers import RITA, drawn_page, end_computing, screen_of
from kit.commands import command
from kit.studies import AUTHOR, Run, fill, rated
from kit.study_place import all_rows
from sqlalchemy import Engine

from annotate.navigation import study as served
from annotate.screens.agreement import routing
from annotate.screens.export import files
from annotate.screens.setup.notes import measured
from calibration.routing import NONE_TO_KEEP, Harm, RouteQuestion
from calibration.values import AnalysisOptions, PlanOptions, PlanQuestion
from data.database import open_study
from data.errors import BadInput, Conflict, NotAllowed
from data.files import csv_bytes, frame_cells
from data.person import OPERATOR
from data.schema import Role
from data.study import steering
from data.study.moving import back_up
from data.study.package import package_bytes
from data.study.people import add_people
from data.study.runs import keep_panel
from data.study.verify import verify
from jury.panel import Panel, panel_toml
from medjury.services import importing, predicting
from medjury.services.importing import Upload
from medjury.services.measuring import METRICS
from medjury.services.planning import planned
from medjury.services.routing import RuleToKeep, keep_shown, kept_rules, route, route_kept

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
def labels(
    study: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], set[str]]]:
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
        end_computing()


def _labels(address: str) -> set[str]:
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
def test_a_command_has_a_control_on_the_screen_that_is_drawn(
    name: str, labels: Callable[[str], set[str]]
) -> None:
    address, control = DRAWN[name]
    assert control in labels(address), sorted(labels(address))


def test_predictions_and_metrics_are_the_command_s(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    rated(run, tmp_path, n=12)
    to = tmp_path / "predictions.csv"
    assert run("analyse", "predict", "--csv", str(to))[0] == 0
    body = csv_bytes(*predicting.csv_of(predicting.predict(engine, AnalysisOptions()).responses))
    assert body.removeprefix(codecs.BOM_UTF8) == to.read_bytes()
    assert AUTHOR.encode() not in body
    [scored] = measured(OPERATOR, engine, ("rouge-l",)).result(120)
    assert (scored.name, len(scored.rows), scored.total) == ("rouge-l", 12, 12)
    before = all_rows(engine)["rating"]
    assert "there already" in run("analyse", "measure", "rouge-l")[1]
    assert all_rows(engine)["rating"] == before
    with pytest.raises(BadInput, match="choose from rouge-l and bertscore"):
        measured(OPERATOR, engine, ("bleu",)).result(120)
    assert METRICS[0] == "rouge-l"


def test_a_rule_that_the_app_keeps_is_the_command_s_and_what_was_not_shown_is_not_kept(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    fill(run, tmp_path, rated=80)
    question = RouteQuestion(Harm("low", 2.0), 0.3, 0.9)
    shown = route(engine, question)
    rule = RuleToKeep(question, shown.fingerprint, "ward", "account 7")
    sha256 = keep_shown(engine, rule)
    _, out, _ = run(
        "analyse", "route", "--at-most", "2", "--bound", "0.3", "--keep", "own", "--json", "-"
    )
    assert json.loads(out)["kept"]["sha256"] == sha256
    assert [one.name for one in kept_rules(engine)] == ["ward", "own"]
    to = tmp_path / "routes.csv"
    assert run("analyse", "route", "--by", "ward", "--csv", str(to))[0] == 0
    body = csv_bytes(*frame_cells(route_kept(engine, "ward")))
    assert body.removeprefix(codecs.BOM_UTF8) == to.read_bytes()
    with pytest.raises(Conflict, match="kept already"):
        keep_shown(engine, rule)
    with pytest.raises(Conflict, match="route again, then keep it"):
        keep_shown(engine, replace(rule, name="late", fingerprint="of other ratings"))
    tight = replace(question, bound=0.001)
    assert not route(engine, tight).found.certified
    with pytest.raises(BadInput, match=NONE_TO_KEEP):
        keep_shown(engine, replace(rule, name="tight", question=tight))
    with pytest.raises(NotAllowed):
        routing.kept(RITA, engine, rule)
    assert len(kept_rules(engine)) == 2


def test_a_package_from_the_app_is_the_command_s_and_names_no_author(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    rated(run, tmp_path, n=3)
    place = tmp_path / "package.zip"
    assert run("share", "export", "--package", str(place))[0] == 0
    ours = zipfile.ZipFile(io.BytesIO(package_bytes(engine, "without")))
    theirs = zipfile.ZipFile(place)
    assert ours.namelist() == theirs.namelist()
    for name in ours.namelist():
        assert ours.read(name) == theirs.read(name)
        assert AUTHOR.encode() not in ours.read(name)


def test_what_is_taken_from_the_app_is_the_command_s_and_names_no_author(
    run: Run, small_study: Engine, tmp_path: Path
) -> None:
    text = files.listed(steering.response_names(RITA, small_study)).decode("utf-8-sig")
    expected = [f"r{i}{n},visits,i{i}" for i in (1, 2) for n in (1, 2)]
    assert text.splitlines() == ["response_id,benchmark,instance_id", *expected]
    _, out, _ = run("study", "plan", "--icc", "0.6", "--margin", "0.1", "--json", "-")
    plan = planned(small_study, PlanQuestion(PlanOptions(margin=0.1), icc=0.6))
    assert list(plan.told) == json.loads(out)["sentences"]
    assert back_up(small_study, tmp_path / "kept.db").findings == ()
    copy = open_study(f"sqlite:///{tmp_path / 'kept.db'}")
    assert all_rows(copy)["response"] == all_rows(small_study)["response"]
    assert verify(copy).findings == ()
    copy.dispose()


def test_the_templates_are_read_by_an_import_as_they_are(engine: Engine) -> None:
    kinds = (files.RESPONSES, files.RATINGS)
    responses, ratings = (Upload("rows.csv", files.template(one), "", "") for one in kinds)
    assert importing.bring_response_file(engine, OPERATOR, responses) == (1, 0)
    assert importing.bring_rating_file(engine, OPERATOR, ratings).added == 1
