"""Runs every static rule over a source; a hit is a suspicion for a person, never a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.static.case import Case, Read, Rule
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


def source_suspicions(
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
    return by_line([*found, *raised_by(RULES, Case(unit, language, abi, task))])


def raised_by(rules: Iterable[Rule[Read]], case: Read) -> Iterator[Suspicion]:
    """What rules find: of each rule and subject one suspicion, at its first line."""
    for rule in rules:
        first: dict[str, Suspicion] = {}
        for finding in rule.find(case):
            reason = _readable(f"{rule.name}: {finding.sentence}")
            suspicion = Suspicion(check=Check.SOURCE, reason=reason, line=finding.line)
            known = first.setdefault(finding.subject, suspicion)
            if finding.line < (known.line or 0):
                first[finding.subject] = suspicion
        yield from first.values()


def by_line(found: Iterable[Suspicion]) -> tuple[Suspicion, ...]:
    """Suspicions in order, at most `SUSPICIONS_LIMIT` of them."""
    ordered = sorted(found, key=lambda suspicion: suspicion.line or 0)
    return tuple(ordered[:SUSPICIONS_LIMIT])


def _readable(text: str) -> str:
    """One short line: a source can spell characters that no page and no database takes."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)[:300]
