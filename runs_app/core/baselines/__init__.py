"""Baselines measured separately from the evaluation that needs them.

A ranked result that lacks one queues a measurement, which serves all results that wait for it.
"""
