"""A verdict from one table of scores, without a study: who rates what is said, or told by the columns' names."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isnan
from pathlib import Path
from typing import Any

import pandas as pd

from calibration.notes import Note, note
from calibration.protocol import Protocol
from calibration.scores import Scores, scores_of_table
from calibration.table import frame_of_rows
from calibration.values import AnalysisOptions, Method
from data.card import Kind
from data.errors import BadInput
from data.importers.columns import guessed, plain_words
from data.importers.table import TableFile
from data.safe_text import short
from medjury.services.calibration import Calibration, CalibrationQuestion, of_scores

# Words of a column's name -> who scores in it.
WORDS: Mapping[str, str] = {
    Kind.METRIC: "metric rouge bertscore bleu bleurt meteor chrf similarity",
    Kind.JUROR: "judge jury juror llm ai bot gpt claude gemini gemma llama mistral mixtral qwen deepseek "
    "phi grok command opus sonnet haiku mini nano model auto",
    Kind.CLINICIAN: "human clinician physician doctor dr expert nurse pharmacist annotator rater "
    "reviewer gold consultant md",
}
ITEM = ("item", "item id", "response id", "id", "case", "case id", "note id", "row")
CLUSTER = ("cluster", "instance id", "instance", "patient", "patient id")
YES_NO = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "pass": 1.0, "fail": 0.0}
EMPTY = {"", "na", "n/a", "nan", "none", "null"}
NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
LONG = ("response_id", "rater", "score")
MOST_NAMED = 12  # columns in a message


@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """How a table of scores is to be read and judged.

    Attributes
    ----------
    humans, judges : who they are: columns, or names in the column of raters; empty is by their names
    item, cluster : columns that name what is scored, and what several of these have in common
    criterion : the one that is looked at; "" is the mean over all
    scale : ends of the scale; None is the lowest and highest score given
    margin : of non-inferiority, in ICC; None decides nothing
    unsafe : the highest score that is unsafe; None is 0 where all scores are 0 or 1
    """

    humans: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    item: str = ""
    cluster: str = ""
    criterion: str = ""
    scale: tuple[int, int] | None = None
    margin: float | None = None
    unsafe: float | None = None
    method: Method = "paper"


@dataclass(frozen=True, eq=False)
class Check:
    """What a table of scores says of its judges.

    Attributes
    ----------
    calibration : all figures, as of a study
    notes : how the table was read, and what of the jury's row one has to know
    """

    calibration: Calibration
    notes: tuple[Note, ...]

    @property
    def decision(self) -> Any:
        """Return whether the judges may stand in for a human, with reasons and the next step."""
        return self.calibration.decision

    @property
    def table(self) -> pd.DataFrame:
        """Return the agreement table, as `calibration.table.agreement_table` has it."""
        return frame_of_rows(self.calibration.rows)


def check(
    frame: pd.DataFrame,
    humans: Sequence[str] = (),
    judges: Sequence[str] = (),
    **asked: Any,
) -> Check:
    """Return how far judges agree with humans on the scores of a table, and whether they may stand in.

    Parameters
    ----------
    frame : DataFrame
        Wide: a row an item, a column a rater, of several criteria RATER.CRITERION. Or long: columns
        item, rater, score and, where there are, kind ("human", "judge", "metric") and criterion.
    humans, judges : columns, or names in the column of raters; empty is by their names
    asked : item, cluster, criterion, scale, margin, unsafe, method, as in `CheckQuestion`

    Returns
    -------
    Check
        With `.decision`, `.table` (DataFrame) and `.notes`.

    Raises
    ------
    BadInput
        If who is human cannot be told from the names, or a cell is no score.
    OffScale, TooFew
        As `calibration.agreement`.

    Examples
    --------
    >>> import medjury, pandas as pd
    >>> human_a = [4, 3, 5, 4, 2, 5, 3, 1, 4, 2] * 3
    >>> human_b = [4, 3, 4, 4, 2, 5, 2, 1, 5, 2] * 3
    >>> judge = [5, 3, 5, 4, 1, 5, 3, 2, 4, 2] * 3
    >>> frame = pd.DataFrame({"human_a": human_a, "human_b": human_b, "judge": judge})
    >>> found = medjury.check(frame, margin=0.1)
    >>> found.decision.kind.value, round(float(found.table["icc"][0]), 2)
    ('non_inferior', 0.95)
    """
    question = CheckQuestion(tuple(humans), tuple(judges), **asked)
    texts = frame.astype(object).where(frame.notna(), "").astype(str)
    return checked(texts.rename(columns=str), question, "the table")


def texts_of(path: Path) -> pd.DataFrame:
    """Return the cells of a file as texts, "" where there is none. Raises BadFile."""
    table = TableFile(path)
    frame = pd.DataFrame.from_records([cells for _, cells in table], columns=list(table.columns))
    return frame.fillna("")


def checked(
    frame: pd.DataFrame,
    question: CheckQuestion,
    name: str,
    *,
    page: bool = False,
    brief: bool = False,
) -> Check:
    """Return what a table of texts says; `name` is the file's, for messages.

    `brief` leaves out what takes seconds and moves no figure of the table: pingouin's ICCs and how
    reliable the humans are.
    """
    long, read = _long(frame, question, name)
    scores, read = _scores(long, question, read)
    options = AnalysisOptions(criterion=question.criterion or None, method=question.method)
    jurors = scores.raters("juror")
    protocol = None
    if question.margin is not None:
        protocol = Protocol(
            question.margin, question.criterion, jurors=jurors, method=question.method
        )
    asked = CalibrationQuestion(
        options, page=page, further=page, reference=not brief, check=not brief
    )
    found = of_scores(scores, asked, protocol)
    found = replace(found, told=(*found.told, *(one.text for one in read)))
    of_jury = next((row.notes for row in found.rows[::-1] if row.scorer == "jury"), ())
    return Check(found, (*read, *of_jury))


def _scores(
    long: pd.DataFrame, question: CheckQuestion, read: list[Note]
) -> tuple[Scores, list[Note]]:
    """Return the scores on their scale, with what of it is unsafe."""
    judged = long.loc[long["kind"] != Kind.METRIC, "score"]
    low, high = question.scale or (floor(judged.min()), ceil(judged.max()))
    is_pass_fail = (low, high) in ((0, 1), (0, 0), (1, 1)) and {*judged.unique()} <= {0.0, 1.0}
    if is_pass_fail and question.scale is None:
        low, high = 0, 1
    unsafe = 0.0 if question.unsafe is None and is_pass_fail else question.unsafe
    scores = scores_of_table(long, (low, max(high, low + 1)))
    if question.scale is None:
        ends = "the scale is taken as {low} to {high}, the lowest and highest score (--scale)"
        read.append(note("scale_of_scores", ends, low=low, high=high))
    if unsafe is None:
        return scores, read
    read.append(note("unsafe_at", "a score of {points:g} or less is unsafe", points=unsafe))
    of_one = [question.criterion] if question.criterion else None
    shapes = {
        name: replace(shape, critical=tuple((one, unsafe) for one in of_one or shape.criteria))
        for name, shape in scores.rubrics.items()
    }
    return replace(scores, rubrics=shapes), read


def _long(
    frame: pd.DataFrame, question: CheckQuestion, name: str
) -> tuple[pd.DataFrame, list[Note]]:
    """Return a row a score, with kind, and how the table was read."""
    columns = [*map(str, frame.columns)]
    for given in (question.item, question.cluster):
        if given and given not in columns:
            raise BadInput(f"{name} has no column {short(given)}: {_named(columns)}")
    ours = dict(guessed(columns, "ratings").columns)
    if "score" not in ours.values():  # a score is taken for one of a criterion that has a column
        ours = dict(guessed([*columns, "criterion"], "ratings").columns)
        ours.pop("criterion")
    if {*LONG[1:]} <= {*ours.values()} and not {*question.humans, *question.judges} & {*columns}:
        return _of_long(frame, question, name, ours)
    return _of_wide(frame, question, name)


def _of_long(
    frame: pd.DataFrame, question: CheckQuestion, name: str, ours: Mapping[str, str]
) -> tuple[pd.DataFrame, list[Note]]:
    by_name = {mine: theirs for theirs, mine in ours.items()}
    item = question.item or by_name.get("response_id", "")
    if not item:
        raise BadInput(f"{name}: say with --item which column names what was scored")
    table = pd.DataFrame(
        {
            "response_id": frame[item].str.strip(),
            "rater": frame[by_name["rater"]].str.strip(),
            "criterion": frame[by_name["criterion"]].str.strip()
            if "criterion" in by_name
            else "score",
            "cell": frame[by_name["score"]],
        }
    )
    table["instance_id"] = frame[_cluster(frame, question) or item].str.strip()
    own = frame[by_name["kind"]] if "kind" in by_name else None
    who = kinds_of(name, table["rater"], own, question)
    return _with_scores(table, who, name, by_name["score"])


def kinds_of(
    name: str, raters: "pd.Series[Any]", kinds: "pd.Series[Any] | None", question: CheckQuestion
) -> dict[str, str]:
    """Return rater -> kind: as the question says, as a column of kinds has it, or by the names."""
    pairs = () if kinds is None else zip(raters, kinds, strict=True)
    given = {rater: kind for rater, text in dict.fromkeys(pairs) if (kind := kind_of(text))}
    return _who(name, [*raters.unique()], question, given)


def _of_wide(
    frame: pd.DataFrame, question: CheckQuestion, name: str
) -> tuple[pd.DataFrame, list[Note]]:
    columns = [*frame.columns]
    item = question.item or next((one for one in columns if plain_words(one) in ITEM), "")
    cluster = _cluster(frame, question)
    raters = _raters(frame, question, {item, cluster})
    who = _who(name, [*dict.fromkeys(rater for rater, _ in raters.values())], question, {})
    items = (
        frame[item].str.strip() if item else pd.Series([f"row {n + 1}" for n in range(len(frame))])
    )
    parts = [
        pd.DataFrame(
            {
                "response_id": items.to_numpy(),
                "instance_id": frame[cluster].str.strip().to_numpy()
                if cluster
                else items.to_numpy(),
                "rater": rater,
                "criterion": criterion,
                "cell": frame[column].to_numpy(),
            }
        )
        for column, (rater, criterion) in raters.items()
        if rater in who
    ]
    table, read = _with_scores(pd.concat(parts, ignore_index=True), who, name, "")
    left = [
        one
        for one in columns
        if one not in {item, cluster} and raters.get(one, ("",))[0] not in who
    ]
    if left:
        read.append(note("columns_left", "columns not taken: {columns}", columns=left[:MOST_NAMED]))
    return table, read


def _raters(
    frame: pd.DataFrame, question: CheckQuestion, taken: set[str]
) -> dict[str, tuple[str, str]]:
    """Return column -> (rater, criterion) of the columns that hold scores.

    What follows the last dot is a criterion where two raters have it, or a rater who has such a one:
    `claude-3.7-sonnet` is a name.
    """
    named = {*question.humans, *question.judges}
    columns = [
        column
        for column in frame.columns
        if column not in taken and (column in named or _are_scores(frame[column]))
    ]
    parts = {
        column: column.rpartition(".")[::2]
        for column in columns
        if column not in named and re.fullmatch(r".+\.[^\W\d][^.]*", column)
    }
    number = Counter(criterion for _, criterion in parts.values())
    split = {rater for rater, criterion in parts.values() if number[criterion] > 1}
    whole = {
        column: (column, "score")
        for column in columns
        if not (column in parts and (parts[column][0] in split or parts[column][0] in named))
    }
    return {column: whole.get(column) or parts[column] for column in columns}


def _who(
    name: str, raters: Sequence[str], question: CheckQuestion, given: Mapping[str, str]
) -> dict[str, str]:
    """Return rater -> kind; refuse names that are not there, or that tell nothing."""
    asked = dict.fromkeys(question.humans, Kind.CLINICIAN.value)
    asked |= dict.fromkeys(question.judges, Kind.JUROR.value)
    if absent := [one for one in asked if one not in raters]:
        raise BadInput(f"{name}: nobody is called {short(absent[0])}: there are {_named(raters)}")
    guess = {one: kind for one in raters if (kind := given.get(one) or kind_of(one))}
    who = {
        one: kind
        for one, kind in (guess | asked).items()
        if one in asked
        or (
            not (kind == Kind.CLINICIAN and question.humans)
            and not (kind == Kind.JUROR and question.judges)
        )
    }
    if Kind.CLINICIAN not in who.values() or Kind.JUROR not in who.values():
        some = [one for one in raters if one not in who] or [*raters]
        line = f"--human {some[0]} --judge {some[-1]}"
        lacking = "human" if Kind.CLINICIAN not in who.values() else "judge"
        raise BadInput(
            f"{name}: no {lacking} can be told from the names {_named(raters)}; say who is who: "
            f"medjury check {name} {line} (several: A,B)"
        )
    return who


def kind_of(name: str) -> str:
    """Return whether a name is a human's, a judge's or a metric's; "" where it tells nothing, or two things."""
    words = {re.sub(r"\d+$", "", word) for word in plain_words(name).split()}
    words |= {word.removesuffix("s") for word in words}
    kinds = [kind for kind, known in WORDS.items() if words & {*known.split()}]
    return kinds[0] if len(kinds) == 1 else ""


