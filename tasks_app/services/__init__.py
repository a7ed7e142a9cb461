"""Everything that changes tasks, their versions and their drafts."""

from __future__ import annotations

from tasks_app.services.errors import CurationError
from tasks_app.services.trail import note
from tasks_app.services.versions import (
    Publication,
    admit,
    admit_all,
    override_gate,
    publish,
    record_report,
    store_version,
)

__all__ = [
    "CurationError",
    "Publication",
    "admit",
    "admit_all",
    "note",
    "override_gate",
    "publish",
    "record_report",
    "store_version",
]
