"""Transport: whether notes look like those that a jury was validated on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine

from calibration.baselines.backbone import has_minilm
from calibration.baselines.embedding import DIMENSIONS, embeddings
from calibration.criterion_scores import criterion_scores
from calibration.json_values import json_value
from calibration.rating_matrix import mean_of_given
from calibration.scores import Scores
from calibration.transport import Notes, one_of_each, transported
from calibration.ward_values import Transported
from data.importers.responses import ResponseFile
from data.importers.rows import ResponseRow
from data.importers.table import TableFile
from data.queries import pairs
from medjury.services.scores import jury_named, scores_of, silent_jurors

WORDS, JURY, BENCHMARK = "words", "jury score", "benchmark"


@dataclass(frozen=True, slots=True)
class TransportQuestion:
    """What is compared.

    Attributes
    ----------
    file : new responses; None compares the responses of the study that no clinician has rated
    jurors : whose scores are compared; None is every juror
    texts : whether embeddings of the texts are compared too, which takes a while
    seed : of the permutations
    """

    file: Path | None = None
    jurors: tuple[str, ...] | None = None
    texts: bool = True
    seed: int = 0


@dataclass(frozen=True)
class StudyTransport:
    """What came of it; `texts` tells whether embeddings were compared, `simulated` who is not real."""

    found: Transported
    jury: tuple[str, ...]
    rated: int
    new: int
    texts: bool
    simulated: tuple[str, ...]


def transport(engine: Engine, question: TransportQuestion) -> StudyTransport:
    """Compare the responses that clinicians rated with others.

    Raises
    ------
    BadFile, BadRow
        If the file cannot be read.
    Unrated, Unknown
        If no clinician has rated anything, or the study has no such juror.
    """
    new_rows = [] if question.file is None else list(ResponseFile(TableFile(question.file)))
    scores = scores_of(engine)
    jury = jury_named(scores, question.jurors, silent_jurors(engine, scores))
    texts = question.texts and has_minilm()
    written = {pair.response_id: pair.text for pair in pairs(engine)}
    names = scores.responses["response_id"].tolist()
    notes = _of_study(scores, jury, {name: len(text.split()) for name, text in written.items()})
    clinical = scores.ratings[scores.ratings["kind"] == "clinician"]
    is_rated = scores.responses["response_id"].isin(clinical["response_id"].unique()).to_numpy()
    sides = [
        (
            notes.of(is_rated),
            [written[name] for name, own in zip(names, is_rated, strict=True) if own],
        )
    ]
    if question.file is None:
        rest = [written[name] for name, own in zip(names, is_rated, strict=True) if not own]
        sides.append((notes.of(~is_rated), rest))
    else:
        sides.append((_of_file(new_rows), [row.response for row in new_rows]))
    if texts:
        sides = [(_with_texts(*side, question.seed), side[1]) for side in sides]
    (validated, _), (new, _) = sides
    made_up = {*jury, *scores.raters("clinician")} & scores.simulated
    return StudyTransport(
        transported(validated, new, question.seed),
        tuple(jury),
        int(is_rated.sum()),
        len(new.instances),
        texts,
        tuple(sorted(made_up)),
    )


def _with_texts(notes: Notes, texts: Sequence[str], seed: int) -> Notes:
    """Return notes with the embedding of one text of each case, of at most 300 cases; NaN elsewhere."""
    rows = one_of_each(notes, np.random.default_rng(seed))
    vectors = np.full((len(texts), DIMENSIONS), np.nan)
    if len(rows):
        vectors[rows] = embeddings([texts[row] for row in rows])
    return replace(notes, texts=vectors)


def _of_study(scores: Scores, jury: Sequence[str], words: Mapping[str, int]) -> Notes:
    """Return all responses of the study; the jury's score on each benchmark's own scale from 0 to 1."""
    table = criterion_scores(scores, jury, unrated=True)
    by_criterion = mean_of_given(table.values[:, table.n_clinicians :])
    ends = np.array(
        [(scores.rubrics[name].low, scores.rubrics[name].high) for name in table.benchmarks]
    )
    mean = mean_of_given(by_criterion)
    figures = {
        WORDS: np.array([float(words[name]) for name in table.responses]),
        JURY: (mean - ends[:, 0]) / (ends[:, 1] - ends[:, 0]),
    }
    groups = {
        name: [values.get(response, "") for response in table.responses]
        for name, values in scores.groups.items()
    }
    every = {BENCHMARK: list(table.benchmarks)} | groups
    return Notes(table.instances, figures, every)


def _of_file(rows: Sequence[ResponseRow]) -> Notes:
    """Return new responses; no juror has scored them."""
    names = sorted({name for row in rows for name, _ in row.groups})
    groups = {name: [dict(row.groups).get(name, "") for row in rows] for name in names}
    return Notes(
        [f"{row.benchmark}/{row.instance_id}" for row in rows],
        {WORDS: np.array([float(len(row.response.split())) for row in rows])},
        {BENCHMARK: [row.benchmark for row in rows]} | groups,
    )


def to_json(result: StudyTransport) -> dict[str, Any]:
    """Return a comparison as `analyse transport --json` has it."""
    values: dict[str, Any] = json_value(
        {
            "all_alike": result.found.all_alike,
            "groups": [asdict(one) for one in result.found.groups],
            "compared": [asdict(one) | {"differs": one.differs} for one in result.found.compared],
            "rated": result.rated,
            "new": result.new,
            "texts_compared": result.texts,
            "jury": list(result.jury),
            "simulated": list(result.simulated),
        }
    )
    return values
