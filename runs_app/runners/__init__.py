"""What runners report, and what is done when they fall silent.

`events` takes what is said of evaluations, `job_events` of checks and baselines, `heartbeats` of
runners themselves. `reconcile` finds work that nobody does, `reconcile_runs` calls and runs.
"""
