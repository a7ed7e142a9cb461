"""Every way out of a jail that the catalogue of cheats lists is tried, and none is open."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from gpu_runner.supervisor import jail
from gpu_runner.supervisor.health import Snapshot, left_behind, snapshot
from gpu_runner.supervisor.jail import Jail, Limits
from gpu_runner.supervisor.leftovers import process_table
from gpu_runner.supervisor.process import ChildProcess

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

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


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that tries everything."""
    program = tmp_path_factory.mktemp("hostile") / "hostile"
    source = Path(__file__).with_name("hostile.cpp")
    command = ["g++", "-std=c++17", "-fopenmp", f"-I{NATIVE}", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


@pytest.fixture(scope="module")
def output(hostile: Path) -> list[str]:
    """What it prints, as a measured process, of all its tries."""
    before = snapshot()
    secret = hostile.with_name("secret")
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        name = f"kbench-test-{os.getpid()}"
        unix.bind(f"\0{name}")
        unix.listen()
        port = str(tcp.getsockname()[1])
        arguments = [port, name, str(os.getpid()), str(secret)]
        text = run(hostile, *arguments, timeout_s=10)[1]
    assert left_behind(before) == []
    return text.splitlines()


@pytest.fixture
def before() -> Snapshot:
    return snapshot()


def run(program: Path, *arguments: str, timeout_s: float) -> tuple[int | None, str, bool]:
    """Exit status, what it printed, and whether it took too much memory."""
    made = Jail(limits=LIMITS, paths=[program])
    command = [str(program), *arguments]
    with ChildProcess(made, command, jailed=True, measured=True) as child:
        status = child.wait(timeout_s)
    return status, child.output, child.memory_exceeded


def found(output: list[str], name: str) -> list[str]:
    return [line.partition(" ")[2] for line in output if line.split(" ")[0] == name]


@pytest.mark.parametrize("name", CLOSED)
def test_road_is_closed(name: str, output: list[str]) -> None:
    assert found(output, name) == [CLOSED[name]]


@pytest.mark.skipif(not ROOT, reason="a jail of an ordinary user has one user")
@pytest.mark.parametrize("name", INIT)
def test_the_jails_own_init_is_out_of_reach(name: str, output: list[str]) -> None:
    assert found(output, name) in (["EPERM"], ["EACCES"])


def test_it_holds_no_descriptor_but_its_own_streams(output: list[str]) -> None:
    assert found(output, "list:/proc/self/fd") == ["0 1 2 3"]  # 3 is the listing itself


def test_it_sees_no_device(output: list[str]) -> None:
    [devices] = found(output, "list:/dev")
    plain = "core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero console"
    assert set(devices.split()) <= set(plain.split())


def test_it_writes_only_to_what_vanishes_and_no_setuid_bit_counts(output: list[str]) -> None:
    assert set(found(output, "writable")) == {"/tmp", "/dev/shm"}
    assert found(output, "setuid_works") == []


@pytest.mark.parametrize("what", BOMBS)
def test_bomb_is_bounded_and_leaves_nothing(what: str, hostile: Path, before: Snapshot) -> None:
    endless = what in ("forks", "threads")
    status, text, exceeded = run(hostile, what, timeout_s=0.5 if endless else 10)
    assert exceeded is BOMBS[what], text
    assert (status is None) is endless
    if not endless and not exceeded:
        assert int(found(text.splitlines(), "total")[0]) <= 128  # MiB
    assert left_behind(before) == []


def test_bubblewrap_knows_nothing_of_its_starters_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KBENCH_SECRET", "secret")
    made = Jail(limits=LIMITS)
    with ChildProcess(made, ["/bin/sleep", "5"], jailed=True) as child:
        ours = [
            p for p in process_table().values() if p.parent == os.getpid() and p.name == "bwrap"
        ]
        environments = [Path(f"/proc/{process.pid}/environ").read_bytes() for process in ours]
        assert child.running
    assert environments
    assert not [text for text in environments if b"KBENCH_SECRET" in text]
