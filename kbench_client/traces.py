"""Results as FlashInfer Trace has them: a trace for each workload, and the kernel as a solution.

Source of the format: flashinfer-bench 0.1.2 (`data/trace.py`, `data/solution.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kbench_client.exits import Exit, Stop
from kbench_client.kernels import texts_of
from kbench_client.results import newest
from kbench_client.solutions import definition_of

Document = dict[str, Any]
_STATUS = {
    "CORRECT": "PASSED",
    "WRONG_SHAPE": "INCORRECT_SHAPE",
    "WRONG_DTYPE": "INCORRECT_DTYPE",
    "WRONG_RESULT": "INCORRECT_NUMERICAL",
    "COMPILE_ERROR": "COMPILE_ERROR",
    "RUNTIME_ERROR": "RUNTIME_ERROR",
    "MEMORY_LIMIT": "RUNTIME_ERROR",
    "VIOLATION": "RUNTIME_ERROR",
    "TIME_LIMIT": "TIMEOUT",
}
"""The status of each verdict that says something of the kernel on its workloads."""
_LIBRARIES = ("python", "torch", "cuda", "driver", "compiler", "cutlass")
_STANDING = ("eligibility", "quarantine", "audited")


def solution(submission: Document, task: Document) -> Document:
    """A submission as a solution, which returns its outputs."""
    language, source = submission["language"], submission["source"]
    is_python = language == "python"
    if is_python and not re.search(r"^def forward\(", source, re.MULTILINE):
        raise Stop(Exit.MISUSE, "must define forward(), which a solution requires", "source")
    triton = is_python and "triton" in "".join(texts_of(submission).values())
    texts = texts_of(submission)
    device = newest(submission)["device"]
    spec = {
        "language": "triton" if triton else language,
        "target_hardware": [device],
        "entry_point": f"{next(iter(texts))}::{submission['direction']}",
        "dependencies": [],
        "destination_passing_style": False,
        **({} if is_python else {"binding": "torch"}),
    }
    return {
        "name": _name(submission),
        "definition": definition_of(task)["name"],
        "author": submission["agent"] or submission["author"],
        "spec": spec,
        "sources": [{"path": name, "content": text} for name, text in texts.items()],
        "description": f"submission {submission['id']} on a kbench site",
    }


def traces(submission: Document, task: Document) -> list[Document]:
    """The newest result of a submission: a trace for each listed workload that it tells of.

    Raises `Stop` where there is no result, or its verdict says nothing of the kernel.
    """
    definition, evaluation = definition_of(task), newest(submission)
    result, verdict = evaluation.get("result") or {}, evaluation["verdict"]
    if verdict not in _STATUS or not result:
        words = verdict or evaluation["status"]
        raise Stop(
            Exit.MISUSE,
            f"{words} can't be exported as a trace, because it doesn't judge the kernel",
            "ID",
        )
    wrong = (result.get("mismatch") or {}).get("workload")
    found = [
        each
        for each in result["workloads"]
        if not each["hidden"]
        and (each["measurement"] if verdict == "CORRECT" else wrong in (None, each["name"]))
    ]
    return [
        {
            "definition": definition["name"],
            "workload": _workload(each["parameters"], definition),
            "solution": _name(submission),
            "evaluation": _evaluation(each, evaluation, wrong),
        }
        for each in found
    ]


def _name(submission: Document) -> str:
    return f"kbench_{submission['id']}"


def _workload(parameters: Mapping[str, Any], definition: Document) -> Document:
    own = dict(parameters)
    uuid, given = own.pop("uuid"), own.pop("inputs")
    inputs = {name: given.get(name, {"type": "random"}) for name in definition["inputs"]}
    return {"axes": own, "inputs": inputs, "uuid": uuid}


def _evaluation(workload: Document, evaluation: Document, wrong: str | None) -> Document:
    result = evaluation["result"]
    environment, status = result["environment"], _STATUS[evaluation["verdict"]]
    log = "" if status == "PASSED" else evaluation["reason"]
    if log and wrong is None:
        log = f"{evaluation['verdict']}, for the submission as a whole: {log}"
    found = {
        "status": status,
        "environment": {
            "hardware": environment.get("device_name") or evaluation["device"],
            "libs": {name: environment[name] for name in _LIBRARIES if environment.get(name)},
        },
        "timestamp": evaluation["finished_at"],
        "log": log,
    }
    if status in ("PASSED", "INCORRECT_NUMERICAL"):
        found["correctness"] = _correctness(workload, evaluation)
    if status == "PASSED":
        found["performance"] = _performance(workload)
    return found


def _correctness(workload: Document, evaluation: Document) -> Document:
    """The largest errors; NaN where they were not measured, as of outputs that were wrong."""
    errors = workload["errors"]
    standing = {name: evaluation[name] for name in ("mode", *_STANDING) if name in evaluation}
    mismatch = evaluation["result"].get("mismatch")
    wrong = {"first_wrong": mismatch} if mismatch else {}
    return {
        "max_relative_error": _largest(each.get("pointwise") for each in errors),
        "max_absolute_error": _largest(each.get("absolute") for each in errors),
        "extra": {"kbench": {"id": evaluation["id"], **standing, "errors": errors, **wrong}},
    }


def _largest(values: Iterator[Any]) -> float | str:
    found = [None if value is None else float(value) for value in values]
    known = [value for value in found if value is not None]
    largest = max(known, default=math.nan) if len(known) == len(found) else math.nan
    return largest if math.isfinite(largest) else _WORDS[str(largest)]


_WORDS = {"nan": "NaN", "inf": "Infinity"}
"""Numbers that JSON lacks, as pydantic reads them."""


def _performance(workload: Document) -> Document:
    """Times in milliseconds; those of the reference where the evaluation measured it."""
    time_ns = workload["measurement"]["time_ns"]
    found = {"latency_ms": time_ns / 1e6}
    if eager := (workload.get("baselines") or {}).get("eager"):
        found["reference_latency_ms"] = eager["time_ns"] / 1e6
        found["speedup_factor"] = eager["time_ns"] / time_ns
    return found


def data_set(found: Document, rows: list[Document], task: Document) -> dict[str, str]:
    """The texts of a data set's files, by path: the definition, the solution and its traces."""
    definition = definition_of(task)
    kind, name = definition.get("op_type", "other"), definition["name"]
    reference = task["document"]["files"]["reference.py"]
    whole = {"op_type": "other", **definition, "reference": reference}
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    return {
        f"definitions/{kind}/{name}.json": json.dumps(whole, indent=2) + "\n",
        f"solutions/{kind}/{name}/{found['name']}.json": json.dumps(found, indent=2) + "\n",
        f"traces/{kind}/{name}/{found['name']}.jsonl": lines,
    }
