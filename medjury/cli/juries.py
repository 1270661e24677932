"""`medjury juries`: every jury that the jurors already heard can make up, honestly ranked."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from sqlalchemy import Engine

from data.errors import BadInput, TooFew, Unknown
from data.queries.costs import JurorCost, juror_costs
from data.queries.ledger import fingerprint, tried
from data.store.ledger import Evaluated, remember
from jury.cost import panel_usd
from jury.panel import read_panel
from medjury.cli.dask_connect import SCORES, On, computing
from medjury.cli.juries_compare import Compare, print_comparison, two_juries
from medjury.cli.juries_table import print_ranking, to_json
from medjury.cli.options import Db, Json, Seed, named_jurors, study_of
from medjury.cli.output import At, progress, say
from medjury.cli.places import check_json, write_json
from medjury.services.record import steered
from medjury.services.scores import all_jurors, scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.juries.ranking import Ranking
    from calibration.scope import Scope
    from calibration.scores import Scores

METHODS = ("paper", "published")
SIZES = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")
POOLS = ("mean", "median", "weighted")
SIMULATED_PANEL = "simulated"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the juries, as the command's options say."""

    jurors: list[str] | None
    sizes: range | None
    pool: Literal["mean", "median", "weighted"]
    common: bool
    benchmark: str | None
    criterion: str | None
    method: Literal["paper", "published"]
    reps: int
    seed: int
    top: int
    on: str | None = None


def juries(
    context: typer.Context,
    sizes: Annotated[
        str | None, typer.Option(metavar="A-B", help="Jurors of a jury; by default 1 to 5.")
    ] = None,
    jurors: Annotated[str | None, typer.Option(metavar="a,b,c", help="Only of these.")] = None,
    pool: Annotated[
        str, typer.Option(metavar="[mean|median|weighted]", help="How members' scores become one.")
    ] = "mean",
    common: Annotated[
        bool, typer.Option("--common", help="Only responses that all jurors rated.")
    ] = False,
    benchmark: Annotated[
        str | None, typer.Option(metavar="NAME", help="By default all combined.")
    ] = None,
    method: Annotated[str, typer.Option(metavar="[paper|published]")] = "paper",
    criterion: Annotated[str | None, typer.Option(help="One criterion, not the composite.")] = None,
    reps: Annotated[int, typer.Option(min=1, help="Bootstrap replicates.")] = 2000,
    seed: Seed = 0,
    top: Annotated[int, typer.Option(min=1, max=100, help="Juries on the screen.")] = 10,
    compare: Compare = None,
    json_to: Json = None,
    on: On = None,
    db: Db = None,
) -> None:
    """Rank every jury of the jurors already heard, without the luck of choosing; no calls."""
    for given, allowed, name in ((method, METHODS, "--method"), (pool, POOLS, "--pool")):
        if given not in allowed:
            raise typer.BadParameter(f"{given!r} is not {' or '.join(allowed)}", param_hint=name)
    check_json(json_to)
    chosen, numbers = named_jurors(None, jurors), _sizes(sizes)
    asked = Asked(
        *(chosen, numbers, pool, common, benchmark, criterion, method, reps, seed, top, on)  # type: ignore[arg-type]  # checked above
    )
    if compare:
        if asked.pool != "mean" or common:
            raise typer.BadParameter("only means of own responses", param_hint="--compare")
        print_comparison(study_of(context, db), asked, two_juries(compare), json_to)
        return
    print_juries(study_of(context, db), asked, json_to)


def print_juries(engine: Engine, asked: Asked, json_to: Path | None = None) -> None:
    """Rank the juries, note them in the ledger, print them, and write JSON where asked."""
    from threadpoolctl import threadpool_limits

    from calibration.juries.ranking import jury_ranking
    from calibration.juries.rows import Wanted

    scores = scores_of(engine)
    names = asked.jurors or all_jurors(scores)
    if not names:
        raise BadInput(
            "no juror has rated anything in this study: `medjury jury run PANEL` asks some"
        )
    for name in () if asked.jurors else silent_jurors(engine, scores):
        say(f"asked, and gave no rating: {name}; in no jury", json_to)
    scope = _scope(scores, names, asked)
    costs = _costs(engine, scope.name)
    made_up = made_up_costs(costs) if scope.simulated.issuperset(names) else {}
    usd = {name: one.usd_per_verdict for name, one in costs.items()} | made_up
    wanted = Wanted(asked.sizes, asked.pool, asked.common, asked.top, usd)
    with threadpool_limits(1), resampling(scope, asked, json_to) as ready:
        found = jury_ranking(ready, wanted)
    where = (scope.name, *_noted(engine, found, asked, scope, fingerprint(scores.ratings)))
    invented = [name for name in found.pool if name in made_up]
    print_ranking(found, asked, where, invented, json_to)
    for line in steered(engine):
        say(line, json_to)
    write_json(to_json(found, asked, where, invented), json_to)


