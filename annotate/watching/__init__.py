"""Watching a ward: outputs come in, a jury and clinicians rate them, and a fall raises an alarm.

Each step asks the study what is to be done and is safe to repeat, so that a watch may be killed at any
moment: what is stored is not done again.
"""
