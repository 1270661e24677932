"""Fuzz every reader in turn, for as many seconds each: `python -m kit.fuzz.each 180 READER...`.

What breaks the contract is left in the folder that is told, to be made smaller and put into
`tests/fixtures/crashes/READER/` under a name that says what it is.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from kit.fuzz.seeds import seeds

TARGET = Path(__file__).with_name("target.py")
OPTIONS = ("-max_len=70000", "-timeout=60", "-rss_limit_mb=3000")


def fuzz(reader: str, bodies: list[bytes], seconds: str, out: Path) -> int:
    """Fuzz one reader from its seeds; return 0 where nothing broke the contract."""
    corpus = out / "corpus" / reader
    corpus.mkdir(parents=True)
    for number, body in enumerate(bodies):
        (corpus / f"seed-{number}").write_bytes(body)
    with (out / f"{reader}.log").open("wb") as log:
        options = [*OPTIONS, f"-max_total_time={seconds}", f"-artifact_prefix={out}/{reader}-"]
        command = [sys.executable, str(TARGET), reader, *options, str(corpus)]
        return subprocess.run(command, stderr=log, stdout=log, check=False).returncode


def main() -> None:
    seconds, *wanted = sys.argv[1:] or ["180"]
    out = Path(tempfile.mkdtemp(prefix="medjury-fuzz-"))
    print(f"logs and what breaks a reader: {out}")  # noqa: T201
    given = seeds()
    broken = [one for one in wanted or given if fuzz(one, given[one], seconds, out)]
    print("broken: " + (", ".join(broken) or "none"))  # noqa: T201
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
