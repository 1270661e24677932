"""The expected score: the mean of a score's distribution, from the tokens' probabilities.

The score of a criterion stands at one place in the verdict that `jury/reading.py` accepted. Where the
endpoint tells how likely the token there was, and what else might have stood there, each point of
the scale has a probability, and the score is sum p x point / sum p. Nothing is guessed. The answer
is found among the tokens by its characters. A token counts for a point only if the number in it is
that point and no longer one can come of it. Where a number is written in several tokens, each is
looked at in turn; what then may be one point or another counts for none. Where less than
`LEAST_MASS` of the probability lies on the scale's points there is no score at all: the verdict is
missing, with its reason, and is not put in the place of the mean.

The idea is G-Eval's: Liu et al. (2023), EMNLP, arXiv:2303.16634.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from data.card import Reply, points_of
from data.rubric import Rubric, Scale
from data.schema import Status
from jury.call import Answer, Token
from jury.panel import Juror
from jury.parse import ParsedAnswer, TextSpan, member_spans, object_start, read_answer

# Of a score's probability. A server that keeps to the form by a grammar, as llama.cpp, tells what the
# model would have written without it: what it then writes is drawn from the points' shares among
# themselves. Below a half, most of what the model means is no point, and the shares say little of it.
LEAST_MASS = 0.5
LEAST_KNOWN = (
    0.95  # of what may lie on points: what is not known moves a mean on 1-5 by 0.2 at most
)
MOST_MASS = 1.001  # what servers round
NOT_SERVED = "the endpoint sends no log-probabilities that can be read"
OTHER_TEXT = "the tokens with log-probabilities do not spell the answer"
# What is not compared, as servers spell it otherwise in single tokens: blanks, and all beyond ASCII.
UNSEEN = bytes(sign for sign in range(256) if not 0x20 < sign < 0x7F)
NUMBER = re.compile(rb"\s*(-?\d*)(.*)", re.DOTALL)
ENDS = re.compile(rb"[\s,}\]\"]")


class NoDistribution(ValueError):
    """Why the distribution of a score is not known."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The probability of each point as the score of one criterion.

    Attributes
    ----------
    stated
        The point that stands in the answer.
    probabilities
        Point -> probability as the endpoint tells it, 0 to 1; points of none are left out.
    hidden
        The most that may lie on points besides, as alternatives that are not listed or not told apart.
    """

    stated: int
    probabilities: Mapping[int, float]
    hidden: float = 0.0

    @property
    def mass(self) -> float:
        """The probability of all points of the scale together, 0 to 1."""
        return float(sum(map(Fraction, self.probabilities.values())))

    @property
    def mean(self) -> float:
        """The expected score; computed in fractions, so that rounding never takes it off the scale."""
        shares = [(point, Fraction(share)) for point, share in self.probabilities.items()]
        return float(
            sum(point * share for point, share in shares) / sum(share for _, share in shares)
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as a study stores it."""
        shares = {str(point): share for point, share in sorted(self.probabilities.items())}
        return {"stated": self.stated, "probabilities": shares, "mass": self.mass}


def read_for(juror: Juror, answer: Answer, rubric: Rubric) -> ParsedAnswer:
    """Return the reading of an answer, with expected scores if the juror's panel asks for them."""
    parsed = read_answer(answer, rubric)
    return expected(parsed, answer, rubric) if juror.expected else parsed


def expected(parsed: ParsedAnswer, answer: Answer, rubric: Rubric) -> ParsedAnswer:
    """Return a reading with expected scores instead of the stated points, or why it has none."""
    if parsed.reply is None:
        return parsed
    try:
        by_criterion = distributions(answer, parsed.reply, rubric)
    except NoDistribution as error:
        return _without(parsed, str(error))
    stored = {name: distribution.to_json() for name, distribution in by_criterion.items()}
    for name, distribution in by_criterion.items():
        if why := _too_little(distribution):
            return replace(_without(parsed, f"{name}: {why}"), answer=stored)
    means = {name: distribution.mean for name, distribution in by_criterion.items()}
    return replace(parsed, reply=replace(parsed.reply, scores=means), answer=stored)


def distributions(answer: Answer, reply: Reply, rubric: Rubric) -> dict[str, Distribution]:
    """Return the distribution of each criterion's score in a verdict that was accepted.

    Raises
    ------
    NoDistribution
        If the endpoint serves none, or a score's place among the tokens cannot be told.
    """
    if not answer.tokens:
        raise NoDistribution(NOT_SERVED)
    places = score_places(answer.text, reply, rubric)
    tokenized = _AlignedAnswer(answer.text, answer.tokens)
    by_criterion = {}
    for name, span in places.items():
        stated = int(reply.scores[name])
        try:
            distribution = tokenized.distribution(span, rubric.scale_of(name))
            by_criterion[name] = Distribution(stated, *distribution)
        except NoDistribution as error:
            raise NoDistribution(f"{name}: {error}") from error
    return by_criterion


