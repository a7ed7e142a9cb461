"""Compares the kernels that a profiler saw with those that a build has, and with a claimed time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.profile import KernelResources
from gpu_runner.data.protocol import PROFILED_SHARE, PROFILED_SLACK_NS
from gpu_runner.supervisor.build.compiler_log import KERNELS_LIMIT
from gpu_runner.supervisor.tools.ncu import Launch
from gpu_runner.supervisor.work.attribution import Worked
from gpu_runner.supervisor.work.told import work_suspicions

_REGISTERS = "launch__registers_per_thread"
_REGISTERS_SLACK = 8  # ncu may count what is allocated: a multiple of eight
_REGISTERS_LEAST = 16  # chosen: allowed, however few a kernel has
_COPIES = re.compile(
    r"FillFunctor|copy_kernel|CopyKernel|CatArrayBatchedCopy|distribution_elementwise|BitwiseOr"
)
"""Of torch: they only prepare memory, or make the noise around a call."""
_LIBRARY = re.compile(
    r"xmma|nvjet|cudnn|cublas|cufft|cusparse|cusolver|nccl|\bat::|at_cuda_detail|cutlass(?:_+\d|3x)|Kernel2?<cutlass"
    r"|\b(?:ampere|volta|turing|maxwell|sm\d\d\d?)_\w*(?:gemm|conv|cudnn)"
    r"|\btriton_(?:poi|per|red|tem|for)_fused",  # the last are torch.compile's
    re.IGNORECASE,
)
_OF_CUTE = "kernel_cutlass_"  # how CuTe DSL calls what an author writes in it
_PERHAPS_LIBRARY = re.compile(
    r"gemm|gemv|splitK|cutlass|\btriton_(?:poi|per|red|tem|for|mm|bmm)_", re.IGNORECASE
)
"""Authors call kernels so, too: of a library unless the source defines one of that name."""
_BOUNDS = r"__(?:launch_bounds|cluster_dims|maxnreg)__\s*\((?:[^()]|\([^()]*\))*\)\s*"
_ABI_TAG = re.compile(r"\[abi:.*", re.DOTALL)  # by which numba tells a kernel's versions apart
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
class Ownership:
    """Tells whose a kernel is.

    resources: of the build's kernels; of a Python module none is known, and what is named like a
    library's kernel is one, and all else its own. source: its text.
    """

    resources: Sequence[KernelResources]
    source: str = ""
    is_module: bool = False

    def is_own(self, launch: Launch) -> bool:
        if is_own(launch, self.resources):
            return True
        is_listed = len(self.resources) < KERNELS_LIMIT and not self.is_module
        return not is_listed and not self._is_library(launch.name)

    def _is_library(self, name: str) -> bool:
        if _LIBRARY.search(name):
            return True
        if name.startswith(_OF_CUTE) or not _PERHAPS_LIBRARY.search(name):
            return False
        own = re.escape(_ABI_TAG.sub("", plain(name)))
        defined = rf"\b(?:def|void|kernel)\s+(?:{_BOUNDS})*{own}\s*[(<]"
        return re.search(defined, self.source) is None

    def work(self, launches: Iterable[Launch], workload: str) -> Worked:
        """Who did the work of a call, in ns of the device."""
        found = Worked(workload=workload, is_sampled=False)
        for launch in launches:
            if self.is_own(launch):
                found.own += round(launch.duration_ns)
            elif not _COPIES.search(launch.name):
                found.libraries[launch.name[:80]] += round(launch.duration_ns)
        return found


def kernels_check(
    calls: Sequence[Sequence[Launch]], ownership: Ownership, works: Iterable[Worked]
) -> AuditCheck:
    """Whether the same kernels ran in every call, and whether they are the submission's own.

    works: whose work calls were, these and others, where libraries may not do it.
    """
    first = calls[0]
    own = list(dict.fromkeys(launch.name for launch in first if ownership.is_own(launch)))
    others = list(dict.fromkeys(launch.name for launch in first if launch.name not in own))
    suspicion = _suspicion(calls)
    if not suspicion:
        found = (each.reason for worked in works for each in work_suspicions(worked))
        suspicion = next(found, "")
    if not suspicion and ownership.resources and not own:
        suspicion = f"none of its own kernels ran, but {_names(others)}"
    if suspicion:
        return AuditCheck(name="kernels", state=AuditState.SUSPICIOUS, reason=suspicion)
    more = f", and {_names(others)}" if others else ""
    return AuditCheck(
        name="kernels", state=AuditState.PASSED, reason=f"its own: {_names(own) or 'none'}{more}"
    )


def _suspicion(calls: Sequence[Sequence[Launch]]) -> str:
    if not all(calls):
        return "no kernel ran in a profiled call"
    names = [{plain(launch.name) for launch in call} for call in calls]
    if any(other != names[0] for other in names):
        differ = sorted({name for one in names for name in one ^ names[0]})
        return f"different kernels ran in two calls: {_names(differ)}"
    return ""


def time_check(
    claimed_ns: float, calls: Sequence[Sequence[Launch]], workload: str, *, is_whole: bool = True
) -> AuditCheck:
    """Whether the claimed time of a call is as long as its kernels', by the profiler's clock.

    is_whole: all of its kernels together, else its longest: what a CUDA graph runs side by side, a
    profiler shows on one stream.
    """
    took_ns = busy_ns if is_whole else longest_ns
    seen_ns = min(took_ns(launches) for launches in calls)
    what = "its kernels" if is_whole else "its longest kernel"
    words = f"{workload}: claimed {duration_text(claimed_ns)}, {what} took {duration_text(seen_ns)}"
    short = claimed_ns < PROFILED_SHARE * seen_ns - PROFILED_SLACK_NS
    state = AuditState.SUSPICIOUS if short else AuditState.PASSED
    return AuditCheck(name="time", state=state, reason=words)


def busy_ns(launches: Iterable[Launch]) -> float:
    """Time of the kernels of the busiest stream: the profiler parts what ran side by side."""
    streams: dict[tuple[float, float], float] = defaultdict(float)
    for launch in launches:
        key = launch.raw.get("Context", 0.0), launch.raw.get("Stream", 0.0)
        streams[key] += launch.duration_ns
    return max(streams.values(), default=0.0)


def longest_ns(launches: Iterable[Launch]) -> float:
    """Time of the longest kernel."""
    return max((launch.duration_ns for launch in launches), default=0.0)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(name[:80] for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
