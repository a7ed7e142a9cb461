"""Words that a source spells by macros: its own, those of headers, those that nobody knows."""

from __future__ import annotations

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.static import check_source, expanded
from gpu_runner.data.verdict import Abi, Language

SPELLED: list[tuple[str, str]] = [
    # The rule that has to trip, and the source.
    ("assembly", '__CONCAT(as, m) volatile("sys" "call" : "=a"(r));'),
    ("assembly", '#define P(a, b) __CONCAT(a, b)\nP(as, m)("nop");'),
    ("assembly", '__CONCAT(a, __CONCAT(s, m))("nop"); _CCCL_PP_CAT(__as, m__)("nop");'),
    ("assembly", 'asm volatile("" __STRING(syscall) : : : "rcx");'),
    ("assembly", 'asm("" SOME_HEADERS_TEXT(syscall));'),
    ("assembly", 'asm("" SOME_HEADERS_TEXT : "+r"(x));'),
    ("assembly", "__REDIRECT(mine, (const char*, int), open);"),
    ("assembly", 'SOME_HEADERS_PASTE(as, m)("nop");'),
    ("assembly", 'Cpp_Concat(__as, m, __)("nop");'),
    ("assembly", 'OUTER(INNER(a, s), m)("nop");'),
    ("assembly", '#define J(a, b) volatile a##b\nJ(, asm)("nop");'),
    ("assembly", '#define J(a, b) a##b\n#ifdef NEVER\n#undef J\n#endif\nJ(as, m)("nop");'),
    (
        "assembly",
        '#if 0\n#else\n#endif\n#ifdef NEVER\n#undef __CONCAT\n#endif\n__CONCAT(as, m)("1");',
    ),
    ("attributes", "void early() __annotate__(constructor);"),
    ("attributes", "__CONCAT(__attri, bute__)((constructor)) void early();"),
    ("attributes", "#define C (1), constructor\nvoid early() __attribute_alloc_size__(C);"),
    ("directives", "__glibc_macro_warning1(redefine_extname mine clock_gettime)"),
    ("directives", '#define J(a, b) a##b\n#pragma push_macro("J")\n#define J(a, b) 0'),
    ("directives", '_Pragma("pop_macro(\\"J\\")")'),
    ("directives", "#ifdef NEVER\n#define __CONCAT(a, b) 0\n#endif"),
    ("directives", "#ifdef NEVER\n#define __STRING(a)\n#endif"),
    ("directives", "#define J(a, ...) a##__VA_OPT__(m)"),
    ("directives", '#define J(a, b) a##b\n#if J(__has_, include)("/etc/shadow")\n#endif'),
    ("dynamic-loading", "auto f = &__CONCAT(dlo, pen);"),
    ("dynamic-loading", "auto f = &SOME_HEADERS_PASTE(dlo, pen);"),
    ("processes", '__CONCAT(sys, tem)("true");'),
    ("processes", '__SOME_PASTE(sys, tem)("true"); auto f = &::JOIN1(for, k);'),
    ("files", "__CONCAT(wri, te)(3, &frame, 8);"),
]

HONEST = [
    "#define GLUE(a, b) a##b\nfloat GLUE(x, 1) = MAX(a, b) + std::fmax(s, end);",
    "TORCH_CHECK(rows, columns); _mm256_add_ps(as, b); T pair(re, cv); copy(s, end);",
    '#define STRINGIFY(x) #x\nprintf("%s", STRINGIFY(system)); __STRING(open);',
    "#ifdef FAST\n#define CHECK(e) e\n#else\n#define CHECK(e) report(e, #e)\n#endif",
    "#ifdef A\n#undef REAL\n#endif\n#define REAL float\nREAL x;",
    '#define LOG(format, ...) printf(format __VA_OPT__(,) __VA_ARGS__)\nLOG("x", 1);',
    "#define LAYERS(x, y) x##y\n#if defined(__AVX2__) && LAYERS(1, 2) > 3\n#endif",
]


def tripped(source: str) -> set[str]:
    """Names of the rules that a source in C++ trips."""
    found = check_source(source, Language.CPP, Abi.C, find_task("vector_add"))
    return {suspicion.reason.split(":")[0] for suspicion in found}


@pytest.mark.parametrize(("rule", "source"), SPELLED)
def test_word_that_macros_spell_trips(rule: str, source: str) -> None:
    assert rule in tripped(source)


@pytest.mark.parametrize("source", HONEST)
def test_honest_macros_trip_nothing(source: str) -> None:
    assert tripped(source) == set()


@pytest.mark.parametrize(
    "source",
    [
        "#if __CONCAT(__SANITIZE, _ADDRESS__)\n#endif",
        "#if 0\n#elif __CONCAT(__SANITIZE, _ADDRESS__)\n#endif",
        "#define J(a, b) a##b\n#if J(__SANITIZE, _ADDRESS__)\n#endif",
        "#if SOME_HEADERS_PASTE(__SANITIZE, _ADDRESS__)\n#endif",
        "int x = __CONCAT(__SANITIZE, _ADDRESS__);",
    ],
)
def test_words_of_conditions_are_among_the_expanded(source: str) -> None:
    assert "__SANITIZE_ADDRESS__" in {token.text for token in expanded(source)}


def doubled(levels: int, last: str = "int x;") -> str:
    """A word that each of so many macros joins to itself."""
    joins = "".join(f"#define D{i}(x) D{i - 1}(x##x)\n" for i in range(1, levels + 1))
    return f"#ifdef NEVER\n#define D0(x) {last}\n{joins}D{levels}(abcdefgh)\n#endif\n"


@pytest.mark.parametrize(
    "source",
    [
        doubled(60),
        doubled(60, "#x"),
        doubled(17, "x " * 20_000),
        doubled(17, "#x " * 20_000),
        doubled(17, "##".join("x" * 20_000)),
    ],
)
def test_a_word_without_end_is_given_up_in_time(source: str) -> None:
    """Its tokens are few, and its characters would be more than a host has memory for."""
    assert "macros" in tripped(source)


@pytest.mark.parametrize(
    "source",
    [
        "#ifdef NEVER\n#define M / ## / ## c\nint x = M;\n#endif",
        "#ifdef NEVER\n#define M / ## * ## c ## d\nint x = M;\n#endif",
        '#define M(a, b) a##b##c\nM(" ", );\n',
        "#define M(a) / ## / #a\nM(x);\n",
    ],
)
def test_what_joins_to_nothing_is_no_error(source: str) -> None:
    tripped(source)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "source",
    [
        f"auto x = {'cat_' * 60_000}$(a, b);",
        f"auto x = {'A' * 250_000}$(a, b);",
        f"#ifdef NEVER\n{'asm(' * 60_000}\n#endif",
        f'#ifdef NEVER\n{"asm(" * 4_000} "{"nop;" * 50_000}"\n#endif',
    ],
)
def test_no_source_takes_minutes_to_read(source: str) -> None:
    tripped(source)


def test_assembly_beyond_what_is_read_is_noticed() -> None:
    assert "assembly" in tripped(f'#ifdef NEVER\n{"asm(" * 4_000} "{"nop;" * 50_000}"\n#endif')
