"""MedHELM's file of clinicians' ratings: one row a reading, with the clinicians' usernames.

A username never leaves this module: ratings carry a pseudonym, the same for the same name as long as
the key is the same.
"""

import hmac
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from data.card import Kind
from data.importers.rows import Origin, RatingRow, filled
from data.importers.table import Cells, TableFile

CRITERIA = ("accuracy", "completeness", "clarity")
REQUIRED = ("username", "instance_id", "dataset_name", "model_key", *CRITERIA)
LLM = "llm_"
JURY_MEAN = "medhelm-jury-mean"
SIGNS = 12  # of a pseudonym, hexadecimal


class StudyResponse(NamedTuple):
    """A response of the study, to be found by a row of MedHELM's file."""

    response_id: str
    benchmark: str
    instance_id: str
    model: str


class MedhelmFile:
    """MedHELM's file of clinicians' ratings; iterating gives one `RatingRow` a score.

    Parameters
    ----------
    table
        The file.
    responses
        The responses of the study.
    key
        The study's secret, with which usernames become pseudonyms.
    jury_mean
        Take the llm_ columns too, as ratings by the juror "medhelm-jury-mean".

    Attributes
    ----------
    missing
        Empty scores of the rows that are taken.
    unmatched
        Numbers of the rows whose response is not in the study; they are left out.
    ignored
        Columns that are not taken.

    Raises
    ------
    BadFile
        If a column that is needed is missing; while iterating, if no row has its response here.
    BadRow
        While iterating, at the first row that is wrong. No username is in a message.
    """

    def __init__(
        self,
        table: TableFile,
        responses: Sequence[StudyResponse],
        key: str,
        jury_mean: bool = False,
    ) -> None:
        self.table, self.key, self.jury_mean = table, key, jury_mean
        self.missing, self.unmatched = 0, list[int]()
        required = columns_needed(table, jury_mean)
        self.ignored = tuple(name for name in table.columns if name and name not in required)
        self._known: dict[tuple[str, str, str], set[str]] = {}
        for name, benchmark, instance, model in responses:
            for dataset in (benchmark, benchmark.partition(",")[0]):
                for author in (model, model.rpartition("/")[2]):
                    key_of_row = plain_name(dataset), instance, plain_name(author)
                    self._known.setdefault(key_of_row, set()).add(name)

    def __iter__(self) -> Iterator[RatingRow]:
        self.missing, self.unmatched, taken = 0, [], 0
        means: dict[tuple[str, str], str] = {}
        for origin, cells in self.table:
            response = self._response(origin, cells)
            if response is None:
                self.unmatched.append(origin.row)
                continue
            taken += 1
            rater = pseudonym(self.key, filled(origin, cells, "username"))
            for name in CRITERIA:
                if score := cells.get(name, "").strip():
                    yield RatingRow(origin, response, rater, Kind.CLINICIAN, name, score)
                else:
                    self.missing += 1
            if self.jury_mean:
                yield from _jury_means(origin, cells, response, means)
        if not taken:
            raise self.table.wrong(
                "no row has its response in this study; import the responses first: their "
                "benchmark, instance_id and model are dataset_name, instance_id and model_key here"
            )

    def _response(self, origin: Origin, cells: Cells) -> str | None:
        """Return the response a row is about, None where the study has none."""
        dataset, model = (filled(origin, cells, name) for name in ("dataset_name", "model_key"))
        instance = filled(origin, cells, "instance_id")
        matches = self._known.get((plain_name(dataset), instance, plain_name(model)), set())
        if len(matches) > 1:
            why = "are meant by its dataset_name, instance_id and model_key; bring these ratings in"
            why = f"{len(matches)} responses of this study {why} by response_id (docs/setup.md)"
            raise origin.wrong("instance_id", instance, why)
        return next(iter(matches), None)


def columns_needed(table: TableFile, jury_mean: bool) -> tuple[str, ...]:
    """Return the columns that are read, or refuse a file that lacks one."""
    names = (*REQUIRED, *(LLM + name for name in CRITERIA if jury_mean))
    if absent := [name for name in names if name not in table.columns]:
        raise table.wrong(f"column {absent[0]!r} is missing; MedHELM's file has {', '.join(names)}")
    return names


def _jury_means(
    origin: Origin, cells: Cells, response: str, means: dict[tuple[str, str], str]
) -> Iterator[RatingRow]:
    """Yield the jury's mean of each response once, though every clinician's row repeats it."""
    for name in CRITERIA:
        score = cells.get(LLM + name, "").strip()
        before = means.get((response, name))
        if before not in (None, score):
            raise origin.wrong(LLM + name, "", "another score of the same response stands above")
        means[response, name] = score
        if before is None and score:
            yield RatingRow(origin, response, JURY_MEAN, Kind.JUROR, name, score)


def pseudonym(key: str, username: str) -> str:
    """Return the pseudonym of a username under a study's key; case and spacing do not matter."""
    name = " ".join(unicodedata.normalize("NFKC", username).casefold().split())
    digest = hmac.digest(key.encode(), b"medhelm clinician|" + name.encode(), "sha256")
    return "clinician-" + digest.hex()[:SIGNS]


def plain_name(name: str) -> str:
    """Return a name's letters and digits in lower case: HELM's folders change other characters."""
    return "".join(sign for sign in name.casefold() if sign.isalnum())
