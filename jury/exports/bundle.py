"""The bundle: a rubric with its prompt, schema, panel and validation record, as JSON and Markdown."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data.rubric import Rubric
from data.rubrics.files import rubric_toml
from jury.exports.export import Export
from jury.panel import Panel

FORMAT, FORMAT_VERSION = "medjury-bundle", 1
JSON, PAGE = "bundle.json", "bundle.md"
LEAST_REPS = 1000  # with few, the bounds of an interval are luck
Body = Mapping[str, Any]
SIMULATED = "simulated raters can never validate a jury"


def write(export: Export) -> dict[str, str]:
    """Return the bundle's files; `rubric.toml` and `prompt.txt` are what `rubric add` reads."""
    body = bundle(export)
    return {JSON: json.dumps(body, indent=2, ensure_ascii=False) + "\n", **derived(body)}


def derived(body: Body) -> dict[str, str]:
    """Return the files of a bundle that follow from its JSON."""
    rubric = Rubric(**body["rubric"])
    return {PAGE: _page(body), "rubric.toml": rubric_toml(rubric), "prompt.txt": rubric.prompt}


def bundle(export: Export) -> dict[str, Any]:
    """Return the bundle as JSON values; its `sha256` is over everything else in it."""
    body = {"format": FORMAT, "format_version": FORMAT_VERSION} | told(export.rubric)
    body |= {
        "panel": {"name": export.panel.name, "jurors": seats(export.panel)},
        "validation": dict(export.record),
    }
    return body | {"sha256": digest(body)}


def told(rubric: Rubric) -> dict[str, Any]:
    """Return what a bundle says of its rubric: all of it, and what a juror is asked with."""
    return {
        "rubric": rubric.model_dump(mode="json"),
        "prompt": rubric.prompt,
        "criteria": rubric.criteria_text(),
        "form": rubric.schema_text(),
        "schema": rubric.json_schema(),
    }


def seats(panel: Panel) -> list[dict[str, Any]]:
    """Return the jurors by what decides their answers: no key, no name of one, no price."""
    return [{"name": one.name, "family": one.family} | one.profile() for one in panel.juror]


