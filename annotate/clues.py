"""What in a text says who wrote it: introductions, provenance and plain names.

Each search yields places of the text. Whether a doubtful name is a person or a model is
read from its sentence: a title, a surname, a patient's words, a laboratory value.
"""

import re
from collections.abc import Iterator

from annotate.authors import doubtful_pattern, is_measurement, own_pattern, plain_pattern, vendors

Span = tuple[int, int]

MAKER = rf"(?:{vendors()})(?!\w)"
MADE = r"(?:created|developed|made|trained|built|designed|powered|provided|released)\s+by\s+"
KIND = r"(?:(?:large|medical|clinical|helpful|virtual)\s+)*"
SMART = r"(?:AI|A\.I\.|artificial[- ]intelligence)"
THING = r"(?:language\s+model|model|assistant|chatbot|system|program)"
MACHINE = (
    rf"(?:(?:(?:a|an|the|your)\s+)?{KIND}"
    rf"(?:{SMART}(?:[- ](?:based|powered))?\s+{KIND}{THING}|language\s+model|LLM|chatbot)"
    rf"|an\s+{SMART}(?=\W*$|\s*[,.;:!?]|\s+(?:and|that|so|with|not|developed|created|trained|made|I)\b))"
)
WHOLE = rf"(?P<it>{MACHINE}(?:,?\s+{MADE}{MAKER})?)"
_DESCRIPTIONS = (
    # "As an AI language model developed by ..., I cannot"
    rf"\bas\s+{WHOLE}(?=\s*,|\s+(?:I|my|developed|trained|created)\b)",
    rf"\b(?:I\s+am|I['\u2019]m)\s+(?:just\s+|only\s+|actually\s+)?{WHOLE}(?!\w)",
    rf"\bI\s+(?:was|am|have\s+been)\s+(?:\w+\s+)?{MADE}(?P<it>{MAKER})",
    rf"\b(?:language\s+model|AI\s+{THING}|chatbot|LLM),?\s+(?:\w+\s+)?{MADE}(?P<it>{MAKER})",
)
DESCRIPTIONS = [re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in _DESCRIPTIONS]


def self_descriptions(text: str) -> Iterator[Span]:
    """Find machines that say what they are, and who made them."""
    for pattern in DESCRIPTIONS:
        for match in pattern.finditer(text):
            if not _THIRD_PARTY.search(_before(text, match.start("it"))):
                yield match.span("it")


PEOPLE = (
    r"\b(?:patients?|pts?|he|she|they|mother|father|wife|husband|partner|daughter|son|family|parents?"
    r"|mom|mum|dad|caregiver|friend|you)\b"
)
USED = (
    r"\b(?:ask(?:ed|ing|s)?|us(?:ed|es|ing|e)|consult(?:ed|ing|s)?|read|search(?:ed|ing)|googled"
    r"|look(?:ed|ing)|tried|talk(?:ed|ing|s)|chat(?:ted|ting|s)|spoke|typed|queried|told|according)\b"
)
_THIRD_PARTY = re.compile(rf"{PEOPLE}[^.!?\n]*{USED}(?:\W+\w+){{0,4}}\W*$", re.IGNORECASE)


