"""The life of what runners work at: queued, running, lost and taken up again, ended.

`lifecycle` changes the status of jobs of every kind. `journal` tells what happens to them,
`outcome` turns a result into columns, `access` says who may see what.
"""
