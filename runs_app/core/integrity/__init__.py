"""Decides whether a result counts: suspicions wait for a person, and records are audited.

`eligibility` says which evaluations count on boards, and why not. `docs/integrity.md` names the
threats.
"""
