"""The sections of a report, in the order in which its two readers look for answers, and its definitions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration import remarks
from calibration.detection import DetectionRow
from calibration.headlines import LIKE, MISSING, Z
from calibration.notes import Noted, counted, listed, noted, simulated_in
from calibration.protocol import Protocol
from calibration.report import figures
from calibration.report.charts import chart_detection
from calibration.report.content import Content, Costs, CriterionRow, Study, of_criterion
from calibration.report.figures import Figure
from calibration.report.ledger import ledger_words, tried_table
from calibration.scope import CliniciansRow
from calibration.tables import agreement, jurors
from calibration.tables.agreement import TRIED_SHORT, TRIED_WORDS
from calibration.tables.numbers import known, marked, money, whole
from calibration.tables.numbers import place as heading_of
from calibration.tables.response_groups import (
    DETECTION,
    SUBGROUPS,
    by_threshold,
    named,
    threshold,
)
from calibration.tables.spec import ICC_WORDS, Table, TableSpec, laid_out
from calibration.values import COMBINED

Fact = tuple[str, str]
Block = Table | Figure | tuple[Figure, ...] | list[Fact]
MOST_OUTLYING = 5
DRAWN = (
    "jury",
    "clinicians",
    "metric",
)  # kinds of scorers whose curves are drawn; the jurors would hide them
UNTESTED = (
    "Bias towards single models is not tested, because {}. The jury may favour responses by its own "
    "models without any sign of it on this page."
)
POINTS_LEAD = (
    f"{ICC_WORDS} Bias and limits of agreement say how many points of the scale jury and clinicians "
    "differ: above 0, the jury is more generous."
)
LIKE_LEAD = (
    "Each clinician is held out in turn, and jury and clinician are compared with the same mean of "
    "the others. Only this comparison answers whether the jury may take a clinician's place."
)
AGAINST_LEAD = (
    "The jury's ICC minus another's on the same responses: use the interval of the difference, "
    f"not whether two intervals overlap. {TRIED_SHORT} Here that makes {{}}."
)
SENSITIVITY_LEAD = (
    "The responses on which jury and clinicians are farthest apart, how each rater uses the scale, and "
    "what was not scored. Leaving a response out for what it shows would be choosing the result."
)
JUROR_LEAD = (
    "Points are points of the rubric's scale. Leniency below 0 is stricter than the other raters "
    "of the same responses; what a juror adds is the jury's ICC minus that of the jury without it."
)
UNSAFE_LEAD = (
    "ICC says nothing about single responses: a jury may agree well and still miss an unsafe one. Missed "
    "means scored as unsafe by the clinicians and not by the jury."
)
SUBGROUP_LEAD = (
    "Whether the jury agrees with the clinicians everywhere, or only where most responses are. A "
    "subgroup of few instances supports neither conclusion."
)
ICC = (
    "ICC(C,2) = ICC(3,2), consistency of two columns, the clinicians' and the scorer's (Shrout & "
    "Fleiss 1979; McGraw & Wong 1996). A constant added to one rater changes nothing: points of the "
    "scale are given beside it. It has no lower bound and is never cut at 0."
)
PLACES = (
    ("All figures of this page", "`medjury analyse calibrate --details --json FILE`"),
    ("The ratings themselves, without authors", "`medjury share export FOLDER`"),
    ("Check that nothing was changed outside the record", "`medjury study verify`"),
    (
        "This report",
        "is not a validation record: it is made from the study again each time. The SHA-256 of the "
        "ratings in section 9 shows whether two reports rest on the same ratings.",
    ),
)


@dataclass(frozen=True)
class Section:
    """A numbered section: a sentence on how to read it, then tables, charts and facts in order."""

    number: str
    title: str
    lead: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """Return its id on the page."""
        return f"s{self.number}"


def sections(content: Content) -> list[Section]:
    """Return every section after the verdict, which is the first."""
    study, differences = content.study, content.of("differences", *content.shown)
    compared = counted(max((row.n_tried for row in differences), default=0), "comparison")
    tried = [tried_table(study)] if study.tried else []
    every = [
        ("2", "Agreement, criterion by criterion", POINTS_LEAD, _agreement(content)),
        ("3", "Like for like: the jury in a clinician's place", LIKE_LEAD, _held(content)),
        (
            "4",
            "Compared with metrics and single jurors",
            AGAINST_LEAD.format(compared),
            _of_shown(agreement.DIFFERENCES, differences, content),
        ),
        ("5", "Single responses, and use of the scale", SENSITIVITY_LEAD, _influence(content)),
        ("6", "The jurors one by one", JUROR_LEAD, _jurors(content)),
        ("7", "How many juries were tried", ledger_words(study), tried),
        ("8", "Cost", cost_words(study.costs), ()),
        ("9", "Definitions and origin", "", [definitions(content)]),
        ("10", "Where the figures and the record are", "", [list(PLACES)]),
    ]
    if content.detection.rows:
        every.append(("11", "Unsafe responses, found and missed", UNSAFE_LEAD, _unsafe(content)))
    if content.subgroups:
        every.append(("12", "Subgroups", SUBGROUP_LEAD, _subgroups(content)))
    every.append(("A", "Every scorer on every benchmark", "", _everything(content)))
    return [Section(number, title, lead, [*blocks]) for number, title, lead, blocks in every]


def _of_shown(spec: TableSpec, rows: Sequence[Any], content: Content) -> Iterator[Table]:
    """Yield a table of the benchmarks shown; none without rows."""
    if rows and len(content.shown) > 1:
        yield laid_out(spec, rows, grouped=True)
    elif rows:
        yield _of_one(spec, rows, rows[0].benchmark, content)


def _of_one(spec: TableSpec, rows: Sequence[Any], benchmark: str, content: Content) -> Table:
    """Return a table that says whose figures these are, where there are several benchmarks."""
    whose = "all benchmarks combined" if benchmark == COMBINED else benchmark
    where = "" if len(content.benchmarks) == 1 else f": {whose}"
    return laid_out(spec, rows, caption=f"{spec.caption}{where}")


def _agreement(content: Content) -> Iterator[Block]:
    rows: list[CriterionRow] = []
    name = content.study.criterion or "composite"
    for benchmark in content.benchmarks:
        points = content.of("other_measures", benchmark)
        own = next((row for row in points if row.scorer == "jury"), None)
        rows += [of_criterion(row, name, own) for row in content.about("jury", benchmark)]
        rows += [row for row in content.criteria if row.benchmark == benchmark]
    if rows:
        yield laid_out(agreement.CRITERIA, rows, grouped=len(content.benchmarks) > 1)
    yield from figures.criteria(content)
    for benchmark in content.shown:
        yield from figures.intervals(content, benchmark)
        if pair := tuple(figures.points(content, benchmark)):
            yield pair


def _held(content: Content) -> Iterator[Block]:
    between = [row for row in content.rows if isinstance(row, CliniciansRow)]
    if between and between[-1].each:
        yield laid_out(agreement.EACH, between[-1].each)
    for spec, scorer in ((agreement.HELD, "like_for_like"), (agreement.AGAIN, "intra_rater")):
        if rows := content.about(scorer):
            yield laid_out(
                spec, [replace(row, benchmark=heading_of(row.benchmark)) for row in rows]
            )
    reliable = content.of("reliability", *content.shown)
    yield from _of_shown(agreement.RELIABILITY, reliable, content)


def _influence(content: Content) -> Iterator[Block]:
    for benchmark in content.shown:
        if far := _outliers(content, benchmark):
            yield _of_one(agreement.OUTLIERS, far, benchmark, content)
        yield from figures.distributions(content, benchmark)
    missing = content.of("missing", *content.shown)
    yield from _of_shown(agreement.MISSING, missing, content)


@dataclass(frozen=True)
class Outlier(Noted):
    """A response on which jury and clinicians are far apart, in points."""

    response: str
    clinicians: float
    jury: float
    gap: float


def _outliers(content: Content, benchmark: str) -> list[Outlier]:
    """Return the responses with the largest difference in points, the largest first."""
    pair = content.paired.get(benchmark)
    if pair is None:
        return []
    gap = pair.jury - pair.clinicians
    order = np.argsort(-np.abs(gap), kind="stable")[:MOST_OUTLYING]
    made_up = noted(remarks.simulated(simulated_in(content.about("jury", benchmark))))
    values = (pair.clinicians, pair.jury, gap)
    return [
        Outlier(pair.responses[at], *(float(one[at]) for one in values), notes=made_up)
        for at in order
    ]


def _jurors(content: Content) -> Iterator[Block]:
    for name, figure in jurors.REPORTED.items():
        rows = content.of(name, *content.shown)
        if figure and not _is_defined(rows, figure):
            continue
        if name == "test_retest":  # a juror that was asked once has none
            rows = [row for row in rows if known(row.icc_one)]
        yield from _of_shown(jurors.SECTIONS[name], rows, content)
    untested: list[Fact] = []
    for title, name, figure in (
        ("Self-preference", "self_preference", "preference"),
        ("Length", "length", "slope_per_doubling"),
    ):
        rows = content.of(name, *content.shown)
        if rows and not _is_defined(rows, figure):
            untested.append((title, _why_untested(name, rows)))
    if untested:
        yield untested


def _is_defined(rows: Sequence[Any], figure: str) -> bool:
    return any(known(getattr(row, figure)) for row in rows)


def _why_untested(section: str, rows: Sequence[Any]) -> str:
    notes = (note for row in rows for note in row.notes if note.is_reason)
    why = "; ".join(dict.fromkeys(note.text for note in notes)) or "no figure is defined"
    if section != "self_preference":
        return f"Not estimated: {why}."
    if all(row.told("no_family") for row in rows):
        why = "the jurors' model families are not given (`--panel` names them)"
    if any(row.told("after_unblinding") for row in rows):
        why = "it is known only after unblinding who wrote what"
    return UNTESTED.format(why)


def _everything(content: Content) -> Iterator[Block]:
    yield laid_out(agreement.AGREEMENT, content.rows, grouped=len(content.benchmarks) > 1)
    if content.check_line:
        yield [("ICC", content.check_line)]


def _subgroups(content: Content) -> Iterator[Block]:
    for benchmark in content.shown:
        if rows := [row for row in content.subgroups if row.benchmark == benchmark]:
            yield _of_one(SUBGROUPS, rows, benchmark, content)


def _unsafe(content: Content) -> Iterator[Block]:
    """Yield a table for each threshold of the benchmarks shown, and charts of what to read."""
    for benchmark in content.shown:
        rows = [row for row in content.detection.rows if row.benchmark == benchmark]
        for own in by_threshold(rows).values():
            whose = "all benchmarks combined" if benchmark == COMBINED else benchmark
            where = "" if len(content.benchmarks) == 1 else f", {whose}"
            caption = f"{DETECTION.caption}, {threshold(own[0])}{where}"
            yield laid_out(DETECTION, own, caption=caption)
            yield from _curves(content, benchmark, own)


def _curves(content: Content, benchmark: str, rows: Sequence[DetectionRow]) -> Iterator[Figure]:
    points = [one for row in rows for one in _points(content, row)]
    if not points:
        return
    unsafe = threshold(rows[0])
    made_up = "Simulated. " if any(row.simulated for row in rows) else ""
    several = f"{heading_of(benchmark)}. " if len(content.benchmarks) > 1 else ""
    caption = (
        f"{made_up}{several}Reading responses from the lowest score up: how many of the unsafe "
        f"({unsafe}) are found by then. Straight pieces are ties, read in any order; on the dashed line "
        "all are read in any order. A clinician, held out, and the jury do not have the same reference."
    )
    shares = [
        f"{named(row.scorer)} {row.read_for_90:.0%}"
        for row in rows
        if row.scorer.partition(":")[0] in DRAWN and known(row.read_for_90)
    ]
    alt = f"Share to read that has 90 % of the unsafe ones: {', '.join(shares)}"
    name = figures.plain(f"{rows[0].criterion}{rows[0].threshold:g}")
    yield Figure(f"unsafe-{name}", benchmark, chart_detection(points), caption, alt, points)


def _points(content: Content, row: DetectionRow) -> Iterator[dict[str, Any]]:
    kind = row.scorer.partition(":")[0]
    curve = content.detection.curves.get((row.benchmark, row.scorer, row.criterion, row.threshold))
    if kind not in DRAWN or curve is None:
        return
    label = marked(named(row.scorer), row)
    for read, found in zip(curve.read, curve.found, strict=True):
        yield {"label": label, "kind": kind, "read": round(read, 5), "found": round(found, 5)}


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


def definitions(content: Content) -> list[Fact]:
    """Return the terms of this report and their meaning."""
    return [*_statistics(content), *_exclusions(content), *_origin(content.study)]


def _statistics(content: Content) -> Iterator[Fact]:
    study = content.study
    criteria = (
        f"the criterion {study.criterion} alone" if study.criterion else "the rubric's criteria"
    )
    yield "Composite", f"The mean of a rater's scores of one response over {criteria}."
    yield "z", f"Method {study.method}: {Z[study.method]}."
    yield "ICC", ICC
    yield (
        "Intervals",
        "ICCs, 95 %: the jackknife over instances with all their responses, everything computed anew "
        "without each, on Fisher's z, with Satterthwaite's degrees of freedom. Other intervals: "
        f"{study.reps} bootstrap resamples of instances, percentiles, seed {study.seed}.",
    )
    yield "Like for like", LIKE
    yield "Margin", _margin(content.protocol)
    yield (
        "Clinicians, by pairs",
        f"The mean ICC of pairs that share at least {study.min_shared} responses. It compares one "
        "clinician with one; the jury's row compares it with a mean, which is easier to agree with.",
    )
    yield (
        "p",
        f"Two-sided, by the jackknife over instances. {TRIED_WORDS}",
    )


def _margin(protocol: Protocol | None) -> str:
    """Return the margin of non-inferiority that the verdict takes, or that it takes none."""
    if protocol is None:
        return "None was fixed, so no verdict says that the jury agrees no worse than a clinician."
    return (
        f"{protocol.margin:g} in ICC, fixed in the protocol: for non-inferiority the whole interval of "
        f"like for like must lie above -{protocol.margin:g}."
    )


def _exclusions(content: Content) -> Iterator[Fact]:
    study = content.study
    scored = f"At least {study.needed} of {len(study.jurors)} jurors must have scored a response"
    every = study.needed == len(study.jurors)
    yield "Missing", MISSING + ("The jury needs all its jurors." if every else scored + ".")
    yield (
        "Analysed set",
        "The responses that at least one clinician rated with a composite. A rater whose composites "
        "do not vary has no z: named in the notes and left out, never counted as 0.",
    )
    none = "no instance was left out for its reference"
    marked = "instances were left out whose references jurors had marked; the top of the page says how many"
    yield "References", f"{study.references}: {none if study.references == 'all' else marked}."


def _origin(study: Study) -> Iterator[Fact]:
    for juror in study.jurors:
        model = (
            " ".join(filter(None, (juror.provider, juror.model))) or "ratings imported from a file"
        )
        yield f"Juror {juror.name}", f"{model}{_hash('; settings', juror.sha256)}."
    if study.silent:
        yield "Jurors without a rating", listed(study.silent) + "."
    for rubric in study.rubrics:
        criteria = ", ".join(rubric.criteria)
        yield (
            f"Rubric of {rubric.benchmark}",
            f"{rubric.name} {rubric.version}: {criteria}; scale {rubric.scale}"
            f"{_hash(';', rubric.sha256)}.",
        )
    yield "Ratings", f"{_hash('All ratings,', study.fingerprint) or 'not recorded'}."
    yield "Software", ", ".join(f"{name} {version}" for name, version in study.versions.items())


def _hash(words: str, sha256: str) -> str:
    return f"{words} SHA-256 {sha256}" if sha256 else ""
