"""Whether a result counts: suspicions are quarantined until a person decides, records are audited.

`eligibility` says which evaluations count on boards, and why not. `docs/integrity.md` names the
threats.
"""
