"""What runners report, and what is done when they fall silent.

`events` takes what is said of jobs, `results` ends evaluations, `heartbeats` is about runners
themselves. `reconcile` finds jobs that nobody works at, `reconcile_runs` calls and runs.
"""
