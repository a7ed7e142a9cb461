"""Matrix product on tensor cores: BF16 directly, FP32 as FP16 halves or TF32 products.

- BF16: the TMA copies whole tiles, and persistent programs work through them in groups that share
  rows of A and columns of B in the L2 cache. With few tiles, split-K spreads K over more programs.
- FP32 with many tiles, on Hopper: each row of A and column of B is scaled by a power of two, and
  each number is split into a high and a low FP16 half, with 22 bits in total. Three of the four
  products of halves are added. Errors are therefore relative to the largest element of a row or
  column, not to each element: far smaller elements lose digits, and infinities give NaN.
- Tensor cores truncate when they add, so each of their sums covers only 64 values of K. The
  ordinary units then add it to a float32 total, while another warpgroup multiplies.
- Other FP32 products: each pair of tiles takes three TF32 products (`tf32x3`). B is the first
  operand there, so that it goes from registers to the tensor cores.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as Described
from triton.tools.tensor_descriptor import TensorDescriptor

BF16_PLANS = (  # a tile's rows, columns and depth; stages; warps; programs per multiprocessor
    (128, 256, 64, 3, 8, 1),
    (128, 128, 64, 4, 8, 1),
    (64, 128, 64, 4, 4, 2),
    (64, 64, 128, 3, 4, 2),
)
DEPTH, STAGES = gl.constexpr(64), gl.constexpr(3)  # of the tiles of halves


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
):  # fmt: skip
    """Compute one tile of the BF16 C over one of SPLIT parts of K; results follow each other."""
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
        total = tl.dot(x, y, total)
        left += BK
        right += BK * b_width
    out = c + (tl.program_id(1).to(tl.int64) * M + m[:, None]) * N + n[None, :]
    tl.store(out, total.to(c.dtype.element_ty), (m[:, None] < M) & (n[None, :] < N))


@triton.jit
def turned(
    a, b, c, M, N, K, a_width, b_width,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """Compute one tile of the transposed FP32 C over one of SPLIT parts of K."""
    columns = tl.cdiv(N, BN)
    m = tl.program_id(0) // columns * BM + tl.arange(0, BM)
    n = tl.program_id(0) % columns * BN + tl.arange(0, BN)
    steps = tl.cdiv(tl.cdiv(K, BK), SPLIT)
    begin = tl.program_id(1) * steps * BK
    inner = begin + tl.arange(0, BK)
    left = a + m.to(tl.int64)[:, None] * a_width + inner[None, :]
    right = b + inner.to(tl.int64)[:, None] * b_width + n[None, :]
    total = tl.zeros((BN, BM), dtype=tl.float32)
    for k in range(begin, min(begin + steps * BK, K), BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(left, (m[:, None] < M) & (inner[None, :] < a_width), other=0.0)
        y = tl.load(right, (inner[:, None] < K) & (n[None, :] < b_width), other=0.0)
        total = tl.dot(tl.trans(y), tl.trans(x), total, input_precision="tf32x3")
        left += BK
        right += BK * b_width
    out = c + (tl.program_id(1).to(tl.int64) * M + m[None, :]) * N + n[:, None]
    tl.store(out, total, (m[None, :] < M) & (n[:, None] < N))


@triton.jit
def magnitude(x):
    """The bits of |x|, which sort in the same order as the numbers."""
    return x.to(tl.int32, bitcast=True) & 0x7FFFFFFF


@triton.jit
def shift_of(bits):
    """The exponent (at most 126) that scales a largest magnitude into [2**14, 2**15)."""
    return tl.minimum(tl.maximum(14 - ((bits >> 23) - 127), -126), 126)


@triton.jit
def power(e):
    return ((e + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def split_rows(a, out, largest, zeroed, M, K, depth, N, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    """Split a row of A into [high | low], and set the largest magnitudes of B's columns to 0."""
    row = tl.program_id(0).to(tl.int64)
    for first in range(tl.program_id(0) * 1024, N, M * 1024):
        at = first + tl.arange(0, 1024)
        tl.store(zeroed + at, tl.zeros((1024,), tl.int32), at < N)
    at = tl.arange(0, BLOCK)
    x = tl.load(a + row * K + at, at < K, other=0.0)
    bits = magnitude(x)
    if not WHOLE:
        for first in range(BLOCK, K, BLOCK):
            y = tl.load(a + row * K + first + at, first + at < K, other=0.0)
            bits = tl.maximum(bits, magnitude(y))
    most = tl.max(bits, 0)
    tl.store(largest + row, most)
    out += row * (2 * depth)
    for first in range(0, depth, BLOCK):
        if not WHOLE:
            x = tl.load(a + row * K + first + at, first + at < K, other=0.0)
        scaled = x * power(shift_of(most))
        high = scaled.to(tl.float16)
        low = (scaled - high.to(tl.float32)).to(tl.float16)
        tl.store(out + first + at, high, first + at < depth)
        tl.store(out + depth + first + at, low, first + at < depth)


