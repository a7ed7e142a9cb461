"""Attacks on what the site believes: events and results of jobs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.order import Order
from tests.adversarial.compromised import inventing
from tests.adversarial.compromised.contract import (
    CATALOGUE,
    HTTPS,
    REDIS,
    Attack,
    attack,
    require,
)
from tests.adversarial.compromised.doors import Door
from tests.adversarial.compromised.inventing import (
    against,
    in_one_ns,
    with_processes,
    with_workloads,
)
from tests.adversarial.compromised.world import FOREIGN, World

_HOLDER = "an event counts only from the runner that holds the attempt"


def _order(job_id: str, attempt: int = 1, device: str = FOREIGN) -> Order:
    """An order that the attacker never got: ids of public evaluations are known to everybody."""
    return Order(
        kind=EvaluationRequest.KIND,
        job_id=job_id,
        attempt=attempt,
        timeout_s=1,
        request={"d": device},
    )


def _end(w: World, door: Door, order: Order, *, seq: int = 2, **fields: Any) -> str:
    """Claim a verdict for a job that was not handed to the door's token; the answer."""
    result = {**_CLAIM, "evaluation_id": order.job_id, "attempt": order.attempt, **fields}
    door.say(door.about(order, "started", seq - 1, inventing.started()))
    answer = door.say(door.about(order, "finished", seq, {"result": result}))
    return f"{answer}; {w.heard(door)}"


_CLAIM: dict[str, Any] = {
    **{"verdict": "CORRECT", "reason": "", "mode": "ranked", "latency_ns": 1.0, "task": "scale"},
    **{"device": FOREIGN, "task_digest": "0" * 64, "solution_digest": "0" * 64},
}


def _untouched(w: World, job_id: str, before: dict[str, Any]) -> None:
    now = w.job(job_id)
    require(now == before and not w.verdict(job_id), f"the job is now {now}")


@attack(REDIS, HTTPS, by=_HOLDER)
def verdict_for_another_ones_job(w: World, door: Door) -> str:
    """Report CORRECT for the job that another runner works at."""
    order = w.victim()
    before = w.job(order.job_id)
    answer = _end(w, door, order)
    _untouched(w, order.job_id, before)
    return answer


@attack(REDIS, HTTPS, by=_HOLDER)
def verdict_for_a_job_of_another_device(w: World, door: Door) -> str:
    """Report CORRECT for a job that waits for a device which the token doesn't serve."""
    [job_id, *_] = w.facts["foreign"]
    before = w.job(job_id)
    answer = _end(w, door, _order(job_id))
    _untouched(w, job_id, before)
    return answer


@attack(REDIS, HTTPS, by=_HOLDER)
def verdict_for_a_waiting_job(w: World, door: Door) -> str:
    """Report CORRECT for a job of the own device that wasn't handed over yet."""
    [(key,)] = w.rows(
        "SELECT id FROM runs_app_evaluation WHERE status = 'QUEUED' AND device_id = 'shared-gpu'"
        " ORDER BY queued_at DESC LIMIT 1"
    )
    job_id = str(uuid.UUID(key))
    before = w.job(job_id)
    answer = _end(w, door, _order(job_id))
    _untouched(w, job_id, before)
    return answer


@attack(REDIS, HTTPS, by="events of an attempt that is over change nothing")
def verdict_for_a_past_attempt(w: World, door: Door) -> str:
    """Report CORRECT for an attempt that was given back, and is somebody else's by now."""
    order = door.take()
    door.say(door.about(order, "lost", 1, {"reason": "given back"}))
    w.until(lambda: w.job(order.job_id)["attempt"] == 2, "the job is not queued again")
    before = w.job(order.job_id)
    door.say(door.about(order, "finished", 2, {"result": inventing.invented(order)}))
    w.heard(door)
    _untouched(w, order.job_id, before)
    return "ignored"


@attack(REDIS, HTTPS, by="an attempt that has not begun is nobody's")
def verdict_for_a_future_attempt(w: World, door: Door) -> str:
    """Report CORRECT for the next attempt of a job that the runner holds."""
    order = door.take()
    before = w.job(order.job_id)
    answer = _end(w, door, _order(order.job_id, attempt=2))
    _untouched(w, order.job_id, before)
    return answer


