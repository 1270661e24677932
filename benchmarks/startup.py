"""Measure what commands cost from their start: processor seconds, with `import pandas` beside them.

    uv run python benchmarks/startup.py [--times 7]

Each round runs all of them in turn, so that a busy machine is as slow for each. The study has 60
responses, four clinicians, two a response, and three jurors. Compiled files are kept (a first round is
not counted), as wherever medjury is installed.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RESPONSES, CRITERIA = 60, ("accuracy", "completeness", "clarity")
YARDSTICK = "import pandas"
AIMS = {"medjury --help": "0.7 of import pandas", "calibrate": "1.5 s", "calibrate, all": "2.5 s"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=7)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder:
        study = f"sqlite:///{folder}/study.db"
        kept = {"PYTHONPYCACHEPREFIX": f"{folder}/compiled", "OMP_NUM_THREADS": "1"}
        environment = os.environ | kept | {"MEDJURY_DB": study}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        make_study(Path(folder), environment)
        medjury = [sys.executable, "-m", "medjury"]
        commands = {
            YARDSTICK: [sys.executable, "-c", "import pandas"],
            "medjury --help": [*medjury, "--help"],
            "calibrate": [*medjury, "analyse", "calibrate"],
            "calibrate, all": [
                *(
                    *medjury,
                    "analyse",
                    "calibrate",
                    "--details",
                    "--pairs",
                    "--json",
                    f"{folder}/all.json",
                )
            ],
        }
        took: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(times + 1):
            for name, command in commands.items():
                seconds = processor_seconds(command, environment)
                if turn:
                    took[name].append(seconds)
    print_table(took)


def make_study(folder: Path, environment: dict[str, str]) -> None:
    """Make a study of responses and ratings drawn with a seed."""
    rng = random.Random(3)
    responses, ratings = [], []
    for place in range(RESPONSES):
        quality = rng.gauss(3.4, 0.8)
        responses.append(f"i{place},b,context,prompt,reference,r{place},m{place % 3},text {place}")
        raters = [(one, "clinician") for one in rng.sample(["dr_a", "dr_b", "dr_c", "dr_d"], 2)]
        for rater, kind in (*raters, *((f"j{number}", "juror") for number in range(3))):
            for criterion in CRITERIA:
                score = min(5, max(1, round(quality + rng.gauss(0.2, 0.8))))
                ratings.append(f"r{place},{rater},{kind},{criterion},{score}")
    heads = (
        "instance_id,benchmark,context,prompt,reference,response_id,model,response",
        "response_id,rater,kind,criterion,score",
    )
    for command, head, rows in zip(
        ("study import", "rate ratings"), heads, (responses, ratings), strict=True
    ):
        path = folder / f"{command}.csv"
        path.write_text("\n".join([head, *rows]) + "\n", "utf-8")
        called = [sys.executable, "-m", "medjury", *command.split(), str(path)]
        subprocess.run(called, env=environment, check=True, capture_output=True)


def processor_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the processor time that a command and its children took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def print_table(took: dict[str, list[float]]) -> None:
    """Print the median and the least of each, and how it stands to the yardstick."""
    yardstick = statistics.median(took[YARDSTICK])
    print("| command | median CPU s | least | of import pandas | aim |")
    print("| --- | --- | --- | --- | --- |")
    for name, seconds in took.items():
        median = statistics.median(seconds)
        figures = f"{median:.2f} | {min(seconds):.2f} | {median / yardstick:.2f}"
        print(f"| {name} | {figures} | {AIMS.get(name, '')} |")


if __name__ == "__main__":
    main()
