"""What a jury may learn from clinicians, and how much better it is on what it has not seen."""