@attack(REDIS, HTTPS, by="events count in order, each once")
def doubled_and_reordered_events(w: World, door: Door) -> str:
    """Send the end of a job twice, with two verdicts, and its beginning again afterwards."""
    order = door.take()
    wrong = inventing.invented(order, verdict="WRONG_RESULT", latency_ns=None, workloads=[])
    door.say(door.about(order, "started", 5, inventing.started()))
    door.say(door.about(order, "started", 4, inventing.started()))
    door.say(door.about(order, "finished", 6, {"result": wrong}))
    door.say(door.about(order, "finished", 6, {"result": inventing.invented(order)}))
    door.say(door.about(order, "finished", 7, {"result": inventing.invented(order)}))
    door.say(door.about(order, "lost", 8, {"reason": "again"}))
    w.heard(door)
    require(w.verdict(order.job_id) == "WRONG_RESULT", f"it is {w.verdict(order.job_id)} now")
    rows = w.count("evaluationevent", f"evaluation_id = '{uuid.UUID(order.job_id).hex}'")
    require(rows <= 3, f"{rows} events are stored")
    return f"the first verdict stands, {rows} events are stored"


@attack(REDIS, HTTPS, by="jobs of other kinds have the same holder")
def report_of_a_task_check(w: World, door: Door) -> str:
    """Report that a task is sound, without having been asked to check it."""
    kind, _, rest = w.facts["check"].partition("-")
    job_id = rest.rpartition("-")[0]
    before = w.job(job_id, "taskcheck")
    fields = {"job": kind, "job_id": job_id, "attempt": 1, "seq": 9, "kind": "finished"}
    answer = door.say(door.event(**fields, payload={"report": {"passed": True}}))
    seen = w.heard(door)
    require(w.job(job_id, "taskcheck") == before, "the check has ended")
    return f"{answer}; {seen}"


@attack(REDIS, by="baselines are compared with their task")
def baselines_that_spoil_others(w: World, door: Door) -> str:
    """Report baselines with an anchor that turns all later results of the task into errors."""
    order = w.held(door)
    result = inventing.invented(order, pending_baselines=["compiled"])
    door.say(door.about(order, "finished", 9, {"result": result}))
    w.heard(door)
    job = door.take(urgencies=["-baselines"])
    report = {"task_digest": result["task_digest"], "anchor_ns": -1.0}
    door.say(door.about(job, "finished", 9, {"report": report}))
    answer = w.heard(door)
    now = w.job(job.job_id, "baselinemeasurement")
    require(now["status"] == "QUEUED", f"the measurement is now {now}")
    return answer


# Results of jobs that the runner does hold.

Change = Callable[[dict[str, Any]], dict[str, Any]]
_DAY_NS, _TIME_NS = 9e13, 5e4

