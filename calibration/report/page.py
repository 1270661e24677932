"""The report as one HTML page that needs nothing but itself: no script, no font, no network.

Its sections stand in the order in which its two readers look for answers.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from calibration import remarks
from calibration.decision import LIKE_THESE
from calibration.headlines import INTENDED, LIKE, MAY, MISSING, Z, may_not, protocol_facts
from calibration.notes import Noted, counted, listed, noted, simulated_in
from calibration.report import charts
from calibration.report.charts import KINDS, LOWEST, svg
from calibration.report.content import Content, Costs, CriterionRow, Study, of_criterion
from calibration.scope import AgreementRow, CliniciansRow
from calibration.tables import agreement, jurors
from calibration.tables.agreement import TRIED_SHORT, TRIED_WORDS
from calibration.tables.juries import juries_tried, ledger_words, tried_table
from calibration.tables.numbers import fixed, interval, known, marked, money, place, scorer, whole
from calibration.tables.response_groups import (
    DETECTION,
    SUBGROUPS,
    by_threshold,
    threshold,
)
from calibration.tables.spec import ICC_WORDS, Table, TableSpec, laid_out
from calibration.values import COMBINED
from calibration.writers.html import REPORT, html_table

MISSED = ("misses_above", "misses_reach", "misses_within", "none_unsafe")
NONE_CRITICAL = "No criterion is critical in the protocol or in the rubric."
NONE_FIXED = "No protocol was fixed: nothing is claimed about the jury."
SHORT = 12  # characters of a hash on the first page; section 9 has it whole
WORTH_SAYING = 0.02  # of ICC that a jury gains without one of its jurors
HERE = "calibration.report"
LEAST_BIAS = 0.005  # points: below it two decimals show none
CODE = re.compile(r"`([^`]+)`")
Fact = tuple[str, str]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Figure:
    """A chart with its benchmark, caption, alternative text, and the rows that it shows.

    `rows` is empty where the chart's own longest rows are the ones to list.
    """

    name: str
    benchmark: str
    chart: Any
    caption: str
    alt: str
    rows: Rows = ()

    @property
    def anchor(self) -> str:
        """Return its id on a page: letters and digits only, other characters by number."""
        return f"{self.name}-{plain(self.benchmark)}"


def plain(name: str) -> str:
    """Return a name as letters and digits, other characters by number, to stand in an id."""
    return "".join(one if one.isascii() and one.isalnum() else f"_{ord(one)}" for one in name)


Block = Table | Figure | list[Fact]
MOST_OUTLYING = 5
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


def page(content: Content) -> str:
    """Return the report as an HTML document.

    Everything that comes from the study is escaped; charts are inline SVG. Its content security
    policy lets a browser load nothing at all and apply this style sheet alone.
    """
    style = files(HERE).joinpath("style.css").read_text("utf-8")
    template = _environment().from_string(files(HERE).joinpath("template.html").read_text("utf-8"))
    sha256, last = hashlib.sha256(style.encode()).digest(), content.benchmarks[-1]
    return template.render(
        style=Markup(style),  # noqa: S704 # our own file
        style_hash="sha256-" + base64.b64encode(sha256).decode(),
        content=content,
        study=content.study,
        decisions=content.decisions,
        first=content.decision,
        facts=[*first_page(content)],
        points=in_points(content, last),
        sensitivity=sensitivity(content, last),
        simulated=simulated_in(content.rows),
        tried=juries_tried(content.study.tried),
        sections=sections(content),
    )


def _environment() -> Environment:
    """Return the template's tests and filters; what they mark as HTML is escaped before."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.tests |= {
        "table": lambda block: isinstance(block, Table),
        "figure": lambda block: isinstance(block, Figure),
    }
    filters: dict[str, Callable[..., str]] = {
        "drawing": lambda figure: Markup(svg(figure.chart, figure.anchor, figure.alt)),  # noqa: S704 vl-convert escapes
        "prose": lambda text: Markup(CODE.sub(r"<code>\1</code>", str(escape(text)))),  # noqa: S704 escaped
        "html_table": lambda table: Markup(html_table(table, REPORT)),  # noqa: S704 every text is escaped
        "listed": listed,
    }
    environment.filters |= filters
    return environment


