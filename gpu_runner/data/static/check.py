"""Runs every static rule over a source; a hit is a suspicion for a person, never a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.static.case import Case
from gpu_runner.data.static.concurrency import CONCURRENCY_RULES
from gpu_runner.data.static.directives import DIRECTIVE_RULES, plain
from gpu_runner.data.static.preprocess import ExpansionTooLarge, Unit, read
from gpu_runner.data.static.torch_rules import TORCH_RULES
from gpu_runner.data.static.words import WORD_RULES
from gpu_runner.data.static.workloads import WORKLOAD_RULES
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Language

RULES = (*WORD_RULES, *TORCH_RULES, *CONCURRENCY_RULES, *WORKLOAD_RULES, *DIRECTIVE_RULES)
"""Every rule, in the order of the manual."""

SUSPICIONS_LIMIT = 32
"""Enough for a person to see what a source is; the rest would only be more of it."""


def check_source(
    source: str, passes: Sequence[str], language: Language, abi: Abi, task: Task
) -> tuple[Suspicion, ...]:
    """What a person should look at in a source, by line, at most `SUSPICIONS_LIMIT` of it.

    passes: the own lines of what the compiler's preprocessor made of it (`preprocess.own_lines`).

    Each reason begins with the name of its rule and a colon. A source of which its macros make too
    much to be read, or of which there are no passes, is suspicious for that alone.
    """
    found: list[Suspicion] = []
    try:
        unit = read(source, passes)
        if not unit.passes:
            raise ExpansionTooLarge
    except ExpansionTooLarge:
        reason = "macros: expand to more than a person would write"
        found.append(Suspicion(check=Check.SOURCE, reason=reason))
        written = plain(source)
        unit = Unit(source, (), written, (written,))
    case = Case(unit, language, abi, task)
    for rule in RULES:
        seen: dict[str, Suspicion] = {}
        for finding in rule.find(case):
            reason = readable(f"{rule.name}: {finding.sentence}")
            suspicion = Suspicion(check=Check.SOURCE, reason=reason, line=finding.line)
            first = seen.setdefault(finding.subject, suspicion)
            if finding.line < (first.line or 0):
                seen[finding.subject] = replace(first, line=finding.line)
        found += seen.values()
    found.sort(key=lambda suspicion: suspicion.line or 0)
    return tuple(found[:SUSPICIONS_LIMIT])


def readable(text: str) -> str:
    """One short line: a source can spell characters that no page and no database takes."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)[:300]
