"""Fuzz for time: which texts of 200 kB take longest to mask, search, lay out and read.

    python benchmarks/hostile_texts.py SECONDS [CHARACTERS [SEED]]

Texts are repeated combinations of what the patterns look for. Told is processor time.
"""

import random
import sys
import time
from collections.abc import Callable

from annotate.blind import find_self_naming, mask
from annotate.rating.text_html import body
from data.rubric import read_rubric
from data.rubrics.injection import holds_verdict
from jury.parse import LONGEST, parse

STUDY = ("nova", "house-mistral-x", "gpt-4o", "MyHospital-LM v2")
RUBRIC = read_rubric("generic")
VERDICT = "{" + ", ".join(f'"{one}": {{"score": 4}}' for one in RUBRIC.criteria) + "}"
NAMES = [
    "Claude",
    "claude-3",
    "GPT-4",
    "ChatGPT",
    "nova",
    "house-mistral-x",
    "h.o.u.s.e.",
    "gemini 1.5",
]
NAMES += [
    "sonnet 4.5",
    "llama-3-",
    "Qwen2.5-",
    "G P T - 4 o",
    "c l a u d e",
    "cl4ude",
    "cla ude",
    "gpt\u200b-4",
]
AROUND = [
    "I am",
    "as",
    "as an AI",
    "my",
    "this is",
    "model:",
    "he used",
    "patient",
    "language model",
    "LLM",
]
AROUND += [
    "salt",
    "hepat",
    "40 U/L",
    "created by",
    "als KI",
    "\u6211\u662f",
    "<think>",
    "</think>",
    "</s>",
]
AROUND += [
    "### assistant:",
    "[INST]",
    "\u0430",
    "e\u0301",
    "a&shy;b",
    "[author masked]",
    "*",
    "-",
    "_",
]
LINES = ["A: ", "[x] ", "AB:\n", "# x\n", "**a**\n", "HPI:\n", "a", "&", "<b>", "\n", "\t", "  "]
SCORES = [
    "{",
    '{"a":',
    '{"a":[',
    "1,",
    "[",
    "}",
    '"',
    "```",
    "4",
    "4/5",
    "1-5",
    "4,4,",
    "1 to 5",
    "4|4|",
]
SCORES += [
    "score: 4\n",
    "accuracy",
    "accuracy: 4",
    "step 1",
    "1 means",
    "\uff14",
    "\u4e94\u5206",
    "one",
    "if",
]
Reader = Callable[[str], object]
READERS: dict[str, tuple[Reader, list[str]]] = {
    "mask": (lambda text: mask(text, STUDY), NAMES + AROUND),
    "find": (lambda text: find_self_naming(text, STUDY), NAMES + AROUND),
    "lay out": (lambda text: body(text, folds=True), LINES + AROUND),
    "planted": (lambda text: holds_verdict(text, RUBRIC.criteria), SCORES + LINES),
    "answer": (lambda text: parse((VERDICT + text)[:LONGEST], RUBRIC), SCORES + LINES),
    "answer before": (lambda text: parse(text[-150_000:] + VERDICT, RUBRIC), SCORES + LINES),
}


def seconds(reader: Reader, text: str) -> float:
    """Return the processor time that a text takes."""
    began = time.process_time()
    reader(text)
    return time.process_time() - began


def main(budget: float, length: int = 200_000, seed: int = 1) -> None:
    """Give each reader an equal share of the time; print its slowest texts."""
    drawn = random.Random(seed)
    for name, (reader, units) in READERS.items():
        reader("warm")
        ends, taken = time.monotonic() + budget / len(READERS), []
        while time.monotonic() < ends:
            parts = drawn.choices(units, k=drawn.choice((1, 1, 2, 3, 5)))
            unit = "".join(part + drawn.choice(("", " ", " ", "\n", ", ")) for part in parts)
            text = (unit * (length // len(unit) + 1))[:length]
            taken.append((seconds(reader, text), unit))
        taken.sort(reverse=True)
        middle = taken[len(taken) // 2][0]
        print(f"{name}: {len(taken)} texts, median {middle:.3f} s, slowest:")
        for took, unit in taken[:3]:
            print(f"    {took:.3f} s  {unit!r}")


if __name__ == "__main__":
    main(float(sys.argv[1]), *map(int, sys.argv[2:]))
