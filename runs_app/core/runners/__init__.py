"""What runners report, and what is done when they fall silent.

`handing` gives a waiting job to a runner. `events` takes what is said of jobs, `results` ends
evaluations, and `heartbeats` and `tokens` are about runners themselves. `reconcile` finds jobs that
nobody works at.
"""
