"""A winner: a correct ranked result, what is proven of it, and the files of its export."""

from __future__ import annotations

import ast
import importlib.util
import json
import keyword
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from kbench_client.exits import Exit, Stop
from kbench_client.kernels import texts_of
from kbench_client.results import best_baseline, duration, factor, workloads

Document = dict[str, Any]

_FILES = Path(__file__).parent / "exported"
_REFERENCE = "reference.py"
_SHARED = ("task.py", "loader.py", "modules.py", "dispatch.py", "test_verdict.py")
_OPERATOR = ("op.py", "test_op.py")
_HEADERS = {
    "__nv_bfloat16": ("cuda_bf16.h", "bfloat16.h"),
    "__half": ("cuda_fp16.h", ""),
    "__nv_fp8_e4m3": ("cuda_fp8.h", "fp8.h"),
    "__nv_fp8_e5m2": ("cuda_fp8.h", "fp8.h"),
}
"""Headers that kbench includes before a source, by C type: CUDA's, and the engine's on a CPU."""
_BY_VALUE = ("__nv_bfloat16", "__half")
_PARAMETER = re.compile(r"(const\s+)?(\w+)\s*(\*?)\s*(\w+)$")
_DEFAULT = re.compile(r"\s*=[^,)]*")
_BESIDE = ("-Xcompiler=-iquote", "-Xcompiler=.")
"""How nvcc is told where a submission's files lie; the loader says it anew."""
_OF_THE_HOST = re.compile(r"/|-(?:[lLI]|isystem|include|DTORCH_|DKBENCH_TORCH)|.*require-defined")


@dataclass(frozen=True, kw_only=True)
class Winner:
    """A submission, the evaluation that proves it, and its version of the task."""

    submission: Document
    evaluation: Document
    task: Document
    site: str

    @property
    def name(self) -> str:
        """Of the package, and of the operator."""
        plain = re.sub(r"\W", "_", f"{self.submission['task']}_{self.submission['id'][:8]}")
        return plain if plain.isidentifier() else f"kernel_{plain}"


def ranked(submission: Document, device: str) -> Document:
    """The newest ranked evaluation, on that device if one is named.

    Raises `Stop` if there is none, or if it isn't correct or its time isn't trusted.
    """
    found = [each for each in submission["evaluations"] if each["mode"] == "ranked"]
    found = [each for each in found if device in ("", each["device"])]
    if not found:
        where = f" on {device}" if device else ""
        raise Stop(Exit.MISUSE, f"has no ranked evaluation{where}", "device" if device else "ID")
    evaluation: Document = found[0]
    if evaluation["verdict"] != "CORRECT":
        state = evaluation["verdict"] or evaluation["status"]
        raise Stop(Exit.OTHER_VERDICT, f"its ranked evaluation is {state}, not CORRECT", "ID")
    is_refuted = evaluation["audited"] in ("failed", "suspicious")
    if is_refuted or evaluation["quarantine"] in ("open", "rejected"):
        raise Stop(Exit.OTHER_VERDICT, evaluation["eligibility_reason"], "ID")
    return evaluation


def proven(evaluation: Document) -> list[Document]:
    """The measured listed workloads with the speedup over the best baseline of each.

    `faster`: the 95 % interval of the speedup lies above 1. Those come first. Raises `Stop` if
    there are none, or if a baseline isn't measured yet.
    """
    if waits := evaluation["awaited_baselines"]:
        raise Stop(Exit.MISUSE, f"its baselines aren't complete, so try again later: {waits}", "ID")
    found = [_proven(name, each) for name, each in workloads(evaluation).items()]
    if not any(each["faster"] for each in found):
        reason = "the kernel isn't measurably faster than the best baseline on any workload"
        raise Stop(Exit.TOO_SLOW, reason, "ID")
    return sorted(found, key=lambda each: not each["faster"])


def _proven(name: str, workload: Document) -> Document:
    baseline, _ = best_baseline(workload)
    told: Document = {"name": name, "parameters": workload["parameters"], "faster": False}
    if not baseline:
        return told
    own, other = workload["measurement"], workload["baselines"][baseline]
    low = other["low_ns"] / own["high_ns"]
    return told | {
        "faster": low > 1,
        "time_ns": own["time_ns"],
        "baseline": baseline,
        "baseline_ns": other["time_ns"],
        "speedup": [low, other["time_ns"] / own["time_ns"], other["high_ns"] / own["low_ns"]],
    }


