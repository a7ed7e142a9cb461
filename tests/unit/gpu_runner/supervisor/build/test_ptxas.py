"""The assembler's report becomes numbers; the text is what nvcc 13.0 and c++filt wrote."""

from __future__ import annotations

from pathlib import Path

from gpu_runner.data.profile import KernelResources
from gpu_runner.supervisor.build.ptxas import KERNELS_LIMIT, kernel_resources

CAPTURED = (Path(__file__).parents[1] / "captured" / "ptxas.txt").read_text()


def test_every_kernel_is_read_with_what_it_takes() -> None:
    assert kernel_resources(CAPTURED) == (
        KernelResources(
            name="void (anonymous namespace)::reduce<float>(float*, float const*, int)",
            registers=10,
            shared_bytes=1024,
        ),
        KernelResources(name="scale(float*, int)", registers=8),
        KernelResources(
            name="spills(float*, float const*, int)",
            registers=32,
            stack_bytes=2496,
            spill_store_bytes=2620,
            spill_load_bytes=3124,
        ),
    )


def test_constant_memory_is_summed_and_a_callees_stack_is_not_its_callers() -> None:
    log = (
        "ptxas info    : Compiling entry function 'f(int)' for 'sm_80'\n"
        "ptxas info    : Function properties for f(int)\n"
        "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Function properties for helper(int)\n"
        "    64 bytes stack frame, 16 bytes spill stores, 16 bytes spill loads\n"
        "ptxas info    : Used 12 registers, used 1 barriers, 4096 bytes smem, 380 bytes cmem[0],"
        " 8 bytes cmem[2]\n"
    )
    (kernel,) = kernel_resources(log)
    assert (kernel.shared_bytes, kernel.constant_bytes) == (4096, 388)
    assert (kernel.stack_bytes, kernel.spill_store_bytes) == (8, 0)


def test_a_log_without_kernels_or_with_many_stays_readable() -> None:
    assert kernel_resources("kernel.cpp:3:5: warning: unused variable\n") == ()
    many = "".join(
        f"ptxas info : Compiling entry function 'f{i}' for 'sm_90'\nptxas info : Used 4 registers\n"
        for i in range(KERNELS_LIMIT + 9)
    )
    assert len(kernel_resources(many)) == KERNELS_LIMIT
