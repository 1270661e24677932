"""The measured figures, as one Markdown table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from shifts import Taken


@dataclass(frozen=True, slots=True)
class Row:
    """What so many clinicians did."""

    clinicians: int
    think: float
    taken: Taken
    cpu_seconds: float
    rss_mb: float
    load: str

    def cells(self) -> list[str]:
        """Return the row as text."""
        submits = np.array(self.taken.submits)
        actions = self.taken.actions
        return [
            str(self.clinicians),
            f"{self.think:g}" if self.think else "none",
            str(len(submits)),
            *(f"{value:.0f}" for value in (*np.percentile(submits, (50, 95, 99)), submits.max())),
            f"{np.percentile(self.taken.drafts, 95):.0f}",
            f"{actions / self.taken.seconds:.0f}",
            f"{1000 * self.cpu_seconds / actions:.1f}",
            f"{self.rss_mb:.0f}",
            self.load,
        ]


HEAD = (
    "clinicians",
    "think s",
    "submits",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "max ms",
    "draft p95 ms",
    "messages/s",
    "CPU ms/message",
    "RSS MB",
    "machine",
)


def markdown(rows: Sequence[Row]) -> str:
    """Return a table of the rows."""
    lines = [HEAD, ["---"] * len(HEAD), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
