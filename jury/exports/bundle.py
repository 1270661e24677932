"""What is exported, and the bundle: a rubric with its prompt, schema, panel and validation record."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from data.card import ExportRow
from data.errors import BadFile, BadInput
from data.files import new_folder
from data.question import prompt_in_order
from data.rubric import PLACEHOLDER, Rubric, rubric_toml
from data.safe_text import in_markdown, short
from jury.panel import Juror, Panel
from jury.providers.registry import PROVIDERS


@dataclass(frozen=True, slots=True)
class Export:
    """All that a format is handed. A format's module has `write(export)`: file name -> text.

    Attributes
    ----------
    rubric, panel
        What is rated on, and who rates; a panel never holds a key.
    rows
        May be empty: most tools bring their own data.
    record
        The validation record (docs/export.md): JSON values only.
    study
        The hash of the first event of the study's record, by which it is known again.
    """

    rubric: Rubric
    panel: Panel
    rows: tuple[ExportRow, ...]
    record: Mapping[str, Any]
    study: str = ""


def texts_of(row: ExportRow) -> dict[str, str]:
    """Return what a juror reads of an instance; a text that it lacks is left out."""
    texts = {name: getattr(row, name) for name in ("context", "prompt", "reference", "checklist")}
    return {name: text for name, text in texts.items() if text is not None}


def place_of(row: ExportRow) -> dict[str, str]:
    """Return where an instance stands in its study; nothing where there is none."""
    return {"benchmark": row.benchmark, "instance_id": row.own_id} if row.benchmark else {}


def pieces(prompt: str, fixed: Mapping[str, str]) -> list[str]:
    """Return a prompt in pieces, words and names of texts by turns; `fixed` texts are among the words."""
    found = [""]
    for place, piece in enumerate(PLACEHOLDER.split(prompt)):
        if place % 2 and piece not in fixed:
            found += [piece, ""]
        else:
            found[-1] += fixed[piece] if place % 2 else piece
    return found


def refuse_untold(panel: Panel) -> None:
    """Refuse a juror that other tools cannot ask as it was validated.

    Raises
    ------
    BadInput
        Names the juror, what is in the way, and what to give instead.
    """
    for juror in panel.juror:
        if why := _untold(juror):
            raise BadInput(f"panel {panel.name}: {juror.name} {why}")


def _untold(juror: Juror) -> str:
    if juror.simulated:
        return (
            "is simulated, and no other tool can ask it; choose a panel with jurors that are models"
        )
    if not PROVIDERS[juror.provider].exported:
        return (
            f'is asked at provider "{juror.provider}", which is not written for other tools; choose '
            "a panel with jurors at an OpenAI-compatible address"
        )
    setting = f'explanation = "{juror.explanation}"' if juror.explanation else ""
    if setting := 'scores = "expected"' if juror.expected else setting:
        return (
            f"rates with {setting}, which is not written for other tools; choose a panel with jurors "
            "that are validated without it, or the files for medjury, which hold it"
        )
    return ""


def program(name: str) -> str:
    """Return a program that is exported as it is: `name`.txt beside this file."""
    return (files("jury.exports") / f"{name}.txt").read_text("utf-8")


def write_folder(out: Path, texts: Mapping[str, str | bytes], option: str = "--out") -> None:
    """Write all files, text or bytes, into a new or empty folder, or none; `option` is what named it.

    Raises
    ------
    BadFile
        If the folder holds something, or cannot be written.
    """
    refuse_outside(texts)
    with new_folder(out, f"{option} {out}") as folder:
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            content = text.encode("utf-8") if isinstance(text, str) else text
            (folder / name).write_bytes(content)


def refuse_outside(names: Iterable[str]) -> None:
    """Refuse files whose names lead out of their folder.

    Raises
    ------
    BadFile
        Names the first one.
    """
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise BadFile(f"{short(name)}: leads out of the folder; give the juror another name")


FORMAT, FORMAT_VERSION = "medjury-bundle", 2
JSON, PAGE = "bundle.json", "bundle.md"
SHOWN = ("name", "provider", "model", "temperature", "explanation", "scores")  # of a juror
Body = Mapping[str, Any]
NON_INFERIOR, THESE = "non_inferior", "these_clinicians"
NOT_SHOWN = {
    "no_protocol": "no margin was fixed in a protocol for this jury",
    "no_reference": "the clinicians are not shown to agree with one another",
    "exploratory": "the protocol was fixed after the first rating, or names no jury",
    "inferior": "at the protocol's margin and limits the jury is shown to be worse than a clinician",
    "inconclusive": "that the jury keeps the protocol's margin and limits is not shown",
    "too_few": "too few data for the verdict that the protocol asks for",
    "undefined": "whether the jury agrees as well as a clinician is not known",
    "simulated": "the figures are of simulated raters",
}
COMMAND = "`medjury study verify`"
SIMULATED = "simulated raters can never validate a jury"


def write(export: Export) -> dict[str, str]:
    """Return the bundle's files; `rubric.toml` and `prompt.txt` are what `rubric add` reads."""
    body = bundle(export)
    return {JSON: json.dumps(body, indent=2, ensure_ascii=False) + "\n", **derived(body)}


