"""What came of a script, as a short text and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu_runner.check.checking import Bound, Checked, Ratio
from gpu_runner.data.codec import encode
from gpu_runner.data.evaluation import EvaluationResult, Measurement
from gpu_runner.data.numbers import duration_text, plus_minus, times
from gpu_runner.data.verdict import Verdict

_LOG_LIMIT = 2000  # chosen: characters of a compiler's log, whose beginning tells most

WHY = """Why a loop around the kernel gives a different time:
  launch      a loop of calls on a GPU hides what a single launch costs; each call here is timed
              alone, from an idle device
  caches      a loop finds its inputs in the caches; here the caches are emptied before each call
  values      a loop reads the same values again; here each call has new values at new places
  Triton's `do_bench` empties the L2 cache, too, but keeps its values"""


def text_of(checked: Checked) -> str:
    """A line for each kernel and workload, and what they rest on."""
    lines = [_bound(checked.bound)]
    for name, result in checked.results.items():
        lines += _kernel(name, result, checked)
    lines += [_ratio(name, ratio) for name, ratio in checked.ratios.items()]
    for where, reason in checked.baselines.errors.items():
        lines.append(f"baseline {where}: {reason}")
    return "\n".join([*lines, "", WHY])


def document_of(checked: Checked) -> dict[str, Any]:
    """The same for a program, ready for JSON; times in ns."""
    return {
        "good": checked.is_good,
        "device": checked.device,
        "bound": {**encode(checked.bound), "proven": checked.bound.is_proven},
        "kernels": {
            name: {
                "verdict": str(result.verdict),
                "reason": result.reason,
                "time_ns": result.latency_ns,
                "speedups": dict(result.speedups),
                "limit_fraction": checked.limits.get(name),
                "suspicions": [encode(each) for each in result.suspicions],
                "workloads": [
                    {
                        "name": workload.name,
                        "time": encode(workload.measurement) if workload.measurement else None,
                        "baselines": encode(dict(workload.baselines)),
                    }
                    for workload in result.workloads
                ],
            }
            for name, result in checked.results.items()
        },
        "ratios": encode(dict(checked.ratios)),
    }


def _bound(bound: Bound) -> str:
    if bound.is_proven:
        return f"bound: proven; {bound.ways} honest ways to compute ref() pass it"
    if bound.failed:
        refused = ", ".join(bound.failed[:3])
        return f"bound: unproven; it refuses honest ways to compute ref(): {refused}"
    why = bound.reason or "too few other ways to compute ref() are known"
    return f"bound: unproven ({why})"


def _kernel(name: str, result: EvaluationResult, checked: Checked) -> Iterator[str]:
    yield f"{name}: {_headline(name, result, checked)}"
    if result.verdict is Verdict.COMPILE_ERROR and result.build:
        yield result.build.log.strip()[:_LOG_LIMIT]
    if result.mismatch:
        yield from (f"  looks like this: {found.text}" for found in result.mismatch.findings)
    if result.verdict is not Verdict.CORRECT and result.output:
        yield f"  printed: {result.output.strip()[:_LOG_LIMIT]}"
    if result.log:
        yield result.log.rstrip()[:_LOG_LIMIT]
    for workload in result.workloads:
        if workload.measurement is not None:
            beside = [f"{_by(n)} {duration_text(b.time_ns)}" for n, b in workload.baselines.items()]
            yield "  ".join([f"  {workload.name:>12}", _time(workload.measurement), *beside])
    for suspicion in result.suspicions:
        yield f"  suspected ({suspicion.check}): {suspicion.reason}"


def _headline(name: str, result: EvaluationResult, checked: Checked) -> str:
    if result.verdict is Verdict.WRONG_RESULT and not checked.bound.is_proven:
        return f"differs from ref(), by a bound that is unproven: {result.reason}"
    if result.latency_ns is None:
        return f"{result.verdict}: {result.reason}"
    words = [f"right, {duration_text(result.latency_ns)}"]
    words += [f"{times(n)} {_by(b)}" for b, n in result.speedups.items() if b != "best"]
    if (limit := checked.limits.get(name)) is not None:
        words.append(f"reading and writing its tensors once takes at least {limit:.0%} of that")
    return ", ".join(words)


def _by(baseline: str) -> str:
    return {"eager": "ref", "compiled": "torch.compile"}.get(baseline, baseline)


def _time(measured: Measurement) -> str:
    return f"{duration_text(measured.time_ns)} {plus_minus(measured.relative_half_width)}"


def _ratio(name: str, ratio: Ratio) -> str:
    if ratio.low > 1:
        said = "faster than before"
    elif ratio.high < 1:
        said = "slower than before"
    else:
        said = "no difference"
    interval = f"95 %: {ratio.low:.3f} to {ratio.high:.3f}, {ratio.rounds} rounds"
    return f"{name}: {said}, {ratio.value:.3f}× as fast ({interval})"
