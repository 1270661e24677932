"""What was recorded stays: figures of every analyse command, and the words of the demo study.

The figures are of the demo and of four public data sets (SummEval-OP, MIT; MentalBench, MIT; ACI-Bench,
CC BY 4.0, its ratings drawn; MSLR Cochrane, Apache-2.0; docs/real-data.md has the sources), recorded by
`kit.goldens` with the code of commit f7873ea6. A key may go on purpose, and then stands in GONE, with
the one figure that was mended; none else changes its value. The words are those of the terminal and the report page; `make words` records them anew.
"""

import re
from difflib import unified_diff
from typing import Any

import pytest
from kit import demo_words
from kit.goldens import STUDIES, answers, differences, recorded

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

GONE = (  # what went, or was mended, as regular expressions
    r"\.(calibrate|published)\.json\.(details\.)?(alt_test|disattenuated|effective_jurors) is gone",
    r"\.calibrate\.json\.details\.severity\[\d+\]\.shrunken is gone",
    r"\.calibrate\.json\.details\.missing\[\d+\]\.icc_(highest|lowest) is gone",
    r"\.calibrate\.json\.details\.other_measures\[\d+\]\.(icc_absolute(_low|_high)?|kendall) is gone",
    r"\.route\.json\.(baseline|learned) is gone",
    r"\.calibrate\.json\.details\.missing\[\d+\]\.notes has 1 for 2",  # the note on those bounds
    r"\.route\.json\.more_rated_responses: .*",  # by the tests as they are made; it was too few
    # of the jackknife, where they were of the bootstrap; nothing is undefined in it
    r"\.\w+\.json\.(rows|periods|criteria|by_size|benchmarks)\[\d+\]\.(icc_)?(low|high): .*",
    r"\.(juries\.json\.winner|plan\.json\.assumed\.pilot\.jury)\.(low|high): .*",
    r"\.monitor\.json\.decision\.(reasons\[\d+\]\.)?(low|high): .*",
    r"\.\w+\.json\.(rows|periods|criteria)\[\d+\]\.boot_(low|high) is gone",
    r"\.calibrate\.json\.rows\[34\]\.notes.*",  # of the demo: the interval of a difference holds 0 now
    r"\.plan\.json\.rows\[\d+\]\.(icc_panel|icc_single|n|n_exact|readings|width_\w+): .*",  # low end
    r"\.(calibrate|published)\.json\.rows\[\d+\]\.population_(low|high): .*",
    r"\.(calibrate|published)\.json\.rows\[\d+\]\.(undefined_)?resamples: .*",
    r"\.monitor\.json\.(cusum|detectable|limit|reason|drift\.(said|notes)) is gone",
    r"\.monitor\.json\.periods\[\d+\]\.(benchmark|joined|jury_first|jury_last) is gone",
    r"\.monitor\.json\.periods\[\d+\]\.notes?\b.*",  # less what columns say
    r"\.monitor\.json\.(target\.notes|decision\.reasons)\[\d+\]\.code: 'no_cusum_\w+' became 'not_watched_\w+'",
    r"\.monitor\.json\.decision\.(basis has 2 for 3|next\.\w+ is gone)",
    r"\.monitor\.json\.case_mix(: .* became None|\.(mean_(change|low|high)|sd_(ratio|low|high)|icc_spread) is gone)",
    r"\.monitor\.json\.anchor\[\d+\]\.(benchmark|p|first_day|latest_day|mean_first|mean_latest|change) is gone",
    r"\.plan\.json\.(power|assumed\.(difference|shared|pilot\.varied)) is gone",
    r"\.plan\.json\.rows\[\d+\]\.(n_bonett|n_zou|icc_panel|width) is gone",
    r"\.plan\.json\.(assumed\.population|non_inferiority\[\d+\]\.mc_error) is gone",
    r"\.plan\.json\.sentences has \d+ for \d+",
    r"\.route\.json\.more_rated_responses is gone",
    r"\.(calibrate|published)\.json\.detection\[\d+\]\.(n_found|n_instances|n_bad_instances) is gone",
    # by t over instances, where they were of the bootstrap; less what columns say
    r"\.(calibrate|published)\.json\.detection\[\d+\]\.(auc_low|auc_high|notes)\b.*",
    r"\.route\.json\.caught_at_20\.(low|high): .*",  # Wilson's over instances, as of sensitivity
    r"\.predict\.json\.benchmarks\[\d+\]\.(n_(both|fit)|coverage|n_checked|icc(_low|_high)?|n_instances) is gone",
    r"\.predict\.json\.benchmarks\[\d+\]\.notes?\b.*",
    r"\.errors\.json\.benchmarks\[\d+\]\.groups\[\d+\]\.(n_instances|n_scored|n_twice) is gone",
    r"\.models\.json\.(detectable|measured|categories|costs) is gone",
    # without the benchmark that a key alone scores: its place in the list, and in the seeds
    r"\.models\.json\.benchmarks\b.*",
    r"\.models\.json\.rows\[\d+\]\.(n_missing: 12 became 0|without has 0 for 1|win_rate_(low|high): .*)",
    # by t with the error between instances, where they were percentiles that told equal models apart too often
    r"\.models\.json\.decision(\.reasons\[\d+\])?\.(low|high): .*",
    r"\.models\.json\.rows\[\d+\]\.(shared_rank_(low|high): |not_told_apart).*",  # by p of all pairs (Holm)
    r"\.models\.json\.rows\[\d+\]\.(win_rate_(by_instance|sd)|n_paired) is gone",
    r"\.models\.json\.decision\.reasons\[\d+\]\.(code: 'leads_by' became 'models_differ'|(of|next) is gone)",
    r"\.models\.json\.rows\[\d+\]\.(rank(_low|_high)?|(win_rate_)?unchanged|least_instances) is gone",
    r"\.models\.json\.rows\[\d+\]\.notes.*",  # two are gone that said what fields say
    r"\.models\.json\.decision\.next\.(rated|responses) is gone",  # they were of a detectable difference
    r"\.models\.json\.decision\.reasons( has \d for \d|\[2\]\.(code: 'to_be_detected'.*|detectable is gone))",
    r"\.calibrate\.json\.details\.differences\[\d+\]\.(detectable is gone|notes\b.*)",  # two notes less
    r"\.compare\.json\.(detectable is gone|notes\b.*)",
    r"\.juries\.json\.(common|decision\.basis\[0\]\.(least|most)) is gone",
    r"\.calibrate\.json\.details\.(influence|evidence) is gone",
    r"\.calibrate\.json\.study is gone",  # facts that the report page shows
    # One cluster-robust mean, by t, for every bias; jackknifed ICCs of repeats and of single clinicians.
    r"\.calibrate\.json\.details\.severity\[\d+\]\.(low|high): .*",
    r"\.calibrate\.json\.(criteria|details\.other_measures)\[\d+\]\.(bias_(low|high): .*|icc_raw is gone)",
    r"\.(calibrate|published)\.json\.rows\[\d+\]\.notes has (6 for 7|5 for 6)",
    r"\.plan\.json\.assumed\.pilot\.clinicians\.(low|high): .*",
    r"\.plan\.json\.rows\[1\]\.notes\[0\]\.icc: .*",  # that low end, planned for and below 0
    # One test of a difference of two ICCs: the ellipse of the jackknife with Satterthwaite's freedom.
    r"\.calibrate\.json\.details\.(differences|juror_value)\[\d+\]\.(low|high|p): .*",
    r"\.(calibrate|published|predict|compare)\.json\.decision\.(reasons\[\d\]\.)?(low|high|p): .*",
    r"\.(calibrate|published)\.json\.rows\[\d+\]\.(notes\[3\]\.|corrected_)(low|high): .*",
    r"\.compare\.json\.(low|high|p): .*",
    r"\.monitor\.json\.case_mix\.change_(low|high): .*",
    r"\.calibrate\.json\.details\.chance_corrected\[\d+\]\.(alpha_interval|ac2_se) is gone",
    # One interval of the clinicians' reliability, of the variances, for both forms.
    r"\.(calibrate|published)\.json\.(details\.)?reliability\[\d+\]\.(low|high): .*",
    r"\.calibrate\.json\.details\.missing\[\d+\]\.icc is gone",
    r"\.(calibrate|published)\.json\.detection\[\d+\]\."
    r"(critical|points|confusion|(specificity|ppv|npv|read_for_90|read_for_95)_(low|high)) is gone",
    # What other fields, the table of periods and that of the case mix say.
    r"\.monitor\.json\.(scorer|drift\.anchored|target\.(low|high)|case_mix\.change|anchor\[\d+\]\.icc_one) is gone",
    r"\.monitor\.json\.case_mix\.shares\[\d+\]\.n_(baseline|now) is gone",
    r"\.monitor\.json\.decision\.basis\[\d+\]\.(clinicians|missing|low|high) is gone",
    r"\.monitor\.json\.(decision\.reasons|target\.notes)\[\d+\]\.(periods|baseline|not_over) is gone",
    r"\.monitor\.json\.decision\.reasons\[\d+\]\.code: '(not_below_floor|below_floor_maybe)' became 'to_floor'",
    r"\.monitor\.json\.decision\.(reasons has \d for \d|next\b.*)",  # "look again" and "too few" go
    # By one simulation of the design; a pilot's rows are those of the tables of agreement.
    r"\.plan\.json\.(rows|non_inferiority|assumed\.(icc|single_icc|pilot\.(clinicians|jury)))\b.*",
    # Which jury to take is said with its costs; models are told apart by corrected scores' own test.
    r"\.juries\.json\.decision\.reasons( has \d for \d|\[\d\]\.(code: 'all_together' became .*|(expected|jurors) is gone))",
    r"\.models\.json\.decision\.reasons\[1\]\.(code: '(gap_spans_zero|other_instances)' became .*|(common|own) is gone)",
    r"\.monitor\.json\.periods\[\d+\]\.se: .*",  # of the jackknife, as everywhere
)


