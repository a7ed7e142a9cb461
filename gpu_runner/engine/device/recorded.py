"""A burst of a Python kernel's calls as one CUDA graph: no host keeps the device waiting."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpu_runner.engine.device import cuda_runtime

Calls = Sequence[Callable[[], object]]
Results = list[object]


class Recorder:
    """Records calls before their inputs are there, and makes them by a single launch once they are.

    A graph holds what the calls launch, so that nothing of it can run early, and leaves out what
    Python needs to queue it, which for a kernel of some 50 us is the longer of the two. Calls that
    wait for the device, read a value on the host or launch to the default stream cannot be
    recorded; they are made one after the other.
    """

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._pool: Any = None
        self._refused: set[int] = set()
        self.results: Results = []
        """What the calls returned that were recorded last; empty where they could not be."""

    def record(self, setup: int, calls: Calls) -> Callable[[], Results]:
        """What makes these calls of a workload, and returns what each returned.

        It must outlive their outputs, whose memory is the graph's. setup: the workload's number. A
        workload that could not be recorded is not tried again.
        """
        self.results = []
        if setup not in self._refused:
            try:
                return self.recorded(calls)
            except Exception:  # whatever a kernel raises then: the plain call says it again
                self._refused.add(setup)
                _forget_failure()
        return lambda: [call() for call in calls]

    def recorded(self, calls: Calls) -> Callable[[], Results]:
        """As `record`; raises what a kernel or CUDA raises if they cannot be recorded."""
        if self._stream is None:
            handle = cuda_runtime.blocking_stream()
            self._stream = torch.cuda.ExternalStream(handle)  # type: ignore[no-untyped-call]
            self._pool = torch.cuda.graph_pool_handle()
        gc.collect()  # what is freed while a graph is recorded could call what it forbids
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=self._pool, capture_error_mode="global")
            try:
                results = [call() for call in calls]
            finally:
                graph.capture_end()
        self.results = results

        def made() -> Results:
            graph.replay()
            return results

        return made


def _forget_failure() -> None:
    """A graph that was not ended well leaves PyTorch's random numbers in wait for its end."""
    torch.cuda.synchronize()
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    generator.graphsafe_set_state(generator.clone_state())
