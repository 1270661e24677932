"""What the conversion scripts share: their two arguments, and the files they write."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Row = Mapping[str, object]
Convert = Callable[[Path, Path], Iterable[str]]


def run(script: str, convert: Convert) -> None:
    """Call a conversion with the two folders of the command line and print what it says."""
    if len(sys.argv) != 3 or not Path(sys.argv[1]).is_dir():
        sys.exit(f"usage: uv run python docs/real_data/{script} DATASETS_FOLDER OUT_FOLDER")
    datasets, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    try:
        for line in convert(datasets, out):
            sys.stdout.write(line + "\n")
    except FileNotFoundError as error:
        sys.exit(f"{script}: {error.filename} is not there")


def write_csv(path: Path, rows: Iterable[Row]) -> str:
    """Write rows as CSV, the first one's keys as header; return a line that says so."""
    written = list(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(written[0]))
        table.writeheader()
        table.writerows(written)
    return f"{path.name}: {len(written)} rows"


def write_jsonl(path: Path, rows: Iterable[Row]) -> str:
    """Write rows as JSON Lines; return a line that says so."""
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"{path.name}: {len(lines)} rows"


def read_csv(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Read a whole CSV or TSV file with a header."""
    csv.field_size_limit(10**7)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))
