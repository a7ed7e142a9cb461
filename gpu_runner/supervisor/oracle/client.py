"""The supervisor's side of the oracle: describes, draws inputs, and afterwards verifies."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from gpu_runner.data.codec import decode, encode
from gpu_runner.data.environment import OracleFacts
from gpu_runner.data.evaluation import Mismatch, OutputError
from gpu_runner.data.task import Part, Task, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.device.lock import device_lock
from gpu_runner.supervisor.host import living, nvml
from gpu_runner.supervisor.host.arena import Arena, DeviceArena
from gpu_runner.supervisor.host.channel import Channel, ChannelClosed, ChannelTimeout
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import Jail, Limits, python_environment, python_paths
from gpu_runner.supervisor.host.killed import DYING_S, KilledFromOutside, is_from_outside
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.oracle.subject import of_call

_NAME = "the oracle, which runs the task's code,"
_WANTED_MEMORY = re.compile(r"\bbad_alloc\b|\bMemoryError\b|(?:[Aa]|re)llocate memory")
"""In the last words of a process that could not be told that it gets none."""


Completion = Callable[[Callable[[], None]], int]
"""Says when a device had no more work, by the monotonic clock; calls its argument meanwhile."""


class OracleError(Exception):
    """The task's own code failed, or the oracle did: never the author's fault."""


class OutOfMemory(OracleError):
    """The task's own code needs more memory than there is."""


