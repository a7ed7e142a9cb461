"""The oracle's answers: draws inputs and judges outputs; never loads a submission."""

from __future__ import annotations

import hashlib
import socket
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.symptom import Finding
from gpu_runner.data.task import Part, Task, Values, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.device import torch_settings
from gpu_runner.engine.diagnosis import Case, diagnose
from gpu_runner.engine.oracle.arena import Arena, SampledOutputs
from gpu_runner.engine.oracle.batches import parts
from gpu_runner.engine.oracle.device_calls import DeviceCalls, wait_awake
from gpu_runner.engine.oracle.fingerprint import Fingerprint, fingerprints
from gpu_runner.engine.problem import arguments
from gpu_runner.engine.problem.compare import Limit, ScaleError, compare, limit_of, wrong_elements
from gpu_runner.engine.problem.problem import (
    Drawn,
    Problem,
    ProblemError,
    load_problem,
    map_tensors,
    outputs_of,
    write_files,
)
from gpu_runner.engine.runner.failure import lacks

if TYPE_CHECKING:
    from gpu_runner.engine.soundness.soundness import Soundness

_NO_SENSE = 1e300  # an error beyond any bound

Request = dict[str, Any]
Answer = dict[str, Any]

_DRAWS_NOTHING = frozenset({"completed", "sample", "digest", "forget_calls", "rest"})
"""Operations after which PyTorch isn't asked how much it keeps: that takes longer than they do."""


@dataclass
class Loaded:
    """The task that the oracle works for, and what it knows of it."""

    task: Task
    device: str
    problem: Problem
    folder: tempfile.TemporaryDirectory[str]
    outputs: dict[tuple[str, Direction], list[arguments.Described]] = field(default_factory=dict)
    drawn: dict[tuple[str, Values, Direction, int], Fingerprint] = field(default_factory=dict)
    fixed: dict[tuple[str, Direction], list[tuple[str, object]]] = field(default_factory=dict)
    soundness: Soundness | None = None

    def workload(self, name: str) -> Workload:
        """The workload of that name. Raises `ProblemError` if there is none."""
        for workload in self.task.workloads:
            if workload.name == name:
                return workload
        raise ProblemError(f"the task has no workload {name!r}")


Subject = tuple[Loaded, Workload, Direction, int]
"""Of which workload and direction a request is, and with which seed."""


