"""Settings of a study, which hold for all who work on it."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Literal, get_args

from data.card import ERRORS, SETTLING, Settling
from data.errors import BadInput

Reference = Literal["hidden", "on_request", "after_rating"]
WHOLE = ("pause_minutes", "remind_days")
ERROR_TYPES, FAMILIES = "error_types", "families"
MOST_ERROR_TYPES = 12
FAMILY = re.compile(r"[^\W\d_][\w-]{0,29}")
ERROR_TYPE = re.compile(r"[^\W\d_][\w -]{0,29}")  # words of any language, as clinicians read them


@dataclass(frozen=True, slots=True)
class Settings:
    """How the rating room behaves, and what the study may spend on jurors.

    Attributes
    ----------
    reference
        Whether clinicians may see the reference: never, when they ask (which is recorded), or
        once they have rated. A rubric whose gold policy is "never" hides it always.
    pause_minutes
        A pause is offered after so many minutes of work; 0 offers none.
    ask_why
        Whether a low score on the first criterion asks for a line or a marked stretch.
    training_gap
        Mean distance from the experts, in points, up to which the training round is passed.
    adjudicate_from
        Where two clinicians are so many points apart on any criterion, or more, a response waits
        for a reading that settles it; 0: none does.
    adjudicate_by
        Which reading settles it: a third one that is shown nothing of the others, or one that is
        shown the others' scores and comments, without names.
    error_types
        What a marked stretch can be called, in the order offered. The one named "missing" says that
        the response leaves something out, and is what marks the source.
    remind_days
        A clinician with open work who has ended none of it for so many days is due a reminder.
    families
        (model, family) of authors whose names do not tell their family: for figures of jurors on
        responses of their own, which a blind study does not tell.
    budget
        US dollars that all jury runs of the study may spend together; None, written "none", bounds
        nothing.
    """

    reference: Reference = "on_request"
    pause_minutes: int = 25
    ask_why: bool = True
    training_gap: float = 1.0
    error_types: tuple[str, ...] = ERRORS
    adjudicate_from: float = 0.0
    adjudicate_by: Settling = "third"
    remind_days: int = 3
    budget: float | None = None
    families: tuple[tuple[str, str], ...] = ()

    def as_text(self) -> dict[str, str]:
        """Return the settings as a study stores them."""
        texts = {name: str(value).lower() for name, value in asdict(self).items()}
        of_models = ",".join(f"{model}={family}" for model, family in self.families)
        return texts | {ERROR_TYPES: ",".join(self.error_types), FAMILIES: of_models}

    @property
    def adjudicates(self) -> bool:
        """Tell whether differences between clinicians are to be settled."""
        return self.adjudicate_from > 0


def read_settings(stored: Mapping[str, str]) -> Settings:
    """Return settings from what a study has stored; what it has not is the default.

    Raises
    ------
    BadInput
        If a value is not allowed; the message says what is.
    """
    names = {setting.name for setting in fields(Settings)}
    values = {name: _value(name, text) for name, text in stored.items() if name in names}
    return Settings(**values)  # type: ignore[arg-type] # each checked by _value


def read_error_types(text: str) -> tuple[str, ...]:
    """Return error types from the text that a study stores, in its order.

    Raises
    ------
    BadInput
        If there is none, one is no plain name or is named twice, or there are more than 12.
    """
    names = tuple(part.strip() for part in text.split(","))
    if odd := [name for name in names if not ERROR_TYPE.fullmatch(name)]:
        raise BadInput(
            f"{ERROR_TYPES}: {odd[0][:40]!r} is no name of an error type; each begins with a letter and "
            "has up to 30 letters, digits, blanks, - or _, with commas between"
        )
    if len({name.casefold() for name in names}) < len(names):
        raise BadInput(f"{ERROR_TYPES} {text!r}: one is named twice")
    if len(names) > MOST_ERROR_TYPES:
        raise BadInput(f"{ERROR_TYPES}: {len(names)}, and a study has at most {MOST_ERROR_TYPES}")
    return names


def read_families(text: str) -> tuple[tuple[str, str], ...]:
    """Return models with their families from the text that a study stores.

    Raises
    ------
    BadInput
        If a part is no MODEL=FAMILY, or a model is named twice.
    """
    families: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        model, _, family = (piece.strip() for piece in part.rpartition("="))
        if not model or not FAMILY.fullmatch(family) or model in families:
            raise BadInput(
                f"{FAMILIES} {part.strip()[:60]!r}: give each model once as MODEL=FAMILY, with commas "
                "between, such as ward-notes-7b=llama; a family is one word of letters, digits, - or _"
            )
        families[model] = family.casefold()
    return tuple(families.items())


def _value(name: str, text: str) -> object:
    """Return one setting from its text."""
    if name in READERS:
        return READERS[name](text)
    if name == "reference":
        return _one_of(name, text, get_args(Reference))
    if name == "adjudicate_by":
        return _one_of(name, text, SETTLING)
    if name == "ask_why":
        return _one_of(name, text, ("true", "false")) == "true"
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 1000:
        raise BadInput(f"{name} {text!r}: must be a number from 0 to 1000")
    return int(number) if name in WHOLE else number


def _budget(text: str) -> float | None:
    """Return an amount of US dollars, None for "none"."""
    if text == "none":
        return None
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise BadInput(f"budget {text!r}: must be an amount of US dollars, 0 or more, or none")
    return amount


def _one_of(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise BadInput(f"{name} {text!r}: must be {', '.join(allowed[:-1])} or {allowed[-1]}")
    return text


READERS: Mapping[str, Callable[[str], object]] = {
    "budget": _budget,
    ERROR_TYPES: read_error_types,
    FAMILIES: read_families,
}
