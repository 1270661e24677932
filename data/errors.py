"""Every error a user can meet, drawn as a tree.

    MedjuryError
    ├── BadInput              a file, a value or an option the user gave
    │   ├── BadFile           cannot be read as what it should be
    │   ├── BadRow            one row of a file; nothing of the file was written
    │   ├── OffScale          a score outside its rubric's scale
    │   ├── BadRubric         a rubric that contradicts itself
    │   ├── BadPanel          a panel that cannot be run
    │   ├── Unexplained       a low score without the reason that the study asks for
    │   ├── Unknown           a name that is not in the study
    │   └── Unrated           a study that no clinician has rated yet
    ├── Conflict              what is stored already says otherwise
    │   └── Stale             another page has changed it meanwhile
    ├── NoStudy               the database is absent, locked or of another kind
    ├── NotAllowed            this person may not do this
    └── TooFew                too little data for the statistic asked for

The command line and the app catch MedjuryError and nothing wider.
"""

import re

MISSING_CODE = re.compile(r"-?(9+|8+|7+)|0|-1")  # what stands for no score in many files


class MedjuryError(Exception):
    """Base of all errors with a message meant for the user: who, what, where, what to do."""


class BadInput(MedjuryError):
    """Something the user gave is wrong; nothing was written."""


class BadFile(BadInput):
    """A file that cannot be read as what it should be."""


class BadRow(BadInput):
    """A row of a file that is wrong; the message names row, column, value and what is allowed."""


class OffScale(BadInput):
    """A score outside its rubric's scale."""

    @staticmethod
    def hint(value: str) -> str:
        """Return what may have gone wrong with a score that is not on the scale."""
        if value.count(",") == 1 and value.replace(",", "").strip("-").isdecimal():
            return f"; write {value.replace(',', '.')} with a point"
        if value.isalpha() or not any(sign.isdecimal() for sign in value):
            return "; leave a missing score empty"
        if any(sign.isalpha() for sign in value):
            return "; give the points alone, or the points of each label under [scale] of a map"
        if MISSING_CODE.fullmatch(value):
            return f'; leave a missing score empty, or say missing = ["{value}"] in a map'
        return ""


class BadRubric(BadInput):
    """A rubric that is incomplete or contradicts itself."""


class BadPanel(BadInput):
    """A panel file that is incomplete or contradicts itself, or a juror whose key is missing."""


class Unexplained(BadInput):
    """A low score without a line or a marked stretch; names the criterion."""


class Unknown(BadInput):
    """A name that is not in the study; the message lists those that are."""


class Unrated(BadInput):
    """No clinician has rated anything yet, so that there is nothing to agree with."""


class Conflict(MedjuryError):
    """What is stored already says otherwise; stored rows are never changed."""


class Stale(Conflict):
    """What a page means to replace was changed by another page since it knew it."""


class NoStudy(MedjuryError):
    """The database is absent, locked, or not a medjury study."""


class NotAllowed(MedjuryError):
    """A person tried what their role does not allow."""


class TooFew(MedjuryError):
    """Too little data for the statistic asked for."""
