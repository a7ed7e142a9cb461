"""What the life of a job tells features above it; receivers run in the same transaction."""

from __future__ import annotations

from django.dispatch import Signal

evaluation_ended = Signal()
"""An evaluation has its final status. Arguments: `evaluation`."""
