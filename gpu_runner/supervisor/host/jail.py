"""The bubblewrap jail in which everything runs that is not the supervisor itself."""

from __future__ import annotations

import functools
import os
import random
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.memory import spare_bytes
from gpu_runner.supervisor.host.seccomp import filter_program

SYSTEM_PATHS = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
)
"""The toolchain, read-only. Nothing else of the host exists inside."""

PROGRAMS = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
"""Where a jail looks for programs: its PATH."""

WORK_FOLDER = "/tmp"  # noqa: S108 - the jail's own, fresh and limited in size
LEAST_BYTES = 128 << 20
"""Of memory that a host must have to spare before anything is started: a compiler takes as much."""
FIRST_JAIL_UID = 200_000  # chosen: above people's, and what systems hand out by themselves
JAIL_UIDS = 100_000  # chosen: so many that two jails hardly draw the same one
_DATE = 'until [ "$1" = -- ]; do touch -d @1 -- "$1"; shift; done; shift; exec "$@"'
_CPU_GRACE_S = 5  # at the limit SIGXCPU says why; SIGKILL, behind it, could be anybody's


class JailError(Exception):
    """No jail can be made on this host; the message says what is missing and what to do."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one jail; memory is watched from outside because CUDA reserves address space.

    niceness: above 0 for work that others go before. refuses_memory: what a process asks for beyond
    `memory_bytes` it does not get, so that it can say so. Processes that have taken it all bit by
    bit, together or one alone, are ended either way.
    """

    cpu_s: int
    memory_bytes: int
    processes: int
    file_bytes: int = 1 << 30
    temporary_bytes: int = 2 << 30
    open_files: int = 1024
    niceness: int = 0
    refuses_memory: bool = False


def memory_now(most_bytes: int) -> int:
    """As much of this as the host can spare now. Raises `JailError` if that is too little."""
    spare = spare_bytes()
    if spare < LEAST_BYTES:
        left = spare / 2**30
        raise JailError(f"this host has too little memory left: {left:.2f} GiB for a process")
    return min(most_bytes, spare)


@dataclass(frozen=True, kw_only=True)
class Jail:
    """What a jailed process sees: read-only paths, files given as data, devices, environment.

    hidden: files below the paths that nobody in it can read.
    profiled: a profiler or a sanitizer wraps the program, and may trace it, speak to it over the
    jail's own loopback, and open the GPU's node for tools.
    """

    limits: Limits
    paths: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    files: Mapping[str, str] = field(default_factory=dict)  # name in the working folder -> text
    environment: Mapping[str, str] = field(default_factory=dict)
    cuda_index: int | None = None
    profiled: bool = False

    def on_this_host(self) -> Jail:
        """The same with no more memory than this host can spare now.

        Raises `JailError` where that is next to nothing.
        """
        memory_bytes = memory_now(self.limits.memory_bytes)
        return replace(self, limits=replace(self.limits, memory_bytes=memory_bytes))

    def filter(self) -> bytes:
        """The program that filters system calls; empty on a machine that it does not know."""
        return filter_program(profiled=self.profiled)

    def command(
        self,
        program: Sequence[str],
        descriptors: Mapping[str, int],
        filter_descriptor: int | None = None,
    ) -> list[str]:
        """The command line that runs `program` in this jail.

        `descriptors` holds, for every name in `files`, an open file to copy its text from, and
        `filter_descriptor` is one that holds `filter`.
        """
        placed = [
            word
            for name, descriptor in descriptors.items()
            for word in ("--perms", "0444", "--file", str(descriptor), f"{WORK_FOLDER}/{name}")
        ]
        inner = [*_dated(descriptors), *_limited(self.limits), *_dropped(), *program]
        if filter_descriptor is not None:
            placed += ["--seccomp", str(filter_descriptor)]
        # /dev would be the jail's own, and as large as it likes, where the daemon is not root.
        closed = ["--remount-ro", "/dev", "--remount-ro", "/"]
        return [*_bubblewrap(self), *placed, *closed, "--", *inner]


def _bubblewrap(jail: Jail) -> list[str]:
    command = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"]
    if os.geteuid() == 0:
        # A real change of uid is stronger than a mapped one: limits on processes count, and
        # nothing inside is root outside. It needs these three until setpriv has dropped them.
        command += [
            "--cap-add",
            "CAP_SETUID",
            "--cap-add",
            "CAP_SETGID",
            "--cap-add",
            "CAP_SETPCAP",
        ]
    else:
        command += ["--unshare-user", "--uid", "65534", "--gid", "65534", "--disable-userns"]
    size = str(jail.limits.temporary_bytes)
    command += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/dev/shm", WORK_FOLDER):  # noqa: S108
        command += ["--perms", "1777", "--size", size, "--tmpfs", folder]
    command += _read_only_paths([*SYSTEM_PATHS, *map(str, jail.paths)])
    command += [word for path in jail.hidden for word in ("--ro-bind", os.devnull, str(path))]
    command += ["--chdir", WORK_FOLDER]
    if jail.cuda_index is not None:
        command += _cuda_devices(jail.cuda_index, tools=jail.profiled)
    for name, value in {**_environment(), **jail.environment}.items():
        command += ["--setenv", name, value]
    return command


