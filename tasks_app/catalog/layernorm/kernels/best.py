"""Layer normalization of feature maps, forward and backward, with many programs per sample.

- A sample can have millions of elements. Each program of the first kernel takes one part of a
  sample and computes its mean and its sum of squared deviations. A second kernel combines them with
  one program per sample, and a third writes the result. This keeps the GPU busy even with a single
  sample.
- Deviations are taken from each part's own mean, and the parts are combined by how far their means
  lie from the overall mean. Nothing subtracts a squared mean, which would suffer from cancellation
  if the mean is large.
- Backward: after the sample's mean is known, a pass over `x` and `grad_output` computes the two
  sums that the sample's gradient needs, relative to that mean.
- In the last kernel, each program handles a block of positions in all samples. It writes the
  gradients of `x` and accumulates those of the weight and the bias in registers, so these need no
  extra reads.
- Threads load and store up to 16 bytes at a time.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def statistics(found, x, size, parts, steps, BLOCK: tl.constexpr):
    """A part's mean, and its sum of squared deviations from that mean."""
    part, sample = tl.program_id(0), tl.program_id(1).to(tl.int64)
    begin = part * steps * BLOCK
    end = min(begin + steps * BLOCK, size)
    at = tl.arange(0, BLOCK)
    values = x + sample * size
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(begin, end, BLOCK):
        total += tl.load(values + first + at, first + at < end, other=0.0)
    mean = tl.sum(total, 0) / (end - begin)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(begin, end, BLOCK):
        value = tl.load(values + first + at, first + at < end, other=0.0) - mean
        total += tl.where(first + at < end, value * value, 0.0)
    place = found + (sample * parts + part) * 2
    tl.store(place, mean)
    tl.store(place + 1, tl.sum(total, 0))


@triton.jit
def put_together(stats, found, size, parts, length, eps, PARTS: tl.constexpr):
    """A sample's mean, and the reciprocal of its standard deviation."""
    sample = tl.program_id(0).to(tl.int64)
    every = tl.arange(0, PARTS)
    place = found + (sample * parts + every) * 2
    means = tl.load(place, every < parts, other=0.0)
    spreads = tl.load(place + 1, every < parts, other=0.0)
    counts = tl.where(every < parts, tl.minimum(length, size - every * length), 0).to(tl.float32)
    mean = tl.sum(means * counts, 0) / size
    apart = means - mean
    variance = tl.sum(spreads + counts * apart * apart, 0) / size
    tl.store(stats + 2 * sample, mean)
    tl.store(stats + 2 * sample + 1, 1.0 / tl.sqrt(variance + eps))


