"""Whose work the calls of every workload are, from what a profiler lists."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence

import pytest

from gpu_runner.data.evaluation import Measurement, WorkloadResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, Direction, Language, Mode, Verdict
from gpu_runner.supervisor.audit.listed import Lister
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target, Targets
from gpu_runner.supervisor.runner.wrapper import Wrapper
from gpu_runner.supervisor.tools import ncu
from gpu_runner.supervisor.work.told import work_suspicions
from tests.protocol.evaluating import request

TASK = find_task("softmax")
PUBLIC = [w for w in TASK.workloads if not w.hidden][:2]
HIDDEN = [w for w in TASK.workloads if w.unlisted][:2]
LISTED, OTHERS = (Target(Abi.TORCH, Direction.FORWARD, source=text) for text in ("a", "b"))
ASKED = request(TASK, "import triton", Mode.RANKED, Language.PYTHON)
OWN, LIBRARY, PARTING = "mine_0d1d", "void at::native::softmax_warp(T1)", "spin_kernel(long)"
LONGEST = "mine_too"


def report(*names: str, longest: int = 9000) -> str:
    """What ncu writes of these kernels: of the longest, and of 9 µs each."""
    text = io.StringIO()
    rows = [["Kernel Name", "gpu__time_duration.sum"], ["", "ns"]]
    times = {LONGEST: longest}
    csv.writer(text).writerows([*rows, *([name, times.get(name, 9000)] for name in names)])
    return text.getvalue()


class Says:
    """A bench whose processes leave these reports, on listed workloads and on others."""

    def __init__(self, listed: str, others: str = "", fault: Fault | None = None) -> None:
        self._reports, self._fault = {LISTED: listed, OTHERS: others}, fault

    def run_profiled(self, target: Target, workloads: Sequence[Workload], ncu: Wrapper) -> str:
        assert all(workload.hidden is (target == OTHERS) for workload in workloads)
        os.write(ncu.descriptor, self._reports[target].encode())
        if target == OTHERS and self._fault is not None:
            raise FaultError(self._fault)
        return ""


def lister(bench: Says) -> Lister:
    time = Measurement(time_ns=1e5, low_ns=9e4, high_ns=2e5, calls=9)
    results = [
        WorkloadResult(name=w.name, parameters={}, hidden=w.hidden, measurement=time)
        for w in (*PUBLIC, *HIDDEN)
    ]
    return Lister(ASKED, bench, Targets(LISTED, lambda: OTHERS), None, results)


@pytest.fixture(autouse=True)
def with_ncu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncu, "find", lambda: "/usr/bin/ncu")


GOOD = report(OWN, PARTING, OWN)


@pytest.mark.parametrize(
    ("listed", "others", "of"),
    [
        (GOOD, GOOD, ""),
        (report(LIBRARY, PARTING, OWN), GOOD, PUBLIC[0].name),
        (report(OWN, PARTING, LIBRARY), GOOD, PUBLIC[1].name),
        (GOOD, report(OWN, PARTING, LIBRARY), "unlisted sizes"),
    ],
)
def test_a_library_on_any_workload_is_seen(listed: str, others: str, of: str) -> None:
    found = lister(Says(listed, others)).listed()
    assert found is not None
    assert not found.suspicions
    suspicions = work_suspicions(found.worked)
    assert [of in suspicion.reason for suspicion in suspicions] == [True] * bool(of)
    check = kernels(Says(listed, others))
    assert check.state is (AuditState.SUSPICIOUS if of else AuditState.PASSED)
    for reason in (check.reason, *(suspicion.reason for suspicion in suspicions)):
        assert (LIBRARY in reason) is (of in (PUBLIC[0].name, PUBLIC[1].name))


def kernels(bench: Says) -> AuditCheck:
    return next(check for check in lister(bench).profiled().checks if check.name == "kernels")


def test_an_audit_passes_nothing_that_it_has_not_seen() -> None:
    silent, broken = "==ERROR== ERR_NVGPUCTRPERM", Fault(Verdict.RUNTIME_ERROR, "died")
    for bench, state in (
        (Says(GOOD, silent), AuditState.INCONCLUSIVE),
        (Says(GOOD, report(OWN), broken), AuditState.INCONCLUSIVE),
        (Says(GOOD, report(*[OWN] * 9)), AuditState.INCONCLUSIVE),
        (Says(report(*[OWN] * 9), GOOD), AuditState.SKIPPED),
        (Says(GOOD, GOOD, broken), AuditState.PASSED),  # it died after the last call
        (Says(silent), AuditState.SKIPPED),
    ):
        assert kernels(bench).state is state
    assert lister(Says(silent)).listed() is None
    assert lister(Says(GOOD, silent)).listed() is not None


LONG = report(OWN, LONGEST, PARTING, OWN, longest=180_000)  # of which 100 µs are claimed
MANY = [OWN] * 20  # 180 µs together


@pytest.mark.parametrize(
    ("listed", "others", "of"),
    [
        (LONG, GOOD, PUBLIC[0].name),
        (report(OWN, PARTING, LONGEST, longest=180_000), GOOD, PUBLIC[1].name),
        (GOOD, LONG, "on unlisted sizes"),
        (report(OWN, PARTING, OWN, PARTING, OWN), GOOD, "spin_kernel"),
        (report(OWN, PARTING, *MANY), report(*MANY, PARTING, *MANY), ""),  # maybe side by side
    ],
)
def test_a_claim_shorter_than_its_kernels_is_seen(listed: str, others: str, of: str) -> None:
    found = lister(Says(listed, others)).listed()
    assert found is not None
    assert [of in each.reason for each in found.suspicions] == [True] * bool(of)
    checks = {check.name: check for check in lister(Says(listed, others)).profiled().checks}
    assert checks["time"].state is (AuditState.SUSPICIOUS if of else AuditState.PASSED)
    if of == "on unlisted sizes":
        assert not any(letter.isdigit() for letter in checks["time"].reason)


def test_an_audit_takes_all_kernels_of_the_longest_call_together() -> None:
    times = {check.name: check for check in lister(Says(report(*MANY, PARTING, OWN), GOOD))
             .profiled().checks}  # fmt: skip
    assert times["time"].state is AuditState.SUSPICIOUS