def score_places(text: str, reply: Reply, rubric: Rubric) -> dict[str, TextSpan]:
    """Return where in an answer the digits of each criterion's score stand, in characters.

    Raises
    ------
    NoDistribution
        If a score stands at several places, or is not written as the point it is.
    """
    start = object_start(text)
    if start is None:
        raise NoDistribution("the verdict is given more than once")
    own = dict(member_spans(text, start))
    places = {}
    for name, stated in points_of(reply.scores).items():
        value = dict(member_spans(text, own[name].start))["score"]
        literal = text[value.start : value.end]
        digits = literal.strip('"').strip()
        if digits != str(int(stated)):
            raise NoDistribution(
                f"{name}: the score is written {literal[:20]}, not as a bare point"
            )
        at = value.start + literal.index(digits)
        places[name] = TextSpan(at, at + len(digits))
    return places


class _AlignedAnswer:
    """An answer aligned with its tokens, character by character."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        spelt = [_seen(token.text) for token in tokens]
        tokens_text, answer = b"".join(spelt), _seen(text.encode("utf-8", "replace"))
        self._text, self._tokens = text, tokens
        self._first = tokens_text.find(answer)
        if self._first < 0 or tokens_text.find(answer, self._first + 1) >= 0:
            raise NoDistribution(OTHER_TEXT)
        self._starts = [0]
        for part in spelt:
            self._starts.append(self._starts[-1] + len(part))

    def distribution(self, span: TextSpan, scale: Scale) -> tuple[dict[int, float], float]:
        """Return the probability of each point at the place of a score, and the most that is hidden."""
        at = self._first + len(_seen(self._text[: span.start].encode("utf-8", "replace")))
        index = next(i for i, end in enumerate(self._starts[1:]) if end > at)
        before = _seen(self._tokens[index].text)[: at - self._starts[index]]
        shares: dict[int | None, float] = {}
        for point, share in _points(self._tokens[index:], before, "", scale):
            shares[point] = shares.get(point, 0.0) + share
        hidden = shares.pop(None, 0.0)
        if not shares:
            raise NoDistribution("none of the probability lies on points of the scale")
        return {point: share for point, share in shares.items() if point is not None}, hidden


def _points(
    tokens: Sequence[Token], before: bytes, begun: str, scale: Scale
) -> list[tuple[int | None, float]]:
    """Return points with their probabilities, given the digits that are already written.

    None stands for points that cannot be told, with the most that may lie on them.
    `before` is what the first token holds in front of the number.
    """
    if not tokens:
        return []
    token, rest = tokens[0], tokens[1:]
    if sum(share for _, share in token.options) > MOST_MASS:
        raise NoDistribution("the probabilities of one place add up to more than 1")
    options = [(text, share, _read(text, before, begun)) for text, share in token.options]
    several_digits = any(len(number.lstrip("-")) > 1 and not begun for _, _, (number, _) in options)
    shares: list[tuple[int | None, float]] = [(None, _unlisted(token, options, begun, scale))]
    for text, share, (number, after) in options:
        possible = [point for point in scale.points if str(point).startswith(number)]
        is_point = number in map(str, possible)
        if after and (is_point and ENDS.match(after)):
            shares.append((int(number), share))
        elif after or not number or not possible:
            continue
        elif is_point and len(possible) == 1:
            shares.append((int(number), share))
        elif text == token.text:
            shares += [(point, share * p) for point, p in _points(rest, b"", number, scale)]
        else:
            shares.append((int(number) if is_point and several_digits else None, share))
    return shares


def _unlisted(
    token: Token,
    options: Sequence[tuple[bytes, float, tuple[str, bytes]]],
    begun: str,
    scale: Scale,
) -> float:
    """Return the most that may lie on points which are not among a token's alternatives.

    The likeliest are listed, so that none of the others is likelier than the last of them.
    """
    listed = [number for _, _, (number, _) in options if number]
    missing = [
        point
        for point in map(str, scale.points)
        if point.startswith(begun) and not any(point.startswith(number) for number in listed)
    ]
    least = min((share for text, share, _ in options if text != token.text), default=1.0)
    return max(0.0, min(1.0 - sum(share for _, share, _ in options), len(missing) * least))


def _read(text: bytes, before: bytes, begun: str) -> tuple[str, bytes]:
    """Return the number that a token begins or continues, and the rest of the token."""
    if _seen(text).startswith(before):
        at = 0
        for sign in before:  # blanks are not counted
            at = text.index(sign, at) + 1
        rest = text[at:]
        if begun and ENDS.match(rest):
            return begun, rest
        if match := NUMBER.fullmatch(rest):
            return begun + match[1].decode(), match[2]
    return "", text


def _seen(text: bytes) -> bytes:
    return text.translate(None, UNSEEN)


def _too_little(distribution: Distribution) -> str:
    known = distribution.mass / (distribution.mass + distribution.hidden)
    if distribution.mass >= LEAST_MASS and known >= LEAST_KNOWN:
        return ""
    if known < LEAST_KNOWN:
        return (
            f"{distribution.mass:.3f} of the probability lies on points of the scale, and up to "
            f"{distribution.hidden:.3f} on points that the endpoint does not tell"
        )
    return (
        f"{distribution.mass:.3f} of the probability lies on points of the scale, and {LEAST_MASS:g} is "
        "needed for a mean"
    )


def _without(parsed: ParsedAnswer, why: str) -> ParsedAnswer:
    return replace(parsed, status=Status.NO_PROBABILITIES, reason=why, reply=None)
