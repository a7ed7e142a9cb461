"""Compiles what a module's process asks for while it is prepared, in jails that never run it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shlex
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from gpu_runner.data import asking, codec
from gpu_runner.data.archive import EXTENSIONS
from gpu_runner.data.codec import DataError
from gpu_runner.data.extension import EXTENSION_LIMIT_BYTES, Extension
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.compiler_log import shortened
from gpu_runner.supervisor.build.elf import Library, NotALibrary
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.build.triton_compiler import TritonCompiler
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import sealed

EXTENSIONS_LIMIT = 32
"""Of a module; each may take as long as a build."""

_ENTRY = "PyInit_"  # by which Python finds a library's module
_LOG_CHARACTERS = 32 * 1024  # chosen: as of a build; an answer is one message
_REASON_CHARACTERS = 1000  # chosen: many times what is ours of it
_CUDA = (".cu", ".cuh")


@dataclass(frozen=True)
class Made:
    """A library with the name that it was compiled for, or the log that says why there is none."""

    name: str
    log: str
    library: bytes | None


Wanted = Callable[[], bool]
Make = Callable[[Extension, Wanted], Made]
"""Compiles, as long as somebody wants it."""


class _Gone(Exception):
    """Whoever asked can't be answered."""


@dataclass
class Workshop:
    """Serves a process over a socket. Use as a context manager, for each process anew.

    So nothing that a process has sent outlives it: a descriptor of a GPU may hold its memory.
    On leaving, what is being compiled is given up, because nobody waits for it any more. Whatever
    went wrong on our side while something was compiled is raised.
    """

    make: Make
    open_triton: Callable[[], TritonCompiler]
    files: dict[str, bytes] = field(default_factory=dict)  # libraries, by name in the archive
    _since: float | None = None
    _error: BaseException | None = None

    def __enter__(self) -> Self:
        """Serve from now on."""
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._triton, self._is_open = self.open_triton(), True
        self.files.clear()
        self._thread = threading.Thread(target=self._serve, name="kbench-workshop", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Serve no more."""
        self._is_open = False
        self._ours.shutdown(socket.SHUT_RDWR)
        self._triton.close()
        self._thread.join()
        self._ours.close()
        self._theirs.close()
        if self._error is not None:
            raise self._error

    @property
    def descriptor(self) -> int:
        """The end that a process inherits."""
        return self._theirs.fileno()

    def busy_s(self) -> float:
        """For how long something has been compiled: whoever asked for it waits for the answer."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def _serve(self) -> None:
        try:
            while self._served_one():
                self._since = None
        except _Gone:
            return
        except BaseException as error:  # raised where somebody can see it
            self._error = error
        finally:
            self._since = None
            self._triton.close()
            self._ours.shutdown(socket.SHUT_RDWR)  # whoever asks once more hears it

    def _served_one(self) -> bool:
        told, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)
        self._since = time.monotonic()
        try:
            content = _content(descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        if told == asking.EXTENSION:
            self._answer(*_asked(content))
        elif told:
            self._send(*self._triton.answer(content))
        return bool(told)

    def _answer(self, asked: Extension | None, reason: str) -> None:
        if asked is None or len(self.files) >= EXTENSIONS_LIMIT:
            many = f"error: more than {EXTENSIONS_LIMIT} extensions"
            self._send({"key": "", "name": "", "log": reason or many}, None)
            return
        made, key = self._made(asked), asked.key()
        told = {"key": key, "name": made.name, "log": shortened(made.log, _LOG_CHARACTERS)}
        if made.library is not None:
            self.files[f"{EXTENSIONS}/{key}/{made.name}.so"] = made.library
        self._send(told, made.library)

    def _made(self, asked: Extension) -> Made:
        try:
            return self.make(asked, lambda: self._is_open)
        except OSError as error:
            if error.errno != errno.E2BIG:
                raise
            return Made(asked.name, "error: its flags and paths are too long", None)

    def _send(self, told: Mapping[str, str], library: bytes | None) -> None:
        # Escapes could make a log too long to be sent.
        words = [json.dumps(told, ensure_ascii=False).encode(errors="replace")]
        with ExitStack() as opened:
            files = [] if library is None else [opened.enter_context(sealed("extension", library))]
            try:
                socket.send_fds(self._ours, words, [file.fileno() for file in files])
            except OSError:
                raise _Gone from None


def _content(descriptors: list[int]) -> bytes:
    """What a file holds that came with a request; nothing if none came that can be read."""
    with suppress(OSError):
        if descriptors and stat.S_ISREG(os.fstat(descriptors[0]).st_mode):
            return os.pread(descriptors[0], asking.LIMIT_BYTES, 0)
    return b""


def entry_name(library: bytes, name: str) -> str:
    """The name under which Python can import a library that may have been built for another."""
    try:
        symbols = Library(library).symbols
    except NotALibrary:
        return name
    entries = [s.name.removeprefix(_ENTRY) for s in symbols if s.defined and _is_entry(s.name)]
    return name if name in entries or not entries else entries[0]


def _is_entry(symbol: str) -> bool:
    return symbol.startswith(_ENTRY) and symbol.removeprefix(_ENTRY).isidentifier()


def _asked(content: bytes) -> tuple[Extension | None, str]:
    """What is asked for, or why that can't be compiled."""
    try:
        if len(content) > EXTENSION_LIMIT_BYTES:
            raise ValueError(f"its texts take more than {EXTENSION_LIMIT_BYTES >> 20} MiB")
        return codec.decode(Extension, json.loads(content)), ""
    except (DataError, ValueError, RecursionError) as error:
        return None, f"error: it cannot be compiled: {str(error)[:_REASON_CHARACTERS]}"


@dataclass(frozen=True)
class ExtensionRecipe(Recipe):
    """The compilation of an extension's sources beside each other, and their linking."""

    sources: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    asked: str = field(default="", compare=False)  # key of the extension, whatever its name is

    def steps(self) -> Iterator[list[str]]:
        """The command that compiles each source.

        nvcc's commands come first. It writes its own process id into its output, and that id is the
        same each time only if nothing else has been started in the jail before.
        """
        order = sorted(enumerate(self.sources), key=lambda each: not each[1].endswith(_CUDA))
        for index, source in order:
            on_gpu = self.kind is DeviceKind.CUDA and source.endswith(_CUDA)
            compiler = toolchain.compiler(self.kind if on_gpu else DeviceKind.CPU)
            flags = self.cuda_flags if on_gpu else self.flags
            yield [compiler.path, *flags, "-c", source, "-o", f"{index}.o"]

    def command(self) -> list[str]:
        """The command that links what was compiled."""
        objects = [f"{index}.o" for index in range(len(self.sources))]
        linker = toolchain.compiler(DeviceKind.CPU).path
        return [linker, *objects, "-shared", *self.link_flags, "-o", self.result]

    def script(self) -> str:
        """See `Recipe.script`; sources are compiled side by side."""
        begun = "".join(f"{shlex.join(step)} & p{i}=$!; " for i, step in enumerate(self.steps()))
        waits = " && ".join(f"wait $p{index}" for index in range(len(self.sources)))
        return f"{{ {begun}}} && {waits} && {shlex.join(self.command())}"

    def key(self) -> str:
        """See `Recipe.key`: a name that is drawn at random is no part of it."""
        versions = [toolchain.compiler(kind).version for kind in {self.kind, DeviceKind.CPU}]
        parts = [self.asked, *sorted(versions), toolchain.machine(), toolchain.torch_version()]
        parts += [part for item in sorted(self.environment.items()) for part in item]
        if self.environment:
            parts += toolchain.torch_headers().values()
        return hashlib.sha256("\0".join(("extension 1", *parts)).encode()).hexdigest()


def extension_recipes(
    asked: Extension, config: SupervisorConfig, wanted: Wanted, *, hidden: bool
) -> tuple[ExtensionRecipe, ExtensionRecipe]:
    """With few of torch's headers first, and with torch's own where those do not do.

    wanted: see `Recipe`. hidden: a process that knows hidden workloads asks. Other processes could
    tell by the time which texts are in the cache, so what it asks for is kept apart.
    """
    cutlass = toolchain.cutlass_paths() if config.kind is DeviceKind.CUDA else ()
    slim = {"CPATH": str(toolchain.TORCH_HEADERS)}  # searched before -isystem
    first, second = (
        ExtensionRecipe(
            asked.files,
            asked.sources[0],
            config.kind,
            asked.flags,
            (*toolchain.torch_paths(), Path(toolchain.TORCH_HEADERS), *cutlass),
            environment=environment,
            sources=asked.sources,
            cuda_flags=asked.cuda_flags,
            link_flags=asked.link_flags,
            wanted=wanted,
            asked=asked.key() + hidden * " hidden",
        )
        for environment in (slim, {})
    )
    return first, second
