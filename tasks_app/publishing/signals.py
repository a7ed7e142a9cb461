"""What publishing tells features above it; receivers run in the same transaction."""

from __future__ import annotations

from django.dispatch import Signal

version_published = Signal()
"""A version has become public for the first time. Arguments: `version`, `now`."""
