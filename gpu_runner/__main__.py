"""Command line of the engine: evaluate a kernel, look at this host, or work for a site."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any, TypeAlias

from gpu_runner.check import command as check
from gpu_runner.daemon import config as daemon
from gpu_runner.daemon.work import work
from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.files import check_modules
from gpu_runner.data.formats import find_task
from gpu_runner.data.formats.kernelbench import has_own_shape_alone
from gpu_runner.data.formats.text import decoded, read_text
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES, Solution, code_of
from gpu_runner.data.soundness import MUTANT_SEEDS
from gpu_runner.data.static import gpu_reason, usual_kind
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from gpu_runner.supervisor.device.device import DeviceError, cuda_devices, device_slug, first_gpu
from gpu_runner.supervisor.doctor import doctor, measure_peaks
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from gpu_runner.supervisor.host.jail import JailError
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.oracle.varied import vary
from gpu_runner.supervisor.report import describe
from gpu_runner.supervisor.runner.faults import RunnerUnfit
from gpu_runner.supervisor.soundness.soundness import (
    brief,
    describe_soundness,
    one_entry_a_line,
    survey,
)

_JUDGE = (
    "to get the language model's judgment, run `manage.py judge_task NAME` on the site: runners "
    "have no API keys"
)
EXIT_CORRECT, EXIT_OTHER_VERDICT, EXIT_MISUSE = 0, 1, 2
_FAULTS = (DataError, DeviceError, OSError, OracleError, JailError, KilledFromOutside, RunnerUnfit)
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status (see `--help`)."""
    options = _parser().parse_args(arguments)
    try:
        _check_out(getattr(options, "json", None))
        return int(options.run(options))
    except _FAULTS as error:
        for line in str(error).splitlines():
            print(f"gpu_runner: {line}", file=sys.stderr)
        return EXIT_MISUSE


