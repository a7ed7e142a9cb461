"""Runs every static rule over a source; a hit is a suspicion for a person, never a verdict."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.static.case import Case, Code, Read, Rule
from gpu_runner.data.static.texts import TEXT_RULES
from gpu_runner.data.static.torch_rules import TORCH_RULES
from gpu_runner.data.static.words import WORD_RULES
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi

CHARACTERS_LIMIT = 4_000_000
"""Characters that are read; a source within the limit on its size needs far fewer."""

_MARKER = re.compile(r'# (?P<line>\d{1,9}) "(?P<file>(?:\\.|[^"\\\n])*)"(?P<flags>(?: \d)*)$')
"""What the preprocessor writes when the file or the line changes: line, and flags."""
_ENTERS, _RETURNS = "1", "2"  # flags of a line marker


def own_lines(output: str, names: Sequence[str] = ()) -> Code:
    """The part of a preprocessor's output that comes from no header, with each line in its place.

    names: of a submission's files, the entry first, where it has several. These aren't taken for
    headers; lines stand as they come then, and the code tells the place of each.

    Line markers with flags enter and leave headers. A source that writes its own, to pass code off
    as a header's, trips the rule `directives`.
    """
    reader = _Reader(names)
    for part in f"\n{output}".split("\n# ")[1:]:
        head, _, text = part.partition("\n")
        if marker := _MARKER.match(f"# {head}"):
            reader.move(marker)
        else:  # a pragma of a header, say
            text = f"# {part}"
        reader.read(text)
    return Code("\n".join(reader.lines), tuple(reader.runs))


class _Reader:
    """Follows line markers, and keeps the lines of a submission's own files."""

    def __init__(self, names: Sequence[str]) -> None:
        self.lines: list[str] = []
        self.runs: list[tuple[int, str, int]] = []
        self._names = {name: name if index else "" for index, name in enumerate(names)}
        self._entered: list[str | None] = []  # files that are included now; None: a header

    @property
    def _file(self) -> str | None:
        return self._entered[-1] if self._entered else ""

    def move(self, marker: re.Match[str]) -> None:
        """Go where a marker says."""
        flags = marker["flags"].split()
        if _RETURNS in flags and self._entered:
            self._entered.pop()
        if _ENTERS in flags:
            self._entered.append(self._names.get(posixpath.normpath(marker["file"])))
        if (file := self._file) is None:
            return
        number = int(marker["line"])
        if self._names:
            self.runs.append((len(self.lines) + 1, file, number))
        else:
            self.lines += [""] * min(number - 1 - len(self.lines), CHARACTERS_LIMIT)

    def read(self, text: str) -> None:
        """Keep lines unless they are a header's."""
        if text and self._file is not None:
            self.lines += text.split("\n")


RULES = (*WORD_RULES, *TORCH_RULES, *TEXT_RULES)
"""The rules for C++ and CUDA. Those for Python modules are `MODULE_RULES`."""

SUSPICIONS_LIMIT = 32
"""Enough for a person to see what a source is; the rest would only be more of it."""


def source_suspicions(
    source: str, passes: Sequence[str], abi: Abi, task: Task
) -> tuple[Suspicion, ...]:
    """`code_suspicions` of a single text."""
    return code_suspicions({"": source}, tuple(map(Code, passes)), abi, task)


def code_suspicions(
    texts: Mapping[str, str], passes: Sequence[Code], abi: Abi, task: Task
) -> tuple[Suspicion, ...]:
    """What a person should look at in a source, by line, at most `SUSPICIONS_LIMIT` of it.

    texts: its files by name, the entry first. passes: the own lines of what the compiler's
    preprocessor made of them (`own_lines`).

    Each reason begins with the name of its rule and a colon. A source of which its macros make too
    much to be read, or of which there are no passes, is suspicious for that alone.
    """
    found: list[Suspicion] = []
    written = Code.joined(texts)
    if not passes or any(len(code.text) > CHARACTERS_LIMIT for code in passes):
        reason = "macros: expand to more than a person would write"
        found.append(Suspicion(check=Check.SOURCE, reason=reason))
        passes = (written,)
    case = Case(written, (*passes, *_unread(texts, passes)), abi, task, frozenset(texts))
    return by_line([*found, *raised_by(RULES, case)])


def _unread(texts: Mapping[str, str], passes: Sequence[Code]) -> list[Code]:
    """The files beside the source that no pass has a line of, as they were written."""
    read = {file for code in passes for _, file, _ in code.runs}
    left = {name: text for name, text in list(texts.items())[1:] if name not in read}
    return [Code.joined({"": "", **left})] if left else []


def raised_by(rules: Iterable[Rule[Read]], case: Read) -> Iterator[Suspicion]:
    """What rules find: of each rule and subject one suspicion, at its first line."""
    for rule in rules:
        first: dict[str, Suspicion] = {}
        for finding in rule.find(case):
            reason = _readable(f"{rule.name}: {finding.sentence}")
            suspicion = Suspicion(
                check=Check.SOURCE, reason=reason, line=finding.line, file=finding.file
            )
            known = first.setdefault(finding.subject, suspicion)
            if _place(suspicion) < _place(known):
                first[finding.subject] = suspicion
        yield from first.values()


def by_line(found: Iterable[Suspicion]) -> tuple[Suspicion, ...]:
    """Suspicions in order, as many as `most` leaves."""
    return tuple(sorted(most(sorted(found, key=_place)), key=_place))


def most(found: Iterable[Suspicion]) -> list[Suspicion]:
    """At most `SUSPICIONS_LIMIT`; hints are left out first, so that they never hide another."""
    return sorted(found, key=speaks_of_work)[:SUSPICIONS_LIMIT]


def _place(suspicion: Suspicion) -> tuple[str, int]:
    return suspicion.file, suspicion.line or 0


def speaks_of_work(suspicion: Suspicion) -> bool:
    """Whether it is about who does the work, and not about an attack on the measurement."""
    name = suspicion.reason.removeprefix("import: ").partition(":")[0]
    return name in ("vendor-library", "torch-library", "python-library")


def _readable(text: str) -> str:
    """One short line: a source can spell characters that no page and no database takes."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)[:300]