class OutOfSharedMemory(OutOfMemory):
    """The task's code needs more device memory than waiting evaluations leave free."""


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
    model: Mapping[str, object] | None = None
    """How a submission's own model is made, where the task has one (`engine.model_weights`)."""

    def as_setup(self, workload: str, direction: Direction) -> dict[str, object]:
        """What a torch runner is told of a workload before it is called."""
        return {
            "workload": workload,
            "direction": direction.value,
            "arguments": list(self.arguments),
            "outputs": [asdict(output) for output in self.outputs],
            **({} if self.model is None else {"model": self.model}),
        }

    def tensors(self) -> list[Mapping[str, Any]]:
        """The arguments that are drawn into the inputs arena, lists flattened, in order."""
        return [a for a in _flat(self.arguments) if a["kind"] in ("tensor", "inout")]

    @property
    def names(self) -> list[str]:
        """Of the arguments."""
        return [str(argument["name"]) for argument in self.arguments]

    def count(self) -> int:
        """The most arguments that a call can have on the wire: lists flattened, and outputs."""
        return len(_flat(self.arguments)) + len(self.outputs)


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
    """A jailed process that runs the task's code; start it early, for it imports torch.

    `failed` says that a request found no answer, or an error: what it does next is not known. Every
    request raises `OracleError`, or `KilledFromOutside` where this host has ended the process.
    """

    def __init__(self, config: SupervisorConfig, *, ahead: bool = False) -> None:
        """Start the process; `load` waits until it is there.

        ahead: of any evaluation: it opens the device while nobody measures, and whoever it is
        lent to calls `adopt`.
        """
        self.failed = False
        self._config = config
        self._channel = Channel()
        self._handles, handles = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        descriptors = [self._channel.child_descriptor, handles.fileno()]
        words = [config.kind.value] if ahead else []
        lock = device_lock(config) if ahead else None
        if lock is not None:
            descriptors.append(lock)
        program = [
            sys.executable,
            "-m",
            "gpu_runner.engine.oracle.oracle_main",
            *map(str, descriptors),
            *words,
        ]
        cuda = config.index if config.kind is DeviceKind.CUDA else None
        # Idle threads must sleep: a spinning oracle would disturb the measurement on a CPU.
        jail = python_jail(config, cuda, environment={"OMP_WAIT_POLICY": "PASSIVE"})
        if cuda is None:  # whose driver reserves far more than it takes
            jail = replace(jail, limits=replace(jail.limits, refuses_memory=True))
        self._child = ChildProcess(
            jail,
            program,
            jailed=not config.allow_unjailed,
            descriptors=descriptors,
        )
        living.note(config, self._child.pid)
        if not ahead:
            self._child.watch()
        self._channel.started()
        handles.close()
        if lock is not None:
            os.close(lock)

    def adopt(self) -> None:
        """Answer for the process from now on, in this process: maybe a fork of its parent."""
        self._child.adopt()

    @property
    def pid(self) -> int:
        """Id of its jail's outermost process."""
        return self._child.pid

    def __enter__(self) -> Oracle:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._child.running

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        self._handles.close()
        self._child.kill()
        living.forget(self._config, self._child.pid)

    def load(self, task: Task, inputs: Arena, samples: Arena) -> OracleFacts:
        """Hand over the task, and where to draw inputs and find the sampled outputs.

        Whatever was loaded is forgotten.
        """
        self._child.arenas = (inputs.descriptor, samples.descriptor)
        with self._answering("load"):
            socket.send_fds(self._handles, [b"arenas"], self._child.arenas)
        answer = self._ask(op="load", task=encode(task), device=self._config.kind.value)
        return decode(OracleFacts, answer, "oracle")

    def describe(self, workload: Workload, direction: Direction, seed: int) -> Description:
        """Arguments and outputs of a workload, found with a throw-away seed."""
        answer = self._ask(op="describe", **of_call(workload, direction, seed))
        names = [spec.name for spec in fields(OutputSpec)]
        outputs = tuple(
            decode(OutputSpec, {name: output[name] for name in names})
            for output in answer["outputs"]
        )
        return Description(tuple(answer["arguments"]), outputs, answer.get("model"))

    def parts(self, workload: Workload, direction: Direction, seed: int) -> list[Part]:
        """Some of the workload's items alone; see `engine.oracle.batches`."""
        answer = self._ask(op="parts", **of_call(workload, direction, seed))
        return [Part.of(workload, counted, items) for counted, items in answer["parts"]]

    def fill(
        self, workload: Workload, direction: Direction, seed: int, offsets: Sequence[int]
    ) -> None:
        """Draw the inputs of a call into the inputs arena."""
        self._ask(op="fill", **of_call(workload, direction, seed), offsets=list(offsets))

    def share(self, inputs: int, outputs: int) -> tuple[DeviceArena, DeviceArena]:
        """Have memory of the device made, of at least so many bytes, that runners can import."""
        sizes = self._ask(op="share", inputs=inputs, outputs=outputs)["sizes"]
        with self._answering("share"):
            self._handles.settimeout(self._config.oracle_timeout_s)
            _, found, _, _ = socket.recv_fds(self._handles, 16, 2)
            if len(found) != len(sizes):
                raise ChannelClosed("no handles to the device's memory")
        self.failed = False
        first, second = (DeviceArena(fd, size) for fd, size in zip(found, sizes, strict=True))
        return first, second

    def stage(self, calls: Sequence[Mapping[str, Any]], **request: Any) -> Mapping[str, Any]:
        """Draw and poison calls in the device's memory; see `engine.device_calls`."""
        return self._ask(op="stage", calls=list(calls), **request)

    def forget_calls(self) -> None:
        """Have nothing of the calls so far left in the device's memory that runners map."""
        self._ask(op="forget_calls")

    def rest(self) -> None:
        """Return device memory that isn't in use."""
        self._ask(op="rest")

    @contextmanager
    def completion(self) -> Iterator[Completion]:
        """Have the oracle wait for a word, so that it looks at the device without delay.

        What is yielded gives that word, calls its argument while the oracle looks, and returns when
        trifles on the device were done, and so all work before them, by the monotonic clock.
        """
        told = False

        def completed_ns(meanwhile: Callable[[], None]) -> int:
            nonlocal told
            told = True
            with self._answering("completed"):
                self._handles.send(b"!")
                meanwhile()
                answer = self._channel.answer()
            return int(self._checked(answer, "completed")["at_ns"])

        with self._answering("completed"):
            self._channel.post({"op": "completed"})
        try:
            yield completed_ns
        finally:
            if not told:
                completed_ns(lambda: None)

    def withdraw(self) -> None:
        """Note whether the inputs that were staged last have changed, and overwrite them."""
        self._ask(op="withdraw")

    def check(self) -> Mapping[str, Any]:
        """What the calls that were staged last did to guard bands and inputs."""
        return self._ask(op="check")

    def sample(self, copies: Sequence[tuple[int, int, int]]) -> None:
        """Copy (from, to, bytes) out of the device's outputs into the arena of samples."""
        self._ask(op="sample", copies=[list(copy) for copy in copies])

    def digest(self, places: Sequence[tuple[int, int]]) -> str:
        """SHA-256 of what was sampled at these places (from, bytes), wherever it is held."""
        return str(self._ask(op="digest", places=[list(place) for place in places])["digest"])

    def own_error(self, workload: Workload, direction: Direction, seed: int) -> float:
        """How far the reference in the task's dtype is off on one call, as a part of the bound."""
        answer = self._ask(op="own_error", **of_call(workload, direction, seed))
        return float(answer["scaled"])

    def verify(
        self,
        workload: Workload,
        direction: Direction,
        seed: int,
        offsets: Sequence[int],
        *,
        explain: bool,
    ) -> Verification:
        """Compare the outputs sampled at these offsets with the reference in float64.

        explain: say also what the first wrong one looks like.
        """
        outputs = [{"offset": offset} for offset in offsets]
        call = of_call(workload, direction, seed)
        answer = self._ask(op="verify", **call, outputs=outputs, explain=explain)
        errors, first = [], None
        for output in answer["outputs"]:
            found, findings = output.pop("mismatch"), output.pop("findings")
            name = output.pop("name")
            errors.append(decode(OutputError, {"output": name, **output}))
            if found is not None and first is None:
                found |= {"workload": workload.name, "output": name, "findings": findings}
                first = decode(Mismatch, found)
        return Verification(tuple(errors), first)

    def _ask(self, **request: Any) -> Mapping[str, Any]:
        with self._answering(request["op"]):
            answer = self._channel.ask(request)
        return self._checked(answer, request["op"])

    @contextmanager
    def _answering(self, operation: str) -> Iterator[None]:
        """Sets a deadline, and says what became of an oracle that gives no answer."""
        self._channel.allow(self._config.oracle_timeout_s)
        self.failed = True
        try:
            yield
        except (ChannelTimeout, TimeoutError):
            limit_s = self._config.oracle_timeout_s
            reason = f"did not answer {operation!r} within {limit_s:g} s"
            if self._child.stopped:
                raise KilledFromOutside(f"{_NAME} {reason}: somebody stopped it") from None
            raise OracleError(f"{_NAME} {reason}") from None
        except (ChannelClosed, OSError) as error:
            status = self._child.wait(DYING_S)
            if is_from_outside(status) and not self._child.ended_by_us:
                raise KilledFromOutside(f"{_NAME} was killed from outside") from None
            words = self._child.output[-4000:].strip()
            if self._child.memory_exceeded or _WANTED_MEMORY.search(words):
                raise OutOfMemory(self._ran_out(words)) from None
            became = "gave an invalid answer" if status is None else "died"
            raise OracleError(
                f"{_NAME} {became} ({error})" + (f":\n{words}" if words else "")
            ) from None

    def _ran_out(self, words: str) -> str:
        limit = self._child.memory_limit
        return f"the task's reference ran out of memory (limit {limit})\n{words}".strip()

    def _checked(self, answer: Mapping[str, Any], operation: str) -> Mapping[str, Any]:
        if answer.get("lacks") == "memory":
            raise OutOfMemory(self._ran_out(str(answer.get("error"))))
        if answer.get("lacks"):
            lacks = "the task's reference ran out of the device's memory"
            if {*living.holders(self._config)} - {self.pid}:
                lacks = f"{lacks} while other evaluations held some of it\n{answer.get('error')}"
                raise OutOfSharedMemory(lacks)
            raise OutOfMemory(f"{lacks}\n{answer.get('error')}")
        if not answer.get("ok"):
            raise OracleError(f"the task's code failed in {operation!r}: {answer.get('error')}")
        self.failed = False
        return answer


def python_jail(
    config: SupervisorConfig,
    cuda_index: int | None,
    paths: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
) -> Jail:
    """The jail of a Python process with torch: the oracle, and the torch ABI's runner."""
    limits = Limits(cpu_s=3600, memory_bytes=4 * config.memory_bytes, processes=4096)
    common = {
        **python_environment(),
        "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor",  # noqa: S108
        "TRITON_CACHE_DIR": "/tmp/triton",  # noqa: S108
    }
    return Jail(
        limits=limits,
        paths=[*python_paths(), *paths],
        environment={**common, **cuda_environment(cuda_index), **(environment or {})},
        cuda_index=cuda_index,
    )


def cuda_environment(cuda_index: int | None) -> dict[str, str]:
    """What tells a program of its one GPU, and the driver's libraries; empty without a GPU."""
    if cuda_index is None:
        return {}
    path = os.environ.get("LD_LIBRARY_PATH", "")
    found = {"LD_LIBRARY_PATH": path} if path else {}
    return {**found, "CUDA_VISIBLE_DEVICES": nvml.uuid(cuda_index)}
