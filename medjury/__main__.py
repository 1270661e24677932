"""Run the command line as `python -m medjury`."""

from medjury import program

program()
