"""Layout, poison and sealing of the shared memory."""

from __future__ import annotations

import mmap
import os
import random
from collections.abc import Iterator

import pytest
import torch

from gpu_runner.engine.runner.placement import Placement
from gpu_runner.supervisor.build.declaration import NATIVE_FOLDER
from gpu_runner.supervisor.host.arena import (
    ALIGNMENT,
    GUARD_BYTES,
    Arena,
    Poison,
    place,
    span_bytes,
)

_TEXTURE = 512  # cudaDeviceProp.textureAlignment of all GPUs that PyTorch knows


@pytest.fixture
def arena() -> Iterator[Arena]:
    made = Arena("test")
    made.resize(1 << 20)
    yield made
    made.close()


def test_regions_are_aligned_shifted_apart_and_inside() -> None:
    sizes = [1, 1000, 4096, 77]
    starts = set()
    for seed in range(50):
        regions = place(sizes, random.Random(seed))
        starts.add(regions[0].offset)
        edges = [0, *(edge for r in regions for edge in (r.offset, r.end)), span_bytes(sizes)]
        gaps = [after - before for before, after in zip(edges[::2], edges[1::2], strict=True)]
        assert all(region.offset % ALIGNMENT == 0 for region in regions)
        assert all(gap >= GUARD_BYTES for gap in gaps)
    assert len(starts) > 30


def test_tensors_begin_where_cuda_lets_a_texture_begin() -> None:
    """For all of them alike: in arenas, in a torch baseline's range, and under a sanitizer."""
    assert ALIGNMENT % _TEXTURE == 0
    tensors = [torch.ones(3), torch.ones(5, dtype=torch.int8), torch.ones(7)]
    shapes = [{"dtype": str(t.dtype)[6:], "shape": t.shape, "strides": t.stride()} for t in tensors]
    for tensor in Placement.of(tensors, "cpu").load(shapes):
        assert tensor.data_ptr() % _TEXTURE == 0
    sanitized = (NATIVE_FOLDER / "device_sanitized.h").read_text()
    assert f"kAlignment = {ALIGNMENT};" in sanitized


def test_poison_is_the_same_when_asked_again_and_another_after_renewal(arena: Arena) -> None:
    poison = Poison(random.Random(1))
    poison.fill(arena.view, 5000, 900_000)
    assert poison.intact(arena.view, 6000, 70_000)
    arena.view[69_999] ^= 1
    assert not poison.intact(arena.view, 6000, 70_000)
    before = bytes(arena.view[5000:6000])
    poison.renew()
    poison.fill(arena.view, 5000, 900_000)
    assert bytes(arena.view[5000:6000]) != before


LEAST = {
    torch.float16: 2.0**13, torch.bfloat16: 2.0**97, torch.float32: 2.0**97,
    torch.float64: 2.0**769, torch.int8: 1, torch.int32: 1, torch.int64: 1,
}  # fmt: skip


def test_no_number_in_poison_is_small(arena: Arena) -> None:
    """A kernel that adds to what lies in its output must not be right by chance."""
    poison = Poison(random.Random(2))
    for low in (0, 256, 517 * ALIGNMENT):
        poison.renew()
        poison.fill(arena.view, low, low + 400_000)
        for dtype, least in LEAST.items():
            numbers = torch.frombuffer(bytearray(arena.view[low : low + 400_000]), dtype=dtype)
            assert numbers.to(torch.float64).nan_to_num(float("inf")).abs().min() >= least
            assert 0.3 < (numbers < 0).double().mean() < 0.6  # also against what takes a maximum


def test_arena_of_a_sealed_size_cannot_be_shrunk(arena: Arena) -> None:
    arena.seal_size()
    os.pwrite(arena.descriptor, b"x", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(arena.descriptor, 0)


def test_sealed_arena_cannot_be_mapped_writable_by_anyone(arena: Arena) -> None:
    arena.seal()
    arena.view[0] = 7  # a mapping from before still writes
    again = os.open(f"/proc/self/fd/{arena.descriptor}", os.O_RDWR)
    try:
        with pytest.raises(PermissionError):
            mmap.mmap(again, 4096)
        with pytest.raises(PermissionError):
            os.pwrite(again, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(again, 0)
        assert mmap.mmap(again, 4096, prot=mmap.PROT_READ)[0] == 7
    finally:
        os.close(again)
