"""Decisions of studies whose jury is as good, better or worse, and the rows they are made from."""

from calibration.json_values import decision_json
from calibration.notes import simulated_in
from calibration.protocol import Protocol
from calibration.scope import AgreementRow, LikeForLikeRow
from calibration.tables.agreement import AGREEMENT, HELD
from calibration.tables.spec import laid_out
from calibration.verdict import JuryClaim, decide, decisions
from kit.scores import DOCTORS, study
from kit.studies import table_rows


def rows(low=0.01, high=0.2, icc=0.1, instances=60, *, jury_notes=(), **held):
    """Return the two rows that a decision is made from."""
    common = {"n_instances": instances, "n_clinicians": 4, "n_missing": 3, "n_responses": 97}
    jury = AgreementRow("b", "jury", icc=0.9, low=0.8, high=0.95, notes=jury_notes, **common)
    agreeing = {"jury_low": 0.5, "jury_high": 0.7, "clinician_low": 0.4, "clinician_high": 0.6}
    figures = {"jury_icc": 0.6, "clinician_icc": 0.6 - icc, "resamples": 2000} | agreeing | held
    ends = {"low": low, "high": high}
    return [jury, LikeForLikeRow("b", "like_for_like", icc=icc, **ends, **common, **figures)]


def at(margin=0.1, misses=(), **fixed):
    """Return a claim at a margin, with what is missed on benchmark b."""
    return JuryClaim(
        Protocol(margin, **{"jurors": ("j",), "set_at": "2026-01-02"} | fixed), misses={"b": misses}
    )


def judged(*changed, margin=0.1, looked=1, misses=(), **others):
    return decide(rows(*changed, **others), at(margin, misses), looked)


def studies():
    """Return small studies of which jury and clinicians agree as well, better, worse, or not."""
    kept = {"n": 80, "criteria": {"aci": ("accuracy",), "mts": ("accuracy",)}}
    return {
        "a jury as good as any": study(juror_noise=0.1, seed=2, **kept),
        "a jury that guesses": study(juror_noise=6, seed=2, **kept),
        "two benchmarks": study(("aci", "mts"), seed=3, juror_noise=0.1, **kept | {"n": 60}),
        "few instances": study(n=12, seed=4),
        "two responses": study(n=2, seed=5),
        "different scales": study(("aci", "mts"), n=24, seed=6, scales={"mts": (0, 9)}),
        "simulated": study(n=40, seed=7, simulated=(DOCTORS[0], "gpt")),
    }


def facts():
    """Return what is decided, marked and shown of studies, without any word of a message."""
    return {name: _facts(table_rows(scores, 200)) for name, scores in studies().items()}


def _facts(found):
    made = [decision_json(one) for one in decisions(found, at()).values()]
    held = [row for row in found if row.scorer == "like_for_like"]
    cells = [group.rows for group in laid_out(AGREEMENT, found, grouped=True).groups]
    cells += [group.rows for group in laid_out(HELD, held).groups]
    named = [[one["code"] for one in (*own["reasons"], *own["basis"])] for own in made]
    wanted = [own["next"] and own["next"]["code"] for own in made]
    figures = [[own[name] for name in ("kind", "estimate", "low", "high")] for own in made]
    return [figures, named, wanted, cells, simulated_in(found)]
