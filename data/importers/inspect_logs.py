"""Finished runs of Inspect: what was asked, what the model answered, and what scorers said of it."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.importers.inspect_logs_files import read_log, wrong
from data.importers.inspect_logs_parts import OWN, Head, Message, Sample, Score, Spec, checked
from data.importers.rows import Origin, ResponseRow

VERSION = 2
SUFFIXES = (".eval", ".json")
ATTACHMENT = "attachment://"


@dataclass(frozen=True, slots=True)
class Scored:
    """A response as a row of the study, with what every scorer said of it."""

    row: ResponseRow
    scores: Mapping[str, Score]


@dataclass(frozen=True, slots=True)
class InspectLog:
    """A log that can be taken.

    Attributes
    ----------
    status
        success, error or cancelled: of the latter two only the samples that ended are there.
    left_out
        Reason -> samples that were not taken.
    notes
        Of what was taken: further references, input that is no text.
    rubric_sha256
        Of the rubric that our own scorer rated on; "" where it did not.
    """

    name: str
    benchmark: str
    spec: Spec
    status: str
    scored: tuple[Scored, ...]
    left_out: Mapping[str, int]
    notes: Mapping[str, int]
    rubric_sha256: str


def is_inspect(path: Path) -> bool:
    """Tell whether a path means to be a log, or a folder with logs in it, by the endings of names."""
    if path.is_dir():
        return any(path.glob("*.eval"))
    return path.suffix.lower() in SUFFIXES


def log_files(path: Path) -> list[Path]:
    """Return the logs that a path names: itself, or those in a folder, in the order of names.

    Raises
    ------
    BadFile
        If a folder has none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(one for one in path.iterdir() if one.suffix == ".eval")
    found = found or sorted(one for one in path.iterdir() if one.suffix == ".json")
    if not found:
        raise wrong(path, "no log of Inspect in it (*.eval, *.json)")
    return found


def read_inspect(path: Path, benchmark: str | None = None) -> InspectLog:
    """Read one log, its benchmark by the name of the task or another one.

    Raises
    ------
    BadFile
        If it is no log, of a version not known here, unfinished, or without anything to rate.
    """
    found, bodies = read_log(path)
    if found.get("version") != VERSION or isinstance(found.get("version"), bool):
        has = "version" in found and "eval" in found
        why = f"a log of another version than {VERSION}" if has else "no log of Inspect"
        raise wrong(path, f"{why}; write it anew with `inspect log convert`" if has else why)
    head = checked(path, "the head", found, Head)
    if head.status == "started":
        raise wrong(path, "the run has not ended; wait for it, or `inspect log recover`")
    if head.invalidated:
        raise wrong(path, "Inspect marks this log as invalidated")
    name = benchmark or head.eval.task
    taken, left_out, notes = [], Counter[str](), Counter[str]()
    for number, body in enumerate(bodies, start=1):
        sample = checked(path, f"sample {number}", body, Sample)
        if why := _why_not(sample):
            left_out[why] += 1
            continue
        row = _row(Origin(path.name, number), name, head.eval.model, sample)
        taken.append(Scored(row, sample.scores or {}))
        notes.update(_notes(sample))
    if not taken:
        told = ", ".join(f"{count} {why}" for why, count in left_out.items()) or "no samples"
        raise wrong(path, f"nothing to rate in it: {told} (status {head.status[:20]})")
    rubric = _rubric_sha256(path, taken)
    return InspectLog(
        path.name, name, head.eval, head.status, tuple(taken), left_out, notes, rubric
    )


def _why_not(sample: Sample) -> str:
    """Return why a sample cannot be rated, or ""."""
    own = sample.metadata.get(OWN)
    reasons = {
        "ended with an error": sample.error is not None,
        "invalidated": sample.invalidation is not None,
        "a study's own response, rated again": isinstance(own, dict) and bool(own.get("stored")),
        "empty question": not "".join(_asked(sample)).strip(),
        "empty response": not _text(sample, sample.output.text).strip(),
    }
    return next((why for why, holds in reasons.items() if holds), "")


def _notes(sample: Sample) -> dict[str, int]:
    """Count what of a sample is not in the study."""
    messages = sample.input if isinstance(sample.input, list) else []
    found = {
        "further reference": max(0, len(_targets(sample)) - 1),
        "input that is no text": int(any(one.pictures for one in messages)),
    }
    return {what: number for what, number in found.items() if number}


def _row(origin: Origin, benchmark: str, model: str, sample: Sample) -> ResponseRow:
    """Return an answer as a row; its id says nothing of the model."""
    context, prompt = _asked(sample)
    text = _text(sample, sample.output.text)
    epoch = [str(sample.epoch)] if sample.epoch > 1 else []
    digest = hashlib.sha256("\0".join([benchmark, sample.id, model, text, *epoch]).encode())
    own = sample.metadata.get(OWN)
    reference = (
        own.get("reference") if isinstance(own, dict) else next(iter(_targets(sample)), None)
    )
    return ResponseRow(
        origin=origin,
        instance_id=sample.id,
        benchmark=benchmark,
        context=context,
        prompt=prompt,
        reference=reference if isinstance(reference, str) else None,
        response_id="r" + digest.hexdigest()[:15],
        model=model,
        response=text,
    )


def _asked(sample: Sample) -> tuple[str, str]:
    """Return context and prompt: our own task's, else the whole input as context."""
    own = sample.metadata.get(OWN)
    if isinstance(own, dict):
        return str(own.get("context") or ""), str(own.get("prompt") or "")
    if isinstance(sample.input, str):
        return _text(sample, sample.input), ""
    turns: Sequence[Message] = sample.input
    if len(turns) == 1:
        return _text(sample, turns[0].text), ""
    return "\n\n".join(f"[{one.role}]\n{_text(sample, one.text)}" for one in turns), ""


def _targets(sample: Sample) -> list[str]:
    given = [sample.target] if isinstance(sample.target, str) else sample.target
    return [text for one in given if (text := _text(sample, one)).strip()]


def _text(sample: Sample, text: str) -> str:
    """Return a text; a long one may stand among the sample's attachments."""
    if not text.startswith(ATTACHMENT):
        return text
    return sample.attachments.get(text.removeprefix(ATTACHMENT), text)


def _rubric_sha256(path: Path, scored: Sequence[Scored]) -> str:
    """Return the hash of the one rubric our own scorer rated on, "" where it did not."""
    own = (score.own for one in scored for score in one.scores.values())
    found = {str(said.get("rubric_sha256")) for said in own if said}
    if len(found) > 1:
        raise wrong(path, "medjury's scorer rated on several rubrics in it: log each by itself")
    return next(iter(found), "")