def digest(value: object) -> str:
    """Return the SHA-256 of JSON values in their canonical form."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def reasons(record: Body) -> list[str]:
    """Return every reason why a record is no validation; none: it is one.

    Parameters
    ----------
    record
        With `needed`, `evidence`, `figures` and the counts, as docs/exports.md has them.
    """
    evidence = record["evidence"]
    return [*_behind(evidence), *_made_up(evidence), *_too_few(record), *_too_low(record)]


def _behind(evidence: Body) -> Iterator[str]:
    if not evidence["benchmarks"]:
        yield "no benchmark of the study is rated on exactly this rubric"
    elif not evidence["clinicians"]:
        yield "no clinician has rated on exactly this rubric"
    if names := evidence["unheard_jurors"]:
        yield f"no rating on this rubric by {', '.join(names)}"
    if names := evidence["changed_jurors"]:
        yield f"rated with other settings than this panel's: {', '.join(names)}"
    if number := evidence["record_findings"]:
        yield f"the study's record was changed behind its back ({number} findings): `medjury verify`"


def _made_up(evidence: Body) -> Iterator[str]:
    if number := evidence["simulated_clinicians"]:
        yield f"simulated clinicians took part ({number}): {SIMULATED}"
    if names := evidence["simulated_jurors"]:
        yield f"simulated jurors ({', '.join(names)}): {SIMULATED}"
    if evidence["demo"]:
        yield "responses of the demo: they can never validate a jury"


def _too_few(record: Body) -> Iterator[str]:
    least = record["needed"]
    counts = {
        "responses": record["n_responses"],
        "instances": record["n_instances"],
        "clinicians": record["clinicians_per_response"],
    }
    for name, found in counts.items():
        if not found >= least[name]:
            what = f"{name} a response on average" if name == "clinicians" else name
            yield f"{found:g} {what}, {least[name]:g} are needed"


def _too_low(record: Body) -> Iterator[str]:
    if record["reps"] < LEAST_REPS:
        yield f"{record['reps']} resamples, {LEAST_REPS} are needed"
    least = record["needed"]
    for scorer, name, bound in (
        ("jury", "the jury's ICC(C,2)", least["icc"]),
        ("like_for_like", "like for like", least["like_for_like"]),
    ):
        low = figure(record, None, scorer).get("boot_low")
        if low is None:
            yield f"{name} has no interval"
        elif not low > bound:
            yield f"the lower bound of {name} is {low:.3f}, it must be above {bound:g}"


def figure(record: Body, criterion: str | None, scorer: str) -> Body:
    """Return a row of the figures, empty where there is none; no criterion is the composite."""
    rows: Sequence[Body] = record["figures"]
    wanted = (criterion, scorer)
    return next((row for row in rows if (row["criterion"], row["scorer"]) == wanted), {})


def _page(body: Body) -> str:
    """Return the bundle as Markdown; what is quoted stands in fences no text can close."""
    rubric, record = body["rubric"], body["validation"]
    lines = [
        f"# {rubric['name']}, version {rubric['version']}",
        "",
        f"For {rubric['audience']}. Scale {rubric['scale']['min']} to {rubric['scale']['max']}; "
        f"reference answer: {rubric['gold']}.",
        "",
        f"**{record['status'].upper()}**",
        "",
        *(f"- {reason}" for reason in record["reasons"]),
        *(f"- to know: {caveat}" for caveat in record["caveats"]),
        "",
        *_basis(record),
        *_figures(record["figures"]),
        *_panel(body["panel"]),
    ]
    for title, text in (
        ("Criteria", body["criteria"]),
        ("Prompt", body["prompt"]),
        ("Schema", json.dumps(body["schema"], indent=2, ensure_ascii=False)),
    ):
        lines += ["", f"## {title}", "", *_fenced(text)]
    return "\n".join(lines) + "\n"


def _basis(record: Body) -> list[str]:
    hashes = [f"| {name} | `{value}` |" for name, value in record["sha256"].items()]
    return [
        f"{record['n_responses']} responses of {record['n_instances']} instances, "
        f"{record['n_clinicians']} clinicians, {record['clinicians_per_response']:g} a response; "
        f"method {record['method']}, {record['reps']} resamples, seed {record['seed']}; "
        f"medjury {record['version']}, {record['made']}; juries tried: {record['juries_tried']}.",
        "",
        "| SHA-256 of | |",
        "| --- | --- |",
        *hashes,
        "",
    ]


def _figures(rows: Sequence[Body]) -> list[str]:
    head = ["## Agreement with the clinicians", ""]
    if not rows:
        return [*head, "None.", ""]
    head += ["| criterion | scorer | ICC(C,2) | 95 % bootstrap | responses |"]
    head += ["| --- | --- | ---: | ---: | ---: |"]
    return [*head, *(_row(row) for row in rows), "", "like_for_like is a difference of ICCs.", ""]


def _row(row: Body) -> str:
    icc = "undefined" if row["icc"] is None else f"{row['icc']:.3f}"
    ends = (row["boot_low"], row["boot_high"])
    between = "" if None in ends else f"{ends[0]:.3f} to {ends[1]:.3f}"
    name = row["criterion"] or "composite"
    return f"| {name} | {row['scorer']} | {icc} | {between} | {row['n_responses']} |"


def _panel(panel: Body) -> list[str]:
    rows = [
        f"| {one['name']} | {one['provider']} | {one['model']} | {one['temperature']} |"
        for one in panel["jurors"]
    ]
    head = [f"## Panel {panel['name']}", "", "| juror | provider | model | temperature |"]
    return [*head, "| --- | --- | --- | --- |", *rows]


def _fenced(text: str) -> list[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence, text, fence]
