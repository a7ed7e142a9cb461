"""Makes a host ready for its first evaluation: our own programs built, its clock calibrated."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.queue import Urgency
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Mode, Verdict
from gpu_runner.supervisor.audit.cpu import build_race_finder
from gpu_runner.supervisor.build.build import (
    build_anchor,
    build_interposed,
    build_runner,
    build_support,
)
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.tools.probe import build_probe

_REFERENCE = """
import torch


def make_inputs(n):
    return {"x": torch.randn(n)}


def forward_fn(x):
    return x.clone()
"""
_CUDA = (
    "__global__ void copy(float* y, const float* x, int n) {"
    " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }\n"
    'extern "C" void kbench_copy(float* y, const float* x, int n) {'
    " copy<<<(n + 255) / 256, 256>>>(y, x, n);%s }"
)
_CPU = (
    "void kbench_copy(float* y, const float* x, int n) {\n"
    "%s for (int i = 0; i < n; ++i) y[i] = x[i]; }"
)
KERNELS = {
    DeviceKind.CPU: (_CPU % "", _CPU % "#pragma omp parallel for\n"),
    DeviceKind.CUDA: (_CUDA % "", _CUDA % " cudaDeviceSynchronize();"),
}
"""One for each habit of kernels (`Habit`): calibrating takes half a second on a CPU, and more on a
GPU."""
TASK = Task(
    name="kbench_copy",
    title="A copy that every runner makes before its first evaluation",
    format=TaskFormat.KBENCH,
    abi=Abi.C,
    signature="void kbench_copy(float* y, const float* x, int n)",
    workloads=(Workload(name="n65536", parameters={"n": 65536}),),
    files={"reference.py": _REFERENCE},
    baselines=(),
)


def build_programs(config: SupervisorConfig) -> str:
    """Build all programs of ours, side by side, while nobody needs the device for it.

    Returns why one could not be built; whoever needs it says so again.
    """
    makers: list[Callable[[SupervisorConfig], object]] = [build_support, build_runner, build_probe]
    if config.kind is DeviceKind.CUDA:
        makers += [build_anchor, build_interposed]
    else:
        makers.append(build_race_finder)
    with ThreadPoolExecutor(len(makers)) as pool:
        built = [pool.submit(maker, config) for maker in makers]
    return next((str(each.exception()).splitlines()[0] for each in built if each.exception()), "")


def make_ready(config: SupervisorConfig) -> str:
    """Evaluate copies, which need all that a kernel of the c ABI needs of us.

    Returns why that did not work, for the log; the device's fitness is judged elsewhere.
    """
    for source in KERNELS[config.kind]:
        request = EvaluationRequest(
            evaluation_id="ready",
            task=TASK,
            solution=Solution(source=source, language=config.kind.language),
            mode=Mode.QUICK,
            device=config.device,
            urgency=Urgency.BASELINES,
        )
        result = evaluate(request, config)
        if result.verdict is not Verdict.CORRECT:
            return f"{result.verdict}: {result.reason}"
    return ""
