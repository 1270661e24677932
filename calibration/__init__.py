"""Statistics of agreement between clinicians, juries and metrics.

It is handed values and returns values: it knows neither web, nor network, nor database.
"""
