"""Torch extensions are built with few of torch's headers, and with all where those do not do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.build import build
from gpu_runner.supervisor.build.build import Recipe, solution_recipes
from gpu_runner.supervisor.build.recipe import Built
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.protocol.evaluating import needs_jail
from tests.protocol.evaluating import request as plain_request

pytestmark = needs_jail
SLIM = f"-isystem {toolchain.TORCH_HEADERS.name}"

MODULE = """
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "as people write it"); %s}
"""
EVERYTHING = """
#include <torch/extension.h>
#include <ATen/ATen.h>
#include <torch/torch.h>
template <typename T>
void scale(const T* in, T* out, int64_t n) {
  at::parallel_for(0, n, 64, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) out[i] = in[i] * T(2);
  });
}
std::vector<torch::Tensor> forward(at::Tensor x, c10::optional<torch::Tensor> bias, double by) {
  torch::NoGradGuard none;
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous(), "not a matrix: ", x.sizes(), x.dtype(), x);
  const auto options = torch::TensorOptions().dtype(torch::kFloat64).device(x.device());
  const auto graded = options.requires_grad(true);
  const auto last = c10::MemoryFormat::ChannelsLast;
  auto scaled = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
    scale<scalar_t>(x.data_ptr<scalar_t>(), scaled.data_ptr<scalar_t>(), x.numel());
  });
  auto a = x.packed_accessor64<float, 2>();
  return {scaled,
          torch::empty({2, 3}, graded),
          torch::empty({2, 3, 4, 5}, x.options(), last),
          torch::empty_strided({2, 3}, {1, 2}, options),
          torch::zeros({x.size(0), x.size(1)}),
          torch::zeros({3}, torch::dtype(torch::kInt32).device(torch::kCPU)),
          torch::zeros_like(x, graded),
          torch::ones({2}, torch::kBFloat16),
          torch::ones_like(x, x.options().dtype(torch::kHalf)),
          torch::full({2, 2}, by, graded),
          torch::full_like(x, 7, x.options().dtype(at::kLong)),
          torch::arange(5), torch::arange(1, 4, graded), torch::arange(0.0, 1.0, 0.25),
          at::zeros({2}, x.options()), at::empty_like(x), x.new_zeros({4}), x.to(at::kDouble),
          (x + 1) * x / 2.0, x - bias.value_or(x), x.sum(), torch::zeros({int64_t(a[0][3]) + 4})};
}
"""
BOTH = EVERYTHING + MODULE % ""
"""A source that builds with few headers and with all."""
MORE = (
    f"{EVERYTHING}\ntorch::Tensor more(torch::Tensor x) {{ return torch::relu(x); }}\n"
    + MODULE % 'm.def("more", &more); '
)
"""The same, with an operation that the few headers do not have."""


def request(source: str) -> EvaluationRequest:
    return plain_request("layernorm", source, Mode.COMPILE)


CALL = f"""
import sys, importlib.util, torch
path, out, *calls = sys.argv[1:]
spec = importlib.util.spec_from_file_location("{toolchain.TORCH_MODULE}", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
x = torch.arange(12.0).reshape(3, 4) - 3
results = []
for call in calls:
    try:
        results.append(eval(call, {{**vars(module), "x": x}}))
    except Exception as error:
        results.append(f"{{type(error).__name__}}: {{error}}")
torch.save(results, out)
"""
WRONG = ("forward(x[0], None, 1.0)", "forward(1, None, 1.0)", "forward(x)")


def called(built: Built, *calls: str) -> list[Any]:
    """What calls of the extension give, or raise: in a process of its own, as when judged."""
    assert built.library is not None, built.report.log
    out = built.library.with_name("result.pt")
    command = [sys.executable, "-c", CALL, str(built.library), str(out), *calls]
    subprocess.run(command, check=True)
    results: list[Any] = torch.load(out)
    return results


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SupervisorConfig:
    return SupervisorConfig(cache_folder=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def full(config: SupervisorConfig) -> Built:
    """What needs all of torch's headers, which takes half a minute of processor time to build."""
    return build.build_solution(request(MORE), config)


@pytest.mark.slow
@pytest.mark.thorough(reason="half a minute of building; slim headers are tried in both tiers")
def test_a_source_that_needs_more_gets_all_of_torch(full: Built, config: SupervisorConfig) -> None:
    assert SLIM not in full.report.command
    assert called(full, "more(x)")[0].min() == 0
    again = build.build_solution(request(MORE), config)
    assert again.report.cached  # and the slim headers were not tried again
    assert again.library == full.library


@pytest.mark.slow
@pytest.mark.thorough(reason="half a minute of building; slim headers are tried in both tiers")
def test_a_source_that_builds_with_both_does_the_same(
    full: Built, config: SupervisorConfig
) -> None:
    slim = build.build_solution(request(BOTH), config)
    assert SLIM in slim.report.command
    assert slim.report.duration_s < 0.7 * full.report.duration_s
    (ours, *said), (theirs, *others) = (
        called(each, "forward(x, x / 3, 2.5)", *WRONG) for each in (slim, full)
    )
    assert len(ours) == len(theirs) == 22
    for one, other in zip(ours, theirs, strict=True):
        facts = ("shape", "dtype", "requires_grad", "is_leaf")
        assert [getattr(one, f) for f in facts] == [getattr(other, f) for f in facts]
        assert one.stride() == other.stride()
    unset = (1, 2, 3, 15)
    for index in set(range(22)) - {*unset}:
        assert torch.equal(ours[index], theirs[index])
    assert ours[1].requires_grad
    assert said == others
    assert all("Error: " in each for each in said)


def test_the_slim_headers_are_part_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def keys() -> list[str]:
        recipes = solution_recipes(request(MORE), SupervisorConfig())
        return [recipe.key() for recipe in recipes]

    before = keys()
    assert len(set(before)) == 2
    changed = {name: f"{text}\n" for name, text in toolchain.torch_headers().items()}
    monkeypatch.setattr(toolchain, "torch_headers", lambda: changed)
    after = keys()
    assert after[0] != before[0]
    assert after[1] == before[1]


def recipe(text: str) -> Recipe:
    flags = ("-shared", "-fPIC", "-isystem", "some")
    files = {"a.cpp": f"#include <folder/a.h>\n{text}", "some/folder/a.h": "#define A 1\n"}
    return Recipe(files, "a.cpp", DeviceKind.CPU, flags)


@pytest.mark.parametrize("unjailed", [False, True])
def test_the_first_way_that_builds_counts(tmp_path: Path, *, unjailed: bool) -> None:
    config = SupervisorConfig(cache_folder=tmp_path, allow_unjailed=unjailed)
    bad, good, other = recipe("int a"), recipe("int a = A;"), recipe("int b = A;")
    built = build._first_that_builds([bad, good, other], config)
    assert built.library is not None
    assert built.report.digest == good.key()
    assert not built.report.cached
    again = build._first_that_builds([other, good], config)
    assert again.report.cached
    assert again.library == built.library
    worst = build._first_that_builds([bad, recipe("int b")], config)
    assert worst.report.digest == recipe("int b").key()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_what_does_not_assemble_is_not_tried_again(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    kernel = "__global__ void k(char* p) { __shared__ char s[1 << 20]; s[*p] = 1; *p = s[2]; }"
    flags = ("-shared", "-Xcompiler=-fPIC", toolchain.for_architecture("sm_80"))
    large, small = (
        Recipe({"k.cu": text}, "k.cu", DeviceKind.CUDA, flags)
        for text in (kernel, kernel.replace("20", "8"))
    )
    built = build._first_that_builds([large, small], config)
    assert built.library is None
    assert "too much shared data" in built.report.log
    assert build._first_that_builds([small], config).library is not None
