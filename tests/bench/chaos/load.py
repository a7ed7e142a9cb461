"""Submits kernels of known verdicts over the API, each of them surely, while the site is killed."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from tests.bench.site import Kernel, RefusedError, Site
from tests.bench.turnaround_kernels import EXPECTED, good_kernel, odd_kernel

TASKS = ("vector_add", "dot_product", "softmax", "rms_norm")
_SORTS = ("good", "good", "good", "wrong", "broken", "crashing")
_THREADS = 6
_PAUSE_S = 0.5
_RANKED_SHARE = 1 / 25
"""Each is followed by an audit, and by baselines of its task, which take minutes on a CPU."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A submission to come, and the verdict that it must get."""

    kernel: Kernel
    mode: Mode
    device: str
    kind: DeviceKind
    key: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def verdict(self) -> Verdict:
        """The one that it must get."""
        return EXPECTED[self.kernel.name]

    @property
    def document(self) -> dict[str, str]:
        """What is posted: always the same bytes, and another source than any before."""
        return {
            "task": self.kernel.task,
            "source": f"// {self.key}\n{self.kernel.source}",
            "language": self.kind.language.value,
            "device": self.device,
            "mode": self.mode.value,
        }


def plans(
    count: int, devices: Sequence[tuple[str, DeviceKind]], chance: random.Random
) -> list[Plan]:
    """A mix of kernels and modes, spread evenly over the devices."""
    found = []
    for number in range(count):
        device, kind = devices[number % len(devices)]
        sort = chance.choice(_SORTS)
        kernel = (
            good_kernel(chance.choice(TASKS), kind) if sort == "good" else odd_kernel(sort, kind)
        )
        mode = (
            Mode.RANKED
            if chance.random() < _RANKED_SHARE
            else chance.choice([Mode.TEST, Mode.QUICK])
        )
        found.append(Plan(kernel=kernel, mode=mode, device=device, kind=kind))
    return found


class Load:
    """Threads that submit, and ask again with the same key until they are answered."""

    def __init__(self, site: Site, todo: Sequence[Plan], over_s: float, deadline: float) -> None:
        """Spread the submissions evenly over `over_s` seconds; give up at the deadline."""
        self.acknowledged: dict[str, Plan] = {}
        self.refused: list[str] = []
        self.broken = 0
        self._site, self._deadline = site, deadline
        self._next = iter(enumerate(todo))
        self._pause_s = over_s / max(len(todo), 1)
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(_THREADS)]

    def start(self) -> None:
        """Begin."""
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Wait until everything is submitted."""
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                number, plan = next(self._next, (0, None))
            if plan is None:
                return
            time.sleep(max(0.0, self._began + number * self._pause_s - time.monotonic()))
            self._submit(plan)

    def _submit(self, plan: Plan) -> None:
        while True:
            try:
                answer = self._site.ask("submissions", plan.document, key=plan.key)
            except RefusedError as error:
                if error.is_final or time.monotonic() > self._deadline:
                    self.refused.append(str(error))
                    return
                self.broken += 1
                time.sleep(_PAUSE_S)
            else:
                with self._lock:
                    self.acknowledged[answer["id"]] = plan
                return
