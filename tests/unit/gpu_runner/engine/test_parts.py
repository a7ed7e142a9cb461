"""The small parts of the engine: fingerprints, placement, poison, failures, clocks, references."""

from __future__ import annotations

import ctypes
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gpu_runner.data.poison import HUGE
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.data.wire import ErrorCode
from gpu_runner.engine.device.heap import Poison
from gpu_runner.engine.formats.native_problem import make_problem
from gpu_runner.engine.oracle.arena import Arena
from gpu_runner.engine.oracle.device_calls import changed_guards, differs
from gpu_runner.engine.oracle.fingerprint import fingerprint, fingerprints
from gpu_runner.engine.problem.arguments import describe_tensor
from gpu_runner.engine.runner.clock import CpuClock, HeadStart, make_clock
from gpu_runner.engine.runner.failure import failure_of, lacks
from gpu_runner.engine.runner.placement import Placement
from gpu_runner.engine.runner.returned import CallError, returned_tensors
from gpu_runner.engine.runner.subject import OnTheHost
from tests.unit.gpu_runner.engine.stub import REPOSITORY, Shared, make_task

MODULES = ["data.wire", "engine.oracle.oracle_main", "engine.runner.torch_runner"]


def test_fingerprints_of_a_burst_are_those_of_its_calls() -> None:
    groups = [[torch.randn(3), torch.arange(5)], [], [torch.zeros(0)], [torch.randn(9000)]]
    assert fingerprints(groups) == [fingerprint(group) for group in groups]


def test_guard_bands_that_changed_are_found_wherever_they_lie() -> None:
    pool = torch.randint(0, 256, (1000,), dtype=torch.uint8)
    outputs = pool[torch.arange(5000) % 1000].clone()
    guards = [(f"out{low}", "before", low, low + 64) for low in (0, 950, 1001, 3936)]
    assert not any(changed_guards(outputs, pool, guards))
    outputs[600] ^= 1  # between them
    assert not any(changed_guards(outputs, pool, guards))
    for byte, places in {0: [0], 960: [1], 1001: [1, 2], 3999: [3]}.items():
        outputs[byte] ^= 1
        found = changed_guards(outputs, pool, guards)
        assert [place for place, changed in enumerate(found) if changed] == places
        outputs[byte] ^= 1


