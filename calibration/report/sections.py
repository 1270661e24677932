"""The sections of a report, in the order in which its two readers look for answers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.report import agreement_tables as shapes
from calibration.report import figures
from calibration.report import juror_tables as jurors
from calibration.report.biases import defined, not_tested
from calibration.report.content import Content, Row
from calibration.report.cost import cost_words
from calibration.report.definitions import PLACES, Fact, definitions
from calibration.report.figures import Figure
from calibration.report.ledger_table import ledger_words, tried_table
from calibration.report.tables import Shape, Table, place
from calibration.report.uneven import uneven_facts
from calibration.scores import COMBINED
from calibration.tables.numbers import SIMULATED, known, whole

PREFERENCE = "Self-preference: points for responses by the juror's own model family"
LENGTH = "Length: points added when a response has twice the words"
MOST_OUTLYING = 5
HELD = re.compile(r"with the other clinicians: jury (\S+), a clinician (-?\d\.\d+)")

BOTH = re.compile(r"(?:^|; )jury (-?\d+\.\d+), .+? (-?\d+\.\d+)(?:;|$)")
POWER = re.compile(r"80 % power would find here, (\d+\.\d+)")


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
    found = [
        Section("2", "Agreement, criterion by criterion", _points_lead(), [*_agreement(content)]),
        Section(
            "3", "Like for like: the jury in a clinician's place", _like_lead(), [*_held(content)]
        ),
        Section(
            "4", "Against metrics and single jurors", _against(content), [*_baselines(content)]
        ),
        Section("5", "What the figures hang on", _hang_lead(), [*_influence(content)]),
        Section("6", "The jurors one by one", _juror_lead(), [*_jurors(content)]),
        Section("7", "How many juries were tried", ledger_words(content.study), [*_tried(content)]),
        Section("8", "Cost", cost_words(content.study.costs), []),
        Section("9", "Definitions and origin", "", [definitions(content)]),
        Section("10", "Where the figures and the record are", "", [list(PLACES)]),
        Section("A", "Every scorer on every benchmark", "", [_everything(content)]),
    ]
    return found


def _points_lead() -> str:
    return (
        "ICC(C,2) says whether jury and clinicians tell responses apart alike; bias and limits say how "
        "many points of the scale they are apart. Above 0, the jury is more generous."
    )


def _agreement(content: Content) -> Iterator[Table | Figure | tuple[Figure, ...] | list[Fact]]:
    rows: list[Row] = []
    for benchmark in content.benchmarks:
        far = {row["scorer"]: row for row in content.of("other_measures", benchmark)}.get("jury")
        what = content.study.criterion or "composite"
        names = ("bias", "bias_low", "bias_high", "limits_low", "limits_high")
        own = {name: far[name] if far else None for name in names} | {"criterion": what}
        rows += [{**row, **own} for row in content.about("jury", benchmark)]
        rows += [row for row in content.criteria if row["benchmark"] == benchmark]
    if rows:
        several = len(content.benchmarks) > 1
        yield shapes.CRITERIA.table("The jury against the clinicians' mean", rows, grouped=several)
    if told := uneven_facts(content):
        yield told
    for benchmark in content.shown:
        yield from figures.intervals(content, benchmark)
        if pair := tuple(figures.points(content, benchmark)):
            yield pair


def _like_lead() -> str:
    return (
        "Each clinician is held out in turn, and jury and clinician are compared with the same mean of "
        "the others. Only this bears on whether the jury may stand in a clinician's place."
    )


def _held(content: Content) -> Iterator[Table]:
    rows = [{**row, **_two(row)} for row in content.about("like_for_like")]
    if rows:
        named = [{**row, "benchmark": place(row["benchmark"])} for row in rows]
        caption = (
            "ICC with the mean of the other clinicians: the jury's minus a held-out clinician's"
        )
        yield shapes.HELD.table(caption, named)
    again = [{**row, "benchmark": place(row["benchmark"])} for row in content.about("intra_rater")]
    if again:
        caption = "The same clinician again: absolute agreement of a reading with its hidden repeat"
        yield shapes.AGAIN.table(caption, again)
    tested = [row for row in content.of("alt_test", *content.shown) if row["scorer"] == "jury"]
    if tested:
        caption = (
            "Alternative-annotator test (Calderon et al. 2025): passes from a winning rate of 0.5"
        )
        yield _of_shown(shapes.ALT_TEST, caption, tested, content)


def _two(row: Row) -> dict[str, float | None]:
    told = HELD.search(row["note"])
    pair = (float(told[1]), float(told[2])) if told else (None, None)
    return dict(zip(("jury", "clinician"), pair, strict=True))


def _against(content: Content) -> str:
    tried = max((row["n_tried"] for row in content.of("differences", *content.shown)), default=0)
    return (
        "The jury's ICC minus another's on the same resamples of the same responses: two intervals "
        "that overlap say nothing about a difference, this one does. p by Holm is corrected for "
        f"{whole(tried)} comparisons, all that were ever made on this study. Where a difference is "
        "smaller than what 80 % power would find, none was shown and none was excluded."
    )


def _baselines(content: Content) -> Iterator[Table]:
    rows = content.of("differences", *content.shown)
    if rows:
        named = [{**row, **_two_iccs(row)} for row in rows]
        yield _of_shown(shapes.DIFFERENCES, "Paired differences of ICC(C,2)", named, content)


def _two_iccs(row: Row) -> dict[str, float | None]:
    """Return both ICCs and the smallest difference to be found, as the row's note has them."""
    told, power = BOTH.search(row["note"]), POWER.search(row["note"])
    pair = (float(told[1]), float(told[2])) if told else (None, None)
    least = float(power[1]) if power else None
    return dict(zip(("first", "second", "detectable"), (*pair, least), strict=True))


