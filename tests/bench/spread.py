"""Work on all devices of a host, in processes: threads would share one interpreter's lock.

A supervisor that waits for that lock notices an answer milliseconds late, and its clock with it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.queues import Queue
from typing import TypeVar

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device import cuda_devices

Item = TypeVar("Item")
Result = TypeVar("Result")
_PATIENCE_S = 1.0


def workers(text: str) -> int:
    """A number of processes, from a command line: without one nothing would be done, and fine."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes, from 1")
    return int(text)


def devices_of(kind: DeviceKind, only: str = "") -> list[int]:
    """Indices of this host's devices of a kind; `only` may name some, such as "0,2"."""
    found = cuda_devices() if kind is DeviceKind.CUDA else [0]
    try:
        wanted = [int(index) for index in only.split(",") if index]
    except ValueError:
        raise SystemExit(f"--indices: {only!r} is not a list of numbers") from None
    if unknown := set(wanted) - set(found):
        raise SystemExit(f"--indices: no {kind} device {min(unknown)}; there are {found}")
    return wanted or found


def spread(
    work: Callable[[Item, int], Result],
    items: Sequence[Item],
    *,
    devices: Sequence[int],
    each: int = 1,
    until: float = float("inf"),
) -> Iterator[Result]:
    """Results of `work(item, device)` as they come, from `each` processes a device.

    Nothing is begun after `until`, by `time.monotonic`. `work`, items and results are pickled.
    Raises `RuntimeError` if a process died; what `work` raises ends its process.
    """
    context = multiprocessing.get_context("spawn")  # NVML and CUDA do not outlive a fork
    todo: Queue[Item | None] = context.Queue()
    done: Queue[tuple[Result] | None] = context.Queue()
    processes = [
        context.Process(target=_serve, args=(work, device, todo, done, until), daemon=True)
        for _ in range(each)
        for device in devices
    ]
    for item in (*items, *(None for _ in processes)):
        todo.put(item)
    todo.cancel_join_thread()  # of what is not begun nobody reads the rest, however this ends
    for worker in processes:
        worker.start()
    ended = 0
    while ended < len(processes):
        try:
            found = done.get(timeout=_PATIENCE_S)
        except queue.Empty:
            if sum(not worker.is_alive() for worker in processes) > ended and done.empty():
                raise RuntimeError("a worker died; what it said stands above") from None
            continue
        if found is None:
            ended += 1
        else:
            yield found[0]
    for worker in processes:
        worker.join()


def _serve(
    work: Callable[[Item, int], Result],
    device: int,
    todo: Queue[Item | None],
    done: Queue[tuple[Result] | None],
    until: float,
) -> None:
    while time.monotonic() < until:
        item = todo.get()
        if item is None:
            break
        done.put((work(item, device),))
    done.put(None)