@triton.jit
def normalized(out, x, weight, bias, stats, size, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sample = tl.program_id(0).to(tl.int64)
    held = at < size
    value = tl.load(x + sample * size + at, held, other=0.0)
    factor = tl.load(weight + at, held, other=0.0)
    term = tl.load(bias + at, held, other=0.0)
    mean, scale = tl.load(stats + 2 * sample), tl.load(stats + 2 * sample + 1)
    tl.store(out + sample * size + at, (value - mean) * scale * factor + term, held)


@triton.jit
def projections(found, grad, x, weight, stats, size, parts, steps, BLOCK: tl.constexpr):
    """A part's sums of weighted gradients, alone and times the normalized elements."""
    part, sample = tl.program_id(0), tl.program_id(1).to(tl.int64)
    begin = part * steps * BLOCK
    end = min(begin + steps * BLOCK, size)
    at = tl.arange(0, BLOCK)
    mean, scale = tl.load(stats + 2 * sample), tl.load(stats + 2 * sample + 1)
    shift = tl.zeros((BLOCK,), dtype=tl.float32)
    stretch = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(begin, end, BLOCK):
        held = first + at < end
        given = tl.load(grad + sample * size + first + at, held, other=0.0)
        given = given * tl.load(weight + first + at, held, other=0.0)
        value = tl.load(x + sample * size + first + at, held, other=0.0)
        shift += given
        stretch += given * ((value - mean) * scale)
    place = found + (sample * parts + part) * 2
    tl.store(place, tl.sum(shift, 0))
    tl.store(place + 1, tl.sum(stretch, 0))


@triton.jit
def means_of_parts(sums, found, size, parts, PARTS: tl.constexpr):
    sample = tl.program_id(0).to(tl.int64)
    every = tl.arange(0, PARTS)
    place = found + (sample * parts + every) * 2
    shift = tl.sum(tl.load(place, every < parts, other=0.0), 0)
    stretch = tl.sum(tl.load(place + 1, every < parts, other=0.0), 0)
    tl.store(sums + 2 * sample, shift / size)
    tl.store(sums + 2 * sample + 1, stretch / size)


@triton.jit
def gradients(
    grad_x, grad_weight, grad_bias, grad, x, weight, stats, sums, samples, size,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of a block of positions in all samples, and of its weights and biases."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    held = at < size
    factor = tl.load(weight + at, held, other=0.0)
    own_weight = tl.zeros((BLOCK,), dtype=tl.float32)
    own_bias = tl.zeros((BLOCK,), dtype=tl.float32)
    place = at.to(tl.int64)
    for sample in range(samples):
        given = tl.load(grad + place, held, other=0.0)
        value = tl.load(x + place, held, other=0.0)
        mean, scale = tl.load(stats + 2 * sample), tl.load(stats + 2 * sample + 1)
        shift, stretch = tl.load(sums + 2 * sample), tl.load(sums + 2 * sample + 1)
        value = (value - mean) * scale
        own_weight += given * value
        own_bias += given
        tl.store(grad_x + place, (given * factor - shift - value * stretch) * scale, held)
        place += size
    tl.store(grad_weight + at, own_weight, held)
    tl.store(grad_bias + at, own_bias, held)


def statistics_of(x, samples, size, eps):
    """Each sample's mean and reciprocal standard deviation, and how samples are split."""
    parts = min(triton.cdiv(size, 4096), max(1, 1056 // samples))
    steps = triton.cdiv(triton.cdiv(size, parts), 2048)
    length = steps * 2048
    parts = triton.cdiv(size, length)
    found = torch.empty(samples, parts, 2, device=x.device)
    stats = torch.empty(samples, 2, device=x.device)
    statistics[(parts, samples)](found, x, size, parts, steps, BLOCK=2048, num_warps=8)
    put_together[(samples,)](
        stats, found, size, parts, length, eps, PARTS=triton.next_power_of_2(parts)
    )
    return stats, found, parts, steps


def forward(x, weight, bias, eps):
    samples, size = x.shape[0], weight.numel()
    stats, *_ = statistics_of(x, samples, size, eps)
    out = torch.empty_like(x)
    grid = samples, triton.cdiv(size, 2048)
    normalized[grid](out, x, weight, bias, stats, size, BLOCK=2048, num_warps=8)
    return out


def backward(grad_output, x, weight, bias, eps, normalized_shape):
    samples, size = x.shape[0], weight.numel()
    stats, found, parts, steps = statistics_of(x, samples, size, eps)
    sums = torch.empty(samples, 2, device=x.device)
    projections[(parts, samples)](
        found, grad_output, x, weight, stats, size, parts, steps, BLOCK=2048, num_warps=8
    )
    means_of_parts[(samples,)](sums, found, size, parts, PARTS=triton.next_power_of_2(parts))
    grad_x, grad_weight = torch.empty_like(x), torch.empty_like(weight)
    grad_bias = torch.empty_like(bias)
    block, warps = (256, 2) if size <= 2**18 else (1024, 4)
    gradients[(triton.cdiv(size, block),)](
        grad_x, grad_weight, grad_bias, grad_output, x, weight, stats, sums, samples, size,
        BLOCK=block, num_warps=warps,
    )  # fmt: skip
    return grad_x, grad_weight, grad_bias
