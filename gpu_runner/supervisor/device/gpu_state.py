"""What the driver says of a GPU's memory, its errors, and who works on it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from gpu_runner.supervisor.host import living, nvml
from gpu_runner.supervisor.host.leftovers import descends, is_jail_uid, process_table, sentence
from gpu_runner.supervisor.host.nvml import NvmlError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """What the driver says of a GPU: bytes in use, errors that stay, and who works on it.

    uncorrected, remapped: counts, 0 where the GPU has no such memory. damaged: rows that wait for
    a reset, or could not be remapped, in words. memory_by_pid: bytes, as far as the driver says.
    """

    memory_used: int
    uncorrected: int = 0
    remapped: int = 0
    damaged: str = ""
    memory_by_pid: Mapping[int, int] = field(default_factory=dict)

    @property
    def pids(self) -> tuple[int, ...]:
        """Who works on it."""
        return tuple(self.memory_by_pid)


def look(index: int) -> Gpu:
    """What the driver says of it. Raises `NvmlError` where the GPU is gone."""
    uncorrected, remapped, damaged = 0, 0, ""
    used, memory_by_pid = nvml.memory_used(index), nvml.compute_memory(index)
    try:
        uncorrected = nvml.uncorrected_errors(index)
        remapped, pending, failed = nvml.remapped_rows(index)
        damaged = "a row could not be remapped" if failed else ""
        damaged = damaged or ("rows wait for a reset of the GPU" if pending else "")
    except NvmlError as error:  # not every GPU counts them
        logger.info("GPU %d does not count memory errors: %s", index, error)
    return Gpu(
        memory_used=used,
        uncorrected=uncorrected,
        remapped=remapped,
        damaged=damaged,
        memory_by_pid=memory_by_pid,
    )


def ours_among(pids: tuple[int, ...]) -> list[int]:
    """Which of these are jailed processes of ours."""
    table = process_table()
    return [pid for pid in pids if pid in table and is_jail_uid(table[pid].uid)]


def others_among(pids: Collection[int], before: Collection[int] = ()) -> list[str]:
    """Which of these are neither jailed nor of this process, each as a sentence.

    In a container the driver may give numbers that mean nothing here, our own processes' among
    them: such a one is another's only if it was there `before` any of ours.
    """
    table = process_table()
    unseen = [f"process {pid} of another container" for pid in pids if pid in {*before} - {*table}]
    seen = (table[pid] for pid in pids if pid in table)
    return [
        *(sentence(p) for p in seen if not is_jail_uid(p.uid) and not descends(p, table)),
        *unseen,
    ]


class CoTenants:
    """Who else uses a GPU, beside the processes of one evaluation."""

    def __init__(self, index: int, holders: Callable[[], Collection[int]]) -> None:
        """Note who is there; before a process of the evaluation is.

        holders: see `living`; one that waits for its turn uses nothing.
        """
        self._index, self._holders = index, holders
        self._before = frozenset(self._pids())

    def now(self) -> list[str]:
        """Processes that are not ours and use it now; empty also where the driver does not say."""
        pids = living.without(self._pids(), self._holders())
        return others_among(pids, self._before)

    def _pids(self) -> list[int]:
        found: dict[int, None] = {}
        for listed in (nvml.compute_pids, nvml.graphics_pids):
            with contextlib.suppress(NvmlError):  # not every driver lists both
                found |= dict.fromkeys(listed(self._index))
        return list(found)
