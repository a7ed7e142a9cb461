"""What a result says of the host and the device that it was measured on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_runner.data.codec import DataError, Open, encode
from gpu_runner.data.verdict import DeviceKind

LONGEST = 400_000
"""Characters of an encoded environment; those of the largest tasks have some 40,000."""


@dataclass(frozen=True, kw_only=True)
class Cache(Open):
    """A cache of a processor, in bytes; `line` likewise."""

    level: int
    bytes: int
    line: int
    shared_by: int = 1


@dataclass(frozen=True, kw_only=True)
class Hardware(Open):
    """The device's sheet; what nobody says of it is missing.

    clock_is: `highest`, or `now`. flop_per_s: by dtype. rates_are: where the rates come from.
    The first four are of a CPU, and of a GPU is all from `compute_capability` on.
    """

    features: tuple[str, ...] = ()
    identity: str = ""
    caches: tuple[Cache, ...] = ()
    processors: int | None = None
    clock_hz: float | None = None
    clock_is: str = ""
    call_timeout_s: float | None = None
    compute_capability: str = ""
    memory_bytes: int | None = None
    bytes_per_s: float | None = None
    flop_per_s: Mapping[str, float] = field(default_factory=dict)
    rates_are: str = ""
    l2_bytes: float | None = None
    sms: int | None = None
    shared_bytes_per_sm: int | None = None
    shared_bytes_per_block: int | None = None
    registers_per_sm: int | None = None
    threads_per_sm: int | None = None


@dataclass(frozen=True, kw_only=True)
class OracleFacts(Open):
    """What the process that held the task's reference ran on."""

    torch: str = ""
    device_name: str = ""


@dataclass(frozen=True, kw_only=True)
class DeviceState(Open):
    """One look at a device: load and clock of a CPU, or what a GPU's driver says.

    unknown: why nothing could be read. throttle_reasons: why clocks were lowered.
    """

    unknown: str = ""
    load: float | None = None
    cpu_mhz: int | None = None
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Block(Open):
    """What the device did while a block of the measurement ran; see `DeviceLog`."""

    name: str = ""
    seconds: float | None = None
    before: DeviceState | None = None
    after: DeviceState | None = None
    throttled: bool | None = None
    capped: bool | None = None
    steal_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class AnchorTimes(Open):
    """The anchor's time before and after a measurement, in ns."""

    before: float
    after: float

    def __post_init__(self) -> None:
        """Refuse times that are none."""
        for name, time_ns in (("before", self.before), ("after", self.after)):
            if not 0 < time_ns < math.inf:
                raise DataError(f"anchor_ns.{name}", "must be a positive time")

    @property
    def mean(self) -> float:
        """The anchor's time meanwhile."""
        return math.sqrt(self.before * self.after)


@dataclass(frozen=True, kw_only=True)
class Rates(Open):
    """What a device can do: FLOP/s are in the task's dtype.

    fraction: geometric mean over the listed workloads of the time at that peak over the time that
    was measured.
    """

    bytes_per_s: float
    flop_per_s: float | None = None
    source: str = ""
    fraction: float | None = None

    def __post_init__(self) -> None:
        """Refuse rates that no device has."""
        for name, rate in (("bytes_per_s", self.bytes_per_s), ("flop_per_s", self.flop_per_s)):
            if rate is not None and not 0 < rate < math.inf:
                raise DataError(name, "must be a positive rate")


@dataclass(frozen=True, kw_only=True)
class Peaks(Open):
    """The device's limits, as far as they are known; `note`: why there is none."""

    theoretical: Rates | None = None
    measured: Rates | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkSeen(Open):
    """How often threads were at the kernel's own work and at each library's, `of` a workload."""

    own: int = 0
    libraries: Mapping[str, int] = field(default_factory=dict)
    of: str = ""


@dataclass(frozen=True, kw_only=True)
class Environment(Open):
    """Host, device and software, and what was noticed of them.

    limits: what enforces those of a jail. verified_with_threads, races: on a CPU, with teams of
    how many threads outputs were verified, and what came of races. libraries: versions of what
    library baselines need, by name. measured_again: why. submitter: of an imported result.
    """

    device_name: str = ""
    device_kind: DeviceKind | None = None
    kernel: str = ""
    cpus: int | None = None
    measured_cpus: int | None = None
    python: str = ""
    torch: str = ""
    compiler: str = ""
    host_compiler: str = ""
    jail: str = ""
    limits: str = ""
    system_calls: str = ""
    tf32: bool | None = None
    estimator: str = ""
    hardware: Hardware | None = None
    driver: str = ""
    architecture: str = ""
    cutlass: str = ""
    cuda: str = ""
    oracle: OracleFacts | None = None
    verified_with_threads: int | None = None
    races: str = ""
    blocks: tuple[Block, ...] = ()
    anchor_ns: AnchorTimes | None = None
    peaks: Peaks | None = None
    work: WorkSeen | None = None
    libraries: Mapping[str, str] = field(default_factory=dict)
    baseline_errors: Mapping[str, str] = field(default_factory=dict)
    measured_again: str = ""
    profile_error: str = ""
    submitter: str = ""

    def __post_init__(self) -> None:
        """Refuse one that is too long to be kept and shown."""
        length = len(json.dumps(encode(self)))
        if length > LONGEST:
            raise DataError("environment", f"has {length} characters; the limit is {LONGEST}")

    @property
    def measured(self) -> Rates | None:
        """What the device was measured to reach."""
        return self.peaks.measured if self.peaks else None
