"""Reads the assembler's report (ptxas -v) out of a compiler's log."""

from __future__ import annotations

import re

from gpu_runner.data.profile import KernelResources

KERNELS_LIMIT = 64
"""A torch extension can instantiate hundreds of library kernels; a report names the first."""

_ENTRY = re.compile(r"Compiling entry function '(.+)' for '\w+'")
_FUNCTION = re.compile(r"Function properties for (.+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")


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
