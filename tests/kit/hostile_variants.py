"""Rubrics, layouts and languages in which answers made up to mislead are written, and what a kind is."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

from data.rubric import Criterion, Rubric, Scale, read_rubric

LANGUAGES = ("en", "de", "fr", "es")

TRANSLATED = {
    "de": {"accuracy": "Genauigkeit", "completeness": "Vollständigkeit", "clarity": "Klarheit"},
    "fr": {"accuracy": "Exactitude", "completeness": "Exhaustivité", "clarity": "Clarté"},
    "es": {"accuracy": "Exactitud", "completeness": "Integridad", "clarity": "Claridad"},
    "en": {"accuracy": "Correctness", "completeness": "Coverage", "clarity": "Readability"},
}

FOREIGN = {"de": "Kriterium", "fr": "Critère", "es": "Criterio", "en": "Aspect"}

WORDS = {
    "en": ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
    "de": [
        "null",
        "eins",
        "zwei",
        "drei",
        "vier",
        "fünf",
        "sechs",
        "sieben",
        "acht",
        "neun",
        "zehn",
    ],
    "fr": ["zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix"],
    "es": [
        "cero",
        "uno",
        "dos",
        "tres",
        "cuatro",
        "cinco",
        "seis",
        "siete",
        "ocho",
        "nueve",
        "diez",
    ],
}


def rubric(names: tuple[str, ...], low: int, high: int) -> Rubric:
    asked = [
        Criterion(name=one, question="?", anchors=dict.fromkeys(range(low, high + 1), "so"))
        for one in names
    ]
    return Rubric(
        name="hostile",
        version="1",
        audience="nurses",
        gold="never",
        scale=Scale(min=low, max=high),
        criterion=tuple(asked),
        prompt="{{response}} {{schema}}",
    )


RUBRICS = (
    read_rubric("generic"),
    rubric(("harm_avoided", "tone", "clarity", "dose-safety"), 0, 10),
    rubric(("completeness", "accuracy"), 1, 7),
)


@dataclass(frozen=True, slots=True)
class Variant:
    """One rubric, layout and language."""

    rubric: Rubric
    pretty: bool
    language: str

    @property
    def own(self) -> dict[str, int]:
        """Return what the juror means."""
        return dict.fromkeys(self.rubric.criteria, 2)

    @property
    def planted(self) -> dict[str, int]:
        """Return the scores of another verdict."""
        return dict.fromkeys(self.rubric.criteria, 5)

    def say(self, scores: Mapping[str, object]) -> str:
        """Return a whole verdict with these scores."""
        body = {
            name: {"explanation": WHY[self.language], "score": one} for name, one in scores.items()
        }
        return json.dumps(body, indent=2 if self.pretty else None, ensure_ascii=False)

    @property
    def verdict(self) -> str:
        """Return the juror's own verdict."""
        return self.say(self.own)

    @property
    def other(self) -> str:
        """Return the verdict that is not the juror's."""
        return self.say(self.planted)

    def fenced(self, body: str) -> str:
        """Return a body in a fence, where the layout has one."""
        return f"```json\n{body}\n```" if self.pretty else body

    def name(self, criterion: str) -> str:
        """Return a criterion's name in the variant's language."""
        place = self.rubric.criteria.index(criterion) + 1
        known = TRANSLATED[self.language].get(criterion)
        return known or f"{FOREIGN[self.language]} {chr(64 + place)}"

    def word(self, number: int) -> str:
        """Return a number in words."""
        return WORDS[self.language][number]

    def tell(self, texts: tuple[str, str, str, str]) -> str:
        """Return the text of the variant's language."""
        return texts[LANGUAGES.index(self.language)]


WHY = {
    "en": "The dose of 5 mg is given, the rash is left out.",
    "de": "Die Dosis von 5 mg steht da, der Ausschlag fehlt.",
    "fr": "La dose de 5 mg est donnée, l'éruption manque.",
    "es": "Consta la dosis de 5 mg, falta la erupción.",
}

VARIANTS = tuple(Variant(*one) for one in product(RUBRICS, (False, True), LANGUAGES))

Make = Callable[[Variant], str]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of answer: read as the juror's own verdict, or no verdict at all."""

    name: str
    make: Make
    is_read: bool = False


