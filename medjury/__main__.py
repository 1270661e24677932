"""Run the command line as `python -m medjury`."""

from medjury.app import main

main()
