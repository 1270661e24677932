"""`medjury ratings FILE --format medhelm`: MedHELM's clinicians, under pseudonyms."""

from itertools import groupby

from sqlalchemy import Engine

from data.importers.medhelm_ratings import Known, MedhelmFile, needed
from data.importers.table import TableFile
from data.queries.frames import responses_frame
from data.queries.models import authors
from data.store.access import pseudonym_key
from medjury.cli.output import counted, say


def medhelm_file(engine: Engine, table: TableFile, jury_mean: bool) -> MedhelmFile:
    """Return a file of MedHELM's layout as rows of ratings of this study.

    Usernames become pseudonyms by the study's own secret, which no export holds.
    """
    needed(table, jury_mean)  # before the secret is made: a file of another layout changes nothing
    wrote = authors(engine)
    frame = responses_frame(engine)
    columns = (frame[name] for name in ("response_id", "benchmark", "instance_id"))
    known = [
        Known(response, benchmark, instance.removeprefix(f"{benchmark}/"), wrote[response])
        for response, benchmark, instance in zip(*columns, strict=True)
        if response in wrote
    ]
    return MedhelmFile(table, known, pseudonym_key(engine), jury_mean)


def say_left(rows: MedhelmFile) -> None:
    """Tell what of a file was not taken."""
    say("usernames were replaced by pseudonyms, and are not in the study")
    if rows.unmatched:
        say(
            f"left out, as their response is not in the study: {counted(len(rows.unmatched), 'row')} "
            f"({_ranges(rows.unmatched)})"
        )
    if rows.ignored:
        say(f"columns not taken: {', '.join(rows.ignored)}")


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers with runs of them shortened: 2-5, 9."""
    runs = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        own = [number for _, number in run]
        runs.append(str(own[0]) if len(own) == 1 else f"{own[0]}-{own[-1]}")
    return ", ".join(runs)
