"""Reads a compiler's log: the assembler's report (ptxas -v), and the compiler's warnings."""

from __future__ import annotations

import re

from gpu_runner.data.profile import KernelResources

_INTRODUCES = re.compile(
    r"(?:In file included from |In .*function |\S+: In |\s+(?:inlined )?from )"
)
_SAYS = re.compile(r"(?P<file>[^\s:][^:]*):\d+(?::\d+)?: (?P<kind>[a-z ]+): ")
_OWN = "/usr/lib/gcc/"
_ERROR = re.compile(r"\berror\b|undefined reference", re.IGNORECASE)
_LEFT_OUT = "\n... part of the log is left out ...\n"
KERNELS_LIMIT = 64
"""A torch extension can instantiate hundreds of library kernels; a report names the first."""

_ENTRY = re.compile(r"Compiling entry function '(.+)' for '\w+'")
_FUNCTION = re.compile(r"Function properties for (.+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")


def without_header_warnings(log: str) -> str:
    """The log without warnings of GCC's own headers, and without the notes to them."""
    kept: list[str] = []
    introduction: list[str] = []
    is_left_out = False
    for line in log.splitlines(keepends=True):
        if _INTRODUCES.match(line):
            introduction.append(line)
            continue
        if said := _SAYS.match(line):
            is_own = said["file"].startswith(_OWN)
            is_left_out = is_own and (
                said["kind"] == "warning" or (is_left_out and said["kind"] == "note")
            )
        elif not line.startswith(" "):
            is_left_out = False
        kept += [] if is_left_out else [*introduction, line]
        introduction = []
    return "".join(kept + introduction)


def shortened(log: str, limit: int) -> str:
    """At most so many characters of a log: from its first error on, and its last words."""
    if len(log) <= limit:
        return log
    lines = log.splitlines(keepends=True)
    first = next((place for place, line in enumerate(lines) if _ERROR.search(line)), 0)
    rest = "".join(lines[max(first - 1, 0) :])  # the line before says in which function it is
    if len(rest) <= limit:
        return log[-limit:]
    end = limit // 4
    return rest[: limit - end - len(_LEFT_OUT)] + _LEFT_OUT + rest[-end:]


def kernel_resources(log: str) -> tuple[KernelResources, ...]:
    """What each kernel takes, in the order of the log; empty where no assembler reported.

    A kernel's line on its registers ends what is said of it; the stack of a device function that
    was not inlined comes under a name of its own and is left out.
    """
    found: list[KernelResources] = []
    entry = function = ""
    stack = (0, 0, 0)
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry, stack = match[1], (0, 0, 0)
        elif match := _FUNCTION.search(line):
            function = match[1]
        elif (match := _STACK.search(line)) and function == entry:
            stack = (int(match[1]), int(match[2]), int(match[3]))
        elif entry and (match := _REGISTERS.search(line)):
            found.append(_resources(entry, int(match[1]), stack, line))
            entry = ""
    return tuple(found[:KERNELS_LIMIT])


def _resources(
    name: str, registers: int, stack: tuple[int, int, int], line: str
) -> KernelResources:
    return KernelResources(
        name=name,
        registers=registers,
        shared_bytes=sum(int(size) for size in _SHARED.findall(line)),
        constant_bytes=sum(int(size) for size in _CONSTANT.findall(line)),
        stack_bytes=stack[0],
        spill_store_bytes=stack[1],
        spill_load_bytes=stack[2],
    )
