"""A whole study in Chromium, from an empty folder to its report and its lock: by the app alone."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kit import agreement_screen, screens, wiretap
from kit.browsers import LAPTOP, PATIENCE_MS, new_context, sign_in, wait_for_count, wait_settled
from kit.jurors import Do, Seen, Stub, verdict
from kit.servers import Server, created
from kit.studies import HEAD
from playwright.sync_api import Browser, Page, expect

from data.database import open_study
from data.person import OPERATOR
from data.rubrics.pairs import read_pairs
from data.study.steering import standing
from data.study.verify import acts

MODELS = ("gpt-9-secret", "llama-hidden")

# low accuracy asks for a line of comment: none here
READINGS = {"dr-one": ("313", "344", "554", "322", "433", "545")}

READINGS["dr-two"] = ("332", "434", "545", "321", "543", "455")

VERDICTS = {"a-model": (2, 3, 5, 1, 4, 4), "b-model": (1, 4, 4, 2, 3, 5)}

NOTE = re.compile(r"Note (\d) of the visit")


def responses() -> str:
    """Return a file of six responses, two to each of three dialogues."""
    rows = [HEAD]
    rows += [
        f"inst-hidden-{n // 2},visits,[doctor] Any fever? Visit {n // 2}.,Write the note.,,"
        f"resp-hidden-{n},{MODELS[n % 2]},Note {n} of the visit: no fever."
        for n in range(6)
    ]
    return "\n".join(rows) + "\n"


def juror(seen: Seen) -> Do:
    """Score a note as the juror finds it; of a probe's answers the good ones five, all else two."""
    if found := NOTE.search(seen.prompt):
        return Do(text=verdict(seen, VERDICTS[seen.model][int(found[1])]))
    is_good = any(pair.good in seen.prompt for pair in read_pairs("generic").pair)
    return Do(text=verdict(seen, 5 if is_good else 2))


pytestmark = pytest.mark.e2e
axe = screens.axe
CLINICIANS = ("dr-one", "dr-two")
HIDDEN = (*MODELS, "inst-hidden", "resp-hidden", "Lindqvist")
PLACE = "Documenting Patient Visits"


@dataclass(frozen=True)
class Begun:
    """A study just made by `medjury serve --create`, and what it printed."""

    server: Server
    code: str
    folder: Path

    def command(self, *arguments: str) -> dict[str, Any]:
        """Return the figures of a command on the study."""
        call = [sys.executable, "-m", "medjury", *arguments, "--json", "-"]
        env = os.environ | {"MEDJURY_DB": self.server.db_url}
        ran = subprocess.run(call, env=env, capture_output=True, text=True, check=True)
        told: dict[str, Any] = json.loads(ran.stdout)
        return told


@pytest.fixture
def begun(tmp_path):
    """Run `medjury serve --create` in an empty folder until the test is over."""
    with created(tmp_path) as (server, code):
        yield Begun(server, code, tmp_path)


def test_a_study_is_taken_from_nothing_to_its_report_and_lock_in_the_app_alone(browser, begun, axe):
    boss = entered(browser, begun)
    bring_in(boss)
    codes = invite(boss)
    design(boss)
    rate(browser, begun.server, codes)
    with Stub(juror) as stub:
        broken = hold_jury(boss, begun.server, stub, axe)
    jury = agree(boss, begun)
    hand_over(boss, begun.server, jury)
    broken += screens.violations(boss, axe)
    seal(boss, begun)
    broken += screens.violations(boss, axe)
    assert broken == []
    assert begun.command("study", "verify")["findings"] == []


def entered(browser: Browser, begun: Begun) -> Page:
    """Sign in as the coordinator with the code that the command printed."""
    page = new_context(browser, LAPTOP).new_page()
    page.goto(begun.server.address)
    page.get_by_label("Your sign-in code").fill(begun.code)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Next: Import responses").wait_for()
    return page