class Oracle:
    """Answers requests, one at a time; an answer is a JSON object."""

    def __init__(self, handles: socket.socket) -> None:
        """`handles` carries descriptors: of arenas from the supervisor, of the device's to it."""
        self._handles = handles
        self._inputs, self._samples = Arena(-1, writable=True), Arena(-1, writable=True)
        self._sampled = SampledOutputs(self._samples, "cpu")
        self._device: DeviceCalls | None = None
        self._loaded: Loaded | None = None
        self._handlers: dict[str, Callable[[Request], Answer]] = {
            "load": self._load,
            "describe": self._describe,
            "fill": self._fill,
            "share": self._share,
            "stage": self._stage,
            "forget_calls": self._forget_calls,
            "rest": self._rest,
            "completed": self._completed,
            "withdraw": self._withdraw,
            "check": self._check,
            "sample": self._sample,
            "digest": self._digest,
            "own_error": self._own_error,
            "verify": self._verify,
            "mutants": self._mutants,
            "filters": self._filters,
            "parts": self._parts,
            "sizes": self._sizes,
        }

    def answer(self, request: Request) -> Answer:
        """{"ok": true, ...}, or {"ok": false, "error": text} whatever the task's code does.

        With "lacks" where there was not enough of something (`failure.lacks`).
        """
        handler = self._handlers.get(request.get("op", ""))
        if handler is None:
            return {"ok": False, "error": f"unknown operation {request.get('op')!r}"}
        try:
            with torch.no_grad():
                return {"ok": True, **handler(request)}
        except (ProblemError, DataError, ScaleError) as error:
            return _failed(str(error), error)
        except (Exception, SystemExit) as error:  # the task's code may raise anything
            return _failed(account_of(error), error)
        finally:
            if request.get("op") not in _DRAWS_NOTHING:
                self._forget()

    def _load(self, request: Request) -> Answer:
        task = codec.decode(Task, request["task"], "task")
        device = request["device"]
        _, (inputs, samples), _, _ = socket.recv_fds(self._handles, 16, 2)
        self._inputs.close()
        self._samples.close()
        self._inputs, self._samples = Arena(inputs, writable=True), Arena(samples, writable=True)
        if device == "cuda" and not torch.cuda.is_available():
            raise ProblemError("this host has no CUDA device that PyTorch can use")
        self._sampled = SampledOutputs(self._samples, device)
        folder = write_files(task)
        self._loaded = Loaded(task, device, load_problem(task, Path(folder.name)), folder)
        return {"torch": torch.__version__, "device_name": torch_settings.device_name(device)}

    def _describe(self, request: Request) -> Answer:
        loaded, workload, direction, seed = self._subject(request)
        drawn = loaded.problem.draw(workload, direction, seed, loaded.device)
        outputs = arguments.as_signature_says(loaded.task, run_once(loaded, direction, drawn))
        described = arguments.describe_outputs(loaded.task, outputs)
        loaded.outputs[workload.name, direction] = described
        fixed = arguments.fixed_part(loaded.task, workload, drawn)
        loaded.fixed[workload.name, direction] = fixed
        made = getattr(loaded.problem, "model_call", None)  # of KernelBench's format
        return {
            **({} if made is None else {"model": made()}),
            "arguments": arguments.describe_arguments(loaded.task, workload, drawn, outputs),
            "outputs": described,
        }

    def _fill(self, request: Request) -> Answer:
        [tensors] = self._draw(self._subject(request))
        for tensor, offset in zip(tensors, request["offsets"], strict=True):
            self._inputs.tensor(offset, tensor.dtype, tuple(tensor.shape)).copy_(tensor)
        return {}

    def _share(self, request: Request) -> Answer:
        self._device = DeviceCalls(request["inputs"], request["outputs"])
        socket.send_fds(self._handles, [b"handles"], self._device.descriptors)
        return {"sizes": self._device.sizes}

    def _stage(self, request: Request) -> Answer:
        device, calls = self._on_device(), request["calls"]
        device.probes_ns = []
        device.probe()
        drawn = self._draw(*(self._subject({**request, "seed": c["seed"]}) for c in calls))
        device.poison(request["low"], request["high"], request["poison"])
        device.mislead(calls, request["poison"])
        device.stage(calls, drawn)  # the true inputs come last
        device.make_cold()
        device.probe()
        return {"probes_ns": device.probes_ns}

    def _forget_calls(self, request: Request) -> Answer:
        self._on_device().forget()
        return {}

    def _rest(self, request: Request) -> Answer:
        torch.cuda.empty_cache()
        return {}

    def _completed(self, request: Request) -> Answer:
        device = self._on_device()
        wait_awake(self._handles)
        return {"at_ns": device.completed_ns()}

    def _withdraw(self, request: Request) -> Answer:
        self._on_device().withdraw()
        return {}

    def _check(self, request: Request) -> Answer:
        device = self._on_device()
        found = device.check()
        device.probes_ns = []
        device.probe()  # now: before its next call, the runner waits for the work that it left
        return {**found, "probes_ns": device.probes_ns}

    def _sample(self, request: Request) -> Answer:
        device = self._on_device()
        for begin, to, nbytes in request["copies"]:
            self._sampled.bytes(to, to + nbytes).copy_(device.copy_out(begin, nbytes))
        return {}

    def _digest(self, request: Request) -> Answer:
        found = hashlib.sha256()
        for at, nbytes in request["places"]:
            found.update(self._sampled.bytes(at, at + nbytes).cpu().numpy().tobytes())
        return {"digest": found.hexdigest()}

    def _on_device(self) -> DeviceCalls:
        if self._device is None:
            raise ProblemError("no device memory has been allocated")
        return self._device

    def _own_error(self, request: Request) -> Answer:
        subject = self._subject(request)
        try:
            return {"scaled": own_error(*subject)}
        except (Exception, SystemExit):  # it makes no sense of such values
            return {"scaled": _NO_SENSE}

    def _verify(self, request: Request) -> Answer:
        loaded, workload, direction, seed = self._subject(request)
        self._draw(self._subject(request))
        problem, device = loaded.problem, loaded.device
        actuals = self._sampled_outputs(request)
        own = problem.verified(workload, direction, seed, device, actuals)
        if own is not None:
            return {"outputs": [{"name": n, "findings": [], **asdict(each)} for n, each in own]}
        expected = problem.expected(workload, direction, seed, device)
        scales = problem.scale(workload, direction, seed, device, expected)
        limit = limit_of(loaded.task, workload)
        answers: list[Answer] = []
        explains = bool(request.get("explain"))
        for index, (name, actual) in enumerate(actuals.items()):
            arguments.check_shape(name, actual, expected, index)
            scale = None if scales is None else scales[index]
            result = compare(actual, expected[index], limit, scale)
            findings: tuple[Finding, ...] = ()
            if result.mismatch is not None and explains:  # of the first that is wrong
                explains, length = False, loaded.task.reduction_length(workload)
                findings = explain(actual, expected[index], limit, scale, result.scaled, length)
            answer = {"name": name, "findings": codec.encode(findings)}
            answers.append({**answer, **asdict(result)})
        return {"outputs": answers}

    def _sampled_outputs(self, request: Request) -> dict[str, Tensor]:
        """What a kernel wrote in the call that a request is about, by the outputs' names."""
        loaded, workload, direction, _ = self._subject(request)
        described = loaded.outputs.get((workload.name, direction))
        if described is None:
            described = self._describe(request)["outputs"]
        return {
            entry["name"]: self._sampled.tensor(
                place["offset"], getattr(torch, entry["dtype"]), tuple(entry["shape"])
            ).to(loaded.device)
            for entry, place in zip(described, request["outputs"], strict=True)
        }

    def _mutants(self, request: Request) -> Answer:
        # Imported here: evaluations need none of it, and it takes PyTorch's decompositions along.
        from gpu_runner.engine.soundness.soundness import Soundness

        loaded, workload, direction, seed = self._subject(request)
        if loaded.soundness is None:
            loaded.soundness = Soundness(loaded.problem, loaded.device)
        return loaded.soundness.step(workload, direction, seed, set(request["settled"]))

    def _filters(self, request: Request) -> Answer:
        from gpu_runner.engine.soundness.filters import facts_of

        loaded, workload, direction, _ = self._subject(request)
        problem = loaded.problem
        return facts_of(problem, workload, direction, request["seeds"], loaded.device)

    def _parts(self, request: Request) -> Answer:
        loaded, workload, direction, seed = self._subject(request)
        found = parts(loaded.problem, workload, direction, seed, loaded.device)
        return {"parts": [(part.counted, part.items) for part in found]}

    def _sizes(self, request: Request) -> Answer:
        from gpu_runner.engine.formats import kernelbench, sizes

        problem = self._loaded.problem if self._loaded is not None else None
        if not isinstance(problem, kernelbench.KernelBenchProblem):
            raise ProblemError("only a KernelBench file can be run with different sizes")
        return sizes.run(problem, request["sizes"], really=request["really"])

    def _draw(self, *subjects: Subject) -> list[list[Tensor]]:
        """The input tensors of each, the same as at the last draw with that seed."""
        drawn = [_input_tensors(*subject) for subject in subjects]
        for (loaded, workload, direction, seed), found in zip(
            subjects, fingerprints(drawn), strict=True
        ):
            key = (workload.name, workload.values, direction, seed)
            if loaded.drawn.setdefault(key, found) != found:
                reason = (
                    "make_inputs gave different inputs when it was called again with the same seed"
                )
                raise ProblemError(reason)
        return drawn

    def _subject(self, request: Request) -> Subject:
        if self._loaded is None:
            raise ProblemError("no task is loaded")
        workload = self._loaded.workload(request["workload"])
        if values := request.get("values"):
            workload = replace(workload, values=Values(values))
        if part := request.get("part"):
            workload = Part.of(workload, **part)
        return self._loaded, workload, Direction(request["direction"]), int(request["seed"])

    def _forget(self) -> None:
        if self._loaded is not None:
            self._loaded.problem.forget()
        torch_settings.give_memory_back()


