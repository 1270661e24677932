"""Costs in US dollars: of a call, and the most that it can cost."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any

from data.calls import Status, TokenCosts, token_costs
from data.errors import BadPanel
from jury.call import Answer, Usage
from jury.panel import Juror, Panel
from jury.window import CHARACTERS_PER_TOKEN, WindowUse

MILLION = 1_000_000
ROUNDING = 1e-9
CACHE_WRITE = 1.25  # of the price of input, at Anthropic and OpenAI
WORDS_OUT_PER_CRITERION = 100
FORM_TOKENS = 1_000
BATCH = {"processing": "batch"}
TOKENS_OUT = 4096
SAMPLE = 1000  # tokens whose price gives the rate; prices that rise with a call's size stay low


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a call in US dollars, None where no price is known, and the source of the price.

    Attributes
    ----------
    usd_cached, usd_cache_write, usd_out
        What of it was for input read from a cache, for input written to one, and for output,
        reasoning included. The rest was for other input.
    """

    usd: float | None
    source: str
    usd_cached: float | None = None
    usd_cache_write: float | None = None
    usd_out: float | None = None

    def of(self, usage: Usage) -> TokenCosts:
        """Return a call's tokens by kind with what each kind cost."""
        tokens = (usage.tokens_in, usage.tokens_cached, usage.tokens_cache_write)
        amounts = (self.usd, self.usd_cached, self.usd_cache_write, self.usd_out)
        return token_costs((*tokens, usage.tokens_out, usage.tokens_reasoning), amounts)


Pricing = Callable[[Juror, Usage, datetime], Price]


@dataclass(frozen=True, slots=True)
class JurorEstimate:
    """An estimate, before a run, of one juror's calls, tokens and cost.

    Attributes
    ----------
    tokens_in
        Estimated at 3.5 characters a token.
    usd_likely
        With 100 tokens of answer a criterion; a reasoning model thinks on top of that.
    usd_most
        With every answer as long as `max_tokens` allows, as the MedHELM paper reckons. None
        where no price is known. Requests that are repeated are not in it; --max-usd is.
    window
        What the prompts take of its context window. Those that do not fit are in no other figure.
    at_once
        How many calls to it run at a time; at an address in the house 1 where nobody says how many.
    seconds
        What its calls take at the median of its earlier ones in the study; None where there is none.
    """

    juror: str
    calls: int = 0
    tokens_in: int = 0
    usd_likely: float | None = 0.0
    usd_most: float | None = 0.0
    window: WindowUse = field(default_factory=WindowUse)
    at_once: int = 1
    seconds: float | None = None

    def plus(self, juror: Juror, prompt: str, criteria: int, at: datetime) -> "JurorEstimate":
        """Return the estimate with one more call."""
        tokens = round(len(prompt) / CHARACTERS_PER_TOKEN)
        likely = min(juror.max_tokens, WORDS_OUT_PER_CRITERION * criteria)
        return replace(
            self,
            calls=self.calls + 1,
            tokens_in=self.tokens_in + tokens,
            usd_likely=total([self.usd_likely, price(juror, Usage(tokens, likely), at).usd]),
            usd_most=total([self.usd_most, price(juror, Usage(tokens, juror.max_tokens), at).usd]),
        )


def price(juror: Juror, usage: Usage, at: datetime) -> Price:
    """Return the cost of one call: by the panel's own price, or by genai-prices on that day.

    Every call is priced alone, since prices depend on the size of a call. Without token counts,
    or for a model that nobody has a price for, the cost is unknown, which is not 0.
    """
    return _priced(juror, usage, lambda: _listed(juror, usage, at))


def batch_price(juror: Juror, usage: Usage, at: datetime) -> Price:
    """Return the cost of one request in a batch, at the price list's rate for batches.

    A price that the panel gives is taken as it stands, since nobody but its author knows whether
    it is one for batches; a model with no batch rate on the list counts in full.
    """
    return _priced(juror, usage, lambda: _listed_in_batch(juror, usage, at))


def _priced(juror: Juror, usage: Usage, listed: Callable[[], Price]) -> Price:
    if juror.simulated:
        return no_cost("simulated")
    if juror.usd_per_million_in == 0 == juror.usd_per_million_out:
        return no_cost("panel: 0, however many tokens")
    if usage.tokens_in is None or usage.tokens_out is None:
        return Price(None, "unknown: the endpoint gave no count of tokens that can be believed")
    return _by_panel(juror, usage) or listed()


def no_cost(source: str) -> Price:
    """Return a cost of 0 with its reason."""
    return Price(0.0, source, 0.0, 0.0, 0.0)