def facts(winner: Winner) -> Document:
    """What the exported files have to know. Raises `Stop` where the task can't be exported."""
    task, evaluation, submission = winner.task["document"], winner.evaluation, winner.submission
    result, direction = evaluation["result"], submission["direction"]
    environment = result["environment"]
    kind = environment.get("device_kind")
    arguments, parameters = _arguments(task, _functions(task)[f"{direction}_fn"])
    return {
        "name": winner.name,
        "task": submission["task"],
        "version": winner.task["number"],
        "digest": winner.task["digest"],
        "submission": winner.site + submission["url"],
        "evaluation": evaluation["id"],
        "author": submission["author"],
        "agent": submission["agent"],
        "language": submission["language"],
        "entry": next(iter(texts_of(submission))),
        "direction": direction,
        "abi": task["abi"],
        "dtype": task["dtype"],
        "symbol": _symbol(task),
        "flags": _flags(result) if submission["language"] != "python" else [],
        "arguments": [f"{n}_" if keyword.iskeyword(n) else n for n in arguments],
        "parameters": parameters,
        "tolerance": task["tolerance"],
        "device": {
            "kind": kind,
            "name": environment.get("device_name", ""),
            "cpus": environment.get("cpus") if kind == "cpu" else None,
        },
        "torch": environment.get("torch", "of an unknown release"),
        "compiler": environment.get("compiler") or "no compiler",
        "workloads": proven(evaluation),
    }


def _flags(result: Document) -> list[str]:
    """Those of the measured build. Raises `Stop` where the result doesn't say them."""
    command = shlex.split((result.get("build") or {}).get("command", ""))
    if not command:
        reason = "its result doesn't say how the kernel was built: evaluate it again, then export"
        raise Stop(Exit.MISUSE, reason, "ID")
    return portable(command)


def portable(command: list[str]) -> list[str]:
    """The flags of a build's command that hold anywhere: no folders, libraries or symbols."""
    kept: list[str] = []
    words = iter(command[2:])  # the compiler and the source
    for word in words:
        if word in ("-o", "-isystem", "-include", "-iquote"):
            next(words, "")
        elif word not in _BESIDE and not _OF_THE_HOST.match(word) and "/" not in word:
            kept.append(word)
    return kept


def _functions(task: Document) -> dict[str, ast.FunctionDef]:
    if task["format"] != "kbench":
        raise Stop(
            Exit.MISUSE,
            f"is in the {task['format']} format, but this export supports only the kbench format",
            "task",
        )
    body = ast.parse(task["files"][_REFERENCE]).body
    return {each.name: each for each in body if isinstance(each, ast.FunctionDef)}


def _symbol(task: Document) -> str:
    return task["signature"].partition("(")[0].split()[-1] if task["abi"] == "c" else ""


def _arguments(task: Document, reference: ast.FunctionDef) -> tuple[list[str], list[Document]]:
    """Names of what the export is called with, and the parameters of a C signature.

    Raises `Stop` where the signature or the reference can't be called so.
    """
    taken = [each.arg for each in reference.args.args]
    if task["abi"] != "c":
        return taken, []
    body = task["signature"].partition("(")[2].rpartition(")")[0]
    parameters = [_parameter(text, task.get("inout", ())) for text in body.split(",")]
    passed = [each["name"] for each in parameters if each["role"] != "output"]
    needed = taken[: len(taken) - len(reference.args.defaults)]
    if lacking := [n for n in needed if n not in passed and n.removesuffix("_") not in passed]:
        reason = (
            f"takes {', '.join(lacking)}, which isn't in the signature, so it can't be exported"
        )
        raise Stop(Exit.MISUSE, f"{reference.name} {reason}", "task")
    return passed, parameters


def _parameter(text: str, inout: Sequence[str]) -> Document:
    match = _PARAMETER.match(" ".join(_DEFAULT.sub("", text).split()))
    if match is None:
        raise Stop(Exit.MISUSE, f"cannot read the parameter {text.strip()!r}", "signature")
    constant, ctype, pointer, name = match.groups()
    if not pointer and ctype in _BY_VALUE:
        raise Stop(Exit.MISUSE, f"{name} is a {ctype} by value; pass a float", "signature")
    role = "scalar" if not pointer else "input" if constant else "output"
    return {"name": name, "ctype": ctype, "role": "inout" if name in inout else role}


