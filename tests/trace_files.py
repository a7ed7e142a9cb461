"""Files of FlashInfer Trace: a small definition, its workloads, and solutions of it."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REFERENCE = """import torch


def run(x, rows, alpha):
    return (x.float()[rows.long()] * alpha).to(torch.bfloat16)
"""
RANDOM = {"type": "random"}


def tensor(dtype: str, *shape: str) -> dict[str, object]:
    """A specification."""
    return {"shape": list(shape), "dtype": dtype}


def definition(**overrides: Any) -> dict[str, Any]:
    """Rows of a matrix, scaled; None leaves a field out."""
    fields = {
        "name": "Take-rows_w4",
        "op_type": "gather",
        "axes": {
            "n": {"type": "var", "description": "rows"},
            "k": {"type": "var"},
            "w": {"type": "const", "value": 4},
        },
        "inputs": {
            "x": tensor("bfloat16", "n", "w"),
            "rows": tensor("int32", "k"),
            "alpha": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"out": tensor("bfloat16", "k", "w")},
        "constraints": ["int(rows.max()) < n"],
        "reference": REFERENCE,
        **overrides,
    }
    return {name: value for name, value in fields.items() if value is not None}


def workload(uuid: str, n: int = 8, rows: object = None, **inputs: object) -> dict[str, Any]:
    """A workload of it, whose three rows are in blob/rows.safetensors."""
    place = {"type": "safetensors", "path": "./blob/rows.safetensors", "tensor_key": "rows"}
    given = {"x": RANDOM, "rows": rows or place, "alpha": {"type": "scalar", "value": 0.5}}
    return {"uuid": uuid, "axes": {"n": n, "k": 3}, "inputs": given | inputs}


def write_tensor(path: Path, key: str, values: list[int]) -> None:
    """A safetensors file with one vector of int32."""
    data = struct.pack(f"<{len(values)}i", *values)
    entry = {"dtype": "I32", "shape": [len(values)], "data_offsets": [0, len(data)]}
    header = json.dumps({"__metadata__": {}, key: entry}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def write_data_set(
    root: Path, document: Mapping[str, Any], workloads: list[dict[str, Any]]
) -> Path:
    """A data set with one definition; returns its file."""
    name = document["name"]
    file = root / "definitions" / "gather" / f"{name}.json"
    lines = root / "workloads" / "gather" / f"{name}.jsonl"
    for path in (file, lines):
        path.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))
    told = {"definition": name, "solution": None, "evaluation": None}
    lines.write_text("".join(json.dumps({**told, "workload": each}) + "\n" for each in workloads))
    write_tensor(root / "blob" / "rows.safetensors", "rows", [2, 0, 2])
    return file


def solution(source: str, path: str = "main.py", **spec: Any) -> dict[str, Any]:
    """A solution of one file."""
    given = {"language": "python", "target_hardware": ["cpu"], "entry_point": f"{path}::run"}
    return {
        "name": "take_rows_one",
        "definition": "Take-rows_w4",
        "author": "ada-agent",
        "spec": given | spec,
        "sources": [{"path": path, "content": source}],
    }