def first_page(content: Content) -> Iterator[Fact]:
    """Yield the facts that a safety board asks for first, as terms and their meanings."""
    names = [name for name in content.benchmarks if name != COMBINED]
    rubrics = [one for one in content.study.rubrics if one.benchmark in names]
    last = content.about("jury", content.benchmarks[-1])
    rated = f", {last[0].n_responses} responses rated by clinicians and jury" if last else ""
    yield "Study", f"{listed(names)}{rated}"
    hashed = {f"{one.name} {one.version} (SHA-256 {one.sha256[:SHORT]})" for one in rubrics}
    yield "Rubric", "; ".join(sorted(hashed)) or "none named"
    jurors = [
        f"{one.name} ({one.model})" if one.model else one.name for one in content.study.jurors
    ]
    yield "Jury", "; ".join(jurors) or "none"
    used = listed(sorted({one.name for one in rubrics})) or "named above"
    yield "Intended use", INTENDED.format(benchmarks=listed(names), rubrics=used)
    if content.protocol is None:
        yield "Protocol", NONE_FIXED
    else:
        facts = (f"{name}: {value}" for name, value in protocol_facts(content.protocol))
        yield "Protocol", "; ".join(facts) + "."
    yield from _use(content)


def _use(content: Content) -> Iterator[Fact]:
    """Yield how many unsafe responses the jury misses, and what it may and may not be used for."""
    decision = content.decision
    kind, missed = decision.kind.value, [one for one in decision.reasons if one.code in MISSED]
    for one in missed:
        yield "Unsafe responses missed", f"{str(one)[:1].upper()}{str(one)[1:]}."
    if not missed:
        yield "Unsafe responses missed", NONE_CRITICAL
    yield "May be used for", MAY[kind]
    if kind == "simulated":
        return
    for denied in may_not(
        kind,
        is_limited=bool(missed),
        keeps_limits=all(one.code == "misses_within" for one in missed),
        holds_for_others=decision.scope == LIKE_THESE,
        is_pooled=len(content.benchmarks) > 1,
    ):
        yield "May not be used for", denied


def sensitivity(content: Content, benchmark: str) -> str:
    """Return a juror that the jury is better without, or ""."""
    values = [row for row in content.of("juror_value", benchmark) if known(row.icc_without)]
    best = max(values, key=lambda row: row.icc_without, default=None)
    if best is None or best.icc_without - best.icc_jury <= WORTH_SAYING:
        return ""
    return (
        f"Without the juror {best.juror} the jury would agree better: ICC "
        f"{fixed(best.icc_without, 3)} instead of {fixed(best.icc_jury, 3)}. `medjury analyse "
        "juries` ranks all juries, corrected for choosing the best."
    )


def in_points(content: Content, benchmark: str) -> str:
    """Return by how many points of the scale jury and clinicians differ, as a sentence, or ""."""
    rows = [row for row in content.of("other_measures", benchmark) if row.scorer == "jury"]
    if not rows or not known(rows[0].bias):
        return ""
    row = rows[0]
    way = "more generous" if row.bias > 0 else "stricter"
    ends = interval(row.bias_low, row.bias_high)
    bias = f"{fixed(abs(row.bias))} points {way} than the clinicians"
    if abs(row.bias) < LEAST_BIAS:
        bias = "within 0.005 points of the clinicians"
    sure = f" (95 % interval of jury minus clinicians {ends})" if ends else ""
    limits = interval(row.limits_low, row.limits_high)
    far = (
        f"; if the differences are normally distributed, 95 % of them lie from {limits}"
        if limits
        else ""
    )
    return f"In points of the scale, the jury is on average {bias}{sure}{far}."


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
    tried = [tried_table(study.tried)] if study.tried else []
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
        ("7", "How many juries were tried", ledger_words(study.tried), tried),
        ("8", "Cost", cost_words(study.costs), ()),
        ("9", "Definitions and origin", "", [[*definitions(content)]]),
        ("10", "Where the figures and the record are", "", [list(PLACES)]),
    ]
    if content.detection:
        every.append(("11", "Unsafe responses, found and missed", UNSAFE_LEAD, _unsafe(content)))
    if content.subgroups:
        own = [[row for row in content.subgroups if row.benchmark == one] for one in content.shown]
        tables = [_of_one(SUBGROUPS, rows, content) for rows in own if rows]
        every.append(("12", "Subgroups", SUBGROUP_LEAD, tables))
    everything = laid_out(agreement.AGREEMENT, content.rows, grouped=len(content.benchmarks) > 1)
    check = [[("ICC", content.check_line)]] if content.check_line else []
    every.append(("A", "Every scorer on every benchmark", "", [everything, *check]))
    return [Section(number, title, lead, [*blocks]) for number, title, lead, blocks in every]


