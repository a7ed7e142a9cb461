"""The programs that make up a whole installation on one machine, and free ports for them."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data import gpus
from kbench_web.processes.supervision import Program

RUNNER_DRAIN_S = 15
WORKER_OPTIONS = (
    *("--serializer", "rq.serializers.JSONSerializer"),
    *("--job-class", "runs_app.jobs.SiteJob", "--worker-class", "runs_app.jobs.SiteWorker"),
    *("--verbosity", "0"),
)

_CONSEQUENCES = {
    "bwrap": (
        "bubblewrap is not installed: runners have no jail, so they take no jobs"
        " (Debian: apt-get install bubblewrap)"
    ),
    "g++": "g++ is not installed: no kernel for the CPU can be built (Debian: apt-get install g++)",
}


def cuda_devices() -> list[int]:
    """Indices of this machine's GPUs that may be used; empty where there is none."""
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode == 0:
            uuids = [line for line in done.stdout.splitlines() if line.startswith("GPU-")]
            return gpus.visible(uuids, os.environ.get(gpus.VARIABLE))
    return []


def missing_programs() -> list[str]:
    """One sentence for each program of the system that is missing: what it is, what it means."""
    faults = [text for name, text in _CONSEQUENCES.items() if shutil.which(name) is None]
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        faults.append(
            "Python's headers are not installed: torch extensions and compiled baselines can't"
            " be built (Debian: apt-get install python3-dev)"
        )
    if cuda_devices() and not (shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists()):
        faults.append("nvcc is not installed: no kernel for the GPU can be built")
    return faults


def manage(*arguments: str) -> list[str]:
    """Command line of one of the site's commands."""
    return [sys.executable, str(Path(sys.argv[0]).resolve()), *arguments]


@dataclass(frozen=True, kw_only=True)
class Tls:
    """Files of a certificate and its key, in PEM, for a site without a proxy before it."""

    certificate: Path
    key: Path


def programs(host: str, port: int, *, call_workers: int, tls: Tls | None = None) -> list[Program]:
    """Site and workers; the two Redis and the runners are not among them.

    call_workers: how many calls of language models may wait for an answer at once.
    """
    daphne = ["-m", "daphne", "--verbosity", "0"]
    if tls is None:
        daphne += ["--bind", host, "--port", str(port)]
    else:
        files = f"privateKey={tls.key}:certKey={tls.certificate}"
        address = host.replace(":", r"\:")
        daphne += ["--endpoint", f"ssl:{port}:interface={address}:{files}"]
    # after a restart of the site all its watchers come back at once
    daphne += ["--websocket_connect_timeout", "60"]
    return [
        Program(name="web", command=[sys.executable, *daphne, "kbench_web.asgi:application"]),
        Program(name="ingest", command=manage("ingest_events")),
        Program(name="runs", command=manage("rqworker", "runs", *WORKER_OPTIONS)),
        # one process for all that wait for language models: its workers share its memory
        Program(
            name="calls",
            command=manage(
                "rqworker-pool", "calls", "--num-workers", str(call_workers), *WORKER_OPTIONS
            ),
        ),
    ]


def address(scheme: str, host: str, port: int, allowed: Sequence[str]) -> str:
    """The site's own address, by a name that it answers to."""
    if host in ("127.0.0.1", "::1", "0.0.0.0", "::"):  # noqa: S104
        host = next((name for name in allowed if not name.startswith((".", "*"))), "localhost")
    return f"{scheme}://{host}:{port}"


OF_RUNNERS = (
    *("PATH", "HOME", "USER", "LANG", "LC_", "TZ", "TMPDIR", "LD_LIBRARY_PATH"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "KBENCH_CACHE", "KBENCH_CATALOG"),
    *("CUDA_", "NVCC_", "NVIDIA_VISIBLE_", "NVIDIA_DRIVER_", "OMP_", "OPENBLAS_"),
)
"""What a runner needs of our environment. It holds no database login and no key."""


def runners(redis_url: str) -> list[Program]:
    """A runner for each device of this machine, with that login of the runners' Redis."""
    cuda = (_runner(f"cuda-{index}", f"cuda:{index}", redis_url) for index in cuda_devices())
    return [_runner("cpu", "cpu", redis_url), *cuda]


def _runner(name: str, device: str, redis_url: str) -> Program:
    work = ["work", "--device", device, "--drain-timeout", str(RUNNER_DRAIN_S)]
    return Program(
        name=name,
        command=[sys.executable, "-m", "gpu_runner", *work],
        environment={"REDIS_URL": redis_url},
        keeps=OF_RUNNERS,
    )


_TRIES = 50


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def next_free(host: str, first: int) -> int:
    """The first free port from `first` on. Raises `OSError` if there is none near."""
    for port in range(first, min(first + _TRIES, 65536)):
        if is_free(host, port):
            return port
    raise OSError(f"no free port on {host} from {first} to {first + _TRIES - 1}")
