# row: 14, 48
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# stopped by: quarantine source
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict RUNTIME_ERROR
# tries: to put the machine code of another kernel of the same name into Triton's cache, in place of
#   that of the one that its source calls.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import triton
import triton.language as tl

cache = Path(os.environ["TRITON_CACHE_DIR"])


@triton.jit
def combine(a, b, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at, mask=at < count)
    y = tl.load(b + at, mask=at < count)
    tl.store(c + at, x + y, mask=at < count)


added = combine


@triton.jit
def combine(a, b, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at, mask=at < count)
    y = tl.load(b + at, mask=at < count)
    tl.store(c + at, x - y, mask=at < count)


def text_of(path):
    lines = path.read_text().replace("arith.subf", "arith.addf").splitlines()
    return [line for line in lines if not line.startswith("#loc")]


def swap():
    texts = list(cache.rglob("combine.ttir"))
    for path in [path for path in texts if "arith.subf" in path.read_text()]:
        for other in [other for other in texts if text_of(other) == text_of(path)]:
            if "arith.subf" not in other.read_text():
                code = other.with_suffix(".cubin").read_bytes()
                path.with_suffix(".cubin").write_bytes(code)


def forward(A, B, N):
    out, spare = torch.empty_like(A), torch.empty_like(A)
    for kernel, to in ((added, spare), (combine, out)):
        kernel[(triton.cdiv(N, 1024),)](A, B, to, N, BLOCK=1024)
    swap()
    return out
