"""The ways out of a jail that the catalogue of cheats lists, and what comes of each of them.

`hostile.cpp` tries them all; here stands how each must end, on a host with or without a GPU.
"""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.process import ChildProcess
from tests.leftovers import left_behind, snapshot

LIMITS = Limits(  # those of the c-ABI runner on a CPU, but smaller
    cpu_s=20,
    memory_bytes=256 << 20,
    processes=64,
    file_bytes=64 << 20,
    temporary_bytes=32 << 20,
    open_files=128,
)
NATIVE = Path(__file__).resolve().parents[2] / "gpu_runner" / "native"
ROOT = os.geteuid() == 0

CLOSED = {  # what is tried: how it fails
    # network, and services of the host (rows 51, 65)
    "tcp": "EAFNOSUPPORT",
    "udp": "EAFNOSUPPORT",
    "raw": "EAFNOSUPPORT",
    "netlink": "EAFNOSUPPORT",
    "vsock": "EAFNOSUPPORT",
    "abstract": "ECONNREFUSED",
    "docker": "ENOENT",
    # other processes (rows 56, 57)
    "ptrace_init": "EPERM",
    "ptrace_victim": "EPERM",
    "vm_readv": "EPERM",
    "vm_writev": "EPERM",
    "victim_mem": "ENOENT",
    "victim_signal": "ESRCH",
    "pidfd_getfd": "EPERM",
    "clone3": "ENOSYS",
    # surfaces of the kernel that a kernel of ours has no use for
    **dict.fromkeys(("bpf", "perf_event", "userfaultfd", "io_uring", "keyctl", "int80"), "EPERM"),
    # mounts, namespaces, the machine
    **dict.fromkeys(("mount", "remount", "fsopen", "unshare_user", "unshare_net"), "EPERM"),
    **dict.fromkeys(("setns", "clone_user", "chroot", "kexec", "module", "reboot"), "EPERM"),
    **dict.fromkeys(("set_clock", "mknod", "system_v", "realtime"), "EPERM"),
    # privileges and limits (row 64)
    **dict.fromkeys(("more_processes", "more_cpu", "core"), "EPERM"),
    "setuid": "EPERM" if ROOT else "EINVAL",
    "setgid": "EPERM" if ROOT else "EINVAL",
    "nice": "EACCES",
    "oom_immune": "EACCES",
    # files of the host (rows 14, 44, 55, 58)
    "secret": "ENOENT",
    **dict.fromkeys(("/etc/shadow", "/etc/passwd", "/root", "/home", "/var", "/run"), "ENOENT"),
    **dict.fromkeys(("/dev/mem", "/sys/power/state"), "ENOENT"),
    "/proc/sys/kernel/core_pattern": "EACCES",
    # what `confine` takes on top of that, before the submission is loaded
    **dict.fromkeys(("c_fork", "c_vfork", "c_exec", "c_socket", "c_memfd"), "EPERM"),
    "c_shell": "none",
    # and what works all the same
    "c_threads": "ok",
    "c_maps": "ok",
    "affinity": "kept",
}

INIT = ("init_mem", "init_environ", "init_root", "init_fd", "init_stop")
"""An ordinary user's jail may look into its own bubblewrap, which holds nothing of interest."""

BOMBS = {  # what is exhausted: whether the memory watch must end it
    "forks": False,
    "threads": False,
    "anonymous": True,
    "shared": True,
    "locked": True,
    "memfd": True,
    "files": False,
    "pipes": False,
}

_STREAMS = ("stdin", "stdout", "stderr", "tty", "console", "ptmx", "pts")
PLAIN_DEVICES = {*_STREAMS, "core", "fd", "full", "null", "random", "shm", "urandom", "zero"}
"""What every jail has in /dev."""


def build_hostile(folder: Path, *flags: str) -> Path:
    """The program that tries everything, made in a folder."""
    program = folder / "hostile"
    source = Path(__file__).with_name("hostile.cpp")
    command = ["g++", "-std=c++17", "-fopenmp", f"-I{NATIVE}", *flags, str(source)]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def try_all(program: Path, made: Jail) -> list[str]:
    """What it prints, as a measured process in this jail, of all its tries."""
    before = snapshot()
    secret = program.with_name("secret")
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        name = f"kbench-test-{os.getpid()}"
        unix.bind(f"\0{name}")
        unix.listen()
        port = str(tcp.getsockname()[1])
        arguments = [port, name, str(os.getpid()), str(secret)]
        text = run(program, made, *arguments, timeout_s=60)[1]
    assert left_behind(before) == []
    return text.splitlines()


def run(
    program: Path, made: Jail, *arguments: str, timeout_s: float
) -> tuple[int | None, str, bool]:
    """Exit status, what it printed, and whether it took too much memory."""
    command = [str(program), *arguments]
    with ChildProcess(made, command, jailed=True) as child:
        status = child.wait(timeout_s)
    return status, child.output, child.memory_exceeded


def found(output: list[str], name: str) -> list[str]:
    """What is said of the tries with this name."""
    return [line.partition(" ")[2] for line in output if line.split(" ")[0] == name]