def _by_panel(juror: Juror, usage: Usage) -> Price | None:
    """Return the cost of a call at the panel's own price, None if the panel gives none.

    A token read from a cache counts as any other, as nobody says otherwise; one written to a
    cache at what both vendors who bill that take for it.
    """
    written, cached = usage.tokens_cache_write or 0, usage.tokens_cached or 0
    usd = panel_usd(juror, usage.tokens_in or 0, usage.tokens_out or 0)
    if usd is None:
        return None
    usd_in, usd_out = juror.usd_per_million_in or 0.0, juror.usd_per_million_out or 0.0
    return Price(
        usd + written * (CACHE_WRITE - 1) * usd_in / MILLION,
        f"panel: {usd_in:g} in, {usd_out:g} out per million",
        cached * usd_in / MILLION,
        written * CACHE_WRITE * usd_in / MILLION,
        (usage.tokens_out or 0) * usd_out / MILLION,
    )


def panel_usd(juror: Juror, tokens_in: int, tokens_out: int) -> float | None:
    """Return the cost of tokens at the panel's own price, None if the panel gives none.

    A simulated juror's price is made up and nothing is spent at it: `price` says 0.
    """
    if juror.usd_per_million_in is None or juror.usd_per_million_out is None:
        return None
    millionths = tokens_in * juror.usd_per_million_in + tokens_out * juror.usd_per_million_out
    return millionths / MILLION


def billed(juror: Juror, answer: Answer, at: datetime) -> Price:
    """Return the cost of a request, however it ended.

    Where a request left and no answer came, nobody knows, nor where a gateway grew tired of waiting
    for one; where no connection came about, nothing left, and that is nothing at any price.
    """
    if answer.unsent:
        return no_cost("no connection: not sent")
    if answer.http in (200, None) or answer.status == Status.TIMEOUT:
        return price(juror, answer.usage, at)
    return unbilled(juror, answer.http, at)


def unbilled(juror: Juror, status: int | None, at: datetime) -> Price:
    """Return the cost of a request that was refused with an HTTP error: nothing was produced."""
    if price(juror, Usage(0, 0), at).usd is None:
        return Price(None, "unknown: no price is known for this model")
    return no_cost(f"HTTP {status}: not billed")


def worst_case(
    juror: Juror, sent: str, at: datetime, priced: Pricing = price, *, marked: bool = False
) -> float | None:
    """Return the most that a call can cost, None where no price is known.

    A token is at least one byte, so a text never has more tokens than bytes; a thousand are
    added for the form of the answer. A listed model may bill the writing of its whole input to a
    cache by itself; at a panel's price only what is `marked` is written.
    """
    tokens = len(sent.encode("utf-8", "replace")) + FORM_TOKENS
    own = juror.usd_per_million_in is not None
    writes = (None, tokens) if (marked if own else cache_writes_cost(juror, at.date())) else (None,)
    usages = [Usage(tokens, juror.max_tokens, tokens_cache_write=write) for write in writes]
    amounts = [priced(juror, usage, at).usd for usage in usages]
    known = [amount for amount in amounts if amount is not None]
    return max(known) if len(known) == len(amounts) else None


def above_worst(juror: Juror, usage: Usage, usd: float | None, worst: float | None) -> str:
    """Return why a call exceeded its limits, empty if it did not.

    An endpoint that bills more than it was allowed to write, or more than the call could cost,
    would pass any cap. Where nothing is billed it does no harm.
    """
    if not usd:
        return ""
    if usage.tokens_out is not None and usage.tokens_out > juror.max_tokens:
        return (
            f"the endpoint bills {usage.tokens_out} tokens of output where max_tokens = "
            f"{juror.max_tokens} allows no more; no cap can be kept with it"
        )
    if worst is not None and usd > worst * (1 + ROUNDING):
        return f"the endpoint bills ${usd:.6f} for a call that can cost ${worst:.6f} at most"
    return ""


def refuse_unpriced(panel: Panel, at: datetime) -> None:
    """Raise BadPanel if a juror's price is not known, so that a cap could not be kept."""
    for juror in panel.juror:
        if worst_case(juror, "", at) is None:
            raise BadPanel(
                f"panel {panel.name}, juror {juror.name}: no price is known for {juror.model} at "
                f"{juror.host}, so a cap cannot be kept; add usd_per_million_in and "
                "usd_per_million_out to the juror (0 counts at private addresses only), or leave out --max-usd "
                "and the study's budget (`medjury study settings budget none`)"
            )


