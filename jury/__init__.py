"""The jury: language models that rate responses as clinicians do, on the same rubrics.

Knows no statistic: what jurors say is stored as ratings, and every call as an attempt.
"""
