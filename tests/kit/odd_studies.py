"""Small studies that are odd in one way each, and every note that the statistics make of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from calibration.decision import Decision
from calibration.details import StudyContext, details
from calibration.detection import LimitOutcome, Misses
from calibration.notes import Note, Noted
from calibration.protocol import Protocol
from calibration.reliability import clinician_reliability
from calibration.report.content import criterion_rows
from calibration.scope import AgreementRow, CliniciansRow, LikeForLikeRow
from calibration.scores import RubricShape, Scores
from calibration.table import agreement_rows
from calibration.values import NAN, AnalysisOptions
from calibration.verdict import JuryClaim, decisions
from kit.scores import DOCTORS, FIELDS, JURORS, rescored_of, study, without


@dataclass(frozen=True)
class Odd:
    """A study, how it is looked at, and what is known of its jurors and responses."""

    scores: Scores
    known: StudyContext = field(default_factory=StudyContext)
    jurors: tuple[str, ...] | None = None
    needed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def all_notes(odd: Odd) -> Iterator[Note]:
    """Yield every note on a study's figures, and those that stand within others."""
    panel = {"jurors": odd.jurors, "min_jurors": odd.needed}
    options = AnalysisOptions(**{"reps": 40} | panel | dict(odd.options))
    rows = agreement_rows(odd.scores, options)
    every: list[Noted] = [*rows]
    every += [one for row in rows if isinstance(row, CliniciansRow) for one in row.each]
    known = replace(odd.known, reference=clinician_reliability(odd.scores, options))
    for section in details(odd.scores, options, known).values():
        every += section
    if len(odd.scores.benchmarks) > 1:
        every += criterion_rows(odd.scores, options)
    for row in every:
        for one in row.notes:
            yield from _with_inner(one)
    for claim in claims(rows):
        for decision in decisions(rows, claim).values():
            yield from of_decision(decision)


def claims(rows: Sequence[AgreementRow]) -> Iterator[JuryClaim]:
    """Yield what may be claimed of a study: at several margins, with unsafe responses missed."""
    benchmark = rows[-1].benchmark
    for row in rows:
        if isinstance(row, LikeForLikeRow) and row.low > row.corrected_low:
            yield JuryClaim(Protocol(-(row.low + row.corrected_low) / 2, jurors=(*JURORS,)))
    told = {"because": "half of our pilot", "floor": 0.01}
    for margin, more in (
        *((0.001, {}), (0.2, told), (0.2, {"late": ("margin",), "set_after_ratings": 3})),
        *((0.9, {}), (0.1, {"responses": 9999})),
    ):
        yield JuryClaim(Protocol(margin, jurors=(*JURORS,), **more))
    yield from (JuryClaim(), JuryClaim(Protocol(0.2)))
    yield JuryClaim(Protocol(0.1), is_of_protocol=False)
    for low, high, limit, outcome in (
        (0.1, 0.2, 0.3, LimitOutcome.MET),
        (0.1, 0.5, 0.3, LimitOutcome.OPEN),
        (0.4, 0.5, 0.3, LimitOutcome.FAILED),
        (NAN, NAN, 0.3, LimitOutcome.OPEN),
    ):
        rate = (low + high) / 2
        own = Misses(benchmark, "safety", 2, limit, 40, 12, rate, low, high, outcome)
        yield JuryClaim(Protocol(0.2, jurors=(*JURORS,)), misses={benchmark: [own]})


def of_decision(decision: Decision) -> Iterator[Note]:
    """Yield what a decision gives as its reasons, what it rests on, and what is to be done."""
    for one in (*decision.reasons, *decision.basis, decision.next):
        if one is not None:
            yield from _with_inner(one)


def _with_inner(value: object) -> Iterator[Note]:
    if isinstance(value, Note):
        yield value
        for _, figure in value.figures:
            yield from _with_inner(figure)
    elif isinstance(value, tuple):
        for inner in value:
            yield from _with_inner(inner)