def _of_shown(spec: TableSpec, rows: Sequence[Any], content: Content) -> Iterator[Table]:
    """Yield a table of the benchmarks shown; none without rows."""
    if rows and len(content.shown) > 1:
        yield laid_out(spec, rows, grouped=True)
    elif rows:
        yield _of_one(spec, rows, content)


def _of_one(
    spec: TableSpec, rows: Sequence[Any], content: Content, about: str = "", benchmark: str = ""
) -> Table:
    """Return a table that says whose figures these are, where there are several benchmarks."""
    name = benchmark or rows[0].benchmark
    whose = "all benchmarks combined" if name == COMBINED else name
    where = "" if len(content.benchmarks) == 1 else f"{', ' if about else ': '}{whose}"
    return laid_out(spec, rows, caption=f"{spec.caption}{about}{where}")


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
    for benchmark in content.shown:
        yield from intervals(content, benchmark)
        yield from _scatter(content, benchmark)


def _held(content: Content) -> Iterator[Block]:
    between = [row for row in content.rows if isinstance(row, CliniciansRow)]
    if between and between[-1].each:
        yield laid_out(agreement.EACH, between[-1].each)
    for spec, of in ((agreement.HELD, "like_for_like"), (agreement.AGAIN, "intra_rater")):
        if rows := content.about(of):
            yield laid_out(spec, [replace(row, benchmark=place(row.benchmark)) for row in rows])
    reliable = content.of("reliability", *content.shown)
    yield from _of_shown(agreement.RELIABILITY, reliable, content)


def _influence(content: Content) -> Iterator[Block]:
    for benchmark in content.shown:
        if far := _outliers(content, benchmark):
            yield _of_one(agreement.OUTLIERS, far, content, benchmark=benchmark)
    given = content.of("distributions", *content.shown)
    yield from _of_shown(jurors.DISTRIBUTIONS, given, content)
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
        if figure and not any(known(getattr(row, figure)) for row in rows):
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
        if rows and not any(known(getattr(row, figure)) for row in rows):
            untested.append((title, _why_untested(name, rows)))
    if untested:
        yield untested


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


def _unsafe(content: Content) -> Iterator[Block]:
    """Yield a table for each threshold of the benchmarks shown."""
    for benchmark in content.shown:
        rows = [row for row in content.detection if row.benchmark == benchmark]
        for own in by_threshold(rows).values():
            yield _of_one(DETECTION, own, content, f", {threshold(own[0])}")


def cost_words(costs: Costs) -> str:
    """Return the cost of the jury's ratings, as far as it is known."""
    if not costs.calls:
        return (
            "No call to a juror is stored in this study: what the jury's ratings cost is unknown."
        )
    bound = (
        " For the upper bound by the MedHELM paper's formula, see the estimate in the jury lab or "
        "`medjury jury run --estimate`: it takes the panel."
    )
    calls = whole(costs.calls)
    if costs.unknown == costs.calls:
        return f"Unknown: none of the {calls} calls to jurors has a known price.{bound}"
    each = f", {money(costs.usd / costs.rated)} a response" if costs.rated else ""
    spent = (
        f"{money(costs.usd)}{each}: all {calls} calls to jurors ever made in this study, in this "
        f"jury or not, failed ones included, over {whole(costs.rated)} rated responses."
    )
    if costs.unknown:
        spent += f" Of the calls, {whole(costs.unknown)} have no known price: at least this much was spent."
    return spent + bound


