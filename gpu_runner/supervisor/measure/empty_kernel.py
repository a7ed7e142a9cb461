"""Calibrates by an empty kernel: what the supervisor's own clock adds to every burst."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from gpu_runner.data.codec import decode, encode
from gpu_runner.data.protocol import (
    CALIBRATED_WORKLOADS,
    CALIBRATION_ATTEMPTS,
    CALIBRATION_VALID_S,
    DISTURBED_NS,
    EMPTY_BURSTS,
    PRECISE_NS,
    VAGUE_VALID_S,
    WARM_UP_PARTS,
)
from gpu_runner.data.signature import Signature
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.supervisor.build import elf
from gpu_runner.supervisor.build.build import build_shim, build_trusted
from gpu_runner.supervisor.build.declaration import declaration
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.device import cuda_architecture
from gpu_runner.supervisor.device.environment import stack
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import read_json, write_atomically
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.collected import Collected
from gpu_runner.supervisor.measure.outside import EmptyKernelTime, empty_kernel_time
from gpu_runner.supervisor.runner.faults import FaultError, RunnerUnfit
from gpu_runner.supervisor.runner.target import Target

_IDLE_THREADS = 7  # chosen: so many that one's cost stands out of the noise
IDLE = f"""#include <pthread.h>
#include <unistd.h>
namespace {{
void* kbench_wait(void*) {{
  for (;;) pause();
}}
__attribute__((constructor)) void kbench_idle() {{
  for (int i = 0; i < {_IDLE_THREADS}; ++i) {{
    pthread_t thread;
    pthread_create(&thread, nullptr, kbench_wait, nullptr);
  }}
}}
}}
"""
_LAUNCH = "__global__ void kbench_nothing() {}\n"
TEAM = """extern "C" int omp_get_max_threads();
__attribute__((used)) int (*kbench_team)() = omp_get_max_threads;
"""
WAITING = {
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaFree",
    "cudaStreamSynchronize",
    "cudaStreamSynchronize_ptsz",
}
"""Functions that wait for a device, and so cost a call what it takes to wake its host."""


class Habit(StrEnum):
    """What a kernel of the c ABI does in each call that an empty one must do as well."""

    NONE = ""
    TEAM = "team"  # a team of OpenMP threads is woken (`wake.h`)
    WAIT = "wait"  # its host waits for the device


_EMPTY = Signature.parse("void kbench_empty(float* out)")
"""Of a C++ runner's empty kernel: what it costs to hand over arguments is some nanoseconds each."""


