"""The right pane of the workbench: the scores of both sides, and what was written beside them."""

import html
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from annotate.rating import text_html
from annotate.screens.frame import NONE
from calibration.tables.numbers import MINUS
from data.card import Reading
from data.points import CANNOT_TELL, MET, NOT_MET
from data.rubric import Criterion
from data.schema import Kind
from data.study.compare import Compared, Opened
from data.study.readings import Reading as Opinion

WORDS = {
    "flag": "flagged",
    "not_enough_context": "not enough context",
    "names_author": "names its author",
}
WHOLE = "on the whole"
READINGS: dict[Reading, str] = {"third": "third reading", "consensus": "consensus reading"}
SIGNS: Mapping[float | None, str] = {MET: "yes", NOT_MET: "no", CANNOT_TELL: "cannot tell"}
SIDES = ((Kind.CLINICIAN, "Clinicians"), (Kind.JUROR, "Jury"))


def both_sides(row: Compared) -> str:
    """Return both sides' means and how far the jury is from the clinicians, in a sentence."""
    if row.difference is None:
        told = "The clinicians or the jury have no mean here, so they cannot be compared."
    elif row.difference:
        told = (
            f"The jury is {abs(row.difference):.2f} "
            f"{'higher' if row.difference > 0 else 'lower'}: clinicians {row.clinicians.mean:.2f} "
            f"({row.clinicians.scored}), jury {row.jury.mean:.2f} ({row.jury.scored} of {row.jury.of} "
            "jurors)."
        )
    else:
        told = f"Clinicians and jury agree on {row.clinicians.mean:.2f}."
    return text_html.heading("Scores") + f'<p class="mj-both" role="status">{told}</p>'


def scores(opened: Opened) -> str:
    """Return every reading and every verdict as a row by side, criteria as columns."""
    criteria = opened.rubric.criteria
    heads = "".join(
        f'<th scope="col"><span>{html.escape(name)}</span></th>' for name in (*criteria, "mean")
    )
    body = ""
    for kind, side in SIDES:
        rows = [_row(opinion, criteria) for opinion in opened.opinions if opinion.kind == kind]
        rows += _failed(opened) if kind == Kind.JUROR else []
        first = f'<tr class="mj-side"><th scope="rowgroup" colspan="{len(criteria) + 2}">{side}</th></tr>'
        none = f'<tr><td colspan="{len(criteria) + 2}">no score</td></tr>'
        body += f"<tbody>{first}{''.join(rows) or none}</tbody>"
    return (
        '<div class="mj-scrolls" tabindex="0" role="region" aria-label="Scores of this response">'
        '<table class="mj-scores"><caption class="mj-unseen">Scores of this response</caption>'
        f'<thead><tr><th scope="col">Rater</th>{heads}</tr></thead>{body}</table></div>'
    )


