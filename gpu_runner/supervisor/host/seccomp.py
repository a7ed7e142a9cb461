"""The filter on system calls of every jailed process, as a program for the kernel's BPF machine."""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass, field

# linux/bpf_common.h
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# struct seccomp_data of linux/seccomp.h: number, machine, address, six arguments of 64 bits
_NUMBER_AT, _MACHINE_AT = 0, 4
_FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT, _THIRD_ARGUMENT_AT = 16, 24, 32
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32_BIT = 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
# Every CLONE_NEW* of linux/sched.h that `clone` understands; CLONE_NEWTIME is for clone3 alone.
_NEW_NAMESPACE = 0x7E020000

DENIED = {  # name: (number on x86-64, number on aarch64); None where the machine has no such call
    # into other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    # large surfaces of the kernel that no kernel of ours needs
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "lookup_dcookie": (212, 18),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    # the machine itself
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
    "vhangup": (153, 58),
    # memory that belongs to no process, so that nobody would be asked for it
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "mq_notify": (244, 184),
}

_FOR_PROFILERS = {"ptrace", "process_vm_readv", "process_vm_writev", "perf_event_open", "shmget"}
"""What profilers and sanitizers may do inside the jail that wraps them and their program."""

_PERSONALITY = (135, 92)  # numbers of system calls on x86_64 and aarch64, as below
_QUERY_PERSONALITY = 0xFFFFFFFF  # personality(2)
_CLONE, _CLONE3 = (56, 220), (435, 435)
_SOCKET, _SOCKETPAIR = (41, 198), (53, 199)
_SCHED_SETAFFINITY = (203, 122)  # as above
_FCNTL, _IOCTL = (72, 25), (16, 29)  # as above
_TIMER_CREATE = (222, 107)  # as above
_SIGNALLING = (8, 10, 15, 1024, 1026)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE and F_NOTIFY of linux/fcntl.h."""
_F_SETFL, _O_ASYNC = 4, 0o20000  # of asm-generic/fcntl.h
_SIGNALLING_DEVICES = (0x5452, 0x8901, 0x8902)
"""FIOASYNC, FIOSETOWN and SIOCSPGRP of linux/sockios.h and asm-generic/ioctls.h."""
_TERMINALS = (0x40045431,)
"""TIOCSPTLCK of asm-generic/ioctls.h, without which no terminal can be opened.

When a terminal's other end is closed, the kernel continues the terminal's processes.
"""


@dataclass(frozen=True)
class _Machine:
    audit: int  # AUDIT_ARCH_* of linux/audit.h
    column: int  # of the numbers above


_MACHINES = {"x86_64": _Machine(0xC000003E, 0), "aarch64": _Machine(0xC00000B7, 1)}


def filter_program(*, profiled: bool = False, machine: str = "") -> bytes:
    """The filter as an array of `struct sock_filter`; empty for a machine that it does not know.

    What it denies fails with EPERM; everything that it does not name is open, as are a GPU's ioctl
    and memfd_create. A `profiled` jail may trace its own processes and use sockets of its own
    network namespace, as profilers and sanitizers do.
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return b""
    assembler = _Assembler(known)
    assembler.foreign_calls()
    exempt = _FOR_PROFILERS if profiled else set()
    for name, numbers in DENIED.items():
        if name not in exempt:
            assembler.deny(numbers)
    # glibc takes `clone` where it is told that there is no clone3, whose flags no filter can read.
    assembler.deny(_CLONE3, errno.ENOSYS)
    assembler.deny_bits(_CLONE, _NEW_NAMESPACE)
    # What somebody else does to a file would send a signal to a process that stands still.
    assembler.deny_flags(_FCNTL, _F_SETFL, _O_ASYNC)
    assembler.deny_second(_FCNTL, _SIGNALLING)
    assembler.deny_second(_IOCTL, (*_SIGNALLING_DEVICES, *(() if profiled else _TERMINALS)))
    if not profiled:
        assembler.deny(_TIMER_CREATE)
    families = (_AF_UNIX, _AF_INET, _AF_INET6) if profiled else (_AF_UNIX,)
    for call in (_SOCKET, _SOCKETPAIR):
        assembler.allow_values(call, families, errno.EAFNOSUPPORT)
    if not profiled:
        assembler.allow_values(_PERSONALITY, (0, _QUERY_PERSONALITY), errno.EPERM)
        # Answered as if it had worked: a measured process stays on the CPUs that it was given.
        assembler.deny(_SCHED_SETAFFINITY, 0)
    return assembler.finish()


