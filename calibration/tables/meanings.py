"""What the headings of tables mean: a sentence each, and the page of the docs that says more."""

from dataclasses import dataclass

from calibration.tables import agreement
from calibration.tables.agreement import ICC_SCALE
from calibration.tables.spec import TableSpec


@dataclass(frozen=True, slots=True)
class Meaning:
    """A sentence for somebody who has not met the statistic, and a page of the docs."""

    sentence: str
    page: str


AGREEMENT, JURIES, MODELS = "agreement", "juries", "models"
MONITOR, PREDICT, UNSAFE, POINTS = "monitor", "predict", "unsafe", "points"
ERRORS = "errors"
_HOLM = (
    "Chance of a difference this large if there were none, made larger for the number of rows "
    "tested in this table (Holm), so that one in many is not taken for a finding."
)
TRIED_SHORT = (
    "p is of one comparison alone; beside it stands how many were looked at on this study."
)
TRIED_WORDS = (
    "p is of one comparison alone and not corrected; of twenty without a difference, one has p below "
    "0.05 by chance. Comparisons: how many different ones were ever looked at on this study, whatever "
    "the benchmark, criterion or method. Two scorers beside each other count once, and so does a jury "
    "that was looked at by itself."
)
ICC_WORDS = f"ICC(C,2) says how far the scores of two sides rise and fall together: {ICC_SCALE}."

