"""Compares the kernels that a profiler saw with those that a build has, and with a claimed time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.profile import KernelResources
from gpu_runner.data.protocol import PROFILED_SHARE, PROFILED_SLACK_NS
from gpu_runner.supervisor.build.ptxas import KERNELS_LIMIT
from gpu_runner.supervisor.tools.ncu_report import Launch

_REGISTERS = "launch__registers_per_thread"
_REGISTERS_SLACK = 8  # ncu may count what is allocated: a multiple of eight
_REGISTERS_LEAST = 16  # chosen: allowed, however few a kernel has
_HARMLESS = re.compile(r"FillFunctor|copy_kernel|CopyKernel|CatArrayBatchedCopy")
_LIBRARY = re.compile(
    r"gemm|gemv|xmma|cutlass|cudnn|cublas|cufft|cusparse|cusolver|nccl|\bat::|splitK", re.IGNORECASE
)
_BRACKETS = {"<": ">", "(": ")"}
_UNNAMED = ("(anonymous namespace)::", "<unnamed>::")


def plain(name: str) -> str:
    """A kernel's name without return type, namespaces, template arguments and parameters.

    Demanglers do not agree on the rest: `void ns::k<float>(float*)` and `ns::k(T1 *)` are both `k`.
    """
    for unnamed in _UNNAMED:
        name = name.replace(unnamed, "")
    kept = ""
    awaited: list[str] = []  # the brackets that are open, as what closes them
    for character in name:
        if character == "(" and not awaited:
            break
        if character in _BRACKETS:
            awaited.append(_BRACKETS[character])
        elif awaited and character == awaited[-1]:
            awaited.pop()
        elif not awaited:
            kept += character
    return kept.strip().rsplit("::", 1)[-1].rsplit(" ", 1)[-1]


def is_own(launch: Launch, resources: Sequence[KernelResources]) -> bool:
    """Whether the build has a kernel of this name that takes as many registers."""
    name, allocated = plain(launch.name), launch.raw.get(_REGISTERS)
    return any(
        plain(kernel.name) == name
        and (
            allocated is None
            or kernel.registers
            <= allocated
            <= max(_REGISTERS_LEAST, kernel.registers + _REGISTERS_SLACK)
        )
        for kernel in resources
    )


@dataclass(frozen=True)
class Listed:
    """The kernels of one call, parted into the build's own and others."""

    own: tuple[str, ...]
    others: tuple[str, ...]


def listed(launches: Iterable[Launch], resources: Sequence[KernelResources]) -> Listed:
    """Names of what ran, each once, in order."""
    own: dict[str, None] = {}
    others: dict[str, None] = {}
    for launch in launches:
        (own if is_own(launch, resources) else others)[launch.name] = None
    return Listed(tuple(own), tuple(others))


def kernels_check(
    name: str,
    calls: Sequence[Sequence[Launch]],
    resources: Sequence[KernelResources],
    *,
    libraries: bool,
    is_module: bool = False,
) -> AuditCheck:
    """Whether the same kernels ran in every call, and whether they are the submission's own.

    No build lists the kernels of a Python module: there, those named like a library's are not.
    """
    seen = [listed(launches, resources) for launches in calls]
    complete = len(resources) < KERNELS_LIMIT and not is_module
    suspicion = _suspicion(seen, complete=complete, libraries=libraries)
    if not suspicion and resources and not seen[0].own:
        suspicion = f"none of its own kernels ran, but {_names(seen[0].others)}"
    if suspicion:
        return AuditCheck(name=name, state=AuditState.SUSPICIOUS, reason=suspicion)
    others = f", and {_names(seen[0].others)}" if seen[0].others else ""
    reason = f"its own: {_names(seen[0].own) or 'none'}{others}"
    return AuditCheck(name=name, state=AuditState.PASSED, reason=reason)


def _suspicion(seen: Sequence[Listed], *, complete: bool, libraries: bool) -> str:
    if any(not one.own and not one.others for one in seen):
        return "no kernel ran in a profiled call"
    names = [{*map(plain, one.own), *map(plain, one.others)} for one in seen]
    if any(other != names[0] for other in names):
        differ = sorted({name for one in names for name in one ^ names[0]})
        return f"not the same kernels ran in two calls: {_names(differ)}"
    strange = [
        name
        for name in seen[0].others
        if not _HARMLESS.search(name) and (complete or _LIBRARY.search(name))
    ]
    if strange and not libraries:
        return f"kernels ran that are not its own: {_names(strange)}"
    return ""


def time_check(
    name: str, claimed_ns: float, calls: Sequence[Sequence[Launch]], workload: str
) -> AuditCheck:
    """Whether the claimed time of a call is as long as its kernels', by the profiler's clock."""
    seen_ns = min(busy_ns(launches) for launches in calls)
    words = (
        f"{workload}: claimed {claimed_ns / 1e3:.1f} us, its kernels took {seen_ns / 1e3:.1f} us"
    )
    short = claimed_ns < PROFILED_SHARE * seen_ns - PROFILED_SLACK_NS
    state = AuditState.SUSPICIOUS if short else AuditState.PASSED
    return AuditCheck(name=name, state=state, reason=words)


def busy_ns(launches: Iterable[Launch]) -> float:
    """Time of the kernels of the busiest stream: the profiler parts what ran side by side."""
    streams: dict[tuple[float, float], float] = defaultdict(float)
    for launch in launches:
        key = launch.raw.get("Context", 0.0), launch.raw.get("Stream", 0.0)
        streams[key] += launch.duration_ns
    return max(streams.values(), default=0.0)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(name[:80] for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
