"""Which responses come from a juror's own family; for coordinators, never for raters or jurors."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, func, select
from sqlmodel import col

from data.database import reading
from data.schema import Authorship, Expert, Instance, Response

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


def _names(text: str, family: str) -> bool:
    """Tell whether a family stands in a name as a whole word."""
    shape = rf"(?<![^\W\d_]){re.escape(family)}(?![^\W\d_])"
    return bool(family) and re.search(shape, text) is not None


def _authors(engine: Engine, benchmarks: Sequence[str] | None) -> Counter[str]:
    """Return how many responses each author wrote, those for training left out."""
    query = (
        select(col(Authorship.model), func.count())
        .join(Response, col(Response.id) == col(Authorship.response))
        .join(Instance, col(Instance.id) == col(Response.instance))
        .where(col(Response.id).not_in(select(col(Expert.response))))
        .group_by(col(Authorship.model))
    )
    if benchmarks is not None:
        query = query.where(col(Instance.benchmark).in_(benchmarks))
    with reading(engine) as session:
        rows: Sequence[Any] = session.execute(query).all()
        return Counter(dict(map(tuple, rows)))