NOTES_GONE = {  # notes of details that only added figures
    *("bca", "pairs_interval", "smaller_jury", "shared_instances"),
    *("from_clinicians", "limits", "shared_points", "reliability_uneven", "reliability_within"),
    *("shared_ac2", "single_scores", "kappa_of", "kappa_zero", "kappa_left_alike"),
    *("ceiling", "floor", "unvaried", "no_f"),
    *("kappa_left_few", "single_replicates", "same_off_points", "identical_replicates"),
}
DETAILS_GONE = {"reliability": {"analysed"}, "severity": {"analysed"}}


def remaining(value: Any, section: str = "") -> Any:
    """Return a recording without the rows and the notes that went."""
    if isinstance(value, list):
        rows = (
            one
            for one in value
            if not isinstance(one, dict)
            or (one.get("form") != "ICC(A,k)" and one.get("by") != "paper")
        )
        return [remaining(one, section) for one in rows]
    if not isinstance(value, dict):
        return value
    found = {
        key: remaining(one, key if key in DETAILS_GONE else section) for key, one in value.items()
    }
    if notes := found.get("notes"):
        gone = NOTES_GONE | DETAILS_GONE.get(section, set())
        found["notes"] = [one for one in notes if one["code"] not in gone]
        if "note" in found and not found["notes"]:
            found["note"] = ""
    return found


@pytest.mark.real
@pytest.mark.parametrize("name", STUDIES)
def test_the_figures_of_a_study_are_those_recorded(name: str) -> None:
    found = differences(remaining(recorded(name)), answers(name))
    assert [one for one in found if not any(re.fullmatch(gone, one) for gone in GONE)] == []


def test_the_words_for_the_demo_study_are_those_recorded() -> None:
    lines = (demo_words.recorded().splitlines(), demo_words.said().splitlines())
    changed = [*unified_diff(*lines, "recorded", "said", lineterm="", n=1)]
    shown = "\n".join(changed[:80])
    assert not changed, f"if they are meant, `make words` records them anew:\n{shown}"