@pytest.mark.parametrize(("size", "start"), [(64, 0), (61, 0), (64, 4), (0, 0)])
def test_any_byte_that_differs_is_found(size: int, start: int) -> None:
    memory = torch.randint(0, 256, (128,), dtype=torch.uint8)
    some, others = memory[start : start + size], memory[start : start + size].clone()
    assert not differs(some, others)
    for byte in {0, size // 2, size - 1} if size else ():
        some[byte] ^= 1
        assert differs(some, others)
        some[byte] ^= 1


def test_fingerprint_sees_every_bit_and_every_order() -> None:
    torch.manual_seed(1)
    tensor = torch.randn(100_003)
    before = fingerprint([tensor])
    assert fingerprint([tensor.clone()]) == before
    choose = random.Random(2)
    for _ in range(20):
        changed = tensor.clone()
        changed.view(torch.int32)[choose.randrange(tensor.numel())] ^= 1 << choose.randrange(31)
        assert fingerprint([changed]) != before
    assert fingerprint([tensor[torch.randperm(tensor.numel())]]) != before
    assert fingerprint([tensor.view(-1, 1)]) != before
    assert fingerprint([tensor.view(torch.int32)]) != before
    for dtype in (torch.bool, torch.int8, torch.bfloat16, torch.float64):
        for size in (0, 1, 5, 40_000):
            ones = torch.ones(size).to(dtype)
            assert fingerprint([ones]) == fingerprint([ones.clone()])
        assert fingerprint([torch.ones(7).to(dtype)]) != fingerprint([torch.zeros(7).to(dtype)])


def test_placed_tensors_are_aligned_and_no_views() -> None:
    sources = [torch.randn(5, 3), torch.arange(7), torch.tensor(2.5), torch.empty(0, 4)]
    described = [describe_tensor("x", "tensor", source) for source in sources]
    placed = Placement.of(sources, "cpu").load(described)
    for source, tensor in zip(sources, placed, strict=True):
        assert torch.equal(source, tensor)
        assert tensor._base is None
        assert tensor.is_contiguous()
        assert tensor.numel() == 0 or tensor.data_ptr() % 256 == 0
        assert tensor.numel() == 0 or tensor.data_ptr() != source.data_ptr()


def test_poison_is_new_every_time() -> None:
    seen: list[bytes] = []
    poison = Poison("cpu")
    for _ in range(2):
        poison.spread([3 << 20, 100], lambda block: seen.append(bytes(block.numpy())))
    assert [len(block) for block in seen] == [3 << 20, 100] * 2
    assert seen[0] != seen[2]
    assert seen[1] != seen[3]
    assert {byte & HUGE for byte in seen[0]} == {HUGE}
    assert abs(seen[0].count(0xFF) / len(seen[0]) - 1 / 32) < 1e-2


def test_arena_refuses_what_lies_outside() -> None:
    shared = Shared(4096)
    arena = Arena(shared.fd, writable=True)
    arena.tensor(256, torch.float32, (2, 2)).fill_(1.0)
    assert shared.map[256:272] == b"\x00\x00\x80\x3f" * 4
    assert arena.tensor(0, torch.float32, (0, 3)).shape == (0, 3)
    for low, high in ((0, 4097), (-1, 5), (8, 4)):
        with pytest.raises(ValueError, match=r"arena"):
            arena.bytes(low, high)


def test_a_read_only_arena_cannot_be_written() -> None:
    code = (
        "import os, torch; from gpu_runner.engine.oracle.arena import Arena\n"
        "fd = os.memfd_create('x'); os.ftruncate(fd, 4096)\n"
        "Arena(fd, writable=False).bytes(0, 10).fill_(1)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False)
    assert done.returncode < 0  # a signal: the hardware forbids it


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (RuntimeError("a\nb\nc\nd\ne\nf"), ErrorCode.EXCEPTION, "RuntimeError: a\nb\nc\nd\ne"),
        (MemoryError(), ErrorCode.MEMORY, "MemoryError"),
        (torch.OutOfMemoryError("CUDA out of memory."), ErrorCode.MEMORY, "CUDA out of memory."),
        (RuntimeError("CUDA error: an illegal memory access"), ErrorCode.DEVICE, "illegal"),
        (CallError(ErrorCode.SHAPE, "as it is"), ErrorCode.SHAPE, "as it is"),
        (RuntimeError("x" * 5000), ErrorCode.EXCEPTION, "x" * 900),
    ],
)
def test_failures(error: BaseException, code: ErrorCode, text: str) -> None:
    failure = failure_of(error)
    assert failure.code is code
    assert text in failure.text
    assert "\nf" not in failure.text
    assert len(failure.text) < 1100


def test_returned_tensors_are_flattened() -> None:
    a, b = torch.ones(1), torch.ones(2)
    found = returned_tensors((a, [None, (b,)]), "cpu")
    assert [tensor.data_ptr() for tensor in found] == [a.data_ptr(), b.data_ptr()]
    assert returned_tensors(torch.nn.Parameter(a), "cpu")[0].requires_grad is False
    for bad in (None, (), 3, "text", (a, 3), torch.empty(2, device="meta"), torch.ones([1] * 9)):
        with pytest.raises(CallError) as raised:
            returned_tensors(bad, "cpu")
        assert raised.value.code is ErrorCode.SHAPE
    with pytest.raises(CallError):
        returned_tensors([a] * 65, "cpu")


def test_cpu_clock_measures(support: Path) -> None:
    clock = CpuClock(support)
    assert 0 <= clock.overhead_ns < 50_000

    def wait(milliseconds: int, answer: str) -> str:
        torch.ones(1)
        ctypes.CDLL(None).usleep(milliseconds * 1000)
        return answer

    result, time_ns = clock.call(wait, (5, "done"), HeadStart())
    assert result == "done"
    assert 5e6 <= time_ns < 5e8
    assert clock.call(lambda: None, (), HeadStart())[1] >= 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_clock_measures(support: Path) -> None:
    clock = make_clock("cuda", support)
    assert 0 <= clock.overhead_ns < 20_000
    tensor = torch.ones(64 << 20, device="cuda")  # 256 MiB: at 10 TB/s it takes over 50 us
    head_start = HeadStart()
    times = [clock.call(tensor.add_, (1.0,), head_start)[1] for _ in range(120)]
    assert 50e3 < sorted(times)[60] < 10e6
    empty = [clock.call(lambda: None, (), head_start)[1] for _ in range(21)]
    assert sorted(empty)[10] < 3e3


def folder_of(task: Task, folder: Path) -> Path:
    for name, text in task.files.items():
        (folder / name).write_text(text)
    return folder


