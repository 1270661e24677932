"""Which responses the jury may pass, and which a clinician must read, with a bound that holds."""
