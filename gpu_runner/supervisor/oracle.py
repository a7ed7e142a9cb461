"""The coordinator's side of the oracle: describes, draws inputs, and afterwards verifies."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gpu_runner.data.codec import decode, encode
from gpu_runner.data.evaluation import Mismatch, OutputError
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.arena import Arena
from gpu_runner.supervisor.channel import Channel, ChannelClosed, ChannelTimeout
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.jail import Jail, Limits, python_paths
from gpu_runner.supervisor.process import ChildProcess


class OracleError(Exception):
    """The task's own code failed, or the oracle did: never the author's fault."""


@dataclass(frozen=True)
class OutputSpec:
    """What the reference returns: checked against what a submission returns."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True)
class Description:
    """Arguments of a call as the oracle described them, and the outputs that it must give."""

    arguments: tuple[Mapping[str, Any], ...]
    outputs: tuple[OutputSpec, ...]

    def tensors(self) -> list[Mapping[str, Any]]:
        """The arguments that are drawn into the inputs arena, lists flattened, in order."""
        return [a for a in _flat(self.arguments) if a["kind"] in ("tensor", "inout")]


def _flat(arguments: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for argument in arguments:
        found += _flat(argument["items"]) if argument["kind"] == "list" else [argument]
    return found


@dataclass(frozen=True)
class Verification:
    """Errors of one call's outputs, and the first output that is wrong."""

    errors: tuple[OutputError, ...]
    mismatch: Mismatch | None


class Oracle:
    """A jailed process that runs the task's code; start it early, for it imports torch."""

    def __init__(self, config: SupervisorConfig, inputs: Arena, taken: Arena) -> None:
        """Start the process; `load` waits until it is there."""
        self._config = config
        self._channel = Channel()
        descriptors = [self._channel.child_descriptor, inputs.descriptor, taken.descriptor]
        program = [sys.executable, "-m", "gpu_runner.engine.oracle", *map(str, descriptors)]
        cuda = config.index if config.kind is DeviceKind.CUDA else None
        # Idle threads must sleep: a spinning oracle would disturb the measurement on a CPU.
        jail = python_jail(config, cuda, environment={"OMP_WAIT_POLICY": "PASSIVE"})
        self._child = ChildProcess(
            jail,
            program,
            jailed=not config.allow_unjailed,
            descriptors=descriptors,
            arenas=descriptors[1:],
        )
        self._channel.started()

    def __enter__(self) -> Oracle:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._channel.close()
        self._child.kill()

    def load(self, task: Task) -> Mapping[str, Any]:
        """Hand over the task; returns the oracle's environment (torch, device_name)."""
        return self._ask(op="load", task=encode(task), device=self._config.kind.value)

    def describe(self, workload: Workload, direction: Direction, seed: int) -> Description:
        """Arguments and outputs of a workload, found with a throw-away seed."""
        answer = self._ask(op="describe", workload=workload.name, direction=direction, seed=seed)
        names = [spec.name for spec in fields(OutputSpec)]
        outputs = tuple(
            decode(OutputSpec, {name: output[name] for name in names})
            for output in answer["outputs"]
        )
        return Description(tuple(answer["arguments"]), outputs)

    def fill(
        self, workload: Workload, direction: Direction, seed: int, offsets: Sequence[int]
    ) -> None:
        """Draw the inputs of a call into the inputs arena."""
        self._ask(
            op="fill",
            workload=workload.name,
            direction=direction,
            seed=seed,
            offsets=list(offsets),
        )

    def verify(
        self, workload: Workload, direction: Direction, seed: int, offsets: Sequence[int]
    ) -> Verification:
        """Compare the outputs taken at these offsets with the reference in float64."""
        outputs = [{"offset": offset} for offset in offsets]
        answer = self._ask(
            op="verify", workload=workload.name, direction=direction, seed=seed, outputs=outputs
        )
        errors, first = [], None
        for output in answer["outputs"]:
            found = output.pop("mismatch")
            name = output.pop("name")
            errors.append(decode(OutputError, {"output": name, **output}))
            if found is not None and first is None:
                first = decode(Mismatch, {"workload": workload.name, "output": name, **found})
        return Verification(tuple(errors), first)

    def _ask(self, **request: Any) -> Mapping[str, Any]:
        self._channel.allow(self._config.oracle_timeout_s)
        try:
            answer = self._channel.ask(request)
        except ChannelTimeout:
            raise OracleError(f"the oracle did not answer {request['op']!r} in time") from None
        except ChannelClosed as error:
            self._child.wait(2)
            reason = "ran out of memory" if self._child.memory_exceeded else f"died ({error})"
            raise OracleError(f"the oracle {reason}:\n{self._child.output[-4000:]}") from None
        if not answer.get("ok"):
            raise OracleError(f"the task's code failed in {request['op']!r}: {answer.get('error')}")
        return answer


def python_jail(
    config: SupervisorConfig,
    cuda_index: int | None,
    paths: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
) -> Jail:
    """The jail of a Python process with torch: the oracle, and the torch ABI's runner."""
    package = Path(__file__).resolve().parents[2]
    limits = Limits(cpu_s=3600, memory_bytes=4 * config.memory_bytes, processes=4096)
    common = {
        "PYTHONPATH": str(package),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor",  # noqa: S108
        "TRITON_CACHE_DIR": "/tmp/triton",  # noqa: S108
    }
    return Jail(
        limits=limits,
        paths=[*python_paths(), *paths],
        environment={**common, **library_path(cuda_index), **(environment or {})},
        cuda_index=cuda_index,
    )


def library_path(cuda_index: int | None) -> dict[str, str]:
    """The host's own search path for libraries, where a CUDA driver needs it."""
    path = os.environ.get("LD_LIBRARY_PATH", "")
    return {"LD_LIBRARY_PATH": path} if cuda_index is not None and path else {}
