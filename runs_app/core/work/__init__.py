"""The life cycle of runner jobs: queued, running, lost and retried, ended.

Only `lifecycle` changes the status of jobs, of every kind. `journal` records what happens to them,
`outcome` turns a result into columns, `access` says who may see what, and `estimate` how long a job
will take. `audit_state` says which audit counts for a place on a board, and copies its state to
evaluations.
"""
