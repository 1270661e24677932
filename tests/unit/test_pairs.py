"""Blinded pairs: definitions in plain pandas, published counts, planted bias, coverage, mirrored sides."""

import csv
import io
import math
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from calibration.decision import DecisionKind
from calibration.json_values import json_row
from calibration.pair_juries import pair_ranking
from calibration.pair_models import bradley_terry, win_rates
from calibration.pair_planning import pairs_like, pairs_needed
from calibration.pair_verdict import pair_decisions
from calibration.pairs import PairScores, judged_pairs, pair_rows
from calibration.protocol import Protocol
from calibration.tables.pairs import PAIRS, WINS
from calibration.tables.spec import laid_out
from calibration.values import AnalysisOptions, PlanOptions
from calibration.verdict import JuryClaim
from data.errors import BadInput, OffScale, Unknown

WANGLAB = Path(__file__).parents[3] / "shared" / "datasets" / "wanglab_note_preference"
COLUMNS = str.split("pair_id instance_id benchmark criterion rater preference shown_first pass_")
SIDES = {"first": 1.0, "second": -1.0}


def scores_of(rows, models=None, per=1, **other):
    """Return preferences from (pair, rater, preference, shown first, pass, criterion...) tuples."""
    full = [
        (f"p{pair}", f"i{pair // per}", "notes", [*rest, "overall"][0], *given)
        for pair, *given, rest in [(*row[:5], row[5:]) for row in rows]
    ]
    table = pd.DataFrame(full, columns=COLUMNS)
    kinds = table["rater"].str.startswith("j").map({True: "juror", False: "clinician"})
    ids = sorted({row[0] for row in rows} | {*(models or {})})
    pairs = pd.DataFrame(
        [(f"p{i}", f"i{i // per}", "notes", *(models or {}).get(i, ("", ""))) for i in ids],
        columns=["pair_id", "instance_id", "benchmark", "first_model", "second_model"],
    )
    return PairScores(table.assign(kind=kinds), pairs, **other)


