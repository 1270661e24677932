"""The survey of a taxonomy as a clinician is shown it: cards, categories, and what they entered.

No byte of it says where the taxonomy has a card.
"""

from collections.abc import Mapping
from typing import Any

from annotate.rating.answers import label
from data.queries.surveys import SurveyTask
from data.survey import CODE, HIGH, LOW, ON_THE_WHOLE

QUESTIONS = {
    "comprehensiveness": "How completely do these categories cover what clinicians do?",
    "clarity": "How clear are the categories and their definitions?",
}


def is_survey(code: object) -> bool:
    """Tell whether a code is that of a survey, not of a response."""
    return isinstance(code, str) and code.startswith(CODE)


def shown(task: SurveyTask, *, later: bool) -> dict[str, Any]:
    """Return a survey with what is stored of it; `later` offers to rate responses first."""
    cards = [
        {"name": code, "text": item.text, "detail": list(item.detail)}
        for code, item in task.form.cards.items()
    ]
    whole = [{"name": name, "label": label(name)} for name in ON_THE_WHOLE]
    return {
        "stage": "survey",
        "code": task.code,
        "mode": "rate",
        "round": task.round,
        "later": later,
        "cards": cards,
        "categories": _categories(task),
        "questions": QUESTIONS,
        "criteria": [*({"name": one["name"], "label": one["text"]} for one in cards), *whole],
        "points": list(range(LOW, HIGH + 1)),
        "errors": [],
        "severities": [],
        "why": {"criterion": ON_THE_WHOLE[0], "points": []},
        "unseen": {},
        "checked": False,
        "previous": False,
        "rated": "",
        "unsent": False,
        "answered": task.submitted,
        "entry": entry(task),
    }


def entry(task: SurveyTask) -> dict[str, Any]:
    """Return what is stored of a clinician's entry, as of a rating."""
    draft: Mapping[str, Any] = task.draft
    return {
        "scores": draft.get("scores", {}),
        "comment": draft.get("comment", ""),
        "comments": draft.get("comments", {}),
        "spans": [],
        "flags": [],
        "seq": draft.get("seq", 0),
        "by": draft.get("by", ""),
        "version": task.draft_seq,
        "seconds": 0,
    }


def _categories(task: SurveyTask) -> list[dict[str, str]]:
    return [
        {
            "name": category.name,
            "definition": category.definition,
            "counts": category.counts_when,
            "performer": category.performer,
        }
        for category in task.taxonomy.categories
    ]
