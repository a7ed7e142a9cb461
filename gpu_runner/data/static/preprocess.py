"""Reads a source's directives, and what its compiler's preprocessor made of the source."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpu_runner.data.static.tokens import Kind, Token, tokens

EXPANSION_LIMIT = 200_000
"""Tokens of a source after its macros; one within the limit on its size needs far fewer."""

CHARACTERS_LIMIT = 4_000_000
"""Characters of them: joining a word to itself doubles it, in one token."""

LINE_MARKER = re.compile(r'^# (\d+) "(?:\\.|[^"\\\n])*"((?: \d)*)$', re.MULTILINE)
"""What the preprocessor writes where the file or the line changes: line, and flags."""

_ENTERS, _RETURNS = "1", "2"  # flags of a line marker
_OPENS_CONDITIONAL = {"if", "ifdef", "ifndef"}
_ELSE = {"else", "elif", "elifdef", "elifndef"}


class ExpansionTooLarge(Exception):
    """The macros of a source make more tokens than a person would write."""


@dataclass(frozen=True)
class Directive:
    """A preprocessing directive: `include`, `define`, and what stands behind the name."""

    name: str
    rest: tuple[Token, ...]
    line: int

    @property
    def spelled(self) -> str:
        """The rest of the line as it is written, as one text without blanks."""
        return "".join(f'"{t.text}"' if t.kind is Kind.STRING else t.text for t in self.rest)


@dataclass(frozen=True)
class Unit:
    """A source as its rules see it.

    directives: those of the source, and the pragmas that its macros made.
    written: what stands in the source, bodies of macros included, directives left out.
    passes: the code after its macros, once for each time that the compiler reads it: for the host
    and for a GPU.
    """

    text: str
    directives: tuple[Directive, ...]
    written: tuple[Token, ...]
    passes: tuple[tuple[Token, ...], ...]


def own_lines(output: str) -> str:
    """The part of a preprocessor's output that is no header's, each line at its place.

    Headers are entered and left by line markers with flags; those that a source writes itself, to
    pass code off as a header's, trip a rule.
    """
    lines: list[str] = []
    depth = 0  # of includes
    for part in f"\n{output}".split("\n# ")[1:]:
        head, _, text = part.partition("\n")
        marker = LINE_MARKER.match(f"# {head}")
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


def read(source: str, passes: Sequence[str]) -> Unit:
    """Tokenise a source and what `own_lines` gave of it; raises `ExpansionTooLarge`.

    All branches of the source's conditionals are read, but for `#if 0`.
    """
    directives: list[Directive] = []
    written: list[Token] = []
    for line in _live(_lines(tokens(source))):
        if not isinstance(line, Directive):
            written += line
            continue
        directives.append(line)
        if line.name == "define":
            written += line.rest[1:]
            written.append(Token(Kind.MARK, ";", line.line))
    code: list[tuple[Token, ...]] = []
    for text in passes:
        if len(text) > CHARACTERS_LIMIT:
            raise ExpansionTooLarge
        expanded = list(itertools.islice(tokens(text), EXPANSION_LIMIT + 1))
        if len(expanded) > EXPANSION_LIMIT:
            raise ExpansionTooLarge
        read_lines = list(_lines(expanded))
        directives += (line for line in read_lines if isinstance(line, Directive))
        parts = (line for line in read_lines if not isinstance(line, Directive))
        code.append(tuple(itertools.chain.from_iterable(parts)))
    return Unit(source, tuple(directives), tuple(written), tuple(code))


def _lines(source: Iterable[Token]) -> Iterator[Directive | list[Token]]:
    line: list[Token] = []
    for token in (*source, Token(Kind.NEWLINE, "\n", 0)):
        if token.kind is not Kind.NEWLINE:
            line.append(token)
        elif line:
            yield _directive(line) if line[0].text == "#" else line
            line = []


def _directive(line: Sequence[Token]) -> Directive:
    """`# 12 "file"`, which compilers write, counts as what it means: `#line`."""
    if len(line) < 2:
        return Directive("", (), line[0].line)
    if line[1].kind is Kind.NUMBER:
        return Directive("line", tuple(line[1:]), line[0].line)
    return Directive(line[1].text, tuple(line[2:]), line[0].line)


def _live(lines: Iterator[Directive | list[Token]]) -> Iterator[Directive | list[Token]]:
    """Leave out what is behind `#if 0` until its `#endif`, or `#else`, which then is an `#if`."""
    depth = 0  # of conditionals inside of what is left out, itself included
    for line in lines:
        name = line.name if isinstance(line, Directive) else ""
        if depth == 0:
            if isinstance(line, Directive) and name == "if" and line.spelled == "0":
                depth = 1
            else:
                yield line
        elif name in _OPENS_CONDITIONAL:
            depth += 1
        elif name == "endif":
            depth -= 1
        elif isinstance(line, Directive) and name in _ELSE and depth == 1:
            depth = 0
            yield replace(line, name=name.replace("el", "", 1) if name != "else" else "if")
