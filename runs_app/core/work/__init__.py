"""The life of what runners work at: queued, running, lost and taken up again, ended.

`lifecycle` alone changes the status of jobs, of every kind. `journal` tells what happens to them,
`outcome` turns a result into columns, `access` says who may see what, `estimate` how long one will
take. `audit_state` says which audit counts for a place on a board, and repeats its state on
evaluations.
"""