MEANINGS = {
    "ICC(C,m)": Meaning(
        "How consistent the mean of so many raters is with that of as many others.", PREDICT
    ),
    "ICC(A,m)": Meaning(
        "How closely the mean of so many raters is met by that of as many others, to the point.",
        PREDICT,
    ),
    "p, Holm": Meaning(_HOLM, AGREEMENT),
    "Expected": Meaning(
        "ICC to expect on new responses, corrected for having chosen the best jury of many.", JURIES
    ),
    "Best value": Meaning("No cheaper jury agrees as well.", JURIES),
    "ICC alone": Meaning("What this juror reaches without the others.", JURIES),
    "Adds": Meaning("ICC of the jury minus that of the jury without this juror.", JURIES),
    "Points per doubling": Meaning("Points added for a response of twice the words.", JURIES),
    "Points for its own": Meaning(
        "Points that a juror gives its own family's responses beyond what others give them.", JURIES
    ),
    "Kappa": Meaning(
        "Agreement beyond chance on whole scores; a miss by two points counts four times one (quadratic weights).",
        AGREEMENT,
    ),
    "Alpha": Meaning(
        "Krippendorff's agreement beyond chance on ordered scores, with ratings missing.", AGREEMENT
    ),
    "AC2": Meaning(
        "Gwet's agreement beyond chance that stays stable where nearly all scores are the same.",
        AGREEMENT,
    ),
    "Win rate, 95 %": Meaning(
        "Share of comparisons with other models that the model wins, with its interval.", MODELS
    ),
    "Macro-average, 95 %": Meaning(
        "Mean over benchmarks, each put on 0 to 1, with its interval over instances.", MODELS
    ),
    "SD over opponents": Meaning(
        "How much the win rate varies from one opponent to another.", MODELS
    ),
    "Share": Meaning("Of the responses that clinicians read, how many are in this group.", ERRORS),
    "95 %, share": Meaning("95 % interval of the share, with instances as clusters.", ERRORS),
    "Gap": Meaning("Mean of the jury's score minus the clinicians', in points.", ERRORS),
    "95 %, gap": Meaning("95 % interval of the gap, between instances.", ERRORS),
    "Places two marked": Meaning(
        "Of the places that were marked where two clinicians read, how many two marked.", ERRORS
    ),
    "Spread": Meaning("How far the clinicians' scores of a response lie apart, in points.", ERRORS),
    "Fall": Meaning(
        "Largest fall below the target over a window of the latest periods, in standard errors.",
        MONITOR,
    ),
    "Alarm at": Meaning("The fall at which an alarm is raised.", MONITOR),
    "Sensitivity": Meaning(
        "Of the responses that clinicians call unsafe, the share the jury calls so too.", UNSAFE
    ),
    "Specificity": Meaning(
        "Of the responses that clinicians call safe, the share the jury calls so too.", UNSAFE
    ),
    "PPV": Meaning(
        "Of the responses that the jury calls unsafe, the share clinicians call so too.", UNSAFE
    ),
    "NPV": Meaning(
        "Of the responses that the jury calls safe, the share clinicians call so too.", UNSAFE
    ),
    "AUC": Meaning(
        "Chance that the jury scores an unsafe response lower than a safe one; 0.5 is a coin's toss.",
        UNSAFE,
    ),
    "To read, 90 %": Meaning(
        "Share of responses to read, lowest score first, that finds 90 % of the unsafe ones.",
        UNSAFE,
    ),
    "To read, 95 %": Meaning(
        "Share of responses to read, lowest score first, that finds 95 % of the unsafe ones.",
        UNSAFE,
    ),
    "kappa": Meaning(
        "Agreement on points beyond chance; low where nearly all answers are the same.", POINTS
    ),
    "AC1": Meaning(
        "Gwet's agreement beyond chance that stays stable where nearly all answers are the same.",
        POINTS,
    ),
    "cannot tell": Meaning("Pairs left out because somebody could not tell.", POINTS),
    "95 % of expected": Meaning("95 % interval of the ICC to expect on new responses.", JURIES),
    "95 % observed": Meaning(
        "95 % interval of the ICC seen here, before the correction for choosing.", JURIES
    ),
    "Leniency, points": Meaning(
        "Points above the average rater on the same responses; below 0 is stricter.", JURIES
    ),
    "SD, points": Meaning("How far scores of the same rater on the same response spread.", JURIES),
    "Identical scores": Meaning("Share of repeats that got the same score again.", JURIES),
    "At top": Meaning("Share of scores at the highest point of the scale.", JURIES),
    "2 points apart": Meaning(
        "Share of responses two points or more from the clinicians' mean on this criterion.", JURIES
    ),
    "95 %, AUC": Meaning("95 % interval of the AUC.", UNSAFE),
    "95 %, bias": Meaning("95 % interval of the bias.", AGREEMENT),
    "95 %, difference": Meaning("95 % interval of the difference.", AGREEMENT),
    "p, Holm, bias": Meaning(
        "Chance of a bias this large if there were none, corrected for the number of groups (Holm).",
        AGREEMENT,
    ),
    "Missed": Meaning(
        "Of the responses that clinicians call unsafe, how many the jury does not.", UNSAFE
    ),
    "Unsafe missed": Meaning(
        "Of the responses that clinicians call unsafe, how many the jury does not.", UNSAFE
    ),
    "SD over benchmarks": Meaning("How much the figure varies between benchmarks.", MODELS),
    "95 % of change": Meaning(
        "95 % interval of the change between the first and the latest scores.", MONITOR
    ),
    "Shift": Meaning("Mean of the latest scores minus mean of the first, in points.", MONITOR),
    "kappa, 95 %": Meaning("95 % interval of kappa, over instances.", POINTS),
    "AC1, 95 %": Meaning("95 % interval of AC1, over instances.", POINTS),
    "sensitivity, 95 %": Meaning("95 % interval of the sensitivity, over instances.", POINTS),
    "alarms": Meaning(
        "Critical points that clinicians say a response keeps and the scorer says it fails.", POINTS
    ),
    "agreement": Meaning("Share of points that both answer alike.", POINTS),
    "false alarms": Meaning(
        "Of the critical points that clinicians say a response keeps, the share the scorer faults.",
        POINTS,
    ),
    "false alarms, 95 %": Meaning(
        "95 % interval of the share of false alarms, over instances.", POINTS
    ),
}
COLUMNS = {AGREEMENT: agreement}  # page of the docs -> the tables whose columns say what they mean
MEANINGS |= {
    column.heading: Meaning(column.help, page)
    for page, tables in COLUMNS.items()
    for spec in vars(tables).values()
    if isinstance(spec, TableSpec)
    for column in spec.columns
    if column.help
}
