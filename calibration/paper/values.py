"""What a page of the paper is: rows, how they are drawn, and what differs from the paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from calibration.tables.spec import Table

ROUNDING = 1e-9  # figures that are closer differ by rounding only


class Page(StrEnum):
    """The pages, under the names of their files."""

    TABLE_1 = "table_1"
    FIGURE_3 = "figure_3"
    FIGURE_4 = "figure_4"
    FIGURE_5 = "figure_5"
    TABLE_2 = "table_2"
    TABLE_3 = "table_3"
    DETECTABLE = "table_e4"


class Differs(StrEnum):
    """What is done otherwise than in the paper."""

    TIES = "ties"
    INTERVALS = "intervals"
    NO_INTERVALS = "no_intervals"
    OWN_BENCHMARKS = "own_benchmarks"
    MORE_BENCHMARKS = "more_benchmarks"
    MISSING = "missing"
    ROUNDED = "rounded"
    PUBLISHED_METHOD = "published_method"
    PAPER_METHOD = "paper_method"
    NEGATIVE = "negative"
    OWN_COSTS = "own_costs"
    MADE_UP_COSTS = "made_up_costs"
    RECORDED = "recorded"
    DDOF = "ddof"


class Absent(StrEnum):
    """Why a page has nothing to show."""

    NO_COSTS = "no_costs"
    NO_CALLS = "no_calls"
    NO_CLINICIANS = "no_clinicians"
    NO_JURY = "no_jury"
    NO_CATEGORIES = "no_categories"
    NO_INSTANCES = "no_instances"


class Drawing(StrEnum):
    """How a page's rows are drawn."""

    HEATMAP = "heatmap"
    COSTS = "costs"


@dataclass(frozen=True, slots=True)
class PaperPage:
    """One table or figure.

    Attributes
    ----------
    page : which
    columns, rows : its figures in full precision, as the CSV has them; None is undefined
    tables : the same to be read
    drawing : how its rows are drawn, None for a table
    differs : what is done otherwise than in the paper
    absent : why it has nothing to show, or None
    simulated : raters behind it that are simulated
    """

    page: Page
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    tables: tuple[Table, ...] = ()
    drawing: Drawing | None = None
    differs: tuple[Differs, ...] = ()
    absent: Absent | None = None
    simulated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure of a model beside the one that is computed here.

    `equal` is whether both are the same at the published number of digits.
    """

    model: str
    figure: str
    published: float
    computed: float
    digits: int

    @property
    def equal(self) -> bool:
        """Tell whether the computed figure rounds to the published one."""
        half: float = 0.5 * 10**-self.digits
        return abs(self.computed - self.published) <= half + ROUNDING


@dataclass(frozen=True, slots=True)
class PaperPages:
    """All pages, where they come from, and how they compare with published figures.

    `source` names the study or the file; `is_leaderboard` tells which. `measured` is benchmark ->
    the metric that scored it, of a study; the jury scored the others.
    """

    pages: tuple[PaperPage, ...]
    source: str
    is_leaderboard: bool
    made: str
    published: tuple[Published, ...] = ()
    simulated: tuple[str, ...] = ()
    told: Sequence[str] = ()
    measured: Mapping[str, str] = field(default_factory=dict)
