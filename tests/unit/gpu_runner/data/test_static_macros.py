"""Words that a source spells by macros, and calls of `mmap`: only private memory is fine."""

from __future__ import annotations

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.static import source_suspicions, symbol_sentence
from gpu_runner.data.verdict import Abi, Language
from tests.unit.gpu_runner.data.preprocessing import checked, passes

HEADER = "#include <sys/cdefs.h>\n"
SPELLED: list[tuple[str, str]] = [
    # The rule that has to trip, and the source behind a header that joins and quotes.
    ("assembly", '__CONCAT(as, m) volatile("sys" "call" : "=a"(r));'),
    ("assembly", '#define P(a, b) __CONCAT(a, b)\nP(as, m)(".byte 1");'),
    ("assembly", 'asm volatile("" __STRING(syscall) : : : "rcx");'),
    ("assembly", '#define J(a, b) volatile a##b\nJ(, asm)(".byte 1");'),
    ("assembly", '#define J(a, b) a##b\n#ifdef NEVER\n#undef J\n#endif\nJ(as, m)(".byte 1");'),
    (
        "assembly",
        '#ifdef NEVER\n#define J(a, b)\n#else\n#define J(a, b) a##b\n#endif\nJ(as, m)(".byte 1");',
    ),
    ("assembly", '#undef __CONCAT\n#define __CONCAT(a, b) b##a\n__CONCAT(m, as)(".byte 1");'),
    ("assembly", '#define J(a, ...) a##__VA_OPT__(m)\nJ(as, 1)(".byte 1");'),
    ("directives", 'auto text = R"(\n# 1 "header.h" 1\n)"; auto f = &dlopen;'),
    ("directives", '# 1 "header.h" 1\nauto f = &dlopen;'),
    ("directives", '/* a\n*/ # /* b */ 1 "header.h" 1\nauto f = &dlopen;'),
    ("directives", '%:\\\n 1 "header.h" 1\nauto f = &dlopen;'),
    ("directives", "#include __FILE__\nauto f = &dlopen;"),
    ("dynamic-loading", "auto f = &__CONCAT(dlo, pen);"),
    ("processes", '__CONCAT(pop, en)("true");'),
    ("files", "__CONCAT(fop, en)(name, mode);"),
]

HONEST = [
    "#define GLUE(a, b) a##b\nfloat GLUE(x, 1) = MAX(a, b) + std::fmax(s, end);",
    "TORCH_CHECK(rows, columns); _mm256_add_ps(as, b); T pair(re, cv); copy(s, end);",
    '#define STRINGIFY(x) #x\nprintf("%s", STRINGIFY(system));',
    "#ifdef FAST\n#define CHECK(e) e\n#else\n#define CHECK(e) report(e, #e)\n#endif",
    "#ifdef A\n#undef REAL\n#endif\n#define REAL float\nREAL x;",
    '#define LOG(format, ...) printf(format __VA_OPT__(,) __VA_ARGS__)\nLOG("x", 1);',
    "#define LAYERS(x, y) x##y\n#if defined(__AVX2__) && LAYERS(1, 2) > 3\n#endif",
]


def tripped(source: str) -> set[str]:
    """Names of the rules that a source in C++ trips."""
    found = checked(source, Language.CPP, Abi.C, find_task("vector_add"))
    return {suspicion.reason.split(":")[0] for suspicion in found}


@pytest.mark.parametrize(("rule", "source"), SPELLED)
def test_word_that_macros_spell_trips(rule: str, source: str) -> None:
    assert rule in tripped(HEADER + source)


@pytest.mark.parametrize("source", HONEST)
def test_honest_macros_trip_nothing(source: str) -> None:
    assert tripped(source) == set()


def test_code_without_end_is_not_read() -> None:
    """A person looks at it, and at the source as it is written."""
    text = "x" * 4_000_001
    found = source_suspicions("auto f = &dlopen;", [text], Abi.C, find_task("vector_add"))
    assert [each.reason.split(":")[0] for each in found] == ["macros", "dynamic-loading"]


def test_a_source_without_what_the_compiler_saw_is_suspicious() -> None:
    found = source_suspicions("int x;", [], Abi.C, find_task("vector_add"))
    assert [each.reason.split(":")[0] for each in found] == ["macros"]


def test_own_lines_keep_their_places() -> None:
    blank = "\n" * 9
    source = f"#include <sys/cdefs.h>\n\n\n#define TWO(a) a \\\n  a\nint TWO(x);\n{blank}int y;"
    [text] = passes(source)
    assert {i: line for i, line in enumerate(text.split("\n"), 1) if line.strip()} == {
        6: "int x x;",
        16: "int y;",
    }


@pytest.mark.timeout(100)
@pytest.mark.parametrize(
    "source",
    [
        f"auto x = {'cat_' * 60_000}$(a, b);",
        f"auto x = {'A' * 250_000}$(a, b);",
        "asm(" * 60_000,
        f'{"asm(" * 4_000} "{"nop;" * 50_000}"',
        f"{'mmap(((' * 15_000}",
        f"{'#/*' * 60_000}",
    ],
)
def test_no_source_takes_minutes_to_read(source: str) -> None:
    tripped(source)


MMAN = "#include <sys/mman.h>\n"
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


@pytest.mark.parametrize("source", ODD)
def test_every_other_mapping_trips(source: str) -> None:
    assert tripped(MMAN + source) == {"memory-rights"}


@pytest.mark.parametrize("source", HARMLESS)
def test_private_memory_trips_nothing(source: str) -> None:
    assert tripped(MMAN + source) == set()


def test_names_without_their_header_may_be_anything() -> None:
    assert tripped(HARMLESS[0]) == {"memory-rights"}


def test_library_may_map_memory_but_not_move_it() -> None:
    assert symbol_sentence("mmap", libraries=False) == ""
    assert symbol_sentence("mremap", libraries=False).startswith("memory-rights: ")
