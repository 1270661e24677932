"""Who wrote which response: the only module that reads and writes it, but for what packs and verifies.

While a study is blind (`data/person.py`), nothing here tells one author from another. A file that is
brought in says who wrote what; it is held against itself alone, since an answer that depends on the
stored authors would tell one who guesses. What depends on who wrote a response is refused, or absent.
Two things are read all the same: the names of the study's models, which no response may name, and
how many there are. Here as well: lengths of responses, and which were written by a model of a juror's
own family; neither raters nor jurors are shown any of it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Engine, delete, func
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import NotAllowed, Unknown
from data.importers.rows import ResponseRow, made_id
from data.person import is_blind_in
from data.record import PAST_RECORD, new_salt
from data.schema import Authorship, Instance, Kind, Pair, Rater, Response, Subgroup
from data.settings import read_settings
from data.study.base import FOR_STUDY, columns_of, setting_values
from data.study.copies import WITHHELD

ValueAndAuthor = tuple[str, str]


def add_authors(session: Session, responses: Iterable[tuple[Response, str]]) -> None:
    """Store who wrote responses that are new."""
    session.add_all(
        Authorship(response=response.id or 0, model=model, salt=new_salt())
        for response, model in responses
    )
    session.flush()


def contradicted(session: Session, claimed: Sequence[tuple[Response, str]]) -> set[int]:
    """Return the keys of responses whose author is another than a file says; none of a blind study."""
    if not claimed or is_blind_in(session):
        return set()
    keys = [response.id for response, _ in claimed]
    query = select(Authorship.response, Authorship.model).where(col(Authorship.response).in_(keys))
    stored = dict(session.exec(query).all())
    return {response.id or 0 for response, model in claimed if stored[response.id or 0] != model}


def pairs_of_group(
    session: Session, name: str, claimed: set[ValueAndAuthor], last: int
) -> tuple[set[ValueAndAuthor], set[str]]:
    """Return the values of a group with their authors, and the values whose authors are not told.

    `claimed` are those of the import whose own come after `last`: all that a blind study may look at.
    """
    if not is_blind_in(session):
        query = (
            select(Subgroup.value, Authorship.model)
            .join(Authorship, col(Authorship.response) == col(Subgroup.response))
            .where(Subgroup.name == name)
            .distinct()
        )
        return set(session.exec(query)), set()
    values = select(Subgroup.value).where(Subgroup.name == name, col(Subgroup.id) <= last)
    return claimed, set(session.exec(values.distinct()))


def everybody(session: Session) -> list[tuple[str, str]]:
    """Return response_id and model of every response: for who has recorded that the blind is lifted."""
    rows = session.exec(
        select(Response.response_id, Authorship.model)
        .join(Authorship, col(Authorship.response) == col(Response.id))
        .order_by(col(Response.id))
    )
    return [(response, model) for response, model in rows]


def has_named_authors(session: Session) -> bool:
    """Tell whether a study knows any author: one that came without them knows none."""
    named = select(Authorship.response).where(Authorship.model != WITHHELD).limit(1)
    return session.exec(named).first() is not None


def forget_withheld(session: Session) -> None:
    """Take out what stood for authors in a study that came without them."""
    session.execute(delete(Authorship), execution_options={PAST_RECORD: True})


def responses_without(session: Session) -> int:
    """Return how many responses have no author."""
    lost = select(func.count()).where(
        col(Response.id).not_in(select(Authorship.response)),
        col(Response.id).not_in(select(Pair.response)),  # whose two responses have one each
    )
    return session.exec(lost.select_from(Response)).one()


class Ids:
    """The ids that an import gives to rows whose file has none: by what was asked and answered.

    An id tells nothing of the author. Models that answer an instance with the same text are told
    apart in one import, by the order in which they come; over several imports such an answer
    counts as the one that is there, which `import` tells.
    """

    def __init__(self) -> None:
        self.authors: dict[str, list[str]] = {}

    def of(self, batch: Sequence[ResponseRow]) -> list[ResponseRow]:
        """Return rows with the ids that they have in the study, or are to have."""
        return [self._named(row) if row.id_made else row for row in batch]

    def _named(self, row: ResponseRow) -> ResponseRow:
        others = self.authors.setdefault(row.response_id, [])
        if row.model not in others:
            others.append(row.model)
        number = others.index(row.model)
        return replace(row, response_id=made_id(row.response_id, str(number))) if number else row


BLIND = (
    "the study is blind: `medjury study unblind --reason ...` says who wrote what, and is recorded"
)


def authors(engine: Engine) -> dict[str, str]:
    """Return response_id -> model of all but training responses.

    Raises
    ------
    NotAllowed
        If the study is blind.
    """
    query = (
        select(Response.response_id, Authorship.model)
        .join(Authorship)
        .where(FOR_STUDY)
        .order_by(Response.response_id)
    )
    with reading(engine) as session:
        if is_blind_in(session):
            raise NotAllowed(BLIND)
        return dict(session.exec(query).all())


def authors_unless_blind(session: Session) -> dict[int, str] | None:
    """Return the key of each response -> its model; None while the study is blind."""
    if is_blind_in(session):
        return None
    return dict(session.exec(select(Authorship.response, Authorship.model)).all())


def responses_by_author(engine: Engine, benchmarks: Sequence[str] | None) -> Counter[str] | None:
    """Return how many responses each model wrote, training left out; None while the study is blind.

    `benchmarks` are those that count; None means all.
    """
    query = (
        select(Authorship.model, func.count())
        .join(Response)
        .join(Instance)
        .where(FOR_STUDY)
        .group_by(col(Authorship.model))
    )
    if benchmarks is not None:
        query = query.where(col(Instance.benchmark).in_(benchmarks))
    with reading(engine) as session:
        return None if is_blind_in(session) else Counter(dict(session.exec(query).all()))


def models_of_pairs(session: Session) -> dict[int, tuple[str, str]] | None:
    """Return the key of each pair -> the models of its first and second; None while the study is blind."""
    if is_blind_in(session):
        return None
    first, second = aliased(Authorship), aliased(Authorship)
    query = (
        columns_of(Pair.response, first.model, second.model)
        .select_from(Pair)
        .join(first, col(first.response) == col(Pair.first))
        .join(second, col(second.response) == col(Pair.second))
    )
    return {pair: (one, other) for pair, one, other in session.exec(query)}


@dataclass(frozen=True, slots=True)
class Rival:
    """A response (primary key) that can be paired, with its instance's key and its model.

    The model is "" while the study is blind.
    """

    response: int
    instance: int
    model: str


def rivals(session: Session, benchmark: str, models: Sequence[str]) -> list[Rival]:
    """Return the responses of a benchmark, one of each model to an instance; of `models`, if any are named.

    While the study is blind all of them are returned, without a word of who wrote which.

    Raises
    ------
    NotAllowed
        If models are named while the study is blind: their pairs would tell who wrote what.
    Unknown
        If one of them wrote none of these.
    """
    is_blind = is_blind_in(session)
    if models and is_blind:
        raise NotAllowed(f"pairs of chosen models would tell who wrote what; {BLIND}")
    query = (
        columns_of(Response.id, Response.instance, Authorship.model)
        .select_from(Response)
        .join(Instance)
        .join(Authorship, col(Authorship.response) == col(Response.id))
        .where(Instance.benchmark == benchmark, FOR_STUDY)
        .order_by(col(Response.id))
    )
    found: dict[tuple[int, str], Rival] = {}
    rows = session.exec(query).all()
    if is_blind:
        return [Rival(response, instance, "") for response, instance, _ in rows]
    for response, instance, model in rows:
        found.setdefault((instance, model), Rival(response, instance, model))
    written = {one.model for one in found.values()}
    if lost := [name for name in models if name not in written]:
        raise Unknown(
            f"no response to {benchmark} by {', '.join(lost)}: {', '.join(sorted(written))}"
        )
    return [one for one in found.values() if not models or one.model in models]


def author_names(engine: Engine) -> list[str]:
    """Return the study's models, which a response must not name; not which wrote what."""
    with reading(engine) as session:
        return list(session.exec(select(Authorship.model).distinct().order_by(Authorship.model)))