def bring_in(page: Page) -> None:
    """Import a file after a look at it, and give the benchmark its place in the taxonomy."""
    screens.open_part(page, "Notes")
    screens.upload(page, "answers.csv", responses())
    page.get_by_text("6 new responses to 3 new instances").wait_for()
    page.get_by_role("button", name="Import this file").click()
    page.get_by_text("answers.csv: 6 responses imported").wait_for()
    screens.unfold(page, "Place a benchmark in the taxonomy")
    screens.choose(page, "Category", "Clinical Note Generation")
    screens.choose(page, "Subcategory", PLACE)
    page.get_by_role("button", name="Save the category").click()
    page.get_by_text("The category of visits is saved").wait_for()


def invite(page: Page) -> dict[str, str]:
    """Add two clinicians with codes of their own; return these."""
    wait_settled(page)
    screens.open_part(page, "People")
    page.get_by_role("button", name="Add people").click()
    page.get_by_label("Names, one a line").fill("\n".join(CLINICIANS))
    page.get_by_text("Personal code", exact=True).click()
    page.get_by_role("button", name="Add", exact=True).click()
    handed = page.locator(".st-key-handed code")
    expect(handed).to_have_count(len(CLINICIANS))
    codes = dict(zip(CLINICIANS, handed.all_inner_texts(), strict=True))
    page.get_by_role("button", name="Put away").click()
    expect(handed).to_have_count(0)
    return codes


def design(page: Page) -> None:
    """Look at the plan that both clinicians rate everything, and store it."""
    wait_settled(page)
    screens.open_part(page, "Clinicians")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_text("6 responses to 3 instances").wait_for(timeout=4 * PATIENCE_MS)
    page.get_by_role("button", name="Store this design").click()
    page.get_by_text("assignments stored").wait_for()


def rate(browser: Browser, server: Server, codes: dict[str, str]) -> None:
    """Rate all in two browsers in turn; nothing tells either of authors or of anybody else."""
    pages = {who: new_context(browser).new_page() for who in CLINICIANS}
    heard = {who: wiretap.record(page) for who, page in pages.items()}
    for who, page in pages.items():
        sign_in(page, server, codes[who])
    totals = {who: shown(page) for who, page in pages.items()}
    for done in range(max(totals.values())):
        for who, page in pages.items():
            if done < totals[who]:
                one(page, who, done, totals[who])
    for who, page in pages.items():
        page.get_by_role("heading", name="Thank you").wait_for()
        page.context.close()
        told = b"".join(heard[who])
        others = [name for name in CLINICIANS if name != who]
        assert [name for name in (*HIDDEN, *others) if name.encode() in told] == []
        assert b"of the visit" in told


def shown(page: Page) -> int:
    """Return how many responses, hidden repeats with them, a clinician is to rate."""
    found = re.search(r"0 of (\d+) rated", page.locator(".mj-count").inner_text())
    assert found is not None
    return int(found[1])


def one(page: Page, who: str, done: int, total: int) -> None:
    """Rate the response that is shown, by keys."""
    wait_for_count(page, done, total)
    text = page.get_by_role("region", name="Response to rate").inner_text()
    found = NOTE.search(text)
    assert found is not None
    page.keyboard.type(READINGS[who][int(found[1])])
    page.keyboard.press("Control+Enter")


def hold_jury(page: Page, server: Server, stub: Stub, axe: str) -> list[str]:
    """Write a panel, try it, ask what it costs, and let it rate; return what breaks WCAG 2.2."""
    page.goto(f"{server.address}/jury")
    page.get_by_role("button", name="Edit a copy").click()
    screens.keep(page, screens.panel(stub))
    screens.sheet(page, "Jurors of the panel ours").wait_for()
    page.get_by_role("button", name="Probe the jurors").click()
    expect(screens.sheet(page, "Probe")).to_contain_text(
        "b-model-returned", timeout=screens.WAIT_MS
    )
    page.get_by_role("button", name="Estimate").click()
    expect(screens.sheet(page, "Estimate")).to_contain_text("all12", timeout=screens.WAIT_MS)
    screens.start(page)
    card = page.locator(".st-key-run-card")
    expect(card).to_contain_text("Run of the panel ours: complete", timeout=screens.WAIT_MS)
    expect(card).to_contain_text("12 of 12")
    screens.settle(page)
    return screens.violations(page, axe)


