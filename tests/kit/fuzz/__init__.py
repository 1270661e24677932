"""Mangled files and answers for all readers: the contract they hold, seeds, and atheris's target."""
