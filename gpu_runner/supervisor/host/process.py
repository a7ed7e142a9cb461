"""A jailed child process: its output drained, its memory watched, its whole tree killed."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from gpu_runner.supervisor.host import cgroup
from gpu_runner.supervisor.host.cgroup import Group
from gpu_runner.supervisor.host.files import unnamed
from gpu_runner.supervisor.host.jail import Jail, memory_now
from gpu_runner.supervisor.host.killed import (
    HostKills,
    is_dead,
    is_from_outside,
    is_stopped,
    signal_of,
    status_of,
)
from gpu_runner.supervisor.host.memory import used_bytes
from gpu_runner.supervisor.host.proc import descendants, id_of, threads

logger = logging.getLogger(__name__)

OUTPUT_LIMIT_BYTES = 64 * 1024  # chosen: what a person reads of it
_POLL_S, _LEAST_POLL_S = 0.1, 0.005
_FASTEST_BYTES_S = 8 << 30
"""So fast a tree of processes takes memory at most: it is looked at again before it can have taken
what is left to it."""
_MEASURED_NICENESS = -10  # chosen: before all that is ordinary, behind what a system must have
_WANTED_S = 0.2  # chosen: so soon a process is given up that nobody waits for
_GONE_S = 60.0  # a process that was killed is gone sooner, unless the driver holds it
_FIRST_TO_GO = '{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null; exec "$0" "$@"'
"""Has the kernel end this process and what it starts before all others, should memory run out."""
_JAIL_PROCESSES = 8  # bubblewrap's own, and room for those that become the program


class ChildProcess:
    """A program in a jail (or bare, where the host was told to allow that).

    Use as a context manager: on leaving, nothing of the process tree is left alive. `arenas` are
    descriptors of memory that is ours and not held against the process.
    """

    def __init__(
        self,
        jail: Jail,
        program: Sequence[str],
        *,
        jailed: bool,
        descriptors: Sequence[int] = (),
        arenas: Sequence[int] = (),
    ) -> None:
        """Start `program`, which inherits `descriptors` beside its standard streams.

        Nobody looks at its output and memory until it is entered, or `watch` is called. It gets no
        more memory than this host can spare now; raises `JailError` where that is next to nothing.
        """
        self._allowed_bytes, jail = jail.limits.memory_bytes, jail.on_this_host()
        self._parent = os.getpid()
        self._watcher: threading.Thread | None = None
        self.arenas = tuple(arenas)
        self._memory_limit = jail.limits.memory_bytes
        self._memory_exceeded = self._ended_by_us = False
        self._used_bytes = 0  # when it was last looked at
        self._captured = bytearray()
        self._jailed, self._host_kills = jailed, HostKills()
        self._group = self._new_group(jail) if jailed else None
        self._folder = None if jailed else tempfile.TemporaryDirectory(prefix="kbench-")
        with contextlib.ExitStack() as stack:
            files = {
                name: stack.enter_context(unnamed("file", text.encode()))
                for name, text in jail.files.items()
            }
            placed = {name: file.fileno() for name, file in files.items()}
            filters = (
                [stack.enter_context(unnamed("filter", jail.filter())).fileno()]
                if jail.filter()
                else []
            )
            command = [
                *(["nice", "-n", str(jail.limits.niceness)] if jail.limits.niceness else []),
                *(jail.command(program, placed, *filters) if jailed else dying_with_us(program)),
            ]
            entered = command if self._group is None else self._group.command(command)
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _FIRST_TO_GO, *entered],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[*descriptors, *placed.values(), *filters],
                env=_outside() if jailed else self._bare_environment(jail),
                cwd=self._folder.name if self._folder else None,
                start_new_session=True,
            )

    def watch(self) -> None:
        """Drain its output and watch its memory from now on, in a thread of this process.

        That may be a fork of the process that has started it.
        """
        self._watcher = threading.Thread(target=self._watch, name="kbench-watch", daemon=True)
        self._watcher.start()

    def adopt(self) -> None:
        """Watch a process that was started ahead; it may use what the host can spare now.

        Raises `JailError` if that is next to nothing.
        """
        self._memory_limit = memory_now(self._allowed_bytes)
        if self._group is not None:
            self._group.limit(self._memory_limit)
        self._host_kills = HostKills()  # earlier ones have nothing to do with this job
        self.watch()

    def measure(self, cpus: Collection[int]) -> None:
        """Have the tree, which stands still, run on these processors alone.

        Where we are root, it goes before all others from now on.
        """
        for pid in [self._process.pid, *descendants(self._process.pid)]:
            for number in map(id_of, threads(pid)):
                with contextlib.suppress(OSError):  # it has ended
                    os.sched_setaffinity(number, cpus)
                    if os.geteuid() == 0:
                        os.setpriority(os.PRIO_PROCESS, number, _MEASURED_NICENESS)

    def _new_group(self, jail: Jail) -> Group | None:
        """A control group, where this host has them; memory that is ours comes on top."""
        parent = cgroup.available()
        if parent is None:
            return None
        limits = jail.limits
        ours = sum(os.fstat(descriptor).st_size for descriptor in self.arenas)
        return Group(parent, limits.memory_bytes + ours, limits.processes + _JAIL_PROCESSES)

    def _bare_environment(self, jail: Jail) -> dict[str, str]:
        folder = Path(self._folder.name if self._folder else "")
        for name, text in jail.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return {**os.environ, "TMPDIR": str(folder), **jail.environment}

    def __enter__(self) -> ChildProcess:
        """Watch the process; return itself."""
        self.watch()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what is left and wait for it."""
        self.kill()

    @property
    def pid(self) -> int:
        """Id of the process that was started: the jail's outermost one."""
        return self._process.pid

    @property
    def output(self) -> str:
        """What the process printed so far, cut to `OUTPUT_LIMIT_BYTES`."""
        return self._captured.decode(errors="replace")

    @property
    def memory_limit(self) -> str:
        """How much memory it may take, in words."""
        words = f"{self._memory_limit / 2**30:.3g} GiB"
        is_less = self._memory_limit < self._allowed_bytes
        return f"{words}, all that this host can spare" if is_less else words

    @property
    def memory_exceeded(self) -> bool:
        """Whether the tree was killed because it took more memory than it may.

        Also by the kernel, for want of memory, while it held most of what it may take.
        """
        if self._group is not None and self._group.out_of_memory:
            self._memory_exceeded = True
        if 2 * self._used_bytes > self._memory_limit and self.killed_for_the_host:
            self._memory_exceeded = self._memory_exceeded or not self.running
        return self._memory_exceeded

    @property
    def running(self) -> bool:
        """Whether the process has not ended yet. Whoever asks does not reap it: see `wait`."""
        return self._process.returncode is None and not is_dead(self._process.pid)

    @property
    def stopped(self) -> bool:
        """Whether somebody has stopped a process of the tree, and it stands still."""
        return any(map(is_stopped, [self._process.pid, *descendants(self._process.pid)]))

    def wait(self, timeout_s: float, wanted: Callable[[], bool] = lambda: True) -> int | None:
        """Exit status, or None if the process still runs after `timeout_s` seconds.

        Its parent reaps it. A fork of that reads the status of what is not reaped yet.
        wanted: whether to wait any longer.
        """
        deadline = time.monotonic() + timeout_s
        status = self._waited(min(timeout_s, _WANTED_S))
        while status is None and wanted() and (left_s := deadline - time.monotonic()) > 0:
            status = self._waited(min(left_s, _WANTED_S))
        if status is not None and self._watcher is not None:
            self._watcher.join(timeout=2)
        return status

    def _waited(self, timeout_s: float) -> int | None:
        if os.getpid() == self._parent:
            try:
                return self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return None
        deadline = time.monotonic() + timeout_s
        while self.running:
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)
        return status_of(self._process.pid)

    @property
    def ended_by_us(self) -> bool:
        """Whether the tree was killed by `kill`, or for its memory."""
        return self._ended_by_us or self.memory_exceeded

    @property
    def killed_for_the_host(self) -> bool:
        """Whether the kernel says that it has killed for this host's want of memory, not its own.

        A control group counts those of this process alone.
        """
        if self._group is not None:
            return self._group.killed_for_the_host
        return self._host_kills.lately

    def killed_from_outside(self, status: int | None) -> bool:
        """Whether there is evidence that somebody else has ended a process with this status.

        A program in a jail cannot reach the jail around it; and the kernel counts whom it kills for
        want of memory. Nothing else tells who has sent a SIGKILL.
        """
        if self.ended_by_us:
            return False
        if self._jailed and status is not None and status < 0:
            return is_from_outside(status)
        return signal_of(status) == signal.SIGKILL and self.killed_for_the_host

    def kill(self) -> None:
        """End the whole tree: the jail's init dies, and with it everything in its namespace.

        Returns when all of it is gone: a GPU works for a dying process until its end.
        """
        self._ended_by_us = True
        tree = [*descendants(self._process.pid), self._process.pid]
        if self._group is not None:
            self._memory_exceeded = self.memory_exceeded
            self._group.kill()
        for pid in tree:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        deadline = time.monotonic() + _GONE_S
        self.wait(_GONE_S)
        while not all(map(is_dead, tree)) and time.monotonic() < deadline:
            time.sleep(_LEAST_POLL_S)
        if self._group is not None:
            self._group.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _watch(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        descriptor = stream.fileno()
        checked_at, pause_s = 0.0, _LEAST_POLL_S
        while True:
            has_ended = not self.running  # seen before its output: nothing is written after that
            ready, _, _ = select.select([descriptor], [], [], 0.0 if has_ended else pause_s)
            if ready:
                chunk = os.read(descriptor, 65536)
                if not chunk:
                    return
                room = OUTPUT_LIMIT_BYTES - len(self._captured)
                self._captured += chunk[:room]
            now = time.monotonic()
            if now - checked_at >= pause_s:
                checked_at = now
                self._check_memory()
                left_s = (self._memory_limit - self._used_bytes) / _FASTEST_BYTES_S
                pause_s = min(max(left_s, _LEAST_POLL_S), _POLL_S)
            if has_ended and not ready:
                return

    def _check_memory(self) -> None:
        self._host_kills.look()
        try:
            self._used_bytes = used_bytes(descendants(self._process.pid), self.arenas)
        except Exception:  # who cannot be watched does not run
            logger.exception("the memory of process %d is unknown", self._process.pid)
            self._used_bytes = sys.maxsize
        if self._used_bytes > self._memory_limit:
            self._memory_exceeded = True
            for pid in descendants(self._process.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


def _outside() -> dict[str, str]:
    """Environment of bubblewrap itself, which a jailed process of the same user could read."""
    return {"PATH": os.environ.get("PATH", os.defpath)}


def dying_with_us(program: Sequence[str], parent: int | None = None) -> list[str]:
    """The command line that becomes `program`, which the kernel kills when `parent` dies.

    Also if it is stopped then. `parent` is who starts it: this process. A jail does this by itself;
    what a bare program starts in its turn is not bound by it.
    """
    unless_late = '[ "$PPID" = "$0" ] && exec "$@"'  # the parent may have died before
    bound = ["setpriv", "--pdeathsig", "KILL", "--", "/bin/sh", "-c", unless_late]
    return [*bound, str(parent or os.getpid()), *program]
