"""Route a study's responses for the screen of agreement, keep the rule that is certified, and route by a kept one.

The worker process runs this, never the server: it loads pandas and scipy. What it returns is light.
"""

from dataclasses import replace

from sqlalchemy import Engine

from annotate.results import (
    RoutedByAnswer,
    RoutedByQuestion,
    RoutingAnswer,
    RulesAnswer,
    RulesAsked,
    RuleToKeep,
)
from calibration.routing import (
    RouteQuestion,
    changed_line,
    headline,
    kept_details,
    kept_headline,
    kept_table,
    rules_table,
    work_lines,
)
from calibration.tables.numbers import PAGE
from data.csv_files import csv_bytes, frame_cells
from data.errors import Conflict
from data.study.ledger import fingerprint
from medjury.services.routing import (
    changed_since,
    csv_of,
    keep_as,
    kept_rule,
    kept_rules,
    route,
    route_study,
)


def routed(engine: Engine, question: RouteQuestion) -> RoutingAnswer:
    """Return what the jury may pass at the bound, the rule, and a row a response as CSV.

    Raises
    ------
    BadInput, Unknown, TooFew
        As `medjury.services.routing.route`.
    """
    result = route(engine, question)
    found = result.found
    silent = ", ".join(result.silent)
    return RoutingAnswer(
        found.certified,
        headline(found, simulated=bool(result.simulated)),
        rules_table(found, PAGE),
        (
            f"Jury: {', '.join(result.jury)}",
            *([f"Asked, and gave no rating: {silent}"] if silent else []),
            *work_lines(found, result.unread, result.hours),
            *result.told,
        ),
        csv_bytes(*csv_of(result)),
        bool(result.simulated),
        fingerprint(result.scores.ratings),
    )


def kept_now(engine: Engine, asked: RuleToKeep) -> str:
    """Keep the rule that a question leads to; return its SHA-256 as the record has it.

    Raises
    ------
    Conflict
        If a rule of this name is kept, or ratings have come since the rule was shown.
    BadInput, Unknown, TooFew
        As `medjury.services.routing.route` and `keep_as`.
    """
    result = route(engine, asked.question)
    if fingerprint(result.scores.ratings) != asked.fingerprint:
        raise Conflict("ratings have changed since this rule was shown: route again, then keep it")
    return keep_as(engine, asked.actor, asked.name, result).sha256


def rules(engine: Engine, asked: RulesAsked) -> RulesAnswer:
    """Return the rules that are kept, the newest first, each with what it was certified for.

    Raises
    ------
    BadInput
        If one is not as its hash says.
    """
    people = dict(asked.people)
    kept = [
        replace(one, by=people.get(one.by, one.by), changed=changed_since(engine, one.rule))
        for one in reversed(kept_rules(engine))
    ]
    return RulesAnswer(tuple(one.name for one in kept), kept_table(kept))


def routed_by(engine: Engine, asked: RoutedByQuestion) -> RoutedByAnswer:
    """Return the decision of a kept rule on every response, a row a response as CSV.

    Raises
    ------
    Unknown
        If no rule of this name is kept.
    BadInput
        If it is not as its hash says.
    """
    rule = kept_rule(engine, asked.name).rule
    changed = changed_since(engine, rule)
    decided = route_study(engine, rule)
    why = [*decided["why"]]
    return RoutedByAnswer(
        kept_headline(asked.name, rule, why),
        kept_details(rule, why),
        changed_line(changed) if changed else "",
        bool(rule.simulated),
        csv_bytes(*frame_cells(decided)),
    )
