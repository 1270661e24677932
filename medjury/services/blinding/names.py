"""Names of language models and their makers, and the shapes in which texts write them."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from medjury.services.blinding.surroundings import Surroundings

GAP = r"(?:[ \u00a0]?[-\u2010-\u2013][ \u00a0]?|[-\u2010-\u2013_./]{1,2}|[ \u00a0])"
# Letters of scripts that put no space between words do not bound a name, nor does emphasis.
_WORD = r"[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
START = rf"(?<!{_WORD})(?<![\u2010-\u2013-])(?:(?<![/@])|(?<=//)|(?<=\s@))"
END = rf"(?!{_WORD})"
# A hyphen joins other names to a doubtful one, but for what is said of machines alone.
END_OF_DOUBTFUL = END + r"(?!-(?!(?:like|based|powered|generated|assisted|style|written)\b)\w)"

# Written like this they mean nothing but a model or its maker.
PLAIN = [
    *(
        "AI21 Labs",
        "Anthropic",
        "BioGPT",
        "BioMistral",
        "Bing Chat",
        "BLOOMZ",
        "Chat GLM",
        "ChatGLM",
    ),
    *("Chat GPT", "Chat GTP", "ChatDoctor", "ChatGPT", "ChatGTP", "Claude.ai", "Claude.com"),
    *("Codestral", "DeepMind", "DeepSeek", "Devstral", "Doubao", "ERNIE Bot", "EXAONE", "Flan-T5"),
    *("GatorTronGPT", "Gemini Advanced", "Google AI Studio", "Google Bard", "Google DeepMind"),
    *("Google Gemini", "HuatuoGPT", "Hunyuan", "InternLM", "iFlytek Spark", "LaMDA", "LLaVA-Med"),
    *("Magistral", "MedAlpaca", "MedGemma", "Meditron", "Med-PaLM", "Meta AI", "Meta Llama"),
    *("Microsoft Copilot", "Ministral", "MiniMax AI", "Mistral AI", "Mixtral", "Moonshot AI"),
    *("Nemotron", "Nous Hermes", "OpenAI", "OpenBioLLM", "Perplexity AI", "Pixtral", "PMC-LLaMA"),
    *("Qwen", "QwQ", "StableLM", "Tongyi Qianwen", "Wenxin Yiyan", "WizardLM", "xAI", "Zhipu AI"),
    # Tongyi Qianwen, Wenxin Yiyan, Doubao, Hunyuan, ChatGLM, Spark, DeepSeek, Moonshot, Zhipu
    *("\u901a\u4e49\u5343\u95ee", "\u5343\u95ee", "\u6587\u5fc3\u4e00\u8a00", "\u8c46\u5305"),
    *("\u6df7\u5143\u5927\u6a21\u578b", "\u667a\u8c31\u6e05\u8a00", "\u8baf\u98de\u661f\u706b"),
    *("\u6df1\u5ea6\u6c42\u7d22", "\u6708\u4e4b\u6697\u9762", "\u667a\u8c31"),
    # ChatGPT in Japanese and Korean
    *("\u30c1\u30e3\u30c3\u30c8GPT", "\ucc57GPT", "\ucc57\uc9c0\ud53c\ud2f0"),
]

# Words of other meanings too: people, animals, winds, stars, labs' and ordinary words.
AMBIGUOUS = [
    *("Alibaba", "Baidu", "Bard", "ByteDance", "Claude", "Cohere", "Copilot", "Gemini", "Gemma"),
    *("Grok", "Haiku", "Hugging Face", "Kimi", "Llama", "Mistral", "Ollama", "Open AI", "Opus"),
    *("Perplexity", "Qianwen", "Sonnet", "Tencent", "Tongyi", "Yiyan"),
    # Tongyi, Wenxin, Hunyuan; Claude in Japanese, Korean and Russian
    *("\u901a\u4e49", "\u6587\u5fc3\u5927\u6a21\u578b", "\u6df7\u5143"),
    *("\u30af\u30ed\u30fc\u30c9", "\ud074\ub85c\ub4dc", "\u041a\u043b\u043e\u0434"),
]

# Makers of much else: they betray an author only where a text says who made it.
MAKERS = [
    *(
        "Alibaba",
        "Alibaba Cloud",
        "Amazon",
        "Apple",
        "Baidu",
        "ByteDance",
        "Google",
        "Huawei",
        "IBM",
    ),
    *("Meta", "Microsoft", "Nvidia", "Samsung", "Tencent"),
]

# Families with a version or a size: {s} is an optional separator, {g} one that must be there.
FAMILIES = (
    r"gpt{s}(?:3\.5|4o|4\.\d|4|5\.\d|5)",
    r"gpt{s}oss",
    r"claude{g}(?:\d(?:[.-]\d)?|v\d|opus|sonnet|haiku|instant|code)",
    r"claude\d(?:[.-]\d)?",
    r"(?:sonnet|opus|haiku)(?:{g}v?\d\.\d|-[3-9])",
    r"\d\.\d{g}(?:sonnet|opus|haiku)",
    r"gemini{g}(?:\d(?:\.\d)?|pro|flash|ultra|nano|advanced)",
    r"gemini\d(?:\.\d)?",
    r"(?:code|med)?llama{s}[1-4](?:[.-]\d)?",
    r"(?:mistral|mixtral|qwen|deepseek|ernie|kimi){g}(?:large|small|medium|nemo|[rkv]\d|\d+x\d+b|\d+b)",
    r"qwen\d(?:\.\d)?",
    r"(?:med)?gemma{g}\d",
    r"(?:phi|grok|palm)-\d(?:\.\d)?",
    r"(?:chat)?glm-\d(?:\.\d)?v?",
    r"ernie{g}\d\.\d",
    r"o[134]-(?:mini|preview|pro)",
    r"command{g}r(?:{s}plus|\+)|command-[ar]",
    r"amazon{g}nova",
    r"(?:falcon|vicuna|alpaca|zephyr|solar|granite|olmo|bloom|baichuan|yi|orca|tulu|jurassic|aya"
    r"|apertus|smollm|internlm|phi){g}(?:\d(?:\.\d)?{g})?\d+(?:\.\d)?b",
)
# How they begin, in small letters: a text without any of these is not searched for families.
STEMS = (
    *("gpt", "claude", "sonnet", "opus", "haiku", "gemini", "gemma", "llama", "mistral", "mixtral"),
    *("qwen", "deepseek", "ernie", "kimi", "phi-", "grok-", "palm-", "glm-", "o1-", "o3-", "o4-"),
    *("command", "amazon"),
)
_SIZE = re.compile(r"\db(?![a-z\d])")  # 70b
# The same of words that name other things too: an implant's processor, a ward's app, a dose.
DOUBTFUL_FAMILIES = (
    r"(?:sonnet|opus|haiku){g}\d(?:\.\d)?",
    r"nova{g}(?:pro|lite|micro|premier)",
    r"4o(?:{g}mini)?",
    r"[1-3]\.\d{g}(?:pro|flash)",
    r"gpt{s}(?:three|four|five)|gpt{g}(?:model|based|assistant)s?",
    r"(?:ernie|phi|grok|glm){g}\d\.\d",
    r"(?-i:[A-Z][a-z]+GPT)",
    r"generative{g}pre{s}trained{g}transformer",
)
SUFFIX = (
    r"(?:{g}?(?:turbo|mini|nano|preview|latest|instruct|chat|pro|flash|lite|plus|opus|sonnet|haiku"
    r"|vision|audio|thinking|exp|maverick|scout|\d+(?:\.\d+)?b)(?!\w)"
    r"|[-@]\d{{2,8}}(?!\w)|-(?:[vr]?\d(?:\.\d)?o?|hf|it)(?!\w))*"
)

# What follows a number that is a measurement and no version.
UNIT = re.compile(
    r"\s*(?:[µμumk]?kat|[mµμnk]?g\b|mcg|m?i?u\b|u/|ui/|iu/|units?|m?[ld]\b|[cm]?m\b|mmol|mmhg|%|x\b"
    r"|/\s?\d|times|seconds?|minutes?|hours?|hrs?|days?|weeks?|wks?|months?|years?|yrs?|y/?o\b|-?year"
    r"|doses?|tablets?|episodes?|patients?|out of|to \d|[-\u2013]\s?\d|[.,]\d)",
    re.IGNORECASE,
)


def default_names() -> list[str]:
    """Return well-known names of models and of their makers, in alphabetical order."""
    families = ["GPT-4", "GPT-4o", "GPT-5", "Claude Opus", "Claude Sonnet", "Claude Haiku"]
    families += ["Gemini Pro", "Gemini Flash", "Llama 3.3", "Llama 4", "Mistral Large", "Gemma 3"]
    families += ["o1-preview", "o3-mini", "o4-mini", "Phi-4", "Grok-4", "DeepSeek-R1", "Qwen3"]
    return sorted({*PLAIN, *AMBIGUOUS, *MAKERS, *families}, key=str.casefold)


@lru_cache(maxsize=64)
def plain_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of names that always mean a model: well-known ones and a study's own."""
    shapes = [shape.format(g=GAP, s=GAP + "?") for shape in FAMILIES]
    own = [_shape(variant) for name in names for variant in _variants(name) if _telling(variant)]
    plain = [_shape(name) for name in PLAIN]
    longest_first = sorted({*own, *plain}, key=lambda shape: (-len(shape), shape))
    maker = rf"(?:(?:{_any_of([*_vendors(), 'meta-llama', 'mistralai'])})/)?"
    body = _any_of([*longest_first, *shapes])
    return re.compile(START + f"{maker}(?:{body})" + SUFFIX.format(g=GAP) + END, re.IGNORECASE)