def simulated(seed, pairs=60, clinicians=3, jurors=2, bias=0.0, per=1, worth=1.2, noise=1.0):
    """Return clinicians' preferences, and jurors' in both orders, who lean to the one shown first."""
    random, rows = np.random.default_rng(seed), []
    values = random.normal(size=pairs) * worth
    if per > 1:
        values = (values + random.normal(size=pairs // per).repeat(per)) / math.sqrt(2)

    def points(value):
        return float(np.clip(np.rint(value), -2, 2))

    for pair, value in enumerate(values):
        for one in range(clinicians):
            side = "first" if (pair + one) % 2 else "second"
            rows.append((pair, f"dr{one}", points(value + random.normal()), side, 0))
        for one in range(jurors):
            for side, sign in SIDES.items():
                seen = value + noise * random.normal() + sign * bias
                rows.append((pair, f"j{one}", points(seen), side, 0))
    return scores_of(rows, per=per)


def by_scorer(scores, **options):
    return {row.scorer: row for row in pair_rows(scores, AnalysisOptions(**options))}


def mirrored(scores):
    """Return the same study with first and second changed everywhere."""
    own = scores.preferences
    turned = own["shown_first"].replace({"first": "second", "second": "first"})
    swapped = own.assign(preference=-own["preference"], shown_first=turned)
    models = {"first_model": "second_model", "second_model": "first_model"}
    return replace(scores, preferences=swapped, pairs=scores.pairs.rename(columns=models))


def same(first, second):
    for one in fields(first):
        a, b = getattr(first, one.name), getattr(second, one.name)
        if isinstance(a, float | int):
            assert a == pytest.approx(b, nan_ok=True), one.name


def test_a_jurors_preference_is_the_mean_of_both_orders_and_a_raters_of_its_criteria():
    given = [("dr0", "first", 2.0, -1.0), ("j0", "first", 1.0, 1.0), ("j0", "second", -2.0, -1.0)]
    rows = [
        (0, rater, value, side, 0, name)
        for rater, side, *both in given
        for name, value in zip(("clear", "right"), both, strict=True)
    ]
    lacking = (1, "dr0", 1.0, "first", 0, "clear")  # of a criterion: counts nowhere
    scores = scores_of([*rows, lacking])
    own = judged_pairs(scores, ["notes"])
    assert own.grid.raters == ("dr0", "j0")
    np.testing.assert_allclose(own.grid.composites, [[0.5, -0.25], [np.nan, np.nan]])
    assert own.incomplete == 1
    single = judged_pairs(scores, ["notes"], "clear")
    np.testing.assert_allclose(single.grid.composites, [[2.0, -0.5], [1.0, np.nan]])


def test_agreement_kappa_ac1_and_orders_are_those_of_plain_pandas():
    scores = simulated(3, bias=0.4)
    frame = scores.preferences
    mean = frame.groupby(["pair_id", "kind", "rater"])["preference"].mean()
    means = mean.groupby(["pair_id", "kind"]).mean().unstack("kind")
    clinicians, jury = np.sign(means["clinician"].round(9)), np.sign(means["juror"].round(9))
    told = clinicians != 0
    hits = (clinicians == jury) * 1.0 + (jury == 0) * 0.5
    row = by_scorer(scores)["jury"]
    assert (row.n, row.n_tied) == (60, (~told).sum())
    assert row.agreement == pytest.approx(hits[told].mean())
    assert row.agreement_low < row.agreement < row.agreement_high
    assert row.kappa == pytest.approx(cohen_kappa_score(clinicians, jury))
    share = (pd.get_dummies(clinicians).mean() + pd.get_dummies(jury).mean()) / 2
    chance = (share * (1 - share)).sum() / 2  # Gwet 2008: of three categories
    assert row.ac1 == pytest.approx(((clinicians == jury).mean() - chance) / (1 - chance))
    juror = frame[frame["rater"] == "j1"]
    orders = juror.pivot(index="pair_id", columns="shown_first", values="preference")
    row = by_scorer(scores)["juror:j1"]
    assert row.n_both_orders == 60
    assert row.consistency == pytest.approx(1 - (orders["first"] * orders["second"] < 0).mean())
    of_first = juror["preference"] * juror["shown_first"].map(SIDES)
    assert row.shown_first_preferred == pytest.approx((of_first[of_first != 0] > 0).mean())
    assert row.n_judgements == (of_first != 0).sum()


def test_like_for_like_is_of_the_same_pairs_and_the_same_others():
    scores = simulated(5)
    wide = scores.preferences.groupby(["pair_id", "rater"])["preference"].mean().unstack()
    jury, hits = np.sign(wide[["j0", "j1"]].mean(axis=1).round(9)), []
    for name in ("dr0", "dr1", "dr2"):
        others = np.sign(wide[[one for one in ("dr0", "dr1", "dr2") if one != name]].mean(axis=1))
        for given_, own, other in zip(jury, np.sign(wide[name]), others, strict=True):
            if other:
                hits.append(((1 + given_ * other) / 2, (1 + own * other) / 2))
    row = by_scorer(scores)["like_for_like"]
    assert (row.n, row.n - row.n_tied, row.n_pairs) == (180, len(hits), 60)
    assert (row.jury, row.clinician) == pytest.approx(tuple(np.mean(hits, axis=0)))
    assert row.difference == pytest.approx(row.jury - row.clinician)
    assert row.low < row.difference < row.high
    assert [one.clinician for one in row.without] == ["dr0", "dr1", "dr2"]
    assert row.population_high - row.population_low > row.high - row.low
    alone = by_scorer(scores)["clinicians"]
    assert alone.agreement == pytest.approx(row.clinician)


def test_a_scorers_tie_is_half_and_a_tie_of_the_clinicians_is_left_out():
    rows = [(0, 2.0, 1.0), (1, 2.0, 0.0), (2, -1.0, 1.0), (3, 0.0, 1.0), (4, 1.0, None)]
    scores = scores_of(
        [(pair, "dr0", value, "first", 0) for pair, value, _ in rows]
        + [(pair, "j0", value, "first", 0) for pair, _, value in rows if value is not None]
    )
    row = by_scorer(scores)["jury"]
    assert (row.n, row.n_tied, row.n_missing, row.agreement) == (4, 1, 1, 0.5)
    assert json_row(row)["consistency"] is None
    assert by_scorer(scores)["clinicians"].told("no_others_on_pairs").is_reason


def test_a_tie_in_one_order_is_no_reversal():
    orders = [(1.0, 0.0), (1.0, 1.0), (1.0, -1.0), (0.0, 0.0)]
    rows = [(pair, "dr0", 1.0, "first", 0) for pair in range(5)]
    for pair, both in enumerate(orders):
        rows += [(pair, "j0", value, side, 0) for value, side in zip(both, SIDES, strict=True)]
    row = by_scorer(scores_of([*rows, (4, "j0", 1.0, "first", 0)]))["juror:j0"]
    assert (row.n_both_orders, row.consistency) == (4, 0.75)
    assert row.told("one_order")["pairs"] == 1


def test_a_jury_has_a_preference_only_where_all_its_jurors_judged():
    scores = simulated(1)
    lost = scores.preferences["rater"].eq("j1") & scores.preferences["pair_id"].isin(["p0", "p1"])
    scores = replace(scores, preferences=scores.preferences[~lost])
    rows = by_scorer(scores)
    assert (rows["jury"].n, rows["jury"].n_missing, rows["juror:j0"].n) == (58, 2, 60)
    relaxed = by_scorer(scores, min_jurors=1)["jury"]
    assert (relaxed.n, relaxed.told("fewer_jurors")["needed"]) == (60, 1)
    silent = by_scorer(replace(scores, silent=frozenset({"j9"})))
    assert silent["jury"].n == 0
    assert silent["like_for_like"].told("no_jury_on_pairs").is_reason


def test_simulated_raters_are_named_and_decide_nothing():
    scores = replace(simulated(1), simulated=frozenset({"j1"}))
    rows = by_scorer(scores)
    named = {name: rows[name].simulated for name in ("jury", "juror:j0", "clinicians")}
    assert named == {"jury": ("j1",), "juror:j0": (), "clinicians": ()}
    assert pair_decisions([*rows.values()])["notes"].kind is DecisionKind.SIMULATED


def test_benchmarks_stand_alone_and_combined():
    first, second = simulated(1), simulated(2)
    rename = {f"{old}{i}": f"{new}{i}" for old, new in ("pq", "ik") for i in range(60)}
    rename |= {"notes": "visits"}
    tables = [(getattr(first, name), getattr(second, name)) for name in ("preferences", "pairs")]
    both = PairScores(*(pd.concat([one, other.replace(rename)]) for one, other in tables))
    rows = {(row.benchmark, row.scorer): row for row in pair_rows(both)}
    assert [*dict.fromkeys(name for name, _ in rows)] == ["notes", "visits", "combined"]
    same(rows["notes", "jury"], by_scorer(first)["jury"])
    held = rows["visits", "like_for_like"]
    assert held.corrected_low < held.low
    assert rows["combined", "jury"].n == 120
    assert math.isnan(rows["combined", "like_for_like"].corrected_low)
    alone = pair_rows(both, AnalysisOptions(benchmark="visits"))
    assert {row.benchmark for row in alone} == {"visits"}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"preference": 3.0}, OffScale, "from -2 to 2"),
        ({"preference": math.nan}, OffScale, "from -2 to 2"),
        ({"pair_id": "nowhere"}, BadInput, "no such pair"),
        ({"rater": "dr1", "kind": "juror"}, BadInput, "both clinician and juror"),
    ],
)
def test_what_is_no_preference_is_refused(change, error, words):
    scores = simulated(0)
    one = scores.preferences.head(1).assign(pass_=7, **change)
    with pytest.raises(error, match=words):
        replace(scores, preferences=pd.concat([scores.preferences, one]))
    with pytest.raises(BadInput, match="given twice"):
        replace(scores, preferences=pd.concat([scores.preferences, scores.preferences.head(1)]))


