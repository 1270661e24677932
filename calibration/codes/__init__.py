"""The code of every note on a figure. A code means one thing; `calibration.messages` words it.

Each subject has its own enumeration; no value stands in two of them.
"""

from typing import TypeAlias

from calibration.codes.figures import NoteCode
from calibration.codes.monitoring import MonitoringCode
from calibration.codes.planning import PlanningCode
from calibration.codes.steps import StepCode

AnyCode: TypeAlias = NoteCode | MonitoringCode | PlanningCode | StepCode
SUBJECTS = (NoteCode, MonitoringCode, PlanningCode, StepCode)
CODES: frozenset[AnyCode] = frozenset(code for subject in SUBJECTS for code in subject)

__all__ = ["CODES", "SUBJECTS", "AnyCode", "MonitoringCode", "NoteCode", "PlanningCode", "StepCode"]
