"""MedHELM's file of clinicians' ratings: one row a reading, with the clinicians' usernames.

A username never leaves this module: ratings carry a pseudonym, the same for the same name as long as
the key is the same.
"""

import hmac
import unicodedata
from collections.abc import Iterable, Iterator

from data.importers.ratings import LONG
from data.importers.ratings import REQUIRED as OF_RATINGS
from data.importers.rows import Origin, filled
from data.importers.table import Cells, TableFile

CRITERIA = ("accuracy", "completeness", "clarity")
REQUIRED = ("username", "instance_id", "dataset_name", "model_key", *CRITERIA)
LLM = "llm_"
JURY_MEAN = "medhelm-jury-mean"
SIGNS = 12  # of a pseudonym, hexadecimal


def medhelm_rows(
    table: TableFile,
    responses: Iterable[tuple[str, str, str, str]],
    key: str,
    jury_mean: bool = False,
) -> tuple[TableFile, list[int]]:
    """Return MedHELM's file as a file of ratings, a row a score, and which of its rows are left out.

    Parameters
    ----------
    responses
        Those of the study: response_id, benchmark, instance and model of each.
    key
        The study's secret, with which usernames become pseudonyms.
    jury_mean
        Take the llm_ columns too, as ratings by the juror "medhelm-jury-mean".

    Returns
    -------
    The rows; and, as they are read, the numbers of those whose response is not in the study.

    Raises
    ------
    BadFile
        If a column that is needed is missing; while iterating, if no row has its response here.
    BadRow
        While iterating, at the first row that is wrong. No username is in a message.
    """
    columns_needed(table, jury_mean)
    known: dict[tuple[str, str, str], set[str]] = {}
    for name, benchmark, instance, model in responses:
        for dataset in (benchmark, benchmark.partition(",")[0]):
            for author in (model, model.rpartition("/")[2]):
                known.setdefault((plain_name(dataset), instance, plain_name(author)), set()).add(
                    name
                )
    unmatched: list[int] = []

    def rows() -> Iterator[tuple[Origin, Cells]]:
        unmatched.clear()
        any_taken, means = False, dict[tuple[str, str], str]()
        for origin, cells in table:
            dataset, model = (filled(origin, cells, name) for name in ("dataset_name", "model_key"))
            instance = filled(origin, cells, "instance_id")
            matches = known.get((plain_name(dataset), instance, plain_name(model)), set())
            if len(matches) > 1:
                why = f"{len(matches)} responses of this study are meant by its dataset_name, instance_id"
                why += " and model_key; bring these ratings in by response_id (docs/setup.md)"
                raise origin.wrong("instance_id", instance, why)
            for response in matches:
                any_taken = True
                rater = pseudonym(key, filled(origin, cells, "username"))
                who = {"response_id": response, "rater": rater, "kind": "clinician"}
                for name in CRITERIA:
                    yield origin, who | {"criterion": name, "score": cells.get(name, "")}
                if jury_mean:
                    yield from _jury_means(origin, cells, response, means)
            if not matches:
                unmatched.append(origin.row)
        if not any_taken:
            raise table.wrong(
                "no row has its response in this study; import the responses first: their "
                "benchmark, instance_id and model are dataset_name, instance_id and model_key here"
            )

    return table.derived((*OF_RATINGS, *LONG), rows), unmatched


def columns_needed(table: TableFile, jury_mean: bool) -> tuple[str, ...]:
    """Return the columns that are read, or refuse a file that lacks one."""
    names = (*REQUIRED, *(LLM + name for name in CRITERIA if jury_mean))
    if absent := [name for name in names if name not in table.columns]:
        raise table.wrong(f"column {absent[0]!r} is missing; MedHELM's file has {', '.join(names)}")
    return names


def _jury_means(
    origin: Origin, cells: Cells, response: str, means: dict[tuple[str, str], str]
) -> Iterator[tuple[Origin, Cells]]:
    """Yield the jury's mean of each response once, though every clinician's row repeats it."""
    who = {"response_id": response, "rater": JURY_MEAN, "kind": "juror"}
    for name in CRITERIA:
        score = cells.get(LLM + name, "").strip()
        before = means.get((response, name))
        if before not in (None, score):
            raise origin.wrong(LLM + name, "", "another score of the same response stands above")
        means[response, name] = score
        if before is None and score:
            yield origin, who | {"criterion": name, "score": score}


def pseudonym(key: str, username: str) -> str:
    """Return the pseudonym of a username under a study's key; case and spacing do not matter."""
    name = " ".join(unicodedata.normalize("NFKC", username).casefold().split())
    digest = hmac.digest(key.encode(), b"medhelm clinician|" + name.encode(), "sha256")
    return "clinician-" + digest.hex()[:SIGNS]


def plain_name(name: str) -> str:
    """Return a name's letters and digits in lower case: HELM's folders change other characters."""
    return "".join(sign for sign in name.casefold() if sign.isalnum())
