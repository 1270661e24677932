"""Settings of a study, which hold for all who work on it."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from data.card import ERRORS, Settling
from data.errors import BadInput

Language = Literal["en", "de"]
Reference = Literal["hidden", "on_request", "after_rating"]
Amount = Annotated[float, Field(ge=0, le=1000)]
Whole = Annotated[int, Field(ge=0, le=1000)]
Budget = Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
Switch = Annotated[bool, BeforeValidator(lambda text: {"true": True, "false": False}.get(text))]
# Setting -> what it takes, where its type does not say it.
ALLOWED = {
    **dict.fromkeys(("training_gap", "adjudicate_from"), "a number from 0 to 1000"),
    **dict.fromkeys(("pause_minutes", "remind_days"), "a whole number from 0 to 1000"),
    **dict.fromkeys(("ask_why", "training_order"), "true or false"),
    "budget": "an amount of US dollars, 0 or more, or none",
}
ERROR_TYPES, FAMILIES, AS_TYPED = "error_types", "families", "as_typed"
MOST_ERROR_TYPES = 12
FAMILY = re.compile(r"[^\W\d_][\w-]{0,29}")
ERROR_TYPE = re.compile(r"[^\W\d_][\w -]{0,29}")  # words of any language, as clinicians read them


def _error_types(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if odd := [name for name in names if not ERROR_TYPE.fullmatch(name)]:
        raise ValueError(
            f"{ERROR_TYPES}: {odd[0][:40]!r} is no name of an error type; each begins with a letter and "
            "has up to 30 letters, digits, blanks, - or _, with commas between"
        )
    if len({name.casefold() for name in names}) < len(names):
        raise ValueError(f"{ERROR_TYPES} {text!r}: one is named twice")
    if len(names) > MOST_ERROR_TYPES:
        raise ValueError(f"{ERROR_TYPES}: {len(names)}, and a study has at most {MOST_ERROR_TYPES}")
    return names


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _families(text: str) -> tuple[tuple[str, str], ...]:
    families: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        model, _, family = (piece.strip() for piece in part.rpartition("="))
        if not model or not FAMILY.fullmatch(family) or model in families:
            raise ValueError(
                f"{FAMILIES} {part.strip()[:60]!r}: give each model once as MODEL=FAMILY, with commas "
                "between, such as ward-notes-7b=llama; a family is one word of letters, digits, - or _"
            )
        families[model] = family.casefold()
    return tuple(families.items())


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
    training_order
        Whether training also asks that the response which the experts rated lowest is rated lowest.
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
    as_typed
        Benchmarks whose texts clinicians first see as they were typed, not with headings, lists and
        tables laid out; a key shows them the other way.
    language
        Of the rating room's own words.
    families
        (model, family) of authors whose names do not tell their family: for figures of jurors on
        responses of their own, which a blind study does not tell.
    budget
        US dollars that all jury runs of the study may spend together; None, written "none", bounds
        nothing.
    """

    reference: Reference = "on_request"
    pause_minutes: Whole = 25
    ask_why: Switch = True
    training_gap: Amount = 1.0
    error_types: Annotated[tuple[str, ...], BeforeValidator(_error_types)] = ERRORS
    adjudicate_from: Amount = 0.0
    adjudicate_by: Settling = "third"
    remind_days: Whole = 3
    budget: Annotated[Budget, BeforeValidator(lambda text: None if text == "none" else text)] = None
    families: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_families)] = ()
    as_typed: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    training_order: Switch = False
    language: Language = "en"

    def as_text(self) -> dict[str, str]:
        """Return the settings as a study stores them."""
        texts = {name: str(value).lower() for name, value in asdict(self).items()}
        of_models = ",".join(f"{model}={family}" for model, family in self.families)
        lists = {ERROR_TYPES: ",".join(self.error_types), AS_TYPED: ",".join(self.as_typed)}
        return texts | lists | {FAMILIES: of_models}

    @property
    def adjudicates(self) -> bool:
        """Tell whether differences between clinicians are to be settled."""
        return self.adjudicate_from > 0


SETTINGS = TypeAdapter(Settings)


def read_settings(stored: Mapping[str, str]) -> Settings:
    """Return settings from what a study has stored; what it has not is the default.

    Raises
    ------
    BadInput
        If a value is not allowed; the message says what is.
    """
    try:
        return SETTINGS.validate_python(stored)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        if first["type"] == "value_error":
            raise BadInput(first["msg"].removeprefix("Value error, ")) from error
        allowed = ALLOWED.get(name) or first["ctx"]["expected"].replace("'", "")
        raise BadInput(f"{name} {stored[name]!r}: must be {allowed}") from error