def test_the_reference_runs_in_float64_throughout(tmp_path: Path) -> None:
    reference = """
import torch
def make_inputs(N):
    return {"a": torch.rand(N) * 1e-9}
def forward_fn(a):
    one = torch.ones(a.shape)
    return (one + a) - one
"""
    task = make_task(reference, {"N": 20})
    problem = make_problem(task, folder_of(task, tmp_path))
    (expected,) = problem.expected(task.workloads[0], Direction.FORWARD, 1, "cpu")
    (source,) = problem.draw(task.workloads[0], Direction.FORWARD, 1, "cpu").arguments
    assert source.dtype == torch.float32
    torch.testing.assert_close(expected, source.double(), rtol=0, atol=1e-15)
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    ("ctype", "seen"), [("float", 0.10000000149011612), ("__nv_bfloat16", 0.10009765625)]
)
def test_the_reference_sees_a_number_as_its_c_type_holds_it(
    tmp_path: Path, ctype: str, seen: float
) -> None:
    reference = """
import torch
def make_inputs(N):
    return {"a": torch.ones(N), "factor": 0.1}
def forward_fn(a, factor):
    return a * factor
"""
    signature = f"void scaled(float* out, const float* a, {ctype} factor, int N)"
    task = make_task(reference, {"N": 3}, abi=Abi.C, signature=signature)
    problem = make_problem(task, folder_of(task, tmp_path))
    (expected,) = problem.expected(task.workloads[0], Direction.FORWARD, 1, "cpu")
    assert expected.tolist() == [seen] * 3


@pytest.mark.parametrize("module", MODULES)
def test_entry_modules_import_torch_only_when_they_run(module: str) -> None:
    """OpenMP reads its settings from the environment when torch is imported, not before."""
    code = f"import sys, gpu_runner.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0


def test_what_there_was_not_enough_of_is_found_below_what_was_made_of_it() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(1 << 60)
    assert lacks(refused.value) == "memory"
    wrapped = ValueError("the inputs cannot be drawn")
    wrapped.__cause__ = MemoryError()
    assert lacks(wrapped) == "memory"
    assert lacks(torch.OutOfMemoryError("CUDA out of memory")) == "device memory"
    assert lacks(ValueError("no room for 4099")) == ""


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (lambda x: x * 2 + torch.ones(3, device="meta"), False),
        (lambda x: x.sum() * torch.tensor(2.0), False),
        (lambda x: x[torch.arange(2)], True),
        (lambda x: x + torch.ones(3).to("meta"), True),
    ],
)
def test_tensors_made_on_the_host_are_noticed(
    function: Callable[[torch.Tensor], torch.Tensor], *, made: bool
) -> None:
    x = torch.empty(3, 3, device="meta")
    with OnTheHost() as host:
        function(x)
    assert host.made is made


THREADS_AFTER_WAKING = """
import ctypes, os, sys
openmp = ctypes.CDLL("libgomp.so.1")
support = ctypes.CDLL(sys.argv[1])
openmp.omp_set_num_threads(int(sys.argv[2]))
support.kb_wake()
print(len(os.listdir("/proc/self/task")))
"""

WORK_LEFT = """
import ctypes, hashlib, os, sys, threading
support = ctypes.CDLL(sys.argv[1])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one processor for both
data = bytes(1 << 17)  # some 0.1 ms, in which Python's lock is free
left = 0
for _ in range(50):
    done = threading.Event()
    threading.Thread(target=lambda: (hashlib.sha256(data), done.set())).start()
    if sys.argv[2] == "settle":
        support.kb_settle()
    left += not done.is_set()
print(left)
"""


def printed(script: str, *arguments: object) -> int:
    """What a script prints when it runs by itself."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def processors() -> int:
    return printed("import os; print(len(os.sched_getaffinity(0)))")


def test_a_team_with_a_processor_for_each_thread_is_woken(support: Path) -> None:
    if (count := processors()) < 2:
        pytest.skip("a team needs two processors")
    assert printed(THREADS_AFTER_WAKING, support, count) == count


def test_a_larger_team_sleeps_on(support: Path) -> None:
    assert printed(THREADS_AFTER_WAKING, support, processors() + 1) == 1


def test_threads_that_are_soon_done_are_waited_for(support: Path) -> None:
    assert printed(WORK_LEFT, support, "settle") < printed(WORK_LEFT, support, "nothing") / 2
