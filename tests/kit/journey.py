"""A researcher's way through the app in Chromium, from an empty study to a report, counted as it is gone.

What the researcher does is counted: clicks, keys struck and files chosen. Clinicians rate over the room's
own requests and a jury answers on the loopback; neither is counted.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from playwright.sync_api import Error, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from kit import page_client
from kit.aci_bench import Notes
from kit.agreement_screen import FIRST_MS
from kit.jurors import Do, Seen, Stub, verdict
from kit.screens import settle
from kit.servers import Server

CLINICIANS = ("dr-ada", "dr-ben", "dr-cleo", "dr-dan")
JURORS = ("a", "b", "c")
NONE_WAITS_FOR = (
    "plan",
    "clinicians' agreement",
    "decision on the first screen",
)  # steps that others go on without
REPORT = "Report to read and print"


@dataclass
class Step:
    """What a step took: seconds on the clock, the researcher's clicks, keys and files, what was seen."""

    name: str
    seconds: float = 0.0
    clicks: int = 0
    keys: int = 0
    files: int = 0
    led: int = 0
    seen: str = ""
    stopped: str = ""


@dataclass
class Researcher:
    """The hand of a researcher on a page: each act waits for what it acts on, and is counted."""

    page: Page
    server: Server
    steps: list[Step] = field(default_factory=list)

    @property
    def now(self) -> Step:
        """The step that is under way."""
        return self.steps[-1]

    def click(self, what: Locator) -> None:
        """Click once the page is drawn to its end, as somebody does who looks first."""
        settle(self.page)
        what.click()
        self.now.clicks += 1

    def press(self, name: str) -> None:
        """Click a button by its name."""
        self.click(self.page.get_by_role("button", name=name, exact=True))

    def type(self, what: Locator, text: str) -> None:
        """Write into a field: a click, and a key for each sign."""
        self.click(what)
        what.fill(text)
        self.now.keys += len(text)

    def paste(self, what: Locator, text: str) -> None:
        """Put a text from the clipboard in the place of what a field holds: a click and two keys."""
        self.click(what)
        what.fill(text)
        what.press("Control+Enter")
        self.now.keys += 3

    def choose_file(self, name: str, body: bytes) -> None:
        """Choose a file."""
        settle(self.page)
        file = {"name": name, "mimeType": "text/csv", "buffer": body}
        self.page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
        self.now.files += 1

    def follow(self, action: str, screen: str, part: str = "") -> None:
        """Do what the app says comes next, here or on the first screen; go there by oneself where it does not."""
        link = self.page.get_by_role("link", name=action, exact=True)
        settle(self.page)
        if not link.count():
            with suppress(PlaywrightTimeout):  # where an app has no such screen yet
                self.home()
        if link.count():
            self.click(link.first)
            self.now.led += 1
        else:
            self.visit(screen, part)
        settle(self.page)

    def home(self) -> None:
        """Open the first screen, and wait for its steps."""
        overview = self.page.get_by_role("radio", name="Overview", exact=True)
        if overview.count():
            self.click(overview)
        else:
            self.visit("Study")
        self.page.locator(".mj-steps").wait_for()

    def visit(self, screen: str, part: str = "") -> None:
        """Open a screen by its link at the top, and a part of it."""
        self.click(self.page.get_by_role("link", name=screen, exact=True))
        self.page.get_by_role("heading", name=screen, level=1).wait_for()
        settle(self.page)
        if part:
            self.click(self.page.get_by_role("radio", name=part, exact=True))

    def saved(self, name: str) -> str:
        """Return the text of a file that is saved."""
        settle(self.page)
        with self.page.expect_download(timeout=FIRST_MS) as got:
            self.press(name)
        return got.value.path().read_text("utf-8")


