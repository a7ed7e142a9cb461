"""Triton kernels are compiled in a jail without a device, for a process that waits meanwhile."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from select import select
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpu_runner.data import asking
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.engine.runner.asking import Asking
from gpu_runner.engine.runner.triton_stages import TritonStages
from gpu_runner.supervisor.build import triton_compiler as module
from gpu_runner.supervisor.build.build import workshop
from gpu_runner.supervisor.build.triton_compiler import TritonCompiler
from gpu_runner.supervisor.build.workshop import Workshop
from gpu_runner.supervisor.host.config import SupervisorConfig

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def row(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=-float("inf"))
    tl.store(y + at, tl.exp(values - tl.max(values, 0)), mask=at < n)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    config = SupervisorConfig(cache_folder=tmp_path, kind=DeviceKind.CUDA)
    with workshop(config) as shop:
        yield shop


def test_triton_compiles_the_same_there(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler.compiler import ASTSource

    monkeypatch.setattr(CUDABackend, "add_stages", CUDABackend.add_stages)  # as it was, at the end
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_kernel.py").write_text(KERNEL)
    kernel: Any = __import__("own_kernel")

    def made(folder: str) -> Any:
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / folder))
        types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        source = ASTSource(kernel.row, types, {(3,): 1024}, {(0,): [["tt.divisibility", 16]]})
        return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})

    here = made("here")
    TritonStages(Asking(os.dup(shop.descriptor))).take_over()
    for stage in ("make_ttgir", "make_llir", "make_ptx", "make_cubin"):
        monkeypatch.delattr(CUDABackend, stage)  # of this process
    there = made("there")
    assert there.metadata == here.metadata
    for stage in ("ttgir", "llir", "ptx"):
        assert there.asm[stage] == here.asm[stage]


@pytest.mark.parametrize("sent", [b"", b"{}", b"nonsense"])
def test_what_it_cant_compile_is_left_to_whoever_asks(shop: Workshop, sent: bytes) -> None:
    told, made = Asking(os.dup(shop.descriptor)).ask(asking.TRITON, sent, key_of(sent))
    assert (told, made) == ({"key": key_of(sent)}, None)
    while shop.busy_s() > 0:
        time.sleep(0.01)


def test_what_is_no_file_is_refused_too(shop: Workshop) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, socket.socket(fileno=os.dup(shop.descriptor)) as asked:
        socket.send_fds(asked, [asking.TRITON], [ours.fileno()])
        assert json.loads(asked.recv(1000)) == {"key": key_of(b"")}


def key_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Backend:
    """As much of Triton's as is asked for, with two stages."""

    target = SimpleNamespace(backend="cuda", arch=90, warp_size=32)

    def add_stages(self, stages: Any, options: Any, language: Any = None) -> None:
        stages["ttir"] = lambda module, metadata: module
        stages["ttgir"] = lambda module, metadata: f"own ttgir of {module}"
        stages["cubin"] = lambda module, metadata: f"own cubin of {module}".encode()


class Answering:
    """A workshop that makes this of whatever is asked."""

    def __init__(self, made: dict[str, Any] | None) -> None:
        self.made, self.asked = made, list[Any]()

    def ask(self, word: bytes, content: bytes, key: str) -> tuple[dict[str, str], bytes | None]:
        self.asked.append((word, asking.read(content)))
        return {"key": key}, None if self.made is None else asking.written(self.made)


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Triton's settings, of a Triton that is no more than this."""
    found: dict[str, str] = {}
    backend = type("CUDABackend", (Backend,), {})
    parts: dict[str, dict[str, Any]] = {
        "triton": {"knobs": SimpleNamespace(runtime=SimpleNamespace())},
        "triton._C.libtriton": {"get_cache_invalidating_env_vars": lambda: dict(found)},
        "triton.backends.nvidia.compiler": {"CUDABackend": backend},
    }
    for name, content in parts.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))
    return found


