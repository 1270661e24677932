"""Runs of a study's own exports on their way back: they rejoin study, benchmark, rubric and juror.

Only in the study that they come from. What a run says of a text is held against the study's own
before anything is taken; elsewhere such a run is one like all others, on a rubric known by its hash.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from sqlalchemy import Engine

from data.card import Card
from data.errors import BadInput
from data.importers.finished import ExportOrigin, InstanceTexts, ResponsePlace
from data.importers.helm import HelmRun, JudgedResponse
from data.importers.inspect_logs import AGAIN, InspectLog, ScoredResponse, nothing_in
from data.importers.rows import ResponseRow, made_id
from data.rubric import NO_CHECKLIST, Rubric, read_rubric, shipped
from data.rubrics.injection import disarm
from data.safe_text import short
from data.study.export import instance_texts, shown_responses
from data.study.rubrics import rubrics_known
from data.study.standing import study_id
from jury.exports.helm import question

OTHER_TEXT = "a study's own response, which reads otherwise now"
Texts = dict[tuple[str, str], InstanceTexts]
A = TypeVar("A", JudgedResponse, ScoredResponse)


def known_rubric(engine: Engine, sha256: str, origin: ExportOrigin | None) -> Rubric | None:
    """Return the rubric with a hash: the study's, one that ships, or the one that came along."""
    by_hash = {rubric.sha256: rubric for rubric in rubrics_of(engine)}
    return by_hash.get(sha256) or (origin.rubric() if origin else None)


def shipped_rubrics() -> list[Rubric]:
    """Return the rubrics that ship with medjury."""
    return [read_rubric(name) for name in shipped()]


def rubrics_of(engine: Engine) -> list[Rubric]:
    """Return every rubric that is known here: the study's, then those that ship."""
    return [*rubrics_known(engine).values(), *shipped_rubrics()]


def rubric_of_prompt(rubrics: Iterable[Rubric], run: HelmRun) -> Rubric | None:
    """Return the rubric whose prompt and criteria are those of a run's jurors, None if none is."""
    asked_with = (
        rubric
        for rubric in rubrics
        if set(rubric.criteria) == set(run.criteria)
        and (rubric.prompt == run.prompt or run.held_against(rubric.prompt))
    )
    return next(asked_with, None)


def is_at_home(engine: Engine, origin: ExportOrigin | None) -> bool:
    """Tell whether a run comes of an export of this study."""
    return origin is not None and origin.study != "" and origin.study == study_id(engine)


def rejoined_log(engine: Engine, log: InspectLog) -> InspectLog:
    """Return a log of our own task with the study's instances, benchmarks and responses in it.

    Raises
    ------
    BadInput
        If it speaks of an instance that reads otherwise in the study, or of none.
    BadFile
        If it has nothing but responses that this study cannot take.
    """
    if not is_at_home(engine, log.origin):
        return apart(log)
    again = log.again
    places = [answer.place for answer in (*log.scored, *again) if answer.place]
    texts = instance_texts(engine, (place.benchmark for place in places))
    shown = shown_responses(engine, (place.benchmark for place in places))
    new = [_at_home(log.name, answer, texts, apart=True) for answer in log.scored]
    repeated = [
        replace(answer, row=replace(answer.row, response_id=answer.place.response_id))
        for answer in again
        if answer.place and answer.place.response_id and _is_shown(answer.place, answer.row, shown)
    ]
    other = len(again) - len(repeated)
    left_out = dict(log.left_out) | ({OTHER_TEXT: other} if other else {})
    if not new and not repeated:
        raise nothing_in(log.name, log.status, left_out)
    return replace(
        log,
        scored=(*new, *repeated),
        again=(),
        left_out=left_out,
        kept=frozenset(answer.row.response_id for answer in repeated),
        benchmark=_named(answer.row for answer in new) or log.benchmark,
    )


def apart(log: InspectLog) -> InspectLog:
    """Return a log as one of no study's: its answers stay under the names that Inspect has for them.

    Raises
    ------
    BadFile
        If it has nothing but a study's own responses, rated again.
    """
    left_out = dict(log.left_out) | ({AGAIN: len(log.again)} if log.again else {})
    if not log.scored:
        raise nothing_in(log.name, log.status, left_out)
    return replace(log, again=(), left_out=left_out)