# Words of model names -> the family whose weights or training they point to. GPT alone is OpenAI's;
# BioGPT, GPT-J and GPT-Neo are not, and a name we do not know is unknown, never guessed at.
WORDS = {
    "claude": ("claude", "anthropic"),
    "command": ("command", "cohere"),
    "deepseek": ("deepseek",),
    "falcon": ("falcon",),
    "gemini": ("gemini", "bard"),
    "gemma": ("gemma", "medgemma", "txgemma"),
    "glm": ("glm", "chatglm"),
    "gpt": ("gpt", "chatgpt", "openai"),
    "granite": ("granite",),
    "grok": ("grok",),
    "internlm": ("internlm",),
    "jamba": ("jamba",),
    "kimi": ("kimi",),
    "llama": ("llama", "codellama", "medllama", "vicuna"),
    "meditron": ("meditron",),
    "minimax": ("minimax",),
    "mistral": ("mistral", "mistralai", "mixtral", "ministral", "codestral", "biomistral"),
    "nemotron": ("nemotron",),
    "nova": ("nova",),
    "olmo": ("olmo",),
    "palm": ("palm", "medpalm"),
    "phi": ("phi",),
    "qwen": ("qwen", "qwq"),
    "smollm": ("smollm",),
}
FAMILY = {word: family for family, words in WORDS.items() for word in words}
NOT_OPENAI = re.compile(r"gpt[-_ ]?(?:j|jt|neo|neox|sw\d?)(?![^\W\d_])")
O_SERIES = re.compile(r"(?<![^\W_])o[134](?![^\W_])")


