"""Whose kernels ran, as a profiler saw them, and who did the work of a call on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.integrity import AuditState
from gpu_runner.data.profile import KernelResources
from gpu_runner.supervisor.tools import kernel_list, ncu
from gpu_runner.supervisor.tools.kernel_list import Ownership
from gpu_runner.supervisor.tools.ncu import Launch
from gpu_runner.supervisor.work.told import is_of_libraries

CAPTURED = Path(__file__).parents[1] / "captured"
ANCHOR, SOFTMAX = ((CAPTURED / f"ncu_{name}.csv").read_text() for name in ("anchor", "torch"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("anchor_kernel(float *, const float *, int)", "anchor_kernel"),
        ("void (anonymous namespace)::reduce<float>(float*, float const*, int)", "reduce"),
        ("void <unnamed>::reduce<float, (int)4>(T1 *)", "reduce"),
        ("void at::native::k<4, at::F<float>, std::array<char *, 3>>(int, T2)", "k"),
        ("std::enable_if<(1 > 0), void>::type ns::k(int)", "k"),
    ],
)
def test_demanglers_agree_on_plain_names(name: str, expected: str) -> None:
    assert kernel_list.plain(name) == expected


def own(
    name: str = "anchor_kernel(float*, float const*, int)", registers: int = 10
) -> list[KernelResources]:
    return [KernelResources(name=name, registers=registers)]


def ran(name: str, duration_ns: float = 100.0, **raw: float) -> Launch:
    return Launch(name, duration_ns, raw)


def test_captured_kernel_is_the_builds_own_if_its_registers_fit() -> None:
    launches = ncu.parse(ANCHOR)
    assert all(kernel_list.is_own(launch, own()) for launch in launches)
    assert not any(kernel_list.is_own(launch, own(registers=40)) for launch in launches)
    assert not any(kernel_list.is_own(launch, own("other(int)")) for launch in launches)


MINE, GEMM = ran("mine(float *)"), ran("void cutlass::Kernel2<cutlass_80_gemm>(T1)")
SMALL = ran("void cutlass::Kernel2<cutlass_80_gemm>(T1)", 5.0)
FILL = ran("void at::native::vectorized_elementwise_kernel<4, at::FillFunctor<float>>(int)")
COPY = ran("other_copy(int)")


@pytest.mark.parametrize(
    ("calls", "libraries", "words"),
    [
        ([[MINE, FILL], [MINE, FILL]], False, ""),
        ([[MINE, GEMM], [MINE, GEMM]], True, ""),
        ([[MINE, GEMM], [MINE, GEMM]], False, "void cutlass::Kernel2<cutlass_80_gemm>(T1) did 50%"),
        ([[MINE, SMALL], [MINE, SMALL]], False, ""),
        ([[MINE, SMALL], [MINE, GEMM]], False, "did 50%"),
        ([[GEMM], [GEMM]], True, "none of its own kernels ran"),
        ([[MINE], [MINE, FILL]], False, "different kernels"),
        ([[], []], False, "no kernel ran"),
    ],
)
def test_kernels_that_ran_are_compared_with_the_build(
    calls: list[list[Launch]], libraries: bool, words: str
) -> None:
    ownership = Ownership(own("mine(float*)"))
    works = [] if libraries else [ownership.work(call, "n4") for call in calls]
    check = kernel_list.kernels_check(calls, ownership, works)
    assert check.state is (AuditState.SUSPICIOUS if words else AuditState.PASSED)
    assert words in check.reason


def test_a_list_that_was_cut_accuses_only_libraries() -> None:
    many = Ownership(own("mine(float*)") * 64)
    for strange, state in ((COPY, AuditState.PASSED), (GEMM, AuditState.SUSPICIOUS)):
        calls = [[MINE, strange]] * 2
        check = kernel_list.kernels_check(calls, many, [many.work(calls[0], "n4")])
        assert check.state is state


MODULE = Ownership((), "@triton.jit\ndef gemm_kernel(a, b): ...\n__global__ void sgemv(int)", True)


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("softmax_kernel", True),
        ("gemm_kernel", True),
        ("sgemv(int)", True),
        ("add", True),
        ("my_gemm", False),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTN", False),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", False),
        ("void cudnn::ops::nchwToNhwcKernel<float>(T1)", False),
        ("triton_per_fused__softmax_0", False),
        ("void at_cuda_detail::cub::DeviceScanKernel<float>(T1)", False),
    ],
)
def test_kernels_of_a_module_are_told_by_their_names(name: str, is_own: bool) -> None:
    assert MODULE.is_own(ran(name)) is is_own


def test_what_a_profiler_saw_of_torch_is_torchs_work() -> None:
    launches = ncu.parse(SOFTMAX)
    worked = MODULE.work(launches, "n4")
    assert worked.own == 0
    assert is_of_libraries(worked)
    assert any("SoftMax" in name for name in worked.libraries)


@pytest.mark.parametrize(
    ("claimed_ns", "state"), [(60_000.0, AuditState.PASSED), (50_000.0, AuditState.SUSPICIOUS)]
)
def test_claim_far_below_the_profilers_clock_is_suspicious(
    claimed_ns: float, state: AuditState
) -> None:
    aside = [ran("mine()", 90_000.0, Context=1.0, Stream=13.0)]  # beside the others
    call = [ran("mine()", 50_000.0, Context=1.0, Stream=7.0)] * 2
    check = kernel_list.time_check(claimed_ns, [call + aside, call], "n4")
    assert check.state is state
