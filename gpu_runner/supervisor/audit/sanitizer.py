"""Runs a CUDA submission under compute-sanitizer, in the runner's jail, and reads its report."""

from __future__ import annotations

import functools
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gpu_runner.data.evaluation import BuildReport, EvaluationRequest
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.verdict import Abi
from gpu_runner.supervisor.audit.sanitizer_report import Finding
from gpu_runner.supervisor.audit.under_tool import WrappedRun, check_of, skipped
from gpu_runner.supervisor.host.jail import Jail
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Report
from gpu_runner.supervisor.tools import kernel_list

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
REPORT_LIMIT_BYTES = 1 << 20  # chosen: hundreds of findings
PADDING_BYTES = 64 * 1024
"""Between any two allocations under memcheck, so that no other tensor lies behind the end."""

_OPTIONS = {"memcheck": ("--padding", str(PADDING_BYTES))}
_REPORT = '"$TMPDIR/kbench-sanitizer.txt"'
_LONGEST_LINE = 4096  # chosen: names of templates are long, and expressions must not take long
_LINE = re.compile(r"^=========(.*)$", re.MULTILINE)
_ERROR = re.compile(
    r"(Invalid \S+ (?:read|write|atomic|access).*|Misaligned .*|Stack overflow.*"
    r"|Uninitialized \S+ memory (?:read|access).*|Barrier error detected.*"
    r"|Error: (?:Race reported|Potential \S+ hazard).*)"
)
_REMARK = re.compile(r"(Warning: (?:Race|Potential).*|Host API .*)")
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)")
_COUNTED = re.compile(r"\((\d+) errors?, \d+ warnings?\)")
_AT = re.compile(r"(?:at|Device Frame:) *(.+)")
_WHERE = re.compile(r"^0x[0-9a-f]+ in |\+0x[0-9a-f]+| in \S+$|\S+\.cu:\d+:")
_SOURCE_LINE = re.compile(r"\b([\w-]+\.cuh?:\d+)")
_BY_HAND = re.compile(
    r"\basm\b|mbarrier|cuda::(?:barrier|atomic|pipeline)|atomic_ref|memcpy_async|wgmma"
    r"|__threadfence|\batomic(?:CAS|Exch)"
)
_ORDER = ("racecheck", "synccheck")


@functools.cache
def find() -> str:
    """Path of compute-sanitizer, or empty."""
    folders = f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin"
    return shutil.which("compute-sanitizer", path=folders) or ""


