"""Win rates of models from blinded pairs, by clinicians and by the jury, and Bradley-Terry strengths."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from calibration import remarks
from calibration.notes import Note, Noted, note, noted
from calibration.pairs import PairScores, checked, judged_pairs, jury_of, share_with_interval, signs
from calibration.scores import Array, Integers
from calibration.values import NAN, AnalysisOptions

FEWEST = 3  # models whose strengths say more than one win rate


@dataclass(frozen=True)
class WinRow(Noted):
    """One model in pairs with others, by clinicians or by the jury; NaN: undefined.

    Attributes
    ----------
    model, by : by "clinicians" or "jury"
    win_rate, low, high : a win 1, a tie one half, by the sign of the mean preference of a pair;
        95 % interval over instances of `clustered_intervals.clustered_proportion`
    n, n_instances : pairs with this model that have a preference, and their instances
    strength, strength_low, strength_high : Bradley-Terry's, see `bradley_terry`
    """

    model: str
    by: str
    win_rate: float
    low: float
    high: float
    n: int
    n_instances: int
    strength: float = NAN
    strength_low: float = NAN
    strength_high: float = NAN


def win_rates(scores: PairScores, options: AnalysisOptions | None = None) -> list[WinRow]:
    """Return each model's win rate by clinicians, then by the jury, the highest first.

    Pairs of a model with itself, or whose models are not known, take no part: while the study is
    blind there are no rows. Options and errors are as of `pairs.pair_rows`, all benchmarks pooled.
    """
    options = options or AnalysisOptions()
    scores = checked(scores, options)
    jury = jury_of(scores, options)
    members = [options.benchmark] if options.benchmark else scores.benchmarks
    own = judged_pairs(scores, members, options.criterion)
    table = scores.pairs.set_index("pair_id").loc[[*own.grid.responses]]
    first, second = (table[f"{side}_model"].to_numpy(dtype=str) for side in ("first", "second"))
    named = (first != "") & (second != "") & (first != second)
    rows: list[WinRow] = []
    for by, panel in (("clinicians", None), *((("jury", jury),) if jury else ())):
        outcome = (1 + signs(own.by(panel))) / 2
        kept = named & ~np.isnan(outcome)
        raters = {*(panel.members if panel else own.clinicians)}
        fake = remarks.simulated(scores.simulated & raters)
        sides = first[kept], second[kept]
        rows += _rows(by, sides, outcome[kept], own.grid.clusters[kept], fake)
    return rows


def _rows(
    by: str, sides: tuple[Array, Array], outcome: Array, clusters: Integers, fake: Note | None
) -> list[WinRow]:
    models, places = np.unique(np.stack(sides), return_inverse=True)
    first, second = places.reshape(2, -1)
    names = [str(name) for name in models]
    reason = why_no_strengths(names, first, second, outcome)
    strengths = np.full((3, len(names)), np.nan)
    if len(names) >= FEWEST and reason is None:
        strengths = bradley_terry(first, second, outcome, clusters)
    rows = []
    for place, name in enumerate(names):
        won = np.where(first == place, outcome, np.where(second == place, 1 - outcome, np.nan))
        share, ends = share_with_interval(won, clusters)
        played = ~np.isnan(won)
        instances = len(np.unique(clusters[played]))
        notes = noted(reason, remarks.few_instances(instances), fake)
        figures = share, ends.low, ends.high, int(played.sum()), instances
        rows.append(WinRow(name, by, *figures, *strengths[:, place].tolist(), notes=notes))
    return sorted(rows, key=lambda row: -row.win_rate)


def why_no_strengths(
    models: list[str], first: Integers, second: Integers, outcome: Array
) -> Note | None:
    """Return why three or more models have no strengths, or None.

    They have where no group of models was never compared with, or never beaten by, the others: where
    the graph from winners to losers, a tie both ways, is strongly connected (Ford 1957).
    """
    from scipy import sparse  # slow to load, as statsmodels
    from scipy.sparse.csgraph import connected_components

    if len(models) < FEWEST:
        return None
    wins = np.concatenate(
        [np.stack([first, second])[:, outcome > 0], np.stack([second, first])[:, outcome < 1]],
        axis=1,
    )
    graph = sparse.coo_array((np.ones(wins.shape[1]), tuple(wins)), shape=(len(models),) * 2)
    kinds: tuple[tuple[Literal["weak", "strong"], str, str], ...] = (
        ("weak", "not_connected", "no strengths: no pair connects {groups}"),
        ("strong", "never_beaten", "no strengths: between {groups} one side won every pair"),
    )
    for kind, code, words in kinds:
        number, group = connected_components(graph, directed=True, connection=kind)
        if number > 1:
            parts = [[models[one] for one in np.flatnonzero(group == own)] for own in range(number)]
            return note(code, words, groups=[" and ".join(part) for part in parts])
    return None


def bradley_terry(first: Integers, second: Integers, outcome: Array, clusters: Integers) -> Array:
    """Return the log odds with which each model is preferred to an average one, with 95 % intervals.

    Logistic regression of the outcomes on which model stood where, a tie as half a win; standard
    errors clustered by instance, and t with instances - 1 degrees of freedom.

    Parameters
    ----------
    first, second : shape (n,), the models of each pair, numbered from 0, connected
    outcome : shape (n,), 1 where the first won, one half of a tie, 0
    clusters : shape (n,), instances

    Returns
    -------
    shape (3, models)
        Strength, of mean 0 over the models, low and high; no interval of one instance.

    References
    ----------
    Bradley & Terry (1952), Biometrika 39, 324; Ford (1957), American Mathematical Monthly 64, 28.
    """
    from statsmodels.genmod.families import Binomial  # slow to load, and seldom needed
    from statsmodels.genmod.generalized_linear_model import GLM

    number, rows = int(max(first.max(), second.max())) + 1, np.arange(len(first))
    design = np.zeros((len(first), number))
    design[rows, first], design[rows, second] = 1.0, -1.0
    instances = len(np.unique(clusters))
    how = {"cov_type": "cluster", "cov_kwds": {"groups": clusters}} if instances > 1 else {}
    fit = GLM(outcome, design[:, 1:], family=Binomial()).fit(**how)
    centred = np.eye(number)[:, 1:] - 1 / number
    strength = centred @ fit.params
    error = np.sqrt(np.diag(centred @ fit.cov_params() @ centred.T))
    reach = special.stdtrit(instances - 1, 0.975) if instances > 1 else np.nan
    return np.stack([strength, strength - reach * error, strength + reach * error])
