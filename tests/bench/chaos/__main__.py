"""Kills processes of every kind while a site works, and counts what comes of its evaluations.

    python -m tests.bench.chaos [--evaluations 500] [--kills 100] [--https-device cpu|cuda]
        [--seed N] [--minutes 9] [--json FILE] [--log FILE]

Starts `manage.py up` with its own runner over Redis, and beside it a runner over HTTPS. Threads
submit kernels of known verdicts over the API, and ask again with the same Idempotency-Key where
they get no answer. Meanwhile random processes of all kinds get SIGKILL, some SIGTERM, and some
stand still for a while. Exit status 1 if an evaluation is lost or doubled, blames its author,
ends as SYSTEM_ERROR, or has not ended when the time is over. A time that a busy host could not
repeat (UNSTABLE) is counted apart.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpu_runner.data.verdict import DeviceKind
from kbench_web.processes.supervision import Program, Supervisor
from tests.bench.chaos.counts import count, next_verdicts
from tests.bench.chaos.facts import COMMAND
from tests.bench.chaos.load import Load, plans
from tests.bench.chaos.victims import Havoc, by_kind
from tests.bench.site import ALONE, USER, RefusedError, Site
from tests.bench.tables import table
from tests.installation import InstallationError

RUNNER = "https"
_DRAIN_S = 15
_DEVICE_S = 180.0
_END_S = 45.0  # to count and to stop
_KILLING, _SUBMITTING = 0.75, 0.85  # shares of the time until then
_LONG_STOPS_FROM = 5.0  # minutes
_ADD_RUNNER = f"""
from django.contrib.auth.models import User
from django.utils import timezone
from runs_app.models import RunnerToken
from runs_app.core.runners.tokens import add_runner
user = User.objects.get(username={USER!r})
serves = RunnerToken.Serves.ANY
added = add_runner(
    name={RUNNER!r}, serves=serves, devices=[], trusted=True, user=user, now=timezone.now()
)
print(added[1])
"""


class HttpsRunner:
    """A runner beside the installation, which takes its jobs over HTTPS; it is kept alive."""

    def __init__(self, site: Site, folder: Path, kind: DeviceKind, say: Any) -> None:
        """Start it, with a token and a cache folder of its own."""
        token = site.installation.manage("shell", "-v", "0", "-c", _ADD_RUNNER).strip()
        cache = folder / "https-cache"
        cache.mkdir()
        # On one CPU both runners take turns, as two of one host do.
        locks = site.folder / "cache" / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        (cache / "locks").symlink_to(locks)
        words = ["-m", "gpu_runner", "work", "--site", site.installation.url, "--name", RUNNER]
        words += ["--device", kind.value, "--cache-dir", str(cache)]
        self._supervisor = Supervisor(say)
        self._supervisor.add(
            Program(
                name=RUNNER,
                command=[sys.executable, *words, "--drain-timeout", str(_DRAIN_S)],
                environment={"KBENCH_RUNNER_TOKEN": token},
            )
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._ending.is_set():
            self._supervisor.tick()

    def close(self) -> None:
        """End it."""
        self._ending.set()
        self._thread.join()
        self._supervisor.stop(_DRAIN_S, lambda: False)


def main() -> int:
    """Run it, and print what came of it."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: everything is stopped
    lines: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kbench-chaos-")))
        settings = dict(ALONE)
        if options.https_device is DeviceKind.CUDA:
            settings["PATH"] = _path_without_gpu(folder)
        site = Site(DeviceKind.CPU, "--no-demo", settings=settings, folder=folder / "data")
        stack.enter_context(closing(site))
        with _kept(options.log, site, lines):
            site.open()
            runner = HttpsRunner(site, folder, options.https_device, _sayer(lines))
            stack.enter_context(closing(runner))
            return _wreak(options, site)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.chaos", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--evaluations", type=int, default=500)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--https-device", type=DeviceKind, default=DeviceKind.CPU)
    parser.add_argument("--seed", type=int, default=1, help="of kernels, victims and signals")
    parser.add_argument("--minutes", type=float, default=9.0, help="for all of it")
    parser.add_argument("--json", type=Path, help="file for everything that was found")
    parser.add_argument("--log", type=Path, help="file for what all programs printed")
    return parser.parse_args()


