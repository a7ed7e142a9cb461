"""A language model's advice on a task: is a part of it redundant, or its baseline inefficient?

After robust-kbench's last filter (arXiv 2509.14279). It is advice that a person weighs: nothing
here decides whether a task is published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from runs_app.optimiser.evolve.answers import Unusable, fenced
from runs_app.optimiser.evolve.commands import Prompt
from runs_app.optimiser.evolve.prompts import (
    MAX_DESCRIPTION_TOKENS,
    MAX_REFERENCE_TOKENS,
    MAX_WORKLOADS_TOKENS,
    fill,
)
from runs_app.optimiser.evolve.sections import clip

CRITERIA = ("redundancy", "inefficiency")
MOST_CHARACTERS = 2000
"""Of a reason; what is more is cut."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a language model says of a task by one criterion."""

    criterion: str
    flagged: bool
    reason: str


def judge_prompt(
    *, title: str, dtype: str, description: str, reference: str, workloads: str
) -> Prompt:
    """What is asked of a task; the texts must be those that everybody may see."""
    return fill(
        "judge_task",
        {
            "title": title,
            "dtype": dtype,
            "description": clip(description.strip(), MAX_DESCRIPTION_TOKENS),
            "reference": clip(reference.strip(), MAX_REFERENCE_TOKENS),
            "workloads": clip(workloads, MAX_WORKLOADS_TOKENS),
        },
    )


def read_judgement(text: str, *, cut: bool = False) -> tuple[Judged, ...] | Unusable:
    """The verdict of each criterion, in the order of `CRITERIA`; nothing is guessed.

    cut: the answer ended before its author did. Of several JSON objects the last counts.
    """
    if cut:
        return Unusable("the answer was cut off")
    document = _last_object(text)
    if isinstance(document, Unusable):
        return document
    unknown = sorted(set(document) - set(CRITERIA))
    if unknown:
        return Unusable(f"the answer names an unknown criterion {unknown[0][:60]!r}")
    found: list[Judged] = []
    for criterion in CRITERIA:
        judged = _judged(criterion, document.get(criterion))
        if isinstance(judged, Unusable):
            return judged
        found.append(judged)
    return tuple(found)


def _last_object(text: str) -> Mapping[str, object] | Unusable:
    """The last closed JSON block, or the whole answer where it has no block at all."""
    blocks = [block for block in fenced(text) if block.tag in ("json", "")]
    piece = blocks[-1].text if blocks else text
    try:
        document = json.loads(piece)
    except (ValueError, RecursionError):
        return Unusable("the answer has no JSON object with its verdicts at its end")
    if not isinstance(document, dict):
        return Unusable("the answer's JSON is not an object")
    return document


def _judged(criterion: str, entry: object) -> Judged | Unusable:
    if not isinstance(entry, dict):
        return Unusable(f"the answer has no verdict on {criterion}")
    flagged, reason = entry.get("flagged"), entry.get("reason")
    if not isinstance(flagged, bool):
        return Unusable(f"{criterion}.flagged is neither true nor false")
    if not isinstance(reason, str) or not reason.strip(" ."):
        return Unusable(f"{criterion}.reason is missing")
    return Judged(criterion=criterion, flagged=flagged, reason=reason.strip()[:MOST_CHARACTERS])