def plain_matches(text: str, names: tuple[str, ...]) -> Iterator[re.Match[str]]:
    """Find names that always mean a model; quick for texts without any."""
    small = text.lower()
    letters = re.sub(r"[\W_]+", "", small)
    begun = _SIZE.search(small) or any(stem in small for stem in STEMS)
    if begun or any(name in letters for name in _letters_of(names)):
        yield from plain_pattern(names).finditer(text)


@lru_cache(maxsize=64)
def _letters_of(names: tuple[str, ...]) -> frozenset[str]:
    """Return the letters and digits alone of the names that `plain_pattern` finds."""
    own = [variant for name in names for variant in _variants(name) if _telling(variant)]
    return frozenset("".join(_tokens(name)) for name in [*PLAIN, *own])


@lru_cache(maxsize=64)
def doubtful_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of names that may mean something else: well-known ones and a study's own."""
    own = [variant for name in names for variant in _variants(name) if not _telling(variant)]
    own += [bare for name in names if _distinct(bare := _versionless(name))]
    ambiguous = [name for name in own if name.casefold() not in NEVER]
    shapes = sorted(
        {_shape(name) for name in [*AMBIGUOUS, *ambiguous]}, key=lambda shape: (-len(shape), shape)
    )
    return re.compile(START + f"(?:{_any_of(shapes)})" + END_OF_DOUBTFUL, re.IGNORECASE)


