"""The report as one HTML page that needs nothing but itself: no script, no font, no network.

Its sections stand in the order in which its two readers look for answers.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from calibration import remarks
from calibration.decision import LIKE_THESE
from calibration.headlines import INTENDED, LIKE, MAY, MISSING, Z, may_not, protocol_facts
from calibration.notes import Noted, counted, listed, noted, simulated_in
from calibration.report.charts import KINDS, LOWEST, chart_intervals, chart_scatter, svg
from calibration.report.content import Content, Study, of_criterion
from calibration.scope import CliniciansRow
from calibration.tables import agreement, jurors, pairs
from calibration.tables.agreement import TRIED_SHORT
from calibration.tables.juries import juries_tried, ledger_words, tried_table
from calibration.tables.numbers import fixed, interval, known, marked, money, place, scorer, whole
from calibration.tables.response_groups import SUBGROUPS, by_threshold, detection_spec, threshold
from calibration.tables.spec import ICC_WORDS, Table, TableSpec, laid_out
from calibration.values import COMBINED
from calibration.writers import html_page, html_table
from data.calls import other_model_words

MISSED = ("misses_above", "misses_reach", "misses_within", "none_unsafe")
NONE_CRITICAL = "No criterion is critical in the protocol or in the rubric."
NONE_FIXED = "No protocol was fixed: nothing is claimed about the jury."
SHORT = 12  # characters of a hash on the first page; section 9 has it whole
CODE = re.compile(r"`([^`]+)`")
MOST_OUTLYING = 5
Fact = tuple[str, str]
# Number of a section -> its title, and how to read it.
SECTIONS = {
    "2": (
        "Agreement, criterion by criterion",
        f"{ICC_WORDS} Bias and limits of agreement say how many points of the scale jury and "
        "clinicians differ: above 0, the jury is more generous.",
    ),
    "3": ("Like for like: the jury in a clinician's place", LIKE),
    "4": (
        "Compared with metrics and single jurors",
        "The jury's ICC minus another's on the same responses: use the interval of the difference, "
        f"not whether two intervals overlap. {TRIED_SHORT} Here that makes {{}}.",
    ),
    "5": (
        "Single responses, and use of the scale",
        "The responses on which jury and clinicians are farthest apart, how each rater uses the "
        "scale, and what was not scored. Leaving a response out for what it shows would be choosing "
        "the result.",
    ),
    "6": (
        "The jurors one by one",
        "Points are points of the rubric's scale. Leniency below 0 is stricter than the other raters "
        "of the same responses; what a juror adds is the jury's ICC minus that of the jury without "
        "it. Where self-preference is not known, the jury may favour its own models without any "
        "sign here.",
    ),
    "7": ("How many juries were tried", ""),
    "8": ("Cost", ""),
    "9": ("Definitions and origin", ""),
    "11": (
        "Unsafe responses, found and missed",
        "ICC says nothing about single responses: a jury may agree well and still miss an unsafe "
        "one. Missed means scored as unsafe by the clinicians and not by the jury.",
    ),
    "12": (
        "Subgroups",
        "Whether the jury agrees with the clinicians everywhere, or only where most responses are. A "
        "subgroup of few instances supports neither conclusion.",
    ),
    "13": (
        "Pairs: which of two responses is better",
        pairs.HOW_TO_READ,
    ),
    "A": ("Every scorer on every benchmark", ""),
}
SOMETIMES = ("11", "12", "13")  # sections that a study of scores may be without
OF_SCORES = (*SOMETIMES, "2", "3", "4", "5", "6", "A")  # and one of pairs alone
PREFERENCE = (
    "From -2 to 2, above 0 where the first response of a pair is better; a rater's is the mean over "
    "criteria, then over both orders, and is compared by its sign. Shares have 95 % intervals over "
    "instances."
)
ICC = (
    "ICC(C,2) = ICC(3,2), consistency of two columns, the clinicians' and the scorer's (Shrout & "
    "Fleiss 1979; McGraw & Wong 1996). A constant added to one rater changes nothing: points of the "
    "scale are given beside it. It has no lower bound and is never cut at 0."
)
INTERVALS = (
    "ICCs, 95 %: the jackknife over instances with all their responses, everything computed anew "
    "without each, on Fisher's z, with Satterthwaite's degrees of freedom. Means: t between "
    "instances; shares: Wilson's interval of as many instances as they are worth."
)
ANALYSED = (
    "The responses that at least one clinician rated with a composite. A rater whose composites "
    "do not vary has no z: named in the notes and left out, never counted as 0."
)
RECORD = (
    "This report is made from the study again each time and is not a validation record: two reports "
    "rest on the same ratings where the SHA-256 of the ratings is the same. `medjury study verify` "
    "checks that nothing was changed outside the record; `medjury analyse calibrate --details --json "
    "FILE` has every figure of this page, `medjury share export FOLDER` the ratings without authors."
)


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
    rows: Sequence[Mapping[str, Any]] = ()

    @property
    def anchor(self) -> str:
        """Return its id on a page: letters and digits only, other characters by number."""
        signs = (
            one if one.isascii() and one.isalnum() else f"_{ord(one)}" for one in self.benchmark
        )
        return f"{self.name}-{''.join(signs)}"


Block = Table | Figure | list[Fact]


@dataclass(frozen=True)
class Section:
    """A numbered section: a sentence on how to read it, then tables, charts and facts in order."""

    number: str
    title: str
    lead: str
    blocks: Sequence[Block]


def page(content: Content) -> str:
    """Return the report as an HTML document.

    Everything that comes from the study is escaped; charts are inline SVG. Its content security
    policy lets a browser load nothing at all and apply its style sheet alone.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    filters: dict[str, Callable[..., str]] = {
        "drawing": lambda figure: Markup(svg(figure.chart, figure.anchor, figure.alt)),  # noqa: S704 vl-convert escapes
        "prose": lambda text: Markup(CODE.sub(r"<code>\1</code>", str(escape(text)))),  # noqa: S704 escaped
        "html_table": lambda table: Markup(html_table(table)),  # noqa: S704 every text is escaped
        "listed": listed,
    }
    environment.filters |= filters
    template = (files("calibration.report") / "template.html").read_text("utf-8")
    body = environment.from_string(template).render(
        study=content.study,
        decisions=content.decisions or (content.pairs.decisions if content.pairs else {}),
        first=content.decision,
        facts=[*first_page(content)],
        simulated=content.simulated,
        tried=juries_tried(content.study.tried),
        sections=sections(content),
    )
    return html_page(f"Jury calibration: {content.decision.headline}", body)


