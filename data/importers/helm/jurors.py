"""Who sat on a HELM run's jury, by the names the run has, and which models they were."""

from collections.abc import Iterable, Mapping
from typing import Any

from data.importers.finished import FinishedJuror
from data.importers.helm.files import RunSpec, Spec

METRIC = "LLMJuryMetric"
SOURCE = "HELM run"
# HELM 0.5.5 to 0.5.7 had these three in its code, and a run does not name them.
PAPERS = {
    "gpt": "openai/gpt-4o-2024-05-13",
    "llama": "meta/llama-3.3-70b-instruct",
    "claude": "anthropic/claude-3-7-sonnet-20250219",
}
Said = Mapping[str, Any]


def metric_of(spec: RunSpec) -> Spec | None:
    """Return the specification of the jury's metric, which 0.5.5 to 0.5.7 do not have."""
    ours = (one for one in spec.metric_specs if one.class_name.endswith(f".{METRIC}"))
    return next(ours, None)


def jurors_of(spec: RunSpec, verdicts: Iterable[Said]) -> tuple[tuple[FinishedJuror, ...], bool]:
    """Return the jurors that were asked, and whether their models are assumed."""
    specs = [one.args for one in (metric_of(spec), *(spec.annotators or ())) if one]
    named = next((args["annotator_models"] for args in specs if _models(args)), None)
    heard = dict.fromkeys(name for said in verdicts for name in said)
    assumed = named is None and set(heard) <= set(PAPERS)
    known = named or ({name: {"model_name": PAPERS[name]} for name in PAPERS} if assumed else {})
    names = dict.fromkeys([*known, *heard])
    return tuple(_juror(name, known.get(name)) for name in names), assumed


def _models(args: Said) -> bool:
    return isinstance(args.get("annotator_models"), dict) and bool(args["annotator_models"])


def _juror(name: str, known: object) -> FinishedJuror:
    """Return a juror with what the run says of it."""
    told = known if isinstance(known, dict) else {}
    keys = {"model": "model_name", "deployment": "model_deployment"}
    said = {ours: str(told[theirs]) for ours, theirs in keys.items() if told.get(theirs)}
    return FinishedJuror(name, {"provider": SOURCE} | said)
