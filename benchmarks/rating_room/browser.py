"""From the key to the painted page, in Chromium."""

import statistics

from kit.browsers import chromium, wait_open
from playwright.sync_api import Page

# Counted in the page: from the key that submits to the frame after the page says that one more
# is rated. Added before the form, whose own listener lets the key go no further.
WATCH = """(() => {
  window.painted = [];
  const shown = () => document.querySelector(".mj-count")?.textContent;
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.ctrlKey) return;
    const began = performance.now(), before = shown();
    const look = () => {
      if (shown() === before) return requestAnimationFrame(look);
      requestAnimationFrame(() => window.painted.push(performance.now() - began));
    };
    requestAnimationFrame(look);
  }, true);
})()"""


def painted(address: str, code: str, count: int) -> str:
    """Rate so many responses by key and say how long the next one took to be painted."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.add_init_script(WATCH)
        page.goto(address)
        page.get_by_label("Your sign-in code").fill(code)
        page.keyboard.press("Enter")
        page.locator("form.likert").wait_for()
        for done in range(1, count + 1):
            _rate(page, done)
        times = sorted(page.evaluate("() => window.painted"))
    p95 = times[int(0.95 * (len(times) - 1))]
    return (
        f"Chromium, key to painted next response: median {statistics.median(times):.0f} ms, "
        f"p95 {p95:.0f} ms, max {times[-1]:.0f} ms, n = {len(times)};"
    )


def _rate(page: Page, done: int) -> None:
    wait_open(page)
    page.keyboard.type("435", delay=30)
    page.get_by_role("status").filter(has_text="Draft saved").wait_for()
    page.keyboard.press("Control+Enter")
    page.locator(".mj-count", has_text=f"{done} of ").wait_for()
