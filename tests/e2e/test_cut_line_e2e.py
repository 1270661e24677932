"""The line is cut at each keystroke of a rating, and the server killed: nothing is lost or invented."""

from collections.abc import Iterable

import pytest
from kit.browsers import new_context, sign_in
from kit.cut_line import RESPONSE, SOURCE, STEPS, TYPED, Cut, CutLine, cut, rate_with_cut, stored
from kit.rating_study import build, row, rubric
from kit.servers import Server, serving
from playwright.sync_api import Page
from sqlalchemy import Engine

from data.study.verify import verify

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

CUTS, AT_ONCE = 200, 40
KILLS = 12
NOTES = "Object.keys(localStorage).filter((key) => key.startsWith('medjury'))"
LETTER = next(n for n, step in enumerate(STEPS) if step.place == "comment") + 20
OFTEN = [
    Cut(at=1, moment="with", how="kill", typed=16, seconds=0, again=""),
    Cut(at=LETTER, moment="after", how="kill", typed=8, seconds=6, again=""),
    Cut(at=LETTER, moment="before", how="kill", typed=4, seconds=0, again="reload away"),
    Cut(at=LETTER, moment="after", how="hang", typed=8, seconds=0.4, again="close"),
    Cut(at=len(STEPS) - 1, moment="before", how="lose answers", typed=1, seconds=1, again="reload"),
    Cut(at=len(STEPS) - 2, moment="before", how="kill", typed=2, seconds=1, again=""),
]


class KilledServer(CutLine):
    """A line that is cut by killing the server itself."""

    server: Server

    def kill(self) -> None:
        """Kill the server: every line to it breaks."""
        self.server.stop()

    def recover(self) -> None:
        """Start it again at the same port."""
        self.server.start()


@pytest.fixture(scope="module")
def codes(study):
    rows = [row(n, RESPONSE, context=SOURCE, prompt="Write the note.") for n in range(AT_ONCE + 1)]
    raters = [f"dr-{n}" for n in range(CUTS // AT_ONCE)]
    return build(study, rows, ["dr-often", "dr-click", "dr-kills", *raters], rubric())


@pytest.fixture
def line(server):
    line = CutLine(server.port).start()
    yield line
    line.kill()


@pytest.fixture
def errors(page):
    found: list[str] = []
    page.context.on("weberror", lambda error: found.append(str(error.error)))
    return found


def rate(page: Page, line: CutLine, study: Engine, rater: str, cuts: Iterable[Cut]) -> None:
    """Rate one response for each cut, and see that just what was typed is stored each time."""
    for done, what in enumerate(cuts):
        page = rate_with_cut(page, line, what, done, AT_ONCE + 1)
        found = stored(study, rater)
        assert (len(found), found[-1]) == (done + 1, TYPED), what
        assert page.evaluate(NOTES) == []
    assert verify(study).findings == ()


def test_what_is_typed_while_the_line_is_cut_is_stored_once_and_nothing_else(
    page, line, study, codes, errors
):
    sign_in(page, line, codes["dr-often"])
    rate(page, line, study, "dr-often", OFTEN)
    assert errors == []


def test_a_click_is_taken_though_the_line_breaks_while_it_is_made(page, line, codes):
    sign_in(page, line, codes["dr-click"])
    line.hang()
    page.keyboard.press("4")
    page.wait_for_timeout(400)  # its message is under way
    page.keyboard.press("s")
    page.get_by_role("button", name="Wrong").hover()
    page.mouse.down()
    line.kill()
    page.wait_for_timeout(700)
    page.mouse.up()
    page.locator(".chips li.wrong").wait_for()
    page.locator(".alert", has_text="cannot be reached").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(CUTS // AT_ONCE))
def test_a_cut_at_any_keystroke_loses_and_invents_nothing(page, line, study, codes, errors, part):
    sign_in(page, line, codes[f"dr-{part}"])
    cuts = (cut(part * AT_ONCE + n) for n in range(AT_ONCE))
    rate(page, line, study, f"dr-{part}", cuts)
    assert errors == []


@pytest.mark.slow
def test_a_killed_server_loses_and_invents_nothing(browser, study, codes):
    with serving(study.url.render_as_string(hide_password=False)) as server:
        line = KilledServer(server.port, server.port)
        line.server = server
        with new_context(browser) as context:
            page = context.new_page()
            sign_in(page, server, codes["dr-kills"])
            rate(page, line, study, "dr-kills", map(killed, range(KILLS)))


def killed(number: int) -> Cut:
    """Return one of the server's ends: spread over the keystrokes of a rating."""
    what = cut(number)
    at = number * len(STEPS) // KILLS
    return Cut(at, what.moment, "kill", what.typed, what.seconds, what.again)