def _listed_in_batch(juror: Juror, usage: Usage, at: datetime) -> Price:
    full, batch = _listed(juror, usage, at), _listed(juror, usage, at, BATCH)
    if batch.usd is None:
        return batch
    lower = full.usd is not None and batch.usd < full.usd
    return replace(batch, source=f"{batch.source}, {'batch' if lower else 'no batch rate listed'}")


def _listed(
    juror: Juror, usage: Usage, at: datetime, context: dict[str, str] | None = None
) -> Price:
    """Return the price by the list that ships with genai-prices; nothing is fetched."""
    calculated = _calculated(juror, usage, at, context)
    if calculated is None:
        return Price(None, f"unknown: not in {_list_name()}")
    return Price(
        float(calculated.total_price),
        f"{_list_name()}: {calculated.provider.id}/{calculated.model.id}",
        _listed_part(calculated, usage, usage.tokens_cached, "cache_read_mtok"),
        _listed_part(calculated, usage, usage.tokens_cache_write, "cache_write_mtok"),
        float(calculated.output_price),
    )


def _listed_part(calculated: Any, usage: Usage, tokens: int | None, rate: str) -> float:
    from genai_prices.types import calc_unit_price

    own = getattr(calculated.model_price, rate) or calculated.model_price.input_mtok
    return float(calc_unit_price(own, tokens, usage.tokens_in or 0, MILLION)) if tokens else 0.0


@lru_cache(maxsize=64)
def cache_writes_cost(juror: Juror, day: date) -> bool:
    """Return whether the price list has a rate for a model's cache writes."""
    calculated = _calculated(juror, Usage(SAMPLE, 0), datetime.combine(day, time(12), UTC))
    return calculated is not None and calculated.model_price.cache_write_mtok is not None


def _calculated(
    juror: Juror, usage: Usage, at: datetime, context: dict[str, str] | None = None
) -> Any:
    import genai_prices  # a megabyte of prices, needed only once something has a price

    counts: dict[str, Any] = {
        "input_tokens": usage.tokens_in,
        "output_tokens": usage.tokens_out,
        "cache_read_tokens": usage.tokens_cached,
        "cache_write_tokens": usage.tokens_cache_write,
    }
    try:
        return genai_prices.calc_price(
            genai_prices.Usage(**counts),
            juror.model,
            provider_api_url=juror.base_url,
            genai_request_timestamp=at,
            price_context=context,
        )
    except LookupError:
        return None


@cache
def _list_name() -> str:
    return f"genai-prices {version('genai-prices')}"


@dataclass(frozen=True, slots=True)
class Rates:
    """A juror's prices in US dollars per million tokens."""

    tokens_in: float
    tokens_out: float


@dataclass(frozen=True, slots=True)
class PaperBound:
    """The MedHELM paper's upper bound of a jury's cost.

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


def upper_bound(rows: Sequence[JurorEstimate], prices: Sequence[Rates | None]) -> PaperBound:
    """Return the upper bound of a jury's cost by the MedHELM paper's formula, of each juror's calls.

    The formula (its Table 3; `utils/cost_table.py` of som-shahlab/medhelm), where all jurors share
    alike: every juror reads `judge_in` tokens and writes 4096 a response, whatever it writes:

        usd = (judge_in * sum of the input prices + n * 4096 * sum of the output prices) / 1e6

    In the paper `judge_in` is the tokens of the generator's prompts + n * the longest response
    allowed. Here it is the estimated tokens of the rendered prompts, which hold the response as it
    is and the rubric too, which the paper does not count.
    """
    amounts = [
        None
        if rate is None
        else (row.tokens_in * rate.tokens_in + row.calls * TOKENS_OUT * rate.tokens_out) / MILLION
        for row, rate in zip(rows, prices, strict=True)
    ]
    return PaperBound(
        tokens_in=max((row.tokens_in for row in rows), default=0),
        tokens_out=max((row.calls for row in rows), default=0) * TOKENS_OUT,
        usd=total(amounts),
    )


def rates(juror: Juror, at: datetime) -> Rates | None:
    """Return a juror's prices on a day, None where one is unknown; a simulated juror's are 0."""
    usd_in = price(juror, Usage(SAMPLE, 0), at).usd
    usd_out = price(juror, Usage(0, SAMPLE), at).usd
    if usd_in is None or usd_out is None:
        return None
    return Rates(usd_in / SAMPLE * MILLION, usd_out / SAMPLE * MILLION)


def total(amounts: Iterable[float | None]) -> float | None:
    """Return the sum of costs, None where one is not known."""
    known = list(amounts)
    return None if None in known else sum(usd for usd in known if usd is not None)