@pytest.mark.parametrize(
    "options",
    [{"jurors": ("j7",)}, {"without": ("dr7",)}, {"criterion": "tone"}, {"benchmark": "x"}],
)
def test_unknown_names_are_refused(options):
    with pytest.raises(Unknown):
        pair_rows(simulated(0), AnalysisOptions(**options))


@pytest.mark.real
def test_wanglabs_counts_of_preferences_are_met():
    if not WANGLAB.is_dir():
        pytest.skip("wanglab_note_preference is not beside the checkout")
    with (WANGLAB / "systems_key.tsv").open(newline="", encoding="utf-8") as file:
        key = {row["example_id"]: row for row in csv.DictReader(file, delimiter="\t")}
    models, rows = {}, []
    for place in range(len(key)):
        for number, sides in enumerate((("GT", "ICL"), ("FT", "GT"), ("ICL", "FT"))):
            models[3 * place + number] = sides
    for one in (1, 2, 3):
        text = (WANGLAB / "annotations" / f"annotator_{one}.tsv").read_text("utf-8")
        lines = [*csv.reader(io.StringIO(text, newline=""), delimiter="\t")]
        column = next(line for line in lines if line[0] == "example_id").index("preferred")
        for line in lines:
            if line[0] not in key:
                continue
            best = {key[line[0]][f"clinical note {note}"] for note in line[column].split("/")}
            for number in range(3):
                pair = 3 * [*key].index(line[0]) + number
                first, second = (name in best for name in models[pair])
                if first or second:  # of two that are not the best nothing is known
                    rows.append((pair, f"dr{one}", float(first) - float(second), "", 0))
    published = pd.read_csv(WANGLAB / "human_eval_results.tsv", index_col=0)
    scores = scores_of(rows, models, per=3)
    grid = judged_pairs(scores, ["notes"]).grid
    names = scores.pairs[["first_model", "second_model"]].to_numpy()
    for place, rater in enumerate(grid.raters):
        own, counts = grid.composites[:, place], {}
        for model in ("GT", "FT", "ICL"):
            won = ((own > 0) & (names[:, 0] == model)) | ((own < 0) & (names[:, 1] == model))
            counts[f"{model}_preferred"] = int((won.reshape(-1, 3).sum(axis=1) == 2).sum())
        expected = published[f"annotator_{rater[-1]}"]
        assert counts == {name: int(expected[name]) for name in counts}
        own_rows = scores.preferences["rater"] == rater
        alone = replace(scores, preferences=scores.preferences[own_rows])
        rate = {row.model: row.win_rate for row in win_rates(alone) if row.n}
        direct = own.reshape(-1, 3)[:, 0]
        assert ((direct > 0).sum(), (direct < 0).sum())[0] >= counts["GT_preferred"]
        assert sorted(rate, key=rate.get)[0] == "FT"
    assert {row.by for row in win_rates(scores)} == {"clinicians"}


