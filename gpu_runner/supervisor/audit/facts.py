"""Finds out what people ask before they use a kernel; see `gpu_runner.data.facts`.

Nothing here is a check: whatever fails leaves a fact unmeasured, with the reason.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpu_runner.data import codec
from gpu_runner.data.facts import NAMES, Facts
from gpu_runner.data.task import Part, Workload
from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.trials import Trial, Trials
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.preemption import Interrupted
from gpu_runner.supervisor.runner.target import Target

logger = logging.getLogger(__name__)

_CALLS = 3  # chosen: two may agree by chance
_BITS_S = 1.0  # chosen: most tasks' workloads fit, and an audit takes a minute
_MOST_WORKLOADS = 4  # chosen: each takes memory in the process
_ENERGY_S = 0.75  # chosen: above the least by what an estimate may be off
_LEAST_ENERGY_S = 0.5  # chosen: five steps of a GPU's counter
_TRIAL_S = 0.02  # chosen: a good estimate of a call, launching included
_ATTEMPTS = 3  # chosen: each tells better how long many calls take
_MOST_CALLS = 1_000_000  # chosen: half a second of the quickest launches, and an end

EXACT_BYTES = 256 << 10
"""Linux counts a thread's pages in steps. Source: mm.h, 64 pages before Linux 6.2."""

_RESET_PEAK = "5"  # Source: proc_pid_clear_refs(5)
_FIELDS = ("VmHWM", "VmRSS", "RssFile", "RssShmem")
POWERCAP = Path("/sys/class/powercap")
_TICK_S = 0.5  # chosen: five times the slowest counter, a GPU's, which moves every 0.1 s
_LOOK_S = 0.0005  # chosen: a fraction of the quickest counter's millisecond

Joules = Callable[[], float]


class _NotMeasured(Exception):
    """Why a fact was not measured."""


