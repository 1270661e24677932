"""What the verdict's figure hangs on, in a line: the response that decides, the juror that costs."""

from collections.abc import Iterator

from calibration.report.content import Content
from calibration.tables.numbers import fixed, known

WORTH_SAYING = 0.02  # of ICC that a jury gains without one of its jurors


def hangs_on(content: Content, benchmark: str) -> str:
    """Return what the jury's ICC hangs on, and whom it would be better without; "" of neither."""
    return " ".join([*_left_out(content, benchmark), *_juror(content, benchmark)])


def _left_out(content: Content, benchmark: str) -> Iterator[str]:
    """Say which response or instance changes the ICC most when it is left out."""
    rows = [row for row in content.of("influence", benchmark) if row.scorer == "jury"]
    told = [row for row in rows if row.left_out and known(row.change)]
    if told:
        most = max(told, key=lambda row: abs(row.change))
        kind, _, name = str(most.left_out).partition(":")
        yield (
            f"The jury's ICC hangs most on the {kind} {name}: {fixed(most.icc_all, 3)} with it, "
            f"{fixed(most.icc_without, 3)} without."
        )


def _juror(content: Content, benchmark: str) -> Iterator[str]:
    """Name the juror without whom the jury agrees most, if clearly better than with it."""
    rows = content.of("juror_value", benchmark)
    told = [row for row in rows if known(row.icc_without)]
    if not told:
        return
    best = max(told, key=lambda row: row.icc_without)
    whole = best.icc_jury
    if best.icc_without - whole > WORTH_SAYING:
        yield (
            f"Without the juror {best.juror} the jury would agree better: ICC "
            f"{fixed(best.icc_without, 3)} instead of {fixed(whole, 3)}. `medjury juries` ranks "
            "all juries, with the luck of choosing taken out."
        )
