"""Lengths of responses, and which come from a juror's own family; never for raters or jurors."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.database import reading
from data.queries.base import FOR_STUDY, columns_of
from data.schema import Authorship, Instance, Kind, Rater, Response

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
}
FAMILY = {word: family for family, words in WORDS.items() for word in words}
NOT_OPENAI = re.compile(r"gpt[-_ ]?(?:j|jt|neo|neox|sw\d?)(?![^\W\d_])")
O_SERIES = re.compile(r"(?<![^\W_])o[134](?![^\W_])")


@dataclass(frozen=True, slots=True)
class OwnFamily:
    """How many responses each juror has of its own family.

    Attributes
    ----------
    responses
        Of the chosen benchmarks, training responses left out.
    unknown
        Those of them whose author's name tells no family.
    own
        Juror -> responses of its family, those of unknown authors not among them.
    """

    responses: int
    unknown: int
    own: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts about responses and jurors that no rater is shown.

    Attributes
    ----------
    words
        response_id -> number of words of the response as raters see it.
    authors
        response_id -> family of its author; absent where the name tells none, or two.
    families
        Juror -> family, as its panel said when it was first run; "" where none is known.
    """

    words: Mapping[str, int]
    authors: Mapping[str, str]
    families: Mapping[str, str]


def families_of(name: str, also: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the families a model's name tells of, none where it tells nothing.

    Parameters
    ----------
    name
        A model id or a panel's `family`, as anybody may write it.
    also
        Words of further families, each its own, such as those that a panel names.

    Returns
    -------
    More than one where a model was made from two: "DeepSeek-R1-Distill-Llama-70B" is of both.
    """
    text = name.casefold()
    words = set(re.findall(r"[^\W\d_]+", text))
    if NOT_OPENAI.search(text):
        words -= {"gpt"}
    known = {FAMILY[word] for word in words & FAMILY.keys()}
    if O_SERIES.search(text):
        known.add("gpt")
    return frozenset(known | {one for one in also if _names(text, one)})


def evidence(engine: Engine, panel: Mapping[str, str] = {}) -> Evidence:
    """Return the lengths and author families of all but training responses, and the jurors'.

    `panel` has families of jurors; they count where the study has none, as of imported jurors.
    """
    with reading(engine) as session:
        jurors = session.exec(select(Rater.handle, Rater.family).where(Rater.kind == Kind.JUROR))
        families = {handle: _family(family or panel.get(handle, "")) for handle, family in jurors}
        text = func.coalesce(Response.shown, Response.text)
        query = columns_of(Response.response_id, text, Authorship.model).select_from(Response)
        query = query.outerjoin(Authorship).where(FOR_STUDY).order_by(col(Response.id))
        words, authors = dict[str, int](), dict[str, str]()
        for name, shown, model in session.exec(query):
            words[name] = len(shown.split())
            if len(known := families_of(model or "", frozenset(families.values()) - {""})) == 1:
                authors[name] = next(iter(known))
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
    authors = _authors(engine, benchmarks)
    own_words = {juror: _words_of(family) for juror, family in jurors.items()}
    also = frozenset[str]().union(*own_words.values())
    families = {name: families_of(name, also) for name in authors}
    return OwnFamily(
        responses=authors.total(),
        unknown=sum(count for name, count in authors.items() if not families[name]),
        own={
            juror: sum(count for name, count in authors.items() if families[name] & words)
            for juror, words in own_words.items()
        },
    )


def _words_of(family: str) -> frozenset[str]:
    """Return a panel's family by the names used here, or as it is written where none fits."""
    return families_of(family) or frozenset({family.strip().casefold()})


def _family(told: str) -> str:
    """Return a panel's family by the name used here, or as it is written where none fits."""
    known = families_of(told)
    return next(iter(known)) if len(known) == 1 else told.strip().casefold()


def _names(text: str, family: str) -> bool:
    """Tell whether a family stands in a name as a whole word."""
    shape = rf"(?<![^\W\d_]){re.escape(family)}(?![^\W\d_])"
    return bool(family) and re.search(shape, text) is not None


def _authors(engine: Engine, benchmarks: Sequence[str] | None) -> Counter[str]:
    """Return how many responses each author wrote, those for training left out."""
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
        return Counter(dict(session.exec(query).all()))