class FactFinder:
    """Makes untimed calls of a kernel that was found right, in processes of their own."""

    def __init__(
        self, config: SupervisorConfig, bench: Bench, target: Target, known_ns: Mapping[str, float]
    ) -> None:
        """known_ns: time of a call, by workload."""
        self._config, self._bench, self._target = config, bench, target
        self._known_ns = known_ns
        self._values: dict[str, object] = {}
        self._said: dict[str, str] = {}
        self._replayed: Trial | None = None
        self._is_over = False  # the process has failed, and makes no further call

    def find(self, public: Sequence[Workload]) -> Facts:
        """All facts on these workloads; never raises what a process or a host does."""
        chosen = _chosen(public, lambda w: self._bench.sizes(w).tensors)
        trials = Trials(self._bench)
        on_device = self._config.kind is DeviceKind.CUDA
        with self._said_instead("same_bits", "scratch_bytes"):
            conditions = trials.conditions(self._config.kind)
            trials.run(self._target, chosen, conditions, self._ask)
        if self._replayed is not None:
            self._judge(self._replayed)
        with self._said_instead("batch_bits"):
            self._compare_batches(trials, chosen[-1])
        if not on_device:
            self._said["graph"] = "a CPU has no CUDA graphs"
            with self._said_instead("energy_joules"):
                read = counter(self._config)
                conditions = self._bench.conditions()
                trials.run(self._target, chosen[-1:], conditions, lambda t: self._meter(t[0], read))
        left = [name for name in NAMES if name not in self._said]
        self._said.update(dict.fromkeys(left, "its process ended first"))
        return codec.decode(
            Facts, {**self._values, "said": self._said, "workload": chosen[-1].name}
        )

    def _ask(self, trials: Sequence[Trial]) -> None:
        """The largest workload comes last; a smaller one before it loads and starts everything."""
        self._values.clear()
        self._said.clear()
        self._replayed, self._is_over = None, False
        largest, smaller = trials[-1], trials[:-1]
        steps: dict[str, Callable[[], None]] = {
            "scratch_bytes": lambda: self._measure_scratch(largest, smaller[:1]),
            "same_bits": lambda: self._compare_bits([largest, *smaller]),
        }
        if self._config.kind is DeviceKind.CUDA:
            steps["energy_joules"] = lambda: self._meter(largest, counter(self._config))
            steps["graph"] = lambda: self._record(largest)
        for name, step in steps.items():
            with self._said_instead(name):
                step()
            if self._is_over:
                break

    @contextmanager
    def _said_instead(self, *names: str) -> Iterator[None]:
        """Say why these facts are missing, if anything keeps them from being measured."""
        reason = ""
        try:
            yield
        except Interrupted:
            raise
        except FaultError as error:
            reason, self._is_over = error.fault.reason.partition("\n")[0], True
            if "graph" in names and error.fault.verdict is Verdict.RUNTIME_ERROR:
                self._values["graph"] = False
        except (_NotMeasured, NoCounter) as error:
            reason = str(error)
        except Exception as error:  # the verdict stands: it needs no fact
            logger.warning("facts %s: %r", ", ".join(names), error)
            reason = "this host could not measure it"
        if reason:
            self._said.update({name: reason for name in names if name not in self._said})

    def _measure_scratch(self, trial: Trial, before: Sequence[Trial]) -> None:
        for smaller in before:
            smaller.repeat()
        if self._config.kind is DeviceKind.CUDA:
            trial.scratch_bytes()
            trial.repeat()
            returned = trial.output_bytes if self._target.python else 0
            taken = max(int(trial.scratch_bytes()) - returned, 0)
            how = "PyTorch's allocator" if self._target.python else "CUDA's runtime"
            words = f"by {how}, in the kernel's own process"
            self._say("scratch_bytes", value=taken, words=words)
            return
        peak = PeakMemory(Path("/proc") / str(trial.pid))
        try:
            trial.repeat(begin=peak.begin)
            words = "growth of private memory, ±256 KiB"
            self._say("scratch_bytes", value=peak.taken(), words=words)
        except OSError as error:
            raise _NotMeasured(
                f"this host doesn't report a process's peak memory: {error}"
            ) from None

    def _compare_bits(self, trials: Sequence[Trial]) -> None:
        began, made = time.monotonic(), 0
        for trial in trials:
            if made and time.monotonic() - began > _BITS_S:
                break
            digests = {trial.keep(trial.repeat()) for _ in range(_CALLS)}
            if len(digests) > 1:
                name = trial.workload.name
                self._say("same_bits", value=False, words=f"{_CALLS} calls differ on {name}")
                return
            made += 1
        many = "listed workload" + ("s" if made > 1 else "")
        self._say("same_bits", value=True, words=f"{_CALLS} calls each on {made} {many}")

    def _compare_batches(self, trials: Trials, workload: Workload) -> None:
        if self._values.get("same_bits") is False:
            raise _NotMeasured("even calls with the same inputs differ")
        parts = trials.parts(workload, self._target.direction)
        if not parts:
            raise _NotMeasured("we found no batch of independent items in the task")

        def differs(made: Sequence[Trial]) -> bool:
            whole, *alone = made
            return any(_differs(each, whole, part) for each, part in zip(alone, parts, strict=True))

        conditions = trials.conditions(self._config.kind)
        found = trials.run(self._target, [workload, *parts], conditions, differs)
        items = " and ".join(f"{part.counted} = {part.items}" for part in parts)
        self._say("batch_bits", value=not found, words=f"{items}, from {workload.name}")

    def _meter(self, trial: Trial, joules: Callable[[], float]) -> None:
        metered = Metered(joules)
        known_s = self._known_ns.get(trial.workload.name, 1e9) / 1e9
        times = min(math.ceil(_TRIAL_S / known_s), _MOST_CALLS)
        seconds = trial.repeat(times).wall_ns / 1e9
        for _ in range(_ATTEMPTS):
            times = max(1, min(math.ceil(times * _ENERGY_S / seconds), _MOST_CALLS))
            seconds = trial.repeat(times, metered.begin).wall_ns / 1e9
            used, error = metered.end()
            if seconds >= _LEAST_ENERGY_S:
                words = f"{times} calls in {seconds:.2g} s, including the device's idle power"
                self._say("energy_joules", value=used / times, words=words)
                self._values["energy_error"] = error
                return
        raise _NotMeasured(f"{times} calls took only {seconds:.2g} s")

    def _record(self, trial: Trial) -> None:
        trial.graph()
        trial.keep(trial.graph())
        self._replayed = trial

    def _judge(self, trial: Trial) -> None:
        """Whether outputs of a replay are right; the process that made them is gone."""
        with self._said_instead("graph"):
            wrong = trial.mismatch()
            words = "recorded, replayed, and correct" if wrong is None else "its replay is wrong"
            self._say("graph", value=wrong is None, words=words)

    def _say(self, name: str, *, value: object, words: str) -> None:
        self._values[name], self._said[name] = value, words


