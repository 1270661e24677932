"""What the MedHELM paper's formula says a jury costs at most, to stand beside what it did cost.

The formula (the paper's Table 3; `utils/cost_table.py` of som-shahlab/medhelm): every juror reads
`judge_in` tokens and writes 4096 for each response, whatever it really writes:

    usd = (judge_in * sum of the jurors' input prices + n * 4096 * sum of their output prices) / 1e6

In the paper `judge_in` is the tokens of the generator's prompts + n * the longest response allowed.
Here it is the estimated tokens of the rendered prompts, which hold the response as it is and the
rubric too, which the paper does not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jury.call import Usage
from jury.cost import MILLION, JurorEstimate, price
from jury.panel import Juror, Panel

TOKENS_OUT = 4096
SAMPLE = 1000  # tokens whose price gives the rate; prices that rise with a call's size stay low


@dataclass(frozen=True, slots=True)
class Rates:
    """A juror's prices in US dollars per million tokens."""

    tokens_in: float
    tokens_out: float


@dataclass(frozen=True, slots=True)
class Share:
    """What one juror is given: tokens to read over all its calls, and how many calls.

    `rates` is None where no price is known.
    """

    tokens_in: int
    calls: int
    rates: Rates | None


@dataclass(frozen=True, slots=True)
class PaperBound:
    """The paper's upper bound.

    Attributes
    ----------
    tokens_in, tokens_out
        Of one juror, as in the paper; of the one with most where they differ.
    usd
        Of all jurors; None where the price of any is unknown.
    """

    tokens_in: int
    tokens_out: int
    usd: float | None

    @property
    def tokens(self) -> int:
        """Return the paper's "jury tokens"."""
        return self.tokens_in + self.tokens_out


def upper_bound(shares: Sequence[Share]) -> PaperBound:
    """Return the paper's upper bound of a jury; where all jurors share alike it is its formula."""
    return PaperBound(
        tokens_in=max((one.tokens_in for one in shares), default=0),
        tokens_out=max((one.calls for one in shares), default=0) * TOKENS_OUT,
        usd=_total([_usd(one) for one in shares]),
    )


def bound_of(panel: Panel, rows: Sequence[JurorEstimate], at: datetime) -> PaperBound:
    """Return the upper bound of the calls that an estimate counts, a row a juror of the panel."""
    return upper_bound(
        [
            Share(row.tokens_in, row.calls, rates(juror, at))
            for juror, row in zip(panel.juror, rows, strict=True)
        ]
    )


def rates(juror: Juror, at: datetime) -> Rates | None:
    """Return a juror's prices on a day, None where one is unknown; a simulated juror's are 0."""
    given = price(juror, Usage(SAMPLE, 0), at).usd
    taken = price(juror, Usage(0, SAMPLE), at).usd
    if given is None or taken is None:
        return None
    return Rates(given / SAMPLE * MILLION, taken / SAMPLE * MILLION)


def _usd(share: Share) -> float | None:
    if share.rates is None:
        return None
    tokens_out = share.calls * TOKENS_OUT
    per_million = share.tokens_in * share.rates.tokens_in + tokens_out * share.rates.tokens_out
    return per_million / MILLION


def _total(amounts: Sequence[float | None]) -> float | None:
    known = [one for one in amounts if one is not None]
    return sum(known) if len(known) == len(amounts) else None