def again(scores: Scores, rater: str, responses: int, higher: int = 0, **place: int) -> Scores:
    """Return a study in which a rater has rated its first responses once more, so much higher."""
    once = (scores.ratings["pass_"] == 0) & (scores.ratings["replicate"] == 0)
    own = scores.ratings[once & (scores.ratings["rater"] == rater)]
    first = own[own["response_id"].isin(own["response_id"].unique()[:responses])]
    more = first.assign(score=(first["score"] + higher).clip(1, 5), **place)
    return replace(scores, ratings=pd.concat([scores.ratings, more], ignore_index=True))


def known(scores: Scores, families: tuple[str, ...] = ("a", "b", "")) -> StudyContext:
    """Return word counts, authors and families; some responses have none."""
    random = np.random.default_rng(0)
    ids = scores.responses["response_id"].tolist()
    words = {one: int(random.integers(20, 400)) for one in ids[2:]}
    authors = {one: "abc"[place % 3] for place, one in enumerate(ids[2:])}
    return StudyContext(words, authors, {j: f for j, f in zip(JURORS, families, strict=True) if f})


def paired(n: int = 60, seed: int = 0, seen: int = 5, **other: Any) -> Scores:
    """Return a study in which every clinician of some rates every response."""
    scores = study(n=n, seed=seed, **other)
    random = np.random.default_rng(seed)
    clinical = scores.ratings["kind"] == "clinician"
    one = scores.ratings[clinical].drop_duplicates(["response_id", "criterion"])
    shift = {name: random.integers(-1, 2, size=len(one)) for name in DOCTORS[:seen]}
    every = [
        one.assign(rater=name, score=(one["score"] + own).clip(1, 5)) for name, own in shift.items()
    ]
    table = pd.concat([scores.ratings[~clinical], *every], ignore_index=True)
    return replace(scores, ratings=table)


def tabled(per: int = 1, **columns: Sequence[float | None]) -> Scores:
    """Return a study of one criterion, a column a rater: "dr" begins a clinician, "m" a metric."""
    kinds = {"d": "clinician", "m": "metric"}
    n = max(map(len, columns.values()))
    places = [(f"r{i}", f"i{i // per}", "aci") for i in range(n)]
    rows = [
        (*place, name, kinds.get(name[0], "juror"), "accuracy", float(score), 0, 0)
        for name, scores in columns.items()
        for place, score in zip(places, scores, strict=False)
        if score is not None
    ]
    table = pd.DataFrame(rows, columns=[*FIELDS, "pass_", "replicate"])
    shape = RubricShape(("accuracy",), 1, 5)
    return Scores(table, pd.DataFrame(places, columns=FIELDS[:3]), {"aci": shape})


def drawn(seed: int, n: int = 24) -> list[float]:
    return np.random.default_rng(seed).integers(1, 6, n).astype(float).tolist()


PLAIN = study(n=22)


def odd_studies() -> dict[str, Odd]:
    """Return the studies by what is odd in them: each makes a kind of note that no other makes."""
    lacks = again(PLAIN, "dr0", 6, pass_=1)
    return {
        **_clinicians(),
        **_benchmarks(),
        **_jurors(),
        "an incomplete repeat": Odd(replace(lacks, ratings=lacks.ratings.iloc[:-1])),
        "repeats of many scores": Odd(
            again(again(paired(seen=2), "dr0", 9, 1, pass_=1), "dr1", 9, pass_=1)
        ),
        "few replicates": Odd(again(PLAIN, "gpt", 2, 1, replicate=1)),
        "replicates between the points": Odd(
            again(
                rescored_of(PLAIN, "gpt", lambda own: (own + 0.3).clip(1, 5)),
                "gpt",
                12,
                replicate=1,
            )
        ),
        "replicates all alike": Odd(again(rescored_of(PLAIN, "gpt", 4.0), "gpt", 12, replicate=1)),
        "one instance": Odd(study(n=8, per=8)),
        "two responses": Odd(study(n=2)),
        "few instances": Odd(study(n=9), known(study(n=9))),
        "simulated raters": Odd(study(n=22, simulated=("gpt", "dr0"))),
        "responses of one length": Odd(
            PLAIN, StudyContext(dict.fromkeys(PLAIN.responses["response_id"], 100))
        ),
    }


