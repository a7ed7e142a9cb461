"""Names of C functions: the functions themselves trip the static rules, other things do not."""

from __future__ import annotations

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.verdict import Abi, Language
from tests.unit.gpu_runner.data.preprocessing import checked

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
    # Declared as something else, but not here.
    "void f(F system) { system(x); } void g() { system(command); }",
    "void f(F system) { system(x); } void g() { run(system); }",
    "void f(F system); void g() { system(command); }",
    "void f(const F& system) { system(x); } void g() { f(&::system); }",
    "void f(F system = ::system) { system(x); }",
    "void f(int n = system(command), F system = g) {}",
    "void f() { { auto system = 1; } system(command); }",
    "void f() { system(command); auto system = g; }",
    "void f() { auto h = system; float system = 1; h(command); }",
    "void f() { auto h = [](F system) { system(x); }; system(command); }",
    "void f() { for (auto& system : all) system(x); system(command); }",
    "void f() { for (auto system = all;;) { break; } system(command); }",
    # Declared as itself, or not at all.
    "using F = int(const char*); void f() { F system; system(command); }",
    "void f() { extern F system; system(command); }",
    "void f() { using std::system; system(command); }",
    "void f() { using ::system; }",
    "void f() { auto system = &::system; system(command); }",
    "void f() { auto& system = ::system; system(command); }",
    "void f() { int (*system)(const char*) = ::system; }",
    "void f() { if (x && system) { system(command); } }",
    "void f() { while (x & system) system(command); }",
    "void f() noexcept(x && system) { system(command); }",
    "struct system {}; void f() { system(command); }",
    "R run(F f) { return {}; } void f() { run (*system)(command); }",
    "if (system(command)->x) { y = 1; }",
    "x = y ? z : system(command);",
    "auto f = [g = system] { g(command); };",
    "auto f = [](F g = system) { g(command); };",
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
    "template <class R, class W> void each(int n, R read, W write) { write(1, read(n)); }",
    "template <class... R> void each(R&&... read) { (read(1), ...); }",
    "float conv(const std::function<float(int)>& signal, int i) { return signal(i); }",
    "float conv(float (*signal)(int), int i) { return signal(i); }",
    "void f() { float (*signal)(int) = g; y = signal(1); run(signal); }",
    "auto read(int i) const -> float { return p[i]; } float two(int i) { return read(i); }",
    "auto read(V<2> v) noexcept -> std::pair<float, const T*> { return {}; } y = read(v);",
    "auto read(int i) -> decltype(f(i)) { return f(i); } y = read(1);",
    "static float read(const float* p, int i) noexcept(true) { return p[i]; } y = read(A, 1);",
    "struct V { float at(int i) const& noexcept { return read(i); } F read = g; };",
    "struct S { S(F read, int n) : a(read(1)), b<int>{read(n)} { read(3); } };",
    "auto h = [](auto read, auto... write) mutable { write(read(1)); };",
    "void f() { Reader read{A}; auto [open, kill] = pair; y = read(1) + open(2) + kill(3); }",
    "void f() { for (auto& read : readers) { y = read(1); } for (auto& send : all) send(2); }",
    "void f() { auto read = [&](int i) { return A[i]; }; if (x) { y = read(1); } else run(read); }",
    "void f(F read) { auto g = [&, read] { return read(1); }; each(n, read); }",
    "#define LOAD(read, i) read(i)\nvoid f(F read) { y = LOAD(read, 1); }",
    "struct S { void f() { g(read); } float* read; }; void S::h() { g(read); }",
]


def tripped(source: str) -> set[str]:
    """Names of the rules that a source in C++ trips."""
    found = checked(source, Language.CPP, Abi.C, find_task("vector_add"))
    return {suspicion.reason.split(":")[0] for suspicion in found}


@pytest.mark.parametrize("source", USES_OF_SYSTEM)
def test_every_use_of_a_function_of_the_system_trips(source: str) -> None:
    assert "processes" in tripped(source)


@pytest.mark.parametrize("source", NAMES_OF_THEIR_OWN)
def test_variables_and_members_may_have_the_name_of_a_function(source: str) -> None:
    assert tripped(source) == set()
