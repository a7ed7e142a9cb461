"""The native format: a folder with task.toml, reference.py and, per variant, task_VARIANT.toml."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.reading import import_errors
from gpu_runner.data.formats.reference_names import name_errors
from gpu_runner.data.formats.source import functions, keyword_errors, parameter_names, parse_module
from gpu_runner.data.formats.sweeps import UNLISTED, expand
from gpu_runner.data.formats.text import list_files, read_files
from gpu_runner.data.task import HARD_INPUTS, VERIFIER, Task, TaskFormat, Tolerance
from gpu_runner.data.verdict import Direction

SPECIFICATION = "task.toml"
REFERENCE = "reference.py"
BASELINE = "baseline_fn"
LIBRARY = "library_"
"""What the functions of reference.py begin with that call a library to be timed beside others."""
KERNELS = "kernels/"
_VARIANT = re.compile(r"task_([a-z0-9]+)\.toml")
NOT_IN_TOML = ("files", "format", "schema_version")  # format: but for the task.toml itself
_LENGTH_LIMIT = 512 * 1024  # characters: the parser takes seconds for more
_KEY_LIMIT = 16  # chosen: a task's deepest key has three parts
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_PART}[ \t]*+\.[ \t]*+){{{_KEY_LIMIT}}}")
"""A key for which the parser would need minutes if it were long enough."""


def is_specification(path: Path) -> bool:
    """Whether a file of that name specifies a native task, or a variant of one."""
    return path.name == SPECIFICATION or is_variant(path.name)


def is_variant(name: str) -> bool:
    """Whether a file of that name, in a task's folder, specifies a variant of the task."""
    return _VARIANT.fullmatch(name) is not None


def specifications(folder: Path) -> list[Path]:
    """The files in `folder` that specify a task each: task.toml first, then its variants."""
    variants = sorted(p for p in folder.glob("task_*.toml") if _VARIANT.fullmatch(p.name))
    return [folder / SPECIFICATION, *variants]


def read_kbench(path: Path) -> dict[str, Any]:
    """The document of a native task: of its folder, or of the file in it that specifies the task or
    a variant.

    `task_bf16.toml` beside the `task.toml` of the task `softmax` specifies the task `softmax_bf16`:
    its keys replace those of `task.toml`, and it must have a title of its own. Of the folder's
    kernels, a task holds those that it lists. A task.toml may name another `format`, as that of a
    downloaded draft does. What the document holds is not checked. Raises `DataError` naming the
    field or the file.
    """
    if not path.is_dir() and not is_specification(path):
        raise DataError("path", f"{path.name!r} is not the specification of a native task")
    folder = path if path.is_dir() else path.parent
    files = read_files(folder, list_files(folder))
    texts = {name: files.pop(name) for name in list(files) if is_specification(Path(name))}
    if SPECIFICATION not in texts:
        raise DataError(SPECIFICATION, f"is missing from {folder}")
    document = _document(texts, SPECIFICATION)
    if path.name != SPECIFICATION and not path.is_dir():
        document = _variant(document, texts, path.name)
    listed = [kernel.get("path") for kernel in _tables(document, "kernels")]
    held = {n: text for n, text in files.items() if not n.startswith(KERNELS) or n in listed}
    return {"format": TaskFormat.KBENCH.value, **document, "files": held}


def parse_specification(text: str, name: str) -> dict[str, Any]:
    """The document in a specification's text, before it is expanded.

    Parameters of a workload that TOML cannot hold, as null, stand as JSON in a text. Raises
    `DataError` naming the file or the field.
    """
    if len(text) > _LENGTH_LIMIT:
        raise DataError(name, f"has more than {_LENGTH_LIMIT} characters")
    if _DEEP_KEY.search(text):
        raise DataError(name, f"has a key with more than {_KEY_LIMIT} parts")
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError
        raise DataError(name, f"is not valid TOML: {error}") from None
    for key in ("workloads", UNLISTED):
        for index, workload in enumerate(_items(document, key)):
            if isinstance(workload, dict) and isinstance(workload.get("parameters"), str):
                field = f"{key}[{index}].parameters"
                workload["parameters"] = _from_json(workload["parameters"], field)
    return document


