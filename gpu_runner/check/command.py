"""The command `check`, and what it says of what came of it."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from gpu_runner.check.checking import ROUNDS, Bound, Checked, Ratio, check, compare
from gpu_runner.check.script import Script, read_script
from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.evaluation import EvaluationResult, Measurement
from gpu_runner.data.numbers import duration_text, plus_minus, times
from gpu_runner.data.task import KINDS_OF_VALUES, Values
from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from gpu_runner.supervisor.device.device import cuda_devices, device_slug, first_gpu
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder

GOOD, BAD, MISUSE = 0, 1, 2
_DEFAULT_ROUNDS = 5  # chosen: enough to tell 5 %, in a minute
_LOG_LIMIT = 2000  # chosen: characters of a compiler's log, whose beginning tells most

TRIED = "as inputs() draws them"
NOT_TRIED = tuple(
    words
    for values, words in KINDS_OF_VALUES.items()
    if values not in (Values.DRAWN, Values.NEAR, Values.HARD)  # near: drawn, but for a few
)
"""Kinds of values that a task's workloads may ask for, and a script's cannot."""

WHY = """Why a loop around the kernel gives a different time:
  launch      a loop of calls on a GPU hides what a single launch costs; each call here is timed
              alone, on an idle device
  caches      a loop finds its inputs in the caches; here the caches are emptied before each call
  values      a loop reads the same values again; here each call gets new values at new addresses
  Triton's `do_bench` empties the L2 cache, too, but reuses the same values"""


def add(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add_parser(
        "check",
        help="judge and time the kernels in a script that defines ref(), kernel() and inputs(size)",
        description="Exit status: 0 if all kernels are correct, and the new one isn't slower; 1 if"
        " not; 2 for a usage error or a broken host.",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--size", type=int, action="append", default=[], help="size for inputs()")
    parser.add_argument(
        "--kernel", action="append", default=[], help="kernel to check (default: all in the file)"
    )
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="OLD",
        help="alternate with the same-named kernels in that file",
    )
    parser.add_argument("--rounds", type=int, choices=ROUNDS, default=_DEFAULT_ROUNDS)
    parser.add_argument("--device", choices=[kind.value for kind in DeviceKind])
    parser.add_argument("--index", type=int, default=first_gpu(), help="index of the CUDA device")
    parser.add_argument("--mode", choices=["quick", "ranked", "audit"], default="quick")
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write the full result to this file"
    )
    parser.add_argument(
        "--draft",
        type=Path,
        metavar="OUT",
        help="write a task and its kernels to this file; run nothing",
    )
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    parser.add_argument("--allow-unjailed", action="store_true", help="run even without a jail")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check a script; returns the exit status. Raises `DataError` for what is no such script."""
    logging.disable()  # the results themselves say what went wrong
    script = _chosen(_script(options.file, options), options.kernel)
    if options.draft:
        options.draft.write_text(
            json.dumps(encode({"task": script.task, "kernels": script.kernels}))
        )
        return GOOD
    config = _config(options, script.kind)
    if options.compare:
        checked = _compared(script, options, config)
    else:
        checked = check(script, config, Mode(options.mode), _say)
    print(text_of(checked))  # noqa: T201  a command's answer
    if options.json:
        options.json.write_text(json.dumps(document_of(checked), indent=1) + "\n")
    if any(r.verdict is Verdict.SYSTEM_ERROR for r in checked.results.values()):
        return MISUSE
    return GOOD if checked.is_good else BAD


def _compared(script: Script, options: argparse.Namespace, config: SupervisorConfig) -> Checked:
    old = _script(options.compare, options).kernels
    if not old.keys() & script.kernels.keys():
        here, there = ", ".join(script.kernels), ", ".join(old)
        reason = f"no kernel is in both files: {options.compare} has {there}, this file has {here}"
        raise DataError("compare", reason)
    return compare(old, script, config, options.rounds, _say)


def _script(path: Path, options: argparse.Namespace) -> Script:
    has_gpu = options.device != DeviceKind.CPU.value and bool(options.draft or cuda_devices())
    return read_script(path, options.size, has_gpu=has_gpu)


def _chosen(script: Script, names: list[str]) -> Script:
    unknown = [name for name in names if name not in script.kernels]
    if unknown:
        raise DataError("kernel", f"{unknown[0]!r} is not one of {', '.join(script.kernels)}")
    return replace(script, kernels={n: script.kernels[n] for n in names} or script.kernels)


def _config(options: argparse.Namespace, usual: DeviceKind) -> SupervisorConfig:
    kind = DeviceKind(options.device) if options.device else usual
    if kind is DeviceKind.CUDA and not cuda_devices():
        way = (
            "to run on the CPU, pass --device cpu"
            if options.device
            else "the script needs one, so run it on a GPU host"
        )
        raise DataError("device", f"this host has no GPU; {way}")
    return SupervisorConfig(
        kind=kind,
        index=options.index,
        device=device_slug(kind, options.index),
        cache_folder=options.cache,
        allow_unjailed=options.allow_unjailed,
    )


def _say(step: str) -> None:
    print(f"... {step}", file=sys.stderr, flush=True)  # noqa: T201  progress


def text_of(checked: Checked) -> str:
    """A line for each kernel and workload, and what they rest on."""
    lines = [_bound(checked.bound)]
    for name, result in checked.results.items():
        lines += _kernel(name, result, checked)
    lines += [_ratio(name, ratio) for name, ratio in checked.ratios.items()]
    for where, reason in checked.baselines.errors.items():
        lines.append(f"baseline {where}: {reason}")
    lines.append(f"values: only {TRIED}. Not tried: {', '.join(NOT_TRIED)}")
    if any(result.latency_ns for result in checked.results.values()):
        lines += ["", WHY]
    return "\n".join(lines)


def document_of(checked: Checked) -> dict[str, object]:
    """The same for a program, ready for JSON; times in ns."""
    return {
        "good": checked.is_good,
        "device": checked.device,
        "bound": {**encode(checked.bound), "proven": checked.bound.is_proven},
        "values": {"tried": [TRIED], "not_tried": list(NOT_TRIED)},
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
        return f"bound: unproven; it rejects honest ways to compute ref(): {refused}"
    why = bound.reason or "kbench knows too few other ways to compute ref()"
    return f"bound: unproven ({why})"


def _kernel(name: str, result: EvaluationResult, checked: Checked) -> Iterator[str]:
    yield f"{name}: {_headline(name, result, checked)}"
    if result.verdict is Verdict.COMPILE_ERROR and result.build:
        yield result.build.log.strip()[:_LOG_LIMIT]
    if result.mismatch:
        found = (each.text for each in result.mismatch.findings)
        yield from (f"  looks like this: {text}" for text in found if text not in result.reason)
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
        return f"differs from ref(), but the bound is unproven: {result.reason}"
    if result.latency_ns is None:
        return f"{result.verdict}: {result.reason}"
    words = [f"correct, {duration_text(result.latency_ns)}"]
    words += [f"{times(n)} {_by(b)}" for b, n in result.speedups.items() if b != "best"]
    if (limit := checked.limits.get(name)) is not None:
        words.append(
            f"reading and writing its tensors once takes at least {limit:.0%} of that time"
        )
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
    spans = f"from {duration_text(ratio.old_ns)} to {duration_text(ratio.new_ns)}"
    interval = f"95 %: {ratio.low:.3f} to {ratio.high:.3f}"
    means = f"{spans}, means of {ratio.rounds} rounds"
    return f"{name}: {said}, {ratio.value:.3f}× as fast ({interval}; {means})"
