"""MSKernelBench's files become kernels of the tasks whose symbol and arguments they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.mskernelbench import read_origin
from gpu_runner.data.signature import Signature
from gpu_runner.data.task import Task, TaskFormat, Workload
from gpu_runner.data.verdict import Abi, Language

ORIGIN = """
// extern "C" void scale(float* commented_out) {
__global__ void scale_kernel(float* out, const float* x, int N) {}

extern "C" void scale(
    float* __restrict__ out,
    const float *x, const int N,  /* of elements */
    float alpha = 2.0) {
    scale_kernel<<<1, 1>>>(out, x, N);
}
"""


def task(name: str, signature: str, dtype: str = "float32") -> Task:
    return Task(
        name=name,
        title=name,
        format=TaskFormat.KBENCH,
        abi=Abi.C,
        signature=signature,
        dtype=dtype,
        workloads=(Workload(name="n1", parameters={"N": 1}),),
        files={},
    )


TASKS = [
    task("scale", "void scale(float* out, const float* x, int32_t N, float alpha)"),
    task(
        "scale_bf16",
        "void scale_bf16(__nv_bfloat16* out, const __nv_bfloat16* x, int N, float alpha)",
        "bfloat16",
    ),
]


def write(folder: Path, text: str, name: str = "scale.cu") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_with_a_tasks_signature_is_offered_as_it_is(tmp_path: Path) -> None:
    offer = read_origin(write(tmp_path / "origin" / "fp32", ORIGIN), TASKS)
    assert (offer.task, offer.agent) == ("scale", "mskernelbench-origin")
    assert (offer.solution.source, offer.solution.language) == (ORIGIN, Language.CUDA)
    assert len(offer.adaptations) == 1


def test_a_file_with_another_symbol_gets_the_tasks(tmp_path: Path) -> None:
    text = ORIGIN.replace("void scale(", "void scale_optimized(").replace(
        "const float *x", "float *x"
    )
    offer = read_origin(write(tmp_path / "optimized" / "fp32", text), TASKS)
    assert offer.agent == "mskernelbench-optimized"
    assert offer.adaptations[1:] == (
        "doesn't declare these inputs as const: x",
        "gets an extra function scale, which calls scale_optimized",
    )
    added = offer.solution.source.removeprefix(text)
    assert "scale_optimized(out, const_cast<float*>(x), N, alpha);" in added
    declaration = added.split('extern "C" ')[1].split(" {")[0]
    assert Signature.parse(declaration) == TASKS[0].c_signature  # the builder declares it, too


@pytest.mark.parametrize(
    ("where", "old", "new", "reason"),
    [
        ("fp32/other.cu", "scale", "other", "no built-in task in float32 uses other()"),
        ("fp32/scale.cu", "const int N,", "long N,", "but scale needs `void scale"),
        ("fp32/scale.cu", "float* __restrict__ out", "const float* out", "has no output"),
        ("fp32/scale.cu", 'extern "C"', "static", "but defines 0"),
        ("fp32/scale.cu", "float* __restrict__", "Tensor*", "'Tensor' is not one of"),
        ("fp32/test_scale.cu", "", "", "is a harness"),
        ("bf16/scale_bf16.cu", "", "", "but scale_bf16 needs"),
    ],
)
def test_what_is_no_kernel_of_a_task_is_refused(
    tmp_path: Path, where: str, old: str, new: str, reason: str
) -> None:
    path = tmp_path / "origin" / where
    write(path.parent, ORIGIN.replace(old, new) if old else ORIGIN, path.name)
    with pytest.raises(DataError) as caught:
        read_origin(path, TASKS)
    assert reason in str(caught.value)
