"""Whether a result counts: suspicions are quarantined until a person decides, records are audited.

`standing` says which evaluations are on boards. `docs/integrity.md` names the threats.
"""
