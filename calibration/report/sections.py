"""The sections of a report, in the order in which its two readers look for answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration import remarks
from calibration.notes import Noted, counted, noted, simulated_in
from calibration.report import figures
from calibration.report.content import IN_POINTS, Content, Costs, CriterionRow
from calibration.report.definitions import PLACES, Fact, definitions
from calibration.report.figures import Figure
from calibration.report.ledger import ledger_words, tried_table
from calibration.report.unsafe import LEAD, SUBGROUP_LEAD, subgroup_tables, unsafe_blocks
from calibration.scope import CliniciansRow
from calibration.tables import agreement, jurors
from calibration.tables.agreement import RELIABILITY
from calibration.tables.meanings import ICC_WORDS, TRIED_SHORT
from calibration.tables.numbers import known, money, place, whole
from calibration.tables.spec import Table, TableSpec, laid_out
from calibration.values import COMBINED

UNTESTED = (
    "Bias towards single models is not tested, because {}. The jury may favour responses by its own "
    "models without any sign of it on this page."
)
MOST_OUTLYING = 5


def cost_words(costs: Costs) -> str:
    """Return the cost of the jury's ratings, as far as it is known."""
    if not costs.calls:
        return (
            "No call to a juror is stored in this study: what the jury's ratings cost is unknown."
        )
    known_calls = costs.calls - costs.unknown
    each = f", {money(costs.usd / costs.rated)} a response" if costs.rated else ""
    spent = (
        f"{money(costs.usd)}{each}: all {whole(costs.calls)} calls to jurors ever made in this study, "
        f"in this jury or not, failed ones included, over {whole(costs.rated)} rated responses."
    )
    gaps = (
        f" Of the calls, {whole(costs.unknown)} have no known price: at least this much was spent."
    )
    bound = (
        " For the upper bound by the MedHELM paper's formula, see the estimate in the jury lab or "
        "`medjury jury run --estimate`: it takes the panel."
    )
    if not known_calls:
        spent = f"Unknown: none of the {whole(costs.calls)} calls to jurors has a known price."
        gaps = ""
    return spent + (gaps if costs.unknown else "") + bound


def defined(content: Content, section: str, figure: str) -> list[Any]:
    """Return a section's rows of the benchmarks shown; none where all figures are undefined."""
    rows = content.of(section, *content.shown)
    return rows if any(known(getattr(row, figure)) for row in rows) else []


def not_tested(content: Content) -> list[Fact]:
    """Return a fact for each bias of which no figure is defined, with the reasons."""
    facts: list[Fact] = []
    for name, section, figure in (
        ("Self-preference", "self_preference", "preference"),
        ("Length", "length", "slope_per_doubling"),
    ):
        rows = content.of(section, *content.shown)
        if rows and not defined(content, section, figure):
            facts.append((name, _why(section, rows)))
    return facts


def _why(section: str, rows: list[Any]) -> str:
    notes = (note for row in rows for note in row.notes if note.is_reason)
    why = "; ".join(dict.fromkeys(note.text for note in notes)) or "no figure is defined"
    if section != "self_preference":
        return f"Not estimated: {why}."
    if all(row.told("no_family") for row in rows):
        why = "the jurors' model families are not given (`--panel` names them)"
    if any(row.told("after_unblinding") for row in rows):
        why = "it is known only after unblinding who wrote what"
    return UNTESTED.format(why)


@dataclass(frozen=True)
class Section:
    """A numbered section: a sentence on how to read it, then tables, charts and facts in order."""

    number: str
    title: str
    lead: str
    blocks: Sequence[Table | Figure | tuple[Figure, ...] | list[Fact]]

    @property
    def anchor(self) -> str:
        """Return its id on the page."""
        return f"s{self.number}"


def sections(content: Content) -> list[Section]:
    """Return every section after the verdict, which is the first."""
    return [
        Section("2", "Agreement, criterion by criterion", _points_lead(), [*_agreement(content)]),
        Section(
            "3", "Like for like: the jury in a clinician's place", _like_lead(), [*_held(content)]
        ),
        Section(
            "4",
            "Compared with metrics and single jurors",
            _against(content),
            [*_baselines(content)],
        ),
        Section(
            "5",
            "Single responses, and use of the scale",
            _sensitivity_lead(),
            [*_influence(content)],
        ),
        Section("6", "The jurors one by one", _juror_lead(), [*_jurors(content)]),
        Section("7", "How many juries were tried", ledger_words(content.study), [*_tried(content)]),
        Section("8", "Cost", cost_words(content.study.costs), []),
        Section("9", "Definitions and origin", "", [definitions(content)]),
        Section("10", "Where the figures and the record are", "", [list(PLACES)]),
        *_safety(content),
        Section("A", "Every scorer on every benchmark", "", [*_everything(content)]),
    ]


def _safety(content: Content) -> Iterator[Section]:
    """Yield the sections on unsafe responses and subgroups, where there are any."""
    if content.detection.rows:
        yield Section("11", "Unsafe responses, found and missed", LEAD, [*unsafe_blocks(content)])
    if content.subgroups:
        yield Section("12", "Subgroups", SUBGROUP_LEAD, [*subgroup_tables(content)])


def _points_lead() -> str:
    return (
        f"{ICC_WORDS} Bias and limits of agreement say how many points of the scale jury and "
        "clinicians differ: above 0, the jury is more generous."
    )