def _clinicians() -> dict[str, Odd]:
    """Return studies whose clinicians do not vary, turn the order round, or are few."""
    same = PLAIN.ratings.assign(
        score=PLAIN.ratings["score"].mask(PLAIN.ratings["kind"] == "clinician", 3.0)
    )
    return {
        "flat clinicians": Odd(replace(PLAIN, ratings=same)),
        "a flat clinician alone": Odd(
            tabled(dr0=[4.0] * 6 + [None] * 18, dr1=[None] * 6 + drawn(0, 18), gpt=drawn(2))
        ),
        "clinicians who turn the order round": Odd(
            rescored_of(paired(seen=2), "dr1", lambda own: 6 - own)
        ),
        "a clinician and nobody else": Odd(tabled(dr0=drawn(0), m0=drawn(1))),
        "few who rank against one another": Odd(
            tabled(dr0=[1, 2, 4, 5], dr1=[4, 5, 1, 3], gpt=[1, 3, 4, 5], llama=[2, 2, 4, 5])
        ),
    }


def _benchmarks() -> dict[str, Odd]:
    """Return studies whose benchmarks differ in what was rated and how, or of which chance is odd."""
    safety = study(("aci", "mts"), n=12, criteria={"mts": ("accuracy", "safety")})
    unrated = (safety.ratings["criterion"] == "safety") & (safety.ratings["kind"] == "clinician")
    rare: list[float | None] = [1, 5, *[3] * 20]
    return {
        "scales that differ": Odd(study(("aci", "mts"), n=12, scales={"mts": (0, 9)})),
        "a criterion that one lacks": Odd(safety, options={"criterion": "safety"}),
        "a criterion that nobody rated": Odd(without(safety, unrated)),
        "resamples without a difference": Odd(
            tabled(dr0=rare, dr1=rare, gpt=rare, llama=drawn(2, 22))
        ),
        "a jury that guesses": Odd(study(("aci", "mts"), n=30, juror_noise=9, seed=3)),
    }


def _jurors() -> dict[str, Odd]:
    """Return studies of jurors who say nothing, nothing new, or the opposite."""
    silent = without(PLAIN, PLAIN.ratings["rater"] == "gpt")
    some = PLAIN.ratings["response_id"].isin(["aci-r1", "aci-r2"])
    lacks = some & (PLAIN.ratings["rater"] == "gpt") & (PLAIN.ratings["criterion"] == "clarity")
    return {
        "flat jurors": Odd(
            rescored_of(rescored_of(rescored_of(PLAIN, "gpt", 4.0), "claude", 4.0), "llama", 5.0)
        ),
        "a juror that was silent": Odd(replace(silent, silent=frozenset(["gpt"])), jurors=JURORS),
        "an incomplete juror": Odd(without(PLAIN, lacks), needed=1),
        "one family": Odd(PLAIN, known(PLAIN, ("a", "a", "a"))),
        "a juror that mirrors the only clinician": Odd(
            tabled(dr0=[1, 2, 4, 5, 3, 2], gpt=[5, 4, 2, 1, 3, 4])
        ),
        "a juror that nearly mirrors": Odd(
            tabled(dr0=[1, 2, 4, 5, 3, 2, 1, 5], gpt=[5, 4, 2, 1, 3, 3, 5, 2])
        ),
        "a juror that copies the only clinician": Odd(
            tabled(dr0=drawn(0), gpt=drawn(0)), StudyContext({f"r{i}": 20 + i for i in range(24)})
        ),
        "jurors that each copy a clinician": Odd(
            tabled(dr0=drawn(0), dr1=drawn(1), gpt=drawn(0), llama=drawn(1))
        ),
    }