def _with_scores(
    table: pd.DataFrame, who: Mapping[str, str], name: str, column: str
) -> tuple[pd.DataFrame, list[Note]]:
    """Return the rows that have a score, as numbers, with kinds; count those that have none."""
    table = table[table["rater"].isin(list(who))].reset_index(drop=True)
    if (table["response_id"] == "").any():
        raise BadInput(f"{name}: a row names no item")
    cells = table["cell"].astype(str).str.strip()
    values = {cell: _score(cell) for cell in cells.unique()}
    wrong = cells.map(lambda cell: values[cell] is None)
    if wrong.any():
        row = table[wrong].iloc[0]
        raise BadInput(
            f"{name}: {column or row['rater']} of {short(row['response_id'])}: "
            f"{short(cells[wrong].iloc[0])!r} is no score"
        )
    table["score"] = cells.map(values).astype(float)
    table["kind"] = table["rater"].map(who)
    given = table.dropna(subset="score")
    twice = given.duplicated(["response_id", "rater", "criterion"])
    if twice.any():
        row = given[twice].iloc[0]
        raise BadInput(
            f"{name}: {row['rater']} has two scores for {short(row['response_id'])}: leave the right one"
        )
    return given.drop(columns="cell").reset_index(drop=True), [*_read(who, len(table) - len(given))]


