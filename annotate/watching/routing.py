"""Which outputs the jury may pass: decided by a rule that the study keeps, and written where the ward reads it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Engine

from annotate.watching.log import Log
from calibration.routing.values import PASS, READ, RoutedResponse, RoutingRule, Why
from data.csv_files import write_csv
from data.errors import BadInput
from data.queries.watch import newest_of_routing
from medjury.services.routing_rules import changed_since, csv_of, kept_rule, route_study

ROUTED, ROUTES = "routed", "routes.csv"
Decided = list[tuple[RoutedResponse, str]]


@dataclass
class Routing:
    """A kept rule at work: after each look at which something new came, all decisions are written anew.

    Clinicians are given no more than the sample: whoever also had what the rule sends to be read rated
    in the study would watch agreement on responses that the jury finds worse than the others.

    Attributes
    ----------
    name, rule : of the rule
    folder : of the outputs; the decisions lie in `routed/routes.csv`, one file that is replaced whole
    """

    name: str
    rule: RoutingRule
    folder: Path
    log: Log
    _known: tuple[object, ...] = ()

    def look(self, engine: Engine) -> int:
        """Write the decisions if there may be others than before; return how many responses are passed."""
        changed = {*changed_since(engine, self.rule)} & {*self.rule.jury}
        known = (*newest_of_routing(engine), *sorted(changed))
        if known == self._known and (self.folder / ROUTED / ROUTES).exists():
            return 0
        decided = route_study(engine, self.rule)
        if changed:
            decided = all_read(decided)
        self._write(decided)
        self._known = known
        passed = sum(one.decision == PASS for one, _ in decided)
        self.log.write(
            "routed", passed=passed, read=len(decided) - passed, jurors_changed=sorted(changed)
        )
        return passed

    def _write(self, decided: Decided) -> None:
        """Replace the file in one step: who reads it sees all decisions of one look."""
        at = self.folder / ROUTED
        at.mkdir(mode=0o700, exist_ok=True)
        part = at / f".{ROUTES}.part"
        part.unlink(missing_ok=True)
        write_csv(part, *csv_of(decided))
        part.chmod(0o600)
        part.replace(at / ROUTES)


def routing_of(engine: Engine, name: str, folder: Path, log: Log) -> Routing | None:
    """Return the routing by a kept rule, None without a name.

    Raises
    ------
    Unknown
        If no rule of this name is kept.
    BadInput
        If simulated raters are behind it: it decides about nobody's outputs.
    """
    if not name:
        return None
    rule = kept_rule(engine, name).rule
    if rule.simulated:
        raise BadInput(
            f"routing.rule = {name}: rests on simulated raters ({', '.join(rule.simulated)}) and routes "
            "nobody's outputs; keep one that clinicians' ratings certified"
        )
    return Routing(name, rule, folder, log)


def all_read(decided: Sequence[tuple[RoutedResponse, str]]) -> Decided:
    """Return decisions by which everything is read, since a juror is not the one that was certified."""
    return [
        (replace(one, decision=READ, why=Why.OTHER_JUROR), benchmark) for one, benchmark in decided
    ]