def _input_tensors(
    loaded: Loaded, workload: Workload, direction: Direction, seed: int
) -> list[Tensor]:
    drawn = loaded.problem.draw(workload, direction, seed, loaded.device)
    described = loaded.fixed.get((workload.name, direction))
    fixed = arguments.fixed_part(loaded.task, workload, drawn)
    for before, now in zip(described or fixed, fixed, strict=False):
        if repr(before) != repr(now):  # a NaN is no other value than a NaN
            raise ProblemError(
                f"make_inputs gave {now[0]} as {now[1]} for one seed and {before[1]} for "
                "another: plain values and sizes must depend only on the workload"
            )
    return arguments.input_tensors(loaded.task, workload, drawn)


def run_once(loaded: Loaded, direction: Direction, drawn: Drawn) -> tuple[Tensor, ...]:
    """The eager results in the task's dtype; works on a copy of the inputs."""
    copies = map_tensors(torch.clone, drawn.arguments)
    with torch.no_grad(), torch.device(loaded.device):
        return outputs_of(loaded.problem.function(direction)(*copies))


def own_error(loaded: Loaded, workload: Workload, direction: Direction, seed: int) -> float:
    """Largest error of the eager result in the task's dtype, as a part of its bound."""
    problem, device = loaded.problem, loaded.device
    drawn = problem.draw(workload, direction, seed, device)
    outputs = arguments.as_signature_says(loaded.task, run_once(loaded, direction, drawn))
    names = arguments.output_names(loaded.task, len(outputs))
    by_name = dict(zip(names, outputs, strict=True))
    own = problem.verified(workload, direction, seed, device, by_name)
    if own is not None:
        return max(_NO_SENSE if each.mismatch else each.scaled for _, each in own)
    expected = problem.expected(workload, direction, seed, device)
    scales = problem.scale(workload, direction, seed, device, expected) or [None] * len(expected)
    limit = limit_of(loaded.task, workload)
    rows = zip(outputs, expected, scales, strict=True)
    found = [compare(actual, wanted, limit, scale) for actual, wanted, scale in rows]
    return max(_NO_SENSE if each.mismatch else each.scaled for each in found)


def explain(
    actual: Tensor,
    expected: Tensor,
    limit: Limit,
    scale: Tensor | None,
    worst: float,
    length: float,
) -> tuple[Finding, ...]:
    """What a wrong output looks like; nothing where that fails, for the verdict stands without."""
    try:
        wrong = wrong_elements(actual, expected, limit, scale)
        return diagnose(Case(actual, expected, wrong, limit.factor, scale, worst, length))
    except Exception:  # such as no memory for it
        return ()


def _failed(text: str, error: BaseException) -> Answer:
    lacking = lacks(error)
    return {"ok": False, "error": text, **({"lacks": lacking} if lacking else {})}


def account_of(error: BaseException) -> str:
    """What was raised and where in the task's code, in one line or a few."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = "\n".join(str(error).splitlines()[:5])[:1000]
    return f"{type(error).__name__}: {text}{where}"