@pytest.fixture(scope="module")
def fair():
    """Return the rows of sixty studies whose jurors lean to neither side."""
    return [by_scorer(simulated(seed)) for seed in range(60)]


def test_a_planted_position_bias_is_named_and_a_fair_juror_seldom(fair):
    for sign, side in ((0.5, "first"), (-0.5, "second")):
        biased = [
            by_scorer(simulated(seed, bias=sign))["jury"].told("position_bias")
            for seed in range(10)
        ]
        assert [note["side"] for note in biased if note] == [side] * 10
    biased = [rows["juror:j0"].told("position_bias") for rows in fair]
    assert sum(note is not None for note in biased) <= 5  # 5 % expected


def held(ends, very_many=6_000, **design):
    """Return how often intervals of like for like cover the difference in very many pairs."""
    truth = by_scorer(simulated(10**6, **design | {"pairs": very_many}))["like_for_like"].difference
    return float(np.mean([row.low <= truth <= row.high for row in ends]))


def test_like_for_like_covers_in_a_few_studies(fair):
    assert 0.86 <= held([rows["like_for_like"] for rows in fair], pairs=60) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "design",
    [
        *({"pairs": 60}, {"pairs": 60, "noise": 2.0}, {"pairs": 160, "per": 2}),
        {"pairs": 100, "jurors": 1},
    ],
)
@pytest.mark.timeout(3600)
def test_like_for_like_covers_what_it_says(design):
    rows = (by_scorer(simulated(seed, **design))["like_for_like"] for seed in range(2000))
    assert 0.93 <= held(rows, 20_000, **design) <= 0.97  # of fewer, the truth is off by 0.2 SE


