"""What an audit makes of the reports of its tools, and what comes of its checks."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import Measurement, WorkloadResult
from gpu_runner.data.integrity import Audit, AuditCheck, AuditState, Check, OutsideTime
from gpu_runner.data.static import Code
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Verdict
from gpu_runner.supervisor.audit import under_tool
from gpu_runner.supervisor.audit.audit import clock_check, evasion, fault_of, small, suspicions_of
from gpu_runner.supervisor.audit.cpu import Sanitized
from gpu_runner.supervisor.audit.required import required_checks, starts_threads
from gpu_runner.supervisor.audit.sanitizer import ComputeSanitizer, device_findings, unfinished
from gpu_runner.supervisor.audit.sanitizer_report import (
    Finding,
    memory_findings,
    undefined_findings,
)
from gpu_runner.supervisor.audit.under_tool import Ran, check_of, run_under
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Wrapper
from tests.unit.gpu_runner.data.preprocessing import passes

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at add(const float *, const float *, float *, int)+0x90 in kernel.cu:7
=========     by thread (1,0,0) in block (0,0,0)
=========     Access at 0x7f71b9e01360 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f71b9e00a00 of size 2400 bytes
=========         Host Frame: vector_add [0x83cb7] in library.so
=========
========= ERROR SUMMARY: 1 error
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sum(float *)+0x130 in kernel.cu:9
=========     and Read access at sum(float *)+0x190 in kernel.cu:11 [34 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
RACE_WARNING = RACE.replace("Error: Race", "Warning: Race").replace("(1 error, 0", "(0 errors, 1")
BARRIER = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at 0x150 in kernel.cu:20:half(float*)
=========     by thread (128,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""
UNREAD = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at void at::native::reduce_kernel<512>(T1)+0x70
========= ERROR SUMMARY: 1 error
"""


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (MEMCHECK, "Invalid __global__ read of size 4 bytes, in add(const float *, const float *,"),
        (MEMCHECK, "at kernel.cu:7"),
        (RACE, "Race reported between Write access at sum(float *) in kernel.cu:9"),
        (BARRIER, "Divergent thread(s) in block., in half(float*) at kernel.cu:20"),
        (UNREAD, "Uninitialized __global__ memory read"),
    ],
)
def test_error_of_the_device_is_named_with_its_place(report: str, words: str) -> None:
    found = device_findings(report)
    assert len(found) == 1
    assert found[0].breaks
    assert words in found[0].words
    assert unfinished(report) == ""


def test_warnings_and_errors_of_libraries_are_remarks() -> None:
    assert [finding.breaks for finding in device_findings(RACE_WARNING)] == [False]
    assert [finding.breaks for finding in device_findings(UNREAD, ["mine", "kernel.cu:"])] == [
        False
    ]
    assert device_findings(MEMCHECK, ["add"])[0].breaks
    assert device_findings(CLEAN) == []


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ("", "nothing at all"),
        ("========= COMPUTE-SANITIZER\n========= Error: device not supported\n", "not supported"),
        ("========= Strange thing\n========= ERROR SUMMARY: 3 errors\n", "doesn't understand"),
    ],
)
def test_report_that_shows_nothing_is_no_proof(report: str, words: str) -> None:
    assert words in unfinished(report)
    check = check_of("memcheck", [Ran(report, hidden=False)], device_findings, unfinished)
    assert check.state is AuditState.INCONCLUSIVE
    assert unfinished(CLEAN) == ""


def test_hidden_workload_is_not_told_of() -> None:
    public, hidden = Ran(CLEAN, hidden=False), Ran(MEMCHECK, hidden=True)
    check = check_of("memcheck", [public, hidden], device_findings)
    assert (check.state, check.reason, check.report) == (
        AuditState.FAILED,
        "found something on a hidden workload",
        "",
    )
    noted = check_of("x", [hidden], lambda report: [Finding("N=7", breaks=False)])
    assert "N=7" not in noted.reason


DIED = Fault(Verdict.RUNTIME_ERROR, "the process ended in a call")
STARVED = "==7==WARNING: AddressSanitizer failed to allocate 0x1000 bytes\n"
NULL = "==7==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000\n"


