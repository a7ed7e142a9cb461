"""Asks programs again what they told a submission's process, in a jail of their own."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from gpu_runner.data.archive import PROGRAMS, written
from gpu_runner.supervisor.build.module import module_environment
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import sealed, unnamed
from gpu_runner.supervisor.host.jail import Jail, Limits, python_environment, python_paths
from gpu_runner.supervisor.host.process import ChildProcess

_MOST = 100  # chosen: compilers of kernels ask some ten
_KEY_CHARACTERS = 4000  # chosen: a long command line of a compiler
_LIMIT_BYTES = 4 << 20  # chosen: answers are short
_PATIENCE_S = 60.0  # the program gives up earlier


def asked_again(
    claimed: bytes | None, known: bytes | None, files: Mapping[str, bytes], config: SupervisorConfig
) -> bytes:
    """Answers to the commands of `claimed`, which a submission's process wrote.

    known: what was answered like this before, and is not asked again. files: of the archive, since
    some programs look at what was compiled.
    """
    before = json.loads(known) if known else {}
    new = {key: told for key, told in _asked(claimed).items() if key not in before}
    return json.dumps({**before, **(_answers(new, files, config) if new else {})}).encode()


def _asked(claimed: bytes | None) -> dict[str, object]:
    """Commands that a process may have run, with how it took their answers."""
    try:
        told = json.loads(claimed or b"{}")
        items = list(told.items())[:_MOST]
        return {key: _way(told) for key, told in items if _is_command(key)}
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def _is_command(key: str) -> bool:
    command, folder, own = json.loads(key) if len(key) <= _KEY_CHARACTERS else ([], None, {})
    words = [command] if isinstance(command, str) else command
    every = [*words, folder or "", *own, *own.values()]
    return bool(words) and all(isinstance(word, str) for word in every)


def _way(told: Any) -> dict[str, Any]:
    kinds = {name: told[name] and [str(told[name][0]), ""] for name in ("stdout", "stderr")}
    return {"code": int(told["code"]), "merged": bool(told["merged"]), **kinds}


def _answers(asked: dict[str, Any], files: Mapping[str, bytes], config: SupervisorConfig) -> Any:
    program = [sys.executable, "-m", "gpu_runner.engine.runner.programs", PROGRAMS]
    jail = Jail(
        limits=Limits(
            cpu_s=int(_PATIENCE_S), memory_bytes=config.memory_bytes, processes=config.processes
        ),
        paths=python_paths(),
        files={PROGRAMS: json.dumps(asked)},
        environment={**python_environment(), **module_environment(config)},
    )
    with unnamed("answers") as file, sealed("archive", written(files)) as given:
        descriptors = [given.fileno(), file.fileno()]
        with ChildProcess(
            jail,
            [*program, *map(str, descriptors)],
            jailed=not config.allow_unjailed,
            descriptors=descriptors,
        ) as child:
            status = child.wait(_PATIENCE_S)
        with contextlib.suppress(ValueError, TypeError, RecursionError):  # a command may write it
            if status == 0:
                return dict(json.loads(os.pread(file.fileno(), _LIMIT_BYTES, 0)))
        return {}
