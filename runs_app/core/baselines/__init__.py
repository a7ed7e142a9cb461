"""Baselines that are measured apart from the evaluation that needs them.

A ranked result that lacks one queues a measurement; what it finds is joined to all that wait.
"""
