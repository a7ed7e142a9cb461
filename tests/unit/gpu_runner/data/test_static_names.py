"""Names of C functions: the functions themselves trip the static rules, other things do not."""

from __future__ import annotations

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.static import check_source
from gpu_runner.data.verdict import Abi, Language

USES_OF_SYSTEM = [
    'system("true");',
    "::system(command);",
    "return ::system(command);",
    "std::system(command);",
    "if (x) system(command);",
    "y = (a) ? (b) : system(command);",
    "y = z * system(command);",
    "auto f = system; f(command);",
    "auto f = &::system;",
    "auto f = f1, g = system;",
    "int (*table[])(const char*) = {system, 0};",
    "std::thread t(system, command); t.join();",
    "int r = (system)(command);",
    "int r = (*system)(command);",
    'extern "C" int system(const char*);',
    'extern "C" int system(text);',
    "int system(const char*); auto f = system;",
    "s.system = 1; system(command);",
    "float system = 1; void f() { std::system(command); ::system(command); }",
    "#define run return\nrun system(command);",
]

NAMES_OF_THEIR_OWN = [
    "float system(4); y = system * 2;",
    "float system[4]; system[i] = 1; f(system);",
    "Matrix system(n, n); system.solve(); f(system, &system);",
    "const Matrix<Row<float>> system(n, n), open(n), read(i); y = read(i);",
    "float *system(p); x = system[0];",
    "for (Range read(n); read;) { Reader send(read); send(1); }",
    "struct S { float* read; int write; S(float* p) : read(p), write(1) { go(); } };",
    "struct S { int write, n; S() : write(1), n{0} {} };",
    "solver.system(x); s->system(x); Solver::system(x); f(s.system);",
    "void f(float* system, int n) { g(system, n); auto h = [&system] { return system; }; }",
    "enum class Op : int { read, write, send }; template <Op read> void f() { g(read); }",
    "auto [read, write] = pair; f(read); f(write);",
    "bool open = 1, read, write; f(write); T (&send)[4] = x; f(send); void (*kill)(int); f(kill);",
    "Foo x{.read = 1, .send = 2}; goto open; open: return;",
]


def tripped(source: str) -> set[str]:
    """Names of the rules that a source in C++ trips."""
    found = check_source(source, Language.CPP, Abi.C, find_task("vector_add"))
    return {suspicion.reason.split(":")[0] for suspicion in found}


@pytest.mark.parametrize("source", USES_OF_SYSTEM)
def test_every_use_of_a_function_of_the_system_trips(source: str) -> None:
    assert "processes" in tripped(source)


@pytest.mark.parametrize("source", NAMES_OF_THEIR_OWN)
def test_variables_and_members_may_have_the_name_of_a_function(source: str) -> None:
    assert tripped(source) == set()
