"""Each honest family is nearly right, and every order of a sum adds each term once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.data.verdict import Direction
from gpu_runner.engine.soundness.families import sums
from gpu_runner.engine.soundness.mutants import Call
from gpu_runner.engine.soundness.soundness import honest_kernels, honest_result
from tests.unit.catalog.judging import problem
from tests.unit.gpu_runner.engine.test_mutants import first_call
from tests.unit.gpu_runner.engine.test_mutants import problem as small_problem

EPS = torch.finfo(torch.float32).eps


def drawn(*shape: int, mean: float = 0.0, size: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64) * size + mean


def convolved_back(grad: Tensor, x: Tensor, w: Tensor) -> Tensor:
    parts = torch.ops.aten.convolution_backward(
        grad, x, w, [5], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True]
    )  # fmt: skip
    return torch.cat([part.flatten() for part in parts])


def sparse(x: Tensor) -> Tensor:
    return torch.where(x.abs() > 1, x, 0.0).to_sparse_csr()


def added(x: Tensor) -> Tensor:
    rows = torch.arange(len(x)) % 7
    return torch.zeros(7, dtype=x.dtype).index_add(0, rows, x)


CASES: Mapping[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "mm": (torch.mm, (drawn(37, 301), drawn(301, 53))),
    "mv": (torch.mv, (drawn(37, 301), drawn(301))),
    "dot": (torch.dot, (drawn(3001), drawn(3001, mean=0.5))),
    "bmm": (torch.bmm, (drawn(3, 7, 90), drawn(3, 90, 11))),
    "conv1d": (F.conv1d, (drawn(2, 3, 40), drawn(5, 3, 7))),
    "conv2d": (
        lambda x, w, b: F.conv2d(x, w, b, padding=1),
        (drawn(2, 3, 19, 17), drawn(5, 3, 5, 4), drawn(5)),
    ),
    "conv2d with strides": (
        lambda x, w: F.conv2d(x, w, stride=2),
        (drawn(2, 3, 19, 17), drawn(5, 3, 3, 3)),
    ),
    "gradients": (convolved_back, (drawn(2, 5, 15, 14), drawn(2, 3, 19, 17), drawn(5, 3, 5, 4))),
    "sum": (lambda x: x.sum((0, 2)), (drawn(5, 6, 700),)),
    "sum of all": (torch.sum, (drawn(30, 70, mean=1.0),)),
    "mean": (lambda x: x.mean(1, keepdim=True), (drawn(5, 700, mean=3.0),)),
    "cumsum": (lambda x: x.cumsum(1), (drawn(5, 700),)),
    "variance": (lambda x: torch.var_mean(x, dim=1, correction=0)[0], (drawn(9, 700, mean=1.0),)),
    "unbiased": (lambda x: torch.var_mean(x, dim=1)[0], (drawn(9, 70),)),
    "layer_norm": (lambda x: F.layer_norm(x, (700,)), (drawn(9, 700, mean=1.0),)),
    "sparse": (lambda a, b: sparse(a) @ b, (drawn(37, 301), drawn(301, 5))),
    "sparse vector": (lambda a, b: sparse(a) @ b, (drawn(37, 301), drawn(301))),
    "index_add": (added, (drawn(3001),)),
    "fft": (
        lambda x: torch.view_as_real(torch.fft.fft(torch.complex(x[0], x[1]))),
        (drawn(2, 512),),
    ),
    "exp": (torch.exp, (drawn(999, size=20.0),)),
    "softmax": (lambda x: torch.softmax(x, 1), (drawn(9, 1300, size=20.0),)),
    "log_softmax": (lambda x: torch.log_softmax(x, 1), (drawn(9, 1300, size=20.0),)),
    "safe softmax": (
        lambda x: torch.ops.aten._safe_softmax(x, 1),
        (torch.where(drawn(9, 130) > 1, -torch.inf, drawn(9, 130, size=20.0)),),
    ),
    "sigmoid": (torch.sigmoid, (drawn(999, size=30.0),)),
    "tanh": (torch.tanh, (drawn(999, size=3.0),)),
    "elu": (lambda x: F.elu(x, 1.3), (drawn(999, size=30.0),)),
    "gelu": (F.gelu, (drawn(999, size=3.0),)),
    "div": (torch.div, (drawn(99, 9), drawn(99, 9, mean=9.0))),
    "log": (torch.log, (drawn(999).abs(),)),
    "rsqrt": (torch.rsqrt, (drawn(999).abs(),)),
    "multiply and add": (lambda a, b, c: a * b - c, (drawn(99), drawn(99), drawn(99))),
}
MOST = 60
"""Units in the last place of a result's largest element by which any family may be off."""


def run(case: str) -> Tensor:
    function, arguments = CASES[case]
    return function(*(argument.float() for argument in arguments))


@pytest.mark.parametrize("case", CASES)
def test_families_are_nearly_right(case: str) -> None:
    function, arguments = CASES[case]
    exact = function(*(argument.float().double() for argument in arguments))
    for name, family in honest_kernels().items():
        with family.mode():
            found = run(case)
        assert found.dtype is torch.float32
        error = (found.double() - exact).abs().max() / exact.abs().max()
        assert error <= MOST * EPS, name


@pytest.mark.parametrize("name", sums.ORDERS)
@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9, 255, 257, 1500])
def test_orders_of_any_length_add_every_term_once(name: str, size: int) -> None:
    terms = torch.arange(1.0, size + 1).expand(3, size).contiguous()
    assert sums.ORDERS[name].terms(terms).tolist() == [size * (size + 1) / 2] * 3
    scan = sums.ORDERS[name].scan
    if scan is not None and size:
        assert torch.equal(scan(terms), terms.cumsum(-1))


def test_what_is_handed_out_narrow_may_take_the_other_neighbour() -> None:
    family = honest_kernels()["rounded after another error"]
    assert family.written is not None
    middle = torch.linspace(1, 2, 129)[:-1] + 2**-8  # between two BF16 numbers
    found = family.written(middle).bfloat16()
    assert (found.float() > middle).any()
    assert (found.float() < middle).any()
    exact = middle.bfloat16().float()
    assert torch.equal(family.written(exact), exact)


def test_a_family_that_a_task_has_nothing_of_is_left_out(tmp_path: Path) -> None:
    call = first_call(small_problem(tmp_path))  # an affine map: products and sums alone
    assert honest_result(honest_kernels()["Winograd F(2, 3)"], call) is None
    assert honest_result(honest_kernels()["sums one by one"], call) is not None
    narrow = honest_kernels()["rounded after another error"]
    assert honest_result(narrow, call) is None


def test_strassen_is_honest_where_nothing_makes_more_of_its_errors() -> None:
    family = honest_kernels()["Strassen's products"]
    for name, tried in (("matrix_mul", True), ("softmax_attention", False)):
        base = problem(name)
        call = Call(base, base.task.workloads[-1], Direction.FORWARD, 1, "cpu")
        assert (honest_result(family, call) is not None) is tried