def _read(who: Mapping[str, str], missing: int) -> Iterator[Note]:
    """Yield who was taken for what, and how many cells are empty."""
    of = {kind: [name for name, own in who.items() if own == kind] for kind in WORDS}
    yield note(
        "who_is_who",
        "humans: {humans}; judges: {judges} (--human and --judge say otherwise)",
        humans=of[Kind.CLINICIAN],
        judges=of[Kind.JUROR],
    )
    if of[Kind.METRIC]:
        yield note("metrics_taken", "metrics: {metrics}", metrics=of[Kind.METRIC])
    if missing:
        yield note(
            "cells_empty", "{number:,} cells are empty or NA, and stay missing", number=missing
        )


def _score(cell: str) -> float | None:
    """Return a score, NaN of an empty cell, None of another text."""
    if cell.lower() in EMPTY:
        return float("nan")
    if NUMBER.fullmatch(cell):
        return float(cell.replace(",", "."))
    return YES_NO.get(cell.lower())


def _are_scores(cells: pd.Series) -> bool:
    """Tell whether most different cells are scores; one that is none is refused where it stands."""
    values = [_score(cell.strip()) for cell in cells.astype(str).unique()]
    given = [value for value in values if value is None or not isnan(value)]
    return sum(value is not None for value in given) > len(given) / 2


def _cluster(frame: pd.DataFrame, question: CheckQuestion) -> str:
    return question.cluster or next(
        (one for one in frame.columns if plain_words(one) in CLUSTER), ""
    )


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(short(one) for one in names[:MOST_NAMED]) + more
