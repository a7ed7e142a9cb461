"""Solutions of FlashInfer Trace: a JSON file with a kernel becomes a module that a site takes.

Source of the format: flashinfer-bench 0.1.2 (`data/solution.py`). SOL-ExecBench's `languages` are
read as well.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbench_client.exits import Exit, Stop
from kbench_client.kernels import LIMIT_BYTES, Kernel

Document = dict[str, Any]
FORMAT = "flashinfer-trace"
_PYTHON = frozenset(
    {"python", "pytorch", "triton", "tilelang", "cute_dsl", "cutile", "cudnn_frontend"}
)
_COMPILED = {"cpp": "cpp_sources", "cuda": "cuda_sources", "cuda_cpp": "cuda_sources"}
"""Languages that `load_inline` compiles, and the argument that gets the source."""
_UNITS = frozenset({".cpp", ".cc", ".cxx", ".c", ".cu"})
"""Files that torch compiles by themselves; the others are included."""
_LOADER = "kernel.py"
_AT_HAND = frozenset({"torch", "cuda", "triton", "python"})
"""Dependencies of a compiled solution that each runner's compiler has."""


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A solution.

    files: those beside its source, by name. name: of the source, if there are others.
    keyword: the argument of `load_inline` that takes the source; empty for a Python module.
    in_place: whether the entry point writes into outputs that it is given behind the inputs.
    """

    definition: str
    author: str
    source: str
    entry: str
    keyword: str
    in_place: bool
    options: Mapping[str, list[str]]
    name: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def kernel(self, task: Mapping[str, Any]) -> Kernel:
        """The module that a site of this task takes; raises `Stop` where none can be made.

        The solution's source stays as it is. A function `forward()` is added, which calls its entry
        point with the task's inputs and returns the outputs.
        """
        definition = definition_of(task)
        if definition.get("name") != self.definition:
            raise _refused("definition", f"is {self.definition}, not {definition.get('name')}")
        source = self.source if not self.keyword else self._loader()
        if self.keyword or self.entry != "forward" or self.in_place:
            called = f"_solution.{self.entry}" if self.keyword else self.entry
            added = _forward(definition, called, in_place=self.in_place)
            source = f"{source.rstrip()}\n\n\n{added}"
        name, files = self.name, dict(self.files)
        if self.keyword and files:
            name, files = _LOADER, {self.name: self.source, **files}
        return Kernel(source=source, language="python", directives={}, entry=name, files=files)

    def _loader(self) -> str:
        """A module that compiles the source with torch, or all sources that lie beside it."""
        flags = "".join(f", {name}={value!r}" for name, value in self.options.items())
        if self.files:
            names = [n for n in (self.name, *self.files) if Path(n).suffix in _UNITS]
            return (
                "from pathlib import Path\n\n"
                "from torch.utils.cpp_extension import load\n\n"
                "_FOLDER = Path(__file__).parent\n"
                f"_SOURCES = [str(_FOLDER / name) for name in {names}]\n"
                '_solution = load("solution", _SOURCES, '
                f"extra_include_paths=[str(_FOLDER)]{flags})"
            )
        plain = '"""' not in self.source and self.source[-1] not in '\\"'
        text = f'r"""{self.source}"""' if plain else repr(self.source)
        first = 'cpp_sources="", ' if self.keyword != "cpp_sources" else ""
        return (
            "from torch.utils.cpp_extension import load_inline\n\n"
            f"_SOURCE = {text}\n"
            f'_solution = load_inline("solution", {first}{self.keyword}=[_SOURCE]{flags})'
        )


def is_solution(path: Path) -> bool:
    """Whether a JSON file holds a solution, and no definition, trace or anything else."""
    return {"definition", "sources", "spec"} <= _object(path).keys()


def _object(path: Path) -> Document:
    """The object in a JSON file; empty where there is none, or it is too large for a solution."""
    try:
        if path.stat().st_size > 2 * LIMIT_BYTES:  # quoting makes texts longer
            return {}
        found = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_solution(path: Path) -> Solution:
    """The solution in a JSON file; raises `Stop` naming what no submission can have."""
    found = _object(path)
    spec, sources = found["spec"], found["sources"]
    if not isinstance(spec, dict) or not isinstance(sources, list):
        raise _refused("spec", "must be an object, and sources must be a list")
    texts = _texts(sources)
    file, _, entry = str(spec.get("entry_point")).partition("::")
    is_nested = "/" in file and len(texts) > 1
    if file not in texts or is_nested or not entry.isidentifier():
        known = " or ".join(f"{name}::FUNCTION" for name in texts if "/" not in name)
        raise _refused("spec.entry_point", f"must be {known}, in a file at the top level")
    source = texts.pop(file)
    argument = _argument(spec)
    solution = Solution(
        definition=str(found["definition"]),
        author=str(found.get("author", "")),
        source=source,
        name=file if texts else "",
        files=texts,
        entry=entry,
        keyword=argument,
        in_place=bool(spec.get("destination_passing_style", True)),
        options=_options(spec.get("compile_options") or {}) if argument else {},
    )
    if not argument:
        _check_module(solution)
    return solution


def _refused(field: str, reason: str) -> Stop:
    return Stop(Exit.MISUSE, reason, field)


