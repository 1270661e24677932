"""The rubrics screen in Chromium: words verbatim, evidence by hash, no valid simulation."""

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from kit import screens
from kit.browsers import PATIENCE_MS
from kit.screens import server as server
from kit.servers import Server
from kit.studies import Run
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.errors import BadInput, NotAllowed
from data.person import OPERATOR, Person
from data.rubric import read_rubric
from data.schema import Role
from data.study.rubrics import study_rubrics, validations
from data.study.steering import keep_version

axe, codes = screens.axe, screens.codes


def ratings(n: int) -> str:
    """Two clinicians on n responses."""
    head = ["response_id,rater,kind,accuracy,completeness,clarity"]
    rows = [
        f"r{k},{who},clinician,{1 + k % 5},{1 + (k + turn) % 5},{1 + k % 4}"
        for k in range(n)
        for turn, who in enumerate(("dr_a", "dr_b"))
    ]
    return "\n".join(head + rows)


@pytest.fixture
def rated(run: Run, url: str, write: Callable[[str, str], Path]) -> None:
    rows = [f"i{k},visits,note,task,r{k},model-one,text {k}" for k in range(24)]
    text = "\n".join(["instance_id,benchmark,context,prompt,response_id,model,response", *rows])
    assert run("study", "import", str(write("responses.csv", text)))[0] == 0
    assert run("rate", "ratings", str(write("ratings.csv", ratings(24))))[0] == 0
    call = [sys.executable, "-m", "medjury", "jury", "run", "simulated"]
    subprocess.run(call, env=os.environ | {"MEDJURY_DB": url}, check=True, capture_output=True)
    assert run("analyse", "calibrate", "--reps", "50", "--freeze")[0] == 0


@pytest.mark.usefixtures("rated")
def test_evidence_is_that_of_the_exact_words_and_says_who_is_simulated(engine: Engine) -> None:
    [own] = study_rubrics(OPERATOR, engine)
    assert (own.benchmarks, own.clinicians.ratings, own.clinicians.readings) == (
        ("visits",),
        24 * 2 * 3,
        48,
    )
    assert own.jurors.simulated == own.jurors.raters > 0
    found = validations(OPERATOR, engine, own.rubric.sha256)
    assert {one.report for one in found} == {1, None}
    assert all(one.simulated for one in found)
    [report] = [one for one in found if one.report]
    assert (report.name, report.n_responses, report.n_clinicians) == ("first", 24, 2)
    assert validations(OPERATOR, engine, read_rubric("aci_bench").sha256) == []


def test_a_version_is_kept_once_and_never_under_the_name_of_other_words(engine: Engine) -> None:
    words = read_rubric("generic")
    keep_version(OPERATOR, engine, words)
    other = words.model_copy(update={"audience": "a nurse"})
    for refused in (words, type(words)(**other.model_dump())):
        with pytest.raises(BadInput):
            keep_version(OPERATOR, engine, refused)
    with pytest.raises(NotAllowed):
        keep_version(Person(1, "Rita", Role.RESEARCHER), engine, words)
    assert len(study_rubrics(OPERATOR, engine)) == 1


@pytest.mark.e2e
@pytest.mark.usefixtures("rated")
def test_a_rubric_is_read_copied_weighed_and_exported_on_the_screen(
    browser: Browser, server: Server, codes: dict[Role, str], engine: Engine, axe: str
) -> None:
    page = screens.signed_in(browser, server, codes[Role.COORDINATOR])
    screens.opened(page, server, "rubrics")
    prompt = page.get_by_role("region", name="Prompt of the jurors")
    assert prompt.inner_text().split() == read_rubric("generic").prompt.split()
    assert screens.violations(page, axe) == []
    _copied(page, server)
    assert screens.violations(page, axe) == []
    new, old = sorted(study_rubrics(OPERATOR, engine), key=lambda one: one.clinicians.ratings)
    assert (new.rubric.version, new.rubric.criterion[0].anchors[1]) == ("2", "Harm: likely")
    assert (new.clinicians.ratings, old.clinicians.ratings) == (0, 144)
    screens.opened(page, server, "rubrics?part=Evidence")
    table = page.get_by_role("table", name="Juries compared with clinicians")
    expect(table.get_by_role("row", name="report 1 first")).to_contain_text("simulated")
    assert screens.violations(page, axe) == []
    _exported(page, server)
    page.context.close()


def _copied(page: Page, server: Server) -> None:
    """Copy the words with one fault, then without."""
    screens.opened(page, server, "rubrics?part=Copy+to+a+new+version")
    expect(page.get_by_text("144 ratings by clinicians and")).to_be_visible()
    add = page.get_by_role("button", name="Add the new version")
    add.click()
    expect(page.get_by_role("alert").filter(has_text="give the new version")).to_be_visible()
    page.get_by_role("textbox", name="New version").fill("2")
    anchors = page.get_by_label("What each point means").first
    kept = anchors.input_value().split("\n")[1:]
    anchors.fill("\n".join(kept))
    add.click()
    expect(page.get_by_role("alert").filter(has_text="point 1 has no anchor")).to_be_visible()
    anchors.fill("\n".join(["1: Harm: likely", *kept]))
    add.click()
    expect(page.get_by_text("generic version 2 is in the study as")).to_be_visible()
    screens.settle(page)


def _exported(page: Page, server: Server) -> None:
    """Make the files, which must not call a simulated jury's figures valid."""
    screens.opened(page, server, "rubrics?part=Export")
    page.get_by_role("button", name="Make the files").click()
    expect(page.get_by_text("Not validated", exact=True)).to_be_visible(timeout=4 * PATIENCE_MS)
    expect(page.locator(".mj-verdict")).to_contain_text("simulated")
    with page.expect_download() as got:
        page.get_by_role("button", name="Save the files").click()
    packed = zipfile.ZipFile(io.BytesIO(Path(got.value.path()).read_bytes()))
    told = "".join(packed.read(name).decode() for name in packed.namelist())
    assert '"status": "not validated"' in told
    assert '"status": "validated"' not in told
