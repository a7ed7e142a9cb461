"""Power of a matrix by repeated squaring, with products on tensor cores.

- A^P goes through the binary digits of P after the first one, from the highest to the lowest. Each
  digit takes one squaring, and one more product if it is 1, so only powers that are needed are
  computed.
- FP32: each number is split into two TF32 numbers, and every product of their parts is computed
  except that of the two small parts. This is close to float32 precision. BF16 is multiplied
  directly and summed in float32.
- The matrices are small. If their tiles don't fill the GPU, split-K spreads the inner dimension
  over more programs, and a second kernel adds up the sums. Tiles stream through shared memory,
  prefetched a few steps ahead; in large BF16 products, the TMA copies them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BF16_PLANS = (  # a tile's rows, columns and depth; stages; warps; programs per multiprocessor
    (128, 256, 64, 3, 8, 1),
    (128, 128, 64, 4, 8, 1),
    (64, 128, 64, 4, 4, 2),
    (64, 64, 128, 3, 4, 2),
)
FP32_PLANS = ((128, 128, 32, 3, 8, 1), (64, 128, 32, 3, 4, 2), (64, 64, 32, 4, 4, 2))


@triton.jit
def place(tile, rows, columns, GROUP: tl.constexpr):
    """The row and column of a tile, in groups of GROUP rows of tiles."""
    size = GROUP * columns
    first = tile // size * GROUP
    height = min(rows - first, GROUP)
    return first + tile % size % height, tile % size // height


@triton.jit
def streamed(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WHOLE: tl.constexpr
):
    """Compute C tile by tile in persistent programs, with tiles copied by the TMA."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    tiles = rows * columns
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        row, column = place(tile, rows, columns, 8)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            x = a.load([row * BM, k * BK])
            y = b.load([k * BK, column * BN])
            total = tl.dot(x, y, total)
        if WHOLE:
            c.store([row * BM, column * BN], total.to(tl.bfloat16))
        else:
            m = row * BM + tl.arange(0, BM)
            n = column * BN + tl.arange(0, BN)
            out = c + m.to(tl.int64)[:, None] * N + n[None, :]
            tl.store(out, total.to(tl.bfloat16), (m[:, None] < M) & (n[None, :] < N))


@triton.jit
def product(
    a, b, c, M, N, K, a_width, b_width,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute one tile of C over one of SPLIT parts of K; results follow each other."""
    row, column = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), 8)
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    steps = tl.cdiv(tl.cdiv(K, BK), SPLIT)
    begin = tl.program_id(1) * steps * BK
    inner = begin + tl.arange(0, BK)
    left = a + m.to(tl.int64)[:, None] * a_width + inner[None, :]
    right = b + inner.to(tl.int64)[:, None] * b_width + n[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(begin, min(begin + steps * BK, K), BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(left, (m[:, None] < M) & (inner[None, :] < a_width), other=0.0)
        y = tl.load(right, (inner[:, None] < K) & (n[None, :] < b_width), other=0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION)
        left += BK
        right += BK * b_width
    out = c + (tl.program_id(1).to(tl.int64) * M + m[:, None]) * N + n[None, :]
    tl.store(out, total.to(c.dtype.element_ty), (m[:, None] < M) & (n[None, :] < N))


@triton.jit
def sum_of_parts(parts, c, count, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    source = parts + at
    for _ in tl.static_range(SPLIT):
        total += tl.load(source, at < count, other=0.0)
        source += count
    tl.store(c + at, total.to(c.dtype.element_ty), at < count)


@triton.jit
def widen(x, out, width, new_width, BLOCK: tl.constexpr):
    """Copy rows to wider ones, padded with zeros."""
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    value = tl.load(x + row * width + at, at < width, other=0.0)
    tl.store(out + row * new_width + at, value, at < new_width)


def aligned(x, unit):
    """The matrix itself, or a copy with rows padded to a multiple of `unit` elements."""
    rows, width = x.shape
    if width % unit == 0:
        return x
    new_width = triton.cdiv(width, unit) * unit
    out = torch.empty(rows, new_width, device=x.device, dtype=x.dtype)
    widen[(rows, triton.cdiv(new_width, 1024))](x, out, width, new_width, BLOCK=1024)
    return out


def plan_of(plans, M, N, K, processors):
    """The largest tile that fills the GPU, and how many parts to split K into."""
    for plan in plans:
        tiles = triton.cdiv(M, plan[0]) * triton.cdiv(N, plan[1])
        if tiles >= 0.75 * processors and plan[0] < 2 * M:
            return plan, 1
    tiles = triton.cdiv(M, plans[-1][0]) * triton.cdiv(N, plans[-1][1])
    split = 1
    while split < 16 and tiles * split < 0.75 * processors and K // (2 * split) >= 128:
        split *= 2
    return plans[-1], split


def product_of(A, B):
    (M, K), N = A.shape, B.shape[1]
    processors = torch.cuda.get_device_properties(A.device).multi_processor_count
    narrow = A.dtype is torch.bfloat16
    C = torch.empty(M, N, device=A.device, dtype=A.dtype)
    plan, split = plan_of(BF16_PLANS if narrow else FP32_PLANS, M, N, K, processors)
    BM, BN, BK, stages, warps, each = plan
    tiles = triton.cdiv(M, BM) * triton.cdiv(N, BN)
    unit = 8 if narrow and split == 1 else 16  # 16 bytes for the TMA, else wide loads
    left, right = aligned(A, unit), aligned(B, unit)
    if narrow and split == 1:
        whole = N % 8 == 0
        streamed[(min(tiles, each * processors),)](
            TensorDescriptor.from_tensor(left, [BM, BK]),
            TensorDescriptor.from_tensor(right, [BK, BN]),
            TensorDescriptor.from_tensor(C, [BM, BN]) if whole else C,
            M, N, K, BM=BM, BN=BN, BK=BK, WHOLE=whole, num_stages=stages, num_warps=warps,
        )  # fmt: skip
        return C
    sums = C if split == 1 else torch.empty(split, M, N, device=A.device)
    product[(tiles, split)](
        left, right, sums, M, N, K, left.shape[1], right.shape[1],
        BM=BM, BN=BN, BK=BK, SPLIT=split, PRECISION="tf32" if narrow else "tf32x3",
        num_stages=stages, num_warps=warps,
    )  # fmt: skip
    if split > 1:
        sum_of_parts[(triton.cdiv(M * N, 1024),)](sums, C, M * N, SPLIT=split, BLOCK=1024)
    return C


def forward(A, N, P):
    if P == 1:
        return A.clone()
    power = A
    for digit in f"{P:b}"[1:]:
        power = product_of(power, power)
        if digit == "1":
            power = product_of(power, A)
    return power
