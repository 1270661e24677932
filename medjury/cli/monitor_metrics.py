"""OpenMetrics text for a scraper: figures, names of benchmarks and jurors, and nothing else."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from medjury.cli.places import STANDARD_OUTPUT, write_files

if TYPE_CHECKING:
    from medjury.services.monitoring import Monitored

ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


@dataclass(frozen=True, slots=True)
class Gauge:
    """A family of gauges: each sample has its labels and its value; NaN where undefined."""

    name: str
    what: str
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)
    unit: str = ""

    def lines(self) -> Iterator[str]:
        """Yield the family in OpenMetrics text."""
        yield f"# TYPE {self.name} gauge"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {_escaped(self.what)}"
        for labels, value in self.samples:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            yield f"{self.name}{{{inside}}} {_number(value)}"


def openmetrics(found: "Monitored") -> str:
    """Return what was found as OpenMetrics text, which ends with `# EOF`.

    Its figures are those of the newest period that is judged. A family without a sample is
    left out.
    """
    families = [one for one in _families(found) if one.samples]
    lines = [line for family in families for line in family.lines()]
    return "\n".join([*lines, "# EOF"]) + "\n"


def write_openmetrics(text: str, to: Path) -> None:
    """Write the text, whole or not at all: a scraper may read at any moment."""
    if to == STANDARD_OUTPUT:
        print(text, end="")
        return
    write_files({"--openmetrics": (to, text)})


def _families(found: "Monitored") -> Iterable[Gauge]:
    judged, watched = found.judged, found.judged.watched
    newest = watched.judged
    who = {
        "benchmark": judged.benchmark,
        "scorer": "jury",
        "simulated": "true" if judged.study.simulated else "false",
    }
    looks = [row for row in watched.rows if row.period == newest.period and row.role == "watched"]
    yield from (
        Gauge(f"medjury_{name}", what, [(who, float(value))])
        for name, what, value in (
            ("icc", "ICC(C,2) of the jury with the clinicians, newest period.", newest.icc),
            ("icc_low", "Lower end of its 95 % interval.", newest.boot_low),
            ("icc_high", "Upper end of its 95 % interval.", newest.boot_high),
            ("icc_threshold", "Floor: the least ICC that is wanted.", judged.question.floor),
            ("icc_target", "ICC the CUSUM compares with.", watched.target_icc),
            ("period_responses", "Responses the ICC rests on.", newest.n_responses),
            ("period_instances", "Instances of these responses.", newest.n_instances),
            ("period_missing", "Responses the jury has no score for.", newest.n_missing),
            ("cusum_alarm", "1 if the CUSUM has reached its limit.", watched.is_below_target),
            ("fallen", "1 if agreement has fallen.", judged.has_fallen),
            ("judged", "0 if the ICC is undefined and nothing can be said.", judged.is_judged),
        )
    )
    sums, limits = ([_known(getattr(row, name)) for row in looks] for name in ("cusum", "limit"))
    yield Gauge("medjury_cusum", "Falls added up.", [(who, one) for one in sums])
    yield Gauge("medjury_cusum_limit", "Where they raise an alarm.", [(who, one) for one in limits])
    yield from _times(found, who)


def _times(found: "Monitored", who: Mapping[str, str]) -> Iterator[Gauge]:
    newest = found.judged.watched.judged
    yield Gauge(
        "medjury_period_end_timestamp_seconds",
        "End of the newest period that is judged.",
        [(who, _midnight(newest.end) + 86_400)],
        "seconds",
    )
    yield Gauge(
        "medjury_report_timestamp_seconds",
        "When the newest report was frozen.",
        [({"report": f"{one.report}"}, one.at.timestamp()) for one in found.reports[-1:]],
        "seconds",
    )
    yield Gauge(
        "medjury_juror_end_timestamp_seconds",
        "Day from which the model of a juror cannot be asked.",
        [({"juror": one.juror}, _midnight(one.ends)) for one in found.causes.jurors if one.ends],
        "seconds",
    )


def _midnight(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _number(value: float) -> str:
    return "NaN" if not math.isfinite(value) else repr(float(value))


def _escaped(text: str) -> str:
    return "".join(ESCAPED.get(sign, sign) for sign in text)
