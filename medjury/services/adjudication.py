"""Settle differences between clinicians: who reads what, and what they see of the others; answer flags."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Engine

from data.card import Reply, Settling
from data.errors import BadInput
from data.person import Person
from data.study.adjudication import Disagreement, comments_on, differences, other_readings, pool
from data.study.assignments import answer_flag_as, give_adjudication
from data.study.authors import author_names
from data.study.masks import names_to_mask
from data.study.standing import benchmarks, settings
from medjury.services.blinding.search import find_self_naming, mask

OFF = (
    "differences are not settled in this study: set how many points apart clinicians must be, such "
    "as `medjury study settings adjudicate_from 2`"
)


@dataclass(frozen=True, slots=True)
class Settlement:
    """A plan of who settles which difference, and which differences cannot be assigned now.

    Attributes
    ----------
    places
        Response (primary key) -> the clinician, in the order they are given out.
    load
        Clinician -> readings given here; those who are given none too.
    waiting
        Responses that somebody has still to rate by themselves.
    nobody
        Responses that none of the clinicians may settle in this way.
    naming
        Responses with a comment that names a model: not for a consensus, which shows comments.
    of_points
        Responses rated by points of the case: not for a consensus, which would show what answers come
        to and not the answers. A third reading settles them.
    """

    reading: Settling
    places: Mapping[int, str]
    load: Mapping[str, int]
    waiting: tuple[str, ...] = ()
    nobody: tuple[str, ...] = ()
    naming: tuple[str, ...] = ()
    of_points: tuple[str, ...] = ()


def found_differences(person: Person, engine: Engine) -> list[Disagreement]:
    """Return the differences between clinicians that reach the study's threshold.

    Raises
    ------
    BadInput
        If the study settles no differences.
    """
    chosen = settings(engine)
    if not chosen.adjudicates:
        raise BadInput(OFF)
    return differences(person, engine, chosen.adjudicate_from)


def planned_settlement(
    person: Person,
    engine: Engine,
    reading: Settling,
    raters: Sequence[str] | None = None,
    seed: int = 0,
) -> Settlement:
    """Return a plan of who settles which difference; None for `raters` takes all who can rate.

    Each response goes to one who may settle it; all are given as equally many as that allows,
    first those who have least open work. The same study and seed give the same plan.
    """
    all_differences = found_differences(person, engine)
    ready = [difference for difference in all_differences if difference.is_ready]
    pointed = {one.name for one in benchmarks(engine) if one.rubric.points}
    of_points = [one for one in ready if one.benchmark in pointed and reading == "consensus"]
    ready = [difference for difference in ready if difference not in of_points]
    naming = _naming(engine, ready) if reading == "consensus" else frozenset[int]()
    candidates = pool(engine)
    if raters is not None:
        candidates = replace(candidates, clinicians=tuple(raters))
    able = {
        difference.response: candidates.able(difference.response, reading) for difference in ready
    }
    eligible = {key: names for key, names in able.items() if names and key not in naming}
    start = {
        clinician: (candidates.settling.get(clinician, 0), candidates.open_.get(clinician, 0))
        for clinician in candidates.clinicians
    }
    places = dealt(eligible, start, seed)
    load = Counter(places.values())
    return Settlement(
        reading,
        places,
        {clinician: load[clinician] for clinician in sorted(candidates.clinicians)},
        waiting=tuple(
            difference.response_id
            for difference in all_differences
            if difference.waits_for and not difference.reading
        ),
        nobody=tuple(
            difference.response_id for difference in ready if not able[difference.response]
        ),
        naming=tuple(
            difference.response_id for difference in ready if difference.response in naming
        ),
        of_points=tuple(difference.response_id for difference in of_points),
    )


def settle(person: Person, engine: Engine, plan: Settlement) -> int:
    """Assign the planned readings in a coordinator's name; return how many."""
    return give_adjudication(person, engine, person.actor, plan.reading, plan.places)


