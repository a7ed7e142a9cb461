"""What audits tell those who want to use a kernel: kept with its place, and put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.facts import Facts
from gpu_runner.data.numbers import plus_minus, scaled
from runs_app.models import BoardAudit, Evaluation
from tasks_app.disclosure import public_text

_LONGEST = 300  # chosen: a sentence, and CUDA's own words for an error
_BYTES = ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB"))
_JOULES = ((1e-9, "nJ"), (1e-6, "µJ"), (1e-3, "mJ"), (1.0, "J"))


@dataclass(frozen=True, kw_only=True)
class FactRow:
    """A fact in words; `said`: how it was measured, or why it was not."""

    label: str
    value: str
    said: str


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


def rows_of(facts: Facts | None) -> tuple[FactRow, ...]:
    """The facts in the order in which pages show them."""
    if facts is None:
        return ()
    on = f" on {facts.workload}" if facts.workload else ""
    told = [
        ("same_bits", "Same bits for the same input", _yes(facts.same_bits)),
        ("graph", "Works in a CUDA graph", _yes(facts.graph)),
        ("scratch_bytes", f"Scratch memory{on}", _amount(facts.scratch_bytes, _BYTES)),
        ("energy_joules", f"Energy per call{on}", _energy(facts)),
    ]
    return tuple(
        FactRow(label=label, value=value, said=facts.said.get(name, ""))
        for name, label, value in told
    )


def with_fact(rows: QuerySet[Evaluation], **facts: bool) -> QuerySet[Evaluation]:
    """Those of these evaluations whose own audits have told these facts."""
    wanted: Mapping[str, Any] = {f"facts__{name}": value for name, value in facts.items()}
    audits = BoardAudit.objects.filter(
        submission=OuterRef("submission"), device=OuterRef("device"), **wanted
    )
    return rows.filter(Exists(audits)) if facts else rows


def _yes(fact: bool | None) -> str:  # noqa: FBT001
    return {None: "not measured", True: "yes", False: "no"}[fact]


def _amount(value: float | None, scale: tuple[tuple[float, str], ...]) -> str:
    if value is None:
        return "not measured"
    return " ".join(scaled(value, scale)) if value else "none"


def _energy(facts: Facts) -> str:
    amount = _amount(facts.energy_joules, _JOULES)
    return amount if facts.energy_error is None else f"{amount} {plus_minus(facts.energy_error)}"