@dataclass
class Journey:
    """A journey: whose notes, how many clinicians read each, and what was learned on the way."""

    notes: Notes
    stub: Stub
    clinicians: tuple[str, ...] = CLINICIANS
    codes: dict[str, str] = field(default_factory=dict)
    readings: int = 0
    report: str = ""
    verdict: str = ""

    def go(self, researcher: Researcher, code: str) -> list[Step]:
        """Take every step in turn, as far as it gets; what is not there stands in `stopped`."""
        for name, act in self._acts(code):
            step = Step(name)
            researcher.steps.append(step)
            began = time.perf_counter()
            try:
                step.seen = act(researcher) or ""
            except (Error, AssertionError) as error:
                step.stopped = str(error).strip().splitlines()[0]
            step.seconds = time.perf_counter() - began
            if step.stopped and name not in NONE_WAITS_FOR:
                break
        return researcher.steps

    def _acts(self, code: str) -> Iterator[tuple[str, Callable[[Researcher], str | None]]]:
        yield "sign in", lambda hand: sign_in(hand, code)
        yield "plan", plan
        yield "import the notes", self._bring_in
        yield "fix the margin", fix_margin
        yield "assign to clinicians", self._assign
        yield "(clinicians rate)", self._rate
        yield "clinicians' agreement", see_clinicians
        yield "write a panel", lambda hand: write_panel(hand, self.stub)
        yield "run the jury", self._run
        yield "agreement", see_agreement
        yield "decision on the first screen", self._decide
        yield "freeze a report", freeze
        yield "save the report", self._save

    def _bring_in(self, hand: Researcher) -> str:
        hand.follow("Import responses", "Study", "Import")
        hand.choose_file("notes.csv", self.notes.text.encode())
        hand.page.get_by_text("new responses to").wait_for(timeout=FIRST_MS)
        hand.press("Import this file")
        done = hand.page.get_by_text("responses imported")
        done.wait_for(timeout=FIRST_MS)
        return done.inner_text()

    def _assign(self, hand: Researcher) -> str:
        hand.follow("Assign responses to clinicians", "Study", "Design")
        field_of = hand.page.get_by_label("New clinicians, one per line")
        hand.type(field_of, "\n".join(self.clinicians))
        hand.press("Show the plan")
        hand.page.get_by_role("table", name="Work of each clinician as planned").wait_for()
        hand.press("Store this design")
        handed = hand.page.locator(".st-key-handed code")
        expect(handed).to_have_count(len(self.clinicians), timeout=FIRST_MS)
        self.codes = dict(zip(self.clinicians, handed.all_inner_texts(), strict=True))
        hand.press("Put away")
        return f"{len(self.codes)} codes to hand over"

    def _rate(self, hand: Researcher) -> str:
        with ThreadPoolExecutor(1) as aside:  # Playwright has the loop of this thread
            for who, code in self.codes.items():
                told = _rated(hand.server.address, who, code, self.notes)
                self.readings += aside.submit(asyncio.run, told).result()
        return f"{self.readings} readings by {len(self.codes)} clinicians"

    def _run(self, hand: Researcher) -> str:
        hand.press("Estimate")
        estimate = hand.page.get_by_role("region", name="Estimate")
        estimate.wait_for(timeout=FIRST_MS)
        hand.type(hand.page.get_by_label("Cap, US dollars"), "50")
        hand.page.keyboard.press("Enter")
        hand.now.keys += 1
        hand.press("Run the jury")
        hand.page.locator(".mj-state", has_text="complete").wait_for(timeout=FIRST_MS)
        return estimate.get_by_role("row").last.inner_text()

    def _decide(self, hand: Researcher) -> str:
        hand.home()
        headline = hand.page.locator(".mj-decision h2")
        headline.wait_for(timeout=FIRST_MS)
        self.verdict = headline.inner_text()
        return self.verdict

    def _save(self, hand: Researcher) -> str:
        hand.visit("Agreement")
        hand.page.locator(".mj-decision").wait_for(timeout=FIRST_MS)
        hand.click(hand.page.get_by_role("tab", name="Report", exact=True))
        hand.press("Make the report")
        hand.page.get_by_role("button", name=REPORT).wait_for(timeout=FIRST_MS)
        self.report = hand.saved(REPORT)
        return f"{len(self.report) / 1e3:,.0f} kB of HTML"


def sign_in(hand: Researcher, code: str) -> None:
    """Sign in with the code that the one command printed."""
    hand.page.goto(hand.server.address)
    hand.page.get_by_label("Your sign-in code").fill(code)
    hand.page.keyboard.press("Enter")
    hand.now.keys += len(code) + 1
    hand.page.get_by_text("This study has no responses yet.").wait_for()


def plan(hand: Researcher) -> str:
    """Ask how many responses and clinicians an interval of the usual width takes."""
    hand.click(hand.page.get_by_role("radio", name="Plan", exact=True))
    hand.press("Make the plan")
    table = hand.page.locator(".mj-figures").first
    table.wait_for(timeout=FIRST_MS)
    return table.get_by_role("row").nth(1).inner_text()