WRAPPED_OWN: dict[str, Callable[[Variant, dict[str, int]], str]] = {
    "python_repr": lambda v, s: str(json.loads(v.say(s))),
    "flat_single_quotes": lambda v, s: str(dict(s)),
    "capitalised": lambda v, s: named(v, s, str.title),
    "upper_case": lambda v, s: named(v, s, str.upper),
    "translated": lambda v, s: named(v, s, v.name),
    "translated_flat": lambda v, s: json.dumps({v.name(n): p for n, p in s.items()}),
    "translated_words": lambda v, s: json.dumps({v.name(n): v.word(p) for n, p in s.items()}),
    "yaml": lambda v, s: "\n".join(f"{n}:\n  score: {p}" for n, p in s.items()),
    "yaml_flat": lambda v, s: "\n".join(f"{n}: {p}" for n, p in s.items()),
    "yaml_translated": lambda v, s: "\n".join(f"{v.name(n)}: {p}" for n, p in s.items()),
    "table": lambda v, s: table_of(list(s), list(s.values())),
    "table_translated": lambda v, s: table_of([v.name(n) for n in s], list(s.values())),
    "table_down": lambda v, s: (
        "| x | y |\n|---|---|\n" + "\n".join(f"| {n} | {p} |" for n, p in s.items())
    ),
    "wrapped": lambda v, s: json.dumps({"verdict": json.loads(v.say(s))}),
    "wrapped_deep": lambda v, s: json.dumps({"a": {"b": [json.loads(v.say(s))]}}),
    "cut_off": lambda v, s: v.say(s)[:-3],
    "cut_early": lambda v, s: v.say(s)[:25],
    "wrapped_cut_off": lambda v, s: json.dumps({"verdict": json.loads(v.say(s))})[:-1],
    "unquoted_keys": lambda v, s: (
        "{" + ", ".join(f"{n.replace('-', '_')}: {{score: {p}}}" for n, p in s.items()) + "}"
    ),
    "comments": lambda v, s: v.say(s).replace("}", "} // lowered", 1),
    "trailing_comma": lambda v, s: v.say(s)[:-1].rstrip() + ",}",
    "missing_comma": lambda v, s: v.say(s).replace("},", "}", 1),
    "equals": lambda v, s: "; ".join(f"{n} = {p}" for n, p in s.items()),
    "arrows": lambda v, s: "\n".join(f"{n} \u2192 {p}" for n, p in s.items()),
    "bullets": lambda v, s: "\n".join(f"- **{n}**: {p}" for n, p in s.items()),
    "bullets_translated": lambda v, s: "\n".join(f"- **{v.name(n)}**: {p}" for n, p in s.items()),
    "fractions": lambda v, s: "\n".join(f"{n}: {p}/{v.rubric.scale.max}" for n, p in s.items()),
    "row": lambda v, s: "/".join(f"{p}" for p in s.values()),
    "row_in_brackets": lambda v, s: "(" + ", ".join(f"{p}" for p in s.values()) + ")",
    "list_of_objects": lambda v, s: json.dumps(
        [{"criterion": n, "score": p} for n, p in s.items()]
    ),
    "lines_of_objects": lambda v, s: "\n".join(
        json.dumps({"criterion": n, "score": p}) for n, p in s.items()
    ),
    "in_a_string": lambda v, s: (
        json.dumps({"answer": v.say(s)}) + " \n" + "\n".join(f"{n}: {p}" for n, p in s.items())
    ),
    "full_width": lambda v, s: "\n".join(f"{n}\uff1a{chr(0xFF10 + p)}" for n, p in s.items()),
    "circled": lambda v, s: "\n".join(f"{n}: {chr(0x245F + p)}" for n, p in s.items()),
    "cyrillic_names": lambda v, s: named(
        v, s, lambda n: n.replace("a", "\u0430").replace("o", "\u043e").replace("e", "\u0435")
    ),
    "words": lambda v, s: "\n".join(f"{n}: {v.word(p)}" for n, p in s.items()),
    "stars": lambda v, s: "\n".join(f"{v.name(n)} " + "\u2605" * p for n, p in s.items()),
    "xml": lambda v, s: "".join(f"<{n}><score>{p}</score></{n}>" for n, p in s.items()),
    "assignment": lambda v, s: "\n".join(f"score[{n}] = {p}" for n, p in s.items()),
    "prose": lambda v, s: " ".join(f"I give {n} a {p}." for n, p in s.items()),
    "alone": lambda v, s: "\n".join(f"{n}\n{p}" for n, p in s.items()),
}


def named(v: Variant, scores: dict[str, int], how: Callable[[str], str]) -> str:
    return json.dumps(
        {how(n): {"explanation": "w", "score": p} for n, p in scores.items()}, ensure_ascii=False
    )


def table_of(heads: list[str], points: list[int]) -> str:
    return f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n| {' | '.join(map(str, points))} |"
