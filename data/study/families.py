"""Lengths of responses, and which were written by a model of a juror's own family.

Neither raters nor jurors are shown any of it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.database import reading
from data.schema import Kind, Rater, Response
from data.study.authors import authors_unless_blind, responses_by_author
from data.study.base import FOR_STUDY, columns_of
from data.study.standing import settings

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
    study_families = dict(settings(engine).families)
    with reading(engine) as session:
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
    study_families = dict(settings(engine).families)
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
