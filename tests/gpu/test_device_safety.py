"""A GPU survives hostile kernels, and what one process leaves in its memory is not for the next.

On a GPU host without the site's packages: `python -m pytest -c /dev/null --rootdir . tests/gpu`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import DeviceKind, Language, Mode, Verdict
from gpu_runner.supervisor.device import gpu_state
from gpu_runner.supervisor.device.device import cuda_devices, first_gpu
from gpu_runner.supervisor.device.device_log import DeviceLog
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host import jail, nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.tools import health, probe
from tests.bench.evaluations import make_config

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]

PATTERN = 0xA5

SPOILERS = {
    "hangs": ("spin<<<1, 1>>>();", Verdict.TIME_LIMIT),
    "hangs on the whole device": ("spin<<<4096, 256>>>();", Verdict.TIME_LIMIT),
    "corrupts its context": ("store<<<1, 1>>>((int*)8);", Verdict.RUNTIME_ERROR),
    "traps": ("trap<<<1, 1>>>();", Verdict.RUNTIME_ERROR),
    "misaligned": ("store<<<1, 1>>>((int*)((char*)C + 1));", Verdict.RUNTIME_ERROR),
    "holds all memory and dies": (
        "void* p; for (size_t n = 1 << 30; n > 1 << 20; n /= 2)"
        " while (cudaMalloc(&p, n) == cudaSuccess) {} cudaGetLastError(); abort();",
        Verdict.RUNTIME_ERROR,
    ),
}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SupervisorConfig:
    cache = tmp_path_factory.getbasetemp().parent / "kbench-gpu-cache"
    return replace(make_config(DeviceKind.CUDA, cache), call_timeout_s=5.0)


@pytest.fixture(scope="module", autouse=True)
def _known(config: SupervisorConfig) -> None:
    """The device is healthy before, and that is remembered."""
    assert health.look(config) == ""


def source(body: str) -> str:
    return f"""
#include <cstdlib>
#include <cuda_runtime.h>
__global__ void spin() {{ for (;;) asm volatile(""); }}
__global__ void store(int* to) {{ *to = 1; }}
__global__ void trap() {{ asm volatile("trap;"); }}
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {{ {body} }}
"""


@pytest.mark.parametrize("name", SPOILERS)
def test_device_works_after(name: str, config: SupervisorConfig) -> None:
    body, verdict = SPOILERS[name]
    request = EvaluationRequest(
        evaluation_id="test",
        task=load_task(catalog_folder() / "vector_add"),
        solution=Solution(source=source(body), language=Language.CUDA),
        mode=Mode.TEST,
        device=config.device,
    )
    result = evaluate(request, config)
    assert result.verdict is verdict, result.reason + result.log
    assert health.after(config, result.verdict) == ""
    assert health.unfit(config) == ""


def test_memory_of_the_process_before(
    config: SupervisorConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = probe.run(config, "fill", str(PATTERN))["bytes"]
    residue = probe.run(config, "look", str(PATTERN))
    with capsys.disabled():
        found, of = residue["found"] / 2**30, residue["bytes"] / 2**30
        print(f"\nof {filled / 2**30:.1f} GiB filled, a new process found {found:.3f} in {of:.1f}")
    probe.run(config, "scrub")
    assert probe.run(config, "look", str(PATTERN))["found"] == 0


def test_the_node_for_tools_is_there_for_profilers_alone() -> None:
    limits = Limits(cpu_s=10, memory_bytes=1 << 28, processes=32)
    seen = []
    for profiled in (False, True):
        made = Jail(limits=limits, cuda_index=first_gpu(), profiled=profiled)
        with ChildProcess(made, ["/bin/ls", "/dev"], jailed=not jail.probe()) as child:
            child.wait(10)
        seen.append("nvidia-uvm-tools" in child.output.split())
    assert seen == [False, Path("/dev/nvidia-uvm-tools").exists()]


def test_a_process_on_the_gpu_is_seen(config: SupervisorConfig) -> None:
    before = gpu_state.look(config.index)
    assert before.memory_used < 4 << 30
    assert before.damaged == ""
    assert set(nvml.lowered_ns(config.index)) <= {"power", "thermal", "board", "reliability"}


def test_a_block_is_logged(config: SupervisorConfig) -> None:
    log = DeviceLog(config)
    with log.block("probe"):
        found = probe.probe(config)
    assert found.wrong == 0
    [block] = log.blocks
    assert block["after"]["sm_mhz"] > 0
    assert block["throttled"] is False