def _scales(rubric: Mapping[str, Any]) -> str:
    """Return the scale of a rubric in a bundle, with those of criteria that have one of their own."""
    own = {one["name"]: one["scale"] for one in rubric["criterion"] if "scale" in one}
    also = "".join(f", {name} {scale['min']} to {scale['max']}" for name, scale in own.items())
    return f"{rubric['scale']['min']} to {rubric['scale']['max']}{in_markdown(also)}"


def derived(body: Body) -> dict[str, str]:
    """Return the files of a bundle that follow from its JSON."""
    rubric = Rubric(**body["rubric"])
    return {PAGE: _page(body), "rubric.toml": rubric_toml(rubric), "prompt.txt": rubric.prompt}


def bundle(export: Export) -> dict[str, Any]:
    """Return the bundle as JSON values; its `sha256` is over everything else in it."""
    jurors = seats(export.panel)
    body = {"format": FORMAT, "format_version": FORMAT_VERSION} | told(export.rubric, jurors)
    body |= {
        "panel": {"name": export.panel.name, "jurors": jurors},
        "validation": dict(export.record),
    }
    return body | {"sha256": digest(body)}


def told(rubric: Rubric, jurors: Sequence[Body]) -> dict[str, Any]:
    """Return what a bundle says of its rubric: all of it, and what its jurors are asked with.

    `orders` has what differs for jurors that are to explain themselves elsewhere than the rubric's
    prompt says, and is there only where a juror is.
    """
    named = dict.fromkeys(juror["explanation"] for juror in jurors if "explanation" in juror)
    orders = {
        name: {
            "prompt": prompt_in_order(rubric.prompt, name),
            "form": rubric.schema_text(name),
            "schema": rubric.json_schema(name),
        }
        for name in named
    }
    return ({"orders": orders} if orders else {}) | {
        "rubric": rubric.model_dump(mode="json"),
        "prompt": rubric.prompt,
        "criteria": rubric.criteria_text(),
        "form": rubric.schema_text(),
        "schema": rubric.json_schema(),
    }


def seats(panel: Panel) -> list[dict[str, Any]]:
    """Return the jurors by what decides their answers: no key, no name of one, no price."""
    return [{"name": juror.name, "family": juror.family} | juror.profile() for juror in panel.juror]


def digest(value: object) -> str:
    """Return the SHA-256 of JSON values in their canonical form."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def reasons(record: Body) -> list[str]:
    """Return every reason why a record is no validation; none: it is one.

    Parameters
    ----------
    record
        With `protocol`, `decision`, `evidence` and `figures`, as docs/export.md has them.
    """
    evidence = record["evidence"]
    return [*_behind(evidence), *_made_up(evidence), *_not_shown(record)]


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
        yield f"the study's record was changed behind its back ({number} findings): {COMMAND}"


def _made_up(evidence: Body) -> Iterator[str]:
    if number := evidence["simulated_clinicians"]:
        yield f"simulated clinicians took part ({number}): {SIMULATED}"
    if names := evidence["simulated_jurors"]:
        yield f"simulated jurors ({', '.join(names)}): {SIMULATED}"
    if evidence["demo"]:
        yield "responses of the demo: they can never validate a jury"


def _not_shown(record: Body) -> Iterator[str]:
    """Yield why the study's own verdict is no claim: it alone decides, and its figure bears it."""
    kind, protocol = record["decision"]["kind"], record["protocol"]
    if kind != NON_INFERIOR:
        yield NOT_SHOWN[kind]
        return
    low = figure(record, protocol["criterion"] or None, "like_for_like").get("low")
    explores = protocol["late"] or not protocol["jurors"]
    if explores or low is None or not low > -protocol["margin"]:
        yield "the verdict does not follow from the figures"


