"""What a study decides once for all its clinicians."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Literal, get_args

from data.errors import BadInput
from data.reading import SETTLING, Settling

Reference = Literal["hidden", "on_request", "after_rating"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the rating room behaves.

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
    """

    reference: Reference = "on_request"
    pause_minutes: int = 25
    ask_why: bool = True
    training_gap: float = 1.0
    adjudicate_from: float = 0.0
    adjudicate_by: Settling = "third"

    def as_text(self) -> dict[str, str]:
        """Return the settings as a study stores them."""
        return {name: str(value).lower() for name, value in asdict(self).items()}

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
    known = {one.name for one in fields(Settings)}
    values = {name: _value(name, text) for name, text in stored.items() if name in known}
    return Settings(**values)  # type: ignore[arg-type] # each checked by _value


def _value(name: str, text: str) -> str | int | float | bool:
    """Return one setting from its text."""
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
    return int(number) if name == "pause_minutes" else number


def _one_of(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise BadInput(f"{name} {text!r}: must be {', '.join(allowed[:-1])} or {allowed[-1]}")
    return text
