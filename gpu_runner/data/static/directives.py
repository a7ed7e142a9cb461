"""Rules about directives, attributes, assembly and text: what speaks to the compiler itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gpu_runner.data.static.case import Case, Finding, Rule
from gpu_runner.data.static.preprocess import LINE_MARKER, Directive
from gpu_runner.data.static.tokens import Kind, Token, closing, text_at, tokens
from gpu_runner.data.verdict import Language

_ODD_PATH = re.compile(
    r"[\"<](?:/|~|\\|.*\.\.|.*//|proc/|dev/|etc/)"
    r"|.*\.(?:so|py|toml|json|txt|c|C|cc|cpp|cxx|cu|i|ii|s|S)\b"
)
_ODD_HEADERS = re.compile(
    r"[\"<](?:dlfcn\.h|link\.h|elf\.h|sys/(?:ptrace|socket|syscall|prctl|uio|auxv|inotify|un|wait)\.h"
    r"|netinet/.*|arpa/.*|netdb\.h|linux/.*|asm/.*|spawn\.h|execinfo\.h|ucontext\.h"
    r"|cupti.*|nvrtc.*|nvJitLink.*|nvPTXCompiler.*|nvml\.h|pybind11/(?:embed|eval)\.h)[\">]"
)
_PRAGMA = re.compile(
    r"redefine_extname|weak|GCCdependency|GCCpch_preprocess|GCCinclude|GCCplugin|(?:push|pop)_macro"
)
_HAS = re.compile(r"__has_(?:include|include_next|embed)\(([^)]*)\)?")
_CUT = re.compile(r"(?!__\w+__\Z)(?:__|\w*_\Z)")  # a part of a compiler's name, and not a whole one
_ATTRIBUTES = {
    "constructor",
    "destructor",
    "init_priority",
    "ifunc",
    "resolver",
    "alias",
    "weakref",
    "section",
    "symver",
    "naked",
    "retain",
}
_ASM = {"asm", "__asm", "__asm__"}
_ASM_WORDS = {"volatile", "__volatile__", "__volatile", "inline", "__inline__", "goto"}
_ASM_DIRECTIVE = re.compile(
    r"(?:^|[;\n{}])[ \t\r\f\v]*(?:\w{1,200}:[ \t\r\f\v]*)?\.(incbin|include|macro|irpc?|rept"
    r"|pushsection|previous|subsection|symver|weakref|init_array|popsection|section\s*\.(?!debug)\w+|set\s|equ\s|type\s"
    r"|(?:byte|[248]byte|short|hword|value|word|long|int|quad|octa|ascii|asciz|string|inst|fill)\s)"
)
_SYSTEM_CALL = re.compile(r"\b(syscall|sysenter|int\s+\$?0x80|svc\s+\#?0)\b")
_LONGEST_TEMPLATE = 4096  # tokens
_MOST_ASSEMBLY = 1 << 21  # tokens and characters of all templates: one may stand within another
_DEVICE = {"device", "global"}
"""Attributes of functions for a GPU, which the macros `__device__` and `__global__` stand for."""
_PATH = re.compile(r"/(?:proc|etc|sys|dev|root|home|tmp|run|var|usr|lib|lib64|opt|work|mnt)(?:/|$)")
_LIBRARY_FILE = re.compile(r"(?:^|/)lib[\w+.-]+\.so(?:\.\d+)*$")
_INVISIBLE = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _directives(case: Case) -> Iterator[Finding]:
    for directive in case.unit.directives:
        if sentence := _about(directive):
            yield Finding(f"{directive.name}{directive.spelled}", directive.line, sentence)
    for stream in case.streams:
        for i, token in enumerate(stream):
            if token.text == "_Pragma" and i + 2 < len(stream):
                text = stream[i + 2].text.replace(" ", "")
                if _PRAGMA.match(text):
                    yield Finding(text, token.line, f"has the pragma {stream[i + 2].text!r}")
            if token.kind is Kind.STRING and LINE_MARKER.search(token.text):
                yield Finding(
                    "marker", token.line, "a text holds a line as the preprocessor writes"
                )


def _about(directive: Directive) -> str:
    name, spelled = directive.name, directive.spelled
    if name in ("include", "import"):
        return _about_include(spelled)
    if name in ("include_next", "embed"):
        return f"#{name} reads a file that it does not name plainly"
    if name == "line":
        return "#line gives another file and line to what the compiler says"
    if name == "pragma" and _PRAGMA.match(spelled):
        return f"has the pragma {' '.join(token.text for token in directive.rest)!r}"
    if name in ("if", "elif"):
        asked = _HAS.findall(spelled)
        if any(_about_include(file) for file in asked):
            return f"asks whether the file {asked[0]} exists"
        if _joins_words(directive.rest):
            return f"has a condition that puts words together: {spelled}"
    return ""


def _joins_words(condition: Sequence[Token]) -> bool:
    """Whether a macro is given words in a condition, one of them as they are when cut apart."""
    for i, token in enumerate(condition):
        called = token.kind is Kind.WORD and text_at(condition, i + 1) == "("
        if called and token.text != "defined" and not token.text.startswith("__has_"):
            given = condition[i + 2 : closing(condition, i + 1)]
            words = [each.text for each in given if each.kind is Kind.WORD]
            if len(words) > 1 and any(_CUT.match(word) for word in words):
                return True
    return False


def _about_include(spelled: str) -> str:
    if not spelled.startswith(('"', "<")):
        return f"includes a file whose name is computed: {spelled}"
    if _ODD_PATH.match(spelled):
        return f"includes {spelled}, which is no header of the toolchain"
    if _ODD_HEADERS.fullmatch(spelled):
        return f"includes {spelled}, for which a kernel has no use"
    return ""


def _attributes(case: Case) -> Iterator[Finding]:
    for stream in case.unit.passes:
        yield from _attributes_of(stream)


def _attributes_of(stream: Sequence[Token]) -> Iterator[Finding]:
    for i, token in enumerate(stream):
        gnu = token.text in ("__attribute__", "__attribute") and text_at(stream, i + 1) == "("
        standard = [text_at(stream, i + k) == "[" for k in (-1, 0, 1)] == [False, True, True]
        if not (gnu or standard):
            continue
        start = i + 1 if gnu else i
        for part in stream[start : closing(stream, start)]:
            word = part.text.strip("_") if part.kind is Kind.WORD else ""
            if word in _ATTRIBUTES:
                yield Finding(word, part.line, f"has the attribute {word!r}")


def _assembly(case: Case) -> Iterator[Finding]:
    read = 0
    for stream, (i, device) in _everywhere(case.unit.passes):
        if stream[i].text not in _ASM or stream[i].kind is not Kind.WORD:
            continue
        line = stream[i].line
        parts = _template(stream, i)
        text = "".join(parts)
        read += len(parts) + len(text)
        if read > _MOST_ASSEMBLY:
            yield Finding("asm", line, "it has more assembly than is read")
            return
        names = [match[1] for match in _ASM_DIRECTIVE.finditer(text)]
        if names:
            sentence = f"its assembly holds the directives .{', .'.join(names)}"
            yield Finding(sentence, line, sentence)
        elif _SYSTEM_CALL.search(text):
            yield Finding("system call", line, "its assembly enters the operating system")
        elif text.strip() and not (device and case.language is Language.CUDA):
            yield Finding("asm", line, f"assembly in host code: {text.strip()[:60]!r}")


def _everywhere(
    streams: Iterable[Sequence[Token]],
) -> Iterator[tuple[Sequence[Token], tuple[int, bool]]]:
    for stream in streams:
        for place in _with_side(stream):
            yield stream, place


def _template(stream: Sequence[Token], i: int) -> list[str]:
    """The instructions of an assembly statement, in parts: its first strings.

    Of a call among them, each argument stands on a line of its own.
    """
    at = i + 1
    while text_at(stream, at) in _ASM_WORDS:
        at += 1
    at += text_at(stream, at) == "("
    parts: list[str] = []
    depth = 0
    for token in stream[at : at + _LONGEST_TEMPLATE]:
        mark = token.text if token.kind is Kind.MARK else ""
        depth += (mark in ("(", "[")) - (mark in (")", "]"))
        if depth < 0 or (depth == 0 and mark in (":", "::", ",", ";", "{")):
            break
        parts.append("\n" if mark in ("(", ",") else f"{token.text} " * bool(depth) or token.text)
    return parts


def _with_side(stream: Sequence[Token]) -> Iterator[tuple[int, bool]]:
    """Every index, and whether it is in a function for the device."""
    device = False
    declared = False  # whether `__device__` stands in the declaration under way
    outside: list[tuple[bool, bool]] = []  # both of them, before each open brace
    for i in range(len(stream)):
        text = text_at(stream, i)
        if text in _DEVICE and text_at(stream, i - 3) == "__attribute__":
            declared = True
        elif text == "{":
            outside.append((device, declared))
            device, declared = device or declared, False
        elif text == "}" and outside:
            device, before = outside.pop()
            # Behind `x{1}` and `= {}`, the same declaration goes on.
            declared = before and text_at(stream, i + 1) in (",", "{", ")")
        elif text == ";":
            declared = False
        yield i, device


def _paths(case: Case) -> Iterable[Finding]:
    for stream in case.streams:
        for token in stream:
            if token.kind is not Kind.STRING:
                continue
            if _PATH.match(token.text) or _LIBRARY_FILE.search(token.text):
                yield Finding(token.text, token.line, f"holds the path {token.text[:80]!r}")


def _invisible(case: Case) -> Iterator[Finding]:
    for match in _INVISIBLE.finditer(case.unit.text):
        line = case.unit.text.count("\n", 0, match.start()) + 1
        name = f"U+{ord(match[0]):04X}"
        yield Finding(name, line, f"holds the invisible character {name}")
        return


def plain(source: str) -> tuple[Token, ...]:
    """Tokens of a source without its directives: what is left where macros cannot be followed."""
    return tuple(token for token in tokens(source) if token.kind is not Kind.NEWLINE)


DIRECTIVE_RULES = (
    Rule(
        "directives",
        "includes of absolute, upward, computed or useless paths, #include_next, #embed, #line, "
        "__has_include of such, conditions that put words together, pragmas that rename symbols, "
        "read files or bring back macros, texts that pass for lines of the preprocessor",
        _directives,
    ),
    Rule(
        "attributes",
        "constructors, destructors, ifuncs, aliases, sections, symbol versions, naked functions",
        _attributes,
    ),
    Rule(
        "assembly",
        "assembly in host code (an empty statement is a fence, and fine), and directives such as "
        ".incbin anywhere; PTX in device code is fine",
        _assembly,
    ),
    Rule("paths", "strings that are a path of the host or the name of a library file", _paths),
    Rule(
        "invisible-text",
        "characters that turn text around or cannot be seen, so that a person reads other code",
        _invisible,
    ),
)