def fix_margin(hand: Researcher) -> str:
    """Fix the margin that is proposed, before anybody rates."""
    hand.follow("Commit to a margin", "Study", "Protocol")
    hand.press("Commit to this protocol")
    hand.page.get_by_text("Fixed, and in the record.").wait_for()
    return hand.page.get_by_role("table", name="Protocol").get_by_role("row").nth(1).inner_text()


def see_clinicians(hand: Researcher) -> str:
    """See how far clinicians agree, before there is a jury."""
    hand.visit("Agreement")
    row = hand.page.get_by_role("row").filter(
        has=hand.page.get_by_role("rowheader", name=re.compile("^Clinicians"))
    )
    row.first.wait_for(timeout=FIRST_MS)
    return row.first.inner_text()


def write_panel(hand: Researcher, stub: Stub) -> None:
    """Copy a panel that ships, put three jurors of the loopback into it, and probe them."""
    hand.follow("Estimate and run a jury", "Jury lab")
    hand.press("Edit a copy")
    hand.paste(hand.page.get_by_label("Panel, as TOML"), panel_text(stub))
    hand.press("Save panel")
    hand.page.get_by_role("region", name="Jurors of the panel ours").wait_for()
    hand.press("Probe the jurors")
    probe = hand.page.get_by_role("region", name="Probe", exact=True)
    expect(probe).to_contain_text("c-model-returned", timeout=FIRST_MS)


def see_agreement(hand: Researcher) -> str:
    """Read the jury's row of the table."""
    hand.visit("Agreement")
    row = hand.page.get_by_role("row").filter(
        has=hand.page.get_by_role("rowheader", name="Jury", exact=True)
    )
    row.first.wait_for(timeout=FIRST_MS)
    return row.first.inner_text()


def freeze(hand: Researcher) -> str:
    """Freeze a report, which the first screen names as the next step."""
    hand.follow("Freeze a report", "Monitoring")
    hand.press("Freeze a report")
    table = hand.page.get_by_role("button", name="Undo")
    table.wait_for(timeout=FIRST_MS)
    return "frozen"


def panel_text(stub: Stub) -> str:
    """Return a panel of three jurors on the loopback."""
    one = f"""
[[juror]]
name = "NAME"
provider = "openai"
model = "NAME-model"
family = "x"
base_url = "{stub.openai_url}"
schema = "json_schema"
usd_per_million_in = 2.0
usd_per_million_out = 10.0
"""
    return 'name = "ours"\n' + "".join(one.replace("NAME", name) for name in JURORS)


def jury_of(notes: Notes) -> Callable[[Seen], Do]:
    """Return a script for the loopback: a note of the study gets its juror's scores, all else a three."""

    def answered(seen: Seen) -> Do:
        try:
            scores = notes.scores(seen.model, seen.prompt)
        except StopIteration:  # a probe's
            return Do()
        return Do(text=verdict(seen, round(sum(scores.values()) / len(scores))))

    return answered


async def _rated(address: str, who: str, code: str, notes: Notes) -> int:
    """Rate all that a clinician is given, over the room's requests; return how many readings."""
    cookie = await page_client.sign_in(address, code)
    done = 0
    async with await page_client.Page.open(address, cookie) as page:
        shown = await page.run()
        while shown.code:
            scores = notes.scores(who, shown.form["texts"][-1]["html"])
            entry = page_client.entered(shown, page.name, shown.seq + 1, scores, submit=True)
            shown = await page.tell(shown, entry)
            if shown.error:
                raise AssertionError(f"{who}: {shown.error}")
            done += 1
    return done


def table_of(steps: list[Step]) -> str:
    """Return the steps as a Markdown table with a sum."""
    lines = [
        "| step | seconds | clicks | keys | files | led there | seen |",
        "| --- | --: | --: | --: | --: | --: | --- |",
    ]
    for step in steps:
        seen = " ".join((f"STOPPED: {step.stopped}" if step.stopped else step.seen).split())
        counts = " | ".join(str(n) for n in (step.clicks, step.keys, step.files, step.led))
        lines.append(f"| {step.name} | {step.seconds:.1f} | {counts} | {seen[:110]} |")
    sums = [
        sum(getattr(step, name) for step in steps) for name in ("clicks", "keys", "files", "led")
    ]
    seconds = sum(step.seconds for step in steps)
    lines.append(f"| all | {seconds:.1f} | " + " | ".join(map(str, sums)) + " | |")
    return "\n".join(lines)
