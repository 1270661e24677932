"""`medjury models`: the models compared, by clinicians, by the jury, and by the jury corrected."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput, NotAllowed
from data.queries.models import authors, categories, lifted, model_names, recorded
from data.queries.record import locked_since
from data.store.record import unblind as lift_blind
from jury.panel import Panel, read_panel
from medjury.cli.models_costs import jury_cost, models_costs, read_costs, refuse_unknown
from medjury.cli.models_table import print_models
from medjury.cli.options import Db, Json, Seed, named_jurors, study_of
from medjury.cli.output import progress, say
from medjury.cli.places import check_json, write_json
from medjury.cli.record import Reason, Who
from medjury.services.ledger import Looked
from medjury.services.record import steered
from medjury.services.scores import all_jurors, scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.models.comparison import Wanted
    from calibration.scores import Scores

WAYS = ("clinicians", "jury", "corrected")
RANKS = ("rank", "rank_low", "rank_high")
METHOD = "models"  # what the ledger of juries calls a comparison of models
LOCKED = "models compared (medjury models) on the locked study"


def models(
    context: typer.Context,
    panel: Annotated[str | None, typer.Option(metavar="PANEL", help="Only its jurors.")] = None,
    jurors: Annotated[str | None, typer.Option(metavar="a,b,c", help="Only these jurors.")] = None,
    by: Annotated[str, typer.Option(metavar="[clinicians|jury|corrected|all]")] = "all",
    criterion: Annotated[str | None, typer.Option(help="One criterion, not the composite.")] = None,
    reps: Annotated[int, typer.Option(min=1, help="Bootstrap replicates.")] = 2000,
    seed: Seed = 0,
    costs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What each model cost: model, usd.")
    ] = None,
    unblind: Annotated[
        bool, typer.Option("--unblind", help="Lift the blind of an open study; recorded.")
    ] = False,
    reason: Reason = "",
    who: Who = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Compare the models: win rates, macro-averages, detectable differences, cost. Unblinds."""
    if by not in (*WAYS, "all"):
        raise typer.BadParameter(f"{by!r} is not {', '.join(WAYS)} or all", param_hint="--by")
    if unblind != bool(reason.strip()):
        raise BadInput("--unblind needs a --reason, which stays in the record, and only it does")
    check_json(json_to)
    chosen, seats = named_jurors(panel, jurors), read_panel(panel) if panel else None
    prices = read_costs(costs) if costs else {}
    engine = study_of(context, db)
    asked = Asked(chosen, WAYS if by == "all" else (by,), criterion, reps, seed)
    scores, wanted = asked.of(engine, json_to)
    refuse_unknown(prices, model_names(engine))
    lift(engine, unblind, reason, who)
    body = compared(engine, scores, wanted)
    jury = _jury_cost(engine, scores, wanted.jurors, seats)
    body["costs"] = {"models": models_costs(prices, body["rows"]), "jury": jury}
    print_models(body, json_to)
    for line in steered(engine):
        say(line, json_to)
    write_json(body, json_to)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a comparison is asked for, as the command's options say."""

    jurors: list[str] | None
    by: tuple[str, ...]
    criterion: str | None
    reps: int
    seed: int

    def of(self, engine: Engine, json_to: Path | None) -> tuple["Scores", "Wanted"]:
        """Return the study's scores and what is wanted of them, checked; no author is read."""
        from calibration.models.comparison import Wanted, check

        scores = scores_of(engine)
        silent = silent_jurors(engine, scores)
        if silent:
            seat = "without a score from them" if self.jurors else "not in this jury"
            say(f"asked, and gave no rating: {', '.join(silent)}; {seat}", json_to)
        if self.jurors:
            scores = replace(scores, silent=frozenset(silent))
        jury = list(dict.fromkeys(self.jurors or all_jurors(scores)))
        ways = self.by if jury or self.by != WAYS else WAYS[:1]
        if ways != self.by:
            say("no juror has rated anything in this study: by clinicians alone", json_to)
        wanted = Wanted(
            ways, jury if ways != WAYS[:1] else [], self.criterion, self.reps, self.seed
        )
        check(scores, wanted)
        if wanted.jurors:
            say(f"jury: {', '.join(jury)}", json_to)
        return scores, wanted


def lift(engine: Engine, unblind: bool, reason: str, who: str) -> None:
    """Record that the blind is lifted, or refuse an open study whose clinicians may still rate.

    Raises
    ------
    NotAllowed
        If the study is open, its blind was not lifted since, and nobody asks to lift it.
    """
    if unblind:
        lift_blind(engine, who, reason)
    elif lifted(engine):
        return
    elif locked_since(engine) is None:
        raise NotAllowed(
            "comparing models tells how good each author is, and this study is open and blind: "
            "`medjury lock` it when all have rated, or give --unblind with a --reason, which "
            "stays in the record and in every later report"
        )
    else:
        lift_blind(engine, who, LOCKED)


def compared(engine: Engine, scores: "Scores", wanted: "Wanted") -> dict[str, Any]:
    """Return the comparison as `models --json` has it; the ledger is told of the jury."""
    from threadpoolctl import threadpool_limits

    from calibration.models.comparison import compare_models

    with threadpool_limits(1), progress("resampling", 1.0) as at:
        found = compare_models(scores, authors(engine), categories(engine), wanted, at)
    if wanted.jurors and set(wanted.by) != {"jury"}:
        _remember(engine, scores, wanted, found.n_both)
    return {
        "reps": wanted.reps,
        "seed": wanted.seed,
        "jury": list(wanted.jurors),
        "benchmarks": list(found.benchmarks),
        "rows": [_plain(one) for one in found.rows],
        "categories": [_plain(one) for one in found.categories],
        "detectable": [_plain(one) for one in found.detectable],
    }


def _plain(row: Any) -> dict[str, Any]:
    """Return a row as JSON has it: None where a figure is undefined, ranks as whole numbers."""
    found: dict[str, Any] = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(row).items()
    }
    ranks = {name: found[name] for name in RANKS if found.get(name) is not None}
    return found | {name: int(rank) for name, rank in ranks.items()}


def _remember(engine: Engine, scores: "Scores", wanted: "Wanted", n_both: int) -> None:
    """Note in the ledger that this jury's figures were seen beside the clinicians'."""
    from calibration.scores import COMBINED

    looked = Looked(wanted.jurors, len(wanted.jurors), wanted.criterion or "", METHOD, "")
    several = len(scores.benchmarks) > 1
    name = COMBINED if several else scores.benchmarks[0]
    row = {"benchmark": name, "scorer": "jury", "icc": None, "n_responses": n_both}
    looked.remember(engine, [row], [], scores.ratings)


def _jury_cost(
    engine: Engine, scores: "Scores", jurors: Sequence[str], panel: Panel | None
) -> dict[str, Any] | None:
    """Return what the jury's calls cost, None without a jury."""
    if not jurors:
        return None
    return jury_cost(recorded(engine, jurors), jurors, panel, scores.simulated)