def plain_names(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find names that mean nothing else, but for those that someone else is said to use."""
    for match in plain_pattern(names).finditer(text):
        if _is_name(text, match) and not _THIRD_PARTY.search(_before(text, match.start())):
            yield match.span()


def own_names(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find a study's own compound names, with anything or nothing between their letters."""
    pattern = own_pattern(names)
    for match in pattern.finditer(text) if pattern else ():
        if not is_measurement(text, *match.span()):
            yield match.span()


_WORD_AND_NUMBER = re.compile(
    r"gpt[\s\u00a0./]\d(?:\.\d)?|(?:claude|gemini|gemma)[\s\u00a0]\d", re.IGNORECASE
)


def _is_name(text: str, match: re.Match[str]) -> bool:
    """Whether the match is no measured value, such as GPT 4 U/L, and no Claude with a number."""
    alone = _WORD_AND_NUMBER.fullmatch(match.group())
    return not alone and not is_measurement(text, *match.span())


INTRODUCING = (
    r"(?:\bI\s+am|\bI['\u2019]m|\bmy\s+name\s+is|\bcall\s+me|\bthis\s+is|\b(?:response|answer|summary|note)"
    r"\s+(?:by|from)|\b(?:generated|written|drafted|produced|prepared|answered|summari[sz]ed)\s+"
    r"(?:by|with|using)|^\W*(?:model|assistant|author|llm|generator|generated\s+by)\s*:|\bas)\W{1,3}$"
)
_INTRODUCING = re.compile(INTRODUCING, re.IGNORECASE | re.MULTILINE)
_WEAK = re.compile(
    r"(?:my\s+name\s+is|call\s+me|this\s+is|(?:written|prepared|drafted)\s+by)\W*$", re.IGNORECASE
)
_AS = re.compile(r"\bas\W*$", re.IGNORECASE)
_FIRST_PERSON = re.compile(
    r"\s*,\s*(?:I\b|I['\u2019]|my\b|an?\s+(?:AI|large|language))", re.IGNORECASE
)
_MACHINE = re.compile(
    r"\b(?:AI|artificial intelligence|language model|LLM|chatbot"
    r"|(?<!physician )(?<!medical )(?<!nursing )assistant)\b"
)
_HUMAN = re.compile(
    r"\b(?:year[- ]old|patients?|mother|father|wife|husband|daughter|son|nurse|doctor|dr|physician|pain|here for"
    r"|appointment|calling|zodiac|horoscope|star sign|my sign|leo|virgo|taurus|libra|aries|scorpio)\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"^\W*(?:patient|pt|doctor|dr|nurse|clinician|guest|mother|father|family)\w*\W*[\]:]",
    re.IGNORECASE,
)
_SURNAME = re.compile(r"[ \u00a0](?!AI\b|Assistant|Model|Opus|Sonnet|Haiku|Pro\b|Flash|I\b)[A-Z]\w")


def introductions(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find doubtful names by which a text introduces its author."""
    for match in doubtful_pattern(names).finditer(text):
        before, after = _before(text, match.start()), _after(text, match.end())
        thing = match.group().casefold() in THINGS
        if _INTRODUCING.search(before) and _introduces_author(before, after, thing):
            yield match.span()


THINGS = {"bard", "copilot", "gemini", "grok", "llama", "mistral", "perplexity"}  # no one's name


def _introduces_author(before: str, after: str, thing: bool) -> bool:
    sentence = before + " " + after
    if _SURNAME.match(after) or _SPEAKER.search(before):
        return False
    if _MACHINE.search(sentence):
        return not _AS.search(before) or _FIRST_PERSON.match(after) is not None
    if _AS.search(before):
        return _FIRST_PERSON.match(after) is not None
    return (thing or not _WEAK.search(before)) and not _HUMAN.search(sentence)


_TITLE = re.compile(
    r"\b(?:mr|mrs|ms|miss|dr|prof|mme|monsieur|sir|st|jean|marie|pierre)\.?[ -]$", re.IGNORECASE
)
_THING = re.compile(
    r"[ -]?(?:valve|regurg|stenosis|prolapse|annul|insufficiency|wind|antibod|nanobod|derived"
    r"|single|vhh|serum|wool|robot|surgical|stent|trial|laser|zodiac|sign\b|constellation)",
    re.IGNORECASE,
)


def doubtful_names(text: str, names: tuple[str, ...]) -> Iterator[Span]:
    """Find names that may betray an author, less those that plainly are something else."""
    for match in plain_pattern(names).finditer(text):
        if not is_measurement(text, *match.span()):
            yield match.span()
    for match in doubtful_pattern(names).finditer(text):
        before, after = text[max(0, match.start() - 12) : match.start()], text[match.end() :][:30]
        if not (_TITLE.search(before) or _THING.match(after) or _SURNAME.match(after)):
            yield match.span()


def _before(text: str, place: int) -> str:
    """Return the sentence up to a place."""
    return re.split(r"[.!?]\s|\n", text[max(0, place - 200) : place])[-1]


def _after(text: str, place: int) -> str:
    """Return the sentence from a place on."""
    return re.split(r"[.!?](?:\s|$)|\n", text[place : place + 200])[0]
