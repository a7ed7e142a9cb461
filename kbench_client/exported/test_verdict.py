"""Replays the verdict: `python -m unittest PACKAGE.test_verdict`, or pytest."""

from __future__ import annotations

import unittest

import torch

from . import dispatch, loader, task

SEEDS = (1, 2)
KIND: str = task.WINNER["device"]["kind"]
WORKLOADS = task.WINNER["workloads"]


class TestVerdict(unittest.TestCase):
    """On the device that was measured; skipped on any other."""

    def setUp(self) -> None:
        """Skip where nothing is proven."""
        if reason := dispatch.why_not_on(torch.device(KIND)):
            self.skipTest(reason)

    def test_is_right_where_it_is_faster(self) -> None:
        """The kernel itself, within the task's bound."""
        for workload in (each for each in WORKLOADS if each["faster"]):
            for seed in SEEDS:
                with self.subTest(workload["name"], seed=seed):
                    drawn = task.draw(workload, seed, KIND)
                    assert dispatch.supports(*drawn.arguments)
                    outputs = loader.kernel()(drawn.arguments)
                    assert task.error(workload, drawn, outputs) <= 1

    def test_other_calls_are_pytorchs(self) -> None:
        """Where it was not surely faster, and on tensors that are not like the measured ones."""
        for workload in WORKLOADS:
            drawn = task.draw(workload, SEEDS[0], KIND)
            strided = task.mapped(_strided, drawn.arguments)
            for arguments in (strided, *([] if workload["faster"] else [drawn.arguments])):
                with self.subTest(workload["name"]):
                    assert not dispatch.supports(*arguments)
                    outputs = dispatch.run(arguments)
                    assert task.error(workload, drawn, outputs) <= 1


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values at every second place of memory."""
    return torch.stack((tensor, tensor), -1)[..., 0]


if __name__ == "__main__":
    unittest.main()
