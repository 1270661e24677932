"""Names of models and planted verdicts in responses: found, and masked in what raters are shown.

The stored text never changes, and nobody is told which model wrote which response.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading, transaction
from data.errors import BadInput, Unknown
from data.person import asking
from data.record import log, new_salt, refuse_locked
from data.rubrics.injection import holds_verdict
from data.schema import (
    Assignment,
    Attempt,
    Instance,
    Kind,
    Mask,
    Pair,
    Rater,
    Rating,
    Response,
    Role,
    Setting,
    State,
    Status,
)
from data.study.authors import author_names
from data.study.base import FOR_STUDY, card, columns_of, in_pages, shown
from data.study.standing import benchmarks
from data.study.verify import acts

MASKED, LEFT = "authors masked", "possible names left"
LOOKED = "searched for authors"
SHOWN = "names in responses shown"
SEARCHED = "searched_for_authors"


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A response (primary key) as raters shall see it, and the places that are masked.

    `places` are (start, end, text) in characters of the stored text.
    """

    response: int
    shown: str
    places: Sequence[tuple[int, int, str]]


def mask_responses(
    engine: Engine, masked: Iterable[MaskedText], searched: int | None = None
) -> tuple[int, int]:
    """Mask responses that nobody has begun to rate; return how many were, and were not.

    What somebody has rated or opened stays as they saw it. Masks are only ever added.

    Parameters
    ----------
    searched
        The primary key up to which responses have been searched for what betrays an
        author; kept, so that a search that was cut short goes on where it ended.
    """
    masked_here = skipped = 0
    with transaction(engine) as session:
        refuse_locked(session)
        for masked_text in masked:
            response = session.get_one(Response, masked_text.response)
            if response.shown == masked_text.shown or _is_rated_or_opened(
                session, masked_text.response
            ):
                skipped += 1
                continue
            masks = session.exec(select(Mask).where(Mask.response == response.id))
            stored = {(mask.start, mask.end, mask.text) for mask in masks}
            response.shown = masked_text.shown
            session.add_all(
                Mask(
                    response=masked_text.response, start=start, end=end, text=text, salt=new_salt()
                )
                for start, end, text in masked_text.places
                if (start, end, text) not in stored
            )
            masked_here += 1
        if searched is not None:
            session.merge(Setting(key=SEARCHED, value=str(searched)))
        if masked_here:
            log(session, "coordinator", MASKED, {"responses": masked_here})
        elif searched is not None:
            log(session, "coordinator", LOOKED, {"searched": searched})
    return masked_here, skipped


@dataclass(frozen=True, slots=True)
class LeftNames:
    """What may name an author and was looked at: it betrays nobody.

    Attributes
    ----------
    responses
        All that is found in these responses (response_id), now and later.
    places
        Single finds: response_id and where they start, in characters of the stored text.
    words
        The same words wherever they stand, in any response and in small letters or large.
    """

    responses: frozenset[str] = frozenset()
    places: frozenset[tuple[str, int]] = frozenset()
    words: frozenset[str] = frozenset()

    def covers(self, response_id: str, start: int, text: str) -> bool:
        """Tell whether a find was left as it is."""
        return (
            response_id in self.responses
            or (response_id, start) in self.places
            or text.casefold() in self.words
        )


def leave_names(engine: Engine, left: LeftNames) -> None:
    """Record that possible names were looked at and betray nobody.

    Raises
    ------
    Unknown
        If a response is not in the study.
    BadInput
        If nothing is named.
    """
    if not (left.responses or left.places or left.words):
        raise BadInput("name the responses, places or words that betray nobody")
    named = left.responses | {response_id for response_id, _ in left.places}
    if unknown := named - known_response_ids(engine, named):
        raise Unknown(f"no response {', '.join(sorted(unknown))} in this study")
    with transaction(engine) as session:
        refuse_locked(session)
        detail: dict[str, list[object]] = {"responses": [*sorted(left.responses)]}
        if left.places:
            detail["places"] = [[response_id, start] for response_id, start in sorted(left.places)]
        if left.words:
            detail["words"] = [*sorted(word.casefold() for word in left.words)]
        log(session, "coordinator", LEFT, detail)


