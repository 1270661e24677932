"""Models compared: by clinicians, by the jury, and by the jury corrected."""
