"""PyTorch's own check of an operator: `python -m unittest PACKAGE.test_op`, or pytest."""

from __future__ import annotations

import unittest

import torch

from . import dispatch, op, task

KIND: str = task.WINNER["device"]["kind"]
SLACK = 1e-3  # chosen: two calls may add in different orders; test_verdict judges the errors


class TestOperator(unittest.TestCase):
    """With the kernel where it is proven here, and with PyTorch's functions in any case."""

    def test_opcheck(self) -> None:
        """Each of the workloads, on the measured kind of device or on a CPU."""
        device = "cpu" if dispatch.why_not_on(torch.device(KIND)) else KIND
        for workload in task.WINNER["workloads"]:
            with self.subTest(workload["name"]):
                arguments = task.draw(workload, 1, device).arguments
                torch.library.opcheck(
                    op.OPERATOR, arguments, rtol=SLACK, atol=SLACK * _largest(arguments)
                )


def _largest(arguments: task.Arguments) -> float:
    """The largest magnitude of a finite number among the outputs."""
    outputs = (each.double().nan_to_num(0.0, 0.0, 0.0) for each in dispatch.run(arguments))
    return max((float(each.abs().max()) for each in outputs if each.numel()), default=0.0)


if __name__ == "__main__":
    unittest.main()
