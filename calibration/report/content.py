"""The content of a report: figures that are computed elsewhere, and facts about the study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibration.decision import Decision
from calibration.detection import NOTHING, Detection
from calibration.protocol import Protocol
from calibration.report.evidence import CriterionRow, Paired
from calibration.scope import AgreementRow
from calibration.subgroups import SubgroupRow
from calibration.values import COMBINED, Noted


@dataclass(frozen=True)
class Juror:
    """A juror: its name, model, provider, and the hash of all settings that affect its answers."""

    name: str
    model: str = ""
    provider: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class UsedRubric:
    """The rubric of one benchmark."""

    benchmark: str
    name: str
    version: str
    criteria: tuple[str, ...]
    scale: str
    sha256: str


@dataclass(frozen=True)
class Tried:
    """One entry of the ledger: a jury that was compared with the clinicians."""

    jurors: tuple[str, ...]
    needed: int
    benchmark: str
    criterion: str
    method: str
    instances: str
    icc: float | None
    n_responses: int
    times: int
    last: str
    simulated: bool


@dataclass(frozen=True)
class Costs:
    """The cost of all calls to jurors in the study; `unknown` of the calls have no price.

    `rated` counts responses that any juror of the study has rated.
    """

    usd: float = 0.0
    calls: int = 0
    unknown: int = 0
    rated: int = 0


@dataclass(frozen=True)
class Study:
    """Facts about the study and the options. Nothing here names a response's author.

    `told` are sentences that every report must show, such as when the study was unblinded;
    `silent` jurors were asked and gave no rating; `versions` is software -> version.
    """

    made: str
    method: str = "paper"
    criterion: str | None = None
    reps: int = 2000
    seed: int = 0
    min_shared: int = 2
    needed: int = 0
    references: str = "all"
    fingerprint: str = ""
    jurors: Sequence[Juror] = ()
    silent: Sequence[str] = ()
    rubrics: Sequence[UsedRubric] = ()
    tried: Sequence[Tried] = ()
    costs: Costs = Costs()
    told: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Content:
    """All that a report shows.

    Attributes
    ----------
    rows : the agreement table
    decisions : the verdicts, by benchmark, in the table's order
    details : section -> rows, as `details.details` returns them
    criteria : rows of `evidence.criterion_rows`
    paired : means of clinicians and jury, by benchmark
    study : Study
    detection : rows and curves of unsafe responses
    subgroups : rows of subgroups
    opinions : how far other libraries' figures are from these
    protocol : the study's protocol, None where none was fixed
    """

    rows: Sequence[AgreementRow]
    decisions: Mapping[str, Decision]
    details: Mapping[str, Sequence[Noted]]
    criteria: Sequence[CriterionRow]
    paired: Mapping[str, Paired]
    study: Study
    detection: Detection = NOTHING
    subgroups: Sequence[SubgroupRow] = ()
    opinions: Sequence[Noted] = ()
    protocol: Protocol | None = None

    @property
    def benchmarks(self) -> list[str]:
        """Return the benchmarks in the table's order, `combined` last."""
        return list(dict.fromkeys(row.benchmark for row in self.rows))

    @property
    def shown(self) -> list[str]:
        """Return the benchmarks whose details are shown: all combined, or each where that is undefined."""
        analysed = {row.benchmark for row in self.of("distributions")}
        if COMBINED in analysed or len(self.benchmarks) == 1:
            return self.benchmarks[-1:]
        return [name for name in self.benchmarks if name in analysed]

    @property
    def decision(self) -> Decision:
        """Return the verdict on all benchmarks combined, or on the only one."""
        return [*self.decisions.values()][-1]

    def of(self, section: str, *benchmarks: str) -> list[Any]:
        """Return the rows of a section of the details, of these benchmarks, or of all."""
        rows: Sequence[Any] = self.details.get(section, ())
        return [row for row in rows if not benchmarks or row.benchmark in benchmarks]

    def about(self, scorer: str, *benchmarks: str) -> list[AgreementRow]:
        """Return a scorer's rows of the agreement table, of these benchmarks, or of all."""
        shown = benchmarks or tuple(self.benchmarks)
        return [row for row in self.rows if row.scorer == scorer and row.benchmark in shown]
