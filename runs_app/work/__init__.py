"""The life of what runners work at: queued, running, lost and taken up again, ended.

`lifecycle` is that of evaluations, `job_lifecycle` that of checks and baselines; `runner_jobs`
treats both alike. `journal` keeps every event, `outcome` turns a result into columns, `access` says
who may see what.
"""
