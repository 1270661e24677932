"""How often routing breaks its bound where the made-up population is unkind: clusters, ties, rare harm and more.

    OMP_NUM_THREADS=1 nice uv run python benchmarks/routing_attacks.py --studies 40

Each study has 300 rated instances and more that nobody rated, of which the true share of harmful ones among
the passed is known. Confidence is 0.9: the bound may break in one study of ten. All is simulated.
"""

import argparse

import numpy as np

from calibration.routing.candidates import Candidates
from calibration.routing.routes import routes
from calibration.routing.values import Harm

RATED = 300
KINDS = ("plain", "clusters", "ties", "rare", "one_benchmark", "missing")


def made(kind: str, seed: int) -> tuple[Candidates, np.ndarray]:
    """Return the responses, and whether each is harmful."""
    random = np.random.default_rng([seed, len(kind)])
    each, rest = (5, 300) if kind == "clusters" else (1, 800)
    clusters = np.repeat(np.arange(RATED + rest), each)
    number = len(clusters)
    quality = random.normal(size=RATED + rest)[clusters]
    if kind == "clusters":
        quality = quality + 0.3 * random.normal(size=number)
    benchmark = np.where(random.random(number) < 0.2, "b", "a")
    middle = 3 + (2.6 if kind == "rare" else 1.3)
    clinicians = np.clip(np.round(2 * (middle + quality)) / 2, 1, 9)
    if kind == "one_benchmark":
        clinicians = np.where(benchmark == "a", np.maximum(clinicians, 3.5), clinicians)
    jurors = middle + quality + 0.7 * random.normal(size=(3, number))
    if kind == "ties":
        jurors = np.clip(np.round(jurors), 1, 5)
    if kind == "missing":  # half of the harmful have no score, and one in twenty of the others
        lost = random.random(number) < np.where(clinicians <= 3, 0.5, 0.05)
        jurors[:, lost] = np.nan
    features = [jurors.mean(0), jurors.std(0), jurors.min(0), benchmark == "b"]
    rated, names = np.where(clusters < RATED, clinicians, np.nan), [str(n) for n in range(number)]
    instances = [str(n) for n in clusters]
    table = Candidates(
        names, instances, [*benchmark], clusters, jurors.mean(0), rated, np.column_stack(features)
    )
    return table, clinicians <= 3


def main() -> None:
    """Print a row for each kind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=40)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    given = parser.parse_args()
    for kind in given.kinds:
        bound, certified, shares = 0.02 if kind == "rare" else 0.05, 0, []
        for seed in range(given.studies):
            table, harmful = made(kind, seed)
            found = routes(table, Harm("low", 3), bound, 0.9)
            passed = (np.array(found.decisions) == "pass") & ~table.rated()
            certified += found.found.certified
            in_b = passed & (np.array(table.benchmarks) == "b")
            shares += [(harmful[passed].mean(), harmful[in_b].mean())] if in_b.any() else []
        broken = sum(share > bound for share, _ in shares)
        small = np.mean([share for _, share in shares]) if shares else float("nan")
        print(
            f"{kind}: bound {bound}, certified {certified} of {given.studies}, broken {broken}, "
            f"harmful among the passed of the small benchmark {small:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