@lru_cache(maxsize=1)
def doubtful_versions() -> re.Pattern[str]:
    """Return a pattern of versions that models and other things have."""
    shapes = [shape.format(g=GAP, s=GAP + "?") for shape in DOUBTFUL_FAMILIES]
    return re.compile(START + f"(?:{'|'.join(shapes)})" + END_OF_DOUBTFUL, re.IGNORECASE)


NEVER = {"gpt", "ai", "llm", "model"}  # glutamate-pyruvate transaminase, and no names at all


LEAST_LETTERS = 8  # of a study's name that is sure however its parts are joined


@lru_cache(maxsize=64)
def own_pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return a pattern of a study's own compound names, whatever joins their parts."""
    short = (name.strip().rsplit("/", 1)[-1] for name in names)
    own = {form for name in short for form in (name, _versionless(name)) if _compound(form)}
    shapes = [_shape(name) for name in sorted(own, key=lambda name: (-len(name), name))]
    return re.compile(START + f"(?:{'|'.join(shapes)}){END}", re.IGNORECASE) if shapes else None


def _compound(name: str) -> bool:
    """Return whether a name is long, has several parts, and does not look like ordinary words.

    That is a digit, a capital inside a word, or, in three parts or more, a family's name or a
    word in capitals: `progress-note-writer` stays a name that may mean something else.
    """
    tokens = _tokens(name)
    odd = re.search(r"\d|[^\W\d_A-Z][A-Z]", name) is not None
    if len(tokens) > 2 and not odd:
        family = {word.casefold() for word in AMBIGUOUS} & set(tokens)
        odd = bool(family) or re.search(r"[A-Z]{4}", name) is not None
    return len(tokens) > 1 and odd and sum(map(len, tokens)) >= LEAST_LETTERS


