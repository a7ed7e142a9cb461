"""Marks at lines, from the words of compilers and profilers."""

from __future__ import annotations

from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.profile import THROUGHPUTS, Profile
from runs_app.submitting.diagnostics import diagnostics


def found(log: str = "", notes: tuple[str, ...] = ()) -> list[tuple[int, int | None, str, str]]:
    build = BuildReport(
        ok=False, cached=False, duration_s=1.0, log=log, command="", compiler="", digest=""
    )
    metrics = dict.fromkeys(THROUGHPUTS, 1.0)
    profile = Profile(tool="portable", reason="", workload="", metrics=metrics, notes=tuple(notes))
    return [(d.line, d.column, d.severity, d.message) for d in diagnostics(build, profile)]


def test_a_profile_and_a_result_without_any() -> None:
    note = "the loop at line 6 is not vectorised: complicated access pattern"
    assert found(notes=(note,)) == [(6, None, "info", note)]
    assert diagnostics(None, None) == []
    assert found("everything is fine: no kernel.cpp here\n") == []


def test_gcc() -> None:
    log = (
        "In file included from signature.h:1:\n"
        "kernel.cpp:7:5: warning: unused variable 'x' [-Wunused]\n"
        "kernel.cpp:3:14: error: 'vec' was not declared in this scope\n"
        "    3 |     float x = vec[i];\n"
        "kernel.cpp:9: fatal error: nothing.h: No such file\n"
    )
    assert found(log) == [
        (3, 14, "error", "'vec' was not declared in this scope"),
        (9, None, "error", "nothing.h: No such file"),
        (7, 5, "warning", "unused variable 'x' [-Wunused]"),
    ]


def test_nvcc() -> None:
    log = (
        'kernel.cu(12): error: identifier "vec" is undefined\n'
        "kernel.cu(3): warning #177-D: variable was declared but never referenced\n"
    )
    assert found(log) == [
        (12, None, "error", 'identifier "vec" is undefined'),
        (3, None, "warning", "variable was declared but never referenced"),
    ]


def test_there_are_never_too_many() -> None:
    log = "".join(f"kernel.cpp:{n}:1: error: {'x' * 5000}\n" for n in range(1, 500))
    marks = found(log)
    assert len(marks) == 50
    assert all(len(message) <= 300 for *_, message in marks)
