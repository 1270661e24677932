"""What the worker process computes for the screens: functions of an engine and a question."""
