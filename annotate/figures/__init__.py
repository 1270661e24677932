"""Values, tables and charts that the worker process computes for the app's screens."""