@pytest.mark.parametrize(
    ("fault", "report", "state", "words"),
    [
        (Fault(Verdict.RUNTIME_ERROR, "died while it was starting"), "", "skipped", "this host"),
        (Fault(Verdict.TIME_LIMIT, "no answer while it was starting"), "", "skipped", "this host"),
        (DIED, "", "suspicious", "no report"),
        (Fault(Verdict.MEMORY_LIMIT, "more than 8 GiB"), "", "inconclusive", "more memory"),
        (Fault(Verdict.TIME_LIMIT, "no answer in a call"), "", "inconclusive", "more time"),
        (DIED, STARVED + NULL, "inconclusive", "more memory"),
        (DIED, "==7==ERROR: ThreadSanitizer: out of memory\n", "inconclusive", "more memory"),
        (DIED, "========= Failed to allocate shadow memory\n", "inconclusive", "more memory"),
    ],
)
def test_death_without_a_report_never_passes(
    fault: Fault, report: str, state: str, words: str
) -> None:
    outcome = [Ran(report, hidden=False, fault=fault)]
    check = check_of("address", outcome, lambda text: memory_findings(text, ["A"]))
    assert check.state == state
    assert words in check.reason
    assert fault.reason in check.reason


def test_memory_that_a_tool_did_not_get_is_not_held_against_a_kernel() -> None:
    null = "kernel.cpp:9:3: runtime error: load of null pointer of type 'float'\n"
    assert [f.breaks for f in undefined_findings(null)] == [True]
    assert [f.breaks for f in undefined_findings(STARVED + null)] == [False]
    assert memory_findings(NULL, []) != []
    assert memory_findings(STARVED + NULL, []) == []
    assert memory_findings("==7==ERROR: AddressSanitizer: out-of-memory: x\n", []) == []
    misuse = STARVED + "==7==ERROR: AddressSanitizer: heap-use-after-free on 0x1\n"
    assert memory_findings(misuse, []) != []
    assert memory_findings(NULL + STARVED, []) != []
    wild = NULL.replace("0x000000000000", "0x7f12a0004000")
    assert memory_findings("Sanitizer: out of memory\n" + wild, []) != []  # anybody can print that


def test_undefined_behaviour_breaks_a_rule_only_where_it_reaches_memory() -> None:
    report = (
        "kernel.cpp:4:7: runtime error: signed integer overflow: 1 + 2147483647\n"
        "/usr/include/c++/12/bits/stl_vector.h:9:3: runtime error: load of null pointer of type\n"
        "kernel.cpp:9:3: runtime error: index 5 out of bounds for type 'float [4]'\n"
        "kernel.cpp:9:3: runtime error: store to address 0x1 with insufficient space\n"
        "runner.cpp:9:3: runtime error: index 5 out of bounds for type 'float [4]'\n"
    )
    found = undefined_findings(report)
    assert [f.breaks for f in found] == [True, True, False]
    assert sum("kernel.cpp:9" in f.words and "index 5" in f.words for f in found) == 1
    assert len(undefined_findings(report, source_only=True)) == 2


class DyingBench:
    """Stands for processes under a tool: writes a report, and dies on one workload."""

    def run_profiled(self, target: Target, workloads: Sequence[Workload], ncu: Wrapper) -> str:
        os.write(ncu.descriptor, workloads[0].name.encode())
        if workloads[0].name == "b":
            raise FaultError(Fault(Verdict.RUNTIME_ERROR, "died"))
        return ""


def test_a_fault_or_the_time_ends_a_tools_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    workloads = [[Workload(name=name, parameters={})] for name in "abc"]
    for tool in (lambda: Sanitized({}), lambda: ComputeSanitizer("/bin/true", "memcheck")):
        ran = run_under(DyingBench(), TARGET, workloads, tool)
        assert [one.report for one in ran] == ["a", "b"]
        assert [one.fault is None for one in ran] == [True, False]
    monkeypatch.setattr(under_tool, "TOOL_LIMIT_S", -1.0)
    ran = run_under(DyingBench(), TARGET, workloads[::2], lambda: Sanitized({}))
    check = check_of("address", ran, lambda report: [])
    assert check.state is AuditState.INCONCLUSIVE
    assert "only 1 of 2 workloads ran within" in check.reason