def _read_only_paths(paths: Sequence[str]) -> list[str]:
    """Binds of `paths`, after their parents: bubblewrap would make those for root alone."""
    parents = (str(parent) for path in paths for parent in reversed(Path(path).parents[:-1]))
    command = []
    for parent in dict.fromkeys(parents):
        if parent != WORK_FOLDER:
            command += ["--perms", "0755", "--dir", parent]
    for path in dict.fromkeys(paths):
        command += _read_only(path)
    return command


def _read_only(path: str) -> list[str]:
    if os.path.islink(path):  # such as /bin; what lies between it and its target may be unseen
        return ["--symlink", os.path.realpath(path), path]
    return ["--ro-bind-try", path, path]


def _cuda_devices(index: int, *, tools: bool) -> list[str]:
    """The control nodes and the one assigned GPU; `/sys` because the driver reads it."""
    nodes = ["/dev/nvidiactl", "/dev/nvidia-uvm", f"/dev/nvidia{nvml.minor_number(index)}"]
    if tools:  # it shows the page faults of all processes
        nodes.append("/dev/nvidia-uvm-tools")
    command = ["--ro-bind", "/sys", "/sys"]
    for node in nodes:
        command += ["--dev-bind-try", node, node]
    return command


def _environment() -> dict[str, str]:
    return {
        "PATH": PROGRAMS,
        "HOME": WORK_FOLDER,
        "TMPDIR": WORK_FOLDER,
        "USER": "kbench",
        "LOGNAME": "kbench",
        "LANG": "C.UTF-8",
    }


def _dated(names: Collection[str]) -> list[str]:
    """Gives files the same time in every jail: nvcc writes it into what it makes of them."""
    return ["/bin/sh", "-c", _DATE, "sh", *names, "--"] if names else []


def _limited(limits: Limits) -> list[str]:
    return [
        "prlimit",
        "--core=0",
        f"--cpu={limits.cpu_s}:{limits.cpu_s + _CPU_GRACE_S}",
        f"--fsize={limits.file_bytes}",
        f"--nofile={limits.open_files}",
        f"--nproc={limits.processes}",
        *([f"--data={limits.memory_bytes}"] if limits.refuses_memory else []),
        "--",
    ]


def _dropped() -> list[str]:
    if os.geteuid() != 0:
        return []
    # An own uid for each jail, so that their process counts are separate.
    uid = str(FIRST_JAIL_UID + random.SystemRandom().randrange(JAIL_UIDS))
    return [
        "setpriv",
        f"--reuid={uid}",
        f"--regid={uid}",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--no-new-privs",
    ]


def python_paths() -> list[Path]:
    """What a jailed Python needs to see: its installation, the environment, this package."""
    package = Path(__file__).resolve().parents[2]
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]}
    seen = {*prefixes, *_other_packages(prefixes)}
    targets = {path.resolve() for path in seen}  # an environment may be a link to another
    return sorted({*seen, *targets, package})


def _other_packages(known: Collection[Path]) -> Iterator[Path]:
    """Folders of packages that `.pth` files name, with the libraries beside them."""
    for entry in map(Path, sys.path):
        is_one = entry.name in ("site-packages", "dist-packages") and entry.is_dir()
        seen = (*known, Path(site.getusersitepackages()))
        is_new = not any(entry.is_relative_to(folder) for folder in seen)
        if is_one and is_new:
            yield entry.parents[1] if entry.parent.name.startswith("python") else entry


def python_environment() -> dict[str, str]:
    """What a jailed Python is told: where this package is, and to import from nowhere else."""
    package = Path(__file__).resolve().parents[3]
    return {
        "PYTHONPATH": str(package),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",  # the folder that it starts in holds no modules
        "PYTHONNOUSERSITE": "1",
    }


def require(*, allow_unjailed: bool) -> None:
    """Raise `JailError` where this host has no jail, unless strangers' code may run without."""
    reason = "" if allow_unjailed else probe()
    if reason:
        raise JailError(f"no jail on this host, so nothing is run: {reason}")


@functools.cache
def probe() -> str:
    """Empty if a jail works on this host, else a sentence that says what is missing."""
    missing = [tool for tool in ("bwrap", "prlimit", "setpriv") if shutil.which(tool) is None]
    if missing:
        package = "bubblewrap" if "bwrap" in missing else "util-linux"
        return f"{missing[0]} is not installed (package {package})"
    made = Jail(limits=Limits(cpu_s=10, memory_bytes=1 << 28, processes=64))
    try:
        done = _run_true(made)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not run: {error}"
    if done.returncode != 0:
        return f"bwrap cannot make a jail: {done.stderr.strip() or done.returncode}"
    return ""


def _run_true(jail: Jail) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as file:
        file.write(jail.filter())
        file.seek(0)
        filtered = file.fileno() if jail.filter() else None
        return subprocess.run(
            jail.command(["/bin/true"], {}, filtered),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            pass_fds=[file.fileno()],
        )
