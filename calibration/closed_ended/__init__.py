"""Answers with a key: matches, labels, calculations, notes with a wrong sentence, and queries."""
