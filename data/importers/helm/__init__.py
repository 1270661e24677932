"""Finished HELM runs: what was asked, what models answered, and what HELM's jury said of it."""

from data.importers.helm.run import HelmRun, finished, is_helm, read_runs, usable, with_task

__all__ = ["HelmRun", "finished", "is_helm", "read_runs", "usable", "with_task"]