def test_a_jury_as_good_as_a_clinician_is_shown_and_a_bad_one_is_not():
    claim = JuryClaim(Protocol(0.1, jurors=("j0", "j1")))
    good = pair_rows(simulated(1, pairs=600, worth=3.0))
    decision = pair_decisions(good, claim)["notes"]
    assert decision.kind is DecisionKind.NON_INFERIOR
    assert (decision.margin, decision.clinicians) == (0.1, 3)
    assert "600 pairs of 600 instances" in decision.on
    bad = pair_rows(simulated(1, pairs=600, worth=3.0, noise=9.0))
    assert pair_decisions(bad, claim)["notes"].kind is DecisionKind.INFERIOR
    assert pair_decisions(good)["notes"].kind is DecisionKind.NO_PROTOCOL
    few = pair_rows(simulated(1, pairs=12, worth=3.0))
    assert pair_decisions(few, claim)["notes"].kind is DecisionKind.TOO_FEW
    noise = pair_rows(simulated(1, pairs=60, worth=0.0))
    unshown = pair_decisions(noise, claim)["notes"]
    assert unshown.kind is DecisionKind.NO_REFERENCE
    assert "above 0.5" in unshown.sentences[0]
    for one in (decision, unshown):
        assert not any("response" in text or "ICC" in text for text in (*one.sentences, one.action))


def test_win_rates_count_a_tie_as_half_and_are_empty_while_blind():
    scores = of_three([("AB", 2.0), ("BA", 1.0), ("AB", 0.0), ("AA", 2.0)])
    found = {row.model: (row.win_rate, row.n) for row in win_rates(scores)}
    assert found == {"A": (0.5, 3), "B": (0.5, 3)}
    blind = scores.pairs.assign(first_model="", second_model="")
    assert win_rates(replace(scores, pairs=blind)) == []


def of_three(outcomes):
    models = {place: pair for place, (pair, _) in enumerate(outcomes)}
    return scores_of([(i, "dr0", value, "", 0) for i, (_, value) in enumerate(outcomes)], models)


def test_strengths_meet_the_equations_of_bradley_and_terry_and_two_are_the_log_odds():
    random = np.random.default_rng(0)
    outcomes = [
        (pair, float(random.choice([1, 1, 0, -1]))) for pair in ("AB", "BC", "CA", "AD", "DB") * 12
    ]
    rows = {row.model: row for row in win_rates(of_three(outcomes))}
    strength = {name: row.strength for name, row in rows.items()}
    assert sum(strength.values()) == pytest.approx(0, abs=1e-9)
    for name in strength:  # at the maximum of the likelihood wins are those that are expected
        own = [(pair, value) for pair, value in outcomes if name in pair]
        won = sum((1 + (value if pair[0] == name else -value)) / 2 for pair, value in own)
        others = [pair.replace(name, "") for pair, _ in own]
        expected = sum(1 / (1 + math.exp(strength[other] - strength[name])) for other in others)
        assert won == pytest.approx(expected, abs=1e-6)
        assert rows[name].strength_low < strength[name] < rows[name].strength_high
    first, second = np.zeros(8, int), np.ones(8, int)
    strength = bradley_terry(first, second, np.array([1, 1, 1, 1, 1, 1, 0, 0.0]), np.arange(8))
    assert strength[0, 0] - strength[0, 1] == pytest.approx(math.log(3))


def test_strengths_that_do_not_exist_are_not_given_and_it_is_said_why():
    apart = win_rates(of_three([("AB", 1.0), ("BA", 1.0), ("CD", 1.0), ("DC", 1.0)]))
    assert apart[0].told("not_connected")["groups"] == ("A and B", "C and D")
    always = win_rates(of_three([("AB", 1.0), ("BA", 1.0), ("AC", 1.0), ("BC", 1.0)]))
    assert always[0].told("never_beaten")
    assert all(math.isnan(row.strength) for row in [*apart, *always])
    two = win_rates(of_three([("AB", 1.0), ("BA", 1.0)]))
    assert not two[0].told("not_connected")