def _agreement(content: Content) -> Iterator[Table | Figure | tuple[Figure, ...] | list[Fact]]:
    rows: list[CriterionRow] = []
    for benchmark in content.benchmarks:
        rows += [_of_all_criteria(content, row) for row in content.about("jury", benchmark)]
        rows += [row for row in content.criteria if row.benchmark == benchmark]
    if rows:
        yield laid_out(agreement.CRITERIA, rows, grouped=len(content.benchmarks) > 1)
    yield from figures.criteria(content)
    for benchmark in content.shown:
        yield from figures.intervals(content, benchmark)
        if pair := tuple(figures.points(content, benchmark)):
            yield pair


def _of_all_criteria(content: Content, row: Any) -> CriterionRow:
    """Return the jury's row of the agreement table as a row among its criteria."""
    points = content.of("other_measures", row.benchmark)
    own = next((one for one in points if one.scorer == "jury"), None)
    figures = {name: getattr(own, name) for name in IN_POINTS} if own else {}
    return CriterionRow(**vars(row), **figures, criterion=content.study.criterion or "composite")


def _like_lead() -> str:
    return (
        "Each clinician is held out in turn, and jury and clinician are compared with the same mean of "
        "the others. Only this comparison answers whether the jury may take a clinician's place."
    )


def _held(content: Content) -> Iterator[Table]:
    between = [row for row in content.rows if isinstance(row, CliniciansRow)]
    if between and between[-1].each:
        yield laid_out(agreement.EACH, between[-1].each)
    for spec, scorer in ((agreement.HELD, "like_for_like"), (agreement.AGAIN, "intra_rater")):
        if rows := content.about(scorer):
            yield laid_out(spec, [_placed(row) for row in rows])
    if reliable := content.of("reliability", *content.shown):
        yield _of_shown(RELIABILITY, reliable, content)


def _placed(row: Any) -> Any:
    """Return a row whose benchmark is named as a heading names it."""
    return replace(row, benchmark=place(row.benchmark))


def _against(content: Content) -> str:
    tried = max((row.n_tried for row in content.of("differences", *content.shown)), default=0)
    return (
        "The jury's ICC minus another's on the same responses: use the interval of the difference, "
        "not whether two intervals overlap. "
        f"{TRIED_SHORT} Here that makes {counted(tried, 'comparison')}."
    )


def _baselines(content: Content) -> Iterator[Table]:
    if rows := content.of("differences", *content.shown):
        yield _of_shown(agreement.DIFFERENCES, rows, content)


def _sensitivity_lead() -> str:
    return (
        "The responses on which jury and clinicians are farthest apart, how each rater uses the "
        "scale, and what was not scored. Leaving a response out for what it shows would be choosing "
        "the result."
    )


def _influence(content: Content) -> Iterator[Table | Figure]:
    for benchmark in content.shown:
        if far := outliers(content, benchmark):
            yield laid_out(
                agreement.OUTLIERS, far, caption=_titled(agreement.OUTLIERS, benchmark, content)
            )
        yield from figures.distributions(content, benchmark)
    if missing := content.of("missing", *content.shown):
        yield _of_shown(agreement.MISSING, missing, content)


@dataclass(frozen=True)
class Outlier(Noted):
    """A response on which jury and clinicians are far apart, in points."""

    response: str
    clinicians: float
    jury: float
    gap: float


def outliers(content: Content, benchmark: str) -> list[Outlier]:
    """Return the responses with the largest difference in points, the largest first."""
    pair = content.paired.get(benchmark)
    if pair is None:
        return []
    gap = pair.jury - pair.clinicians
    order = np.argsort(-np.abs(gap), kind="stable")[:MOST_OUTLYING]
    made_up = noted(remarks.simulated(simulated_in(content.about("jury", benchmark))))
    return [
        Outlier(
            pair.responses[at],
            float(pair.clinicians[at]),
            float(pair.jury[at]),
            float(gap[at]),
            notes=made_up,
        )
        for at in order
    ]


def _juror_lead() -> str:
    return (
        "Points are points of the rubric's scale. Leniency below 0 is stricter than the other raters "
        "of the same responses; what a juror adds is the jury's ICC minus that of the jury without it."
    )


def _jurors(content: Content) -> Iterator[Table | list[Fact]]:
    for name, figure in jurors.REPORTED.items():
        rows = defined(content, name, figure) if figure else content.of(name, *content.shown)
        if name == "test_retest":  # a juror that was asked once has none
            rows = [row for row in rows if known(row.icc_one)]
        if rows:
            yield _of_shown(jurors.SECTIONS[name], rows, content)
    if untested := not_tested(content):
        yield untested


def _tried(content: Content) -> Iterator[Table]:
    if content.study.tried:
        yield tried_table(content.study)


def _everything(content: Content) -> Iterator[Table | list[Fact]]:
    yield laid_out(agreement.AGREEMENT, content.rows, grouped=len(content.benchmarks) > 1)
    if content.checked:
        yield [("ICC", content.checked)]


def _of_shown(spec: TableSpec, rows: Sequence[Any], content: Content) -> Table:
    if len(content.shown) > 1:
        return laid_out(spec, rows, grouped=True)
    return laid_out(spec, rows, caption=_titled(spec, rows[0].benchmark, content))


def _titled(spec: TableSpec, benchmark: str, content: Content) -> str:
    """Return a caption with whose figures these are, where there are several benchmarks."""
    if len(content.benchmarks) == 1:
        return spec.caption
    whose = "all benchmarks combined" if benchmark == COMBINED else benchmark
    return f"{spec.caption}: {whose}"
