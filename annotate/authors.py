"""Names of language models and their makers, and the shapes in which texts write them."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

GAP = r"[-\u2010-\u2013_./ \u00a0]"
START, END = r"(?<![\w\u2010-\u2013/@-])", r"(?!\w)"

# Written like this they mean nothing but a model or its maker.
PLAIN = [
    "AI21 Labs",
    "Anthropic",
    "BioGPT",
    "BioMistral",
    "ChatGLM",
    "ChatGPT",
    "Claude.ai",
    "Codestral",
    "DeepMind",
    "DeepSeek",
    "Google DeepMind",
    "HuatuoGPT",
    "InternLM",
    "MedGemma",
    "Meditron",
    "Med-PaLM",
    "Meta AI",
    "Ministral",
    "Mistral AI",
    "Mixtral",
    "MiniMax AI",
    "Moonshot AI",
    "Nemotron",
    "OpenAI",
    "OpenBioLLM",
    "Qwen",
    "WizardLM",
    "xAI",
    "Zhipu AI",
]

# Words of other meanings too: people, animals, winds, stars, labs' and ordinary words.
AMBIGUOUS = [
    "Bard",
    "Claude",
    "Cohere",
    "Copilot",
    "Gemini",
    "Gemma",
    "Grok",
    "Kimi",
    "Llama",
    "Mistral",
    "Perplexity",
]

# Makers of much else: they betray an author only where a text says who made it.
MAKERS = [
    "Alibaba",
    "Amazon",
    "Apple",
    "Baidu",
    "Google",
    "IBM",
    "Meta",
    "Microsoft",
    "Nvidia",
    "Samsung",
    "Tencent",
]

# Families with a version or a size: {s} is an optional separator, {g} one that must be there.
FAMILIES = (
    r"gpt{s}(?:3\.5|4o|4\.\d|4|5\.\d|5)",
    r"gpt{s}oss",
    r"claude{g}(?:\d(?:[.-]\d)?|v\d|opus|sonnet|haiku|instant)",
    r"gemini{g}(?:\d(?:\.\d)?|pro|flash|ultra|nano|advanced)",
    r"(?:code|med)?llama{s}[1-4](?:[.-]\d)?",
    r"(?:mistral|mixtral|qwen|deepseek){g}(?:large|small|medium|nemo|r\d|v\d|\d+x\d+b|\d+b)",
    r"qwen\d(?:\.\d)?",
    r"(?:med)?gemma{g}\d",
    r"(?:phi|grok|palm)-\d(?:\.\d)?",
    r"o[134]-(?:mini|preview|pro)",
    r"command-r(?:-plus|\+)?",
    r"(?:amazon{g})nova",
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

LIVER = re.compile(
    r"\b(?:s?got|s?ast|s?alt|[gy\u03b3]?-?ggt|ldh|alp|bilirubin|albumin|transaminase\w*|liver|hepat\w+"
    r"|enzymes?|lfts?|u/l|iu)\b",
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
    """Return what finds names that are sure wherever they stand: ours, and a study's own."""
    shapes = [shape.format(g=GAP, s=GAP + "?") for shape in FAMILIES]
    own = [_shape(variant) for name in names for variant in _variants(name) if _telling(variant)]
    plain = [_shape(name) for name in PLAIN]
    longest_first = sorted({*own, *plain}, key=lambda shape: (-len(shape), shape))
    maker = rf"(?:(?:{vendors()}|meta-llama|mistralai)/)?"
    body = "|".join([*longest_first, *shapes])
    return re.compile(START + f"{maker}(?:{body})" + SUFFIX.format(g=GAP) + END, re.IGNORECASE)


@lru_cache(maxsize=64)
def doubtful_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds names that may mean something else: ours, and a study's own."""
    own = [variant for name in names for variant in _variants(name) if not _telling(variant)]
    kept = [name for name in own if name.casefold() not in NEVER]
    shapes = sorted(
        {_shape(name) for name in [*AMBIGUOUS, *kept]}, key=lambda one: (-len(one), one)
    )
    return re.compile(START + f"(?:{'|'.join(shapes)})" + END + r"(?!-\w)", re.IGNORECASE)


