"""The built-in tasks as data: they load and count their work; their gradients and baselines."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_runner.data.flags import FIXED
from gpu_runner.data.formats import catalog_specifications
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language
from gpu_runner.engine.problem.arguments import as_signature_says
from gpu_runner.engine.problem.problem import in_dtype, in_float64, outputs_of
from tests.unit.catalog.judging import Case, cases, problem, task

NETWORKS = {
    "layernorm", "llama_ffw", "llama_rmsnorm", "conv_relu_pool", "cross_entropy", "linear",
    "linear_relu", "max_pool", "resnet_block", "unet_conv2d", "unet_linear",
}  # fmt: skip
FORWARD_ONLY = {"llama_ffw", "resnet_block", "unet_conv2d"}
TUNED = {"vector_add", "dot_product", "matrix_mul", "softmax", "rms_norm", "spmv_csr"}
NAMES = sorted(catalog_specifications())
SPARSE = {name for name in NAMES if task(name).scenario == "sparse"}
ROUTINES = sorted(name for name in NAMES if task(name).abi is Abi.C)
WITHOUT_ARITHMETIC = {"histogram", "matrix_copy", "matrix_transpose", "reverse_array"}
LARGEST_INPUTS = 1.2e9  # bytes; robust-kbench's own layernorm gradient is the largest


@pytest.mark.parametrize("name", NAMES)
def test_a_task_covers_both_devices_in_every_direction(name: str) -> None:
    loaded = task(name)
    assert loaded.name == name
    if name in NETWORKS:
        assert loaded.abi is Abi.TORCH
        assert (Direction.BACKWARD in loaded.directions) == (name not in FORWARD_ONLY)
    for direction in loaded.directions:
        for kind in DeviceKind:
            public = loaded.workloads_for(kind, direction, hidden=False)
            everything = loaded.workloads_for(kind, direction, hidden=True)
            assert len(public) >= 2
            assert len(everything) - len(public) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_hidden_workloads_are_not_public_ones_again(name: str) -> None:
    seen = [(w.parameters, w.devices, w.directions) for w in task(name).workloads]
    assert all(entry not in seen[:index] for index, entry in enumerate(seen))


@pytest.mark.parametrize("name", ROUTINES)
def test_a_routine_ships_a_naive_kernel_for_both_devices(name: str) -> None:
    shipped = {(kernel.agent, kernel.language) for kernel in task(name).kernels}
    wanted = {Language.CUDA} if name.endswith("_bf16") else set(FIXED)
    assert {("kbench-naive", language) for language in wanted} <= shipped
    assert task(name).c_signature.symbol.lower() == name


@pytest.mark.parametrize("name", sorted(TUNED))
def test_a_tuned_routine_ships_three_kernels_for_both_devices(name: str) -> None:
    shipped = {(kernel.agent, kernel.language) for kernel in task(name).kernels}
    agents = ("kbench-naive", "kbench-good", "kbench-tunable")
    wanted = {(agent, language) for agent in agents for language in FIXED}
    assert shipped - {("kbench-best", Language.PYTHON)} == wanted
    assert len(task(name).kernels) == len(shipped)


@pytest.mark.sampled(60)
@pytest.mark.each_task
@pytest.mark.parametrize("case", cases(*NAMES), ids=str)
def test_the_work_formula_counts_each_byte_once(case: Case) -> None:
    arguments = case.draw(1).arguments
    outputs = in_dtype(outputs_of(case.function()(*arguments)), task(case.name).dtype)
    moved = _bytes(arguments) + _bytes(as_signature_says(task(case.name), outputs))
    cost = task(case.name).cost(case.workload, case.direction)
    assert cost is not None
    assert cost.bytes <= moved
    assert cost.bytes >= 0.6 * moved  # what need not be read: odd edges of a pooled map, biases
    assert (cost.flops == 0) is (case.name.removesuffix("_bf16") in WITHOUT_ARITHMETIC)
    assert cost.weight > 0


@pytest.mark.sampled(6)
@pytest.mark.each_task
@pytest.mark.parametrize("name", sorted(set(NAMES) - SPARSE))
def test_no_workload_needs_too_much_memory(name: str) -> None:
    for workload in task(name).workloads:
        for direction in workload.directions:
            if direction in task(name).directions:
                assert _input_bytes(name, workload, direction) < LARGEST_INPUTS, workload.name


@pytest.mark.sampled(60)
@pytest.mark.each_task
@pytest.mark.parametrize("case", cases(*NAMES), ids=str)
def test_inputs_are_the_seed_s_alone(case: Case) -> None:
    first = case.draw(3).arguments
    case.draw(4)
    torch.rand(7)
    again = case.draw(3).arguments
    assert all(
        torch.equal(a, b) if isinstance(a, Tensor) else a == b
        for a, b in zip(first, again, strict=True)
    )


def _bytes(values: tuple[object, ...]) -> int:
    return sum(v.numel() * v.element_size() for v in values if isinstance(v, Tensor))


def _input_bytes(name: str, workload: Workload, direction: Direction) -> int:
    """Bytes of a call's inputs, found without allocating them."""
    return _bytes(problem(name).draw(workload, direction, 1, "meta").arguments)


