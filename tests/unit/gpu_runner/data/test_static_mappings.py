"""Calls of `mmap`: private memory for numbers is fine, and everything else is looked at."""

from __future__ import annotations

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.static import symbol_sentence
from gpu_runner.data.verdict import Abi, Language
from tests.unit.gpu_runner.data.preprocessing import checked

HEADER = "#include <sys/mman.h>\n"
RIGHTS, FLAGS = "PROT_READ | PROT_WRITE", "MAP_PRIVATE | MAP_ANONYMOUS"

ODD = [
    f"mmap(nullptr, n, 7, {FLAGS}, -1, 0);",
    f"mmap(nullptr, n, {RIGHTS} | 4, {FLAGS}, -1, 0);",
    f"mmap(at, n, {RIGHTS}, {FLAGS} | 0x10, -1, 0);",
    f"mmap(at, n, {RIGHTS}, MAP_SHARED, file, 0);",
    f"::mmap64(nullptr, n, rights, {FLAGS}, -1, 0);",
    f"return mmap(nullptr, n, ~{RIGHTS}, {FLAGS}, -1, 0);",
    f"mmap(nullptr, n, {RIGHTS} << 2, {FLAGS}, -1, 0);",
    f"mmap(nullptr, n, (1 | 0) << 2, {FLAGS}, -1, 0);",
    f"mmap(nullptr, n, 1 | 0x2u * 2, {FLAGS}, -1, 0);",
    f"mmap(nullptr, n, {RIGHTS}, {FLAGS} | 0x1, -1, 0);",
    "auto f = mmap; f(nullptr, n, 7, 0x22, -1, 0);",
    "auto f = &::mmap; call(mmap); using ::mmap; (mmap)(nullptr, n, 7, 0x22, -1, 0);",
    f"#define R 7\nmmap(nullptr, n, R, {FLAGS}, -1, 0);",
    f"#define PROT_READ 7\nmmap(nullptr, n, PROT_READ, {FLAGS}, -1, 0);",
    f"#undef PROT_READ\nenum {{ PROT_READ = 7 }}; mmap(nullptr, n, PROT_READ, {FLAGS}, -1, 0);",
    f"__CONCAT(mm, ap)(nullptr, n, 7, {FLAGS}, -1, 0);",
    'extern "C" T mmap;',
    "mremap(p, n, n, 3, q);",
    "__CONCAT(mre, map)(p, n, n, 3, q);",
    "pkey_set(key, 0);",
]

HARMLESS = [
    f"mmap(nullptr, n, {RIGHTS}, {FLAGS}, -1, 0);",
    f"::mmap(0, (n + 4095) & ~size_t(4095), ({RIGHTS}), ({FLAGS} | MAP_HUGETLB), -1, 0);",
    f"mmap(nullptr, n, {RIGHTS}, {FLAGS} | MAP_HUGETLB | (21U << 26), -1, 0);",
    "mmap(nullptr, n, 3, 0x22, -1, 0);",
    f"#define RW {RIGHTS}\n#define OWN {FLAGS}\nmmap(nullptr, sizes[f(n, 1)], RW, OWN, -1, 0);",
    f"void* p = mmap(0, n, {RIGHTS}, {FLAGS}, -1, 0); madvise(p, n, MADV_HUGEPAGE); munmap(p, n);",
    "arena.mmap(n); Arena::mmap(n, 7);",
    f"const int rights = {RIGHTS}; if (flags & MAP_PRIVATE) go(MAP_PRIVATE, rights);",
]


def tripped(source: str) -> set[str]:
    """Names of the rules that a source in C++ trips."""
    found = checked(source, Language.CPP, Abi.C, find_task("vector_add"))
    return {suspicion.reason.split(":")[0] for suspicion in found}


@pytest.mark.parametrize("source", ODD)
def test_every_other_mapping_trips(source: str) -> None:
    assert tripped(HEADER + source) == {"memory-rights"}


@pytest.mark.parametrize("source", HARMLESS)
def test_private_memory_trips_nothing(source: str) -> None:
    assert tripped(HEADER + source) == set()


def test_names_without_their_header_may_be_anything() -> None:
    assert tripped(HARMLESS[0]) == {"memory-rights"}


def test_library_may_map_memory_but_not_move_it() -> None:
    assert symbol_sentence("mmap", libraries=False) == ""
    assert symbol_sentence("mremap", libraries=False).startswith("memory-rights: ")
