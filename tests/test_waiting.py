"""Who waits for a computation reads what is done and how far it is, and gets its value or its error."""

from concurrent.futures import Future

import pytest
from streamlit.testing.v1 import AppTest

from annotate.waiting import IN_LINE, waited
from data.errors import TooFew

DRAWN = """
from concurrent.futures import Future
import streamlit as st
from annotate import worker
from annotate.waiting import _show
coming = Future()
{act}
_show(st.empty(), coming)
"""


def drawn(act: str) -> AppTest:
    page = AppTest.from_string(DRAWN.format(act=act)).run()
    assert not page.exception
    return page


def test_what_is_there_is_returned_at_once_and_an_error_is_raised() -> None:
    coming: Future[int] = Future()
    coming.set_result(3)
    assert waited(coming, "Counting") == 3
    failed: Future[int] = Future()
    failed.set_exception(TooFew("an ICC needs 2 responses"))
    with pytest.raises(TooFew):
        waited(failed, "Counting")


def test_the_share_that_was_told_stands_in_words_and_never_beyond_the_whole() -> None:
    for share, words in ((0.344, "34% done"), (1.2, "100% done")):
        page = drawn(f"coming.set_running_or_notify_cancel(); worker._shares[coming] = [{share}]")
        [bar] = page.get("progress")
        assert bar.proto.text == words
        assert bar.proto.value == min(round(share * 100), 100)


def test_who_is_not_yet_computed_for_is_told_so_and_who_is_is_not() -> None:
    assert [one.value for one in drawn("pass").caption] == [IN_LINE]
    page = drawn("coming.set_running_or_notify_cancel()")
    assert [one.value for one in page.caption] == [""]
    assert not page.get("progress")
