"""Readers of files, one format or a few alike in each module. Nothing here writes to a study."""
