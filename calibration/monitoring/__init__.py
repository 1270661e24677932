"""Whether a jury still agrees: by period, by CUSUM, and what a change is due to."""
