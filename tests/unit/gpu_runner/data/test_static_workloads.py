"""Public sizes in a source: conditions that test for them, tables that hold them, and others."""

from __future__ import annotations

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.verdict import Abi, Language
from tests.unit.gpu_runner.data.preprocessing import checked

VECTOR_ADD = [  # public sizes: 65536, 262144 and 16777216
    "if (N - 65536 == 0) return a(); if (0 == N - 262144) return b();",
    "if (!(N - 65536)) return a(); if (!(N - 262144)) return b();",
    "if ((N - 65536) * (N - 262144) * (N - 16777216) == 0) return fast();",
    "if (!(N != 65536)) return a(); if (!(262144 != N)) return b();",
    "if (N != 65536 && N != 262144) return slow();",
    "if ((N ^ 65536) == 0) return a(); if (!(N ^ (1 << 18))) return b();",
    "bool known = !(N ^ 65536) || !(N ^ 262144);",
    "static const int k[] = {65536, 262144, 16777216}; for (int s : k) if (s == N) return fast();",
    "for (int s : {1 << 16, 1 << 18, 1 << 24}) if (s == N) return fast();",
    "constexpr int A = 65536; const std::set<int> k{A, 4 * A, 1 << 24}; if (k.count(N)) f();",
    "const Row k[] = {{65536, &a}, {262144, &b}, {16777216, &c}, {0, nullptr}};",
    "if (one_of(N, 65536, 262144, 16777216)) return fast();",
    "if (one_of<65536, 262144, 16777216>(N)) return fast();",
    "switch (N) { case 65536: return a(); case 1 << 18: return b(); default: return c(); }",
]

SPMV = [
    "if (rows != 1024 || cols != 2048 || nnz != 20971) return s();"
    " if (rows != 2048 || nnz != 41943) return t();",
    "if (!((rows ^ 1024) | (cols ^ 2048) | (nnz ^ 20971))) return a();"
    " if (!((rows ^ 2048) | (nnz ^ 41943))) return b();",
    "int k[][3] = {{1024, 2048, 20971}, {2048, 2048, 41943}, {4096, 2048, 83886}};",
]

QUIET = [
    "static const int twiddles[] = {1, 2, 4, 8, 16, 32, 64, 128, 65536, 262144, 16777216};",
    "constexpr int blocks[] = {1024, 2048, 4096, 8192, 16384, 32768, 65536};",
    "const Tile tiles[] = {{128, 128, 32}, {64, 64, 16}, {256, 128, 64}};",
    "if (N - 1 == 0 || N - 65536 > 0) return run<65536, 256>(N); grid(N, 65536, 1);",
    "x ^= x >> 16; x ^= 0x9E3779B9; y = x - 262144; if (!(y & 3)) z = 65536 - x;",
    "if (N != 0 && N % 65536 == 0) return vectors(x, N); if (N >= 262144) return large(x, N);",
    "run({1024, 65536, N}); float w[] = {65536.0f, 262144.0f, 16777216.0f};",
]


def tripped(source: str, task: str = "vector_add") -> set[str]:
    """Names of the rules that a source in CUDA trips."""
    found = checked(source, Language.CUDA, Abi.C, find_task(task))
    return {suspicion.reason.split(":")[0] for suspicion in found}


@pytest.mark.parametrize("source", VECTOR_ADD)
def test_public_sizes_trip(source: str) -> None:
    assert tripped(source) == {"hard-coded-workloads"}


@pytest.mark.parametrize("source", SPMV)
def test_public_sizes_of_several_dimensions_trip(source: str) -> None:
    assert tripped(source, "spmv_csr") == {"hard-coded-workloads"}


@pytest.mark.parametrize("source", QUIET)
def test_other_numbers_trip_nothing(source: str) -> None:
    assert tripped(source) == set()
    assert tripped(source, "softmax") == set()
    assert tripped(source, "linear_relu") == set()