def _from_json(text: str, field: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(field, "must be a table, or a string that contains one as JSON") from None


def _document(texts: Mapping[str, str], name: str) -> dict[str, object]:
    document = expand(parse_specification(texts[name], name))
    for field in NOT_IN_TOML:
        if field in document and (field, name) != ("format", SPECIFICATION):
            raise DataError(field, f"does not belong in {name}")
    return document


def _variant(document: dict[str, object], texts: Mapping[str, str], name: str) -> dict[str, object]:
    match = _VARIANT.fullmatch(name)
    if match is None or name not in texts:
        raise DataError("path", f"{name!r} is not in the folder")
    changes = _document(texts, name)
    if "name" in changes:
        raise DataError(
            "name", f"does not belong in {name}: kbench derives it from the file's name"
        )
    if "title" not in changes:
        raise DataError("title", f"is missing from {name}")
    return {**document, **changes, "name": f"{document.get('name', '')}_{match[1]}"}


def _items(document: Mapping[str, object], field: str) -> list[object]:
    found = document.get(field)
    return found if isinstance(found, list) else []


def _tables(document: Mapping[str, object], field: str) -> list[Mapping[str, object]]:
    return [entry for entry in _items(document, field) if isinstance(entry, dict)]


def reference_errors(task: Task) -> Iterator[DataError]:
    """Functions that the oracle calls and reference.py lacks, or cannot call; wrong imports.

    Its baseline, if it has one, must take what the reference takes.
    """
    if REFERENCE not in task.files:
        yield DataError(REFERENCE, "is missing from the task's folder")
    else:
        try:
            tree = parse_module(task.files[REFERENCE], REFERENCE)
        except DataError as error:
            yield error
            return
        have = functions(tree)
        for name in ("make_inputs", *(f"{direction.value}_fn" for direction in task.directions)):
            if name not in have:
                yield DataError(REFERENCE, f"must define the function {name}()")
        yield from _baseline_errors(task, have)
        if VERIFIER in have:
            yield from _verifier_errors(task, have[VERIFIER])
        for index, workload in enumerate(task.workloads if "make_inputs" in have else ()):
            field = f"workloads[{index}].parameters"
            yield from keyword_errors(have["make_inputs"], workload.parameters, field)
        yield from _hard_errors(have)
        yield from name_errors(task, tree, REFERENCE)
    # A kernel is imported by a runner of its own device, which may have more packages.
    own = {name: text for name, text in task.files.items() if not name.startswith(KERNELS)}
    yield from import_errors(own)


def _baseline_errors(task: Task, have: Mapping[str, ast.FunctionDef]) -> Iterator[DataError]:
    """Faults of what is timed in the place of the reference or beside it."""
    libraries = [f"{LIBRARY}{name}" for name in task.library_baselines]
    for name in [BASELINE, *libraries]:
        if name not in have:
            if name != BASELINE:
                reason = f"must define {name}(), which is listed under `baselines`"
                yield DataError(REFERENCE, reason)
        elif Direction.FORWARD not in task.directions:
            yield DataError(REFERENCE, f"has {name}(), which is for the forward direction only")
        elif parameter_names(have[name]) != parameter_names(have.get("forward_fn", have[name])):
            yield DataError(REFERENCE, f"{name}() must take the same parameters as forward_fn()")
        elif name != BASELINE and not ast.get_docstring(have[name]):
            reason = f"{name}() needs a docstring that says which library it calls"
            yield DataError(REFERENCE, reason, have[name].lineno)


def library_titles(task: Task) -> dict[str, str]:
    """What the task's library baselines are called, by name: the first lines of docstrings."""
    if not task.library_baselines:
        return {}
    have = functions(parse_module(task.files[REFERENCE], REFERENCE))
    found = {name: have[f"{LIBRARY}{name}"] for name in task.library_baselines}
    return {name: _first_line(function) for name, function in found.items()}


def _first_line(function: ast.FunctionDef) -> str:
    return (ast.get_docstring(function) or "").partition("\n")[0].rstrip(".")


def _hard_errors(have: Mapping[str, ast.FunctionDef]) -> Iterator[DataError]:
    hard, usual = have.get(HARD_INPUTS), have.get("make_inputs")
    if hard and usual and parameter_names(hard) != parameter_names(usual):
        reason = f"{HARD_INPUTS}() must take the same parameters as make_inputs()"
        yield DataError(REFERENCE, reason, hard.lineno)


def _verifier_errors(task: Task, function: ast.FunctionDef) -> Iterator[DataError]:
    """What the verifier cannot be called with, and what would not be heeded beside it."""
    names = parameter_names(function)
    extra = function.args.vararg or function.args.kwarg or function.args.kwonlyargs
    if extra or names not in (["inputs", "outputs"], ["inputs", "outputs", "eps"]):
        reason = f"has {VERIFIER}(), which must take inputs and outputs, and optionally eps"
        yield DataError(REFERENCE, reason, function.lineno)
    if task.directions != (Direction.FORWARD,):
        reason = f"has {VERIFIER}(), which is only for forward-only tasks"
        yield DataError(REFERENCE, reason, function.lineno)
    if task.tolerance != Tolerance():
        yield DataError("tolerance", f"is ignored: {VERIFIER}() decides what is allowed")
