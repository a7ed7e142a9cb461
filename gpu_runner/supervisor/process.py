"""A jailed child process: its output drained, its memory watched, its whole tree killed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from gpu_runner.supervisor.jail import Jail

OUTPUT_LIMIT_BYTES = 64 * 1024
_POLL_S = 0.1


class ChildProcess:
    """A program in a jail (or bare, where the host was told to allow that).

    Use as a context manager: on leaving, nothing of the process tree is left alive.
    """

    def __init__(
        self,
        jail: Jail,
        program: Sequence[str],
        *,
        jailed: bool,
        descriptors: Sequence[int] = (),
        measured: bool = False,
        arenas: Sequence[int] = (),
    ) -> None:
        """Start `program`, which inherits `descriptors` beside its standard streams.

        A `measured` process leaves the first CPU to the rest of the system, and goes before it.
        `arenas` are those descriptors whose memory is ours and not held against the process.
        """
        self._arenas = tuple(arenas)
        self._memory_limit = jail.limits.memory_bytes
        self.memory_exceeded = False
        self._captured = bytearray()
        self._folder = None if jailed else tempfile.TemporaryDirectory(prefix="kbench-")
        with contextlib.ExitStack() as stack:
            files = {name: stack.enter_context(_text(text)) for name, text in jail.files.items()}
            placed = {name: file.fileno() for name, file in files.items()}
            self._process = subprocess.Popen(
                [
                    *(_undisturbed() if measured else ()),
                    *(jail.command(program, placed) if jailed else program),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[*descriptors, *placed.values()],
                env=None if jailed else self._bare_environment(jail),
                cwd=self._folder.name if self._folder else None,
                start_new_session=True,
            )
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _bare_environment(self, jail: Jail) -> dict[str, str]:
        folder = Path(self._folder.name if self._folder else "")
        for name, text in jail.files.items():
            (folder / name).write_text(text)
        return {**os.environ, "TMPDIR": str(folder), **jail.environment}

    def __enter__(self) -> ChildProcess:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what is left and wait for it."""
        self.kill()

    @property
    def output(self) -> str:
        """What the process printed so far, cut to `OUTPUT_LIMIT_BYTES`."""
        return self._captured.decode(errors="replace")

    @property
    def running(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process.poll() is None

    def wait(self, timeout_s: float) -> int | None:
        """Exit status, or None if the process still runs after `timeout_s` seconds."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._watcher.join(timeout=2)
        return status

    def kill(self) -> None:
        """End the whole tree: the jail's init dies, and with it everything in its namespace."""
        for pid in [*_descendants(self._process.pid), self._process.pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._watcher.join(timeout=2)
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _watch(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        descriptor = stream.fileno()
        checked_at = 0.0
        while True:
            ready, _, _ = select.select([descriptor], [], [], _POLL_S)
            if ready:
                chunk = os.read(descriptor, 65536)
                if not chunk:
                    return
                room = OUTPUT_LIMIT_BYTES - len(self._captured)
                self._captured += chunk[:room]
            now = time.monotonic()
            if now - checked_at >= _POLL_S:
                checked_at = now
                self._check_memory()
            if not ready and self._process.poll() is not None:
                return

    def _check_memory(self) -> None:
        ours = 0
        with contextlib.suppress(OSError):
            ours = sum(os.fstat(descriptor).st_size for descriptor in self._arenas)
        used = sum(_own_bytes(pid, ours) for pid in _descendants(self._process.pid))
        if used > self._memory_limit:
            self.memory_exceeded = True
            for pid in _descendants(self._process.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


def _undisturbed() -> list[str]:
    """Command prefix that keeps the system's own work away from a measurement."""
    cpus = sorted(os.sched_getaffinity(0))
    command = ["taskset", "--cpu-list", ",".join(map(str, cpus[1:]))] if len(cpus) > 1 else []
    return [*command, "nice", "-n", "-10"] if os.geteuid() == 0 else command


def _text(text: str) -> IO[bytes]:
    file = os.fdopen(os.memfd_create("kbench-file"), "w+b")
    file.write(text.encode())
    file.seek(0)
    return file


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    pending = [pid]
    while pending:
        parent = pending.pop()
        for child in _children(parent):
            found.append(child)
            pending.append(child)
    return found


def _children(pid: int) -> list[int]:
    """Its children now; a process or thread that ends meanwhile has none."""
    found: list[int] = []
    threads: list[str] = []
    with contextlib.suppress(OSError):
        threads = os.listdir(f"/proc/{pid}/task")
    for thread in threads:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
            found += [int(child) for child in text.split()]
    return found


def _own_bytes(pid: int, ours: int) -> int:
    """Resident bytes of a process, files aside and without up to `ours` of shared memory."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in lines if line.startswith(("RssAnon", "RssShmem")))
    size = {name: int(value.split()[0]) * 1024 for name, value in fields.items()}
    return size.get("RssAnon", 0) + max(0, size.get("RssShmem", 0) - ours)