@dataclass(frozen=True, slots=True)
class OwnFamily:
    """How many responses each juror has of its own family; known after unblinding.

    Attributes
    ----------
    responses
        Of the chosen benchmarks, training responses left out; None while the study is blind.
    unknown
        Those of them whose author is of no known family; None while the study is blind.
    own
        Juror -> responses of its family, those of unknown authors not among them; empty while the
        study is blind.
    unlisted
        Juror -> family, as its panel says, that is neither in the list here nor the study's own.
    """

    responses: int | None
    unknown: int | None
    own: Mapping[str, int]
    unlisted: Mapping[str, str]

    @property
    def is_blind(self) -> bool:
        """Tell whether nothing is known, as the study is blind."""
        return self.responses is None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts about responses and jurors that no rater is shown.

    Attributes
    ----------
    words
        response_id -> number of words of the response as raters see it.
    authors
        response_id -> family of its author; absent where none is known, or two are. None while the
        study is blind.
    families
        Juror -> family, as its panel said when it was first run; "" where none is given.
    """

    words: Mapping[str, int]
    authors: Mapping[str, str] | None
    families: Mapping[str, str]


def families_of(name: str, study_families: Mapping[str, str] = {}) -> frozenset[str]:
    """Return the families a model's name tells of, none where it tells nothing.

    Parameters
    ----------
    name
        A model id or a panel's `family`, as anybody may write it.
    own
        Model -> family, as the study says of names that tell nothing; the whole name counts.

    Returns
    -------
    More than one where a model was made from two: "DeepSeek-R1-Distill-Llama-70B" is of both.
    """
    text = name.casefold()
    if stated := {family for model, family in study_families.items() if model.casefold() == text}:
        return frozenset(stated)
    words = set(re.findall(r"[^\W\d_]+", text))
    if NOT_OPENAI.search(text):
        words -= {"gpt"}
    families = {FAMILY[word] for word in words & FAMILY.keys()}
    if O_SERIES.search(text):
        families.add("gpt")
    return frozenset(families)


def evidence(engine: Engine, panel: Mapping[str, str] = {}) -> Evidence:
    """Return the lengths and author families of all but training responses, and the jurors'.

    `panel` has families of jurors; they count where the study has none, as of imported jurors.
    """
    with reading(engine) as session:
        study_families = _study_families(session)
        jurors = session.exec(select(Rater.handle, Rater.family).where(Rater.kind == Kind.JUROR))
        families = {
            name: next(iter(listed)) if len(listed) == 1 else family.strip().casefold()
            for name, stated in jurors  # whose panel tells of no one family: no author is of it
            for family in [stated or panel.get(name, "")]
            for listed in [_listed_family(family, study_families)]
        }
        text = func.coalesce(Response.shown, Response.text)
        query = columns_of(Response.id, Response.response_id, text).select_from(Response)
        query = query.where(FOR_STUDY).order_by(col(Response.id))
        models = authors_unless_blind(session)
        words, names = dict[str, int](), dict[str, int]()
        for key, name, shown in session.exec(query):
            words[name], names[name] = len(shown.split()), key
    if models is None:
        return Evidence(words, None, families)
    authors = {
        name: next(iter(of_author))
        for name, key in names.items()
        if len(of_author := families_of(models.get(key, ""), study_families)) == 1
    }
    return Evidence(words, authors, families)


def own_family(
    engine: Engine, jurors: Mapping[str, str], benchmarks: Sequence[str] | None = None
) -> OwnFamily:
    """Return how many of a study's responses are of each juror's own family.

    Parameters
    ----------
    jurors
        Juror -> family, as its panel says.
    benchmarks
        Only these; None means all.
    """
    with reading(engine) as session:
        study_families = _study_families(session)
    of_jurors = {juror: _listed_family(family, study_families) for juror, family in jurors.items()}
    unlisted = {
        juror: jurors[juror] for juror, own_families in of_jurors.items() if not own_families
    }
    responses_of = responses_by_author(engine, benchmarks)
    if responses_of is None:
        return OwnFamily(None, None, {}, unlisted)
    families = {name: families_of(name, study_families) for name in responses_of}
    return OwnFamily(
        responses=responses_of.total(),
        unknown=sum(count for name, count in responses_of.items() if not families[name]),
        own={
            juror: sum(
                count for name, count in responses_of.items() if families[name] & own_families
            )
            for juror, own_families in of_jurors.items()
        },
        unlisted=unlisted,
    )


def _listed_family(family: str, study_families: Mapping[str, str]) -> frozenset[str]:
    """Return a panel's family by the names used here, or as the study has it; none of any other.

    It is never looked for in authors' names: who may write a panel could ask for any part of one.
    """
    name = family.strip().casefold()
    return families_of(family) or frozenset({name} & set(study_families.values()))


def _study_families(session: Session) -> dict[str, str]:
    """Return model -> family, as the study says of names that tell nothing."""
    return dict(read_settings(setting_values(session)).families)