class SlowBench:
    """Stands for processes that get no further under a tool, in a call or before it."""

    def __init__(self, when: str) -> None:
        self.when = when

    def run_profiled(self, target: Target, workloads: Sequence[Workload], ncu: Wrapper) -> str:
        raise FaultError(Fault(Verdict.TIME_LIMIT, f"no answer {self.when} within 90 s"))


TARGET = Target(Abi.C, Direction.FORWARD)


def test_a_call_that_ends_only_without_the_tool_is_told_of_with_both_times() -> None:
    """And accuses nobody: the tool may be what stands in its way."""
    workload = Workload(name="a", parameters={})
    for when, state, more in (
        ("in a call", AuditState.INCONCLUSIVE, "; without the tool it takes 12.5 µs"),
        ("while it was starting", AuditState.SKIPPED, ""),
    ):
        ran = run_under(
            SlowBench(when), TARGET, [[workload]], lambda: Sanitized({}), {"a": 12_500.0}
        )
        check = check_of("address", ran, lambda report: [])
        assert check.state is state
        assert check.reason.endswith(f"no answer {when} within 90 s{more}")


def test_small_workloads_are_chosen_of_both_sorts() -> None:
    sizes = {"one": 1, "tiny": 8, "mid": 64, "odd": 9, "large": 1 << 40}
    workloads = [
        Workload(name=name, parameters={}, hidden=name in ("one", "odd")) for name in sizes
    ]

    def chosen(names: str, count: int = 1) -> list[str]:
        given = [w for w in workloads if w.name in names.split()]
        return [w.name for w in small(given, lambda w: sizes[w.name], count)]

    assert chosen("one tiny mid odd large") == ["tiny", "odd"]
    assert chosen("one tiny mid odd large", 2) == ["tiny", "mid", "odd"]
    assert chosen("one tiny") == ["tiny", "one"]
    assert chosen("large") == ["large"]


def check(name: str, state: AuditState) -> AuditCheck:
    return AuditCheck(name=name, state=state, reason=f"{name} says so")


def test_only_a_failed_check_decides() -> None:
    audit = Audit(checks=(check("a", AuditState.SUSPICIOUS), check("b", AuditState.FAILED)))
    fault = fault_of(audit)
    assert fault == Fault(Verdict.VIOLATION, "audit, b: b says so")
    assert [(s.check, s.reason) for s in suspicions_of(audit)] == [(Check.AUDIT, "a: a says so")]
    skipped = Audit(checks=(check("a", AuditState.PASSED), check("b", AuditState.SKIPPED)))
    assert fault_of(skipped) is None
    assert suspicions_of(skipped) == ()


@pytest.mark.parametrize("state", AuditState)
def test_an_audit_passes_only_with_every_required_check(state: AuditState) -> None:
    checks = (check("a", AuditState.PASSED), check("b", state), check("c", AuditState.SKIPPED))
    audit = Audit(checks=checks, required=("a", "b"))
    assert audit.passed is (state is AuditState.PASSED)
    lacking = () if audit.passed else (f"b {state}: b says so",)
    assert audit.lacking() == lacking
    assert audit.lacking(cleared=True) == (() if state is AuditState.SUSPICIOUS else lacking)
    assert not Audit(checks=checks).passed
    absent = Audit(checks=checks[:1], required=("a", "b", "d"))
    assert (absent.passed, absent.lacking()) == (False, ("b, d not made",))


