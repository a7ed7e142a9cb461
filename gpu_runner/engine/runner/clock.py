"""Time one call at a time, with cold caches, on the CPU or on the GPU."""

from __future__ import annotations

import ctypes
import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from gpu_runner.engine.device import cuda_runtime

_SHORTEST_NS = 1.0  # a time must be positive even where the overhead is more than the call
_EMPTY_CALLS = 201  # chosen: a steady median
_EMPTY_PAIRS = 51  # chosen: a steady median
_PAIRS_AGAIN = 5  # chosen: a tenth of those; the median follows a drift
_CALLS_BETWEEN = 100  # chosen: the pairs in between cost a twentieth of the calls
_LEAST_HEAD_START_NS = 80_000.0  # chosen: several launches, so that a host's hiccup stays out
_FIRST_HEAD_START_NS = 300_000.0  # chosen: of a call whose host time is unknown
_MOST_HEAD_START_NS = 10_000_000.0  # chosen: whoever queues for longer is timed with his host
_CALIBRATION_CYCLES = 2_000_000  # chosen: about a millisecond at a GPU's clock
_LEAST_FLUSH_BYTES = 32 << 20  # chosen: where the driver gives no or a tiny size of the L2

Function = Callable[..., object]


class HeadStart:
    """How long the GPU must be kept busy so that the host can queue a whole call meanwhile.

    One for each function and workload; follows the host's times of the last calls.
    """

    def __init__(self) -> None:
        self._host_ns: deque[float] = deque(maxlen=9)

    def note(self, host_ns: float) -> None:
        """The host took so long to queue a call."""
        self._host_ns.append(host_ns)

    @property
    def ns(self) -> float:
        """Nanoseconds to wait on the GPU before the next call."""
        if not self._host_ns:
            return _FIRST_HEAD_START_NS
        wanted = 1.5 * statistics.median(self._host_ns) + 20_000.0
        return min(max(wanted, _LEAST_HEAD_START_NS), _MOST_HEAD_START_NS)


class Clock(Protocol):
    """Measures calls; `overhead_ns` is the cost of an empty call, subtracted from every time.

    host_ns: how long the host took to queue the last call, until it waited or left; 0 where that
    is the call itself.
    """

    overhead_ns: float
    host_ns: int

    def flush(self, tensor: Tensor) -> None:
        """Put a tensor's memory out of the caches, where that is done range by range."""
        ...

    def wake(self) -> None:
        """Have a team of threads find the next call awake, as it would in a loop."""
        ...

    def call(
        self, function: Function, arguments: Sequence[object], head_start: HeadStart
    ) -> tuple[object, float]:
        """Result and time, in ns and positive, of one call; everything has finished on return."""
        ...

    def net_ns(self, time_ns: float) -> float:
        """A time that something else has measured, without the time of an empty call."""
        ...

    def finish(self) -> None:
        """Wait for what calls have queued."""
        ...

    def settle(self) -> None:
        """Wait for work that was queued before a call; forget launches that failed before it."""
        ...

    def scratch_bytes(self) -> float:
        """The most that was taken of a device since this was last asked, beyond what was then."""
        ...


class CpuClock:
    """The monotonic clock around the call; ranges are flushed from the caches by hand."""

    def __init__(self, support: Path) -> None:
        """`support` is the library with `kb_flush` and `kb_wake`; raises `OSError` without it."""
        library = ctypes.CDLL(str(support))
        self._flush = library.kb_flush
        self._flush.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        self._flush.restype = None
        self._wake = library.kb_wake
        self._wake.restype = None
        self._timed = ctypes.PyDLL(str(support)).kb_timed
        self._timed.restype = ctypes.py_object
        self.overhead_ns = 0.0
        self.host_ns = 0
        empty = [self._ns(_nothing, ())[1] for _ in range(_EMPTY_CALLS)]
        self.overhead_ns = float(statistics.median(empty))

    def flush(self, tensor: Tensor) -> None:
        """See `Clock.flush`."""
        self._flush(tensor.data_ptr(), tensor.nbytes)

    def wake(self) -> None:
        """See `Clock.wake`."""
        self._wake()

    def call(
        self, function: Function, arguments: Sequence[object], head_start: HeadStart
    ) -> tuple[object, float]:
        """See `Clock.call`; a CPU needs no head start."""
        result, time_ns = self._ns(function, arguments)
        return result, self.net_ns(time_ns)

    def net_ns(self, time_ns: float) -> float:
        """See `Clock.net_ns`."""
        return max(time_ns - self.overhead_ns, _SHORTEST_NS)

    def finish(self) -> None:
        """See `Clock.finish`: a call on the CPU is over when it returns."""

    def settle(self) -> None:
        """See `Clock.settle`: nothing is queued on a CPU."""

    def scratch_bytes(self) -> float:
        """See `Clock.scratch_bytes`: the supervisor sees a CPU's from outside."""
        return 0.0

    def _ns(self, function: Function, arguments: Sequence[object]) -> tuple[object, int]:
        time_ns = ctypes.c_uint64(0)
        told = ctypes.py_object(function), ctypes.py_object(tuple(arguments))
        result = self._timed(*told, ctypes.byref(time_ns))
        return result, time_ns.value


