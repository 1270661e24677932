"""Who rates what: dealing responses to clinicians, and what a design comes to."""
