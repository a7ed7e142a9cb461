"""The variable that hides GPUs from CUDA's programs hides them from kbench, too."""

from __future__ import annotations

import pytest

from gpu_runner.data.gpus import visible

UUIDS = ("GPU-aa1", "GPU-aa2", "GPU-b")


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("2, 0", [0, 2]),
        ("GPU-b,1", [1, 2]),
        ("GPU-aa", []),  # could be either
        ("0,7,1", [0]),
        ("0,0,1", [0]),
        ("MIG-b", []),
    ],
)
def test_gpus_are_chosen_as_cuda_does(chosen: str | None, expected: list[int]) -> None:
    assert visible(UUIDS, chosen) == expected
