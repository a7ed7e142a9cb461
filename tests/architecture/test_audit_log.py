"""The audit log is written, never asked: only the pages that show it read it."""

from __future__ import annotations

import re

from tests.architecture.words import ROOT

READ = re.compile(r"\bAuditEntry\.objects|\.audit_entries\b|\baudit_entries__")
SHOWN_OR_WRITTEN = {
    "tasks_app/publishing/audit_log.py",  # writes it
    "kbench_web/audit_log/views.py",  # the log's own page
    "tasks_app/pages/audit_page.py",
    "runs_app/features/curation/decisions/views.py",  # a task's part of it
    "runs_app/features/curation/drafts/page.py",  # a draft's part of it
}


def test_no_decision_is_read_out_of_the_log() -> None:
    found = {
        str(path.relative_to(ROOT))
        for app in ("tasks_app", "runs_app", "leaderboard_app", "kbench_web")
        for path in (ROOT / app).rglob("*.py")
        if "migrations" not in path.parts and READ.search(path.read_text())
    }
    assert found == SHOWN_OR_WRITTEN