class EmptyKernelCalibration:
    """What an empty kernel takes on this host, by workload; measured where that is not known.

    Those of a C++ runner are the host's, whatever the task; a torch runner takes inputs or hands
    out outputs, and so each workload has its own.
    """

    def __init__(
        self, task: Task, direction: Direction, config: SupervisorConfig, target: Target
    ) -> None:
        """`target` is what will be measured: the empty kernel is run the same way."""
        self._config, self._target = config, target
        self._habit = habit(config.kind, target)
        self._is_shared = target.abi is Abi.C
        of = "c" if self._is_shared else f"{task.digest()} {direction}"
        of = f"empty, its copies recorded {of} {config.index} {self._habit} {stack(config)}"
        self._folder = config.cached("empty_kernel", of)

    def known(self, workloads: Sequence[Workload]) -> dict[str, EmptyKernelTime]:
        """Those of these workloads that are remembered, however old."""
        return {w.name: self._read(w) for w in workloads if self._path(w).exists()}

    def of(
        self, bench: Bench, workloads: Sequence[Workload], *, fresh: bool
    ) -> Mapping[str, EmptyKernelTime]:
        """By workload; `fresh` asks for a measurement of now.

        Raises `RunnerUnfit` if the empty kernel fails.
        """
        missing = [w for w in workloads if fresh or not self._remembers(w)]
        best: dict[Path, EmptyKernelTime] = {}
        for _ in range(CALIBRATION_ATTEMPTS):
            if not missing:
                break
            try:
                found = self._measure(bench, missing)
            except FaultError as error:
                raise RunnerUnfit(f"the empty kernel fails on this host: {error}") from None
            for path, measured in found.items():
                if path not in best or measured.deviation_ns < best[path].deviation_ns:
                    best[path] = measured
            missing = [w for w in missing if not self._is_precise(best[self._path(w)])]
        for path, measured in best.items():
            write_atomically(path, encode(measured))
        return {w.name: self._read(w) for w in workloads}

    def _measure(self, bench: Bench, workloads: Sequence[Workload]) -> dict[Path, EmptyKernelTime]:
        bursts = EMPTY_BURSTS if self._config.kind is DeviceKind.CUDA else 0
        if not self._is_shared:
            found = bench.run_empty(self._empty(), workloads, bursts)
            return {self._path(w): _of(found[w.name]) for w in workloads}
        some = workloads[:CALIBRATED_WORKLOADS]
        idle_ns = self._idle_ns(bench, some)
        found = bench.run_empty(self._empty(), some, bursts, idle_ns)
        return {self._path(some[0]): replace(_of(*found.values()), idle_ns=idle_ns)}

    def _idle_ns(self, bench: Bench, workloads: Sequence[Workload]) -> float:
        """What a call typically costs a thread that only waits.

        On a device, a host's waiting threads cost it nothing that could be told from its errors.
        """
        if self._config.kind is not DeviceKind.CPU:
            return 0.0
        found = bench.run_empty(self._empty(idle=True), workloads, bursts=0)
        others = sorted(ran for state in found.values() for ran in state.others_ns)
        return float(others[len(others) // 2]) if others else 0.0

    def _empty(self, *, idle: bool = False) -> Target:
        target = self._target
        if target.abi is Abi.TORCH:
            return Target(target.abi, target.direction, baseline="empty")
        if idle:
            library = build_empty(_EMPTY, self._config, extra=IDLE)
        else:
            library = build_empty(_EMPTY, self._config, self._habit)
        return replace(
            target, library=library, symbol=_EMPTY.symbol, shim=build_shim(_EMPTY, self._config)
        )

    def _remembers(self, workload: Workload) -> bool:
        path = self._path(workload)
        if not path.exists():
            return False
        known, kind = self._read(workload), self._config.kind
        sure = self._is_precise(known) and known.spread_ns <= DISTURBED_NS[kind]
        return time.time() - path.stat().st_mtime < (
            CALIBRATION_VALID_S if sure else VAGUE_VALID_S[kind]
        )

    def _is_precise(self, measured: EmptyKernelTime) -> bool:
        return measured.deviation_ns <= PRECISE_NS[self._config.kind]

    def _read(self, workload: Workload) -> EmptyKernelTime:
        return decode(EmptyKernelTime, read_json(self._path(workload)))

    def _path(self, workload: Workload) -> Path:
        of = "c" if self._is_shared else workload.name
        return self._folder / f"{hashlib.sha256(of.encode()).hexdigest()}.json"


def _of(*states: Collected) -> EmptyKernelTime:
    return empty_kernel_time(
        [burst for state in states for burst in state.bursts],
        [host_ns for state in states for host_ns in state.host_ns],
        [
            held_ns
            for state in states
            for held_ns in state.held_ns[len(state.held_ns) // WARM_UP_PARTS :]
        ],
        [gate_ns for state in states for gate_ns in state.gate_ns] or (0.0,),
    )


def habit(kind: DeviceKind, target: Target) -> Habit:
    """What this kernel's library asks of others; nothing for a torch extension."""
    if target.abi is not Abi.C or target.library is None:
        return Habit.NONE
    try:
        library = elf.Library(target.library.read_bytes())
        if kind is DeviceKind.CUDA:
            asked = {symbol.name for symbol in library.symbols if not symbol.defined}
            waits = not asked.isdisjoint(WAITING)
            return Habit.WAIT if waits else Habit.NONE
        openmp = any(name.startswith("libgomp.") for name in library.names(elf.NEEDED))
        return Habit.TEAM if openmp else Habit.NONE
    except elf.NotALibrary:  # which the static checks say to a person
        return Habit.NONE


def build_empty(
    signature: Signature, config: SupervisorConfig, like: Habit = Habit.NONE, extra: str = ""
) -> Path:
    """The library of a kernel with this signature that does nothing, but for one empty launch.

    like: what it does in each call all the same. extra: source text that gives it threads.
    """
    body, head = "", extra
    if config.kind is DeviceKind.CUDA:
        body, head = "kbench_nothing<<<1, 1>>>();", _LAUNCH + extra
    if like is Habit.WAIT:
        body += " cudaDeviceSynchronize();"
    if like is Habit.TEAM:
        head += TEAM
    text = f'{declaration(signature, config.kind)}{head}extern "C" {signature.text} {{ {body} }}\n'
    source = f"empty{config.kind.language.suffix}"
    architecture = cuda_architecture(config.index) if config.kind is DeviceKind.CUDA else ""
    flags = tuple(toolchain.flags(config.kind, Abi.C, architecture))
    return build_trusted(Recipe({source: text}, source, config.kind, flags), config)
