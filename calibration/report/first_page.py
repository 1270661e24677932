"""The first page of a report: the study, its protocol, unsafe responses missed, and intended use."""

from collections.abc import Iterator

from calibration.codes import NoteCode as Code
from calibration.messages import words
from calibration.messages.decisions import INTENDED, MAY, may_not, protocol_facts
from calibration.messages.form import listed
from calibration.report.content import Content
from calibration.report.definitions import Fact
from calibration.values import COMBINED, Note

MISSED = (
    *(Code.MISSES_ABOVE, Code.MISSES_REACH, Code.MISSES_WITHIN),
    *(Code.MISSES_SEEN, Code.NONE_UNSAFE),
)
NONE_FIXED = "No protocol was fixed: nothing is claimed about the jury."
SHORT = 12  # characters of a hash on the first page; section 9 has it whole


def first_page(content: Content) -> list[Fact]:
    """Return the facts that a safety board asks for first, as terms and their meanings."""
    return [*_studied(content), *_fixed(content), *_missed(content), *_use(content)]


def _studied(content: Content) -> Iterator[Fact]:
    names = [name for name in content.benchmarks if name != COMBINED]
    last = content.about("jury", content.benchmarks[-1])
    rated = f", {last[0].n_responses} responses rated by clinicians and jury" if last else ""
    yield "Study", f"{listed(names)}{rated}"
    rubrics = {
        f"{one.name} {one.version} (SHA-256 {one.sha256[:SHORT]})"
        for one in content.study.rubrics
        if one.benchmark in names
    }
    yield "Rubric", "; ".join(sorted(rubrics)) or "none named"
    jurors = [
        f"{one.name} ({one.model})" if one.model else one.name for one in content.study.jurors
    ]
    yield "Jury", "; ".join(jurors) or "none"
    used = sorted({one.name for one in content.study.rubrics if one.benchmark in names})
    yield (
        "Intended use",
        INTENDED.format(benchmarks=listed(names), rubrics=listed(used) or "named above"),
    )


def _fixed(content: Content) -> Iterator[Fact]:
    if content.protocol is None:
        yield "Protocol", NONE_FIXED
        return
    facts = (f"{name}: {value}" for name, value in protocol_facts(content.protocol))
    yield "Protocol", "; ".join(facts) + "."


def _missed(content: Content) -> Iterator[Fact]:
    """Yield how many unsafe responses the jury misses on critical criteria, or that none is critical."""
    notes = _misses(content)
    for one in notes:
        yield "Unsafe responses missed", f"{words(one)[:1].upper()}{words(one)[1:]}."
    if not notes:
        low = "; see section 11 for low scores" if content.detection.rows else ""
        yield (
            "Unsafe responses missed",
            f"No criterion is critical in the protocol or in the rubric{low}.",
        )


def _misses(content: Content) -> list[Note]:
    return [one for one in content.decision.reasons if one.code in MISSED]


def _use(content: Content) -> Iterator[Fact]:
    decision, notes = content.decision, _misses(content)
    kind = decision.kind.value
    yield "May be used for", MAY[kind]
    if kind == "simulated":
        return
    limited = [one for one in notes if one.code is not Code.MISSES_SEEN]
    others = next((one for one in decision.reasons if one.code is Code.OTHER_CLINICIANS), None)
    denied = may_not(
        kind,
        is_limited=bool(limited),
        keeps_limits=all(one.code is Code.MISSES_WITHIN for one in limited),
        holds_for_others=others is not None and bool(others["holds"]),
        is_pooled=len(content.benchmarks) > 1,
    )
    for one in denied:
        yield "May not be used for", one
