"""Results as the API tells them unless all is asked for: what helps to write the kernel."""

from __future__ import annotations

from typing import Any

from runs_app.core.compiler_log import first_errors

Document = dict[str, Any]
_OF_RESULTS = (
    *("stages", "environment", "loaded", "task_digest", "solution_digest", "schema_version"),
)
_OF_WORKLOADS = (*("processes", "outside", "errors", "flops", "bytes", "tensor_bytes", "weight"),)
_OUTPUT, _KERNELS, _NOTES = 1_200, 5, 16  # chosen, so that each takes 1 to 4 KB
LEFT_OUT = (*_OF_RESULTS, *(f"workloads.{each}" for each in _OF_WORKLOADS))


def brief(result: Document) -> tuple[Document, list[str]]:
    """A result without `LEFT_OUT`, and the names of its parts of which it has only the start.

    Left out is what is there to redo its statistics, and to tell runners apart.
    """
    kept = {name: value for name, value in result.items() if name not in _OF_RESULTS}
    kept["workloads"] = [
        {name: value for name, value in each.items() if name not in _OF_WORKLOADS}
        for each in result["workloads"]
    ]
    cut = []
    for name, (part, whole, short) in _shortened(result).items():
        kept[part or name] = kept[part] | {name: short} if part else short
        cut += [f"{part}.{name}" if part else name] if short != whole else []
    return kept, cut


def _shortened(result: Document) -> dict[str, tuple[str, object, object]]:
    """Long values: in which part of the result they are, and each whole and shortened."""
    found: dict[str, tuple[str, object, object]] = {}
    if build := result.get("build"):
        log = build["log"].strip()
        found["log"] = ("build", log, first_errors(log))
    if output := result.get("output", "").strip():
        found["output"] = ("", output, output[-_OUTPUT:])
    if profile := result.get("profile"):
        for name, most in (("kernels", _KERNELS), ("notes", _NOTES)):
            found[name] = ("profile", profile[name], profile[name][:most])
    return found
