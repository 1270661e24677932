"""Finding and masking what names the author of a response."""
