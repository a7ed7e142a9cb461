"""The filter program, run by a small interpreter: what it answers to which system call."""

from __future__ import annotations

import errno
import struct

import pytest

from gpu_runner.supervisor.host.seccomp import DENIED, filter_program

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = "allowed"
CLONE_THREAD_FLAGS = 0x3D0F00  # what pthread_create asks for
CALLS = {  # name: number on x86-64, number on aarch64
    "ioctl": (16, 29),
    "memfd_create": (319, 279),
    "futex": (202, 98),
    "execve": (59, 221),
    "prctl": (157, 167),
    "sched_getaffinity": (204, 123),
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "sched_setaffinity": (203, 122),
    "personality": (135, 92),
    "fcntl": (72, 25),
    "timer_create": (222, 107),
}


def answer(
    program: bytes,
    machine: str,
    number: int,
    argument: int = 0,
    second: int = 0,
    *,
    third: int = 0,
    audit: int | None = None,
) -> str | int:
    """The errno that the kernel would answer with, or ALLOWED."""
    data = struct.pack(
        "=IIQ6Q", number, audit or AUDIT[machine], 0, argument, second, third, 0, 0, 0
    )
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return ALLOWED if value == 0x7FFF0000 else value & 0xFFFF
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize("machine", AUDIT)
def test_what_a_kernel_needs_is_open_and_the_rest_is_denied(machine: str) -> None:
    column = list(AUDIT).index(machine)
    program = filter_program(machine=machine)
    lax = filter_program(machine=machine, profiled=True)
    for name in ("ioctl", "memfd_create", "futex", "execve", "prctl", "sched_getaffinity"):
        assert answer(program, machine, CALLS[name][column]) == ALLOWED, name
    for name, numbers in DENIED.items():
        number = numbers[column]
        if number is not None:
            assert answer(program, machine, number) == errno.EPERM, name
    (ptrace, unshare) = (DENIED[name][column] for name in ("ptrace", "unshare"))
    assert answer(lax, machine, ptrace or 0) == ALLOWED
    assert answer(lax, machine, unshare or 0) == errno.EPERM


@pytest.mark.parametrize("machine", AUDIT)
@pytest.mark.parametrize(
    ("name", "argument", "strict", "profiled"),
    [
        ("clone", CLONE_THREAD_FLAGS, ALLOWED, ALLOWED),
        ("clone", 17, ALLOWED, ALLOWED),  # SIGCHLD: fork
        ("clone", 0x10000000 | 17, errno.EPERM, errno.EPERM),  # a user namespace
        ("clone", 0x00020000, errno.EPERM, errno.EPERM),  # a mount namespace
        ("clone3", 0, errno.ENOSYS, errno.ENOSYS),
        ("socket", 1, ALLOWED, ALLOWED),
        ("socket", 2, errno.EAFNOSUPPORT, ALLOWED),
        ("socket", 10, errno.EAFNOSUPPORT, ALLOWED),
        ("socket", 16, errno.EAFNOSUPPORT, errno.EAFNOSUPPORT),
        ("socket", (1 << 32) | 2, errno.EAFNOSUPPORT, ALLOWED),  # the kernel reads an int
        ("socketpair", 1, ALLOWED, ALLOWED),
        ("socketpair", 40, errno.EAFNOSUPPORT, errno.EAFNOSUPPORT),
        ("personality", 0xFFFFFFFF, ALLOWED, ALLOWED),
        ("personality", 0x0040000, errno.EPERM, ALLOWED),  # no random addresses: what TSan asks
        ("sched_setaffinity", 0, 0, ALLOWED),
        ("timer_create", 1, errno.EPERM, ALLOWED),
    ],
)
def test_calls_that_depend_on_their_argument(
    machine: str, name: str, argument: int, strict: str | int, profiled: str | int
) -> None:
    number = CALLS[name][list(AUDIT).index(machine)]
    found = [
        answer(filter_program(machine=machine, profiled=lax), machine, number, argument)
        for lax in (False, True)
    ]
    assert found == [strict, profiled]


@pytest.mark.parametrize("machine", AUDIT)
@pytest.mark.parametrize(
    ("name", "command", "third", "expected"),
    [
        *(("fcntl", command, 9, errno.EPERM) for command in (8, 10, 15, 1024, 1026)),
        ("fcntl", 4, 0o20000 | 0o4000, errno.EPERM),  # F_SETFL, O_ASYNC | O_NONBLOCK
        ("fcntl", 4, 0o4000, ALLOWED),
        ("fcntl", 1030, 0o20000, ALLOWED),  # F_DUPFD_CLOEXEC
        ("fcntl", 6, 0o20000, ALLOWED),  # F_SETLK
        *(("ioctl", command, 1, errno.EPERM) for command in (0x5452, 0x8901, 0x8902)),
        ("ioctl", 0x5401, 0o20000, ALLOWED),  # TCGETS
        ("ioctl", 0xC0104600, 0o20000, ALLOWED),  # of a GPU
    ],
)
def test_no_signal_may_be_arranged_that_somebody_else_would_send(
    machine: str, name: str, command: int, third: int, expected: str | int
) -> None:
    """A kernel could have itself killed while it stands still, which only this host does else."""
    number = CALLS[name][list(AUDIT).index(machine)]
    for lax in (False, True):
        program = filter_program(machine=machine, profiled=lax)
        assert answer(program, machine, number, 3, command, third=third) == expected


@pytest.mark.parametrize("machine", AUDIT)
def test_no_terminal_can_be_opened_whose_other_end_somebody_else_would_close(machine: str) -> None:
    """The kernel continues the processes of such a terminal, even those that stand still."""
    unlock, number = 0x40045431, CALLS["ioctl"][list(AUDIT).index(machine)]  # TIOCSPTLCK
    for lax, expected in ((False, errno.EPERM), (True, ALLOWED)):
        program = filter_program(machine=machine, profiled=lax)
        assert answer(program, machine, number, 3, unlock) == expected


def test_calls_by_another_machines_numbers_are_denied() -> None:
    program = filter_program(machine="x86_64")
    assert answer(program, "x86_64", 16, audit=0x40000003) == errno.EPERM  # 32-bit int 0x80
    assert answer(program, "x86_64", 16 | 0x40000000) == errno.EPERM  # x32
    assert filter_program(machine="riscv64") == b""