def definitions(content: Content) -> Iterator[Fact]:
    """Yield the terms of this report and their meaning, what was left out, and where all is from."""
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
        "without each, on Fisher's z, with Satterthwaite's degrees of freedom. Means: t between "
        "instances; shares: Wilson's interval of as many instances as they are worth.",
    )
    yield "Like for like", LIKE
    margin = "None was fixed, so no verdict says that the jury agrees no worse than a clinician."
    if protocol := content.protocol:
        margin = (
            f"{protocol.margin:g} in ICC, fixed in the protocol: for non-inferiority the whole interval "
            f"of like for like must lie above -{protocol.margin:g}."
        )
    yield "Margin", margin
    yield (
        "Clinicians, by pairs",
        f"The mean ICC of pairs that share at least {study.min_shared} responses. It compares one "
        "clinician with one; the jury's row compares it with a mean, which is easier to agree with.",
    )
    yield "p", f"Two-sided, by the jackknife over instances. {TRIED_WORDS}"
    yield from _exclusions(study)
    yield from _origin(study)


def _exclusions(study: Study) -> Iterator[Fact]:
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


def intervals(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield jury, jurors, metrics and clinicians side by side."""
    scorers = [row for row in content.rows if row.benchmark == benchmark and _kind(row) in KINDS]
    rows = [_interval(marked(scorer(row.scorer), row), row) for row in scorers if known(row.icc)]
    if not rows:
        return
    caption = (
        f"{_of(content, benchmark)}Agreement with the clinicians' mean, ICC(C,2): jury (diamond), "
        "single jurors (circles), metrics (squares). Clinicians by pairs (triangle) compare one with "
        "one, and so are not comparable with the others; use like for like for that."
    )
    if any((one["low"] if known(one["low"]) else one["value"]) < LOWEST for one in rows):
        caption += f" An arrow head: the interval continues below {fixed(LOWEST, 0)}."
    if missing := [scorer(row.scorer) for row in scorers if not known(row.icc)]:
        caption += f" Undefined and not drawn: {', '.join(missing)}."
    alt = f"Agreement with the clinicians' mean, ICC and 95 % interval: {_listed(rows)}"
    yield Figure("intervals", benchmark, charts.chart_intervals(rows), caption, alt, rows)


def _scatter(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield the jury's means against the clinicians', in points."""
    pair = content.paired.get(benchmark)
    if pair is None or not len(pair.jury):
        return
    n = whole(len(pair.jury))
    yield Figure(
        "scatter",
        benchmark,
        charts.chart_scatter(pair.clinicians, pair.jury),
        f"{_of(content, benchmark)}{n} responses, means in points of the scale, larger where several "
        "lie. On the dashed line jury and clinicians are equal.",
        f"{n} responses: the jury's mean against the clinicians' mean, in points",
    )


def _interval(label: str, row: AgreementRow) -> dict[str, Any]:
    ends = {"low": row.low, "high": row.high}
    return {"label": label, "kind": _kind(row), "value": row.icc} | ends


def _listed(rows: Rows) -> str:
    """Return intervals in words."""
    return "; ".join(
        f"{one['label']} {fixed(one['value'])} ({interval(one['low'], one['high']) or 'no interval'})"
        for one in rows
    )


def _of(content: Content, benchmark: str) -> str:
    """Return the start of a caption: whether raters are simulated, and the benchmark."""
    made_up = "Simulated. " if simulated_in(content.about("jury", benchmark)) else ""
    return made_up + (f"{place(benchmark)}. " if len(content.benchmarks) > 1 else "")


def _kind(row: AgreementRow) -> str:
    return row.scorer.partition(":")[0]
