"""Context windows: how much a juror can read and write in one request, and what does not fit.

Tokens are estimated from the length of a text: each model has a tokenizer of its own, and most are
not published.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache
from math import ceil
from typing import TYPE_CHECKING

from jury.call import TOO_LONG

if TYPE_CHECKING:
    from jury.panel import Juror

CHARACTERS_PER_TOKEN = 3.5
# Bytes of UTF-8 / 3.5, against four tokenizers: of 400 English clinical dialogues, notes and answers
# none took more than 1.03 times as many tokens, German prose 1.05. Lists of web addresses take up to
# 1.6 and tables of laboratory values up to 2.3 times as many; what is let through and does not fit
# is refused by the vendor unbilled, while what is held back for nothing loses a judgement.
WINDOW_MARGIN = 1.1
WORD = re.compile(r"\w+")
ASCII_WORDS = bytes(sign if chr(sign).isalnum() or sign == ord("_") else 32 for sign in range(256))
# No tokenizer in use puts two words into one token, so that a prompt has more tokens than words (1.3 to
# 1.6 times as many in English). A host that reports fewer has read a part of it. No window is as small
# as `SMALLEST_WINDOW`: a host that reports less counts wrongly, and that says nothing of what it read.
WORDS_READ = 0.8
SMALLEST_WINDOW = 512
# Tokenizers differ by a factor of 1.6 at most on texts in ASCII, on other scripts by up to three.
OF_OTHERS, OF_OTHERS_ABROAD = 0.5, 0.3
_PART = "it has read a part of the text; start it with a larger context"
CUT_WORDS = f"the host reports {{}} tokens of input where the prompt has {{}} words: {_PART}"
CUT_OTHERS = f"the host reports {{}} tokens of input where another juror's host read {{}} for the same prompt: {_PART}"


class WindowSource(StrEnum):
    """Who says how large a context window is."""

    PANEL = "panel"
    PRICE_LIST = "price_list"
    SIMULATED = "simulated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PromptSize:
    """A prompt's size against the context window of the juror that is to read it.

    Attributes
    ----------
    tokens
        Of the prompt, estimated.
    window
        Tokens that the juror can read and write in one request; None where nobody says.
    answer
        Tokens that are kept for the answer: the juror's `max_tokens`.
    """

    tokens: int
    window: int | None
    answer: int

    @property
    def needed(self) -> int:
        """Tokens that the window must have, the estimate's error included."""
        return ceil(self.tokens * WINDOW_MARGIN) + self.answer

    @property
    def is_too_long(self) -> bool:
        """Whether the prompt is known not to fit."""
        return self.window is not None and self.needed > self.window

    @property
    def reason(self) -> str:
        """Why the juror is not asked, as the study stores it."""
        return (
            f"{TOO_LONG}: about {self.tokens} tokens, with {self.answer} kept for the answer, in a "
            f"context window of {self.window}"
        )


@dataclass(frozen=True, slots=True)
class WindowUse:
    """What the prompts of a run take of one juror's context window.

    Attributes
    ----------
    tokens, source
        The window, None where nobody says, and who says so.
    max_tokens
        Tokens that each answer may take of it.
    longest_tokens, longest_response
        The longest prompt, in estimated tokens, and the response that it is about; 0 and "" where
        there is nothing to ask.
    too_long
        Number of responses whose prompt does not fit.
    """

    tokens: int | None = None
    source: WindowSource = WindowSource.UNKNOWN
    max_tokens: int = 0
    longest_tokens: int = 0
    longest_response: str = ""
    too_long: int = 0

    def plus(self, size: PromptSize, response: str, *, is_first: bool) -> "WindowUse":
        """Return the use with one more prompt; `is_first` of those about its response."""
        longer = size.tokens > self.longest_tokens
        return replace(
            self,
            longest_tokens=size.tokens if longer else self.longest_tokens,
            longest_response=response if longer else self.longest_response,
            too_long=self.too_long + (size.is_too_long and is_first),
        )


def window_use(juror: "Juror") -> WindowUse:
    """Return a juror's context window, of which nothing is used yet."""
    tokens, source = juror.context_window, WindowSource.PANEL
    if tokens is None and juror.simulated:
        source = WindowSource.SIMULATED
    elif tokens is None:
        tokens = _listed(juror.model, juror.base_url)
        source = WindowSource.UNKNOWN if tokens is None else WindowSource.PRICE_LIST
    return WindowUse(tokens, source, juror.max_tokens)


def prompt_size(juror: "Juror", prompt: str) -> PromptSize:
    """Return the size of a prompt against the juror's context window.

    Counted in bytes, which for Latin letters are characters: other scripts take more tokens each.
    """
    tokens = ceil(len(prompt.encode("utf-8", "replace")) / CHARACTERS_PER_TOKEN)
    return PromptSize(tokens, window_use(juror).tokens, juror.max_tokens)


def why_cut(prompt: str, tokens_in: int | None, others: int = 0) -> str:
    """Return why a reported input is far below what was sent, empty if it is not.

    `others` is the most that another juror's host reported for the same prompt, 0 if none did.
    """
    if tokens_in is None or tokens_in < SMALLEST_WINDOW:
        return ""
    words, share = _words(prompt), OF_OTHERS if prompt.isascii() else OF_OTHERS_ABROAD
    if tokens_in < WORDS_READ * words:
        return CUT_WORDS.format(tokens_in, words)
    if tokens_in < share * others:
        return CUT_OTHERS.format(tokens_in, others)
    return ""


@lru_cache(maxsize=128)  # the jurors of a panel are asked about one prompt at about one time
def _words(prompt: str) -> int:
    if prompt.isascii():  # a fifth of the time of the expression, with the same words
        return len(prompt.encode().translate(ASCII_WORDS).split())
    return len(WORD.findall(prompt))


@cache
def _listed(model: str, base_url: str) -> int | None:
    from genai_prices.data_snapshot import get_snapshot  # a megabyte

    try:
        _, known = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return None
    return known.context_window
