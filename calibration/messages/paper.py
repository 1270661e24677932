"""The words of the paper's pages: titles, what differs from the paper, why one shows nothing."""

from collections.abc import Mapping

from calibration.messages.form import quoted
from calibration.paper.values import Absent, Differs, Page, PaperPages, Published

TITLES: Mapping[Page, str] = {
    Page.TABLE_1: "Table 1. Win rate and macro-average of each model",
    Page.FIGURE_3: "Figure 3. Mean of each model on each benchmark",
    Page.FIGURE_4: "Figure 4. Mean of each model by category",
    Page.FIGURE_5: "Figure 5. What each model cost and how often it wins",
    Page.TABLE_2: "Table 2. Agreement with the clinicians",
    Page.TABLE_3: "Table 3. What models and jury cost",
    Page.DETECTABLE: "Table E4. Smallest difference that a benchmark detects",
}
DIFFERS: Mapping[Differs, str] = {
    Differs.TIES: "A tie is half a win, also in the SD over opponents; in the paper's SD it is none.",
    Differs.INTERVALS: "Intervals of 95 % resample instances; the paper gives none.",
    Differs.NO_INTERVALS: "A leaderboard has no single instances, so nothing here has an interval.",
    Differs.OWN_BENCHMARKS: "The benchmarks are this study's, not the paper's 35.",
    Differs.MORE_BENCHMARKS: "The benchmarks are the leaderboard's; the paper's text counts 35.",
    Differs.MISSING: (
        "A response without a verdict of every juror has no score and is counted; HELM gives it the lowest."
    ),
    Differs.ROUNDED: (
        "The leaderboard rounds to three digits: models may tie here that did not where its win rates "
        "were computed."
    ),
    Differs.PUBLISHED_METHOD: (
        'Method "published" is what the printed Table 2 was computed with, without two faults of its '
        "script: it added each score to its z-score, and counted a pair with a constant rater as 0.5."
    ),
    Differs.PAPER_METHOD: (
        'Method "paper" is what section 4.3.3 describes: z-scores within each rater, then means.'
    ),
    Differs.NEGATIVE: "Lower ends below 0 stay; the paper prints them as 0.",
    Differs.MADE_UP_COSTS: (
        "Costs of models are made up, as the demo's models are; --costs FILE takes those of real ones."
    ),
    Differs.OWN_COSTS: "Costs of models are what was given with --costs.",
    Differs.RECORDED: (
        "The jury's cost is that of the recorded calls; the paper's is a bound with 4,096 tokens an answer, "
        "which stands beside it where it can be computed."
    ),
    Differs.DDOF: (
        "The first column is the paper's formula, sd with n in its denominator and z as 2.80; the second has "
        "n - 1, z to all digits, and scores from 0 to 1."
    ),
}
ABSENT: Mapping[Absent, str] = {
    Absent.NO_COSTS: "Nothing to show: what each model cost was not given (--costs FILE).",
    Absent.NO_CALLS: "Nothing to show: neither costs of models nor calls of jurors are recorded.",
    Absent.NO_CLINICIANS: "Nothing to show: no clinician has rated a response.",
    Absent.NO_JURY: "Nothing to show: no juror and no metric has scored what clinicians rated.",
    Absent.NO_CATEGORIES: "Nothing to show: no benchmark here has a category.",
    Absent.NO_INSTANCES: "Nothing to show: a leaderboard has no single instances or ratings.",
}
SIMULATED = "SIMULATED: raters behind these figures are made up. Nothing here is evidence."


def measured_words(pages: PaperPages) -> str:
    """Return which benchmarks a metric of their own scored; "" where none."""
    if not pages.measured:
        return ""
    scored = ", ".join(
        f"{quoted(name)} by {quoted(metric)}" for name, metric in sorted(pages.measured.items())
    )
    return f"Scored by their keys: {scored}; the other benchmarks by the jury."


def published_words(pages: PaperPages) -> str:
    """Return how the published win rates compare with those computed here; "" without any."""
    rows = pages.published
    if not rows:
        return ""
    equal = sum(row.equal for row in rows)
    if equal == len(rows):
        return f"All {len(rows)} published win rates equal those computed from the scores, to three digits."
    return (
        f"{equal} of {len(rows)} published win rates equal those computed from the scores; the others differ "
        f"by at most {_farthest(rows):.3f}."
    )


def _farthest(rows: tuple[Published, ...]) -> float:
    return max(abs(row.published - row.computed) for row in rows)
