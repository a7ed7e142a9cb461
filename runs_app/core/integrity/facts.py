"""What audits tell those who want to use a kernel: kept with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.facts import Facts
from runs_app.models import BoardAudit, Evaluation
from tasks_app.disclosure import public_text

_LONGEST = 300  # chosen: a sentence, and CUDA's own words for an error


def keep(audit: BoardAudit, result: EvaluationResult) -> None:
    """Store what an audit has told, if it told something; runners choose the words."""
    found = result.audit.facts if result.audit else None
    if found is None:
        return
    hidden = audit.submission.task_version.hidden_names
    said = {name: public_text(words, hidden)[:_LONGEST] for name, words in found.said.items()}
    shown = replace(found, said=said, workload=public_text(found.workload, hidden)[:_LONGEST])
    audit.facts = codec.encode(shown)
    audit.save(update_fields=["facts"])


def facts_of(audit: BoardAudit | None) -> Facts | None:
    """What is known of a place; None if no audit told it."""
    if audit is None or not audit.facts:
        return None
    return codec.decode_stored(Facts, audit.facts, "facts")


def with_fact(rows: QuerySet[Evaluation], **facts: bool) -> QuerySet[Evaluation]:
    """Those of these evaluations whose own audits have told these facts."""
    wanted: Mapping[str, Any] = {f"facts__{name}": value for name, value in facts.items()}
    audits = BoardAudit.objects.filter(
        submission=OuterRef("submission"), device=OuterRef("device"), **wanted
    )
    return rows.filter(Exists(audits)) if facts else rows
