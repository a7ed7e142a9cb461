"""Versions of tasks: stored once, made public if they are proven sound, and never changed.

`services` is the gate, `audit_log` keeps what was done and by whom. `import_report` tells of an
import.
"""