def test_each_device_and_abi_has_its_required_checks(tmp_path: Path) -> None:
    plain, threaded = (
        built(tmp_path, text)
        for text in (
            "float f(float* a) { return a[0]; }",
            "float f(float* a, int n) { float s = 0;\n#pragma omp parallel for reduction(+ : s)\n"
            "for (int i = 0; i < n; ++i) s += a[i]; return s; }",
        )
    )
    torn = tmp_path / "torn.so"
    torn.write_bytes(plain.read_bytes()[:200])
    assert [starts_threads(path) for path in (plain, threaded, torn)] == [False, True, True]
    memory = ("clock", "address", "undefined", "leftovers")
    assert required_checks(DeviceKind.CPU, Abi.C, plain) == memory
    assert required_checks(DeviceKind.CPU, Abi.C, threaded) == (*memory, "threads")
    assert required_checks(DeviceKind.CPU, Abi.TORCH, threaded) == ("clock", "undefined")
    for abi in Abi:
        tools = ("clock", "memcheck", "racecheck", "initcheck", "synccheck", "kernels", "time")
        assert required_checks(DeviceKind.CUDA, abi, plain) == tools


def built(folder: Path, text: str) -> Path:
    """A library of one source, with the threads of OpenMP."""
    source = folder / f"{len(text)}.cpp"
    source.write_text(text)
    library = source.with_suffix(".so")
    command = ["g++", "-O1", "-fopenmp", "-fPIC", "-shared", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize(
    ("time_ns", "error_ns", "state"),
    [
        (100e3, 49e3, AuditState.PASSED),
        (100e3, 51e3, AuditState.INCONCLUSIVE),
        (1e3, 2e3, AuditState.PASSED),  # less than any clock of ours can tell
        (100e3, None, AuditState.INCONCLUSIVE),  # it was not looked at
    ],
)
def test_a_vague_clock_verifies_no_time(
    time_ns: float, error_ns: float | None, state: AuditState
) -> None:
    measured = Measurement(time_ns=time_ns, low_ns=time_ns, high_ns=time_ns, calls=9)
    outside = None if error_ns is None else OutsideTime(bound_ns=time_ns, error_ns=error_ns)
    result = WorkloadResult(
        name="n1", parameters={}, hidden=False, measurement=measured, outside=outside
    )
    found = clock_check([result])
    assert (found.name, found.state) == ("clock", state)
    assert ("n1" in found.reason) == (state is AuditState.INCONCLUSIVE)
    hidden = dataclasses.replace(result, hidden=True)
    assert clock_check([hidden]).state is AuditState.PASSED


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('int a;\n__attribute__((no_sanitize("address"))) void f();\n', 2),
        ("int a; \\\n\n#ifdef __SANI\\\nTIZE_ADDRESS__\n#endif\n", 3),
        ("#define PASTE(a, b) a##b\nint b;\nint PASTE(__as, an_handler)();\n", 3),
        ("#include <sys/cdefs.h>\nint a;\nint __CONCAT(__as, an_handler)();\n", 3),
    ],
)
def test_source_that_minds_tools_is_suspicious_with_its_line(source: str, line: int) -> None:
    [found] = evasion(Code(source), list(map(Code, passes(source))))
    assert found.state is AuditState.SUSPICIOUS
    assert f"line {line} mentions" in found.reason
    assert evasion(Code('extern "C" void f(float* sanitized) {}'), []) == []


def test_what_a_submission_prints_neither_hides_nor_ends_a_report() -> None:
    """Words before a line, a parameter that there is none of, and lines without an end."""
    hidden = "words kernel.cpp:9:3: runtime error: load of null pointer of type 'f'\n"
    assert [f.breaks for f in undefined_findings(hidden)] == [True]
    assert len(undefined_findings("glued" + hidden.removeprefix("words "), source_only=True)) == 1
    argument = "kbench: read of 1 bytes, 1 bytes behind argument 9\n"
    fault = "==7==ERROR: AddressSanitizer: heap-buffer-overflow on 0x1\n"
    [found] = memory_findings(argument + fault, ["A"])
    assert "heap-buffer-overflow" in found.words
    began = time.process_time()
    for unit in ("a", "a:", ":1", " ", "\n", "kernel.cpp:", " in ", "+0x", "AddressSanitizer "):
        report = unit * ((1 << 20) // len(unit))
        assert undefined_findings(report) == []
        memory_findings(report, ["A"])
        device_findings("========= " + report)
    assert time.process_time() - began < 30
