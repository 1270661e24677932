"""Juries in batches: the same verdicts, answered within a day at the providers' lower price.

What is to be sent is stored before it is sent, and a batch is asked for by a random marker until
it is known whether the provider took it, so that a run killed anywhere pays for nothing twice.
"""
