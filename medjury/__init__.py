"""The command line: each command parses, calls one function, prints."""

from medjury.app import main

__all__ = ["main"]
