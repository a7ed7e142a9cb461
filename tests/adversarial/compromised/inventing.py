"""Results as somebody invents them who has seen the order, and never ran the kernel."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.order import Order
from gpu_runner.data.protocol import PLANS
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind

_CALLS = 40
_TIME_NS = 50_000.0


def invented(order: Order, **changes: Any) -> dict[str, Any]:
    """A result that fits together, as an encoded document; `changes` replace fields of it."""
    request = codec.decode(EvaluationRequest, order.request)
    plan = PLANS[request.mode]
    wanted = request.task.workloads_for(
        DeviceKind.CPU, request.solution.direction, hidden=plan.hidden
    )
    stages = [
        {"stage": stage, "started_s": 0.0, "duration_s": 0.1}
        for stage in ("build", "measure", "verify")
    ]
    document: dict[str, Any] = {
        "evaluation_id": request.evaluation_id,
        "attempt": request.attempt,
        "verdict": "CORRECT",
        "reason": "all outputs are right",
        "mode": request.mode.value,
        "device": request.device,
        "task": request.task.name,
        "task_digest": request.task.digest(),
        "solution_digest": request.solution.digest(),
        "latency_ns": _TIME_NS,
        "build": _BUILD,
        "stages": stages,
        "workloads": [
            {
                "name": each.name,
                "parameters": dict(each.parameters),
                "hidden": each.hidden,
                "measurement": _measurement(_TIME_NS) if each.timed else None,
                "processes": [_process(n) for n in range(plan.processes)],
                **_work(request, each),
            }
            for each in wanted
        ],
    }
    return {**document, **changes}


_BUILD: Mapping[str, Any] = {
    **{"ok": True, "cached": False, "duration_s": 0.1, "log": "", "command": "g++"},
    **{"compiler": "g++ 12", "digest": "0" * 64},
}


def _measurement(time_ns: float) -> dict[str, Any]:
    return {"time_ns": time_ns, "low_ns": time_ns, "high_ns": time_ns, "calls": _CALLS}


def _work(request: EvaluationRequest, workload: Workload) -> dict[str, Any]:
    cost = request.task.cost(workload, request.solution.direction)
    return {"flops": cost.flops, "bytes": cost.bytes, "weight": cost.weight} if cost else {}


def _process(number: int) -> dict[str, Any]:
    return {
        "process": number,
        "times_ns": [_TIME_NS] * _CALLS,
        "seeds": list(range(_CALLS)),
        "verified": [0, 1],
    }


def with_processes(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The result, with fields of each process replaced."""
    workloads = [
        {**each, "processes": [{**process, **changes} for process in each["processes"]]}
        for each in document["workloads"]
    ]
    return {**document, "workloads": workloads}


def with_workloads(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The result, with fields of each workload replaced."""
    return {**document, "workloads": [{**each, **changes} for each in document["workloads"]]}


def against(document: dict[str, Any], name: str, time_ns: float) -> dict[str, Any]:
    """The result, with a baseline of that time and all speedups that follow from it."""
    ratio = time_ns / _TIME_NS
    speedups = {name: ratio, "best": ratio}
    timed = {"baselines": {name: _measurement(time_ns)}, "speedups": speedups}
    workloads = [{**w, **(timed if w["measurement"] else {})} for w in document["workloads"]]
    means = {"speedups": speedups, "unlisted_speedups": speedups, "p_score": ratio}
    return {**document, "workloads": workloads, **means}


def in_one_ns(document: dict[str, Any]) -> dict[str, Any]:
    """The result, with a time of a nanosecond that no call has taken."""
    time = {"measurement": _measurement(1.0)}
    workloads = [{**w, **(time if w["measurement"] else {})} for w in document["workloads"]]
    return {**document, "workloads": workloads, "latency_ns": 1.0}


def started() -> dict[str, Any]:
    """What the event says with which a job begins."""
    return {"runner": "host", "at": time.time()}
