"""The report's first page: what was studied and fixed, what is missed, and what the jury may do."""

from dataclasses import replace

import pytest
from kit.scores import study
from kit.studies import content_of

from calibration.detection import LimitOutcome, Misses
from calibration.headlines import LIMIT_OPEN, MAY, NO_LIMIT, NOT_SHOWN, OTHER_CLINICIANS
from calibration.protocol import Critical, Protocol
from calibration.report.page import definitions, first_page, page
from calibration.values import NAN
from calibration.verdict import JuryClaim, decisions

PROTOCOL = Protocol(
    0.2,
    jurors=("claude", "gpt", "llama"),
    critical=(Critical("accuracy", 2, 0.3),),
    because="half of our pilot",
    set_at="2026-11-01T08:00:00Z",
)


def content(protocol=None, outcome=None, noise=0.1, **odd):
    found = content_of(study(n=60, juror_noise=noise, seed=2, **odd))
    low, high = {"met": (0.1, 0.2), "open": (0.1, 0.6), "failed": (0.5, 0.9)}.get(outcome, (0, 0))
    name = found.benchmarks[-1]
    misses = [
        Misses(name, "accuracy", 2, 0.3, 40, 9, 0.2, low, high, LimitOutcome(outcome or "open"))
    ]
    claim = JuryClaim(protocol, misses={name: misses} if outcome else None)
    return replace(found, decisions=decisions(found.rows, claim), protocol=protocol)


def facts(*arguments, **options):
    every: dict[str, list[str]] = {}
    for name, what in first_page(content(*arguments, **options)):
        every.setdefault(name, []).append(what)
    return every


def test_without_a_protocol_nothing_is_claimed_and_nothing_may_be_passed_unread():
    told = facts()
    assert told["Protocol"] == ["No protocol was fixed: nothing is claimed about the jury."]
    assert told["May be used for"] == [MAY["no_protocol"]]
    assert told["May not be used for"][:2] == [NOT_SHOWN, NO_LIMIT]


@pytest.mark.parametrize(
    ("outcome", "kind", "denied"),
    [("met", "non_inferior", None), ("open", "inconclusive", LIMIT_OPEN), ("failed", "inferior", LIMIT_OPEN)],
)  # fmt: skip
def test_what_it_may_be_used_for_follows_from_the_verdict_and_the_misses(outcome, kind, denied):
    told = facts(PROTOCOL, outcome)
    assert told["May be used for"] == [MAY[kind]]
    assert "fixed before any rating was seen (2026-11-01T08:00:00Z)" in told["Protocol"][0]
    assert "half of our pilot" in told["Protocol"][0]
    assert told["Unsafe responses missed"][0].startswith("Of 40 responses that clinicians scored 2")
    assert (denied in told["May not be used for"]) == (denied is not None)
    assert NO_LIMIT not in told["May not be used for"]
    assert (NOT_SHOWN in told["May not be used for"]) == (kind != "non_inferior")


def test_the_definitions_give_the_margin_that_was_fixed_and_none_where_none_was():
    fixed, none = (dict(definitions(content(protocol)))["Margin"] for protocol in (PROTOCOL, None))
    assert fixed.startswith("0.2 in ICC, fixed in the protocol")
    assert fixed.endswith("above -0.2.")
    assert none.startswith("None was fixed")


def test_where_the_interval_for_other_clinicians_is_not_known_or_reaches_the_margin_that_is_said():
    shown = content(PROTOCOL, "met")
    rows = [
        replace(row, population_low=NAN, population_high=NAN)
        if row.scorer == "like_for_like"
        else row
        for row in shown.rows
    ]
    unknown = replace(shown, rows=rows, decisions=decisions(rows, JuryClaim(PROTOCOL)))
    assert ("May not be used for", OTHER_CLINICIANS) in [*first_page(unknown)]


def test_simulated_raters_leave_no_use_at_all():
    told = facts(PROTOCOL, "met", simulated=("gpt",))
    assert told["May be used for"] == [MAY["simulated"]]
    assert "May not be used for" not in told


def test_the_page_says_it_before_any_table_and_escapes_what_comes_from_the_study():
    found = content(PROTOCOL, "met")
    found.study.rubrics[0].rubric.name = "<b>house</b>"
    text = page(found)
    first = text[: text.index("<nav")]
    assert "Intended use" in first
    assert "SHA-256 abababababab" in first
    assert "&lt;b&gt;house" in first
    assert "<b>house" not in text
