"""Which checks an audit needs before a place on a board is verified, and the tools for them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gpu_runner.data.verdict import Abi, DeviceKind
from gpu_runner.supervisor.audit import sanitizer
from gpu_runner.supervisor.build.elf import Library, NotALibrary
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.tools import ncu

PROFILED_CHECKS = ("kernels", "time")
"""What ncu is for: which kernels ran, and for how long."""

THREAD_CHECK = "threads"

CLOCK_CHECK = "clock"
"""That the supervisor's own clock was good enough to confirm the times."""

_ON_CUDA = (CLOCK_CHECK, *sanitizer.TOOLS, *PROFILED_CHECKS)
_REQUIRED = {
    (DeviceKind.CPU, Abi.C): (CLOCK_CHECK, "address", "undefined", "leftovers"),
    # Python and torch run under no other sanitizer of C++.
    (DeviceKind.CPU, Abi.TORCH): (CLOCK_CHECK, "undefined"),
    (DeviceKind.CUDA, Abi.C): _ON_CUDA,
    (DeviceKind.CUDA, Abi.TORCH): _ON_CUDA,
}
_STARTS_THREADS = re.compile(
    r"pthread_create|thrd_create|GOMP_\w+|__kmpc_\w+|_ZNSt6thread\w+|timer_create|aio_\w+"
    r"|clone\d?|v?fork|syscall|dlopen|dlv?sym|dlmopen"  # by which others could be reached
)
_LIBRARIES = {
    "AddressSanitizer": "libasan.so",
    "UndefinedBehaviorSanitizer": "libubsan.so",
    "ThreadSanitizer": "libtsan.so",
}


def required_checks(kind: DeviceKind, abi: Abi, library: Path | None) -> tuple[str, ...]:
    """Names of the checks that all must pass; `library` is the submission as it was measured.

    Races are looked for on a CPU, in the c ABI, where the library can start threads at all.
    """
    names = _REQUIRED[kind, abi]
    threads = kind is DeviceKind.CPU and abi is Abi.C and (not library or starts_threads(library))
    return (*names, THREAD_CHECK) if threads else names


def starts_threads(library: Path) -> bool:
    """Whether a library needs a function that starts threads or finds others; also if unreadable.

    Threads that the CPU's instructions alone could start are what static checks look for.
    """
    try:
        symbols = Library(library.read_bytes()).symbols
    except NotALibrary:
        return True
    return any(_STARTS_THREADS.fullmatch(s.name) for s in symbols if not s.defined)


def audit_tools(kind: DeviceKind) -> dict[str, str]:
    """The tools of an audit on such a device: where they are on this host, or `missing: ` what."""
    if kind is DeviceKind.CUDA:
        return {
            "compute-sanitizer": sanitizer.find() or "missing: it comes with the CUDA toolkit",
            "ncu": ncu.find() or "missing: Nsight Compute comes with the CUDA toolkit",
        }
    return {
        name: _compiler_file(library) or f"missing: {library}, which comes with g++"
        for name, library in _LIBRARIES.items()
    }


def _compiler_file(name: str) -> str:
    """Where g++ finds one of its libraries, or empty."""
    try:
        path = toolchain.compiler(DeviceKind.CPU).path
    except toolchain.ToolchainError:
        return ""
    done = subprocess.run(
        [path, f"-print-file-name={name}"], capture_output=True, text=True, check=False
    )
    printed = done.stdout.strip()  # the bare name where there is none
    return printed if Path(printed).is_absolute() else ""
