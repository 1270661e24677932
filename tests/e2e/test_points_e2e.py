"""Points of the case in a real browser: clinicians answer them by keys, coordinators bring them in."""

import os
from pathlib import Path

import pytest
from kit import screens
from kit.browsers import new_context, sign_in, wait_for_count, wait_open, wait_settled
from kit.rating_study import build, row, rubric
from kit.screens import at_study, choose, open_part, violations
from kit.servers import Server
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.importers.points import PointRow
from data.importers.rows import Origin
from data.person import OPERATOR
from data.points import CANNOT_TELL, MET, NOT_MET, Point, points_rubric
from data.schema import Rating, Role
from data.study.people import add_people
from data.study.points import add_points

pytestmark = pytest.mark.e2e
axe = screens.axe
RUBRIC = points_rubric()
BENCHMARK, CASES, POINTS = "bench_hidden", 3, 8
SHOTS = os.environ.get("MEDJURY_SHOTS", "")
TEXTS = (
    "Says that the patient has no fever",
    "Says that the knee hurts mildly",
    "Recommends an antibiotic",
    "Asks for the temperature to be taken again if chills occur",
    "Names the day of the visit",
    "States that there is no injury, such as a fall or a twist of the knee in the last weeks",
    "Gives a diagnosis that the talk does not support",
    "Is written as a note for the record",
)


def points_of_case(number: int) -> list[PointRow]:
    return [
        PointRow(
            Origin("points.csv", n + 2),
            f"inst-hidden-{number}",
            Point(
                point=text,
                weight=7.125 + n,
                kind="must_not" if n in (2, 6) else "must",
                critical=n in (0, 2),
            ),
        )
        for n, text in enumerate(TEXTS)
    ]


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    rows = [row(n, f"Note {n}: no fever, mild knee pain.") for n in range(1, CASES + 1)]
    codes = build(study, rows, [], RUBRIC)
    every = [point for n in range(1, CASES + 1) for point in points_of_case(n)]
    add_points(study, BENCHMARK, every, RUBRIC, "operator")
    return codes | build(study, rows, ["dr-points", "dr-back"], RUBRIC)


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))


def answered(study: Engine, response: int) -> dict[str, float]:
    with Session(study) as session:
        rows = session.exec(select(Rating).where(Rating.response == response).order_by(Rating.id))
        return {row.criterion: row.score for row in rows}


def test_a_case_takes_a_key_a_point_and_one_to_submit(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sent: list[str] = []
    page.on("response", lambda one: sent.append(one.text()) if "/room" in one.url else None)
    sign_in(page, server, codes["dr-points"])
    shot(page, "points_1366")
    given = "11231121"
    for number in range(1, CASES + 1):
        wait_open(page)
        page.keyboard.type(given if number == 1 else given.replace("3", "1"))
        page.keyboard.press("Control+Enter")
        if number < CASES:
            wait_for_count(page, number, CASES)
    page.get_by_role("heading", name="Thank you").wait_for()
    first = answered(study, 1)
    assert [first[f"point_{n}"] for n in range(1, POINTS + 1)] == [float(key) for key in given]
    assert {MET, NOT_MET, CANNOT_TELL} == set(map(int, given))
    assert "points" not in first  # a point nobody could tell
    for text in sent:
        for secret in ("7.125", "must_not", '"weight', '"worth', RUBRIC.name):
            assert secret not in text


@pytest.mark.parametrize(("size", "dark"), [((820, 1180), False), ((1366, 768), True)])
def test_the_points_are_whole_on_every_screen(
    browser: Browser, server: Server, codes: dict[str, str], size: tuple[int, int], dark: bool
) -> None:
    context = new_context(browser, size)
    page = context.new_page()
    page.emulate_media(color_scheme="dark" if dark else "light")
    sign_in(page, server, codes["dr-back"])
    wait_open(page)
    for text in TEXTS:
        expect(page.get_by_text(text)).to_have_count(1)
    button = page.get_by_role("button", name="Submit and next")
    button.scroll_into_view_if_needed()
    expect(button).to_be_in_viewport()
    shot(page, f"points_{size[0]}_{'dark' if dark else 'light'}")
    context.close()


def test_a_coordinator_brings_points_in_and_reads_the_agreement(
    browser: Browser, server: Server, study: Engine, codes: dict[str, str], axe: str
) -> None:
    build(study, [row(9, "A note of another visit.", benchmark="visits")], [], rubric())
    [boss] = add_people(OPERATOR, study, ["Boss Lindqvist"], Role.COORDINATOR)
    context = new_context(browser)
    page = at_study(context.new_page(), server, boss.code)
    open_part(page, "Rubric")
    page.get_by_text("Points of the case instead of scales", exact=True).click()
    choose(page, "Benchmark", "visits")
    page.get_by_role(
        "button", name="Template of points"
    ).wait_for()  # open, as visits has no points
    wait_settled(page)
    text = "instance_id,point,weight,kind,critical\ninst-hidden-9,Names the visit,2,,yes\n"
    bad = {"name": "p.csv", "mimeType": "text/csv", "buffer": text.replace(",2,", ",,").encode()}
    page.locator("input[type=file]").set_input_files(bad)
    page.get_by_role("button", name="Import these points").click()
    refusal = page.get_by_text("column weight: '': must not be empty")
    expect(refusal).to_be_visible()
    page.get_by_role("button", name="Remove p.csv").click()
    expect(page.get_by_role("button", name="Import these points")).to_have_count(0)
    page.locator("input[type=file]").set_input_files({**bad, "buffer": text.encode()})
    wait_settled(page)
    page.get_by_role("button", name="Import these points").click()
    expect(page.get_by_text("Points of 1 instance stored")).to_be_visible()
    wait_settled(page)
    shot(page, "points_study")
    broken = violations(page, axe)
    page.goto(f"{server.address}/agreement?view=Criteria")
    wait_settled(page)
    shot(page, "points_agreement")
    expect(page.get_by_text("bench_hidden: agreement on single points")).to_be_visible(
        timeout=60_000
    )
    wait_settled(page)
    shot(page, "points_agreement")
    assert broken + violations(page, axe) == []
    context.close()