class CudaClock:
    """A pair of events around the call, queued behind an L2 flush and a busy wait."""

    def __init__(self) -> None:
        """Measure the wait's unit and the cost of an empty pair; takes some milliseconds."""
        properties = torch.cuda.get_device_properties()
        size = max(2 * properties.L2_cache_size, _LEAST_FLUSH_BYTES)
        self._flush_buffer = torch.empty(size, dtype=torch.uint8, device="cuda")
        self._start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._mark = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._mark.record()  # it exists from its first record on
        self._waking_ns = 0.0
        self._allocated = 0  # bytes, when `scratch_bytes` was last asked
        self._cycles_per_ns = self._calibrate()
        self._pairs: deque[float] = deque(maxlen=_EMPTY_PAIRS)
        self._empty_start = HeadStart()
        self._calls = 0
        self._profiled = "KERNEL_PROFILED" in os.environ  # only where a profiler wraps us
        self.overhead_ns = 0.0
        self.host_ns = 0
        self._measure_overhead(_EMPTY_PAIRS)
        self._waking_ns = self._measure_waking()

    def flush(self, tensor: Tensor) -> None:
        """Nothing: `call` flushes the whole L2 cache."""

    def wake(self) -> None:
        """Nothing: a device's threads need no waking."""

    def call(
        self, function: Function, arguments: Sequence[object], head_start: HeadStart
    ) -> tuple[object, float]:
        """See `Clock.call`."""
        if self._calls % _CALLS_BETWEEN == _CALLS_BETWEEN - 1:
            self._measure_overhead(_PAIRS_AGAIN)
        self._calls += 1
        if self._profiled and self._calls % 2 == 0:  # a workload's first call may load modules
            function = _profiled(function, is_first=self._calls == 2)
        result, time_ns = self._ns(function, arguments, head_start)
        return result, self.net_ns(time_ns)

    def net_ns(self, time_ns: float) -> float:
        """See `Clock.net_ns`."""
        return max(time_ns - self.overhead_ns, _SHORTEST_NS)

    def _ns(
        self, function: Function, arguments: Sequence[object], head_start: HeadStart
    ) -> tuple[object, float]:
        cycles = int(head_start.ns * self._cycles_per_ns)
        cuda_runtime.reset_persisting_cache()
        self._flush_buffer.fill_(0x5A)
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
        cuda_runtime.forget_launches()
        begun = time.monotonic_ns()
        self._start.record()
        cuda_runtime.arm_mark(self._mark.cuda_event)
        result = function(*arguments)
        self._end.record()
        cuda_runtime.arm_mark(0)
        self.host_ns = cuda_runtime.queued_ns(time.monotonic_ns()) - begun
        head_start.note(self.host_ns)
        self.finish()
        return result, self._work_ns()

    def _work_ns(self) -> float:
        """Time of the call's work on the device.

        Where its host waited for the work, that was over before the host was woken. See
        native/interposed.h.
        """
        whole_ns = _elapsed_ns(self._start, self._end)
        if not cuda_runtime.is_marked():
            return whole_ns
        return whole_ns - min(self._waking_ns, _elapsed_ns(self._mark, self._end))

    def finish(self) -> None:
        """See `Clock.finish`. Raises `RuntimeError` if a kernel of the call was not launched."""
        torch.cuda.synchronize()  # first: a kernel's fault makes later launches fail, too
        cuda_runtime.check_launches()

    def settle(self) -> None:
        """See `Clock.settle`."""
        torch.cuda.synchronize()
        cuda_runtime.forget_launches()

    def scratch_bytes(self) -> float:
        """See `Clock.scratch_bytes`: of PyTorch's allocator."""
        most = torch.cuda.max_memory_allocated() - self._allocated
        torch.cuda.reset_peak_memory_stats()
        self._allocated = torch.cuda.memory_allocated()
        return float(most)

    def _calibrate(self) -> float:
        """Cycles of the busy wait per ns; the fastest of a few, as clocks rise under load."""
        torch.cuda._sleep(_CALIBRATION_CYCLES)  # type: ignore[no-untyped-call]
        shortest = float("inf")
        for _ in range(5):
            self._start.record()
            torch.cuda._sleep(_CALIBRATION_CYCLES)  # type: ignore[no-untyped-call]
            self._end.record()
            torch.cuda.synchronize()
            shortest = min(shortest, _elapsed_ns(self._start, self._end))
        return _CALIBRATION_CYCLES / shortest

    def _measure_overhead(self, pairs: int) -> None:
        for _ in range(pairs):
            self._pairs.append(self._ns(_nothing, (), self._empty_start)[1])
        self.overhead_ns = statistics.median(self._pairs)

    def _measure_waking(self) -> float:
        """What nine of ten empty calls take to wake a host that waits for them."""
        samples = []
        for _ in range(_EMPTY_PAIRS):
            self._ns(torch.cuda.synchronize, (), self._empty_start)
            if cuda_runtime.is_marked():
                samples.append(_elapsed_ns(self._mark, self._end))
        return sorted(samples)[len(samples) * 9 // 10] if samples else 0.0


def make_clock(device: str, support: Path) -> Clock:
    """The clock of a device, "cpu" or "cuda"."""
    return CudaClock() if device == "cuda" else CpuClock(support)


def _profiled(function: Function, *, is_first: bool) -> Function:
    """The same function, its kernels shown to the profiler that wraps this process.

    A busy wait parts the kernels of one workload from those of the one before.
    """

    def call(*arguments: object) -> object:
        runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        runtime.cudaProfilerStart()
        if not is_first:
            torch.cuda._sleep(0)  # type: ignore[no-untyped-call]
        try:
            return function(*arguments)
        finally:
            runtime.cudaProfilerStop()

    return call


def _elapsed_ns(start: torch.cuda.Event, end: torch.cuda.Event) -> float:
    return float(start.elapsed_time(end)) * 1e6  # ms -> ns


def _nothing() -> None:
    pass
