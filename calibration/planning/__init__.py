"""Plan a study: the responses and clinicians that an interval or a difference takes."""
