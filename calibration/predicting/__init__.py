"""Predict what clinicians would say of responses that only the jury has rated."""