def _hang_lead() -> str:
    return (
        "Where one response moves the ICC much, the figure is about that response. To leave it out "
        "because it decides would be to choose the result."
    )


def _influence(content: Content) -> Iterator[Table | Figure]:
    for benchmark in content.shown:
        yield from figures.influence(content, benchmark)
        if rows := figures.influential(content, benchmark):
            spaced = [{**row, "left_out": row["left_out"].replace(":", " ", 1)} for row in rows]
            yield shapes.INFLUENCE.table(_titled("Largest changes", benchmark, content), spaced)
        if far := outliers(content, benchmark):
            caption = "Responses on which jury and clinicians are farthest apart"
            yield shapes.OUTLIERS.table(_titled(caption, benchmark, content), far)
        yield from figures.distributions(content, benchmark)
    if missing := content.of("missing", *content.shown):
        yield _of_shown(shapes.MISSING, "What is missing, and what it could do", missing, content)


def outliers(content: Content, benchmark: str) -> list[Row]:
    """Return the responses with the largest difference in points, the largest first."""
    pair = content.paired.get(benchmark)
    if pair is None:
        return []
    gap = pair.jury - pair.clinicians
    order = np.argsort(-np.abs(gap), kind="stable")[:MOST_OUTLYING]
    behind = [row["note"] for row in content.about("jury", benchmark)]
    parts = [part for note in behind for part in note.split("; ") if part.startswith(SIMULATED)]
    return [
        {"response": pair.responses[at], "clinicians": pair.clinicians[at], "jury": pair.jury[at]}
        | {"gap": gap[at], "note": "; ".join(parts)}
        for at in order
    ]


def _juror_lead() -> str:
    return (
        "Points are points of the rubric's scale. Leniency below 0 is stricter than the other raters "
        "of the same responses; value is what a juror adds to the jury's ICC."
    )


def _jurors(content: Content) -> Iterator[Table | list[Fact]]:
    effective = content.of("effective_jurors", *content.benchmarks)
    named = [{**row, "benchmark": place(row["benchmark"])} for row in effective]
    if named:
        yield jurors.EFFECTIVE.table("How many independent jurors the jury is worth", named)
    retest = [row for row in content.of("test_retest", *content.shown) if known(row["icc_one"])]
    for shape, caption, rows in (
        (jurors.VALUE, "What each juror adds", content.of("juror_value", *content.shown)),
        (jurors.SEVERITY, "Leniency", content.of("severity", *content.shown)),
        (jurors.PREFERENCE, PREFERENCE, defined(content, "self_preference", "preference")),
        (jurors.LENGTH, LENGTH, defined(content, "length", "slope_per_doubling")),
        (jurors.RETEST, "The same juror again", retest),
        (
            jurors.BEYOND_CHANCE,
            "Agreement beyond chance on whole scores",
            _by_rater(content.of("chance_corrected", *content.shown)),
        ),
    ):
        if rows:
            yield _of_shown(shape, caption, rows, content)
    if untested := not_tested(content):
        yield untested


def _by_rater(rows: Sequence[Row]) -> list[Row]:
    """Return rows with the clinicians called so: here they are no row of pairs."""
    named = {"clinicians": "Clinicians"}
    return [{**row, "raters": named.get(row["raters"], row["raters"])} for row in rows]


def _tried(content: Content) -> Iterator[Table]:
    if content.study.tried:
        yield tried_table(content.study)


def _everything(content: Content) -> Table:
    several = len(content.benchmarks) > 1
    caption = "Agreement with the clinicians. The row like for like is a difference of two ICCs"
    return shapes.AGREEMENT.table(caption, content.rows, grouped=several)


def _of_shown(shape: Shape, caption: str, rows: Sequence[Row], content: Content) -> Table:
    grouped = len(content.shown) > 1
    titled = caption if grouped else _titled(caption, str(rows[0]["benchmark"]), content)
    return shape.table(titled, rows, grouped=grouped)


def _titled(caption: str, benchmark: str, content: Content) -> str:
    """Return a caption with whose figures these are, where there are several benchmarks."""
    if len(content.benchmarks) == 1:
        return caption
    return f"{caption}: {'all benchmarks combined' if benchmark == COMBINED else benchmark}"
