"""Runs every static rule over a source; a hit is a suspicion for a person, never a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.static.case import Case, Code, Read, Rule
from gpu_runner.data.static.texts import TEXT_RULES
from gpu_runner.data.static.torch_rules import TORCH_RULES
from gpu_runner.data.static.words import WORD_RULES
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi

CHARACTERS_LIMIT = 4_000_000
"""Characters that are read; a source within the limit on its size needs far fewer."""

_MARKER = re.compile(r'# (\d+) "(?:\\.|[^"\\\n])*"((?: \d)*)$')
"""What the preprocessor writes when the file or the line changes: line, and flags."""
_ENTERS, _RETURNS = "1", "2"  # flags of a line marker


def own_lines(output: str) -> str:
    """The part of a preprocessor's output that comes from no header, with each line in its place.

    Line markers with flags enter and leave headers. A source that writes its own, to pass code off
    as a header's, trips the rule `directives`.
    """
    lines: list[str] = []
    depth = 0  # of includes
    for part in f"\n{output}".split("\n# ")[1:]:
        head, _, text = part.partition("\n")
        marker = _MARKER.match(f"# {head}")
        if marker is None:  # a pragma of a header, say
            text = f"# {part}"
        else:
            flags = marker[2].split()
            depth += (_ENTERS in flags) - (_RETURNS in flags)
        if depth > 0:
            continue
        if marker is not None:
            lines += [""] * min(int(marker[1]) - 1 - len(lines), CHARACTERS_LIMIT)
        lines += text.split("\n") if text else []
    return "\n".join(lines)


RULES = (*WORD_RULES, *TORCH_RULES, *TEXT_RULES)
"""The rules for C++ and CUDA. Those for Python modules are `MODULE_RULES`."""

SUSPICIONS_LIMIT = 32
"""Enough for a person to see what a source is; the rest would only be more of it."""


def source_suspicions(
    source: str, passes: Sequence[str], abi: Abi, task: Task
) -> tuple[Suspicion, ...]:
    """What a person should look at in a source, by line, at most `SUSPICIONS_LIMIT` of it.

    passes: the own lines of what the compiler's preprocessor made of it (`preprocess.own_lines`).

    Each reason begins with the name of its rule and a colon. A source of which its macros make too
    much to be read, or of which there are no passes, is suspicious for that alone.
    """
    found: list[Suspicion] = []
    if not passes or any(len(text) > CHARACTERS_LIMIT for text in passes):
        reason = "macros: expand to more than a person would write"
        found.append(Suspicion(check=Check.SOURCE, reason=reason))
        passes = (source,)
    case = Case(source, tuple(map(Code, passes)), abi, task)
    return by_line([*found, *raised_by(RULES, case)])


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


def speaks_of_work(suspicion: Suspicion) -> bool:
    """Whether it is about who does the work, and not about an attack on the measurement."""
    name = suspicion.reason.removeprefix("import: ").partition(":")[0]
    return name in ("vendor-library", "torch-library", "python-library")


def _readable(text: str) -> str:
    """One short line: a source can spell characters that no page and no database takes."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)[:300]
