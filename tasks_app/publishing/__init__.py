"""Versions of tasks: stored once, made public if they are proven sound, and never changed.

`services` is the gate, and `snapshots` makes the versions of drafts, or says why not.
`labels` are a task's difficulty and tags. `audit_log` keeps what was done and by whom.
`import_report` tells of an import.
"""