def agree(page: Page, begun: Begun) -> dict[str, Any]:
    """Open Agreement: its figures are the command's; return the jury's row."""
    page.goto(f"{begun.server.address}/agreement")
    page.get_by_test_id("stAlert").first.wait_for(timeout=agreement_screen.FIRST_MS)
    rows = {row["scorer"]: row for row in begun.command("analyse", "calibrate")["rows"]}
    agreement_screen.view(page, "Jurors")
    table = screens.sheet(page, "Agreement with the clinicians")
    for scorer, name in (("jury", "Jury"), ("juror:a", "a"), ("juror:b", "b")):
        figure = f"{name}{rows[scorer]['icc']:.3f}"
        expect(table).to_contain_text(figure, timeout=agreement_screen.FIRST_MS)
    assert rows["jury"]["n_responses"] == 6
    assert rows["jury"]["n_clinicians"] == 2
    return rows["jury"]


def hand_over(page: Page, server: Server, jury: dict[str, Any]) -> None:
    """Save the report, the table, and the rubric, which nothing here validates."""
    wait_settled(page)
    agreement_screen.view(page, "Result")
    page.get_by_role("button", name="Make the report").click()
    page.get_by_role("button", name="Report to read and print").wait_for(timeout=screens.WAIT_MS)
    report = agreement_screen.downloaded(page, "Report to read and print").decode()
    assert f"{jury['icc']:.3f}" in report
    assert [name for name in MODELS if name in report] == []
    assert "Content-Security-Policy" in report
    lines = agreement_screen.downloaded(page, "Table as CSV").decode()
    table = csv.DictReader(io.StringIO(lines))
    assert {float(row["icc"]) for row in table if row["scorer"] == "jury"} == {jury["icc"]}
    page.goto(f"{server.address}/export")
    page.get_by_role("button", name="Make the files").click()
    expect(page.get_by_text("Not validated", exact=True)).to_be_visible(timeout=screens.WAIT_MS)
    expect(page.get_by_text("too few data for the verdict").first).to_be_visible()
    packed = zipfile.ZipFile(io.BytesIO(agreement_screen.downloaded(page, "Save the files")))
    told = "".join(packed.read(name).decode() for name in packed.namelist())
    assert '"status": "not validated"' in told
    assert '"status": "validated"' not in told
    assert "too few data for the verdict" in told


def seal(page: Page, begun: Begun) -> None:
    """Check the record; lift the blind and lock, but not without the words."""
    engine = open_study(begun.server.db_url)
    screens.open_part(page, "Record")
    page.get_by_role("button", name="Check now").click()
    page.get_by_text("Whole: no findings.").wait_for()
    page.get_by_label("Reason for lifting the blind").fill("The ratings are in")
    page.get_by_role("button", name="Lift the blind").click()
    page.get_by_role("alert").filter(has_text="Not lifted").wait_for()
    assert acts(engine, "unblinded") == []
    page.get_by_label("Type unblind to confirm").fill("unblind")
    page.get_by_role("button", name="Lift the blind").click()
    page.get_by_role("button", name="Save who wrote what").wait_for(timeout=screens.WAIT_MS)
    authors = agreement_screen.downloaded(page, "Save who wrote what").decode()
    assert [authors.count(name) for name in MODELS] == [3, 3]
    assert acts(engine, "unblinded")[0].actor.startswith("account ")
    page.get_by_role("button", name="Lock the study").click()
    page.get_by_role("alert").filter(has_text="Not locked").wait_for()
    assert standing(OPERATOR, engine).locked is None
    page.get_by_label("Type lock to confirm").fill("lock")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Lock the study").click()
    page.get_by_role("heading", name="Reopen the study").wait_for()
    assert standing(OPERATOR, engine).locked is not None
    engine.dispose()
    screens.settle(page)
