"""The code of every note on a figure. A code means one thing; `calibration.messages` words it.

Each subject has its own enumeration; no value stands in two of them.
"""

from typing import TypeAlias

from calibration.codes.figures import NoteCode
from calibration.codes.monitoring import MonitoringCode
from calibration.codes.planning import PlanningCode

AnyCode: TypeAlias = NoteCode | MonitoringCode | PlanningCode
SUBJECTS = (NoteCode, MonitoringCode, PlanningCode)
CODES: frozenset[AnyCode] = frozenset(code for subject in SUBJECTS for code in subject)

__all__ = ["CODES", "SUBJECTS", "AnyCode", "MonitoringCode", "NoteCode", "PlanningCode"]
