"""Command line of the engine: evaluate a kernel, look at this host, or work for a site."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from pathlib import Path

from gpu_runner.daemon import config as daemon
from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES, Solution
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from gpu_runner.supervisor.config import SupervisorConfig, default_cache_folder
from gpu_runner.supervisor.device import DeviceError, device_slug
from gpu_runner.supervisor.doctor import doctor
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.report import describe

EXIT_CORRECT, EXIT_OTHER_VERDICT, EXIT_MISUSE = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status (see `--help`)."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (DataError, DeviceError, OSError) as error:
        print(f"gpu_runner: {error}", file=sys.stderr)
        return EXIT_MISUSE


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
    one.add_argument("--kernel", required=True, type=Path, help="source file, .cu or .cpp")
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
    look = commands.add_parser("doctor", help="say what this host can do, and what is missing")
    look.add_argument("--json", type=Path, metavar="OUT")
    look.set_defaults(run=_doctor)
    work = commands.add_parser("work", help="take jobs from a site's queue")
    daemon.add_arguments(work)
    work.set_defaults(run=_work)
    return parser


def _evaluate(options: argparse.Namespace) -> int:
    if options.json and not options.json.parent.is_dir():
        raise DataError("json", f"there is no folder {str(options.json.parent)!r}")
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


def _kind_of(kernel: Path) -> DeviceKind:
    languages = {language.suffix: language for language in Language}
    if kernel.suffix not in languages:
        raise DataError("kernel", f"{kernel.name!r} is neither .cu nor .cpp; give --device")
    return languages[kernel.suffix].device_kind


def _request(task: Task, options: argparse.Namespace, kind: DeviceKind) -> EvaluationRequest:
    if options.kernel.stat().st_size > SOURCE_LIMIT_BYTES:
        raise DataError("kernel", f"is larger than {SOURCE_LIMIT_BYTES} bytes")
    source = options.kernel.read_text(errors="replace")
    direction = Direction(options.direction)
    return EvaluationRequest(
        evaluation_id="local",
        task=task,
        solution=Solution(source=source, language=kind.language, direction=direction),
        mode=Mode(options.mode),
        device=device_slug(kind, options.index),
    )


def _exit_status(result: EvaluationResult) -> int:
    if result.verdict in (Verdict.CORRECT, Verdict.COMPILED):
        return EXIT_CORRECT
    return EXIT_MISUSE if result.verdict is Verdict.SYSTEM_ERROR else EXIT_OTHER_VERDICT


def _doctor(options: argparse.Namespace) -> int:
    text, fit, facts = doctor()
    print(text)
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1) + "\n")
    return EXIT_CORRECT if fit else EXIT_MISUSE


def _work(options: argparse.Namespace) -> int:
    # Imported here: evaluate and doctor need neither redis nor rq.
    from gpu_runner.daemon.work import work

    return work(daemon.from_arguments(options, os.environ))


if __name__ == "__main__":
    sys.exit(main())