def files(winner: Winner, *, operator: bool) -> dict[str, str]:
    """A package that needs torch alone: source, loader, condition, fallback and tests.

    operator: it registers with PyTorch as `torch.ops.kbench.NAME`. Raises `Stop`.
    """
    about = facts(winner)
    types = {each["ctype"] for each in about["parameters"]}
    is_declared = bool(types) and about["language"] != "python"
    names = (*_SHARED, *(_OPERATOR if operator else ()))
    return {
        "__init__.py": _package(about, "op" if operator else "dispatch"),
        "README.md": _readme(about, operator=operator),
        "winner.json": json.dumps(about, indent=1) + "\n",
        **{f"kernel/{name}": text for name, text in texts_of(winner.submission).items()},
        **(_declared(winner, types) if is_declared else {}),
        _REFERENCE: winner.task["document"]["files"][_REFERENCE],
        **{name: (_FILES / name).read_text("utf-8") for name in names},
    }


def _declared(winner: Winner, types: set[str]) -> dict[str, str]:
    """What kbench includes before a source: types, and the function as the source defines it."""
    task, source = winner.task["document"], winner.submission["source"]
    beside: dict[str, str] = {}
    lines = ["#include <stdint.h>"]
    for cuda, own in sorted({_HEADERS[each] for each in types & _HEADERS.keys()}):
        is_own = bool(own) and winner.submission["language"] == "cpp"
        lines.append(f'#include "{own}"' if is_own else f"#include <{cuda}>")
        beside |= {own: _engine_header(own)} if is_own else {}
    symbol = _symbol(task)
    found = re.search(rf"\bvoid\s+{symbol}\s*(\([^()]*\))\s*{{", source)
    taken = found[1] if found else task["signature"].partition(symbol)[2].rstrip("; ")
    lines += [f'extern "C" void {symbol}{_DEFAULT.sub("", taken)};', ""]
    return {"declaration.h": "\n".join(lines), **beside}


def _engine_header(name: str) -> str:
    """A header of the engine, which the client's wheel brings along. Raises `Stop` without it."""
    spec = importlib.util.find_spec("gpu_runner")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        if (path := Path(folder, "native", name)).exists():
            return path.read_text("utf-8")
    raise Stop(
        Exit.MISUSE, f"this installation is missing the engine's header {name}: reinstall kbench"
    )


def _package(about: Document, module: str) -> str:
    taken, title = ", ".join(about["arguments"]), f"{about['task']}, by {about['agent']}"
    imported = ", ".join(sorted({"dispatch", module}))
    return (
        f'"""{title}: {about["submission"]}."""\n\nfrom . import {imported}\n\n\n'
        f"def {about['direction']}({taken}):\n"
        '    """The kernel\'s outputs where it was measured to be faster, else PyTorch\'s."""\n'
        f"    return {module}.call({taken})\n\n\n"
        f"def supports({taken}):\n"
        '    """Whether this call runs the kernel."""\n'
        f"    return dispatch.supports({taken})\n"
    )


def _readme(about: Document, *, operator: bool) -> str:
    name, device, taken = about["name"], about["device"], ", ".join(about["arguments"])
    rows = [
        f"| {each['name']} | {duration(each.get('time_ns'))} | {_interval(each)}"
        f" | {'the kernel' if each['faster'] else 'PyTorch'} |"
        for each in about["workloads"]
    ]
    cpus = f" with {device['cpus']} processors" if device["cpus"] else ""
    said = f"\n`torch.ops.kbench.{name}({taken})` is the same kernel as a PyTorch operator.\n"
    tests = [f"{name}.test_verdict", *([f"{name}.test_op"] if operator else [])]
    values = {
        "device": f"{device['name']}{cpus}",
        "rows": "\n".join(rows),
        "taken": taken,
        "operator": said if operator else "",
        "tests": " ".join(tests),
    }
    return Template((_FILES / "README.md").read_text("utf-8")).substitute({**about, **values})


def _interval(workload: Document) -> str:
    if "speedup" not in workload:
        return "-"
    low, middle, high = map(factor, workload["speedup"])
    return f"{middle} ({low} to {high})"