def _is_shown(
    place: ResponsePlace, row: ResponseRow, shown: dict[str, tuple[tuple[str, str], str]]
) -> bool:
    """Tell whether a response of the study has the place and the text that a run rated again."""
    own = shown.get(place.response_id or "")
    return own == ((place.benchmark, place.instance_id), row.response)


def _at_home(run: str, answer: A, texts: Texts, *, apart: bool) -> A:
    """Return an answer with its instance as the study has it; `apart`, if the run tells both its texts.

    A reference may be one that the rubric keeps from raters, and so from the run.
    """
    place, row = answer.place, answer.row
    if place is None:
        return answer
    instance = texts.get((place.benchmark, place.instance_id))
    same = instance is not None and (row.context, row.prompt) == (instance.context, instance.prompt)
    if instance is None or (apart and not same):
        why = "is not in the study" if instance is None else "reads otherwise in the study"
        raise BadInput(
            f"{short(run)}: instance {short(place.instance_id)} of {short(place.benchmark)} {why}, "
            "although the run comes of an export of it; export anew; nothing was imported"
        )
    own = made_id(place.benchmark, place.instance_id, row.response, row.response_id)
    row = replace(
        row,
        benchmark=place.benchmark,
        instance_id=place.instance_id,
        response_id=own,
        **asdict(instance),
    )
    return replace(answer, row=row)


def rejoined_run(engine: Engine, run: HelmRun, rubric: Rubric) -> HelmRun:
    """Return a run of our own plugin with the study's instances and benchmarks in it.

    Raises
    ------
    BadInput
        If jurors were sent another prompt than the rubric's, or an instance reads otherwise.
    """
    home = is_at_home(engine, run.origin) and run.benchmark == run.own_name
    places = [answer.place for answer in run.judged if answer.place]
    texts = instance_texts(engine, (place.benchmark for place in places)) if home else {}
    judged = list(run.judged)
    if home:
        judged = [_at_home(run.name, answer, texts, apart=False) for answer in judged]
    for before, after in zip(run.judged, judged, strict=True):
        if not _is_asked(run, rubric, before, after):
            raise BadInput(
                f"{run.name}: {before.row.origin}: its jurors were sent another prompt than that "
                f"of rubric {rubric.name}, although the run says so; nothing was imported"
            )
    named = _named(answer.row for answer in judged) if home else run.benchmark
    return replace(
        run, judged=tuple(judged), prompt=rubric.prompt, checked=len(judged), benchmark=named
    )


def _is_asked(run: HelmRun, rubric: Rubric, before: JudgedResponse, after: JudgedResponse) -> bool:
    """Tell whether jurors were sent the rubric's prompt about an answer, to the last character."""
    row = after.row
    if after is not before:
        gold = None if rubric.gold == "never" else row.reference
        card = Card("", row.context, row.prompt, row.response, gold, row.checklist)
        return before.sent == rubric.render(card)
    plugin = question(rubric)
    template = plugin.judge.removesuffix(plugin.added).replace("$$", "$")
    parts = {
        "{QUESTION}": row.context,
        "{RESPONSE}": disarm(row.response, rubric.prompt),
        "{GOLD_RESPONSE}": before.gold,
    }
    sent = re.compile(_filled(template, parts), re.DOTALL)
    return run.template == template and sent.fullmatch(before.sent or "") is not None


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Return a pattern of the filled template; a checklist may be another study's, and unknown."""
    marks = re.compile("|".join(map(re.escape, [*parts, NO_CHECKLIST])))
    pieces, end = [], 0
    for mark in marks.finditer(template):
        pieces.append(re.escape(template[end : mark.start()]))
        pieces.append(re.escape(parts[mark[0]]) if mark[0] in parts else ".*")
        end = mark.end()
    return "".join([*pieces, re.escape(template[end:])])


def _named(rows: Iterable[ResponseRow]) -> str:
    """Return the benchmarks of rows in words."""
    names: Sequence[str] = list(dict.fromkeys(row.benchmark for row in rows))
    return ", ".join(names)
