"""Handles what runners report, and acts when they fall silent.

`handing` gives a waiting job to a runner. `events` takes reports on jobs, `results` ends
evaluations, and `heartbeats` and `tokens` are about runners themselves. `reconcile` finds jobs that
nobody is working on.
"""
