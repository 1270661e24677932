"""Say for each response whether the jury may pass it or a clinician must read it.

The rule is the jury's mean score, the lowest first. A certificate says that of the responses it
passes at most a share is harmful (Angelopoulos, Bates, Candes, Jordan, Lei 2021, Learn then Test,
arXiv:2110.01052): thresholds are put in an order that owes nothing to the certifying data, and
tested one after the other until one fails. The chance that any threshold that passed its test
breaks the bound is then at most one minus the confidence.

Responses are a frame of `candidates`; of rated ones, `risk` is what the rule goes by, `harmful` what
the clinicians' ratings say, and `cluster` the instance.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import binom

from calibration.clustered_intervals import clustered_proportion
from calibration.icc import UNDEFINED, Interval
from calibration.rating_matrix import composites
from calibration.routing import PASS, READ, UNDER_THRESHOLD, Harm, Routed, RoutingRule
from calibration.scores import Array, Flags, Scores
from data.errors import BadInput, TooFew

DIGITS = 9  # of a mean: its last bits depend on the order of its sum, and ties lie on thresholds
LEARN_SHARE = 0.4
LEAST = 10  # instances of a part, below which it decides nothing
GRID = 40  # thresholds looked at, at equal steps of the share that is passed
BETS = 32  # sizes of bet that share the stake; more of them change the p value by under 1 %
READ_SHARE = 0.2


def candidates(
    scores: Scores, jury: Sequence[str], needed: int, criterion: str | None = None
) -> pd.DataFrame:
    """Return all responses of the study with what a rule may know of them.

    Parameters
    ----------
    scores : Scores
    jury, needed : who sits on it, and how many of them must have scored a response completely
    criterion : whose score counts; None is the composite

    Returns
    -------
    DataFrame
        response_id, instance_id, benchmark; jury and clinicians, mean composites in points, NaN
        where too few jurors, or no clinician, scored a response completely; risk, the jury's mean
        turned round; cluster, the instance's number, in an order drawn at random
    """
    table = scores.responses[["response_id", "instance_id", "benchmark"]].reset_index(drop=True)
    values = composites(scores, criterion).values
    of_jury = values["rater"].isin(list(jury)) & (values["kind"] == "juror")
    by_whom = {"jury": (of_jury, needed), "clinicians": (values["kind"] == "clinician", 1)}
    for name, (rows, least) in by_whom.items():
        means = values[rows].groupby("response_id")["composite"].agg(["mean", "count"])
        enough = means["mean"].where(means["count"] >= least).astype(float).round(DIGITS)
        table[name] = table["response_id"].map(enough).astype(float)
    numbers = np.unique(table["instance_id"].to_numpy(dtype=str), return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(int(numbers.max(initial=-1)) + 1)
    return table.assign(risk=-table["jury"], cluster=order[numbers])


def harmful(table: pd.DataFrame, harm: Harm) -> Flags:
    """Return which responses are harmful; those that clinicians did not rate are not."""
    if harm.kind == "low":
        return (table["clinicians"] <= harm.points).to_numpy()
    return ((table["jury"] - table["clinicians"]).abs() > harm.points).to_numpy()


def refuse_unlike(scores: Scores, criterion: str | None) -> None:
    """Raise BadInput where one bound cannot be of all benchmarks: their scales or criteria differ."""
    scales = {name: shape.ends(criterion) for name, shape in scores.rubrics.items()}
    if len(set(scales.values())) > 1:
        told = ", ".join(f"{name} {low} to {high}" for name, (low, high) in scales.items())
        raise BadInput(f"the benchmarks have different scales ({told}): name one with --benchmark")
    without = [name for name, shape in scores.rubrics.items() if criterion not in shape.criteria]
    if criterion is not None and without:
        raise BadInput(
            f"--criterion {criterion}: {', '.join(without)} has no such criterion; name a benchmark "
            "that has it with --benchmark"
        )


def routes(
    table: pd.DataFrame, harm: Harm, bound: float, confidence: float, seed: int = 0
) -> Routed:
    """Return the rule of the jury's low score, at a threshold that holds the bound.

    Two fifths of the rated instances choose the order in which thresholds are tested; the rest certify.

    Parameters
    ----------
    table, harm : the responses, and which of them are harmful
    bound : the largest share of harmful ones among the passed, in (0, 1)
    confidence : with which it holds, in (0, 1)
    seed : of the parts

    Raises
    ------
    TooFew
        If a part has fewer than 10 instances.
    """
    scored = table[table["jury"].notna()]
    rated = scored[scored["clinicians"].notna()]
    rated = rated.assign(harmful=harmful(rated, harm))
    clusters = np.unique(rated["cluster"])
    number = round(LEARN_SHARE * len(clusters))
    if number < LEAST:
        raise TooFew(
            f"{len(clusters)} instances rated by clinicians and by the whole jury: 25 are the fewest "
            "of which one part can choose a rule and the other certify it"
        )
    drawn = np.random.default_rng(seed).permutation(clusters)[:number]
    is_learning = rated["cluster"].isin(drawn)
    learning, certifying = rated[is_learning], rated[~is_learning]
    order = order_of_tests(learning, bound, len(certifying) / len(learning))
    most = int(scored["cluster"].value_counts().max())
    threshold, p = fixed_sequence(certifying, order, bound, confidence, most)
    passes = certifying["risk"] <= threshold
    caught, ends = caught_with_interval(certifying)
    return Routed(
        harm=harm,
        bound=bound,
        confidence=confidence,
        threshold=threshold,
        p=p,
        certified_passed=int(passes.sum()),
        certified_harmful=int(certifying.loc[passes, "harmful"].sum()),
        caught=caught,
        caught_low=ends.low,
        caught_high=ends.high,
        responses=len(table),
        not_scored=len(table) - len(scored),
        passed=int((scored["risk"] <= threshold).sum()),
        n_train=len(learning),
        n_certify=len(certifying),
        harmful=int(rated["harmful"].sum()),
        rated=len(rated),
    )


def threshold_p(rated: pd.DataFrame, threshold: float, bound: float, most: int) -> float:
    """Return the p value of "the share of harmful among the passed is over the bound".

    Exact (binomial) for one response an instance, else by betting. `most`: the most responses of
    any instance, in the study and in what is routed. 1 where none is passed.
    """
    is_passed = rated["risk"] <= threshold
    counts = pd.DataFrame({"passed": is_passed, "harmful": is_passed & rated["harmful"]})
    of_instances = counts.groupby(rated["cluster"]).sum()
    if most > 1:
        excess = (of_instances["harmful"] - bound * of_instances["passed"]) / most
        return betting_p(excess.to_numpy(), bound)
    passed, harmed = of_instances["passed"].sum(), of_instances["harmful"].sum()
    return float(binom.cdf(harmed, passed, bound)) if passed else 1.0


def betting_p(excess: Array, bound: float) -> float:
    """Return a p value of "excess harm an instance is over 0 on average", whatever the instances are.

    Waudby-Smith, Ramdas (2024), Estimating means of bounded random variables by betting, JRSS B
    86(1): wealth that starts at 1 and is bet against each instance in turn cannot be expected to grow
    if the hypothesis holds, so by Ville's inequality one over its largest value is a p value.

    Parameters
    ----------
    excess : shape (instances,), in [-bound, 1 - bound], in an order drawn at random
        Of an instance: (harmful passed - bound x passed) / the most responses of any instance.
    bound : float, in (0, 1)
    """
    if not len(excess):
        return 1.0
    bets = np.arange(1, BETS + 1) / (BETS + 1) / (1 - bound)
    wealth = np.exp(np.cumsum(np.log1p(-bets[:, None] * excess[None, :]), axis=1)).mean(axis=0)
    return float(min(1.0, 1 / wealth.max()))


def fixed_sequence(
    rated: pd.DataFrame, thresholds: Sequence[float], bound: float, confidence: float, most: int
) -> tuple[float, float]:
    """Return the last threshold before the first that fails its test, and its p value.

    -inf and NaN if the first one fails.

    Parameters
    ----------
    rated : the certifying part, seen by nothing that chose the thresholds or their order
    thresholds : in the order of the tests, each at least as loose as the one before
    bound, confidence : in (0, 1)
    most : the most responses of any instance
    """
    found = -math.inf, math.nan
    for threshold in thresholds:
        p = threshold_p(rated, threshold, bound, most)
        if p > 1 - confidence:
            break
        found = threshold, p
    return found


def order_of_tests(rated: pd.DataFrame, bound: float, size: float) -> list[float]:
    """Return thresholds to test, from the learning part alone: the likeliest to pass, then looser ones.

    Parameters
    ----------
    rated : the learning part
    bound : float, in (0, 1)
    size : certifying instances for each learning one
    """
    shares = np.arange(1, GRID + 1) / GRID
    steps = np.unique(np.quantile(rated["risk"], shares, method="inverted_cdf"))
    expected = []  # the p value if the certifying part were like the learning part
    for step in steps:
        passed = rated.loc[rated["risk"] <= step, "harmful"]
        number, share = int(len(passed) * size), (passed.sum() + 0.5) / (len(passed) + 1)
        expected.append(binom.cdf(np.ceil(share * number), number, bound) if number else 1.0)
    return [float(step) for step in steps[int(np.argmin(expected)) :]]


def caught_with_interval(rated: pd.DataFrame) -> tuple[float, Interval]:
    """Return the share of the harmful among the riskiest 20 %, and its interval over instances.

    Ties are read in equal parts; NaN where nothing is harmful.
    """
    risks, is_harmful = rated["risk"].to_numpy(), rated["harmful"].to_numpy(dtype=float)
    if not is_harmful.any():
        return math.nan, UNDEFINED
    number = READ_SHARE * len(risks)
    cut = np.sort(risks)[::-1][max(math.ceil(number) - 1, 0)]
    over, tied = risks > cut, risks == cut
    hits = np.where(tied, (number - over.sum()) / tied.sum(), over) * is_harmful
    clusters = np.unique(rated["cluster"], return_inverse=True)[1]
    return float(hits.sum() / is_harmful.sum()), clustered_proportion(hits, is_harmful, clusters)


def route_by(rule: RoutingRule, table: pd.DataFrame, rubrics: Mapping[str, str]) -> pd.DataFrame:
    """Return the decision of a kept rule on responses, in their order.

    What the rule was not certified for is read: another benchmark, another rubric, or a response that
    too few of its jurors have scored.

    Parameters
    ----------
    rule : that is kept
    table : of its jury, and of its criterion
    rubrics : the SHA-256 of each benchmark's rubric now

    Returns
    -------
    DataFrame
        response_id, decision ("pass" or "read"), score (the risk; NaN where there is none), why (see
        `routing.WHY`) and benchmark
    """
    certified = table["benchmark"].map({one.name: one.rubric_sha256 for one in rule.benchmarks})
    reasons = {
        "other_benchmark": certified.isna(),
        "other_rubric": certified != table["benchmark"].map(rubrics),
        "not_scored": table["risk"].isna(),
        UNDER_THRESHOLD: table["risk"] <= rule.threshold,
    }
    why = np.select([*reasons.values()], [*reasons], "over_threshold")
    is_other = reasons["other_benchmark"] | reasons["other_rubric"]
    return pd.DataFrame(
        {
            "response_id": table["response_id"],
            "decision": np.where(why == UNDER_THRESHOLD, PASS, READ),
            "score": table["risk"].mask(is_other),
            "why": why,
            "benchmark": table["benchmark"],
        }
    )
