"""For which kind of device a Python module is, where nobody says it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from gpu_runner.data.python_source import imported_names, is_within, tree_of, unconditional
from gpu_runner.data.verdict import DeviceKind, Language

_OF_GPUS = ("triton", "cupy", "cutlass", "cuda.tile", "tilelang", "numba.cuda", "pycuda")
_PORTABLE = re.compile(r"\b(?:is_available|device_count)\b")
"""Who asks whether there is a GPU can do without one."""
_DEVICE = re.compile(r"cuda(?::\d+)?")


def usual_kind(language: Language, source: str) -> DeviceKind:
    """The kind of device on which a source is measured unless its author names one."""
    if language is Language.PYTHON:
        return DeviceKind.CUDA if gpu_reason(source) else DeviceKind.CPU
    return language.device_kinds[-1]


def gpu_reason(source: str) -> str:
    """Why a module needs a GPU: "imports triton"; empty where nothing in its text says so."""
    tree = tree_of(source)
    if tree is None:
        return ""
    nodes = unconditional(tree, calls=True)
    names = list(imported_names(nodes))
    for package in _OF_GPUS:
        if any(is_within(name, package) for name in names):
            return f"imports {package}"
    if any(_compiles_cuda(node) for node in nodes):
        return "compiles cuda_sources"
    if any(_is_of_triton(node) for node in nodes):  # which is imported where it may be missing
        return "uses triton.jit"
    return "" if _PORTABLE.search(source) else _use(nodes)


def _is_of_triton(node: ast.AST) -> bool:
    """Whether it is `triton.jit`."""
    if not isinstance(node, ast.Attribute) or node.attr != "jit":
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "triton"


def _compiles_cuda(node: ast.AST) -> bool:
    if not isinstance(node, ast.keyword) or node.arg != "cuda_sources":
        return False
    is_empty = isinstance(node.value, ast.Constant) and not node.value.value
    return not is_empty and not (isinstance(node.value, ast.List) and not node.value.elts)


def _use(nodes: Sequence[ast.AST]) -> str:
    """How a module that asks for no GPU uses one all the same."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr == "cuda":
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if owner in ("torch", "numba"):
                return f"uses {owner}.cuda"
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" and not node.args:
                return "calls .cuda()"
            given = [*node.args, *(k.value for k in node.keywords if k.arg == "device")]
            if any(_is_device(value) for value in given):
                return "names the device 'cuda'"
    return ""


def _is_device(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Constant)
        and isinstance(value.value, str)
        and _DEVICE.fullmatch(value.value) is not None
    )