@pytest.mark.each_task
@pytest.mark.parametrize("name", NAMES)
def test_no_number_among_the_arguments_is_a_constant(name: str) -> None:
    """Or a kernel could have its value in place of the argument."""
    found: dict[tuple[Direction, str], set[float]] = {}
    for workload in task(name).workloads:
        for direction in workload.directions if DeviceKind.CPU in workload.devices else ():
            if direction in task(name).directions:
                drawn = problem(name).draw(workload, direction, 1, "cpu")
                for argument, value in zip(drawn.names, drawn.arguments, strict=True):
                    if isinstance(value, int | float):
                        found.setdefault((direction, argument), set()).add(value)
    assert [argument for argument, values in found.items() if len(values) == 1] == []


WITH_BACKWARD = [name for name in NAMES if Direction.BACKWARD in task(name).directions]
BACKWARD = cases(
    *(name for name in WITH_BACKWARD if task(name).dtype == "float32"), direction=Direction.BACKWARD
)
TABLES = {"cosines", "sines"}
"""Constants, of which nobody wants a gradient."""


@pytest.mark.sampled(50)
@pytest.mark.parametrize("case", BACKWARD, ids=str)
def test_backward_equals_autograd(case: Case) -> None:
    drawn = case.draw(5)
    values = {**drawn.values, **drawn.named}
    gradient = in_float64(values["grad_output"])
    inputs = _inputs(case, values)
    leaves = [v.requires_grad_() for n, v in inputs.items() if _is_real(v) and n not in TABLES]
    forward = problem(case.name).function(Direction.FORWARD)
    expected = torch.autograd.grad(forward(**inputs), leaves, gradient)
    actual = outputs_of(case.function()(*in_float64(drawn.arguments)))
    assert len(actual) == len(expected)
    for mine, autograd in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, autograd, rtol=1e-9, atol=1e-12)


def _inputs(case: Case, values: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the forward function, by name, in float64."""
    forward = problem(case.name).draw(case.workload, Direction.FORWARD, 5, "cpu")
    return {name: in_float64(values[name]) for name in forward.names}


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


FORWARD = Direction.FORWARD
OWN = [
    name
    for name in NAMES
    if FORWARD in task(name).directions
    and problem(name).baseline(FORWARD) is not problem(name).function(FORWARD)
]
SEED = 1


@pytest.mark.sampled(40)
@pytest.mark.each_task
@pytest.mark.parametrize("case", cases(*OWN, direction=FORWARD), ids=str)
def test_a_baseline_is_right_on_every_workload_of_a_cpu(case: Case) -> None:
    baseline = problem(case.name).baseline(FORWARD)
    assert case.passes(baseline(*case.draw(SEED).arguments), SEED)


class OnDevice(torch.Tensor):
    """A tensor that says it is on a GPU, for baselines that choose by that."""

    is_cuda = True


@pytest.mark.parametrize("case", cases("layernorm", direction=FORWARD), ids=str)
def test_what_a_gpu_gets_is_right_too(case: Case) -> None:
    """Of `histogram`, torch has it on GPUs alone."""
    arguments = case.draw(SEED).arguments
    marked = [a.as_subclass(OnDevice) if isinstance(a, torch.Tensor) else a for a in arguments]
    output = problem(case.name).baseline(FORWARD)(*marked)
    assert isinstance(output, OnDevice)
    assert case.passes(output.as_subclass(torch.Tensor), SEED)
