"""Finding the blocks in which models reason before they answer, and the marks of chat formats."""

import re
from collections.abc import Iterator
from itertools import zip_longest

_WORD = r"(?:ant(?:ml)?:?|seed:|longcat_)?(?:think(?:ing)?|thought|reasoning|reflection|scratchpad)"
_OPEN, _CLOSE = r"(?:<|&lt;|\u25c1)", r"(?:>|&gt;|\u25b7)"
BEGIN = (
    rf"{_OPEN}{_WORD}(?:\s[^<>\n]{{0,60}})?{_CLOSE}|(?-i:\[THINK\])"
    r"|<\|(?:begin_of_thought|start_thinking)\|>|<unused94>(?:thought)?|<\|?channel\|?>\s*(?:analysis|thought)"
)
FINISH = (
    rf"{_OPEN}/{_WORD}{_CLOSE}|(?-i:\[/THINK\])"
    r"|<\|(?:end_of_thought|end_thinking)\|>|<unused95>|<channel\|>"
    r"|(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final(?:<\|message\|>)?|<\|end\|>"
)
# What chat formats put around what is said; it tells the family of the author.
FORMAT = (
    r"<\|(?:im_start|im_end|im_sep|endoftext|endofprompt|eot_id|eom_id|begin_of_text|end_of_text"
    r"|start_header_id|end_header_id|start|end|message|return|call|channel|constrain|assistant|user"
    r"|system|end_of_turn|start_of_turn|begin\u2581of\u2581sentence|end\u2581of\u2581sentence|tool_call|python_tag"
    r"|observation|endofturn|eos|bos|turn|sep|end_of_role|start_of_role)\|>"
    r"|<(?:start_of_turn|end_of_turn|bos|eos)>|\A\s*<s>|</s>(?=\s*\Z)|### ?(?:assistant|instruction|human):|\[/?INST\]|<</?SYS>>"
)
_BLOCK = re.compile(rf"(?:{BEGIN})|(?P<finish>{FINISH})", re.IGNORECASE)
_FORMAT = re.compile(FORMAT, re.IGNORECASE)
_HEADING = re.compile(
    r"\A(?:ok(?:ay)?|alright|hmm)\W+(?:so\W+)?(?:the user|let me|let's|i need to)\b|\A(?:the user|we need to)\b"
    r"|\A\W*(?:thinking|thought|chain[- ]of[- ]thought|reasoning)(?: process)?(?:\.\.\.|\s*:)",
    re.IGNORECASE,
)
Span = tuple[int, int]


def blocks(text: str) -> tuple[list[Span], list[Span]]:
    """Return what surely is reasoning of a machine, and what may be.

    A block that begins and finishes is sure as a whole, unless nothing but white space stands
    outside: then its tags are. Of a block with one of the two tags the tag is sure, and what it
    would reach to, the beginning or the end of the text, possible.
    """
    sure, possible = _blocks(text)
    outside = _outside(text, sure)
    if sure and not re.search(r"\w", outside):
        sure, possible = [match.span() for match in _BLOCK.finditer(text)], []
    if heading := _HEADING.match(text):
        possible.append(heading.span())
    return sure, possible


def formats(text: str) -> Iterator[Span]:
    """Find the marks of chat formats."""
    return (match.span() for match in _FORMAT.finditer(text))


def _blocks(text: str) -> tuple[list[Span], list[Span]]:
    sure: list[Span] = []
    possible: list[Span] = []
    begun: list[re.Match[str]] = []
    at = 0
    for tag in _BLOCK.finditer(text):
        if tag["finish"] is None:
            begun.append(tag)
        elif begun:
            sure.append((begun[0].start(), tag.end()))
            begun, at = [], tag.end()
        elif not _only_format(tag.group()):
            sure.append(tag.span())
            possible.append((at, tag.start()))
            at = tag.end()
    for tag, following in zip_longest(begun, begun[1:]):
        sure.append(tag.span())
        possible.append((tag.end(), following.start() if following else len(text)))
    return sure, [span for span in possible if text[slice(*span)].strip()]


def _only_format(tag: str) -> bool:
    """Tell whether a tag ends messages too, and by itself says nothing of reasoning."""
    return tag.startswith("<|end|>") or "final" in tag.casefold()


def _outside(text: str, spans: list[Span]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts.append(text[at:start])
        at = end
    return "".join([*parts, text[at:]])
