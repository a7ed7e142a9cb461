"""What a daemon says of itself every few seconds."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.daemon.sources.contract import Away, Refused, Source
from gpu_runner.data import codec
from gpu_runner.data.event import Event, EventKind, RunnerState
from gpu_runner.data.queue import OF_PEOPLE, Urgency
from gpu_runner.data.verdict import DeviceKind

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Runner:
    """What stays the same while a daemon runs. device: the slug that names queue and board.

    compiler, architecture: what sources are built with and for; empty where nothing can be built.
    packages: in which Python kernels can be written, with versions; an empty one for each that is
    absent.
    """

    name: str
    device: str
    device_kind: DeviceKind
    device_name: str
    builds: int
    compiler: str = ""
    architecture: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    boot_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def slots(self, of_everybody: int, of_people: int) -> list[list[Urgency]]:
        """What each slot takes: some everything, some only what people wait for.

        One is for builds that need no device, so that none of them waits for a measurement.
        """
        return [*[list(Urgency)] * of_everybody, *[list(OF_PEOPLE)] * of_people, [Urgency.BUILDS]]


class Heartbeat:
    """Sends RUNNER events: at most one a period, and one at once when something changes."""

    def __init__(
        self,
        runner: Runner,
        source: Source,
        slots: Sequence[SlotState],
        period_s: float,
        sensors: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """Beat for `runner`, whose slots' states and sensors are read at each beat."""
        self._runner = runner
        self._source = source
        self._slots = slots
        self._period_s = period_s
        self._sensors = sensors
        self._last: tuple[object, ...] = ()
        self._due_at = time.monotonic()
        self._reachable = True

    def beat(self, state: str, reason: str, *, jail: bool) -> None:
        """Send a heartbeat if one is due; without the site, say so once and go on."""
        current = tuple(slot.name for slot in self._slots if slot.name)
        content = (state, reason, jail, current)
        if content == self._last and time.monotonic() < self._due_at:
            return
        self._last = content
        self._due_at = time.monotonic() + self._period_s
        report = RunnerState(
            **vars(self._runner),
            state=state,
            reason=reason,
            jail=jail,
            current=current,
            version=package_version(),
            at=time.time(),
            sensors=self._sensors(),
        )
        self._send(report)

    def _send(self, report: RunnerState) -> None:
        payload = codec.encode(report)
        event = Event(job_id="", attempt=0, seq=0, kind=EventKind.RUNNER, payload=payload)
        try:
            self._source.send(event)
        except (Away, Refused) as error:
            if self._reachable:
                logger.warning("cannot send heartbeats: %s", error)
            self._reachable = False
        else:
            if not self._reachable:
                logger.info("the site is reachable again")
            self._reachable = True


def package_version() -> str:
    """Of the installed package; a host may also run from a checkout that is not installed."""
    try:
        return metadata.version("kbench")
    except metadata.PackageNotFoundError:
        return "not installed"
