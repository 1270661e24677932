"""Models compared by their mean scores: from clinicians, from the jury, and from both together."""
