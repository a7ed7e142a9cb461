"""Which of the memory that another process has made may come back from a call."""

from __future__ import annotations

import pytest
import torch

from gpu_runner.data.wire import Argument, ArgumentKind
from gpu_runner.engine.runner import mapped_arena
from gpu_runner.engine.runner.mapped_arena import MappedArena


def test_an_in_out_argument_alone_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it lies, and no other input in its place."""
    memory = torch.zeros(4096, dtype=torch.uint8)
    monkeypatch.setattr(mapped_arena, "import_", lambda *_: memory)
    arena = MappedArena(3, 4096)
    tensor = arena.tensor(512, torch.float32, (16,))
    assert arena.has(tensor)
    assert not arena.has(torch.zeros(16))
    for kind, offset, comes_back in (
        (ArgumentKind.INOUT, 512, True),
        (ArgumentKind.INOUT, 1024, False),
        (ArgumentKind.OUTPUT, 512, False),
    ):
        argument = Argument(kind, nbytes=64, input_offset=offset)
        assert arena.comes_back(argument, tensor) is comes_back
