"""Everything that changes tasks, their versions and their drafts."""

from __future__ import annotations

from tasks_app.services.agents import is_kept_agent
from tasks_app.services.bulk import Action, Bulk, Outcome, decide_many, preview, read_bulk
from tasks_app.services.curation import (
    clear_contamination,
    label,
    label_imported,
    label_new,
    make_public,
    mark_contaminated,
    restore,
    retire,
)
from tasks_app.services.draft_files import said_name
from tasks_app.services.draft_refusals import (
    free_name,
    is_next_version,
    limit_refusal,
    overtaken_by,
    task_refusals,
)
from tasks_app.services.drafts import (
    close_draft,
    copy_version,
    create_draft,
    edit_draft,
    may_reopen,
    may_write,
    publish_draft,
    reopen_draft,
    send_back,
    send_to_review,
    snapshot,
    take_over,
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
    "close_draft",
    "copy_version",
    "create_draft",
    "decide_many",
    "edit_draft",
    "free_name",
    "is_kept_agent",
    "is_next_version",
    "label",
    "label_imported",
    "label_new",
    "limit_refusal",
    "make_public",
    "mark_contaminated",
    "may_reopen",
    "may_write",
    "note",
    "override_gate",
    "overtaken_by",
    "preview",
    "publish",
    "publish_draft",
    "read_bulk",
    "record_report",
    "reopen_draft",
    "restore",
    "retire",
    "said_name",
    "send_back",
    "send_to_review",
    "snapshot",
    "store_version",
    "take_over",
    "task_refusals",
]
