"""What features may hear of runners; receivers run in the same transaction."""

from __future__ import annotations

from django.dispatch import Signal

device_made = Signal()
"""A device has shown itself for the first time. Arguments: `device`, `now`."""

heartbeat = Signal()
"""A runner has said that it lives. Arguments: `runner`, its `sensors` by name, and `now`."""
