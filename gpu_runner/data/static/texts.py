"""Rules about directives, assembly, streams, and characters that a reader can't see."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from gpu_runner.data.static.case import Case, Code, Finding, Rule

_JOINED = re.compile(r"^(?:[^\n]*\\[ \t\f\v]*\r?\n)+[^\n]*", re.MULTILINE)
_SPLICE = re.compile(r"\\[ \t\f\v]*\r?\n")  # GCC joins lines also over blanks behind the backslash
_HEADER = (
    r"[\"<](?![^>\"\n]*(?:\.\.|//|\.(?:so|py|toml|json|txt|c|C|cc|cpp|cxx|cu|i|ii|s|S)\b))"
    r"\w[\w+./-]*[>\"]"
)
_DIRECTIVE = re.compile(
    r"^(?:.*\*/)?[^\S\n]*(?:\#|%:)[^\S\n]*"
    r"(?P<said>/\*|\d+(?![\w.):,])|(?:line|include_next|embed)\b"
    rf"|(?:include|import)\b(?![^\S\n]*{_HEADER}).*)",
    re.MULTILINE,
)
_LOOKS_FOR = re.compile(
    r"(?P<known>(?:\bdefined\b[^\S\n]*\(?|\bifn?def\b)[^\S\n]*)?"
    rf"\b(?P<said>__has_(?:include|embed)\w*)\b(?![^\S\n]*\([^\S\n]*{_HEADER}).*"
)
_OWN_INCLUDE = re.compile(r'#include[^\S\n]*"([\w./+-]+)"\s*(?://.*|/\*.*)?$')
_ASSEMBLY = re.compile(
    r"(?<![\w$])(?:asm|__asm|__asm__)\b"
    r"(?:\s*(?:volatile|__volatile__|__volatile|inline|__inline__|goto)\b)*\s*\(([^:;{]*)"
)
_ASM_DIRECTIVE = re.compile(
    r"(?:^|[;\n{}])[ \t\r\f\v]*(?:\w{1,200}:[ \t\r\f\v]*)?\.(incbin|include|macro|irpc?|rept"
    r"|pushsection|previous|subsection|symver|weakref|init_array|popsection|section\s*\.(?!debug)\w+|set\s|equ\s|type\s"
    r"|(?:byte|[248]byte|short|hword|value|word|long|int|quad|octa|ascii|asciz|string|inst|fill)\s)"
)
_SYSTEM_CALL = re.compile(r"\b(syscall|sysenter|int\s+\$?0x80|svc\s+\#?0)\b")
_RAW = re.compile(r'.*?R"([^(]*)\((.*)\)\1"', re.DOTALL)
_MAKES_STREAM = re.compile(
    r"\b(?:cudaStreamCreateWith\w+|cuStreamCreate\w*|getStreamFromPool)\s*\(\s*&?\s*(\w*)"
)
_WAITS = re.compile(
    r"\b(?:cuda(?:Stream|Device|Event)Synchronize|cu(?:Stream|Ctx|Event)Synchronize"
    r"|device_synchronize|cudaGraphLaunch|cudaStreamEndCapture)\b"
    r"|(?:\.|->|::)\s*(?:synchronize|block)\s*\("  # of torch's streams and events
)
_WAITS_FOR_EVENT = re.compile(r"\b(?:cuda|cu)StreamWaitEvent\s*\(\s*(\w+)")
_INVISIBLE = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _directives(case: Case) -> Iterator[Finding]:
    """Lines by which a source passes its own code off as a header's, or reads an odd file."""
    joined = Code(_JOINED.sub(_one_line, case.source.text), case.source.runs)
    for match in _DIRECTIVE.finditer(joined.text):
        said, at = f"#{match['said']}", match.start("said")
        if not _includes_own(said, joined.place(at)[0], case.files):
            yield joined.finding(said, at, f"contains the directive {said[:80]!r}")
    for match in _LOOKS_FOR.finditer(joined.text):
        if not match["known"]:
            said, at = match[0][:80], match.start("said")
            yield joined.finding(said, at, f"looks for an unusual file with {said!r}")


def _includes_own(said: str, file: str, files: frozenset[str]) -> bool:
    """Whether a directive in a file includes another file of the submission."""
    if not (named := _OWN_INCLUDE.match(said)):
        return False
    beside = posixpath.join(posixpath.dirname(file), named[1])
    return any(posixpath.normpath(path) in files for path in (beside, named[1]))


def _one_line(match: re.Match[str]) -> str:
    """Spliced lines as one, with the others left in their places."""
    return _SPLICE.sub("", match[0]) + "\n" * match[0].count("\n")


def _assembly(case: Case) -> Iterator[Finding]:
    for code in case.passes:
        for match in _ASSEMBLY.finditer(code.plain):
            template = "".join(map(_meaning, code.strings(*match.span(1))))
            if sentence := _about(template):
                yield code.finding(sentence, match.start(), f"its assembly {sentence}")


def _about(template: str) -> str:
    if names := [match[1] for match in _ASM_DIRECTIVE.finditer(template)]:
        return f"contains the directives .{', .'.join(names)}"
    if _SYSTEM_CALL.search(template):
        return "makes a system call"
    return "is spelled with escapes" if "\\" in template else ""


def _meaning(literal: str) -> str:
    """What a string says; escapes that no assembly needs stay."""
    if raw := _RAW.fullmatch(literal):
        return raw[2].replace("\\", " ")
    plain = literal.partition('"')[2].removesuffix('"')
    return re.sub(r"\\([nrt\"'])", lambda m: "\n" if m[1] in "nr" else " ", plain)


def _streams(case: Case) -> Iterator[Finding]:
    """A stream that nobody ever waits for hides work from the clock.

    The default stream waits for those of `cudaStreamCreate` by itself.
    """
    for code in case.passes:
        made = list(_MAKES_STREAM.finditer(code.plain))
        own = {match[1] for match in made}
        joined = (match[1] not in own for match in _WAITS_FOR_EVENT.finditer(code.plain))
        if made and not _WAITS.search(code.plain) and not any(joined):
            sentence = "makes a non-blocking stream, and nothing ever waits for one"
            yield code.finding("stream", made[0].start(), sentence)


def _invisible(case: Case) -> Iterator[Finding]:
    if match := _INVISIBLE.search(case.source.text):
        name = f"U+{ord(match[0]):04X}"
        sentence = f"contains the invisible character {name}"
        yield case.source.finding(name, match.start(), sentence)


TEXT_RULES = (
    Rule(
        "directives",
        "#include of a source file, or of a path that is absolute, computed or leads to a parent "
        "folder; #include_next, #embed and #line",
        _directives,
    ),
    Rule(
        "assembly",
        "directives such as .incbin in assembly, and system calls; instructions are fine",
        _assembly,
    ),
    Rule(
        "streams",
        "non-blocking streams in a source that never waits for a stream, event or graph",
        _streams,
    ),
    Rule(
        "invisible-text",
        "characters that reverse text or are invisible, so that a person reads different code",
        _invisible,
    ),
)
