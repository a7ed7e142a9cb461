"""What features may hear of runs and calls; receivers run in the same transaction."""

from __future__ import annotations

from django.dispatch import Signal

run_halted = Signal()
"""A run has ended, or somebody else than its owner paused it. Arguments: `run`, `what`, `now`."""

call_done = Signal()
"""A worker has done what it could for a call of a language model. Arguments: `call_id`."""
