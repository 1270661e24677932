"""Every page that a person finds, and every tab, segment and fold of it, opened one by one.

What there is to open is read from the page itself, so that a new one is opened too.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from kit.browsers import PATIENCE_MS
from kit.screens import at_rest

COMPUTED_MS = 300_000  # a page waits for its figures
WRONG = "[data-testid=stException], [data-testid=stAlertContentError], .mj-refused"
LINKS = """() => [...document.querySelectorAll("a[href]:not([download])")]
    .filter(one => one.origin === location.origin && one.pathname !== "/logout" && !one.hash)
    .map(one => one.pathname)"""
LISTED = """() => {
    const shown = [...document.querySelectorAll("[role=tab], [role=radio], input[type=radio],"
        + "[data-testid=stExpander] summary, [data-testid=stPopover] button")]
        .filter(one => !one.closest("form") && (one.closest("label") ?? one).checkVisibility());
    const text = one => {
        const copy = (one.closest("label") ?? one).cloneNode(true);
        copy.querySelectorAll("[data-testid=stIconMaterial]").forEach(icon => icon.remove());
        return copy.textContent.trim() || one.value;
    };
    const within = "[role=tablist], [role=radiogroup], fieldset";
    return shown.map(one => {
        const group = [...(one.closest(within)?.querySelectorAll("[role=tab], [role=radio], input") ?? [])];
        return {at: one.closest("label") ?? one, group: group.map(text).join("|"), name: text(one)};
    });
}"""
CHOICES = f"() => ({LISTED})().map(one => [one.group, one.name])"
WHERE = f"""([group, name]) =>
    ({LISTED})().findLast(one => one.group === group && one.name === name)?.at"""
Choice = tuple[str, str]  # the options of a group, none for what unfolds by itself, and one of them


def surfaces(page: Page) -> Iterator[str]:
    """Open all that a person who has signed in finds; yield the name of each once it is drawn."""
    opened: set[str] = set()
    start = urlsplit(page.url)
    waiting = [start.path]
    while waiting:
        path = waiting.pop(0)
        opened.add(path)
        page.goto(start._replace(path=path).geturl())
        at_rest(page, COMPUTED_MS)
        waiting += sorted({*page.evaluate(LINKS)} - opened - {*waiting})
        yield path
        yield from _parts(page, path)


def wrong(page: Page) -> list[str]:
    """Return the errors that a page shows."""
    return page.locator(WRONG).all_inner_texts()


def _parts(page: Page, path: str) -> Iterator[str]:
    """Choose each option of the first group of a page, and with it all that it brings."""
    found = _choices(page)
    outer = next((group for group, _ in found if group), "")
    for chosen in [one for one in found if one[0] == outer] if outer else [("", "")]:
        if outer and not _choose(page, chosen):
            continue
        place = f"{path} {chosen[1]}".strip()
        if outer:
            yield place
        done = {one for one in _choices(page) if one[0] == outer and outer}
        while new := [one for one in _choices(page) if one not in done]:
            done.add(new[0])
            if _choose(page, new[0]):
                yield f"{place}: {new[0][1]}"


def _choices(page: Page) -> list[Choice]:
    """Return what may be chosen on a page that is at rest."""
    listed: list[Choice] = page.evaluate(CHOICES)
    return [(group, name) for group, name in listed]


def _choose(page: Page, choice: Choice) -> bool:
    """Choose, again where the page was drawn anew under the click; False where it is gone."""
    for _ in range(3):
        element = page.evaluate_handle(WHERE, choice).as_element()
        if element is None:
            return False
        try:
            element.click(timeout=PATIENCE_MS / 3)
            return True
        except PlaywrightTimeout:
            continue
        finally:
            at_rest(page, COMPUTED_MS)
    raise AssertionError(f"{choice[1]} was not to be chosen on {page.url}")
