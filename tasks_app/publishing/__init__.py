"""Task versions: stored once, published if they are proven sound, and never changed.

`services` is the gate, and `snapshots` makes versions from drafts, or says why it can't.
`labels` are a task's difficulty and tags. `audit_log` records who did what.
`import_report` describes an import.
"""