_LIES: dict[str, tuple[str, Change]] = {
    "without workloads": ("all workloads", lambda r: {**r, "workloads": []}),
    "with the listed workloads alone": (
        "all workloads",
        lambda r: {**r, "workloads": [w for w in r["workloads"] if not w["hidden"]]},
    ),
    "with a workload twice": ("each once", lambda r: {**r, "workloads": r["workloads"] * 2}),
    "with other sizes": (
        "the task's parameters",
        lambda r: with_workloads(r, parameters={"N": 1}),
    ),
    "with hidden workloads called public": (
        "what is hidden",
        lambda r: with_workloads(r, hidden=False),
    ),
    "without stages": ("its stages", lambda r: {**r, "stages": []}),
    "with stages longer than the time that passed": (
        "the clock of the site",
        lambda r: {**r, "stages": [{**s, "duration_s": 900.0} for s in r["stages"]]},
    ),
    "without a build": ("a build", lambda r: {**r, "build": None}),
    "without processes": ("processes", lambda r: with_workloads(r, processes=[])),
    "with one process": (
        "processes",
        lambda r: {
            **r,
            "workloads": [{**w, "processes": w["processes"][:1]} for w in r["workloads"]],
        },
    ),
    "with a single call": (
        "calls",
        lambda r: with_processes(r, times_ns=[5e4], seeds=[1], verified=[0]),
    ),
    "without verified outputs": ("verified outputs", lambda r: with_processes(r, verified=[])),
    "with calls verified that were not made": (
        "verified outputs",
        lambda r: with_processes(r, verified=[100_000]),
    ),
    "with seeds missing": ("a seed a call", lambda r: with_processes(r, seeds=[1, 2])),
    "with the same seed for all calls": (
        "a seed a call",
        lambda r: with_processes(r, seeds=[7] * 40),
    ),
    "with one nanosecond that no call took": ("its own calls", in_one_ns),
    "with a latency that does not follow": (
        "its own workloads",
        lambda r: {**r, "latency_ns": 1.0},
    ),
    "with speedups that don't match": (
        "its own workloads",
        lambda r: {**r, "speedups": {"best": 9999.0}},
    ),
    "with a speedup of a workload that does not follow": (
        "its own baselines",
        lambda r: (
            with_workloads(r, speedups={"best": 9999.0, "eager": 9999.0})
            | {"speedups": {"best": 9999.0, "eager": 9999.0}}
        ),
    ),
    "with times that are none": (
        "finite, positive times",
        lambda r: with_processes(r, times_ns=["nan", -1.0] * 20),
    ),
    "with more time than passed": (
        "the clock of the site",
        lambda r: with_processes(r, times_ns=[_DAY_NS] * 40),
    ),
    "with hard values that took no time": (
        "finite, positive times",
        lambda r: with_processes(r, hard_ns=[0.0] * 40),
    ),
    "with a time that could be any": (
        "how sure a time must be",
        lambda r: {
            **r,
            "workloads": [
                {**w, "measurement": w["measurement"] and {**w["measurement"], "high_ns": 1e12}}
                for w in r["workloads"]
            ],
        },
    ),
    "with more work than the task's": (
        "the task's work",
        lambda r: with_workloads(r, flops=1e18),
    ),
    "with other weights": ("the task's work", lambda r: with_workloads(r, weight=0.0)),
    "with a physical limit without end": (
        "finite, positive numbers",
        lambda r: {**with_workloads(r, floor_ns="inf"), "floor_fraction": "inf"},
    ),
    "with a baseline that the task doesn't have": (
        "the task's baselines",
        lambda r: against(r, "slow", 2 * _TIME_NS),
    ),
    "with baselines that take a day": (
        "how long a job may take",
        lambda r: against(r, "eager", _DAY_NS),
    ),
    "with parameters nested deeply": (
        "the types",
        lambda r: with_workloads(r, parameters={"N": json.loads("[" * 300 + "]" * 300)}),
    ),
    "of another submission": (
        "the digests",
        lambda r: {**r, "solution_digest": "0" * 64},
    ),
    "of another device": ("the device", lambda r: {**r, "device": FOREIGN}),
    "in another mode": ("the mode", lambda r: {**r, "mode": "quick"}),
    "with a SYSTEM_ERROR for ever retryable, and a latency": (
        "the types",
        lambda r: {**r, "verdict": "SYSTEM_ERROR", "retryable": True},
    ),
    "with unknown fields": ("the types", lambda r: {**r, "quarantine": "none"}),
}


def _lie(name: str, change: Change) -> Callable[[World, Door], str]:
    def run(w: World, door: Door) -> str:
        order = w.held(door)
        result = change(inventing.invented(order))
        door.say(door.about(order, "finished", 9, {"result": result}))
        answer = w.heard(door)
        require(not w.verdict(order.job_id), f"stored as {w.verdict(order.job_id)}")
        require(w.job(order.job_id)["attempt"] == order.attempt + 1, "it is not tried again")
        return answer

    return run


for _name, (_by, _change) in _LIES.items():
    CATALOGUE.append(
        Attack(
            name=f"result {_name}",
            tries=f"End a job that the runner holds with a result {_name}.",
            stopped_by=f"a result is compared with {_by}; else the job is tried again",
            doors=(REDIS,),
            run=_lie(_name, _change),
        )
    )