def _path_without_gpu(folder: Path) -> str:
    """A PATH on which `nvidia-smi` fails: the GPU is the runner's over HTTPS alone."""
    shim = folder / "bin" / "nvidia-smi"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexit 1\n")
    shim.chmod(0o755)
    return f"{shim.parent}:{os.environ['PATH']}"


def _sayer(lines: list[str]) -> Any:
    return lambda name, text: lines.append(f"{time.strftime('%H:%M:%S')} {name} | {text}\n")


@contextmanager
def _kept(log: Path | None, site: Site, lines: list[str]) -> Iterator[None]:
    """Write what was printed, however it ends."""
    try:
        yield
    finally:
        if log:
            log.write_text(site.installation.log() + "".join(lines))


def _wreak(options: argparse.Namespace, site: Site) -> int:
    chance = random.Random(options.seed)
    devices = {(site.device, DeviceKind.CPU)}
    devices.add((_device_of(site, options.https_device), options.https_device))
    left_s = options.minutes * 60 - site.age_s - _END_S
    deadline = time.monotonic() + left_s
    todo = plans(options.evaluations, sorted(devices), chance)
    load = Load(site, todo, left_s * _KILLING * _SUBMITTING, deadline)
    havoc = Havoc(
        lambda: by_kind(os.getpid()),
        count=options.kills,
        pause_s=left_s * _KILLING / max(options.kills, 1),
        chance=chance,
        long_stops=options.minutes >= _LONG_STOPS_FROM,
    )
    host = f"{platform.node()}, {os.cpu_count()} processors"
    print(f"{host}; ready after {site.age_s:.0f} s", flush=True)
    load.start()
    havoc.start()
    load.wait()
    havoc.join(max(0.0, deadline - time.monotonic()))
    havoc.end()
    took_s = _settle(site, deadline)
    print(f"idle {took_s:.0f} s after the last kill, {site.age_s:.0f} s after the start")
    facts = json.loads(site.installation.manage("shell", "-v", "0", "-c", COMMAND))
    return _say(options, load, havoc, facts)


def _say(options: argparse.Namespace, load: Load, havoc: Havoc, facts: dict[str, Any]) -> int:
    counts = count(load.acknowledged, facts)
    counts.lost.extend(f"never acknowledged: {words}" for words in load.refused)
    counts.numbers |= {"requests that broke": load.broken, "kills": len(havoc.kills)}
    rows = [[name, str(number)] for name, number in counts.numbers.items()]
    rows += [[f"**{name}**", str(len(found))] for name, found in counts.faults.items()]
    print(table(("what", "how many"), rows))
    columns = ("hit", "how", "next verdict, p50 s", "longest s")
    print(table(columns, next_verdicts(havoc.kills, facts)))
    for name, found in counts.faults.items():
        for line in found:
            print(f"{name}: {line}")
    if options.json:
        kills = [asdict(kill) for kill in havoc.kills]
        document = {"counts": asdict(counts), "kills": kills, "facts": facts}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return int(any(counts.faults.values()))


def _device_of(site: Site, kind: DeviceKind) -> str:
    """The device that the runner over HTTPS serves, once it has said so."""
    found: list[str] = []

    def is_there() -> bool:
        for queue in site.ask("queue"):
            names = [runner["name"] for runner in queue["runners"]]
            if queue["kind"] == kind.value and any(n.startswith(f"{RUNNER}.") for n in names):
                found.append(queue["device"])
        return bool(found)

    site.installation.wait(is_there, "the runner over HTTPS is not heard", _DEVICE_S, 0.5)
    return found[0]


def _settle(site: Site, deadline: float) -> float:
    """Wait until nothing waits and nothing runs, or until the time is over; how long it took."""
    began = time.monotonic()
    idle = 0
    while idle < 2 and time.monotonic() < deadline:
        with contextlib.suppress(RefusedError, InstallationError):
            queues = site.ask("queue")
            idle = 0 if any(queue["depth"] or queue["running"] for queue in queues) else idle + 1
        time.sleep(0.5)
    return time.monotonic() - began


if __name__ == "__main__":
    raise SystemExit(main())