NEVER = {"gpt", "ai", "llm", "model"}  # glutamate-pyruvate transaminase, and no names at all


# Cyrillic and Greek letters that are drawn like Latin ones.
LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u03bf",
    "ABEKMHOPCTXIJSaeopcyxijsdABEZHIKMNOPTXo",
)
BETWEEN = r"[-\u2010-\u2015_./\s\u00ad\u200b-\u200d\u2060\ufeff]"
LEAST_LETTERS = 8  # of a study's name that is sure however its letters are set apart


def folded(text: str) -> str:
    """Return a text of the same length with look-alike letters as the Latin ones they resemble."""
    if text.isascii():
        return text
    signs = (unicodedata.normalize("NFKC", one) for one in text)
    return "".join(
        new if len(new) == 1 else old for old, new in zip(text, signs, strict=True)
    ).translate(LOOKALIKES)


@lru_cache(maxsize=64)
def own_pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return what finds a study's own compound names, whatever stands between their letters."""
    own = [one for name in names if _compound(one := name.strip().rsplit("/", 1)[-1])]
    spread = [
        f"{BETWEEN}{{0,4}}".join(
            f"{BETWEEN}?".join(map(re.escape, token)) for token in _tokens(one)
        )
        for one in sorted(own, key=len, reverse=True)
    ]
    return re.compile(rf"(?<!\w)(?:{'|'.join(spread)})(?!\w)", re.IGNORECASE) if spread else None


def _compound(name: str) -> bool:
    """Whether a name is long, of parts, and has what ordinary words have not.

    That is a digit, a capital inside a word, or, in three parts or more, a family's name or a
    word in capitals: `progress-note-writer` stays a name that may mean something else.
    """
    tokens = _tokens(name)
    odd = re.search(r"\d|[^\W\d_A-Z][A-Z]", name) is not None
    if len(tokens) > 2 and not odd:
        family = {one.casefold() for one in AMBIGUOUS} & set(tokens)
        odd = bool(family) or re.search(r"[A-Z]{4}", name) is not None
    return len(tokens) > 1 and odd and sum(map(len, tokens)) >= LEAST_LETTERS


def vendors() -> str:
    """Return the alternatives of all makers, for use inside a pattern."""
    return "|".join(_shape(name) for name in [*PLAIN, "Mistral", "Cohere", *MAKERS])


def is_measurement(text: str, start: int, end: int) -> bool:
    """Whether a name that ends in a digit is a word and a measured number.

    GPT is also a liver enzyme: with a bare number among liver values it is no model.
    """
    if not text[end - 1].isdigit():
        return False
    liver = text[start : start + 3].casefold() == "gpt" and LIVER.search(
        text[max(0, start - 60) : end + 60]
    )
    return bool(liver) or UNIT.match(text, end) is not None


def _variants(name: str) -> Sequence[str]:
    """Return a model id as it may be written: without its maker, date or trailing parts."""
    short = name.strip().rsplit("/", 1)[-1]
    undated = re.sub(r"[-_@:.]?(?:20\d\d-?\d\d-?\d\d|\d{4,8})$", "", short)
    to_version = re.match(r"[^\W\d_]+[-_. ]?\d+(?:[-_.]\d{1,2}(?!\d))*[a-z]?(?![^\W_])", undated)
    found = [name.strip(), short, undated, to_version.group() if to_version else ""]
    return [
        one
        for one in dict.fromkeys(found)
        if re.search(r"[^\W\d_]", one)
        and sum(map(len, _tokens(one))) >= (2 if one == found[0] else 4)
    ]


def _telling(name: str) -> bool:
    """Whether a name can mean nothing else: several parts one of which is a number, or known."""
    tokens = _tokens(name)
    known = {tuple(_tokens(one)) for one in PLAIN}
    mixed = len(tokens) > 1 and any(token.isdigit() for token in tokens)
    return tuple(tokens) in known or (mixed and sum(map(len, tokens)) > 3)


def _tokens(name: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\d+", name.casefold())


def _shape(name: str) -> str:
    """Return a pattern of the name's parts, with any one separator or none between them."""
    return f"{GAP}?".join(re.escape(token) for token in _tokens(name))