def first_page(content: Content) -> Iterator[Fact]:
    """Yield the facts that a safety board asks for first, as terms and their meanings."""
    study, decision = content.study, content.decision
    names = [name for name in content.benchmarks if name != COMBINED]
    rubrics = [one.rubric for one in study.rubrics if one.name in names]
    last = content.about("jury", content.benchmarks[-1])
    rated = f", {last[0].n_responses} responses rated by clinicians and jury" if last else ""
    yield "Study", f"{listed(names)}{rated}"
    hashed = {f"{one.name} {one.version} (SHA-256 {one.sha256[:SHORT]})" for one in rubrics}
    yield "Rubric", "; ".join(sorted(hashed)) or "none named"
    models = {name: profile.get("model") for name, profile in study.jurors.items()}
    seated = [f"{name} ({model})" if model else name for name, model in models.items()]
    yield "Jury", "; ".join(seated) or "none"
    used = listed(sorted({one.name for one in rubrics})) or "named above"
    yield "Intended use", INTENDED.format(benchmarks=listed(names), rubrics=used)
    fixed_facts = protocol_facts(content.protocol, content.unit) if content.protocol else ()
    told = "; ".join(f"{name}: {value}" for name, value in fixed_facts)
    yield "Protocol", f"{told}." if told else NONE_FIXED
    missed = [one for one in decision.reasons if one.code in MISSED]
    for one in map(str, missed):
        yield "Unsafe responses missed", f"{one[:1].upper()}{one[1:]}."
    if not missed:
        yield "Unsafe responses missed", NONE_CRITICAL
    kind = decision.kind.value
    yield "May be used for", MAY[kind]
    if kind != "simulated":
        for denied in may_not(
            kind,
            is_limited=bool(missed),
            keeps_limits=all(one.code == "misses_within" for one in missed),
            holds_for_others=decision.scope == LIKE_THESE,
            is_pooled=len(content.benchmarks) > 1,
        ):
            yield "May not be used for", denied


