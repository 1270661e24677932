"""Agreement over time: its periods, alarms when it falls, and what a fall may come from."""