def _one_or_more(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpu_runner", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for add in (_add_evaluate, _add_doctor, _add_filter, _add_vary):
        add(commands)
    check.add(commands.add_parser)
    serve = commands.add_parser("work", help="run jobs from a site or a folder")
    daemon.add_arguments(serve)
    serve.set_defaults(run=_work)
    return parser


def _shared(*names: str) -> list[argparse.ArgumentParser]:
    """Options of these names, which several commands have."""
    shared = argparse.ArgumentParser(add_help=False)
    kinds, directions = [v.value for v in DeviceKind], [v.value for v in Direction]
    known: dict[str, dict[str, Any]] = {
        "task": {"required": True, "help": "name of a built-in task, or path to a task's folder"},
        "device": {"choices": kinds, "default": "cpu"},
        "index": {"type": int, "default": first_gpu(), "help": "index of the CUDA device"},
        "direction": {"choices": directions, "default": "forward"},
        "json": {"type": Path, "metavar": "OUT", "help": "write the full result to this file"},
        "cache": {"type": Path, "default": default_cache_folder()},
        "allow-unjailed": {"action": "store_true", "help": "run even without a jail"},
    }
    for name in names:
        shared.add_argument(f"--{name}", **known[name])
    return [shared]


def _add_evaluate(commands: _Commands) -> None:
    one = commands.add_parser(
        "evaluate",
        help="evaluate one kernel, without a site or Redis",
        description="Exit status: 0 if the verdict is CORRECT (or COMPILED in compile mode), 1 for"
        " any other verdict on the kernel, 2 for a usage error or a broken host.",
        parents=_shared("task", "index", "direction", "json", "cache", "allow-unjailed"),
    )
    one.add_argument("--kernel", required=True, type=Path, help="source file, .cu, .cpp or .py")
    one.add_argument(
        "--files",
        nargs="*",
        type=Path,
        default=[],
        help="other files that the kernel needs, from inside its folder",
    )
    one.add_argument(
        "--device",
        choices=[kind.value for kind in DeviceKind],
        help="default: based on the file's suffix and on what a Python module imports",
    )
    one.add_argument(
        "--mode", choices=[mode.value for mode in Mode], default="quick", help="default: quick"
    )
    one.set_defaults(run=_evaluate)


def _add_filter(commands: _Commands) -> None:
    sound = commands.add_parser(
        "filter",
        help=(
            "check whether a task is sound, using filters and wrong kernels made from its reference"
        ),
        description="Exit status: 0 if no filter flags the task and every wrong kernel fails, 1"
        " otherwise, 2 for a usage error or a broken task.",
        parents=_shared("task", "device", "index", "json", "allow-unjailed"),
    )
    sound.add_argument(
        "--seeds", type=_one_or_more, default=MUTANT_SEEDS, help="number of calls per workload"
    )
    sound.add_argument(
        "--brief",
        action="store_true",
        help="with --json: only count what passed, as in the reports that ship with kbench",
    )
    sound.set_defaults(run=_filter)


def _add_vary(commands: _Commands) -> None:
    varied = commands.add_parser(
        "vary",
        help="add workloads of different sizes to a KernelBench file",
        description="Runs the file with different sizes, in a jail and without any data, and writes"
        " the task with every workload that its model accepts. `filter` and `load_tasks` can read"
        " this task. Exit status: 0 if the model accepts any workload, 1 if not, 2 for a broken"
        " file.",
        parents=_shared("json", "allow-unjailed"),
    )
    varied.add_argument("--task", required=True, help="path to the KernelBench file")
    varied.set_defaults(run=_vary, device="cpu", index=0)


def _add_doctor(commands: _Commands) -> None:
    look = commands.add_parser(
        "doctor",
        help="show what this host can do and what is missing",
        parents=_shared("index", "json", "cache"),
    )
    look.add_argument(
        "--calibrate",
        action="store_true",
        help="measure and store the device's bandwidth and arithmetic rate",
    )
    look.add_argument(
        "--device",
        choices=[kind.value for kind in DeviceKind],
        help="device for --calibrate (default: every device on this host)",
    )
    look.set_defaults(run=_doctor)


def _config(options: argparse.Namespace, kind: DeviceKind, device: str = "") -> SupervisorConfig:
    return SupervisorConfig(
        kind=kind,
        index=options.index,
        device=device or device_slug(kind, options.index),
        cache_folder=getattr(options, "cache", default_cache_folder()),
        allow_unjailed=options.allow_unjailed,
    )


def _evaluate(options: argparse.Namespace) -> int:
    if not options.kernel.is_file():
        raise DataError("kernel", f"the file {str(options.kernel)!r} does not exist")
    logging.disable()  # the result itself says what went wrong
    task = find_task(options.task)
    kind = DeviceKind(options.device) if options.device else _kind_of(options)
    request = _request(task, options, kind)
    result = evaluate(request, _config(options, kind, request.device))
    print(describe(result))
    _write(options.json, encode(result))
    return _exit_status(result)


def _write(out: Path | None, document: object) -> None:
    if out is not None:
        out.write_text(json.dumps(document, indent=1) + "\n")


def _check_out(out: Path | None) -> None:
    """Refuse a place that cannot be written to, before minutes of work are lost to it."""
    if out is None:
        return
    if not out.parent.is_dir():
        raise DataError("json", f"the folder {str(out.parent)!r} does not exist")
    if out.is_dir():
        raise DataError("json", f"{str(out)!r} is a folder; enter the name of a file")


def _kind_of(options: argparse.Namespace) -> DeviceKind:
    """The kind of device that the file is for; a module that needs a GPU wants one of this host."""
    kernel: Path = options.kernel
    languages = {language.suffix: language for language in Language}
    if kernel.suffix not in languages:
        known = ", ".join(sorted(languages))
        raise DataError(
            "kernel", f"{kernel.name!r} is not a kernel's source: its suffix must be one of {known}"
        )
    language, source = languages[kernel.suffix], kernel.read_text(errors="replace")
    code = code_of(source, _beside(options))
    kind = usual_kind(language, code)
    is_run = Mode(options.mode) is not Mode.COMPILE
    if language is Language.PYTHON and is_run and _lacks_device(kind):
        reason = f"{kernel.name} is for a GPU: it {gpu_reason(code)}. This host has no GPU."
        raise DataError("device", f"{reason} To run it on the CPU anyway, pass --device cpu")
    return kind


def _lacks_device(kind: DeviceKind) -> bool:
    return kind is DeviceKind.CUDA and not cuda_devices()


def _request(task: Task, options: argparse.Namespace, kind: DeviceKind) -> EvaluationRequest:
    if options.kernel.stat().st_size > SOURCE_LIMIT_BYTES:
        raise DataError("kernel", f"is larger than {SOURCE_LIMIT_BYTES} bytes")
    source = decoded(options.kernel.read_bytes(), "kernel")
    direction = Direction(options.direction)
    is_module = options.kernel.suffix == Language.PYTHON.suffix
    language = Language.PYTHON if is_module else kind.language
    needs_none = Mode(options.mode) is Mode.COMPILE and _lacks_device(kind)
    return EvaluationRequest(
        evaluation_id="local",
        task=task,
        solution=Solution(
            source=source,
            language=language,
            direction=direction,
            entry=options.kernel.name,
            files=_beside(options),
        ),
        mode=Mode(options.mode),
        device=kind.value if needs_none else device_slug(kind, options.index),
    )


def _beside(options: argparse.Namespace) -> dict[str, str]:
    """The texts of the files beside the kernel, by name."""
    folder = options.kernel.resolve().parent
    found = {}
    for path in options.files:
        if not path.resolve().is_relative_to(folder):
            raise DataError("files", f"{path} is not inside {folder}")
        name = path.resolve().relative_to(folder).as_posix()
        found[name] = read_text(path, "files", SOURCE_LIMIT_BYTES)
    check_modules(found)
    return found


def _exit_status(result: EvaluationResult) -> int:
    if result.verdict in (Verdict.CORRECT, Verdict.COMPILED):
        return EXIT_CORRECT
    return EXIT_MISUSE if result.verdict is Verdict.SYSTEM_ERROR else EXIT_OTHER_VERDICT


def _filter(options: argparse.Namespace) -> int:
    config = _config(options, DeviceKind(options.device))
    report = survey(find_task(options.task), config, seeds=options.seeds)
    print(describe_soundness(report))
    print(_JUDGE)
    if options.brief and options.json:
        options.json.write_text(one_entry_a_line(brief(report)))
    else:
        _write(options.json, report)
    return EXIT_CORRECT if report["passed"] else EXIT_OTHER_VERDICT


def _vary(options: argparse.Namespace) -> int:
    task = find_task(options.task)
    if not has_own_shape_alone(task):
        raise DataError("task", "is not a KernelBench file that has only its original shape")
    found = vary(task, _config(options, DeviceKind.CPU))
    for workload in found.task.workloads:
        sizes = ", ".join(f"{name}={size}" for name, size in workload.parameters.items())
        print(f"  {workload.name:<10} {'+'.join(workload.devices):<9} {sizes}")
    _write(options.json, encode(found.task))
    if found.remark:
        print(found.remark)
    return EXIT_OTHER_VERDICT if found.remark else EXIT_CORRECT


def _doctor(options: argparse.Namespace) -> int:
    if options.calibrate:
        return _calibrate(options)
    text, fit, facts = doctor(options.cache)
    print(text)
    _write(options.json, facts)
    return EXIT_CORRECT if fit else EXIT_MISUSE


def _calibrate(options: argparse.Namespace) -> int:
    kinds = [(DeviceKind.CPU, 0), *((DeviceKind.CUDA, index) for index in cuda_devices())]
    if options.device:
        kind = DeviceKind(options.device)
        kinds = [(kind, options.index if kind is DeviceKind.CUDA else 0)]
    facts = []
    for kind, index in kinds:
        slug = device_slug(kind, index)
        config = SupervisorConfig(kind=kind, index=index, device=slug, cache_folder=options.cache)
        text, found = measure_peaks(config)
        print(text)
        facts.append(found)
    _write(options.json, facts)
    return EXIT_CORRECT


def _work(options: argparse.Namespace) -> int:
    return work(daemon.from_arguments(options, os.environ))


if __name__ == "__main__":
    sys.exit(main())