def record_names_shown(engine: Engine, who: str, places: int, responses: int) -> None:
    """Record that somebody is about to read what in responses names, or may name, an author.

    Raises
    ------
    NotAllowed
        If the study is locked: what is read for its masks could change nothing.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        log(session, who, SHOWN, {"places": places, "responses": responses})


def _is_rated_or_opened(session: Session, response: int) -> bool:
    """Tell whether any rater has rated or opened a response, or a pair with it, as this study shows it.

    A juror that rated it elsewhere, in a finished run that was imported, never saw it here: a
    mask changes nothing for it, and without one clinicians would read who wrote the response.
    """
    asked_here = (
        select(Attempt.id)
        .where(
            Attempt.response == response,
            col(Attempt.rater) == col(Rating.rater),
            col(Attempt.status) == Status.OK,
        )
        .exists()
    )
    shown_in = select(Pair.response).where((Pair.first == response) | (Pair.second == response))
    shown_with = [response, *session.exec(shown_in)]
    rated = select(Rating.id).join(Rater).where(col(Rating.response).in_(shown_with))
    rated = rated.where((col(Rater.kind) != Kind.JUROR) | asked_here)
    begun = select(Assignment.id).where(col(Assignment.response).in_(shown_with))
    begun = begun.where(
        (col(Assignment.state) != State.OPEN) | col(Assignment.opened_at).is_not(None)
    )
    return any(session.exec(query.limit(1)).first() is not None for query in (rated, begun))


# Return the study's models, which no response may name.
names_to_mask = asking(author_names, Role.COORDINATOR)

PAGE = 400
PLANTED_PAGE = 200
TextPlace = tuple[int, int, str]  # start and end in characters, and the text that is shown there


@dataclass(frozen=True, slots=True)
class Planted:
    """What stands in a response, or in what it is shown with, on the rubric of its benchmark.

    Attributes
    ----------
    verdict
        Whether the response gives points to criteria by name, as a verdict does.
    tags_broken_in
        Parts ("response", "context", "prompt", "reference", "checklist") that hold tags of the
        prompt itself, which are broken in what jurors are sent. Innocent or not, nobody can tell.
    """

    benchmark: str
    response_id: str
    verdict: bool
    tags_broken_in: tuple[str, ...]


def planted_texts(engine: Engine) -> list[Planted]:
    """Return the responses of the study that hold either; none of training."""
    found = []
    for benchmark in benchmarks(engine):
        rubric, query = benchmark.rubric, shown(Response.response_id, Response.id)
        query = query.where(Instance.benchmark == benchmark.name, FOR_STUDY)
        for *texts, name, _ in in_pages(engine, query, col(Response.id), size=PLANTED_PAGE):
            as_sent = card(name, texts, rubric)
            verdict = any(holds_verdict(text, rubric.criteria) for text in as_sent.rated)
            tags = rubric.forged(as_sent)
            if verdict or tags:
                found.append(Planted(benchmark.name, name, verdict, tags))
    return found


@dataclass(frozen=True, slots=True)
class StoredText:
    """A response (primary key) as it was stored, and the places of it that are masked."""

    response: int
    response_id: str
    text: str
    places: tuple[TextPlace, ...]


def stored_texts(engine: Engine, after: int = 0) -> Iterator[list[StoredText]]:
    """Yield the responses after a primary key, page by page; no transaction stays open."""
    query = columns_of(Response.response_id, Response.text, Response.id)
    rows = in_pages(engine, query.where(col(Response.id) > after), col(Response.id), size=PAGE)
    while page := list(islice(rows, PAGE)):
        keys = [key for *_, key in page]
        masks = select(Mask).where(col(Mask.response).in_(keys)).order_by(col(Mask.id))
        places: dict[int, list[TextPlace]] = {}
        with reading(engine) as session:
            for mask in session.exec(masks):
                place = mask.start, mask.end, mask.text
                places.setdefault(mask.response, []).append(place)
        yield [StoredText(key, name, text, tuple(places.get(key, ()))) for name, text, key in page]


def searched_up_to(engine: Engine) -> int:
    """Return the primary key up to which responses were searched for their authors' names."""
    with reading(engine) as session:
        setting = session.get(Setting, SEARCHED)
        return int(setting.value) if setting else 0


def names_left(engine: Engine) -> LeftNames:
    """Return the possible names that a coordinator has left as they are."""
    details = [event.detail for event in acts(engine, LEFT)]
    return LeftNames(
        frozenset(name for detail in details for name in detail["responses"]),
        frozenset((name, start) for detail in details for name, start in detail.get("places", ())),
        frozenset(word for detail in details for word in detail.get("words", ())),
    )


def known_response_ids(engine: Engine, response_ids: Collection[str]) -> frozenset[str]:
    """Return those of some response_ids that are in the study."""
    query = select(Response.response_id).where(col(Response.response_id).in_(response_ids))
    with reading(engine) as session:
        return frozenset(session.exec(query))