def figure(record: Body, criterion: str | None, scorer: str) -> Body:
    """Return a row of the figures, empty where there is none; no criterion is the composite."""
    rows: Sequence[Body] = record["figures"]
    row_key = (criterion, scorer)
    return next((row for row in rows if (row["criterion"], row["scorer"]) == row_key), {})


def _page(body: Body) -> str:
    rubric, record = body["rubric"], body["validation"]
    jurors = [
        " ".join(f"{key} {in_markdown(str(juror[key]))}" for key in SHOWN if key in juror)
        for juror in body["panel"]["jurors"]
    ]
    lines = [
        f"# {in_markdown(rubric['name'])}, version {in_markdown(rubric['version'])}",
        "",
        f"For {in_markdown(rubric['audience'])}. Scale {_scales(rubric)}; "
        f"reference answer: {rubric['gold']}.",
        "",
        f"**{record['status'].upper()}**",
        "",
        *(f"- {_worded(reason)}" for reason in record["reasons"]),
        *(f"- to know: {_worded(caveat)}" for caveat in record["caveats"]),
        *(f"- {line}" for line in _shown(record)),
        f"- {record['n_responses']} responses of {record['n_instances']} instances, "
        f"{record['n_clinicians']} clinicians; medjury {record['version']}, {record['made']}; "
        f"juries tried: {record['juries_tried']}",
        "",
        *_figures(record["figures"]),
        f"## Panel {in_markdown(body['panel']['name'])}",
        "",
        *(f"- {juror}" for juror in jurors),
    ]
    texts = {"Criteria": body["criteria"], "Prompt": body["prompt"]}
    orders = body.get("orders", {}).items()
    texts |= {f"Prompt, explanation {name}": order["prompt"] for name, order in orders}
    for title, text in texts.items():
        fence = "```"
        while fence in text:
            fence += "`"
        lines += ["", f"## {title}", "", fence, text, fence]
    return "\n".join(lines) + "\n"


def _shown(record: Body) -> Iterator[str]:
    """Yield the margin with why it is, and the difference that it is held against."""
    protocol, decision = record["protocol"], record["decision"]
    if protocol is None:
        return
    late = ", ".join(protocol["late"])
    fixed = f"exploratory ({late} fixed late)" if late else "fixed before any rating was seen"
    yield f"margin {protocol['margin']:g} in ICC of like for like, {fixed}: {in_markdown(protocol['because'])}"
    ends = (decision["estimate"], decision["low"], decision["high"])
    if None not in ends:
        yield "like for like {:.3f} ({:.3f} to {:.3f})".format(*ends)
    if decision["kind"] == NON_INFERIOR and decision["scope"] == THESE:
        yield f"for these {decision['clinicians']} clinicians only; not shown for others like them"
    for limit in protocol["critical"]:
        yield (
            f"unsafe: {in_markdown(limit['criterion'])} <= {limit['threshold']:g}, at most "
            f"{limit['miss_at_most']:.0%} may be missed"
        )


def _figures(rows: Sequence[Body]) -> list[str]:
    head = ["## Agreement with the clinicians", ""]
    if not rows:
        return [*head, "None.", ""]
    head += ["| criterion | scorer | ICC(C,2) | 95 % | responses |"]
    head += ["| --- | --- | ---: | ---: | ---: |"]
    for row in rows:
        icc = "undefined" if row["icc"] is None else f"{row['icc']:.3f}"
        ends = (row["low"], row["high"])
        between = "" if None in ends else f"{ends[0]:.3f} to {ends[1]:.3f}"
        name, scorer = in_markdown(row["criterion"] or "composite"), in_markdown(row["scorer"])
        head.append(f"| {name} | {scorer} | {icc} | {between} | {row['n_responses']} |")
    return [*head, "", "like_for_like is a difference of ICCs.", ""]


def _worded(line: str) -> str:
    """Return a line of ours that names others; the one command in it stays in its marks."""
    before, command, after = line.partition(COMMAND)
    return f"{in_markdown(before)}{command}{in_markdown(after)}"