class ComputeSanitizer(Report):
    """One process under one tool. Use as a context manager; `report` when the process has ended.

    The submission could forge the report from inside, as it could ncu's: what is found counts, and
    what is not found is no proof.
    """

    def __init__(self, path: str, tool: str) -> None:
        """`path` is where compute-sanitizer is; `tool` is one of `TOOLS`."""
        super().__init__(REPORT_LIMIT_BYTES)
        self._path, self._tool = path, tool

    def command(self, program: Sequence[str]) -> list[str]:
        """The command line that runs `program` under the tool."""
        options = ["--tool", self._tool, *_OPTIONS.get(self._tool, ()), "--print-limit", "20"]
        options += ["--report-api-errors", "no", "--target-processes", "application-only"]
        script = f'"$0" --log-file {_REPORT} "$@"; cat {_REPORT} >&{self.descriptor}'
        return ["/bin/bash", "-c", script, self._path, *options, *program]

    def jail(self, jail: Jail) -> Jail:
        """The same jail with the tool in it; the runner gives every tensor its own allocation."""
        folder = Path(self._path).resolve().parent
        installed = [folder, folder.parent / "compute-sanitizer"]
        paths = [path for path in installed if path.exists() and not path.is_relative_to("/usr")]
        exact = {"KERNEL_PROFILED": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        environment = {**jail.environment, **exact}
        return replace(jail, paths=[*jail.paths, *paths], environment=environment, profiled=True)


def device_findings(report: str, own: Sequence[str] | None = None) -> list[Finding]:
    """What a report says, errors first. `own` are the kernels that the submission may answer for.

    Without it, all are its own. An error in another's kernel is a remark: a library reads as it
    pleases.
    """
    found = [_finding(record, own) for record in _records(report)]
    kept = dict.fromkeys(finding for finding in found if finding is not None)
    return sorted(kept, key=lambda finding: not finding.breaks)


def unfinished(report: str) -> str:
    """Why a report that names no error still does not say that there is none; else empty."""
    match = _SUMMARY.search(report)
    if match is None:
        lines = [line.strip() for line in _LINE.findall(report)]
        said = next((line for line in lines if "rror" in line), "")
        return f"it wrote no summary: {said or report.strip()[:200] or 'nothing at all'}"
    counted = _COUNTED.search(report)
    if int(counted[1] if counted else match[1]) and not device_findings(report):
        return "it counted errors that kbench doesn't understand"
    return ""


def _records(report: str) -> list[list[str]]:
    """Lines that belong together: a headline, one space in, and what is further in below it."""
    records: list[list[str]] = []
    for line in _LINE.findall(report):
        if line.startswith("  ") and records:
            records[-1].append(line.strip())
        elif line.strip():
            records.append([line.strip()])
    return records


def _finding(record: list[str], own: Sequence[str] | None) -> Finding | None:
    error, remark = _ERROR.match(record[0]), _REMARK.match(record[0])
    match = error or remark
    if match is None:
        return None
    text = " ".join(record)
    theirs = own is not None and not any(name in text for name in own)
    headline = re.sub(r"\+0x[0-9a-f]+", "", match[1]).removeprefix("Error: ")
    return Finding(f"{headline}{_place(record)}"[:400], breaks=error is not None and not theirs)


def _place(record: list[str]) -> str:
    """The function and the line of the source, as far as the record has them."""
    if _SOURCE_LINE.search(record[0]):
        return ""
    frame = next((found for line in record[1:] if (found := _AT.match(line))), None)
    place = next((found for line in record[1:] if (found := _SOURCE_LINE.search(line))), None)
    function = f", in {_WHERE.sub('', frame[1][:_LONGEST_LINE])}" if frame else ""
    return function + (f" at {place[1]}" if place else "")


class ComputeSanitizerChecks:
    """One check for each of compute-sanitizer's tools."""

    def __init__(
        self, request: EvaluationRequest, target: Target, build: BuildReport | None, run: WrappedRun
    ) -> None:
        """`run` makes a few calls under a wrapper, on each of the audit's workloads."""
        self._request, self._target = request, target
        self._build, self._run = build, run

    def checks(self, tell: Callable[[str], None]) -> Iterator[AuditCheck]:
        """Every check, in order; `tell` hears which one comes now."""
        path = find()
        if not path:
            missing = "compute-sanitizer is not installed"
            yield from (skipped(name, missing) for name in TOOLS)
            return
        for name in TOOLS:
            tell(name)
            began = time.monotonic()
            check = self._check(path, name)
            yield replace(check, duration_s=time.monotonic() - began)

    def _check(self, path: str, name: str) -> AuditCheck:
        outcome = self._run(self._target, lambda: ComputeSanitizer(path, name))
        check = check_of(name, outcome, self._find, unfinished)
        by_hand = _BY_HAND.search(self._request.solution.whole)
        if check.state is not AuditState.FAILED or name not in _ORDER or by_hand is None:
            return check
        doubt = f"{check.reason}; the source orders threads by {by_hand[0]!r}, which {name}"
        reason = f"{doubt} may not follow"
        return replace(check, state=AuditState.SUSPICIOUS, reason=reason)

    def _find(self, report: str) -> list[Finding]:
        if self._target.abi is Abi.C:
            return device_findings(report)
        resources = self._build.resources if self._build else ()
        own = [kernel_list.plain(kernel.name) for kernel in resources]
        files = [f"{name}:" for name in self._request.solution.texts]
        return device_findings(report, [*own, *files])
