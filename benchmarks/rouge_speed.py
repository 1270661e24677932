"""ROUGE-L beside Google's rouge-score, on one core, on real notes; equal values first.

    uv run python benchmarks/rouge_speed.py [--data FOLDER] [--references 40] [--systems 9]

Cold is the first call of a process, every stem still unknown; warm is a later one. CPU seconds,
so that other jobs on the machine count less; medians of five for us, one run for Google.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

from aci_notes import FOLDER, read_pairs
from rouge_score.rouge_scorer import RougeScorer

from calibration.baselines.rouge import rouge_l, stem

Pairs = list[tuple[str, str]]


def main() -> None:
    """Compare values, then time, then print."""
    options = _options()
    pairs = read_pairs(options.data, options.references, options.systems)
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    google: list[float] = []
    google_seconds = _seconds(lambda: google.extend(_google(scorer, pairs)))
    assert rouge_l(pairs).tolist() == google, "the values differ: the times mean nothing"
    print(f"{len(pairs)} pairs, every value equal (==)")
    _print("google rouge-score 0.1.2", google_seconds, len(pairs), google_seconds)
    _print("medjury, cold", median(_cold(pairs) for _ in range(5)), len(pairs), google_seconds)
    _print("medjury, warm", median(_warm(pairs) for _ in range(5)), len(pairs), google_seconds)
    many = [(f"{text} x{copy}", reference) for copy in range(10) for text, reference in pairs]
    share = google_seconds * 10
    _print("medjury, ten times as many", median(_warm(many) for _ in range(5)), len(many), share)


def _options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--references", type=int, default=40)
    parser.add_argument("--systems", type=int, default=9)
    return parser.parse_args()


def _google(scorer: RougeScorer, pairs: Pairs) -> list[float]:
    """Score as HELM does."""
    return [scorer.score(reference, text)["rougeL"].fmeasure for text, reference in pairs]


def _cold(pairs: Pairs) -> float:
    """Return the CPU seconds of a call with no stem known."""
    stem.cache_clear()
    return _warm(pairs)


def _warm(pairs: Pairs) -> float:
    """Return the CPU seconds of a call with the stems known that were met before."""
    return _seconds(lambda: rouge_l(pairs))


def _seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a piece of work."""
    start = process_time()
    work()
    return process_time() - start


def _print(name: str, seconds: float, pairs: int, peer_seconds: float) -> None:
    """Print a line of the table."""
    print(
        f"{name:28}{seconds:9.4f} s{pairs / seconds:10.0f} pairs/s{peer_seconds / seconds:8.0f} x"
    )


if __name__ == "__main__":
    main()
