"""Headings of statistics say what they mean, where one stands."""

from calibration.tables.agreement import AGREEMENT
from calibration.tables.spec import ICC_WORDS, laid_out
from calibration.writers import html_table


def test_a_heading_in_the_app_tells_its_meaning() -> None:
    page = html_table(laid_out(AGREEMENT, []), on_screen=True)
    assert f'tabindex="0" aria-description="{ICC_WORDS}">ICC(C,2)</span>' in page
    assert ">Scorer</th>" in page


def test_a_report_that_is_handed_on_has_plain_headings() -> None:
    assert "mj-term" not in html_table(laid_out(AGREEMENT, []))
