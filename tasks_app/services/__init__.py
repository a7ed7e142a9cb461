"""Everything that changes tasks, their versions and their drafts."""

from __future__ import annotations

from tasks_app.services.bulk import Action, Bulk, Outcome, decide_many, preview, read_bulk
from tasks_app.services.curation import (
    clear_contamination,
    label,
    make_public,
    mark_contaminated,
    restore,
    retire,
)
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
    "Action",
    "Bulk",
    "CurationError",
    "Outcome",
    "Publication",
    "admit",
    "admit_all",
    "clear_contamination",
    "decide_many",
    "label",
    "make_public",
    "mark_contaminated",
    "note",
    "override_gate",
    "preview",
    "publish",
    "read_bulk",
    "record_report",
    "restore",
    "retire",
    "store_version",
]