def dealt(
    able: Mapping[int, Sequence[str]], start: Mapping[str, tuple[int, int]], seed: int
) -> dict[int, str]:
    """Deal each response to one of those who are able to, as evenly as that allows.

    Parameters
    ----------
    able
        Response -> who may have it, at least one.
    start
        Clinician -> what they had of this before, and other open work; the first is evened out,
        the second decides among equals.
    seed
        Decides what is left open, and the order in which responses are returned.
    """
    load = {name: had for name, (had, _) in start.items()}
    rank = {name: (work, _drawn(seed, name)) for name, (_, work) in start.items()}
    dealt_to: dict[int, str] = {}
    order = sorted(able, key=lambda response: (len(able[response]), _drawn(seed, response)))
    for response in order:
        name = min(able[response], key=lambda clinician: (load[clinician], rank[clinician]))
        dealt_to[response] = name
        load[name] += 1
    while moves := _evening(able, dealt_to, load):
        for response, name in moves:
            load[dealt_to[response]] -= 1
            load[name] += 1
            dealt_to[response] = name
    return {
        response: dealt_to[response]
        for response in sorted(able, key=lambda response: _drawn(seed, response))
    }


def _evening(
    able: Mapping[int, Sequence[str]], dealt_to: Mapping[int, str], load: Mapping[str, int]
) -> list[tuple[int, str]]:
    """Return moves, in a chain, that take one from somebody for one who has two fewer; or none."""
    for giver in sorted(load, key=lambda clinician: (-load[clinician], clinician)):
        came: dict[str, tuple[int, str]] = {}
        queue = [giver]
        for name in queue:
            for response, taker in _passed_on(able, dealt_to, name):
                if taker in came or taker == giver:
                    continue
                came[taker] = (response, name)
                if load[taker] <= load[giver] - 2:
                    return [*_chain(came, taker, giver)]
                queue.append(taker)
    return []


def _passed_on(
    able: Mapping[int, Sequence[str]], dealt_to: Mapping[int, str], name: str
) -> Iterator[tuple[int, str]]:
    for response, owner in dealt_to.items():
        if owner == name:
            for taker in able[response]:
                yield response, taker


def _chain(
    came: Mapping[str, tuple[int, str]], taker: str, giver: str
) -> Iterator[tuple[int, str]]:
    while taker != giver:
        response, before = came[taker]
        yield response, taker
        taker = before


def _drawn(seed: int, item: object) -> str:
    return hashlib.sha256(f"{seed} {item}".encode()).hexdigest()


def _naming(engine: Engine, ready: Sequence[Disagreement]) -> frozenset[int]:
    """Return the responses of which a comment names a model, or may: a coordinator's to know."""
    names = author_names(engine)
    comments = comments_on(engine, [difference.response for difference in ready])
    return frozenset(
        response
        for response, texts in comments.items()
        if any(find_self_naming(text, names) for text in texts)
    )


def others_shown(engine: Engine, rater: int, code: str) -> tuple[Reply, ...]:
    """Return `others_said` as it is shown: with models' names masked in every comment.

    Comments that name a model of the study itself keep a response out of consensus when it is
    given out; what is written later is masked here by the names that all texts are searched for.
    """
    return tuple(
        replace(
            other,
            comments={name: mask(text).text for name, text in other.comments.items()},
            comment=mask(other.comment).text,
        )
        for other in other_readings(engine, rater, code)
    )


def answer(person: Person, engine: Engine, remark: int, text: str) -> int:
    """Answer a flag in a coordinator's name; return the answer's key.

    Raises
    ------
    BadInput
        If the text names a model of the study, or any that is well known: who reads it rates blind.
    Unknown, NotAllowed
        If there is no such flag; unless a coordinator asks.
    """
    hits = find_self_naming(text, names_to_mask(person, engine))
    if hits:
        names = ", ".join(dict.fromkeys(hit.text for hit in hits))
        raise BadInput(f"the answer names what may be a model ({names}): who reads it rates blind")
    return answer_flag_as(person, engine, person.actor, remark, text)
