"""How much the jury's ICC depends on a single response, instance or juror, as text."""

from collections.abc import Iterator

from calibration.report.content import Content
from calibration.tables.numbers import fixed, known

WORTH_SAYING = 0.02  # of ICC that a jury gains without one of its jurors


def sensitivity(content: Content, benchmark: str) -> str:
    """Return on which response the jury's ICC depends most, and a juror it is better without; or ""."""
    return " ".join([*_left_out(content, benchmark), *_juror(content, benchmark)])


def _left_out(content: Content, benchmark: str) -> Iterator[str]:
    """Yield the response or instance whose omission changes the ICC most."""
    rows = [row for row in content.of("influence", benchmark) if row.scorer == "jury"]
    changes = [row for row in rows if row.left_out and known(row.change)]
    if changes:
        most = max(changes, key=lambda row: abs(row.change))
        kind, _, name = str(most.left_out).partition(":")
        yield (
            f"The jury's ICC depends most on the {kind} {name}: {fixed(most.icc_all, 3)} with it, "
            f"{fixed(most.icc_without, 3)} without it."
        )


def _juror(content: Content, benchmark: str) -> Iterator[str]:
    """Yield the juror without whom the jury agrees best, if clearly better than with it."""
    rows = content.of("juror_value", benchmark)
    defined = [row for row in rows if known(row.icc_without)]
    if not defined:
        return
    best = max(defined, key=lambda row: row.icc_without)
    whole = best.icc_jury
    if best.icc_without - whole > WORTH_SAYING:
        yield (
            f"Without the juror {best.juror} the jury would agree better: ICC "
            f"{fixed(best.icc_without, 3)} instead of {fixed(whole, 3)}. `medjury analyse juries` ranks "
            "all juries, corrected for choosing the best."
        )
