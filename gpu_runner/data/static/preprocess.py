"""Reads a source's directives and puts its macros in, without the files that it includes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpu_runner.data.static.headers import MACROS
from gpu_runner.data.static.tokens import Kind, Token, tokens

EXPANSION_LIMIT = 200_000
"""Tokens that macros may make; a source within the limit on its size needs far fewer."""

CHARACTERS_LIMIT = 4_000_000
"""Characters of them: joining a word to itself doubles it, in one token."""

_OPENS_CONDITIONAL = {"if", "ifdef", "ifndef"}
_ELSE = {"else", "elif", "elifdef", "elifndef"}
_NONE: frozenset[str] = frozenset()


class ExpansionTooLarge(Exception):
    """The macros of a source make more tokens than a person would write."""


@dataclass(frozen=True)
class Directive:
    """A preprocessing directive: `include`, `define`, and what stands behind the name.

    `expanded` is the rest of a condition after its macros, else empty.
    """

    name: str
    rest: tuple[Token, ...]
    line: int
    expanded: tuple[Token, ...] = ()

    @property
    def spelled(self) -> str:
        """The rest of the line as it is written, as one text without blanks."""
        return _spelled(self.rest)

    @property
    def meant(self) -> str:
        """The rest of a condition after its macros, as one text without blanks."""
        return _spelled(self.expanded)


def _spelled(rest: Sequence[Token]) -> str:
    return "".join(f'"{t.text}"' if t.kind is Kind.STRING else t.text for t in rest)


@dataclass(frozen=True)
class Unit:
    """A source as its rules see it.

    written: what stands in the source, bodies of macros included, directives left out.
    expanded: the code after its macros, as far as the source or headers that are known define them.
    """

    text: str
    directives: tuple[Directive, ...]
    written: tuple[Token, ...]
    expanded: tuple[Token, ...]

    @property
    def conditions(self) -> tuple[Token, ...]:
        """What the conditions of `#if` say after their macros."""
        return tuple(token for directive in self.directives for token in directive.expanded)


@dataclass(frozen=True)
class _Macro:
    parameters: tuple[str, ...] | None  # None for one without parentheses
    body: tuple[Token, ...]


@dataclass
class _State:
    """Macros known so far, and how many tokens and characters they have made."""

    macros: dict[str, _Macro] = field(default_factory=dict)
    made: int = 0
    characters: int = 0

    def count(self, made: int, characters: int = 0) -> None:
        """Add to what macros have made; raises `ExpansionTooLarge`."""
        self.made += made
        self.characters += characters
        if self.made > EXPANSION_LIMIT or self.characters > CHARACTERS_LIMIT:
            raise ExpansionTooLarge

    def count_all(self, made: Sequence[Token]) -> None:
        """The same of these tokens."""
        self.count(len(made), sum(len(token.text) for token in made))


def read(source: str) -> Unit:
    """Tokenise, follow the directives, expand the macros; raises `ExpansionTooLarge`.

    All branches of conditionals are read, but for `#if 0`: no rule needs to know which is taken.
    """
    directives: list[Directive] = []
    written: list[Token] = []
    expanded: list[Token] = []
    code: list[Token] = []  # since the last directive
    state = _State(dict(_of_headers()))
    depth = 0  # of conditionals
    for line in _live(_lines(source)):
        if not isinstance(line, Directive):
            code += line
            continue
        depth += (line.name in _OPENS_CONDITIONAL) - (line.name == "endif")
        if line.name == "undef" and depth > 0:  # perhaps not
            directives.append(line)
            continue
        if line.name in ("if", "elif"):
            line = replace(line, expanded=tuple(_expand(line.rest, state)))
        if line.name in ("define", "undef"):  # what stands before it has the macros of before
            expanded += _expand(code, state)
            written += code
            code = []
            _learn(line, state.macros)
        directives.append(line)
        if line.name == "define":
            written += line.rest[1:]
            written.append(Token(Kind.MARK, ";", line.line))
    expanded += _expand(code, state)
    return Unit(source, tuple(directives), (*written, *code), tuple(expanded))


def _lines(source: str) -> Iterator[Directive | list[Token]]:
    line: list[Token] = []
    for token in (*tokens(source), Token(Kind.NEWLINE, "\n", 0)):
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
    """Leave out what stands between `#if 0` and its `#else`, which then is an `#if`, or `#endif`."""
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


@functools.cache
def _of_headers() -> Mapping[str, _Macro]:
    macros: dict[str, _Macro] = {}
    for directive in header_definitions():
        _learn(directive, macros)
    return macros


@functools.cache
def header_definitions() -> tuple[Directive, ...]:
    """The macros of headers that every source is read with."""
    return tuple(line for line in _lines(MACROS) if isinstance(line, Directive))


def _learn(directive: Directive, macros: dict[str, _Macro]) -> None:
    rest = directive.rest
    if not rest:
        return
    name = rest[0].text
    if directive.name == "undef":
        macros.pop(name, None)
        return
    parameters: tuple[str, ...] | None = None
    body = rest[1:]
    if body and body[0].text == "(":
        # `#define X (1)` has a blank before the bracket, which tokens do not tell: a list of
        # nothing but names and commas is taken for parameters.
        end = next((i for i, token in enumerate(body) if token.text == ")"), -1)
        inside = [token.text for token in body[1:end] if token.text != ","]
        names = all(text.isidentifier() or text == "." for text in inside)
        if end > 0 and names:
            parameters, body = _parameters(inside), body[end + 1 :]
    macros[name] = _Macro(parameters, tuple(body))


def _parameters(inside: Sequence[str]) -> tuple[str, ...]:
    named = [text for text in inside if text != "."]
    return (*named, "__VA_ARGS__") if "." in inside else tuple(named)


def _expand(code: Sequence[Token], state: _State, hidden: frozenset[str] = _NONE) -> list[Token]:
    """Tokens with their macros put in; a macro is not expanded inside of itself."""
    result: list[Token] = []
    at = 0
    while at < len(code):
        token = code[at]
        macro = state.macros.get(token.text) if token.kind is Kind.WORD else None
        at += 1
        if macro is None or token.text in hidden:
            result.append(token)
            continue
        arguments: list[list[Token]] = []
        if macro.parameters is not None:
            if at >= len(code) or code[at].text != "(":
                result.append(token)
                continue
            start = at
            arguments, at = _arguments(code, at)
            state.count(at - start)
        body = _substituted(macro, arguments, state, hidden)
        state.count(1)
        placed = [Token(part.kind, part.text, token.line) for part in body]
        result += _expand(placed, state, hidden | {token.text})
    return result


def _arguments(code: Sequence[Token], at: int) -> tuple[list[list[Token]], int]:
    """The arguments of a call whose bracket is at `at`, and where it ends."""
    arguments: list[list[Token]] = [[]]
    depth = 0
    for i in range(at, len(code)):
        text = code[i].text if code[i].kind is Kind.MARK else ""
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return arguments, i + 1
        if text == "," and depth == 1:
            arguments.append([])
        elif i > at:
            arguments[-1].append(code[i])
    return arguments, len(code)


def _substituted(
    macro: _Macro, arguments: list[list[Token]], state: _State, hidden: frozenset[str]
) -> list[Token]:
    given = _given(macro.parameters or (), arguments)
    body = macro.body
    result: list[Token] = []
    paste = False
    joined = 0  # tokens of the words that are being joined, so far
    for i, token in enumerate(body):
        if token.text == "##" and token.kind is Kind.MARK:
            paste = True
            continue
        pasted_next = i + 1 < len(body) and body[i + 1].text == "##"
        part = [token]
        if token.text in given and token.kind is Kind.WORD:
            if i > 0 and body[i - 1].text == "#":
                del result[-1:]
                state.count_all(given[token.text])
                text = " ".join(argument.text for argument in given[token.text])
                part = [Token(Kind.STRING, text, token.line)]
            elif paste or pasted_next:
                part = given[token.text]
            else:
                part = _expand(given[token.text], state, hidden)
        before = joined if paste else 0
        state.count_all(part)
        if before and part:
            word = result.pop().text + part[0].text
            state.count(0, len(word))  # which is read again, and may be joined many times
            part = [*tokens(word), *part[1:]]  # of a comment, no token is left
            before -= 1
        joined = before + len(part)
        paste = False
        result += part
    return result


def _given(parameters: Sequence[str], arguments: list[list[Token]]) -> Mapping[str, list[Token]]:
    given = {name: arguments[i] for i, name in enumerate(parameters) if i < len(arguments)}
    if parameters and parameters[-1] == "__VA_ARGS__":
        rest: list[Token] = []
        for argument in arguments[len(parameters) - 1 :]:
            comma = [Token(Kind.MARK, ",", argument[0].line)] if rest and argument else []
            rest += [*comma, *argument]
        given["__VA_ARGS__"] = rest
    return given