@triton.jit
def column_max(b, largest, K, N, BK: tl.constexpr, BN: tl.constexpr, STEPS: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.program_id(1) * (BK * STEPS) + tl.arange(0, BK)
    bits = tl.zeros((BK, BN), tl.int32)
    for _ in tl.static_range(STEPS):
        at = k.to(tl.int64)[:, None] * N + n[None, :]
        x = tl.load(b + at, (k[:, None] < K) & (n[None, :] < N), other=0.0)
        bits = tl.maximum(bits, magnitude(x))
        k += BK
    tl.atomic_max(largest + n, tl.max(bits, 0), n < N, sem="relaxed")


@triton.jit
def split_columns(b, out, largest, K, N, depth, width, BK: tl.constexpr, BN: tl.constexpr):
    """Split B into rows of high halves, with the rows of low halves below them."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    scale = power(shift_of(tl.load(largest + n, n < N, other=0)))
    at = k.to(tl.int64)[:, None] * N + n[None, :]
    x = tl.load(b + at, (k[:, None] < K) & (n[None, :] < N), other=0.0)
    scaled = x * scale[None, :]
    high = scaled.to(tl.float16)
    low = (scaled - high.to(tl.float32)).to(tl.float16)
    to = out + k.to(tl.int64)[:, None] * width + n[None, :]
    held = (k[:, None] < depth) & (n[None, :] < width)
    tl.store(to, high, held)
    tl.store(to + depth.to(tl.int64) * width, low, held)


@gluon.jit
def loading(a, b, x, y, full, empty, M, N, steps):
    """Copy each step's tiles, high and low: two of A with 64 rows each, and one of B."""
    rows, columns = gl.cdiv(M, 128), gl.cdiv(N, 128)
    j = 0
    for tile in range(gl.program_id(0), rows * columns, gl.num_programs(0)):
        row, column = place(tile, rows, columns, 8)
        for k in range(steps):
            stage = j % STAGES
            mbarrier.wait(empty.index(stage), (j // STAGES & 1) ^ 1)
            ready = full.index(stage)
            mbarrier.expect(ready, 4 * a.block_type.nbytes + 2 * b.block_type.nbytes)
            for low in gl.static_range(2):
                at = (low * steps + k) * DEPTH
                to = x.index(stage * 4 + low * 2)
                tma.async_copy_global_to_shared(a, [row * 128, at], ready, to)
                to = x.index(stage * 4 + low * 2 + 1)
                tma.async_copy_global_to_shared(a, [row * 128 + 64, at], ready, to)
                to = y.index(stage * 2 + low)
                tma.async_copy_global_to_shared(b, [at, column * 128], ready, to)
            j += 1


@gluon.jit
def computing(x, y, c, most_a, most_b, full, empty, M, N, steps, GROUP: gl.constexpr):
    """Compute 64 rows of each tile; each step's sum starts at zero."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 128, 16])
    rows, columns = gl.cdiv(M, 128), gl.cdiv(N, 128)
    zeros = gl.zeros([64, 128], gl.float32, layout)
    j = 0
    for tile in range(gl.program_id(0), rows * columns, gl.num_programs(0)):
        row, column = place(tile, rows, columns, 8)
        total = zeros
        for _ in range(steps):
            stage = j % STAGES
            mbarrier.wait(full.index(stage), j // STAGES & 1)
            high, low = x.index(stage * 4 + GROUP), x.index(stage * 4 + 2 + GROUP)
            other, other_low = y.index(stage * 2), y.index(stage * 2 + 1)
            part = hopper.warpgroup_mma(low, other, zeros, use_acc=False, is_async=True)
            part = hopper.warpgroup_mma(high, other_low, part, is_async=True)
            part = hopper.warpgroup_mma(high, other, part, is_async=True)
            done = hopper.warpgroup_mma_wait(0, [part])
            mbarrier.arrive(empty.index(stage), count=1)
            total += done
            j += 1
        m = row * 128 + GROUP * 64 + gl.arange(0, 64, gl.SliceLayout(1, layout))
        n = column * 128 + gl.arange(0, 128, gl.SliceLayout(0, layout))
        up_a = shift_of(gl.load(most_a + m, m < M, other=0))[:, None]
        up_b = shift_of(gl.load(most_b + n, n < N, other=0))[None, :]
        half = (up_a + up_b) >> 1
        total = total * power(-half) * power(half - up_a - up_b)
        at = m.to(gl.int64)[:, None] * N + n[None, :]
        gl.store(c + at, total, (m[:, None] < M) & (n[None, :] < N))


@gluon.jit
def of_halves(a, b, c, most_a, most_b, M, N, steps):
    """Compute C in persistent programs: one warp loads, and two warpgroups compute."""
    x = gl.allocate_shared_memory(gl.float16, [STAGES * 4, 64, DEPTH], a.layout)
    y = gl.allocate_shared_memory(gl.float16, [STAGES * 2, DEPTH, 128], b.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=2)
    hopper.fence_async_shared()
    gl.warp_specialize(
        [
            (computing, (x, y, c, most_a, most_b, full, empty, M, N, steps, 0)),
            (computing, (x, y, c, most_a, most_b, full, empty, M, N, steps, 1)),
            (loading, (a, b, x, y, full, empty, M, N, steps)),
        ],
        [4, 1],
        [232, 24],
    )


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
    while split < 16 and tiles * split < 0.75 * processors and K // (2 * split) >= 256:
        split *= 2
    return plans[-1], split


def described(x, rows, columns):
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], gl.float16)
    return Described(x, list(x.shape), list(x.stride()), [rows, columns], layout)


def by_halves(A, B, C, processors):
    """FP32 product for many tiles, from high and low halves."""
    (M, K), N = A.shape, B.shape[1]
    depth, width = triton.cdiv(K, 64) * 64, triton.cdiv(N, 8) * 8
    a = torch.empty(M, 2 * depth, device=A.device, dtype=torch.float16)
    b = torch.empty(2 * depth, width, device=A.device, dtype=torch.float16)
    most = torch.empty(M + N, device=A.device, dtype=torch.int32)
    most_a, most_b = most[:M], most[M:]
    block = min(8192, triton.next_power_of_2(depth))
    split_rows[(M,)](
        A, a, most_a, most_b, M, K, depth, N, BLOCK=block, WHOLE=block >= depth,
        num_warps=8 if block >= 4096 else 4,
    )  # fmt: skip
    column_max[(triton.cdiv(N, 128), triton.cdiv(K, 128))](
        B, most_b, K, N, BK=32, BN=128, STEPS=4, num_warps=8
    )
    split_columns[(triton.cdiv(width, 128), triton.cdiv(depth, 32))](
        B, b, most_b, K, N, depth, width, BK=32, BN=128, num_warps=8
    )
    tiles = triton.cdiv(M, 128) * triton.cdiv(N, 128)
    of_halves[(min(tiles, processors),)](
        described(a, 64, 64), described(b, 64, 128), C, most_a, most_b, M, N, depth // 64,
        num_warps=4,
    )  # fmt: skip
    return C


def directly(A, B, C, processors):
    """FP32 product for few tiles, in TF32 products; K is split until every processor has work."""
    (M, K), N = A.shape, B.shape[1]
    BM, stages = (128, 3) if M > 64 else (64, 4)
    tiles, split = triton.cdiv(M, BM) * triton.cdiv(N, 128), 1
    while split < 16 and tiles * split < 0.75 * processors and K // (2 * split) >= 256:
        split *= 2
    left, right = aligned(A, 16), aligned(B, 16)
    sums = C if split == 1 else torch.empty(split, M, N, device=A.device)
    turned[(tiles, split)](
        left, right, sums, M, N, K, left.shape[1], right.shape[1],
        BM=BM, BN=128, BK=32, SPLIT=split, num_stages=stages, num_warps=8,
    )  # fmt: skip
    if split > 1:
        sum_of_parts[(triton.cdiv(M * N, 1024),)](sums, C, M * N, SPLIT=split, BLOCK=1024)
    return C


def forward(A, B, M, N, K):
    processors = torch.cuda.get_device_properties(A.device).multi_processor_count
    C = torch.empty(M, N, device=A.device, dtype=A.dtype)
    if A.dtype is torch.float32:
        tiles = triton.cdiv(M, 128) * triton.cdiv(N, 128)
        is_hopper = torch.cuda.get_device_capability(A.device)[0] == 9
        many = is_hopper and tiles >= 0.75 * processors and min(M, N, K) >= 256
        return (by_halves if many else directly)(A, B, C, processors)
    plan, split = plan_of(BF16_PLANS, M, N, K, processors)
    BM, BN, depth, stages, warps, each = plan
    tiles = triton.cdiv(M, BM) * triton.cdiv(N, BN)
    unit = 8 if split == 1 else 16  # 16 bytes for the TMA, else wide loads
    left, right = aligned(A, unit), aligned(B, unit)
    if split == 1:
        whole = N % 8 == 0
        streamed[(min(tiles, each * processors),)](
            TensorDescriptor.from_tensor(left, [BM, depth]),
            TensorDescriptor.from_tensor(right, [depth, BN]),
            TensorDescriptor.from_tensor(C, [BM, BN]) if whole else C,
            M, N, K, BM=BM, BN=BN, BK=depth, WHOLE=whole, num_stages=stages, num_warps=warps,
        )  # fmt: skip
        return C
    sums = torch.empty(split, M, N, device=A.device)
    product[(tiles, split)](
        left, right, sums, M, N, K, left.shape[1], right.shape[1],
        BM=BM, BN=BN, BK=depth, SPLIT=split, num_stages=stages, num_warps=warps,
    )  # fmt: skip
    sum_of_parts[(triton.cdiv(M * N, 1024),)](sums, C, M * N, SPLIT=split, BLOCK=1024)
    return C