def test_a_planned_number_of_pairs_obtains_the_width_that_often():
    options = PlanOptions(width=0.25, per_response=3, assurance=0.8)
    agreement = 0.75
    row = pairs_needed(agreement, options, ties=0.2)
    assert row.readings == 3 * row.n_for_width
    assert row.width_expected < 0.25
    half = pairs_needed(agreement, replace(options, width=0.125), 0.2).n_for_width
    assert half == pytest.approx(4 * row.n_for_width, rel=0.15)
    at_margin = replace(options, margin=0.1)
    powered, sure, none = (pairs_needed(one, at_margin, 0.2) for one in (agreement, 0.9, 0.65))
    assert powered.n_for_power > sure.n_for_power
    assert powered.power >= 0.8
    assert none.n_for_power is None
    for wrong in ((0.75, replace(options, per_response=1)), (0.5, options), (0.99, options)):
        with pytest.raises(BadInput):
            pairs_needed(*wrong)


def test_planned_widths_are_those_of_simulated_studies():
    large = simulated(9, pairs=5_000, jurors=0, worth=1.5)
    ties = float((large.preferences["preference"] == 0).mean())
    agreement = by_scorer(large)["clinicians"].agreement
    row = pairs_needed(agreement, PlanOptions(per_response=3, responses=80), ties=ties)
    one_order = []
    for seed in range(20):
        scores = simulated(seed, pairs=80, jurors=1, worth=1.5)
        kept = scores.preferences.query("kind == 'clinician' or shown_first == 'first'")
        held = by_scorer(replace(scores, preferences=kept))["like_for_like"]
        one_order.append(held.high - held.low)
    assert row.width_expected == pytest.approx(np.mean(one_order), rel=0.1)


def test_juries_are_ranked_by_agreement_and_the_best_is_not_taken_at_its_word():
    scores = simulated(4, pairs=100, jurors=3)
    rows = pair_ranking(scores, AnalysisOptions(reps=200), usd={"j0": 0.1, "j1": 0.2})
    assert [row.rank for row in rows] == [*range(1, 8)]
    assert [row.agreement for row in rows] == sorted((row.agreement for row in rows), reverse=True)
    of_all = next(row for row in rows if row.size == 3)
    jury = by_scorer(scores)["jury"]
    known = jury.agreement, jury.agreement_low, jury.n - jury.n_tied
    assert (of_all.agreement, of_all.low, of_all.n) == pytest.approx(known)
    assert rows[0].agreement_honest <= rows[0].agreement
    assert {row.usd_per_pair for row in rows if "j2" in row.jurors} == {None}
    with pytest.raises(BadInput):
        pair_ranking(scores, sizes=range(4, 5))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(1, 2))
def test_to_change_first_and_second_everywhere_changes_no_figure_and_no_win_rate(
    seed, clinicians, per
):
    scores = simulated(seed, pairs=24, clinicians=clinicians, bias=0.3, per=per)
    for before, after in zip(pair_rows(scores), pair_rows(mirrored(scores)), strict=True):
        same(before, after)  # the side shown first is mirrored with its preference
    draw = np.random.default_rng(seed).choice([1.0, 0.0, -1.0], 60)
    every = of_three([*zip(("AB", "BC", "CA") * 20, draw, strict=True)])
    rows, again = ({row.model: row for row in win_rates(one)} for one in (every, mirrored(every)))
    assert rows.keys() == again.keys()
    for model, row in rows.items():
        same(row, again[model])


def test_tables_show_a_row_a_scorer_and_name_the_bias():
    table = laid_out(PAIRS, pair_rows(simulated(0, bias=0.7)))
    assert [row[0] for row in table.groups[0].rows][-2:] == [
        "One clinician, against the others",
        "Like for like",
    ]
    assert any("shown first" in note.text for note in table.notes)
    wins = laid_out(WINS, win_rates(of_three([("AB", 1.0), ("BA", 1.0)])))
    assert wins.columns[:3] == ("Model", "By", "Win rate")


def test_a_pilot_is_planned_from_by_how_its_clinicians_agree_and_tie() -> None:
    scores, options = simulated(3, pairs=200), PlanOptions(per_response=2, width=0.3)
    own = scores.preferences[scores.preferences["kind"] == "clinician"]
    row = pairs_like(scores, options)
    assert row.agreement == by_scorer(scores)["clinicians"].agreement
    assert row.ties == (own["preference"] == 0).mean()
    assert row.n_for_width == pairs_needed(row.agreement, options, row.ties).n_for_width
    alone = replace(scores, preferences=own[own["rater"] == own["rater"].iloc[0]])
    with pytest.raises(BadInput, match="no pilot"):
        pairs_like(alone, options)
