"""Submissions of an earlier version are measured again: chosen, queued, compared.

`plan` says what would be done, `services` does it, `progress` tells how far it is.
"""