def compiled(workshop: Answering, options: Any = None, put: str = "") -> tuple[Any, dict[str, Any]]:
    """The last stage's result, and what was noted; put: what comes in place of the second's."""
    backend = sys.modules["triton.backends.nvidia.compiler"].CUDABackend()
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options or SimpleNamespace(num_warps=4, shape=(1, 2)))
    metadata: dict[str, Any] = {"num_warps": 4}
    module: Any = "text"
    for name, stage in stages.items():
        module = stage(module, metadata)
        module = put if put and name == "ttgir" else module
    return module, metadata


def taken_over(made: dict[str, Any] | None) -> Answering:
    workshop = Answering(made)
    TritonStages(cast(Any, workshop)).take_over()
    return workshop


def test_later_stages_are_asked_for_at_once(settings: dict[str, str]) -> None:
    made = {"stages": {"ttgir": "theirs", "cubin": b"their code"}, "metadata": {"shared": 16}}
    workshop = taken_over(made)
    assert compiled(workshop) == (b"their code", {"num_warps": 4, "shared": 16})
    asked = {"options": {"num_warps": 4, "shape": (1, 2)}, "target": ("cuda", 90, 32)}
    assert workshop.asked == [(asking.TRITON, {**asked, "ttir": "text"})]


def test_what_a_kernel_puts_in_place_of_a_stage_is_what_is_compiled(
    settings: dict[str, str],
) -> None:
    """As Triton's option `ir_override` does."""
    made = {"stages": {"ttgir": "theirs", "cubin": b"their code"}, "metadata": {}}
    assert compiled(taken_over(made), put="another")[0] == b"own cubin of another"


@pytest.mark.parametrize("case", ["refused", "settings", "options"])
def test_otherwise_triton_compiles_as_usual(settings: dict[str, str], case: str) -> None:
    workshop = taken_over(None)
    if case == "settings":  # of the module's own, which the workshop doesn't have
        settings["DISABLE_LLVM_OPT"] = "1"
    options = SimpleNamespace(num_warps=object()) if case == "options" else None
    assert compiled(workshop, options) == (b"own cubin of own ttgir of text", {"num_warps": 4})
    assert len(workshop.asked) == (case == "refused")


def test_who_asks_while_nobody_answers_any_more_compiles(settings: dict[str, str]) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.close()
    TritonStages(Asking(ours.detach())).take_over()
    assert compiled(Answering(None))[0] == b"own cubin of own ttgir of text"


def test_threads_and_forks_ask_one_after_the_other() -> None:
    """One would take another's answer, and that would wait for ever."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asked, count = Asking(theirs.detach()), 3

    def ask(number: int) -> None:
        asked.ask(asking.TRITON, str(number).encode(), str(number))

    fork = get_context("fork").Process(target=ask, args=[0], daemon=True)
    threads = [Thread(target=ask, args=[n], daemon=True) for n in range(1, count)]
    for each in (fork, *threads):
        each.start()
    for _ in range(count):
        (descriptor,) = socket.recv_fds(ours, 1, 1)[1]
        assert select([ours], [], [], 0.1)[0] == []
        ours.send(json.dumps({"key": os.pread(descriptor, 1, 0).decode()}).encode())
        os.close(descriptor)
    for each in (fork, *threads):
        each.join(30)
    assert fork.exitcode == 0
    ours.close()


def test_no_more_is_compiled_than_an_archive_can_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process could otherwise keep more of our memory than it may have of its own."""

    class Making(TritonCompiler):
        def _served(self, request: int, made: int) -> bool:
            return os.pwrite(made, b"code" * 100, 0) > 0

    monkeypatch.setattr(module, "_MOST_BYTES", 1000)
    compiler = Making(SupervisorConfig(cache_folder=tmp_path))
    answers = [compiler.answer(b"100 bytes of text..." * 5)[1] for _ in range(4)]
    assert [answer is not None for answer in answers] == [True, True, False, False]


def test_a_stale_answer_is_passed_over() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for key in ("of an earlier process", "own"):
        theirs.send(json.dumps({"key": key}).encode())
    assert Asking(ours.detach()).ask(asking.TRITON, b"{}", "own") == ({"key": "own"}, None)
    theirs.close()