def vendors() -> str:
    """Return the alternatives of all makers, for use inside a pattern."""
    return "|".join(_vendors())


def _vendors() -> list[str]:
    return [_shape(name) for name in [*PLAIN, "Mistral", "Cohere", *MAKERS]]


# What is the same letter to a pattern that ignores case, beside its capital.
SAME_LETTER = {"i": "\u0130\u0131", "k": "\u212a", "s": "\u017f"}


def _any_of(shapes: Sequence[str]) -> str:
    """Return alternatives that are tried only where their first letter stands.

    Shapes that begin with one letter keep their order among themselves, and go before those that
    begin with several, with a digit or with another sign; no shapes of two letters can both match.
    A name without a letter or digit has no shape.
    """
    by_letter: dict[str, list[str]] = {}
    others = []
    for shape in filter(None, shapes):
        if "a" <= shape[0] <= "z" and shape[1:2] not in {"?", "*", "{"}:
            by_letter.setdefault(shape[0], []).append(shape[1:])
        else:
            others.append(shape)
    groups = [
        f"(?-i:[{letter}{letter.upper()}{SAME_LETTER.get(letter, '')}])(?:{'|'.join(rests)})"
        for letter, rests in by_letter.items()
    ]
    return "|".join([*groups, *others])


def is_measurement(around: Surroundings, start: int, end: int) -> bool:
    """Whether a name that ends in a digit is a word and a measured number.

    GPT is also a liver enzyme: with a bare number among liver values it is no model.
    """
    text = around.text
    if not text[end - 1].isdigit():
        return False
    liver = text[start : start + 3].casefold() == "gpt" and around.of_the_liver(start, end)
    return liver or UNIT.match(text, end) is not None


def _variants(name: str) -> Sequence[str]:
    """Return a model id as it may be written: without its maker, date or trailing parts."""
    short = name.strip().rsplit("/", 1)[-1]
    undated = re.sub(r"[-_@:.]?(?:20\d\d-?\d\d-?\d\d|\d{4,8})$", "", short)
    to_version = re.match(r"[^\W\d_]+[-_. ]?\d+(?:[-_.]\d{1,2}(?!\d))*[a-z]?(?![^\W_])", undated)
    variants = [name.strip(), short, undated, to_version.group() if to_version else ""]
    return [
        variant
        for variant in dict.fromkeys(variants)
        if re.search(r"[^\W\d_]", variant)
        and sum(map(len, _tokens(variant))) >= (2 if variant == variants[0] else 4)
    ]


# What is put behind a name for its version, size or use, and what is no name by itself.
_VERSION = re.compile(
    r"(?:[-_@:. ]?(?:v?\d+(?:[-_.]\d+)*[a-z]?|\d+(?:\.\d+)?[bmk]|instruct|chat|preview|latest|base|hf|it"
    r"|large|medium|small|mini|pro|turbo|beta|alpha|final))+$",
    re.IGNORECASE,
)
_COMMON = {
    *("assistant", "baseline", "clinic", "clinical", "clinician", "doctor", "draft", "health"),
    *("hospital", "human", "internal", "local", "medic", "medical", "model", "notes", "nurse"),
    *("patient", "physician", "prompt", "reference", "report", "simulated", "study", "summary"),
    "system",
}


def _versionless(name: str) -> str:
    """Return a model's name without its maker, version, size and use."""
    return _VERSION.sub("", name.strip().rsplit("/", 1)[-1])


def _distinct(name: str) -> bool:
    """Return whether a name without its version is distinctive enough to be searched for."""
    return len(name) > 4 and name.casefold() not in _COMMON and not name.isdigit()


def _telling(name: str) -> bool:
    """Whether a name can mean nothing else: several parts one of which is a number, or known."""
    tokens = _tokens(name)
    plain_names = {tuple(_tokens(name)) for name in PLAIN}
    mixed = len(tokens) > 1 and any(token.isdigit() for token in tokens)
    return tuple(tokens) in plain_names or (mixed and sum(map(len, tokens)) > 3)


def _tokens(name: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\d+", name.casefold())


def _shape(name: str) -> str:
    """Return a pattern of the name's parts, with any one separator or none between them."""
    return f"{GAP}?".join(re.escape(token) for token in _tokens(name))
