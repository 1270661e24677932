"""Finished HELM runs: what was asked, what models answered, and what HELM's jury said of it."""

from data.importers.helm.rating import finished, usable
from data.importers.helm.run import HelmRun, is_helm, read_runs, with_task

__all__ = ["HelmRun", "finished", "is_helm", "read_runs", "usable", "with_task"]