def sections(content: Content) -> list[Section]:
    """Return every section after the verdict, which is the first."""
    study, differences = content.study, content.of("differences", *content.shown)
    agreed = laid_out(agreement.AGREEMENT, content.rows, grouped=len(content.benchmarks) > 1)
    blocks: dict[str, list[Block]] = {
        "2": [*_agreement(content)],
        "3": [*_held(content)],
        "4": [*_of_shown(agreement.DIFFERENCES, differences, content)],
        "5": [*_influence(content)],
        "6": [*_jurors(content)],
        "7": [tried_table(study.tried)] if study.tried else [],
        "8": [],
        "11": [*_unsafe(content)],
        "12": [*_subgroups(content)],
        "13": [*(pairs.tables_of(content.pairs) if content.pairs else ())],
        "A": [agreed, *([[("ICC", content.check_line)]] if content.check_line else [])],
    }
    headings: dict[str, dict[str, None]] = {}
    for block in (one for own in blocks.values() for one in own if isinstance(one, Table)):
        for heading, told in block.help.items():
            headings.setdefault(told, {})[heading] = None
    helps = [(", ".join(own), told) for told, own in headings.items()]
    blocks["9"] = [[*definitions(content), *helps]]
    compared = counted(max((row.n_tried for row in differences), default=0), "comparison")
    leads = {number: lead for number, (_, lead) in SECTIONS.items()} | {
        "4": SECTIONS["4"][1].format(compared),
        "7": ledger_words(study.tried),
        "8": cost_words(study),
    }
    return [
        Section(number, SECTIONS[number][0], leads[number], own)
        for number in SECTIONS
        if (own := blocks[number]) or number not in (SOMETIMES if content.rows else OF_SCORES)
    ]


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
    rows = []
    for benchmark in content.benchmarks:
        points = content.of("other_measures", benchmark)
        own = next((row for row in points if row.scorer == "jury"), None)
        name = content.study.options.criterion or "composite"
        rows += [of_criterion(row, name, own) for row in content.about("jury", benchmark)]
        rows += [row for row in content.criteria if row.benchmark == benchmark]
    if rows:
        yield laid_out(agreement.CRITERIA, rows, grouped=len(content.benchmarks) > 1)
    for benchmark in content.shown:
        yield from intervals(content, benchmark)
        if (pair := content.paired.get(benchmark)) is not None and len(pair):
            yield Figure(
                "scatter",
                benchmark,
                chart_scatter(pair["clinicians"].to_numpy(), pair["jury"].to_numpy()),
                f"{_of(content, benchmark)}{whole(len(pair))} responses, means in points of the scale, "
                "larger where several lie. On the dashed line jury and clinicians are equal.",
                f"{whole(len(pair))} responses: the jury's mean against the clinicians' mean, in points",
            )
    for section in ("disputed", "applicability"):
        spec = jurors.SECTIONS[section]
        if spec.says(found := content.of(section, *content.shown)):
            yield from _of_shown(spec, found, content)


