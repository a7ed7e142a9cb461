"""What a baseline makes on the host, which a device would have to wait for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gpu_runner.engine.runner.subject import OnTheHost


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (lambda x: x * 2 + torch.ones(3, device="meta"), False),
        (lambda x: x.sum() * torch.tensor(2.0), False),
        (lambda x: x[torch.arange(2)], True),
        (lambda x: x + torch.ones(3).to("meta"), True),
    ],
)
def test_tensors_made_on_the_host_are_noticed(
    function: Callable[[torch.Tensor], torch.Tensor], *, made: bool
) -> None:
    x = torch.empty(3, 3, device="meta")
    with OnTheHost() as host:
        function(x)
    assert host.made is made
