"""The arithmetic of a reference is counted whatever its operations are called."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gpu_runner.engine.soundness.arithmetic import count_flops

X, Y = torch.rand(8, 16), torch.rand(16, 4)
COMPLEX, ROW = X.to(torch.complex64), torch.tensor([3])
SPARSE = torch.eye(8, 16).to_sparse_csr()
IMAGE, WEIGHT = torch.rand(1, 2, 8, 8), torch.rand(3, 2, 3, 3)


@pytest.mark.parametrize(
    ("function", "flops"),
    [
        (lambda: X + 1, 128),
        (lambda: (X * 2).sum(1), 256),
        (lambda: X @ Y, 2 * 8 * 16 * 4),
        (lambda: X @ Y[:, 0], 2 * 8 * 16),
        (lambda: torch.softmax(X, 1), 5 * 128),
        (lambda: torch.nn.functional.gelu(X), 5 * 128),
        (lambda: X.t().contiguous().flip(0)[::2], 0),
        (lambda: torch.where(X > 0.5, X, 0.0), 128),
        (lambda: (X > 0.5).sum(0), 128),
        (lambda: SPARSE * 2, 8),
        (lambda: X.index_put((ROW,), X[:1]), 0),
        (lambda: X.index_put((ROW,), X[:1], accumulate=True), 16),
        (lambda: torch.nn.functional.conv2d(IMAGE, WEIGHT), 2 * 3 * 36 * 18),
        (lambda: torch.nn.functional.max_pool2d(IMAGE, 2), 2 * 16 * 4),
        (lambda: X.cumsum(0), 128),
        (lambda: torch.zeros(4).index_add(0, torch.arange(4), Y[0]), 4),
        (lambda: SPARSE @ Y, 2 * 8 * 4),
        (lambda: torch.fft.fft(Y[:, 0].to(torch.complex64)), 5 * 16 * 4),
        (lambda: torch.fft.fft(COMPLEX, dim=1), 5 * 128 * 4),
    ],
)
def test_operations_are_counted(function: Callable[[], Tensor], flops: int) -> None:
    assert count_flops(function, ()) == (flops, set())


def test_what_cannot_be_counted_is_named() -> None:
    flops, unknown = count_flops(lambda x: torch.linalg.svdvals(x.sort(1)[0] + 1), (X,))
    assert flops >= 128
    assert "sort" in unknown
    assert len(unknown) == 2
    assert count_flops(X.argmax, ()) == (0, {"argmax"})


def test_integers_alone_may_be_work_or_not() -> None:
    whole = torch.arange(8)
    assert count_flops(lambda: whole + 1, ()) == (0, {"add"})
    assert count_flops(lambda: X[whole + 0] * 2, ()) == (128, set())