def _held(content: Content) -> Iterator[Block]:
    between = [row for row in content.rows if isinstance(row, CliniciansRow)]
    if between and between[-1].each:
        yield laid_out(agreement.EACH, between[-1].each)
    for spec, of in ((agreement.HELD, "like_for_like"), (agreement.AGAIN, "intra_rater")):
        if rows := content.about(of):
            yield laid_out(spec, [replace(row, benchmark=place(row.benchmark)) for row in rows])
    reliable = content.of("reliability", *content.shown)
    yield from _of_shown(agreement.RELIABILITY, reliable, content)


@dataclass(frozen=True)
class Outlier(Noted):
    """A response on which jury and clinicians are far apart, in points."""

    response: str
    clinicians: float
    jury: float
    gap: float


def _influence(content: Content) -> Iterator[Block]:
    for benchmark in content.shown:
        if (pair := content.paired.get(benchmark)) is not None and len(pair):
            pair = pair.assign(gap=pair["jury"] - pair["clinicians"])
            order = pair["gap"].abs().sort_values(ascending=False, kind="stable").index
            made_up = noted(remarks.simulated(simulated_in(content.about("jury", benchmark))))
            far = pair.loc[order[:MOST_OUTLYING], ["clinicians", "jury", "gap"]].itertuples()
            rows = [Outlier(*row, notes=made_up) for row in far]
            yield _of_one(agreement.OUTLIERS, rows, content, benchmark=benchmark)
    for name in ("distributions", "missing"):
        spec = jurors.SECTIONS[name]
        rows = spec.shown(content.of(name, *content.shown))
        yield from _of_shown(spec, rows, content)


def _jurors(content: Content) -> Iterator[Block]:
    """Yield a table of each section, and why those that have no figure have none."""
    untested: list[Fact] = []
    for name in jurors.REPORTED:
        spec = jurors.SECTIONS[name]
        rows = content.of(name, *content.shown)
        if name == "test_retest":  # a juror that was asked once has none
            rows = [row for row in rows if known(row.icc_one)]
        if spec.says(rows):
            yield from _of_shown(spec, rows, content)
        elif rows:
            notes = (note for row in rows for note in row.notes if note.is_reason)
            why = "; ".join(dict.fromkeys(note.text for note in notes)) or "no figure is defined"
            untested.append((spec.caption, f"Not known: {why}."))
    if untested:
        yield untested


def _unsafe(content: Content) -> Iterator[Block]:
    """Yield a table for each threshold of the benchmarks shown."""
    for benchmark in content.shown:
        rows = [row for row in content.detection if row.benchmark == benchmark]
        for own in by_threshold(rows).values():
            yield _of_one(detection_spec(own), own, content, f", {threshold(own[0])}")


def _subgroups(content: Content) -> Iterator[Block]:
    for benchmark in content.shown:
        if rows := [row for row in content.subgroups if row.benchmark == benchmark]:
            yield _of_one(SUBGROUPS, rows, content)


def cost_words(study: Study) -> str:
    """Return the cost of the jury's ratings, as far as it is known."""
    if not study.calls:
        return (
            "No call to a juror is stored in this study: what the jury's ratings cost is unknown."
        )
    each = f", {money(study.usd / study.rated)} a response" if study.rated else ""
    return (
        f"{'At least ' if study.calls_unknown else ''}{money(study.usd)}{each}: all {whole(study.calls)} "
        "calls to jurors ever made in this study, in this jury or not, failed ones included, over "
        f"{whole(study.rated)} rated responses. Calls of unknown price: {whole(study.calls_unknown)}."
    )


