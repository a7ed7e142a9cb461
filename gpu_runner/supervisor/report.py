"""A result as a short text for a terminal."""

from __future__ import annotations

from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import EvaluationResult, Measurement, Mismatch, WorkloadResult
from gpu_runner.data.integrity import Audit, Suspicion
from gpu_runner.data.numbers import duration_text, plus_minus, times
from gpu_runner.data.profile import THROUGHPUTS, Profile
from gpu_runner.data.verdict import Verdict

_KERNELS_SHOWN, _NAME_LIMIT, _REASON_LIMIT = 5, 100, 200


def describe(result: EvaluationResult) -> str:
    """Verdict, times, speedups, checks of an audit, suspicions and stages, a line each."""
    lines = [f"{result.verdict}  {result.task} on {result.device} ({result.mode}): {result.reason}"]
    if result.verdict is Verdict.COMPILE_ERROR and result.build:
        lines.append(result.build.log.rstrip())
    if result.mismatch:
        lines += _mismatch(result.mismatch, result.reason)
    lines += [_workload(w) for w in result.workloads if w.measurement is not None]
    if result.latency_ns is not None:
        lines.append(_headline(result))
    if result.profile is not None:
        lines += _profile(result.profile)
    if result.pending_baselines:
        names = " and ".join(result.pending_baselines)
        lines.append(
            f"not compared with the {names} baseline, which hasn't been measured on this host yet"
        )
    lines += _audit(result.audit) + _suspicions(result) + _hints(result)
    lines += _threads(result.environment)
    stages = ", ".join(f"{s.stage} {s.duration_s:.2f} s" for s in result.stages)
    lines.append(f"  stages: {stages}")
    lines.append(f"  {result.environment.device_name}; jail: {result.environment.jail}")
    if result.output and result.verdict is not Verdict.CORRECT:
        lines.append(f"  printed: {result.output.strip()[:2000]}")
    if result.log:
        lines.append(result.log.rstrip())
    return "\n".join(lines)


def _mismatch(found: Mismatch, reason: str) -> list[str]:
    """The first wrong element, and any findings that the verdict's reason doesn't already state."""
    where = f"{found.output}{list(found.index)}"
    first = (
        f"  first wrong element: {where} is {found.actual}, expected {found.expected} ±"
        f" {found.bound}"
    )
    found_out = (each.text for each in found.findings)
    looks = [f"  it looks like this: {text}" for text in found_out if text not in reason]
    return [first, *looks] if found.index else looks


def _threads(environment: Environment) -> list[str]:
    count, races = environment.verified_with_threads, environment.races
    return [f"  verified with teams of {count} threads; races: {races}"] if count and races else []


def _workload(workload: WorkloadResult) -> str:
    measured = workload.measurement
    assert measured is not None
    hidden = " (unlisted)" if workload.hidden else ""
    speedups = ", ".join(f"{name} {times(workload.speedups[name])}" for name in workload.baselines)
    claimed_ns = workload.claimed_ns
    raised = f"  (raised from {duration_text(claimed_ns)})" if claimed_ns else ""
    worst = max((error.scaled for error in workload.errors), default=float("nan"))
    return (
        f"  {workload.name + hidden:<28} {_interval(measured):<28} {measured.calls:>4} calls"
        f"  error {worst:.2g} of the bound  {speedups}{raised}"
    )


def _profile(profile: Profile) -> list[str]:
    """The throughputs that every profile has, the kernels that take longest, and the notes."""
    tool = profile.tool + (f" ({profile.reason})" if profile.reason else "")
    words = [
        f"{name.removesuffix('_throughput_pct')} {profile.metrics[name]:.1f} %"
        for name in THROUGHPUTS
    ]
    lines = [f"  profile of {profile.workload} by {tool}: {', '.join(words)} of the peak"]
    for kernel in profile.kernels[:_KERNELS_SHOWN]:
        time = f"{duration_text(kernel.duration_ns)}  " if kernel.duration_ns else ""
        lines.append(f"    {time}{kernel.name[:_NAME_LIMIT]}")
    lines += [f"    cause: {cause}" for cause in profile.causes]
    return lines + [f"    {note}" for note in profile.notes]


def _audit(audit: Audit | None) -> list[str]:
    """Each check with its state, and those that were required but not made."""
    if audit is None:
        return []
    lines = [f"  audit: {'passed' if audit.passed else 'not passed'}"]
    for check in audit.checks:
        need = "required" if check.name in audit.required else "not required"
        lines.append(f"    {check.name:<16} {check.state:<12} {need:<12}  {_line(check.reason)}")
    made = {check.name for check in audit.checks}
    missing = [name for name in audit.required if name not in made]
    lines += [f"    {name:<16} {'not made':<12} required" for name in missing]
    if not audit.required:
        lines.append("    it doesn't say which checks are required, so it verifies nothing")
    facts = audit.facts.rows if audit.facts else ()
    return lines + [f"    {row.label}: {row.value} ({row.said})" for row in facts]


def _suspicions(result: EvaluationResult) -> list[str]:
    """What raised a suspicion, and what that means: a site holds back correct results alone."""
    if not result.suspicions:
        return []
    if result.verdict is Verdict.CORRECT:
        meaning = "a site would hold this result back for an admin's decision"
    else:
        meaning = "the verdict stands without an admin's decision"
    lines = [f"    {_place(found)}: {_line(found.reason)}" for found in result.suspicions]
    return [f"  suspicions, which aren't proof: {meaning}", *lines]


def _hints(result: EvaluationResult) -> list[str]:
    """What the source looks like, where what ran has been seen."""
    lines = [f"    {_place(found)}: {_line(found.reason)}" for found in result.hints]
    return ["  hints, which don't affect the result:", *lines] if lines else []


def _place(found: Suspicion) -> str:
    file = f", {found.file}" if found.file else ""
    return found.check if found.line is None else f"{found.check}{file}, line {found.line}"


def _line(reason: str) -> str:
    """A reason as one line; it begins with the name of the rule, where a rule was tripped."""
    text = " ".join(reason.split())
    return text if len(text) <= _REASON_LIMIT else text[: _REASON_LIMIT - 3] + "..."


def _interval(measured: Measurement) -> str:
    return f"{duration_text(measured.time_ns)} {plus_minus(measured.relative_half_width)}"


def _headline(result: EvaluationResult) -> str:
    speedups = [f"{times(value)} vs {name}" for name, value in result.speedups.items()]
    floor = result.floor_fraction
    parts = [duration_text(result.latency_ns or 0.0), *speedups]
    if floor is not None:
        parts.append(f"{100 * floor:.0f} % of the physical limit")
    measured = result.environment.measured
    if measured and measured.fraction is not None:
        parts.append(f"{100 * measured.fraction:.0f} % of what was measured to be possible")
    return f"  overall: {', '.join(parts)}"
