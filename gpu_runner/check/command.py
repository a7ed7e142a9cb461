"""The command `check`."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpu_runner.check.checking import ROUNDS, Checked, check, compare
from gpu_runner.check.script import Script, read_script
from gpu_runner.check.telling import document_of, text_of
from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from gpu_runner.supervisor.device.device import cuda_devices, device_slug
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder

GOOD, BAD, MISUSE = 0, 1, 2
_DEFAULT_ROUNDS = 5  # chosen: enough to tell 5 %, in a minute


def add(add_parser: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = add_parser(
        "check",
        help="judge and time the kernels of a script with ref(), kernel() and inputs(size)",
        description="Exit 0 if all kernels are right, and the new one isn't slower; 1 if not; 2"
        " for misuse or a broken host.",
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--size", type=int, action="append", default=[], help="of inputs()")
    parser.add_argument("--kernel", action="append", default=[], help="default: all in the file")
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="OLD",
        help="alternate with the kernels of the same names in that file",
    )
    parser.add_argument("--rounds", type=int, choices=ROUNDS, default=_DEFAULT_ROUNDS)
    parser.add_argument("--device", choices=[kind.value for kind in DeviceKind])
    parser.add_argument("--index", type=int, default=0, help="which CUDA device")
    parser.add_argument("--mode", choices=["quick", "ranked", "audit"], default="quick")
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write the whole answer to this file"
    )
    parser.add_argument(
        "--draft",
        type=Path,
        metavar="OUT",
        help="write task and kernels there; run nothing",
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
        raise DataError("compare", f"{options.compare} has {there}, and this file has {here}")
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
        raise DataError("device", "this host has no GPU; --device cpu runs it on the CPU")
    return SupervisorConfig(
        kind=kind,
        index=options.index,
        device=device_slug(kind, options.index),
        cache_folder=options.cache,
        allow_unjailed=options.allow_unjailed,
    )


def _say(step: str) -> None:
    print(f"... {step}", file=sys.stderr, flush=True)  # noqa: T201  progress