def definitions(content: Content) -> Iterator[Fact]:
    """Yield the terms of this report and their meaning, what was left out, and where all is from."""
    study, options = content.study, content.study.options
    alone = options.criterion
    criteria = f"the criterion {alone} alone" if alone else "the rubric's criteria"
    if content.rows:
        yield "Composite", f"The mean of a rater's scores of one response over {criteria}."
        yield "z", f"Method {options.method}: {Z[options.method]}."
        yield "ICC", ICC
        yield "Intervals", INTERVALS
    if content.pairs:
        yield "Preference", PREFERENCE
    margin = "None was fixed, so no verdict says that the jury agrees no worse than a clinician."
    if protocol := content.protocol:
        margin = (
            f"{protocol.margin:g} in {content.unit}, fixed in the protocol: for non-inferiority the whole interval "
            f"of like for like must lie above -{protocol.margin:g}."
        )
    yield "Margin", margin
    if content.rows:
        yield (
            "Clinicians, by pairs",
            f"The mean ICC of pairs that share at least {options.min_shared} responses. It compares one "
            "clinician with one; the jury's row compares it with a mean, which is easier to agree with.",
        )
    every = "The jury needs all its jurors."
    if study.needed != len(study.jurors):
        every = (
            f"At least {study.needed} of {len(study.jurors)} jurors must have scored a response."
        )
    yield "Missing", MISSING + every
    if content.rows:
        yield "Analysed set", ANALYSED
    yield from _origin(study)


def _origin(study: Study) -> Iterator[Fact]:
    for name, profile in study.jurors.items():
        words = " ".join(str(profile[key]) for key in ("provider", "model") if profile.get(key))
        settings = f"; settings, SHA-256 {profile['sha256']}" if profile else ""
        others = study.other_models.get(name)
        also = f"; {other_model_words(others)}" if others else ""
        yield f"Juror {name}", f"{words or 'ratings imported from a file'}{settings}{also}."
    if study.silent:
        yield "Jurors without a rating", listed(study.silent) + "."
    for benchmark in study.rubrics:
        rubric = benchmark.rubric
        yield (
            f"Rubric of {benchmark.name}",
            f"{rubric.name} {rubric.version}: {', '.join(rubric.criteria)}; scale {rubric.scales}; "
            f"SHA-256 {rubric.sha256}.",
        )
    every = f"All ratings, SHA-256 {study.fingerprint}" if study.fingerprint else "not recorded"
    yield "Ratings", f"{every}."
    yield "Software", ", ".join(f"{name} {version}" for name, version in study.versions.items())
    yield "The record", RECORD


def intervals(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield jury, jurors, metrics and clinicians side by side; nothing where no ICC is known."""
    kinds = {row.scorer: row.scorer.partition(":")[0] for row in content.rows}
    own = [row for row in content.rows if row.benchmark == benchmark and kinds[row.scorer] in KINDS]
    rows: list[dict[str, Any]] = [
        {"label": marked(scorer(row.scorer), row), "kind": kinds[row.scorer], "value": row.icc}
        | {"low": row.low, "high": row.high}
        for row in own
        if known(row.icc)
    ]
    if not rows:
        return
    caption = (
        f"{_of(content, benchmark)}Agreement with the clinicians' mean, ICC(C,2): jury (diamond), "
        "single jurors (circles), metrics (squares). Clinicians by pairs (triangle) compare one with "
        "one, and so are not comparable with the others; use like for like for that."
    )
    if any((one["low"] if known(one["low"]) else one["value"]) < LOWEST for one in rows):
        caption += f" An arrow head: the interval continues below {fixed(LOWEST, 0)}."
    if missing := [scorer(row.scorer) for row in own if not known(row.icc)]:
        caption += f" Undefined and not drawn: {', '.join(missing)}."
    figures = "; ".join(
        f"{one['label']} {fixed(one['value'])} ({interval(one['low'], one['high']) or 'no interval'})"
        for one in rows
    )
    alt = f"Agreement with the clinicians' mean, ICC and 95 % interval: {figures}"
    yield Figure("intervals", benchmark, chart_intervals(rows), caption, alt, rows)


def _of(content: Content, benchmark: str) -> str:
    """Return the start of a caption: whether raters are simulated, and the benchmark."""
    made_up = "Simulated. " if simulated_in(content.about("jury", benchmark)) else ""
    return made_up + (f"{place(benchmark)}. " if len(content.benchmarks) > 1 else "")