def points(opened: Opened) -> str:
    """Return the points of the case with each rater's answer; "" where there are none.

    It says where the jury's majority is not that of the clinicians.
    """
    if opened.case is None:
        return ""
    first = [one for one in opened.opinions if one.answers and not one.pass_ + one.replicate]
    heads = "".join(
        f'<th scope="col"><span>{html.escape(rater_name(one))}</span></th>' for one in first
    )
    body = "".join(
        f'<tr><th scope="row">{html.escape(criterion.question)}'
        f" <small>{', '.join(_told_of(criterion, first))}</small></th>"
        + "".join(f"<td>{SIGNS.get(one.answers.get(criterion.name), NONE)}</td>" for one in first)
        + "</tr>"
        for criterion in opened.case.criterion
    )
    return text_html.heading("Points of the case") + (
        '<div class="mj-scrolls" tabindex="0" role="region" aria-label="Points of the case">'
        '<table class="mj-scores"><caption class="mj-unseen">Does the response do it?</caption>'
        f'<thead><tr><th scope="col">Point</th>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _told_of(criterion: Criterion, opinions: Sequence[Opinion]) -> Iterator[str]:
    """Yield what a point counts, whether it is critical, and whether the sides differ on it."""
    if worth := criterion.worth:
        yield f"{MINUS if worth.kind == 'must_not' else '+'}{worth.weight:g}"
        if worth.critical:
            yield "critical"
    if _differs(criterion.name, opinions):
        yield "jury and clinicians differ"


def _differs(name: str, opinions: Sequence[Opinion]) -> bool:
    """Tell whether clinicians and jurors each have a majority on a point, and not the same one."""
    sides = []
    for kind in (Kind.CLINICIAN, Kind.JUROR):
        given = [one.answers[name] for one in opinions if one.kind == kind and name in one.answers]
        sides.append([answer for answer in (MET, NOT_MET) if 2 * given.count(answer) > len(given)])
    return all(sides) and sides[0] != sides[1]


def _row(opinion: Opinion, criteria: Sequence[str]) -> str:
    """Return one reading; its mean only where all criteria are scored."""
    points = [opinion.scores.get(name) for name in criteria]
    stated = [point for point in points if point is not None]
    is_whole = bool(stated) and len(stated) == len(criteria)
    mean = f"{sum(stated) / len(stated):.2f}" if is_whole else NONE
    flags = ", ".join(WORDS.get(kind, kind) for kind, _ in opinion.flags)
    cells = [NONE if point is None else f"{round(point, 2):g}" for point in points]
    return _cells(rater_name(opinion), flags, [*cells, mean])


def _failed(opened: Opened) -> list[str]:
    """Return a row for each juror whose calls brought no score, with how the last one ended."""
    scored = {one.handle for one in opened.opinions if one.scores or one.answers}
    ends = {call.juror: call.attempt.status for call in opened.calls if call.juror not in scored}
    cells = [NONE for _ in (*opened.rubric.criteria, "mean")]
    return [
        _cells(juror, status, cells) for juror, status in sorted(ends.items(), key=itemgetter(0))
    ]


def _cells(name: str, told: str, cells: Sequence[str]) -> str:
    small = f" <small>{html.escape(told)}</small>" if told else ""
    body = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{html.escape(name)}{small}</th>{body}</tr>'


def rater_name(opinion: Opinion) -> str:
    """Return a rater with what kind of reading it was."""
    parts = [opinion.handle]
    parts += [READINGS[opinion.reading]] if opinion.reading in READINGS else []
    parts += ["hidden repeat"] if opinion.pass_ and opinion.reading == "independent" else []
    parts += [f"verdict {opinion.replicate + 1}"] if opinion.replicate else []
    return ", ".join(parts + (["simulated"] if opinion.simulated else []))


def comments(opinions: Sequence[Opinion]) -> str:
    """Return what raters wrote, word for word; a comment on the whole stands once."""
    blocks = []
    for opinion in opinions:
        items = "".join(
            f"<dt>{html.escape(name)}</dt><dd>{html.escape(words)}</dd>"
            for name, words in _lines(opinion)
        )
        if items:
            kind = "juror's explanations" if opinion.kind == Kind.JUROR else "clinician's comments"
            blocks.append(
                f'<div class="mj-words"><h3>{html.escape(rater_name(opinion))} <small>{kind}</small></h3>'
                f"<dl>{items}</dl></div>"
            )
    if not blocks:
        return ""
    return (
        text_html.heading("Comments and explanations")
        + f'<div class="mj-all">{"".join(blocks)}</div>'
    )


def _lines(opinion: Opinion) -> Iterator[tuple[str, str]]:
    """Yield what a rater wrote, each text once, with what it is about.

    A text that stands at every criterion is one on the whole: imports copy it.
    A flag carries the comment that was submitted with it.
    """
    by_words: dict[str, list[str]] = {}
    for name, words in opinion.comments.items():
        by_words.setdefault(words, []).append(name)
    copied = [words for words, names in by_words.items() if names == [*opinion.scores] and words]
    is_copied = len(opinion.scores) > 1 and opinion.kind == Kind.CLINICIAN and not opinion.comment
    comment = opinion.comment or (copied[0] if copied and is_copied else "")
    if comment:
        yield WHOLE, comment
    for words, names in by_words.items():
        if words and not (is_copied and words == comment):
            yield ", ".join(names), words
    for kind, words in opinion.flags:
        if words and words != comment and words not in by_words:
            yield WORDS.get(kind, kind), words
