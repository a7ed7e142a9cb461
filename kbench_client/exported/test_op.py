"""PyTorch's own check of an operator: `python -m unittest PACKAGE.test_op`, or pytest."""

from __future__ import annotations

import unittest

import torch

from . import dispatch, op, task

KIND: str = task.WINNER["device"]["kind"]


class TestOperator(unittest.TestCase):
    """With the kernel where it is proven here, and with PyTorch's functions in any case."""

    def test_opcheck(self) -> None:
        """Each of the workloads, on the measured kind of device or on a CPU."""
        device = "cpu" if dispatch.why_not_on(torch.device(KIND)) else KIND
        for workload in task.WINNER["workloads"]:
            with self.subTest(workload["name"]):
                arguments = task.draw(workload, 1, device).arguments
                torch.library.opcheck(op.OPERATOR, arguments)


if __name__ == "__main__":
    unittest.main()
