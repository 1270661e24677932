"""How many responses and clinicians an interval or a difference takes."""
