"""Techniques are named from the code, not from what its comments claim."""

from __future__ import annotations

import pytest

from runs_app.optimiser.evolve.parser import NAMES, techniques_in


@pytest.mark.parametrize(
    ("code", "technique"),
    [
        ("__shared__ float tile[32][33];", "shared memory"),
        ("v += __shfl_down_sync(0xffffffff, v, 16);", "warp shuffle"),
        ("const float4* v = reinterpret_cast<const float4*>(x);", "vector loads"),
        ("wmma::mma_sync(c, a, b, c);", "tensor cores"),
        ('asm volatile("cp.async.ca.shared.global [%0], [%1], 16;");', "async copy"),
        ("#pragma unroll 4\nfor (;;) {}", "unrolling"),
        ("#pragma omp parallel for\nfor (;;) {}", "openmp"),
        ("#pragma omp simd reduction(+ : s)\n", "simd"),
        ("#pragma omp parallel for simd\n", "simd"),
        ("__m256 a = _mm256_loadu_ps(x);", "simd"),
        ("constexpr int TILE = 32;", "blocking"),
        ("for (int i = t; i < n; i += blockDim.x * gridDim.x) {}", "grid stride"),
        ("__builtin_prefetch(x + 64);", "prefetch"),
        ("float x = __ldg(p);", "read-only cache"),
    ],
)
def test_named(code: str, technique: str) -> None:
    assert technique in techniques_in(code)


def test_comments_are_no_sign() -> None:
    assert techniques_in("// __shared__ and #pragma omp parallel\nint x; /* wmma:: */") == ()


def test_order_is_that_of_the_names() -> None:
    found = techniques_in("#pragma omp parallel for\n__shared__ int TILE_X = 3; wmma::x;")
    assert list(found) == sorted(found, key=NAMES.index)
    assert len(found) == 4
