"""BERTScore beside the bert-score package: whole processes, real notes, equal values first.

    uv run python benchmarks/bertscore_speed.py --peer PYTHON [--runs 3] [--data FOLDER]

PYTHON is the interpreter of another environment with bert-score, torch and transformers. All
use the packaged MiniLM, layer 5. "HELM's way" calls bert-score a pair at a time. Wall seconds
and CPU seconds of a fresh process with all it loads, medians of interleaved runs; on a busy
machine trust the latter.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from aci_notes import FOLDER, read_pairs

Pairs = list[tuple[str, str]]


def main() -> None:
    """Be one of the contestants if told so, else hold the contest."""
    options = _options()
    pairs = read_pairs(options.data, options.references, options.systems)
    if options.contestant is None:
        _contest(options, len(pairs))
    elif options.contestant in ("numpy", "onnx"):
        print(json.dumps(_ours(pairs, options.contestant)))
    else:
        print(json.dumps(_theirs(pairs, options.model, at_once=options.contestant == "bert-score")))


def _options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="Python interpreter of an environment with bert-score")
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--references", type=int, default=20)
    parser.add_argument("--systems", type=int, default=9)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    return parser.parse_args()


def _ours(pairs: Pairs, engine: str) -> list[float]:
    """Score with medjury."""
    from calibration.baselines.bertscore import bert_score

    assert engine in ("numpy", "onnx")
    return bert_score(pairs, engine=engine).f1.tolist()


def _theirs(pairs: Pairs, model: str, *, at_once: bool) -> list[float]:
    """Score with bert-score, all pairs in one call or each in its own."""
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=model, num_layers=5, lang="en", rescale_with_baseline=False)
    if at_once:
        return list(map(float, scorer.score(*map(list, zip(*pairs, strict=True)))[2]))
    return [float(scorer.score([text], [reference])[2]) for text, reference in pairs]


def _contest(options: argparse.Namespace, pairs: int) -> None:
    """Run every contestant in turn, compare values with bert-score's, print times."""
    wall: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    scores: dict[str, list[float]] = {}
    for _ in range(options.runs):
        for name, command in _commands(options).items():
            start, start_cpu = perf_counter(), _children_cpu()
            scores[name] = _run(command)
            wall.setdefault(name, []).append(perf_counter() - start)
            cpu.setdefault(name, []).append(_children_cpu() - start_cpu)
    peer = "bert-score" if options.peer else "numpy"
    for name, values in scores.items():
        worst = max(abs(a - b) for a, b in zip(values, scores[peer], strict=True))
        assert worst <= 1e-6, f"{name} differs from {peer} by {worst}: the times mean nothing"
        print(f"{name:18} largest difference in F1 from {peer}: {worst:.1e} in {pairs} pairs")
    for name in scores:
        print(f"{name:18}{_against(wall, name, peer)} wall{_against(cpu, name, peer)} CPU")


def _against(seconds: dict[str, list[float]], name: str, peer: str) -> str:
    """Return a contestant's median seconds and their ratio to the peer's."""
    own = median(seconds[name])
    return f"{own:9.2f} s ={own / median(seconds[peer]):5.2f} x {peer}'s"


def _children_cpu() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _commands(options: argparse.Namespace) -> dict[str, list[str]]:
    """Return each contestant's command."""
    from importlib.util import find_spec

    from calibration.baselines.backbone import load_backbone

    size = ["--references", str(options.references), "--systems", str(options.systems)]
    tail = [__file__, "--data", str(options.data), *size]
    tail += ["--model", str(load_backbone(layer=1).folder), "--contestant"]
    engines = ["numpy", "onnx"] if find_spec("onnxruntime") else ["numpy"]
    found = {f"{engine}": [sys.executable, *tail, engine] for engine in engines}
    if options.peer:
        found |= {name: [options.peer, *tail, name] for name in ("bert-score", "HELM's way")}
    return found


def _run(command: list[str]) -> list[float]:
    """Run one contestant without network; return its F1 values."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    values: list[float] = json.loads(run.stdout.splitlines()[-1])
    return values


if __name__ == "__main__":
    main()