def _texts(sources: list[Any]) -> dict[str, str]:
    """The files by their names; raises `Stop` where there is none, or a name comes twice."""
    if not sources or not all(isinstance(each, dict) for each in sources):
        raise _refused("sources", "must list at least one file, each with a path and content")
    found = {str(each.get("path")): str(each.get("content", "")) for each in sources}
    if len(found) != len(sources):
        raise _refused("sources", "must not list two files with the same path")
    return found


def _argument(spec: Document) -> str:
    """How the source is compiled; empty for Python. Raises `Stop` where no runner can do it."""
    given = spec.get("languages") or [spec.get("language")]
    languages = [str(each).lower() for each in given] if isinstance(given, list) else []
    if languages and set(languages) <= _PYTHON:
        return ""
    if len(languages) != 1 or languages[0] not in _COMPILED:
        known = ", ".join(sorted(_PYTHON | _COMPILED.keys()))
        raise _refused("spec.language", f"is {', '.join(languages)}; it must be one of {known}")
    binding = spec.get("binding") or ("torch" if "languages" in spec else "tvm-ffi")
    if binding != "torch":
        reason = f"is {binding}, which runners don't support; bind it with torch"
        raise _refused("spec.binding", reason)
    needed = {str(each) for each in spec.get("dependencies") or ()} - _AT_HAND
    if needed:
        reason = f"lists {', '.join(sorted(needed))}, which runners don't compile or link with"
        raise _refused("spec.dependencies", reason)
    return _COMPILED[languages[0]]


def _options(given: Document) -> dict[str, list[str]]:
    names = {
        "cflags": "extra_cflags",
        "cuda_cflags": "extra_cuda_cflags",
        "ld_flags": "extra_ldflags",
    }
    return {names[key]: list(map(str, given[key])) for key in names if given.get(key)}


def _check_module(solution: Solution) -> None:
    """Refuse a module whose own names the added function would hide."""
    try:
        tree = ast.parse(solution.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused("sources[0].content", f"is not valid Python: {error}") from None
    named = {name for node in tree.body for name in _bound(node)}
    if solution.entry not in named:
        raise _refused("spec.entry_point", f"is {solution.entry}, which the file doesn't define")
    hides = {"forward", "ModelNew"} & named - {solution.entry}
    if hides or (solution.entry == "forward" and solution.in_place):
        name = min(hides, default="forward")
        raise _refused(
            "sources[0].content", f"defines {name}, a name that kbench looks for: rename it"
        )


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def definition_of(task: Mapping[str, Any]) -> Document:
    """The definition that a task was made of; raises `Stop` if it was made otherwise."""
    document = task.get("document") or {}
    if document.get("format") != FORMAT:
        raise _refused("task", f"{task.get('name')} isn't a FlashInfer Trace definition")
    return dict(json.loads(document["files"]["definition.json"]))


def _forward(definition: Document, called: str, *, in_place: bool) -> str:
    """A function that takes the definition's inputs, calls the entry point, and returns."""
    taken = {"_torch", "forward", called.partition(".")[0]}
    names = {name: _safe(name, taken) for name in (*definition["inputs"], *definition["outputs"])}
    inputs = ", ".join(names[name] for name in definition["inputs"])
    if not in_place:
        return f"def forward({inputs}):\n    return {called}({inputs})\n"
    outputs = [names[name] for name in definition["outputs"]]
    lines = "\n".join(_allocations(definition, names))
    return (
        f"import torch as _torch\n\n\ndef forward({inputs}):\n{lines}\n"
        f"    {called}({inputs}, {', '.join(outputs)})\n    return {', '.join(outputs)}\n"
    )


def _safe(name: str, taken: set[str]) -> str:
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    usable = plain.isidentifier() and not keyword.iskeyword(plain) and plain not in taken
    return plain if usable else f"{plain}_" if plain[:1].isalpha() else f"x{plain}_"


def _allocations(definition: Document, names: Mapping[str, str]) -> Iterator[str]:
    """Lines that make the outputs, as large as the inputs say; raises `Stop` if they don't."""
    places: dict[str, str] = {}
    for name, spec in definition["inputs"].items():
        for dimension, axis in enumerate(spec["shape"] or ()):
            places.setdefault(axis, f"{names[name]}.shape[{dimension}]")
    tensors = [names[name] for name, spec in definition["inputs"].items() if spec["shape"]]
    if not tensors:
        raise _refused("definition", "needs an input tensor, because the outputs use its device")
    for name, spec in definition["outputs"].items():
        shape = ", ".join(_size(axis, definition["axes"], places) for axis in spec["shape"])
        told = f"dtype=_torch.{spec['dtype']}, device={tensors[0]}.device"
        made = f"_torch.empty([{shape}], {told})"
        yield f"    {names[name]} = {made}"


def _size(axis: str, axes: Document, places: Mapping[str, str]) -> str:
    """An axis as an expression over the inputs' shapes."""
    told = axes[axis]
    if told["type"] == "const":
        return str(told["value"])
    if told["type"] == "expr":
        parts = re.split(r"([A-Za-z_]\w*)", told["expression"])
        sizes = (_size(part, axes, places) if part in axes else part for part in parts)
        return f"int({''.join(sizes)})"
    if axis not in places:
        raise _refused("definition", f"uses the axis {axis}, which no input's shape determines")
    return places[axis]