@dataclass
class _Assembler:
    """Puts a filter together; the number of the call is loaded wherever a rule begins."""

    machine: _Machine
    instructions: list[bytes] = field(default_factory=list)

    def foreign_calls(self) -> None:
        """Refuse calls by the tables of another machine, whose numbers mean other things."""
        self._add(_LOAD, _MACHINE_AT)
        self._add(_EQUAL, self.machine.audit, if_true=1)
        self._return(errno.EPERM)
        self._add(_LOAD, _NUMBER_AT)
        if self.machine.column == 0:
            self._add(_AT_LEAST, _X32_BIT, if_false=1)
            self._return(errno.EPERM)

    def deny(self, numbers: tuple[int | None, int | None], error: int = errno.EPERM) -> None:
        """Answer a call with `error`; 0 pretends that it worked."""
        number = numbers[self.machine.column]
        if number is not None:
            self._add(_EQUAL, number, if_false=1)
            self._return(error)

    def deny_second(self, numbers: tuple[int, int], values: tuple[int, ...]) -> None:
        """Refuse a call whose second argument, as an int, is one of `values`."""
        count = len(values)
        self._add(_EQUAL, numbers[self.machine.column], if_false=count + 3)
        self._add(_LOAD, _SECOND_ARGUMENT_AT)
        for position, value in enumerate(values):
            self._add(_EQUAL, value, if_true=count - position)
        self._add(_RETURN, _ALLOW)
        self._return(errno.EPERM)

    def deny_flags(self, numbers: tuple[int, int], command: int, mask: int) -> None:
        """Refuse a call whose second argument is `command`, and whose third has a bit of `mask`."""
        self._add(_EQUAL, numbers[self.machine.column], if_false=6)
        self._add(_LOAD, _SECOND_ARGUMENT_AT)
        self._add(_EQUAL, command, if_false=3)
        self._add(_LOAD, _THIRD_ARGUMENT_AT)
        self._add(_ANY_BIT, mask, if_false=1)
        self._return(errno.EPERM)
        self._add(_LOAD, _NUMBER_AT)  # another rule may refuse it

    def deny_bits(self, numbers: tuple[int, int], mask: int) -> None:
        """Refuse a call whose first argument has any bit of `mask`."""
        self._add(_EQUAL, numbers[self.machine.column], if_false=4)
        self._add(_LOAD, _FIRST_ARGUMENT_AT)
        self._add(_ANY_BIT, mask, if_false=1)
        self._return(errno.EPERM)
        self._add(_RETURN, _ALLOW)

    def allow_values(self, numbers: tuple[int, int], values: tuple[int, ...], error: int) -> None:
        """Refuse a call with `error` unless its first argument, as an int, is one of `values`."""
        count = len(values)
        self._add(_EQUAL, numbers[self.machine.column], if_false=count + 3)
        self._add(_LOAD, _FIRST_ARGUMENT_AT)
        for position, value in enumerate(values):
            self._add(_EQUAL, value, if_true=count - position)
        self._return(error)
        self._add(_RETURN, _ALLOW)

    def finish(self) -> bytes:
        """Allow what is left."""
        self._add(_RETURN, _ALLOW)
        return b"".join(self.instructions)

    def _return(self, error: int) -> None:
        self._add(_RETURN, _ERRNO | error)

    def _add(self, code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> None:
        self.instructions.append(struct.pack("=HBBI", code, if_true, if_false, value))
