"""Coverage-guided fuzzing of one reader, or of all: `target.py READER|all [libFuzzer's options] CORPUS...`.

For all, the first byte of an input says which reader it is for. An input that breaks the contract
is left in the folder that -artifact_prefix names, to be made smaller and put into
tests/fixtures/crashes/READER/, and the run ends with another code than 0.
"""

import logging
import sys
import warnings
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[3])]
warnings.simplefilter("ignore")
logging.disable()
with atheris.instrument_imports(include=["data", "jury", "medjury"]):
    from kit.fuzz.readers import READERS, hold

NAMES = sorted(READERS)


def one_of_all(body: bytes) -> None:
    if body:
        hold(NAMES[body[0] % len(NAMES)], body[1:])


def main() -> None:
    which, *options = sys.argv[1:]
    one = one_of_all if which == "all" else lambda body: hold(which, body) and None
    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