def _chosen(public: Sequence[Workload], size: Callable[[Workload], int]) -> list[Workload]:
    """The smallest workloads and the largest, which comes last."""
    ordered = sorted(public, key=size)
    return [*ordered[:-1][: _MOST_WORKLOADS - 1], ordered[-1]]


def _differs(alone: Trial, whole: Trial, part: Part) -> bool:
    alone.share_inputs(whole)
    return alone.keep(alone.repeat()) != whole.keep(whole.repeat(), part)


class PeakMemory:
    """The most private memory that a process takes from `begin` to `taken`.

    It can't see memory that malloc kept from earlier calls and hands out again.
    """

    def __init__(self, process: Path) -> None:
        """`process` is its folder in /proc."""
        self._process = process
        self._before: dict[str, int] = {}

    def begin(self) -> None:
        """Forget the peak so far. Raises `OSError` where the host doesn't allow that."""
        (self._process / "clear_refs").write_text(_RESET_PEAK)
        self._before = self._read()

    def taken(self) -> int:
        """Bytes, without pages of files and shared memory, such as a call's tensors."""
        now = self._read()
        mapped = sum(max(now[name] - self._before[name], 0) for name in ("RssFile", "RssShmem"))
        taken = now["VmHWM"] - self._before["VmRSS"] - mapped
        return taken if taken > EXACT_BYTES else 0

    def _read(self) -> dict[str, int]:
        told = re.findall(r"^(\w+):\s*(\d+) kB$", (self._process / "status").read_text(), re.M)
        known = {name: int(kilobytes) << 10 for name, kilobytes in told}
        if missing := [name for name in _FIELDS if name not in known]:
            raise OSError(f"this host's /proc does not report {missing[0]}")
        return known


class NoCounter(Exception):
    """This host has no such counter, or doesn't let us read it; the text says why."""


def counter(config: SupervisorConfig) -> Joules:
    """What reads the device's counter in joules. Raises `NoCounter`."""
    if config.kind is DeviceKind.CUDA:
        return _gpu(config.index)
    return rapl(POWERCAP)


def _gpu(index: int) -> Joules:
    try:
        nvml.energy_mj(index)
    except nvml.NvmlError as error:
        raise NoCounter(f"this GPU doesn't count its energy: {error}") from None
    return lambda: nvml.energy_mj(index) / 1e3


def rapl(folder: Path) -> Joules:
    """The sum over processor packages, whose counters start again at their largest value."""
    packages = [path for path in folder.glob("intel-rapl:*") if path.name.count(":") == 1]
    if not packages:
        raise NoCounter("this host doesn't count its processors' energy (RAPL)")
    try:
        ranges = {path: _number(path / "max_energy_range_uj") for path in packages}
        last = {path: _number(path / "energy_uj") for path in packages}
    except OSError:
        raise NoCounter("this host doesn't let kbench read its energy counters (RAPL)") from None
    used = 0

    def joules() -> float:
        nonlocal used
        for path, before in last.items():
            last[path] = _number(path / "energy_uj")
            used += (last[path] - before) % (ranges[path] + 1)
        return used / 1e6

    return joules


def _number(path: Path) -> int:
    return int(path.read_text())


class Metered:
    """Energy from one step of a counter to another, with what surrounds it in between.

    It begins at a step and ends with the first one after the work. So it may hold the idle power
    of one more step, which is the error.
    """

    def __init__(self, joules: Joules) -> None:
        self._joules = joules
        self._step_s = self._began = self._before = 0.0

    def begin(self) -> None:
        """Wait for two steps of the counter. Raises `NoCounter` if it stands still."""
        first = self._step()
        self._began, self._before = self._step(), self._joules()
        self._step_s = self._began - first

    def end(self) -> tuple[float, float]:
        """Joules since then, and their relative error."""
        ended = self._step()
        return self._joules() - self._before, self._step_s / (ended - self._began)

    def _step(self) -> float:
        """When the counter moves next."""
        before, deadline = self._joules(), time.monotonic() + _TICK_S
        while self._joules() == before:
            if time.monotonic() > deadline:
                raise NoCounter(f"its energy counter did not move for {_TICK_S:g} s")
            time.sleep(_LOOK_S)
        return time.monotonic()
