"""How a daemon is configured: from its command line and from the environment."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gpu_runner.daemon.sources.contract import Source
from gpu_runner.daemon.sources.folder_source import FolderSource
from gpu_runner.daemon.sources.https_source import HttpsSource
from gpu_runner.daemon.sources.redis_source import RedisSource
from gpu_runner.data.codec import DataError
from gpu_runner.data.order import check_runner_name
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device import first_gpu
from gpu_runner.supervisor.host.config import default_cache_folder

TOKEN_VARIABLE = "KBENCH_RUNNER_TOKEN"  # noqa: S105 (its name)
LONGEST_DRAIN_S = 600.0  # chosen: longer than nearly all evaluations, so most end in peace
CACHE_VARIABLE = "KBENCH_CACHE_GIB"
DEFAULT_CACHE_BYTES = 20 << 30  # chosen: thousands of builds, and room left on a small disk


@dataclass(frozen=True, kw_only=True)
class DaemonConfig:
    """One daemon for one device.

    site, token; spool; redis_url: where jobs come from; the first of them that is set. index: of a
    CUDA device. name: empty for the host's name with the device's. slots: jobs of any kind that may
    be at work at the same time; their builds overlap, their measurements do not. people_slots: more
    of them, for what people submit alone. None asks for the default of the kind of device. ready:
    keep an oracle ready for each slot's next job. drain_timeout_s: how long current jobs may take
    after a stop was asked for. allow_unjailed: work without a jail where none can be made.
    recheck_s: how often a device that does not work is looked at again. cache_bytes: what builds
    may take.
    """

    redis_url: str = ""
    site: str = ""
    token: str = field(default="", repr=False)
    spool: Path | None = None
    kind: DeviceKind = DeviceKind.CPU
    index: int = 0
    name: str = ""
    slots: int | None = None
    people_slots: int | None = None
    ready: bool = True
    cache_folder: Path
    cache_bytes: float = DEFAULT_CACHE_BYTES
    drain_timeout_s: float = LONGEST_DRAIN_S
    allow_unjailed: bool = False
    heartbeat_s: float = 5.0
    recheck_s: float = 30.0

    def __post_init__(self) -> None:
        """Refuse values that no daemon could run with, naming the field."""
        if self.name:
            check_runner_name("name", self.name)
        if self.slots is not None and self.slots < 1:
            raise DataError("slots", "must be at least 1")
        if self.people_slots is not None and self.people_slots < 0:
            raise DataError("people_slots", "must not be negative")
        if self.drain_timeout_s < 0:
            raise DataError("drain_timeout_s", "must not be negative")

    def connect(self, device: str) -> Source:
        """Open the way to the site, for the process that calls it; raises `DataError`."""
        if self.spool is not None:
            return FolderSource(self.spool, device)
        if self.site:
            return HttpsSource(self.site, self.token)
        return RedisSource(self.redis_url)

    def outbox(self, device: str) -> Path:
        """Where events wait for the site that knows their jobs, and for nobody else's.

        Those of a folder's jobs stand in the folder: nothing is left here for another daemon.
        """
        if self.spool is not None:
            way = f"process {os.getpid()}"
        else:
            login = urlsplit(self.redis_url).username or ""
            way = f"{self.site} {self.token}" if self.site else login
        mark = hashlib.sha256(way.encode()).hexdigest()[:12]
        return self.cache_folder / "outbox" / f"{device}-{self.index}-{mark}"

    @property
    def slot_count(self) -> int:
        """Slots for all jobs. On a CPU one: a build beside a measurement would disturb it."""
        if self.slots is not None:
            return self.slots
        if self.kind is DeviceKind.CPU:
            return 1
        return max(2, min(4, (os.cpu_count() or 1) // 4))

    @property
    def people_slot_count(self) -> int:
        """Slots for what people submit, so that it waits for nothing else.

        The more there are, the longer each has to get its next oracle ready.
        """
        if self.people_slots is not None:
            return self.people_slots
        if self.kind is DeviceKind.CPU:
            return 1
        return max(2, min(3, (os.cpu_count() or 1) // 4))

    def runner_name(self, device: str) -> str:
        """The configured name, else one that tells host and device apart."""
        host = re.sub(r"[^0-9A-Za-z.-]", "-", socket.gethostname())[:40].lstrip(".-") or "host"
        return self.name or f"{host}-{device}-{self.index}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `python -m gpu_runner work`."""
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:INDEX")
    parser.add_argument(
        "--site",
        default="",
        metavar="URL",
        help="site to take jobs from over HTTPS, such as https://kbench.example",
    )
    parser.add_argument(
        "--token",
        default="",
        help=f"token from the site's Operate page (default: ${TOKEN_VARIABLE})",
    )
    parser.add_argument(
        "--redis-url", default="", help="Redis, on the site's own hosts only (default: $REDIS_URL)"
    )
    parser.add_argument(
        "--spool",
        type=Path,
        metavar="DIR",
        help="run the jobs written by `manage.py spool export DIR`, then exit; uses no network",
    )
    parser.add_argument("--name", default="", help="name of this runner (default: host and device)")
    parser.add_argument("--slots", type=int, help="number of concurrent jobs; only builds overlap")
    parser.add_argument("--people-slots", type=int, help="extra slots for people's submissions")
    parser.add_argument(
        "--cache-dir", type=Path, help="cache folder (default: $KBENCH_CACHE or ~/.cache/kbench)"
    )
    parser.add_argument(
        "--drain-timeout",
        type=float,
        default=LONGEST_DRAIN_S,
        metavar="SECONDS",
        help="how long to wait for current jobs when asked to stop",
    )
    parser.add_argument(
        "--allow-unjailed",
        action="store_true",
        help="run submissions without a jail if this host can't make one: for trusted code only",
    )


def from_arguments(options: argparse.Namespace, environment: Mapping[str, str]) -> DaemonConfig:
    """Configuration of parsed arguments; raises `DataError` naming the option that is wrong."""
    kind, index = parse_device(options.device)
    return DaemonConfig(
        redis_url=options.redis_url or environment.get("REDIS_URL", ""),
        site=options.site,
        token=options.token or environment.get(TOKEN_VARIABLE, ""),
        spool=options.spool,
        kind=kind,
        index=index,
        name=options.name,
        slots=options.slots,
        people_slots=options.people_slots,
        cache_folder=options.cache_dir or default_cache_folder(),
        cache_bytes=parse_cache_bytes(environment.get(CACHE_VARIABLE, "")),
        drain_timeout_s=options.drain_timeout,
        allow_unjailed=options.allow_unjailed,
    )


def parse_cache_bytes(text: str) -> float:
    """Bytes of so many GiB, or the default where nothing is said; raises `DataError`."""
    if not text:
        return DEFAULT_CACHE_BYTES
    try:
        size = float(text)
    except ValueError:
        size = -1.0
    if not size >= 0:  # nan, too
        raise DataError(CACHE_VARIABLE, f"{text!r} is not a number of GiB (0 or more)")
    return size * 2**30


def parse_device(text: str) -> tuple[DeviceKind, int]:
    """Kind and index of "cpu", "cuda" or "cuda:1"; raises `DataError` on the field `device`."""
    match = re.fullmatch(r"(cpu|cuda)(?::(\d+))?", text)
    if match is None or (match[1] == "cpu" and match[2]):
        raise DataError("device", f"{text!r} is not one of cpu, cuda, cuda:INDEX")
    if match[2]:
        return DeviceKind.CUDA, int(match[2])
    return (DeviceKind.CUDA, first_gpu()) if match[1] == "cuda" else (DeviceKind.CPU, 0)
