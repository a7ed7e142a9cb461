"""Whether a Python module compiles when it is called, and not only when it is imported."""

from __future__ import annotations

import ast
import re

from gpu_runner.data.python_source import tree_of, unconditional

LEFT_TO_CALLS = "left to the first calls"
"""How preparing begins to say that an import could not end without a GPU."""

_AT_CALLS = re.compile(
    r"\b(?:triton|numba|cutlass|cute|cupy|compile|_inductor)\b|\bcuda\s*\.\s*tile\b"
    r"|\b(?:is_available|device_count)\b"  # an import without a GPU goes another way
)
_INLINE = re.compile(r"\b(?:load_inline|cpp_extension)\b")
_LOAD_INLINE, _EXTENSION = "load_inline", "cpp_extension"


def compiles_at_calls(source: str) -> bool:
    """Whether a module names what may compile when it is called.

    `load_inline` outside of all functions and conditions has compiled when the import ends.
    """
    if _AT_CALLS.search(source):
        return True
    return names_extensions(source) and not _is_inlined_at_import(source)


def names_extensions(source: str) -> bool:
    """Whether a module may compile C++ or CUDA by torch."""
    return _INLINE.search(source) is not None


def _is_inlined_at_import(source: str) -> bool:
    """Whether `load_inline` is only called, by its name, in what every import runs."""
    tree = tree_of(source)
    if tree is None:
        return False
    called = set()
    for node in unconditional(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == _LOAD_INLINE:
            called.add(node.func)
            if isinstance(node.func, ast.Attribute):
                called.add(node.func.value)
    mentions = (node for node in ast.walk(tree) if _mentions(node))
    return all(node in called for node in mentions)


def _mentions(node: ast.AST) -> bool:
    if isinstance(node, ast.alias):  # under another name, calls of it would not be seen
        return node.asname is not None and _INLINE.search(node.name) is not None
    return _last_name(node) in (_LOAD_INLINE, _EXTENSION)


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
