"""Command line of the engine: evaluate a kernel, look at this host, or work for a site."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from gpu_runner.daemon import config as daemon
from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.durations import duration
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.formats.text import decoded
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES, Solution
from gpu_runner.data.soundness import MUTANT_SEEDS
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from gpu_runner.supervisor.baseline_job import measure_baselines
from gpu_runner.supervisor.device.device import DeviceError, cuda_devices, device_slug
from gpu_runner.supervisor.doctor import doctor, measure_peaks
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from gpu_runner.supervisor.host.jail import JailError
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.report import describe
from gpu_runner.supervisor.runner.faults import RunnerUnfit
from gpu_runner.supervisor.soundness.brief_report import brief, one_entry_a_line
from gpu_runner.supervisor.soundness.soundness import describe_soundness, survey

_JUDGE = (
    "the language model's judgement is asked for on the site (manage.py judge_task NAME), because "
    "runners hold no keys"
)
EXIT_CORRECT, EXIT_OTHER_VERDICT, EXIT_MISUSE = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status (see `--help`)."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (DataError, DeviceError, OSError) as error:
        for line in str(error).splitlines():
            print(f"gpu_runner: {line}", file=sys.stderr)
        return EXIT_MISUSE


def _one_or_more(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpu_runner", description=__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser(
        "evaluate",
        help="evaluate one kernel, with no site and no Redis",
        description="Exit 0 if the verdict is CORRECT (or COMPILED in mode compile), 1 for any"
        " other verdict of the kernel, 2 for misuse or a broken host.",
    )
    one.add_argument("--task", required=True, help="name of a built-in task, or its folder")
    one.add_argument("--kernel", required=True, type=Path, help="source file, .cu, .cpp or .py")
    one.add_argument(
        "--device",
        choices=[kind.value for kind in DeviceKind],
        help="default: by the file's suffix",
    )
    one.add_argument("--index", type=int, default=0, help="which CUDA device")
    one.add_argument("--direction", choices=[v.value for v in Direction], default="forward")
    one.add_argument(
        "--mode", choices=[mode.value for mode in Mode], default="quick", help="default: quick"
    )
    one.add_argument("--json", type=Path, metavar="OUT", help="write the whole result there")
    one.add_argument("--cache", type=Path, default=default_cache_folder())
    one.add_argument("--allow-unjailed", action="store_true", help="run even without a jail")
    one.set_defaults(run=_evaluate)
    _add_doctor(commands)
    _add_filter(commands)
    _add_baselines(commands)
    work = commands.add_parser("work", help="take jobs from a site's queue, or from a folder")
    daemon.add_arguments(work)
    work.set_defaults(run=_work)
    return parser


def _add_filter(commands: Any) -> None:
    sound = commands.add_parser(
        "filter",
        help="is a task sound? its filters, and wrong kernels made from its reference",
        description="Exit 0 if no filter flags the task and each wrong kernel fails, 1 if not, 2"
        " for misuse or a broken task.",
    )
    sound.add_argument("--task", required=True, help="name of a built-in task, or its folder")
    sound.add_argument("--device", choices=[v.value for v in DeviceKind], default="cpu")
    sound.add_argument("--index", type=int, default=0, help="which CUDA device")
    sound.add_argument(
        "--seeds", type=_one_or_more, default=MUTANT_SEEDS, help="calls of each workload"
    )
    sound.add_argument("--json", type=Path, metavar="OUT", help="write the report there")
    sound.add_argument(
        "--brief",
        action="store_true",
        help="with --json: count what is as it should be, as the reports that come with kbench do",
    )
    sound.add_argument("--allow-unjailed", action="store_true", help="run even without a jail")
    sound.set_defaults(run=_filter)


def _add_baselines(commands: Any) -> None:
    apart = commands.add_parser(
        "baselines",
        help="measure a task's baselines, compiled ones too, and remember them",
        description="`evaluate --mode ranked` measures only what is quick, and compares with what"
        " is remembered. Exit 0 if every baseline was measured, 1 if not, 2 for a broken task.",
    )
    apart.add_argument("--task", required=True, help="name of a built-in task, or its folder")
    apart.add_argument("--device", choices=[v.value for v in DeviceKind], default="cpu")
    apart.add_argument("--index", type=int, default=0, help="which CUDA device")
    apart.add_argument("--direction", choices=[v.value for v in Direction], default="forward")
    apart.add_argument("--cache", type=Path, default=default_cache_folder())
    apart.add_argument("--allow-unjailed", action="store_true", help="run even without a jail")
    apart.set_defaults(run=_baselines)


def _add_doctor(commands: Any) -> None:
    look = commands.add_parser("doctor", help="say what this host can do, and what is missing")
    look.add_argument("--json", type=Path, metavar="OUT")
    look.add_argument(
        "--calibrate",
        action="store_true",
        help="measure bandwidth and arithmetic of the device, and remember them",
    )
    look.add_argument(
        "--device",
        choices=[kind.value for kind in DeviceKind],
        help="of --calibrate; default: every device of this host",
    )
    look.add_argument("--index", type=int, default=0, help="which CUDA device")
    look.add_argument("--cache", type=Path, default=default_cache_folder())
    look.set_defaults(run=_doctor)


def _evaluate(options: argparse.Namespace) -> int:
    _check_out(options.json)
    if not options.kernel.is_file():
        raise DataError("kernel", f"there is no file {str(options.kernel)!r}")
    logging.disable()  # the result itself says what went wrong
    task = find_task(options.task)
    kind = DeviceKind(options.device) if options.device else _kind_of(options.kernel)
    request = _request(task, options, kind)
    config = SupervisorConfig(
        kind=kind,
        index=options.index,
        device=request.device,
        cache_folder=options.cache,
        allow_unjailed=options.allow_unjailed,
    )
    result = evaluate(request, config)
    print(describe(result))
    if options.json:
        options.json.write_text(json.dumps(encode(result), indent=1) + "\n")
    return _exit_status(result)


def _check_out(out: Path | None) -> None:
    """Refuse a place that cannot be written to, before minutes of work are lost to it."""
    if out is None:
        return
    if not out.parent.is_dir():
        raise DataError("json", f"there is no folder {str(out.parent)!r}")
    if out.is_dir():
        raise DataError("json", f"{str(out)!r} is a folder; name a file")


def _kind_of(kernel: Path) -> DeviceKind:
    """The kind of device that the file is for; a CPU where it may be for any."""
    languages = {language.suffix: language for language in Language}
    if kernel.suffix not in languages:
        known = ", ".join(sorted(languages))
        raise DataError("kernel", f"{kernel.name!r} is no kernel's source: use one of {known}")
    return languages[kernel.suffix].device_kinds[-1]


def _request(task: Task, options: argparse.Namespace, kind: DeviceKind) -> EvaluationRequest:
    if options.kernel.stat().st_size > SOURCE_LIMIT_BYTES:
        raise DataError("kernel", f"is larger than {SOURCE_LIMIT_BYTES} bytes")
    source = decoded(options.kernel.read_bytes(), "kernel")
    direction = Direction(options.direction)
    is_module = options.kernel.suffix == Language.PYTHON.suffix
    language = Language.PYTHON if is_module else kind.language
    return EvaluationRequest(
        evaluation_id="local",
        task=task,
        solution=Solution(source=source, language=language, direction=direction),
        mode=Mode(options.mode),
        device=device_slug(kind, options.index),
    )


def _exit_status(result: EvaluationResult) -> int:
    if result.verdict in (Verdict.CORRECT, Verdict.COMPILED):
        return EXIT_CORRECT
    return EXIT_MISUSE if result.verdict is Verdict.SYSTEM_ERROR else EXIT_OTHER_VERDICT


def _filter(options: argparse.Namespace) -> int:
    _check_out(options.json)
    kind = DeviceKind(options.device)
    config = SupervisorConfig(
        kind=kind,
        index=options.index,
        device=device_slug(kind, options.index),
        allow_unjailed=options.allow_unjailed,
    )
    try:
        report = survey(find_task(options.task), config, seeds=options.seeds)
    except (OracleError, JailError, KilledFromOutside) as error:
        print(f"gpu_runner: {error}", file=sys.stderr)
        return EXIT_MISUSE
    print(describe_soundness(report))
    print(_JUDGE)
    if options.json:
        whole = json.dumps(report, indent=1) + "\n"
        options.json.write_text(one_entry_a_line(brief(report)) if options.brief else whole)
    return EXIT_CORRECT if report["passed"] else EXIT_OTHER_VERDICT


def _baselines(options: argparse.Namespace) -> int:
    kind = DeviceKind(options.device)
    config = SupervisorConfig(
        kind=kind,
        index=options.index,
        device=device_slug(kind, options.index),
        cache_folder=options.cache,
        allow_unjailed=options.allow_unjailed,
    )
    task, direction = find_task(options.task), Direction(options.direction)
    try:
        report = measure_baselines(task, direction, config, lambda text: None)
    except (OracleError, JailError, RunnerUnfit) as error:
        print(f"gpu_runner: {error}", file=sys.stderr)
        return EXIT_MISUSE
    for workload, found in report.baselines.items():
        times = ", ".join(f"{name} {duration(each.time_ns)}" for name, each in found.items())
        print(f"  {workload:<28} {times}")
    for where, reason in report.errors.items():
        print(f"  {where}: {reason}")
    return EXIT_OTHER_VERDICT if report.errors else EXIT_CORRECT


def _doctor(options: argparse.Namespace) -> int:
    _check_out(options.json)
    if options.calibrate:
        return _calibrate(options)
    text, fit, facts = doctor(options.cache)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1) + "\n")
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
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1) + "\n")
    return EXIT_CORRECT


def _work(options: argparse.Namespace) -> int:
    # Imported here: evaluate and doctor need neither redis nor rq.
    config = daemon.from_arguments(options, os.environ)
    if options.spool is not None:
        from gpu_runner.daemon.offline import work_spool

        return work_spool(options.spool, config)
    from gpu_runner.daemon.work import work

    return work(config)


if __name__ == "__main__":
    sys.exit(main())
