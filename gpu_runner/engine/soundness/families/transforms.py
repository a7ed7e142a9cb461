"""Products and convolutions by transforms: exact in theory, in float32 off by other errors."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.engine.soundness.families.contractions import Convolve
from gpu_runner.engine.soundness.operations import Step

TAPS = 3  # of a filter that a tile is made for; larger ones are cut
MOST_PIECES = 64  # of a larger filter

# Rows of output, of inputs, of weights: Lavin and Gray, arXiv 1509.09308, for points 0, 1, -1
# and, for tiles of four, 2 and -2.
_TILES = {
    2: (
        [[1, 1, 1, 0], [0, 1, -1, -1]],
        [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
    ),
    4: (
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
        [
            [1 / 4, 0, 0],
            [-1 / 6, -1 / 6, -1 / 6],
            [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6],
            [1 / 24, -1 / 12, 1 / 6],
            [0, 0, 1],
        ],
    ),
}


def winograd(size: int) -> Convolve:
    """Winograd's minimal filtering, tiles of `size` outputs along each direction."""

    def convolve(value: Tensor, weight: Tensor, stride: tuple[int, ...]) -> Tensor | None:
        extents = weight.shape[2:]
        pieces = math.prod(math.ceil(extent / TAPS) for extent in extents)
        if any(s != 1 for s in stride) or pieces > MOST_PIECES:
            return None
        places = [have - taps + 1 for have, taps in zip(value.shape[2:], extents, strict=True)]
        total = value.new_zeros(value.shape[0], weight.shape[0], *places)
        starts = [range(0, extent, TAPS) for extent in extents]
        for start in torch.cartesian_prod(*map(torch.tensor, starts)).reshape(-1, len(extents)):
            total += _tiled(value, weight, start.tolist(), places, size)
        return total

    return convolve


def _tiled(value: Tensor, weight: Tensor, start: list[int], places: list[int], size: int) -> Tensor:
    """What the taps from `start` on give, `TAPS` along each direction."""
    outputs, inputs, weights = (
        torch.tensor(rows, dtype=torch.float32, device=value.device) for rows in _TILES[size]
    )
    rank, width = len(places), size + TAPS - 1
    for dim, (low, count) in enumerate(zip(start, places, strict=True), start=2):
        weight = weight.narrow(dim, low, min(TAPS, weight.shape[dim] - low))
        missing = TAPS - weight.shape[dim]
        weight = torch.cat((weight, weight.new_zeros(_resized(weight, dim, missing))), dim)
        needed = math.ceil(count / size) * size + TAPS - 1
        held = value.narrow(dim, low, min(needed, value.shape[dim] - low))
        value = torch.cat(
            (held, held.new_zeros(_resized(held, dim, needed - held.shape[dim]))), dim
        )
    for dim in range(2, 2 + rank):
        value = value.unfold(dim, width, size)
        weight = (weight.movedim(dim, -1) @ weights.t()).movedim(-1, dim)
    for dim in range(2 + rank, 2 + 2 * rank):
        value = (value.movedim(dim, -1) @ inputs.t()).movedim(-1, dim)
    letters = "xyz"[:rank], "uvw"[:rank]
    rule = f"bi{letters[0]}{letters[1]},oi{letters[1]}->bo{letters[0]}{letters[1]}"
    found = torch.einsum(rule, value, weight)
    for dim in range(2 + rank, 2 + 2 * rank):
        found = (found.movedim(dim, -1) @ outputs.t()).movedim(-1, dim)
    for dim in range(rank):  # tiles and places in them, side by side
        found = found.movedim(2 + rank, 3 + dim).flatten(2 + dim, 3 + dim)
    for dim, count in enumerate(places, start=2):
        found = found.narrow(dim, 0, count)
    return found


def _resized(value: Tensor, dim: int, size: int) -> list[int]:
    return [size if d == dim else extent for d, extent in enumerate(value.shape)]


def by_fft(value: Tensor, weight: Tensor, stride: tuple[int, ...]) -> Tensor:
    """A convolution as the product of both sides' Fourier transforms, padded to powers of two."""
    dims = tuple(range(2, value.dim()))
    sizes = [1 << (size - 1).bit_length() for size in value.shape[2:]]
    spectrum = torch.fft.rfftn(value, sizes, dims)
    filters = torch.fft.rfftn(weight, sizes, dims).conj_physical()
    letters = "xyz"[: len(dims)]
    product = torch.einsum(f"bi{letters},oi{letters}->bo{letters}", spectrum, filters)
    found: Tensor = torch.fft.irfftn(product, sizes, dims)
    for dim, step in zip(dims, stride, strict=True):
        count = value.shape[dim] - weight.shape[dim] + 1
        found = found.narrow(dim, 0, count)[(slice(None),) * dim + (slice(None, None, step),)]
    return found


def strassen(step: Step) -> Tensor | None:
    """A product of matrices by seven products of their halves, one level deep."""
    if step.name != "mm" or step.args[0].layout is not torch.strided:
        return None
    (m, k), n = step.args[0].shape, step.args[1].shape[1]
    if min(m, k, n) < 2:
        return None
    first = F.pad(step.args[0], (0, k % 2, 0, m % 2))
    second = F.pad(step.args[1], (0, n % 2, 0, k % 2))
    a, b, c, d = (part for rows in first.chunk(2, 0) for part in rows.chunk(2, 1))
    e, f, g, h = (part for rows in second.chunk(2, 0) for part in rows.chunk(2, 1))
    p = [
        (a + d) @ (e + h),
        (c + d) @ e,
        a @ (f - h),
        d @ (g - e),
        (a + b) @ h,
        (c - a) @ (e + f),
        (b - d) @ (g + h),
    ]
    top = torch.cat((p[0] + p[3] - p[4] + p[6], p[2] + p[4]), 1)
    low = torch.cat((p[1] + p[3], p[0] - p[1] + p[2] + p[5]), 1)
    return torch.cat((top, low))[:m, :n]


def radix_two(step: Step) -> Tensor | None:
    """A Fourier transform of a power of two in stages of butterflies, as textbooks have it.

    Angles are float32: of the largest transform's they are off by more than its sums.
    """
    if step.name != "_fft_c2c" or step.result.dtype is not torch.complex64:
        return None
    value: Tensor = step.args[0]
    size, forward = value.shape[-1], step.args[3]
    if value.dim() != 1 or size & (size - 1) or not forward:
        return None
    rows = value[None]  # (stride, length of a part): decimation in time
    while rows.shape[1] > 1:
        rows = torch.cat((rows[:, ::2], rows[:, 1::2]))
    while rows.shape[0] > 1:
        half = rows.shape[1]
        even, odd = rows.chunk(2)
        angles = torch.arange(half, dtype=torch.float32, device=value.device) * -math.pi / half
        turned = odd * torch.complex(angles.cos(), angles.sin())
        rows = torch.cat((even + turned, even - turned), 1)
    return rows[0]


TRANSFORMS: dict[str, Convolve] = {
    "Winograd F(2, 3)": winograd(2),
    "Winograd F(4, 3)": winograd(4),
    "convolutions by FFT": by_fft,
}
