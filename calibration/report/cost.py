"""The cost of the jury's ratings, as text."""

from calibration.report.content import Costs
from calibration.tables.numbers import money, whole


def cost_words(costs: Costs) -> str:
    """Return the cost of the jury's ratings, as far as it is known."""
    if not costs.calls:
        return (
            "No call to a juror is stored in this study: what the jury's ratings cost is unknown."
        )
    known_calls = costs.calls - costs.unknown
    each = f", {money(costs.usd / costs.rated)} a response" if costs.rated else ""
    spent = (
        f"{money(costs.usd)}{each}: all {whole(costs.calls)} calls to jurors ever made in this study, "
        f"in this jury or not, failed ones included, over {whole(costs.rated)} rated responses."
    )
    gaps = (
        f" Of the calls, {whole(costs.unknown)} have no known price: at least this much was spent."
    )
    bound = (
        " For the upper bound by the MedHELM paper's formula, see the estimate in the jury lab or "
        "`jury run --estimate`: it takes the panel."
    )
    if not known_calls:
        spent = f"Unknown: none of the {whole(costs.calls)} calls to jurors has a known price."
        gaps = ""
    return spent + (gaps if costs.unknown else "") + bound