@contextmanager
def resampling(scope: "Scope", asked: Asked, json_to: Path | None) -> Iterator["Scope"]:
    """Yield a scope that resamples where it is asked to, and moves a bar."""
    with (
        computing(asked.on, SCORES, json_to) as executor,
        progress("resampling", float(asked.reps)) as at,
    ):
        how = replace(scope.asked, executor=executor)
        yield replace(scope, asked=how, tick=_Ticking(at))


class _Ticking:
    """Move a bar by the resamples done."""

    def __init__(self, at: At) -> None:
        self.at, self.done = at, 0

    def __call__(self, resamples: int) -> None:
        self.done += resamples
        self.at(self.done)


def _sizes(text: str | None) -> range | None:
    """Return the sizes that `A-B` or `A` means."""
    if text is None:
        return None
    found = SIZES.fullmatch(text)
    if found is None:
        raise BadInput(f"--sizes {text}: give one size or two as 1-5")
    low, high = int(found[1]), int(found[2] or found[1])
    if not 1 <= low <= high:
        raise BadInput(f"--sizes {text}: the first is at least 1 and at most the last")
    return range(low, high + 1)


def _scope(scores: "Scores", names: list[str], asked: Asked) -> "Scope":
    """Return the benchmark asked for, or all combined, or the only one."""
    from calibration.scope import Asked as Options
    from calibration.scopes import Sitting, scopes, why_undefined_scope

    options = Options(asked.method, asked.criterion, asked.reps, asked.seed)
    every = {one.name: one for one in scopes(scores, Sitting(names), options)}
    name = asked.benchmark or list(every)[-1]
    if name not in every:
        raise Unknown(f"--benchmark {name}: this study has {', '.join(every)}")
    if reason := why_undefined_scope(scores, every[name]):
        raise TooFew(f"{name}: {reason.removeprefix('undefined: ')}; name another --benchmark")
    return every[name]


def _costs(engine: Engine, benchmark: str) -> Mapping[str, JurorCost]:
    """Return what asking each juror has cost; on one benchmark where one is ranked."""
    from calibration.scores import COMBINED

    return juror_costs(engine, None if benchmark == COMBINED else benchmark)


def made_up_costs(costs: Mapping[str, JurorCost]) -> dict[str, float]:
    """Return US dollars a verdict of simulated jurors, at the made-up prices of their panel.

    Nothing was spent on them; with these prices a demo has something to weigh. Where real jurors
    are ranked too, a simulated one costs nothing instead: made-up money is not added to real.
    """
    made_up = {}
    for juror in read_panel(SIMULATED_PANEL).juror:
        cost = costs.get(juror.name)
        if cost is None or not cost.simulated or not cost.verdicts:
            continue
        usd = panel_usd(juror, cost.tokens_in, cost.tokens_out)
        if usd is not None:
            made_up[juror.name] = usd / cost.verdicts
    return made_up


def _noted(
    engine: Engine, found: "Ranking", asked: Asked, scope: "Scope", data: str
) -> tuple[int, int]:
    """Note every jury in the ledger; return the juries tried before, and in how many other ways."""
    entries = [
        Evaluated(
            jurors=row.jurors,
            benchmark=scope.name,
            method=asked.method if asked.pool == "mean" else f"{asked.method}, {asked.pool}",
            fingerprint=data,
            n_responses=row.n_responses,
            icc=row.icc,
            criterion=asked.criterion or "",
            instances=_responses(found, scope),
        )
        for row in found.rows
    ]
    from calibration.report.ways import different

    here, before = {one.key for one in entries}, tried(engine)
    remember(engine, entries)
    rehearsal = not scope.simulated.isdisjoint(found.pool)
    besides = [one for one in before if one.key not in here and (rehearsal or not one.simulated)]
    return different(besides), len(besides)


def _responses(found: "Ranking", scope: "Scope") -> str:
    """Return what the ledger calls the responses that were kept; empty for all."""
    whole = len(scope.grid.responses) == found.n_responses
    return "" if whole or not found.common else f"rated by all of {', '.join(found.pool)}"
